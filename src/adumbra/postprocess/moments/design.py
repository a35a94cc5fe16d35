"""The public shape of a moments release: what is measured of each column, and where rows are centred.

Both sides of the noise use these values: the statistics that are summed, and the model that is built.
"""

from dataclasses import dataclass, field

from adumbra.numerics import ROW_BITS, Array, Ints

BIN_PARTS = 8  # bins of a number beside categories
NUMBERS, NUMBER_CELLS = "numbers", "number_cells"  # facts of the card
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

    @property
    def counted(self) -> int:
        """Cells of its histogram within a class, with one for missing numbers where they are kept."""
        return self.cells + (self.missing is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All public decisions of one release."""

    features: tuple[Feature, ...] = field(repr=False)
    is_binned: bool  # numbers are cut into bins
    parts: int  # equal cells of a number's histogram
    label: int | None  # schema column that splits rows into classes
    classes: int
    rows: int  # public, or a public guess
    shares: tuple[float, float, float]  # of marginals, radius, Gram
    label_units: int  # a: the weight of the class in the augmented Gram, in units of 2^-15
    quantile: float  # of row norms, where longer rows are shortened
    is_refined: bool = False  # whether values of drawn rows are moved to show the Gram's pair tables

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

    def facts(self) -> dict[str, object]:
        """What the card says so that its reader finds the cells of every histogram."""
        return {NUMBERS: BINS if self.is_binned else SCORES, NUMBER_CELLS: self.parts}

    def widest(self) -> int:
        """The most encoded columns that the Gram can have."""
        return sum(f.cells if f.is_levels else 1 for f in self.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """Paid-for numbers that place rows around 0: means of numbers, shares of one-hot groups."""

    starts: tuple[int, ...]  # first encoded column of each feature
    groups: tuple[Ints, ...] = field(repr=False)  # levels: the group of each cell; numbers: empty
    means: Array = field(repr=False)  # of every encoded column
    scales: Array = field(repr=False)  # factors of encoded columns, so that numbers vary like levels
