"""Joint tables of two and three columns, chosen by how wrong the model's rows show them, and measured.

    choice    Gumbel noise on  |true - shown|_1 - sqrt(2 / pi) sigma cells        range 4 / 2
    table     one joint table with noise                                          L2 sqrt(2) / 1

under replace-one / add-remove. Choices and tables take turns; each has its own price, fixed before a row
is read. Which tables are candidates, what the working rows show and the expected noise are released or
public numbers.

Guarantee   the squares of all choices' and tables' mu add to at most their shares of mu^2; of a pure
            budget, their epsilons to their shares of epsilon.
Reference   McKenna, Mullins, Sheldon, Miklau: AIM, PVLDB 15(11), 2022 (the score); Durfee, Rogers:
            Practical differentially private top-k selection, NeurIPS 2019.
Proof       chosen.proof.md
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from adumbra.errors import require
from adumbra.mechanisms.base import Calibrated, Noise, calibrate_gaussian, calibrate_laplace
from adumbra.numerics import Array, Ints, Lattice, coarsen, sqrt_upper
from adumbra.postprocess.moments.design import Chosen
from adumbra.postprocess.moments.goal import Clique, Working, next_batch
from adumbra.privacy.conversion import gumbel_epsilon0, gumbel_scale, split_epsilon, split_mu
from adumbra.privacy.grant import Grant
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.privacy.selection import exponential_choice
from adumbra.relations import Reach
from adumbra.statistics.base import reach_sensitivity
from adumbra.statistics.joint_tables import table_sensitivity

CHOICES, TABLES, CHOSEN = "choices", "tables", "chosen"
MOST_CELLS = 4_000  # of a candidate
LOUDEST = 3.0  # a candidate's expected noise, all cells together, is below this many times the rows
MOST_CANDIDATES = 1_500
MOST_COUNTED = 2**22  # cells of all candidates
SCORE_BITS = 10  # scores are multiples of 2^-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The noise of one choice and of one table."""

    choice: float  # scale of Gumbel noise
    score_range: float
    table: Calibrated
    distribution: str  # of tables

    @property
    def sigma(self) -> float:
        """The standard deviation of a cell."""
        return self.table.scale * (math.sqrt(2.0) if self.distribution == "laplace" else 1.0)

    def entries(self) -> tuple[Noise, Noise]:
        """As the card prints them."""
        return (
            Noise(
                purpose=CHOICES,
                distribution="gumbel",
                scale=self.choice,
                sensitivity=self.score_range,
                grid=0.0,
            ),
            self.table.entry(TABLES, is_pure=self.distribution == "laplace"),
        )


def score_range(reach: Reach) -> float:
    """How far two scores can move apart: each moves by at most the L1 sensitivity of a table."""
    return 2.0 * reach_sensitivity(table_sensitivity, reach).l1


def prices(
    chosen: Chosen, reach: Reach, amounts: tuple[float, float], *, is_pure: bool, bits: int = 0
) -> Prices:
    """The noise of each choice and table, if so many are made within the two amounts.

    Rows weigh multiples of 2^-bits.
    """
    bound, moves = reach_sensitivity(table_sensitivity, reach), score_range(reach)
    even = [1.0 / chosen.tables] * chosen.tables
    if is_pure:
        each, epsilon = (min(split_epsilon(amount, even)) for amount in amounts)
        noise = calibrate_laplace(bound.l1, epsilon, exponent=-bits, rounding=float(MOST_CELLS))
        return Prices(
            choice=gumbel_scale(moves, each),
            score_range=moves,
            table=noise,
            distribution="laplace",
        )
    each = gumbel_epsilon0(amounts[0], chosen.tables)
    noise = calibrate_gaussian(
        bound.l2, min(split_mu(amounts[1], even)), exponent=-bits, rounding=sqrt_upper(MOST_CELLS)
    )
    return Prices(
        choice=gumbel_scale(moves, each), score_range=moves, table=noise, distribution="gaussian"
    )


def candidates(sizes: tuple[int, ...], sigma: float, rows: float, seed: int) -> tuple[Clique, ...]:
    """Pairs and triples that are not all noise; too many triples are thinned by a public seed."""

    def is_fit(clique: Clique) -> bool:
        cells = math.prod(sizes[j] for j in clique)
        varied = all(sizes[j] > 1 for j in clique)
        return varied and cells <= MOST_CELLS and cells * sigma < LOUDEST * rows

    columns = range(len(sizes))
    pairs = [c for c in combinations(columns, 2) if is_fit(c)]
    triples = [c for c in combinations(columns, 3) if is_fit(c)]
    order = np.random.default_rng([seed, 6]).permutation(len(triples))
    found: list[Clique] = []
    room = MOST_COUNTED
    for clique in [*pairs, *(triples[i] for i in order)]:
        room -= math.prod(sizes[j] for j in clique)
        if room < 0 or len(found) == MOST_CANDIDATES:
            break
        found.append(clique)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Turns:
    """What the released choices and tables are made from: exact tables, prices, and the grant."""

    exact: Mapping[Clique, Ints]  # private: the joint table of every candidate, in units of 2^-bits
    chosen: Chosen
    prices: Prices
    grant: Grant
    seed: int  # public
    most: int  # rows that the schema allows; public
    bits: int = 0  # rows weigh multiples of 2^-bits


@dataclass(frozen=True, slots=True)
class Turned:
    """Chosen tables with noise, in the order of their release."""

    batches: list[list[tuple[Clique, Array]]]

    def arrays(self) -> dict[str, Array]:
        """For the release: one line per table (batch and columns, -1 for no third), and all cells."""
        lines = [
            (number, *clique, *(-1,) * (3 - len(clique)))
            for number, batch in enumerate(self.batches)
            for clique, _ in batch
        ]
        cells = [table for batch in self.batches for _, table in batch]
        chosen = np.array(lines, np.float64).reshape(-1, 4)
        return {CHOSEN: chosen, TABLES: np.concatenate([*cells, np.zeros(0)])}


def read_released(arrays: Mapping[str, Array], sizes: tuple[int, ...]) -> Turned:
    """The same from released arrays."""
    batches: list[list[tuple[Clique, Array]]] = []
    start = 0
    for line in arrays[CHOSEN].astype(np.int64).reshape(-1, 4).tolist():
        number, clique = line[0], tuple(j for j in line[1:] if j >= 0)
        cells = math.prod(sizes[j] for j in clique)
        table = arrays[TABLES][start : start + cells]
        require(len(table) == cells, "tables: do not fit the marginals; use one release")
        while len(batches) <= number:
            batches.append([])
        batches[number].append((clique, table))
        start += cells
    return Turned(batches)


def take_turns(turns: Turns, working: Working) -> tuple[Working, Turned]:
    """Choose, measure, move the working rows; so many batches as were decided."""
    left, count = list(turns.exact), 0
    batches: list[list[tuple[Clique, Array]]] = []
    for number in range(turns.chosen.batches):
        due = -(-(turns.chosen.tables - count) // (turns.chosen.batches - number))
        picked = choose(turns, working, left, range(count, count + due))
        batch = [(c, measure(turns, c, count + place)) for place, c in enumerate(picked)]
        if not batch:
            break
        left = [clique for clique in left if clique not in picked]
        count += len(batch)
        batches.append(batch)
        working = next_batch(working, batch, turns.prices.sigma, [turns.seed, 5, number])
    return working, Turned(batches)


def choose(turns: Turns, working: Working, left: list[Clique], numbers: range) -> list[Clique]:
    """One table per number, each by its own noise; two share one column at most, while such are left."""
    sigma, most, bits = turns.prices.sigma, turns.most, turns.bits
    scores = [score(turns.exact[c], working.shown(c), sigma, most, bits) for c in left]
    units = np.array(scores, np.int64)
    picked: list[Clique] = []
    for number in numbers:
        others = [i for i, c in enumerate(left) if c not in picked]
        free = [i for i in others if all(len({*left[i]} & {*p}) < 2 for p in picked)] or others
        if not free:
            break
        key = turns.grant.key(CHOICES, number)
        place = exponential_choice(Lattice(units[free], -SCORE_BITS), turns.prices.choice, key)
        picked.append(left[free[place]])
    return picked


def score(exact: Ints, shown: Array, sigma: float, most: int, bits: int = 0) -> int:
    """How wrong a table is shown, less the noise that it would be measured with; in units of 2^-10.

    The exact table is in units of 2^-bits. No cell holds more rows than `most`: a noisy count beyond it
    would leave 64-bit integers.
    """
    wanted = np.rint(np.clip(shown, 0.0, float(most)) * 2.0**SCORE_BITS).astype(np.int64)
    noise = int(math.sqrt(2.0 / math.pi) * sigma * len(wanted) * 2.0**SCORE_BITS)
    return int(np.abs(exact * 2 ** (SCORE_BITS - bits) - wanted).sum()) - noise


def measure(turns: Turns, clique: Clique, number: int) -> Array:
    """One chosen table with its noise."""
    noise = turns.prices.table
    value = coarsen(Lattice(turns.exact[clique], -turns.bits), noise.exponent)
    key = turns.grant.key(TABLES, number)
    if turns.prices.distribution == "laplace":
        return add_laplace(value, noise.scale, key).to_float()
    return add_gaussian(value, noise.scale, key).to_float()
