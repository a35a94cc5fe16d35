"""The shape that every method shares: `settle(config, schema)`, then `draw(settled, source, ...)`.

`settle` makes every public decision once, from public numbers alone. Its `Plan` is shown before anything
is paid, and `draw` uses the same decisions after. A `Draft` is what `draw` hands to `workflow`, which
alone seals and publishes it. None of them knows a ledger.

Public numbers have limits of size: methods use squares and fourth powers of bounds and norms, and one
that would overflow after the charge is refused before.
"""

import html
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Generic, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.errors import InvalidInput, require
from adumbra.mechanisms.method import ConfigT, Method, PartsT
from adumbra.mechanisms.sizes import MOST_ROWS, Size
from adumbra.numerics import grid_exponent, product_upper, sum_upper
from adumbra.privacy._laws import MAX_SCALE
from adumbra.privacy.conversion import gaussian_sigma, laplace_scale
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.release.formats import TableStream
from adumbra.schema.schema import Schema

ROWS = "rows"  # the purpose of all noise that is drawn for released rows, block by block

# The finest grid, relative to the noise, on which a value still needs only one random word per number.
NOISE_BITS = 24

ROWS_OF_A_PERSON = (1, 2, 4, 8, 16, 32, 64)  # bounds whose noise a plan of persons shows

# What a row of a synthesizer is, for its page.
SYNTHETIC = (
    "Synthetic rows, drawn from noisy statistics. No row belongs to a person; one can look like "
    "somebody's by chance."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """One noise call of a plan, as the card prints it; the real values, not the units."""

    purpose: str
    distribution: str  # "gaussian", "laplace" or "gumbel"
    scale: float  # standard deviation of a Gaussian, scale of a Laplace or Gumbel
    sensitivity: float  # L2 for a Gaussian, L1 for a Laplace, range for a Gumbel
    grid: float  # released numbers are multiples of this; 0 where only indices leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a release would cost and how wrong it would be, from public numbers only."""

    method: str
    guarantee: PrivacyGuarantee
    purposes: tuple[str, ...]  # every noise key that the mechanism may ask of its grant
    noise: tuple[Noise, ...]
    expected: Mapping[str, float] = field(default_factory=dict)  # expected errors, by name
    notes: tuple[str, ...] = ()  # plain sentences for the person who decides
    details: Mapping[str, object] = field(default_factory=dict)  # tables for the command line
    size: Size | None = None  # memory and disk that it takes; None: the method does not say

    @property
    def releases_rows(self) -> bool:
        """Whether rows leave, each with noise of its own: on a cluster they go through a folder."""
        return ROWS in self.purposes

    def _repr_html_(self) -> str:
        """For notebooks: cost, notes and expected errors, escaped."""
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        errors = "".join(
            f"<tr><th>{html.escape(name.replace('_', ' '))}</th><td>{value:.4g}</td></tr>"
            for name, value in self.expected.items()
        )
        cost = html.escape(f"{self.method} costs {self.guarantee.sentence()}")
        size = "" if self.size is None else f"<p>{html.escape(self.size.sentence())}</p>"
        return f"<div><p><strong>{cost}</strong></p>{size}<ul>{notes}</ul><table>{errors}</table></div>"


def person_notes(schema: Schema) -> tuple[str, ...]:
    """What the bound of persons costs, from public numbers; nothing for other units."""
    if schema.person is None:
        return ()
    most, without = schema.person.max_rows, schema.person.no_person
    others = sorted({1, max(most // 2, 1), 2 * most} - {most})
    curve = ", ".join(f"{other} rows {other / most:.3g} times" for other in others)
    dropped = "dropped" if without == "drop" else "those of one person"
    used = f"At most {most} rows of each person are used (max_rows_per_person)"
    cut = "Rows above it are not used; how many there are is private"
    if schema.weight_bits:
        used = f"The rows of each person weigh at most {most} together (max_rows_per_person)"
        cut = (
            f"Of a person with more rows each weighs less; at most {most << schema.weight_bits} are used"
        )
    price = f"noise grows about in proportion to that number ({curve} this noise)"
    return f"{used}; {price}. {cut}.", f"Rows without an id are {dropped}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What `draw` hands over: tables and arrays are private already; `pending` rows are drawn later.

    They are drawn while they are written, block by block, for they are too many to be held: noisy rows
    under the same grant, where a block that is drawn again repeats its noise, and synthetic rows.
    """

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    pending: Mapping[str, TableStream] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    noise: tuple[Noise, ...] = ()  # where the draw itself settled a scale; else the plan's is the card's
    facts: Mapping[str, object] = field(default_factory=dict)  # public extras of the card

    def table(self, name: str = "data") -> pa.Table:
        """All rows of one table in memory; pending rows are drawn now, and cannot be drawn again."""
        if name in self.tables:
            return self.tables[name]
        stream = self.pending[name]
        return pa.Table.from_batches(stream.batches, stream.schema)

    def with_rows(
        self,
        blocks: Iterator[pa.Table],
        rows: int,
        facts: Callable[[], Mapping[str, object]] = dict,
    ) -> "Draft":
        """The draft with synthetic rows as `data`: one block is held, more are pending.

        The first block is made now. `facts` are extras of the card, known once all blocks are made.
        """
        first = next(blocks)
        if first.num_rows == rows:
            return replace(self, tables={"data": first}, facts={**self.facts, **facts()})
        batches = (batch for block in chain([first], blocks) for batch in block.to_batches())
        return replace(self, pending={"data": TableStream(first.schema, batches, facts)})


class Config(Protocol):
    """Public parameters of one method: a frozen dataclass with at least the budget."""

    @property
    def epsilon(self) -> float:
        """The budget of the release."""

    @property
    def delta(self) -> float:
        """0 for pure epsilon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Generic[ConfigT, PartsT]):
    """The public decisions of one release, made once: what `plan` shows and what `draw` uses."""

    config: ConfigT
    schema: Schema = field(
        repr=False
    )  # closed: patterns expanded, the number of rows where it is public
    plan: Plan
    parts: PartsT = field(repr=False)  # the method's own: statistics, scales, matrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What everybody has who has the release; pictures are made from this and public decisions alone."""

    arrays: Mapping[str, NDArray[np.generic]]
    tables: Mapping[str, pa.Table]


def plan_of(method: Method[ConfigT, PartsT], config: ConfigT, schema: Schema) -> Plan:
    """The method's plan; of persons, with the noise for other bounds of their rows in its details."""
    planned = method.settle(config, schema).plan
    if schema.person is None:
        return planned
    curve: list[dict[str, object]] = []
    for most in sorted({*ROWS_OF_A_PERSON, schema.person.max_rows}):
        other = replace(schema, person=replace(schema.person, max_rows=most))
        with suppress(InvalidInput):  # a bound that the method refuses is no choice
            noise = method.settle(config, other).plan.noise
            curve.append({
                "max_rows_per_person": most, "noise": {one.purpose: one.scale for one in noise}
            })  # fmt: skip
    return replace(planned, details={**planned.details, "noise_by_rows_per_person": curve})


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A noise scale with the grid that it was calibrated for."""

    scale: float
    sensitivity: float  # with the rounding to the grid included
    exponent: int  # the value must be coarsened to 2**exponent before the noise

    def entry(self, purpose: str, *, is_pure: bool) -> Noise:
        """The noise as the card prints it."""
        return Noise(
            purpose=purpose,
            distribution="laplace" if is_pure else "gaussian",
            scale=self.scale,
            sensitivity=self.sensitivity,
            grid=2.0**self.exponent,
        )


def calibrate_gaussian(  # noqa: PLR0913 - each keyword is one public number
    l2: float,
    mu: float,
    *,
    exponent: int,
    rounding: float,
    bits: int = NOISE_BITS,
    largest: float = 0.0,
) -> Calibrated:
    """Sigma for a mu-GDP release of a value on the lattice 2**exponent.

    The value may be rounded to a coarser grid g first; `rounding` is the L2 norm, in the coordinates of
    the sensitivity, of a change by one unit in every coordinate, so that g * rounding joins it.
    `largest` is a public bound of any coordinate: the grid keeps it within what the noise takes, so that
    no table, however large, is refused after it was paid for.
    """
    grid = max(exponent, grid_exponent(gaussian_sigma(l2, mu), bits), _coarsest(largest, exponent))
    if grid > exponent:
        require_steps(bits, rounding, mu)
    extra = product_upper(2.0**grid, rounding) if grid > exponent else 0.0
    sensitivity = sum_upper(l2, extra)
    return Calibrated(scale=gaussian_sigma(sensitivity, mu), sensitivity=sensitivity, exponent=grid)


def calibrate_laplace(  # noqa: PLR0913 - as above
    l1: float,
    epsilon: float,
    *,
    exponent: int,
    rounding: float,
    bits: int = NOISE_BITS,
    largest: float = 0.0,
) -> Calibrated:
    """The Laplace scale for pure epsilon; `rounding` is the L1 norm of one unit in every coordinate."""
    grid = max(exponent, grid_exponent(laplace_scale(l1, epsilon), bits), _coarsest(largest, exponent))
    if grid > exponent:
        require_steps(bits, rounding, epsilon)
    extra = product_upper(2.0**grid, rounding) if grid > exponent else 0.0
    sensitivity = sum_upper(l1, extra)
    return Calibrated(scale=laplace_scale(sensitivity, epsilon), sensitivity=sensitivity, exponent=grid)


def require_steps(bits: int, rounding: float, amount: float) -> None:
    """Refuse a budget whose noise is wider, in steps of its grid, than can be drawn.

    Without the rounding it is below 2^(bits + 1) steps, and the rounding adds rounding / amount.
    """
    require(
        2.0 ** (bits + 1) + rounding / amount <= MAX_SCALE,
        f"epsilon: too small; one statistic of the release would get {amount:.2g} of it, all noise; "
        "raise epsilon or that statistic's share, or release fewer columns",
    )


def _coarsest(largest: float, exponent: int) -> int:
    """The grid on which a coordinate of this size has at most 2^51 steps (noise takes 2^52)."""
    return math.frexp(largest)[1] - 51 if largest > 0 else exponent


def rows_of(noisy_count: float) -> int:
    """How many synthetic rows a noisy count asks for: its noise alone must not ask for billions."""
    return int(min(max(1.0, round(noisy_count)), MOST_ROWS))


# Their fourth powers, times the rows and columns that fit on a machine, are floats.
SMALLEST, LARGEST = 1e-60, 1e60
REMEDY = "give the column another unit (a thousand times as large, say)"


def require_magnitudes(schema: Schema, row_norm: float | None = None) -> None:
    """Refuse bounds and a row norm that no method can work with; looks at no row."""
    for column in schema.columns:
        if not column.is_numeric:
            continue
        lower, upper = column.limits
        largest, width = max(abs(lower), abs(upper)), upper - lower
        require(
            largest <= LARGEST,
            f"column {column.name}: bounds {lower}, {upper}: must lie between -1e60 and 1e60; {REMEDY}",
        )
        require(
            width == 0 or width >= SMALLEST,
            f"column {column.name}: bounds {lower}, {upper}: must lie 1e-60 apart; {REMEDY}",
        )
    require(
        row_norm is None or SMALLEST <= row_norm <= LARGEST,
        f"row_norm={row_norm}: must lie between 1e-60 and 1e60",
    )
