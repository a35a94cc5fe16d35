"""What a RON-Gauss release costs and how noisy it is; every public decision, made once."""

import math
from dataclasses import dataclass

from adumbra.errors import Unsupported, require
from adumbra.mechanisms import sizes
from adumbra.mechanisms.base import Plan, Settled, person_notes, require_magnitudes
from adumbra.mechanisms.fields import refuse_idle, unused_guess
from adumbra.mechanisms.ron_gauss.choice import (
    CLUSTER_COMPONENTS,
    best_components,
    best_covariance,
    mean_noise,
    noise_to_signal,
)
from adumbra.mechanisms.ron_gauss.config import METHOD, RONGaussConfig
from adumbra.mechanisms.ron_gauss.scales import Budget, Scales, scales
from adumbra.mechanisms.sizes import Size, Work
from adumbra.postprocess.ron_gauss.space import Space, space_of
from adumbra.privacy.guarantee import promise
from adumbra.relations import Unit
from adumbra.schema.schema import Schema

KEPT = 400 * 2**20  # bytes of projected rows that are held (sums.KEPT_BYTES)
MATRICES = 5  # copies of the projection while it is drawn: normal numbers, their QR, units, floats
COLUMNS_SHARE = 0.3  # of the budget for the mean of all columns, as in the paper ...
DIRECTIONS_SHARE = 0.05  # ... or of the p directions alone, whose noise is smaller by about sqrt(p/m)

COVARIANCES = {
    "class": "Each class has a covariance of its own.",
    "tied": "All classes share one covariance: their own would be mostly noise.",
    "sphere": "All classes share one variance in every direction: a covariance would be mostly noise.",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """The public shape of the model and every noise scale."""

    space: Space
    scales: Scales


def settle(config: RONGaussConfig, schema: Schema) -> Settled[RONGaussConfig, Parts]:
    """The public shape of the model and every noise scale, before anything is read."""
    if schema.unit is Unit.ELEMENT:
        raise Unsupported(f"unit={schema.unit}: RON-Gauss clips whole rows; declare unit='row'")
    refuse_idle(config, _idle_options(config))
    require_magnitudes(schema, config.row_norm)
    space = space_of(
        schema,
        mode=config.mode,
        row_norm=config.row_norm,
        matrix_seed=config.matrix_seed,
        clip_tail=config.clip_tail,
        private_centring=config.centring == "private",
        unit_rows=config.unit_rows,
        normalise=config.rescale == "normalise",
        columns=config.output == "columns",
        clip_factor=config.clip_factor,
    )
    rows, budget = schema.rows or config.expected_rows, _budget(config, space)
    asked = None if config.n_components == "auto" else config.n_components
    if asked is None and config.goal == "clusters":
        asked = min(CLUSTER_COMPONENTS, space.width)
    if asked is None:
        require(
            rows is not None,
            "n_components=auto: needs the number of rows; declare rows, or give expected_rows",
        )
    if config.covariance != "auto":
        space = space.with_covariance(config.covariance)
    elif space.classes is not None:
        space = space.with_covariance(best_covariance(space, budget, rows, asked))
    space = space.with_components(asked or best_components(space, budget, rows or 1))
    if space.components == space.width:
        refuse_idle(config, {"clip_tail": f"with n_components={space.width}: no row gets longer"})
    parts = Parts(space=space, scales=scales(space, budget))
    return Settled(config=config, schema=schema, plan=_plan(config, parts), parts=parts)


def _idle_options(config: RONGaussConfig) -> dict[str, str]:
    """Options that the others leave without effect, with the case."""
    idle: dict[str, str] = {}
    if config.n_components != "auto":
        idle["goal"] = f"with n_components={config.n_components}"
    if config.mode != "gmm":
        idle["covariance"] = f"with mode={config.mode}"
    if config.rescale == "normalise":
        idle["clip_factor"] = "with rescale=normalise"
    if config.centring == "public":
        idle |= dict.fromkeys(("mean_share", "clip_factor", "rescale"), "with centring=public")
    if config.unit_rows:
        idle["row_norm"] = "with unit_rows=True"
    return idle


def _plan(config: RONGaussConfig, parts: Parts) -> Plan:
    """Cost, noise, and noise-to-signal over the dimension, from public numbers only."""
    space, settled = parts.space, parts.scales
    schema = space.layout.schema
    rows = schema.rows or config.expected_rows
    table: list[dict[str, float]] = []
    notes = [*unused_guess(config, schema.rows)]
    expected: dict[str, float] = {"n_components": float(space.components)}
    if rows is not None:
        budget = _budget(config, space)
        gram = space.with_covariance("tied") if space.covariance == "sphere" else space
        for p in sorted({2, 4, 8, 16, 32, 64, 128, space.components}):
            if p < space.width:
                ratio = noise_to_signal(gram.with_components(p), budget, rows)
                table.append({"n_components": float(p), "noise_to_signal": ratio})
        expected["noise_to_signal"] = worst = noise_to_signal(gram, budget, rows)
        if space.classes is None:
            notes.append(
                f"Noise is {worst:.2g} of the signal (Frobenius norm, p={space.components}) "
                "if variance is spread evenly; real tables concentrate it."
            )
        else:
            worst = math.sqrt(space.components) * mean_noise(space, budget, rows)
            expected["class_mean_noise"] = worst
            notes.append(f"Noise moves the mean of an average class by {worst:.2g} of a centred row.")
        if worst > 1.0:
            notes.append("Noise would dominate: use fewer components, more rows or more budget.")
    if space.classes is not None:
        notes.append(COVARIANCES[space.covariance])
    if settled.isometric and not settled.is_pure:
        notes.append(
            "The Gram's noise is as stated on the diagonal and 1/sqrt(2) of it off the diagonal."
        )
    return Plan(
        method=METHOD,
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=settled.purposes,
        noise=settled.noise,
        expected=expected,
        notes=(*notes, *person_notes(schema)),
        details={"components": space.components, "noise_to_signal_by_n_components": table},
        size=_size(config, space),
    )


def _size(config: RONGaussConfig, space: Space) -> Size:
    """Memory and disk: sums of rows and their Gram, then drawn rows of all columns."""
    schema, width, side = space.layout.schema, space.width, space.components + (space.classes or 1) + 2
    groups = (space.classes or 1) if space.covariance == "class" else 1
    rows = sizes.rows_drawn(schema, config.synthetic_rows, config.expected_rows)
    read = sizes.rows_read(schema, config.expected_rows)
    entries, matrix = width + groups * side * side, width * space.components
    summing = sizes.reading(schema.width, read, width, copies=6, is_sliced=True)
    summing += sizes.totals(entries)
    projected = 4 * space.components * read  # kept for the second sums, if they fit
    is_kept = projected <= KEPT
    summing += projected if is_kept else 0 if schema.rows is not None else KEPT
    is_whole = config.output == "columns"
    released = width if is_whole else space.components
    drawing = sizes.decoded(released, schema.width if is_whole else 0, sizes.at_once(rows, width))
    names = schema.names if is_whole else tuple(f"y{j + 1}" for j in range(space.components))
    table = (
        sizes.table_bytes(schema.columns, rows)
        if is_whole
        else sizes.FLOAT * rows * (released + 1) + sizes.CHUNK_BYTES * released
    )
    passes = 1 if is_kept or not space.private_centring else 2
    work = Work(passes=passes, products=passes * matrix + side * side, drawn=rows * released)
    return Size(
        memory=sizes.PROCESS + sizes.FLOAT * MATRICES * matrix + max(summing, drawing),
        output=table
        + sizes.FLOAT * (matrix + (groups + 1) * side * side + (space.classes or 1) * (width + side))
        + sizes.folder_words(schema),
        card=sizes.card_bytes(names) + 40 * (space.classes or 1),
        rows=rows,
        seconds=work.seconds(schema, config.expected_rows),
    )


def _budget(config: RONGaussConfig, space: Space) -> Budget:
    share = config.mean_share or (COLUMNS_SHARE if space.columns else DIRECTIONS_SHARE)
    return Budget(
        epsilon=config.epsilon,
        delta=config.delta,
        mean_share=share if space.private_centring else 0.0,
    )
