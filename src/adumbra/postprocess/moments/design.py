"""The public shape of a moments release: what is measured of each column, and where rows are centred.

Both sides of the noise use these values: the statistics that are summed, and the model that is built.
The choices of histograms (`is_binned`, `parts`, `steps`, `pairs_by_class`) are facts of the card: the
rules that choose may change, old cards stay readable.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.errors import InvalidInput, require
from adumbra.numerics import ROW_BITS, Array, Ints
from adumbra.schema.schema import Column, Kind, Schema

BIN_PARTS = 8  # bins of a number beside categories
NUMBERS, NUMBER_CELLS, FINER_CELLS = "numbers", "number_cells", "finer_cells"  # facts of the card
PAIRS = "pairs_by_class"  # another one, where it is so
RULES, READING = "reading_rules", 7  # how laws are read from histograms: rows are centred by them
BINS, SCORES = "bins", "scores"


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
    finer: Array | None = field(default=None, repr=False)  # edges inside its cells, counted by class too
    levels: tuple[str, ...] = field(default=(), repr=False)  # of a category of three or more
    counted: int = field(init=False, compare=False)  # cells, and one for kept missing numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "counted", self.cells + (self.missing is not None))


@dataclass(frozen=True, slots=True)
class Fineness:
    """How finely columns are cut for tables that are measured."""

    parts: int  # codes of a number
    least: float  # rows that a code holds at least, where it cuts a coarser one


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The public decisions of tables that are chosen by their error and measured."""

    tables: int  # at most so many are measured
    batches: int  # rows are moved to show what is known after each
    parts: int  # codes of a number
    share: float  # of the budget, choices and noise together


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All public decisions of one release."""

    features: tuple[Feature, ...] = field(repr=False)
    is_binned: bool  # numbers are cut into bins
    parts: int  # equal cells of a number's histogram
    label: int | None  # schema column that splits rows into classes
    classes: int
    rows: int  # public, or a public guess
    shares: tuple[float, ...]  # of marginals, radius, Gram; then of one-way tables, choices and tables
    label_units: int  # a: the weight of the class in the augmented Gram, in units of 2^-15
    quantile: float  # of row norms, where longer rows are shortened
    is_pooled: bool = False  # whether all columns are counted over all classes, too
    is_refined: bool = False  # whether values of drawn rows are moved to show the Gram's pair tables
    is_loud: bool = False  # whether pairs are so noisy that strengths are learnt from all of them
    chosen: Chosen | None = None  # tables that are chosen and measured, where that pays off
    steps: int = 0  # finer cells of whole numbers for each doubling of the value, if any
    pairs_by_class: bool = False  # whether columns of two levels are measured like categories

    # Follows from the fields above, held once: a table may have thousands of features.
    # Those with a histogram: whether a number is missing is the last cell of its own
    columns: tuple[Feature, ...] = field(init=False, repr=False, compare=False)
    # Of every histogram: columns, finer ones, and the last one is the label's, if there is one
    cells: tuple[int, ...] = field(init=False, repr=False, compare=False)
    pooled_cells: tuple[int, ...] = field(init=False, repr=False, compare=False)  # over all classes
    label_weight: float = field(init=False, compare=False)  # a, in units of the clip radius
    widest: int = field(init=False, compare=False)  # the most encoded columns that the Gram can have
    finer: tuple[tuple[int, Array], ...] = field(init=False, repr=False, compare=False)  # by place

    def __post_init__(self) -> None:
        columns = tuple(feature for feature in self.features if not feature.is_flag)
        own = tuple(f.counted * (self.classes if f.is_levels else 1) for f in columns)
        finer = tuple((place, f.finer) for place, f in enumerate(columns) if f.finer is not None)
        own += tuple((len(edges) - 1) * self.classes for _, edges in finer)
        pooled = (*(f.counted for f in columns), self.classes) if self.is_pooled else ()
        widest = sum(f.cells if f.is_levels else 1 for f in self.features)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "cells", own if self.label is None else (*own, self.classes))
        object.__setattr__(self, "pooled_cells", pooled)
        object.__setattr__(self, "label_weight", self.label_units / 2.0**ROW_BITS)
        object.__setattr__(self, "widest", widest)
        object.__setattr__(self, "finer", finer)

    def facts(self) -> dict[str, object]:
        """What the card says so that its reader finds the cells of every histogram."""
        more: dict[str, object] = {FINER_CELLS: self.steps} if self.steps else {}
        more |= {PAIRS: True} if self.pairs_by_class else {}
        numbers = BINS if self.is_binned else SCORES
        return {NUMBERS: numbers, NUMBER_CELLS: self.parts, RULES: READING} | more


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """Paid-for numbers that place rows around 0: means of numbers, shares of one-hot groups."""

    starts: tuple[int, ...]  # first encoded column of each feature
    groups: tuple[Ints, ...] = field(repr=False)  # levels: the group of each cell; numbers: empty
    means: Array = field(repr=False)  # of every encoded column
    scales: Array = field(repr=False)  # factors of encoded columns, so that numbers vary like levels


MOST_CLASSES = 64  # a label with more levels is an ordinary column
FINE_CELLS = 32  # equal cells of a number that is cut into bins
_DOUBLINGS = 10  # below the upper bound that have finer cells
_EXACT = 2.0**50  # bounds of whole numbers up to which floats lie between two of them


def label_of(schema: Schema) -> tuple[int | None, int]:
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


def features_of(  # noqa: PLR0913 - a schema, and how it is counted
    schema: Schema,
    label: int | None,
    *,
    is_binned: bool,
    parts: int,
    steps: int = 0,
    pairs_by_class: bool = False,
) -> tuple[Feature, ...]:
    """What is measured of each column; `parts` are the equal cells of a number.

    `steps` are the finer cells of a whole number, for each doubling of its value; 0: there are none.
    Columns of two levels are measured like numbers, or (`pairs_by_class`) like categories.
    """
    if schema.items is not None:
        ids = schema.items.ids
        require(ids is None, f"items, ids={ids}: moments takes items of a range; give lower and upper")
        return tuple(
            Feature(name=str(i + schema.items.lower), index=i, cells=2, edges=None, is_levels=False)
            for i in range(schema.items.width)
        )
    own = [(index, column) for index, column in enumerate(schema.columns) if index != label]
    columns = tuple(_feature(column, index, parts, is_binned) for index, column in own)
    columns = with_pairs_by_class(columns) if pairs_by_class else columns
    columns = tuple(replace(f, finer=finer_edges(f, steps)) for f in columns) if steps else columns
    return columns + tuple(_flag(column, index) for index, column in own if column.keeps_null)


def with_pairs_by_class(features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """The same with columns of two levels measured like categories, but for missing flags."""
    return tuple(replace(f, is_levels=f.is_levels or (f.cells == 2 and not f.is_flag)) for f in features)


def _flag(column: Column, index: int) -> Feature:
    """Whether a number is missing, as a column of its own."""
    name = f"{column.name} is missing"
    return Feature(
        name=name, index=index, cells=2, edges=None, is_levels=False, missing=column.fill, is_flag=True
    )


def _feature(column: Column, index: int, parts: int, is_binned: bool) -> Feature:
    """How a column is measured: a number by cells, a pair of levels as a number, more levels one-hot."""
    if not column.is_numeric:
        return Feature(
            name=column.name,
            index=index,
            cells=column.levels,
            edges=None,
            is_levels=column.levels > 2,
            levels=column.categories if column.levels > 2 else (),
        )
    is_integer = column.is_whole
    lower, upper = column.limits
    edges = number_edges(lower, upper, parts, is_integer=is_integer, is_fine=is_binned)
    if column.kind is Kind.ORDINAL:  # one cell per level
        edges = np.arange(lower, upper + 2.0) - 0.5
    elif column.atoms:
        edges = with_atoms(edges, column.atoms, lower, upper, is_integer=is_integer)
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


def finer_edges(feature: Feature, steps: int) -> Array | None:
    """Finer cells of a whole number whose cells hold several values; None of any other column.

    The edges of its cells, and so many for each of ten doublings, each between two whole numbers.
    """
    edges, low, high = feature.edges, feature.lower, feature.upper
    if edges is None or not (feature.is_levels and feature.is_integer) or max(-low, high) >= _EXACT:
        return None
    doublings = low + (high - low) * 2.0 ** (-np.arange(1, _DOUBLINGS * steps) / steps)
    doublings = doublings[(doublings > low + 1.0) & (doublings < high - 1.0)]
    finer = np.unique(np.ceil(np.union1d(edges, doublings)) - 0.5)
    return finer if len(finer) > len(edges) and high - low >= len(edges) else None


def number_edges(lower: float, upper: float, parts: int, *, is_integer: bool, is_fine: bool) -> Array:
    """Cells of a number: its two bounds apart (many columns pile up there), equal widths between.

    Fine cells add powers of two from the lower bound on, where amounts of money crowd: half powers if
    there are FINE_CELLS parts, whole ones if there are fewer. An integer with few values has one cell a
    value.
    """
    width = upper - lower
    if width <= 0:
        raise InvalidInput(f"lower={lower}, upper={upper}: a number needs lower below upper")
    is_finest = is_fine and parts >= FINE_CELLS
    if is_integer and width < (128 if is_finest else 2 * parts):
        return np.arange(lower, upper + 2.0) - 0.5
    inner = lower + width * np.arange(1, parts) / parts
    if is_fine:
        powers = np.arange(1, 21) / 2.0 if is_finest else np.arange(1.0, 11.0)
        inner = np.union1d(inner, lower + width * 2.0**-powers)
    if is_integer:
        first, last = np.array([lower - 0.5, lower + 0.5]), np.array([upper - 0.5, upper + 0.5])
        inner = inner[(inner > lower + 1.0) & (inner < upper - 1.0)]
    else:
        first = np.array([lower, np.nextafter(lower, upper)])
        last = np.array([upper, np.nextafter(upper, math.inf)])
        inner = inner[(inner > first[1]) & (inner < upper)]
    return np.concatenate((first, inner, last))


def with_atoms(
    edges: Array, atoms: tuple[float, ...], lower: float, upper: float, *, is_integer: bool
) -> Array:
    """The same cells, cut so that each atom has one of its own; a bound has one already."""
    for atom in (value for value in atoms if lower < value < upper):
        if is_integer:  # no edge may leave a cell beside it without a whole number
            below, above = (edges > atom - 1.0) & (edges < atom), (edges > atom) & (edges <= atom + 1.0)
            kept, own = edges[~(below | above | (edges == atom))], (atom - 0.5, atom + 0.5)
        else:
            kept, own = edges, (atom, np.nextafter(atom, math.inf))
        ends = np.array([edges[0], *own, edges[-1]])
        edges = np.union1d(kept, ends)
    return edges
