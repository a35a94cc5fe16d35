"""What LDA publishing costs, and how wrong class means and covariance will be."""

from adumbra.data.encode import Encoder
from adumbra.errors import require
from adumbra.mechanisms import sizes
from adumbra.mechanisms.base import Plan, Settled, person_notes, require_magnitudes, rows_of
from adumbra.mechanisms.box_release import (
    PURPOSE,
    MomentNoise,
    MomentParts,
    box_memory,
    calibrate_moments,
    require_rows_unit,
)
from adumbra.mechanisms.fields import unused_guess
from adumbra.mechanisms.lda.config import METHOD, LDAConfig
from adumbra.mechanisms.sizes import Size, Work
from adumbra.postprocess.greedy import most_rows
from adumbra.postprocess.matrices import noise_edge
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.guarantee import promise
from adumbra.schema.schema import Schema
from adumbra.statistics.box_moments import Kind

COMPILED = 100 * 2**20  # of memory, while the sampler is compiled


def settle(config: LDAConfig, schema: Schema) -> Settled[LDAConfig, MomentParts]:
    """The public encoding and the noise of the moments; refuses what has no proof."""
    require_rows_unit(schema, "LDA publishing")
    require_magnitudes(schema)
    require(schema.label is not None, "label is absent: LDA needs classes; declare one in [table]")
    schema.require_filled("LDA publishing")
    encoder = Encoder(schema)
    asked = config.synthetic_rows or (None if schema.rows is None else rows_of(schema.rows))
    most = most_rows(encoder.width)
    require(
        asked is None or asked <= most,
        f"synthetic_rows={asked}: with {encoder.width} encoded columns at most {most} can be drawn; "
        "ask for less",
    )
    is_pure = config.delta == 0
    amount = config.epsilon if is_pure else mu_of(config.epsilon, config.delta)
    noise = calibrate_moments(schema, encoder, amount, is_pure=is_pure, classes=encoder.label_levels)
    return Settled(
        config=config,
        schema=schema,
        plan=_plan(config, schema, noise, _size(config, schema, encoder)),
        parts=MomentParts(encoder=encoder, noise=noise),
    )


def _size(config: LDAConfig, schema: Schema, encoder: Encoder) -> Size:
    """Memory and disk: moments first, then rows that follow them."""
    rows = sizes.rows_drawn(schema, config.synthetic_rows, config.expected_rows)
    moments = box_memory(schema, encoder, encoder.label_levels, sizes.rows_read(schema))
    width, columns = encoder.width, schema.width
    drawing = sizes.decoded(width, columns, sizes.at_once(rows, width))
    side = width + encoder.label_levels
    work = Work(
        passes=1, products=side * side, drawn=rows * columns, solved=10 * width**3, greedy=(rows, width)
    )
    return Size(
        memory=COMPILED + max(moments, sizes.PROCESS + drawing),
        output=sizes.table_bytes(schema.columns, rows)
        + sizes.FLOAT * (side * side + width * side)
        + sizes.folder_words(schema),
        card=sizes.card_bytes(schema.names, encoder.names),
        rows=rows,
        seconds=work.seconds(schema, config.expected_rows),
    )


def _plan(config: LDAConfig, schema: Schema, noise: MomentNoise, size: Size) -> Plan:
    """Cost, noise, and the error of class means and of the covariance, from public numbers only."""
    shape, rows = noise.statistic.shape, schema.rows or config.expected_rows
    notes, expected = [*unused_guess(config, schema.rows)], {}
    if rows is not None:
        total, product = noise.deviation(Kind.TOTAL), noise.deviation(Kind.CROSS)
        edge = noise_edge(product, shape.width) / rows
        expected = {
            "class_mean_error": total * shape.classes / rows,
            "second_moment_error": product / rows,
            "spectral_edge": edge,
        }
        notes.append(
            f"Class means are off by about {expected['class_mean_error']:.2g} in each column if classes "
            "are of equal size, proportionally more in smaller ones; each second moment of two columns "
            f"by {expected['second_moment_error']:.2g} (standard deviations; columns scaled to width 1)."
        )
        if edge > 0.25:  # no column of the box has a larger variance
            notes.append("The covariance would be noise alone: more rows, fewer columns or more budget.")
    return Plan(
        method=METHOD,
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=(PURPOSE,),
        noise=(noise.entry(), *noise.other_entries()),
        expected=expected,
        notes=(*notes, *person_notes(schema)),
        details={"encoded_columns": shape.width, "classes": shape.classes},
        size=size,
    )
