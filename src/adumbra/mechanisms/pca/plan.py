"""What PCA publishing costs, and when the mean alone is better than any row."""

from dataclasses import replace

from adumbra.data.encode import Encoder
from adumbra.errors import Unsupported, require
from adumbra.mechanisms import sizes
from adumbra.mechanisms.base import Noise, Plan, Settled, person_notes, require_magnitudes
from adumbra.mechanisms.box_release import (
    PURPOSE,
    MomentParts,
    box_memory,
    calibrate_moments,
    require_rows_unit,
)
from adumbra.mechanisms.fields import refuse_idle
from adumbra.mechanisms.pca.config import METHOD, PCAConfig, budget_parts, idle_options
from adumbra.mechanisms.pca.forecast import moment_expectations, row_expectations
from adumbra.mechanisms.pca.rows import ROWS
from adumbra.mechanisms.sizes import Size, Work
from adumbra.privacy.guarantee import promise
from adumbra.schema.schema import Schema


def settle(config: PCAConfig, schema: Schema) -> Settled[PCAConfig, MomentParts]:
    """The public encoding (a label is a column like any other) and the noise of the moments."""
    refuse_idle(config, idle_options(config))
    require_rows_unit(schema, "PCA publishing")
    require_magnitudes(schema)
    if not schema.neighbours.rows_are_public and config.output == "rows":
        raise Unsupported(
            f"neighbours={schema.neighbours}: a row-by-row release shows the number of rows; declare "
            "replace-one, or use output=sample"
        )
    schema.require_filled("PCA publishing")
    encoder = Encoder(replace(schema, label=None))
    k, width = config.n_components, encoder.width
    require(k <= width, f"n_components={k}: must be at most the {width} encoded columns")
    amount = budget_parts(config)[0]
    noise = calibrate_moments(schema, encoder, amount, is_pure=config.is_pure, classes=0)
    parts = MomentParts(encoder=encoder, noise=noise)
    return Settled(config=config, schema=schema, plan=_plan(config, schema, parts), parts=parts)


def _plan(config: PCAConfig, schema: Schema, parts: MomentParts) -> Plan:
    """Cost, noise, and when the mean alone is better than any row, from public numbers only."""
    encoder, noise = parts.encoder, parts.noise
    entries: tuple[Noise, ...] = (noise.entry(),)
    rows = row_expectations(config, encoder) if config.noisy_rows else None
    base = moment_expectations(config, encoder, noise, schema.rows)
    return Plan(
        method=METHOD,
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=(PURPOSE, ROWS) if rows else (PURPOSE,),
        noise=(*entries, *((rows.worst,) if rows else ()), *noise.other_entries()),
        expected={**base.expected, **(rows.expected if rows else {})},
        notes=(*(rows.notes if rows else ()), *base.notes, *person_notes(schema)),
        details={
            "encoded_columns": encoder.width,
            "squared_noise_by_n_components": rows.table if rows else [],
        },
        size=_size(config, schema, encoder),
    )


def _size(config: PCAConfig, schema: Schema, encoder: Encoder) -> Size:
    """Memory and disk: moments first, then rows, streamed or drawn whole."""
    is_drawn = config.output == "sample"
    rows = sizes.rows_drawn(schema, config.synthetic_rows if is_drawn else schema.rows)
    width, columns = encoder.width, schema.width
    read = sizes.rows_read(schema)
    after = (
        sizes.reading(columns, read, width, copies=8) + sizes.written(columns, rows)
        if config.noisy_rows
        else sizes.decoded(width, columns, sizes.at_once(rows, width))
    )
    work = Work(
        passes=2 if config.noisy_rows else 1,
        products=width * width,
        noisy=columns if config.noisy_rows else 0,
        drawn=0 if config.noisy_rows else rows * columns,
        solved=10 * width**3,
    )
    return Size(
        memory=max(box_memory(schema, encoder, 0, read), sizes.PROCESS + after),
        output=sizes.table_bytes(schema.columns, rows)
        + sizes.FLOAT * (width + 1) * (width + 1 + config.n_components)
        + sizes.folder_words(schema),
        card=sizes.card_bytes(schema.names, encoder.names),
        rows=rows,
        seconds=work.seconds(schema),
    )
