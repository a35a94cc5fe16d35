"""Oracles for top-k that share no code with it: exact transcript probabilities in rational arithmetic.

Noise on the integers with ratio r: P(z) = (1 - r) / (1 + r) r^|z|. With every epsilon of a schedule a
whole multiple of one unit, every r is a power of one rational, so probabilities are exact rationals,
infinite sums over the threshold included.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa

from adumbra.data.opening import open_source
from adumbra.numerics import NOISE_BLOCK, Lattice
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from adumbra.statistics.counts import item_rows
from support.methods import draw


def full(small: int, large: int) -> int:
    """The size of a run: small in `make test`, large where ADUMBRA_FULL=1."""
    return large if os.environ.get("ADUMBRA_FULL") == "1" else small


def above(t: int, r: Fraction) -> Fraction:
    """P[v > t]."""
    return r ** (t + 1) / (1 + r) if t >= 0 else 1 - r**-t / (1 + r)


def _tail(terms: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The sum over n >= 1 of the product of (a + b q^n); terms are not expanded beyond need."""
    products = {Fraction(1): Fraction(1)}
    for (constant, ratio), weight in terms:
        grown: dict[Fraction, Fraction] = {}
        for base, coefficient in products.items():
            if constant:
                grown[base] = grown.get(base, Fraction(0)) + coefficient * constant
            grown[base * ratio] = grown.get(base * ratio, Fraction(0)) + coefficient * weight
        products = grown
    return sum((c * q / (1 - q) for q, c in products.items()), Fraction(0))


def block_probability(
    threshold: int, r_t: Fraction, columns: list[tuple[int, Fraction, bool]]
) -> Fraction:
    """P[labels] of columns (value, ratio, label) against one noisy threshold."""
    points = [threshold, *(value for value, _, _ in columns)]
    low, high = min(points) - 1, max(points) + 1
    centre = (1 - r_t) / (1 + r_t)
    total = Fraction(0)
    for x in range(low, high + 1):
        mass = centre * r_t ** abs(x - threshold)
        for value, r, label in columns:
            mass *= above(x - value, r) if label else 1 - above(x - value, r)
        total += mass
    up = [((Fraction(0), r_t), centre * r_t ** (high - threshold))]
    down = [((Fraction(0), r_t), centre * r_t ** (threshold - low))]
    for value, r, label in columns:
        beyond = r ** (high - value + 1) / (1 + r)  # P[v > x - f] at x = high
        below = r ** (value - low) / (1 + r)  # P[v <= x - f] at x = low
        up.append(((Fraction(0), r), beyond) if label else ((Fraction(1), r), -beyond))
        down.append(((Fraction(1), r), -below) if label else ((Fraction(0), r), below))
    return total + _tail(up) + _tail(down)


@dataclass
class Leaf:
    """One whole transcript: its labels, its blocks as (threshold epsilon, [(place, epsilon, label)])."""

    labels: tuple[bool, ...]
    blocks: list[tuple[Fraction, list[tuple[int, Fraction, bool]]]] = field(default_factory=list)
    left: Fraction = Fraction(0)


def transcripts(schedule, columns: int) -> Iterator[Leaf]:
    """Every transcript of a schedule over so many columns."""

    def walk(state, labels, blocks, number):
        if state.done or len(labels) == columns:
            yield Leaf(tuple(labels), blocks, state.remaining)
            return
        if state.block != number:
            blocks = [*blocks, (state.threshold, [])]
        for label in (False, True):
            threshold, members = blocks[-1]
            grown = [*blocks[:-1], (threshold, [*members, (len(labels), state.column, label)])]
            yield from walk(state.after(label), [*labels, label], grown, state.block)

    yield from walk(schedule, [], [], -1)


def lemma_cost(leaf: Leaf) -> Fraction:
    """What the block lemma charges: each threshold, and the labels of the cheaper kind."""
    total = Fraction(0)
    for threshold, members in leaf.blocks:
        kinds = [
            sum((e for _, e, label in members if label is kind), Fraction(0)) for kind in (False, True)
        ]
        total += threshold + min(kinds)
    return total


def common_unit(leaves: list[Leaf]) -> int:
    """L such that every epsilon of the leaves is a whole multiple of 1/L."""
    parts = [e for leaf in leaves for t, members in leaf.blocks for e in (t, *(m[1] for m in members))]
    return math.lcm(*(part.denominator for part in parts))


def probability(leaf: Leaf, values: list[int], threshold: int, unit: int, s: Fraction) -> Fraction:
    """The exact probability of a transcript when e means the ratio s^(e unit) per lattice step."""
    result = Fraction(1)
    for e_t, members in leaf.blocks:
        columns = [(values[place], s ** int(e * unit), label) for place, e, label in members]
        result *= block_probability(threshold, s ** int(e_t * unit), columns)
    return result


def float_draw(rng: np.random.Generator):
    """A Draw of plain numpy noise (two geometric variables), for tests of the logic around it."""

    def draw(halves, epsilon):
        r = math.exp(-float(epsilon) / 2)
        first, second = rng.geometric(1 - r, (2, len(halves)))
        return halves + first - second

    return draw


def item_source(rows, width, neighbours=Neighbours.ADD_REMOVE, lower=0, dictionary=None):
    """A source of in-memory item sets; items are numbered from `lower`."""
    spec = ItemSpec(lower=lower, upper=lower + width - 1, dictionary=dictionary)
    schema = Schema(unit=Unit.ROW, neighbours=neighbours, items=spec)
    lists = pa.array([[int(item) + lower for item in row] for row in rows], pa.list_(pa.int64()))
    return open_source(pa.table({"items": lists}), schema)


class DirectEngine:
    """Folds without threads and keeps each statistic of a source: many releases of one small table."""

    def __init__(self):
        self.kept = {}

    def fold(self, source, prepare, statistic, *, stage):
        place = (id(source), statistic) if prepare is item_rows else None
        if place not in self.kept:
            total = statistic.zero()
            for batch in source.batches(NOISE_BLOCK):
                total = statistic.add(total, prepare(batch))
            self.kept[place] = (Lattice(total, statistic.exponent), source)  # the source keeps its id
            if place is None:
                return self.kept.pop(None)[0]
        return self.kept[place][0]


def release_of(source, config, seed=0, grant=None, engine=None):
    """A draft under a fixed grant (NOT PRIVATE, for tests)."""
    return draw(source, config, grant=grant, seed=seed, engine=engine)


def market(rows=400, width=30, seed=0):
    """Baskets with clearly unequal items: item j is in a row with probability about 1 / (j + 2)."""
    rng = np.random.default_rng(seed)
    return [np.flatnonzero(rng.random(width) < 1 / (np.arange(width) + 2)).tolist() for _ in range(rows)]
