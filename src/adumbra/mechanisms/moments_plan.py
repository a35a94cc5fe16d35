"""What the moments synthesizer decides before it reads a row: columns, cells, shares, weights.

Every rule here is a function of public numbers (rows, columns, classes, budget). The constants were
chosen by looking at public data sets (docs/explanation/utility.md names them), none at run time.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.data.schema import Column, Kind, Schema
from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.mechanisms.fields import settle_fields
from adumbra.numerics import ROW_BITS, Array
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.guarantee import require_budget
from adumbra.relations import Unit

MARGINALS, RADIUS, GRAM = "marginals", "radius", "gram"
PURPOSES = (MARGINALS, RADIUS, GRAM)

ROWS_GUESS = 10_000  # where the number of rows is private and nobody guessed it
MOST_CLASSES = 64  # a label with more levels is an ordinary column
BLOCK_WIDTH = 3_000  # wider Grams are cut into blocks of this many encoded columns
RADIUS_CELLS = 64
SCORE_CELLS, FINE_CELLS, BIN_PARTS = 16, 32, 8
MOST_SCORE_CELLS = 32  # numbers have this many (more would not stay in the processor's cache) ...
QUIET_CELL = 0.05  # ... if the noise of a cell stays below this part of its expected rows
MOST_BINNED = 16  # numbers are cut into bins beside as many categories, if at most this many ...
BINNED_NOISE = 8.0  # ... and the noise of a pair's cell is below this many times its expected count
CLIP_QUANTILES = (0.5, 0.9, 0.99)  # of the row norms: noisy, quiet and very quiet Grams, ...
NOISY_EDGES = (0.001, 0.0002)  # ... by a noise edge above these parts of the trace


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float
    delta: float = 1e-6
    sample_rows: int | None = None  # rows of the synthetic table; by default as many as the data has
    rows_guess: int | None = (
        None  # add-remove: a public guess of the number of rows, for the rules alone
    )
    marginal_share: float | None = None  # of the budget, for one-way histograms; None: by rule
    numbers: str = (
        "auto"  # "bins": one-hot of private bins; "scores": one scaled column; "auto": by rule
    )
    sample_seed: int = 0  # public: synthetic rows are drawn from the noisy model with it

    def __post_init__(self) -> None:
        settle_fields(self)
        require_budget(self.epsilon, self.delta)
        for name, value in (("sample_rows", self.sample_rows), ("rows_guess", self.rows_guess)):
            require(value is None or value >= 1, f"{name}={value}: must be at least 1")
        share = self.marginal_share
        require(
            share is None or 0.0 < share <= 0.95, f"marginal_share={share}: must lie between 0 and 0.95"
        )
        choices = ("auto", "bins", "scores")
        require(
            self.numbers in choices, f"numbers={self.numbers}: unknown; use one of {', '.join(choices)}"
        )
        require(self.sample_seed >= 0, f"sample_seed={self.sample_seed}: must be 0 or above")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One column of the table as it is measured."""

    name: str
    index: int  # of the schema's columns, or the item's place in the universe
    cells: int  # of its histogram, within a class
    edges: Array | None = field(repr=False)  # of a number's cells; None: codes
    is_levels: bool  # one-hot in the Gram, with a histogram for each class; else one scaled column
    missing: float | None = None  # the value that stands for a missing number
    is_flag: bool = False  # a pair of levels: whether the number of the same index is missing
    is_integer: bool = False
    lower: float = 0.0
    upper: float = 1.0

    @property
    def counted(self) -> int:
        """Cells of its histogram within a class, with one for missing numbers where they are kept."""
        return self.cells + (self.missing is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All public decisions of one release."""

    features: tuple[Feature, ...] = field(repr=False)
    label: int | None  # schema column that splits rows into classes
    classes: int
    rows: int  # public, or a public guess
    shares: tuple[float, float, float]  # of marginals, radius, Gram
    label_units: int  # a: the weight of the class in the augmented Gram, in units of 2^-15
    quantile: float  # of row norms, where longer rows are shortened

    @property
    def columns(self) -> tuple[Feature, ...]:
        """The features with a histogram; whether a number is missing is the last cell of its own."""
        return tuple(feature for feature in self.features if not feature.is_flag)

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells of every histogram; the last one is the label's, if there is one."""
        own = tuple(f.counted * (self.classes if f.is_levels else 1) for f in self.columns)
        return own if self.label is None else (*own, self.classes)

    @property
    def label_weight(self) -> float:
        """a, in units of the clip radius."""
        return self.label_units / 2.0**ROW_BITS

    def widest(self) -> int:
        """The most encoded columns that the Gram can have."""
        return sum(f.cells if f.is_levels else 1 for f in self.features)


def design(config: MomentsConfig, schema: Schema, rows: int | None) -> Design:
    """The rules: from the schema, the budget and a public (or guessed) number of rows."""
    require_row_unit(schema)
    schema.require_closed()
    count = rows or schema.rows or config.rows_guess or ROWS_GUESS
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
    plan = Design(
        features=features,
        label=label,
        classes=classes,
        rows=count,
        shares=(share, 0.02, 1.0 - share - 0.02),
        label_units=round(weight * 2**ROW_BITS),
        quantile=CLIP_QUANTILES[0],
    )
    edge = relative_edge(config, plan, plan.widest())
    return replace(plan, quantile=CLIP_QUANTILES[sum(edge <= limit for limit in NOISY_EDGES)])


def relative_edge(config: MomentsConfig, plan: Design, width: int) -> float:
    """The noise edge of the Gram over its trace, if rows have the length of the radius (replace-one)."""
    mu = rough_mu(config) * math.sqrt(plan.shares[2])
    off = (1.0 + plan.label_weight**2) / mu
    return 2.0 * off * math.sqrt(width) / plan.rows


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
