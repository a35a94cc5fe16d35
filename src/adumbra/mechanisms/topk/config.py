"""What a top-k release may be asked, and how its budget is shared among its steps.

Proof       methods.proof.md, of `budget_of`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields
from adumbra.privacy.conversion import mu_of, mu_to_bounded_range, split_epsilon, split_mu
from adumbra.privacy.guarantee import PrivacyGuarantee, promise
from adumbra.relations import Neighbours, Reach, Unit
from adumbra.schema.schema import Column, Kind, Schema

METHOD = "top-k"
LONGEST = 256  # the longest length that is considered, unless another is asked for
FINEST_SHARE = 2**28  # the largest k / epsilon and max_length / epsilon: noise stays within 2^40 units


class Algorithm(StrEnum):
    """How the columns are chosen."""

    AUTO = "auto"  # by a public rule (choice.py); without a number of rows tps-refine or frefirst
    FREFIRST = "frefirst"  # noisy counts of truncated rows, then the k largest
    EM = "em"  # k rounds of the exponential mechanism (drawn in one shot, which is the same law)
    GUMBEL = "gumbel"  # the same; under delta with the bounded-range account of its rounds
    SVT = "svt"  # sparse vector technique against the k-th count
    TPS_EM = "tps-em"  # two phases: noisy counts, then EM among the columns near the k-th
    TPS_PFM = "tps-pfm"  # two phases: noisy counts, then block-wise SVT (PFM, its four faults mended)
    TPS_REFINE = "tps-refine"  # two phases: noisy counts, then counts of the near columns alone
    JOINT = "joint"  # one exponential mechanism over all sequences of k columns


class Step(StrEnum):
    """A step that costs budget; its value is the purpose of its noise."""

    LENGTH = "length"
    COUNTS = "counts"
    SELECT = "select"
    ZONE_LENGTH = "zone-length"
    ZONE_COUNTS = "zone-counts"


SHARES: Mapping[Algorithm, Mapping[Step, float]] = {
    Algorithm.FREFIRST: {Step.LENGTH: 0.05, Step.COUNTS: 0.95},
    Algorithm.EM: {Step.SELECT: 1.0},
    Algorithm.GUMBEL: {Step.SELECT: 1.0},
    Algorithm.SVT: {Step.SELECT: 1.0},
    Algorithm.TPS_EM: {Step.LENGTH: 0.1, Step.COUNTS: 0.6, Step.SELECT: 0.3},
    Algorithm.TPS_PFM: {Step.LENGTH: 0.1, Step.COUNTS: 0.6, Step.SELECT: 0.3},
    Algorithm.TPS_REFINE: {
        Step.LENGTH: 0.05,
        Step.COUNTS: 0.6,
        Step.ZONE_LENGTH: 0.05,
        Step.ZONE_COUNTS: 0.3,
    },
    Algorithm.JOINT: {Step.SELECT: 1.0},
}
WITH_DELTA = (Algorithm.FREFIRST, Algorithm.GUMBEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKConfig:
    """Public parameters, all of them; the release's card prints each."""

    k: int = option("How many of the most frequent columns to find.")
    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    algorithm: str = option(
        "How the columns are chosen. auto: by a public rule of epsilon, k, rows and columns.",
        default=Algorithm.AUTO.value,
        choices=tuple(one.value for one in Algorithm),
    )
    length: int | None = option(
        "Items counted per row, if publicly known. none: chosen privately, for a share.", default=None
    )
    max_length: int = option("The longest length that the private choice considers.", default=LONGEST)
    all_counts: bool = option(
        "Also release the noisy counts of all columns, where the algorithm makes them.", default=False
    )
    expected_rows: int | None = option(fields.EXPECTED_ROWS, default=None)

    def __post_init__(self) -> None:
        settle_fields(self)
        require(self.k >= 1, f"k={self.k}: must be at least 1")
        names = ", ".join(one.value for one in Algorithm)
        require(
            self.algorithm in tuple(Algorithm), f"algorithm={self.algorithm!r}: must be one of {names}"
        )
        require(self.length is None or self.length >= 1, f"length={self.length}: must be at least 1")
        require(self.max_length >= 1, f"max_length={self.max_length}: must be at least 1")
        longest = self.max_length if self.length is None else self.length
        for name, value in (("k", self.k), ("max_length" if self.length is None else "length", longest)):
            require(
                value / self.epsilon <= FINEST_SHARE,
                f"{name}={value}, epsilon={self.epsilon}: {name} / epsilon must be at most 2^28; "
                f"lower {name} or raise epsilon",
            )
        if self.delta > 0 and self.chosen not in WITH_DELTA:
            message = (
                f"algorithm={self.algorithm!r}, delta={self.delta}: is pure; give delta=0 (--delta 0; a "
                "Gaussian budget can pay for a pure release), or use 'frefirst' or 'gumbel'"
            )
            raise Unsupported(message)
        makes_counts = Step.COUNTS in SHARES[self.chosen]
        require(
            makes_counts or not self.all_counts,
            f"all_counts=True, algorithm={self.algorithm!r}: makes no counts",
        )

    @property
    def chosen(self) -> Algorithm:
        """The algorithm that runs; of `auto` the one without a number of rows."""
        algorithm = Algorithm(self.algorithm)
        if algorithm is not Algorithm.AUTO:
            return algorithm
        return Algorithm.TPS_REFINE if self.is_pure else Algorithm.FREFIRST

    @property
    def wants_counts(self) -> bool:
        """Whether it asks for what only an algorithm with counts has."""
        return self.all_counts or self.length is not None or self.max_length != LONGEST

    @property
    def is_pure(self) -> bool:
        """Whether the guarantee is pure epsilon."""
        return self.delta == 0


def idle_options(config: TopKConfig) -> dict[str, str]:
    """Options that the algorithm leaves without effect, with the case."""
    steps = SHARES[config.chosen]
    idle: dict[str, str] = {}
    if config.algorithm != Algorithm.AUTO:
        idle["expected_rows"] = f"with algorithm={config.algorithm}"
    elif config.wants_counts:
        idle["expected_rows"] = "with all_counts, length or max_length, which ask for counts"
    if Step.COUNTS not in steps:
        idle |= dict.fromkeys(
            ("length", "max_length"), f"with algorithm={config.chosen}: rows stay whole"
        )
    elif config.length is not None and Step.ZONE_LENGTH not in steps:
        idle["max_length"] = "with a public length"
    return idle


def is_truth(column: Column) -> bool:
    """Whether a column says of each row that something is there or not."""
    return column.kind is Kind.BOOLEAN or (
        column.kind is Kind.INTEGER and (column.lower, column.upper) == (0, 1)
    )


def _require_truths(schema: Schema) -> None:
    """A table that is no item sets has columns that are true or false alone: each is an item."""
    schema.require_closed()
    others = [column.name for column in schema.columns if not is_truth(column)]
    if others:
        rule = "is neither boolean nor an integer from 0 to 1, and top-k counts what is there or not"
        remedy = "declare item sets by [items], or a table of such columns alone"
        raise InvalidInput(f"column {others[0]!r}: {rule}; {remedy}")


def guarantee_of(config: TopKConfig, schema: Schema) -> PrivacyGuarantee:
    """What the release promises, after the checks on the schema."""
    if schema.items is None:
        _require_truths(schema)
    if schema.unit is Unit.ELEMENT:  # truncation moves a row's other items, so an element has no proof
        raise Unsupported("unit=element: top-k protects whole rows; use unit='row'")
    if schema.weight_bits:
        rule = "its comparisons count whole rows"
        raise Unsupported(
            f"bound=scale: top-k has no proof for it, {rule}; use bound='keep', or moments"
        )
    require(
        config.k <= schema.width, f"k={config.k}: there are {schema.width} items; ask for fewer of them"
    )
    most = max(config.k, config.max_length if config.length is None else config.length)
    rows = schema.reach.rows
    require(
        most * rows / config.epsilon <= FINEST_SHARE,
        f"max_rows_per_person={rows}, epsilon={config.epsilon}: {rows} x {most} / epsilon must be at "
        "most 2^28; declare fewer rows per person, or raise epsilon",
    )
    return promise(config.epsilon, config.delta, schema.unit, schema.neighbours)


def budget_of(config: TopKConfig) -> dict[Step, float]:
    """Each step's part: epsilon if the release or the step is pure, mu for Gaussian counts and Gumbel.

    A public length costs nothing, and its share goes to the other steps. Under delta the parts are
    mu_i^2 of mu^2; the length scan, which is pure, gets the epsilon whose mu is its part.
    """
    shares = dict(SHARES[config.chosen])
    if config.length is not None:
        shares.pop(Step.LENGTH, None)
    whole = sum(shares.values())
    parts = [share / whole for share in shares.values()]
    if config.is_pure:
        return dict(zip(shares, split_epsilon(config.epsilon, parts), strict=True))
    amounts = dict(zip(shares, split_mu(mu_of(config.epsilon, config.delta), parts), strict=True))
    if Step.LENGTH in amounts:
        amounts[Step.LENGTH] = mu_to_bounded_range(amounts[Step.LENGTH]) / 2
    return amounts


def score_range(reach: Reach) -> int:
    """The spread of the changes of two counts: 1 if all move one way (add-remove), 2 if not.

    m times that for a person of m rows.
    """
    return reach.rows * (1 if reach.steps == (Neighbours.ADD_REMOVE,) else 2)
