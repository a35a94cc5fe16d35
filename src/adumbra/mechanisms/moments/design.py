"""What the moments synthesizer decides before it reads a row: columns, cells, shares, weights.

Every rule here is a function of public numbers (rows, columns, classes, budget). The constants were
chosen by looking at public data sets (docs/explanation/utility.md names them), none at run time.
"""

import math
from dataclasses import replace

import numpy as np

from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.numerics import ROW_BITS, Array
from adumbra.postprocess.moments.design import BIN_PARTS, Design, Feature
from adumbra.privacy.conversion import mu_of
from adumbra.relations import Unit
from adumbra.schema.schema import Column, Kind, Schema

ROWS_GUESS = 10_000  # where the number of rows is private and nobody guessed it
MOST_CLASSES = 64  # a label with more levels is an ordinary column
BLOCK_WIDTH = 3_000  # wider Grams are cut into blocks of this many encoded columns
RADIUS_CELLS = 64
SCORE_CELLS, FINE_CELLS = 16, 32
MOST_SCORE_CELLS = 32  # numbers have this many (more would not stay in the processor's cache) ...
QUIET_CELL = 0.05  # ... if the noise of a cell stays below this part of its expected rows
MOST_BINNED = 16  # numbers are cut into bins beside as many categories, if at most this many ...
BINNED_NOISE = 8.0  # ... and the noise of a pair's cell is below this many times its expected count
CLIP_QUANTILES = (0.5, 0.9, 0.99)  # of the row norms: noisy, quiet and very quiet Grams, ...
NOISY_EDGES = (0.001, 0.0002)  # ... by a noise edge above these parts of the trace


def design(config: MomentsConfig, schema: Schema) -> Design:
    """The rules: from the schema, the budget and a public (or guessed) number of rows."""
    require_row_unit(schema)
    schema.require_closed()
    count = schema.rows or config.expected_rows or ROWS_GUESS
    label, classes = _label(schema)
    numeric = sum(c.is_numeric and i != label for i, c in enumerate(schema.columns))
    columns = schema.width - (label is not None)
    require(columns >= 1, "columns: the label is the only one; declare a column to synthesize")
    levels = sum(c.levels > 2 and i != label for i, c in enumerate(schema.columns))
    is_binned = numeric <= levels and _is_binned(config, columns, numeric, count)
    is_binned = is_binned if config.numbers == "auto" else config.numbers == "bins"
    features = _features(schema, label, is_binned, _score_cells(config, columns, count))
    share = config.marginal_share or _histogram_share(config, features, count)
    # Categories learn their classes from the histograms; numbers learn them from the Gram.
    weight = 0.3 if all(f.is_levels for f in features) else math.sqrt(0.5)
    decided = Design(
        features=features,
        label=label,
        classes=classes,
        rows=count,
        shares=(share, 0.02, 1.0 - share - 0.02),
        label_units=round(weight * 2**ROW_BITS),
        quantile=CLIP_QUANTILES[0],
    )
    edge = relative_edge(config, decided, decided.widest())
    return replace(decided, quantile=CLIP_QUANTILES[sum(edge <= limit for limit in NOISY_EDGES)])


def relative_edge(config: MomentsConfig, decided: Design, width: int) -> float:
    """The noise edge of the Gram over its trace, if rows have the length of the radius (replace-one)."""
    mu = rough_mu(config) * math.sqrt(decided.shares[2])
    off = (1.0 + decided.label_weight**2) / mu
    return 2.0 * off * math.sqrt(width) / decided.rows


def rough_mu(config: MomentsConfig) -> float:
    """The budget as mu; of a pure one, what noise of the same size would be (for rules alone)."""
    return mu_of(config.epsilon, config.delta) if config.delta > 0 else config.epsilon / 4.0


def require_row_unit(schema: Schema) -> None:
    """Rows are clipped, so one element is no unit here."""
    if schema.unit is not Unit.ROW:
        raise Unsupported(f"unit={schema.unit}: moments shortens whole rows; declare unit='row'")


def _label(schema: Schema) -> tuple[int | None, int]:
    """The label column if it has classes, and how many; a numeric target is an ordinary column."""
    index = schema.label_index
    if index is None:
        return None, 1
    column = schema.columns[index]
    lower, upper = column.limits
    levels = upper - lower + 1.0
    if column.kind is Kind.NUMBER or levels > MOST_CLASSES:
        return None, 1
    require(not column.keeps_null, f"label {column.name!r}, missing='null': a class cannot be missing")
    return index, int(levels)


def _is_binned(config: MomentsConfig, columns: int, numeric: int, rows: int) -> bool:
    """Whether numbers may be cut into bins: few of them, and pairs of bins stand out of the noise."""
    pair_noise = 0.7 * columns / (rough_mu(config) * 0.5)
    return numeric <= MOST_BINNED and pair_noise * BIN_PARTS**2 / rows <= BINNED_NOISE


def _histogram_share(config: MomentsConfig, features: tuple[Feature, ...], rows: int) -> float:
    """The histograms' part of the budget: less, the more their cells would drown in noise anyhow.

    Errors of histograms and of the Gram both grow with sqrt(columns) / (rows mu), so that the best
    parts hardly depend on either; but a cell whose noise exceeds its rows is worth nothing.
    """
    most = 0.7 if any(f.is_levels for f in features) else 0.4
    sigma = math.sqrt(2.0 * (len(features) + 1) / most) / rough_mu(config)
    return most / (1.0 + (sigma * SCORE_CELLS / rows) ** 2)


def _score_cells(config: MomentsConfig, columns: int, rows: int) -> int:
    """Equal cells of a number: more, the less noise a histogram has."""
    sigma = math.sqrt(2.0 * (columns + 1) / 0.4) / rough_mu(config)
    return MOST_SCORE_CELLS if MOST_SCORE_CELLS * sigma <= QUIET_CELL * rows else SCORE_CELLS


def _features(
    schema: Schema, label: int | None, is_binned: bool, score_cells: int
) -> tuple[Feature, ...]:
    if schema.items is not None:
        return tuple(
            Feature(name=str(i + schema.items.lower), index=i, cells=2, edges=None, is_levels=False)
            for i in range(schema.items.width)
        )
    own = [(index, column) for index, column in enumerate(schema.columns) if index != label]
    parts = FINE_CELLS if is_binned else score_cells
    columns = tuple(_feature(column, index, parts, is_binned) for index, column in own)
    return columns + tuple(_flag(column, index) for index, column in own if column.keeps_null)


def _flag(column: Column, index: int) -> Feature:
    """Whether a number is missing, as a column of its own."""
    name = f"{column.name} is missing"
    return Feature(
        name=name,
        index=index,
        cells=2,
        edges=None,
        is_levels=False,
        missing=column.fill,
        is_flag=True,
    )


def _feature(column: Column, index: int, parts: int, is_binned: bool) -> Feature:
    """How a column is measured: a number by cells, a pair of levels as a number, more levels one-hot."""
    if not column.is_numeric:
        return Feature(
            name=column.name, index=index, cells=column.levels, edges=None, is_levels=column.levels > 2
        )
    is_integer = column.kind is Kind.INTEGER
    lower, upper = column.limits
    edges = number_edges(lower, upper, parts, is_integer=is_integer, is_fine=is_binned)
    return Feature(
        name=column.name,
        index=index,
        cells=len(edges) - 1,
        edges=edges,
        is_levels=is_binned and len(edges) > 3,
        missing=column.fill if column.keeps_null else None,
        is_integer=is_integer,
        lower=lower,
        upper=upper,
    )


def number_edges(lower: float, upper: float, parts: int, *, is_integer: bool, is_fine: bool) -> Array:
    """Cells of a number: its two bounds apart (many columns pile up there), equal widths between.

    Fine cells add powers of two from the lower bound on, where amounts of money crowd. An integer with
    few values has one cell a value.
    """
    width = upper - lower
    if width <= 0:
        raise InvalidInput(f"lower={lower}, upper={upper}: a number needs lower below upper")
    if is_integer and width < (128 if is_fine else 2 * parts):
        return np.arange(lower, upper + 2.0) - 0.5
    inner = lower + width * np.arange(1, parts) / parts
    if is_fine:
        inner = np.union1d(inner, lower + width * 2.0 ** (-np.arange(1, 21) / 2.0))
    if is_integer:
        first, last = np.array([lower - 0.5, lower + 0.5]), np.array([upper - 0.5, upper + 0.5])
        inner = inner[(inner > lower + 1.0) & (inner < upper - 1.0)]
    else:
        first = np.array([lower, np.nextafter(lower, upper)])
        last = np.array([upper, np.nextafter(upper, math.inf)])
        inner = inner[(inner > first[1]) & (inner < upper)]
    return np.concatenate((first, inner, last))
