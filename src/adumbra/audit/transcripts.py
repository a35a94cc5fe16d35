"""Steps of a release whose outcome is one of finitely many: their exact law, and batches of runs.

    comparisons    labels of columns against noisy thresholds (sparse vector, PFM, length scans)
    joint          a sequence of columns from one exponential mechanism
    selection      the first k of scores with Gumbel noise, peeled

The noise of a comparison never leaves, so its calls may not be judged one by one: the labels are. The
law of a transcript is a sum over the noisy threshold; that of `joint` follows every path of the
production code with the exact chance of each choice. Batches walk the same trees, with production noise
at each node.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np

from adumbra.errors import VerificationFailed
from adumbra.mechanisms.topk import joint, svt
from adumbra.mechanisms.topk.config import Step
from adumbra.mechanisms.topk.svt import FINEST, Schedule, drawing
from adumbra.numerics import Array, Ints, Lattice
from adumbra.privacy import selection
from adumbra.privacy.grant import Grant, NoiseCall, NoiseKey, Promised, Secret, Words, derive_secret
from adumbra.privacy.guarantee import pure
from adumbra.privacy.recorded_noise import FixedGrant, fixed_grant
from adumbra.relations import Neighbours, Unit

AT_ONCE = 2**18  # numbers drawn together
REACH = 80  # threshold noise beyond so many scales has a chance below e^-80
COMPARING = (Step.LENGTH, Step.ZONE_LENGTH, Step.SELECT)
THRESHOLDS, COLUMNS = "thresholds", "columns"
Outcome = tuple[int, ...]  # labels, or columns in order
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(svt.Asked):
    """What `label_columns` was called with."""

    def law(self) -> dict[Outcome, float]:
        """The chance of every transcript."""
        return dict(_walk_law(self, self.schedule, (), 1.0, -1, np.empty(0), np.empty(0)))

    def sample(self, runs: int, grant: Grant) -> Iterator[tuple[Outcome, Ints]]:
        """Transcripts with the runs that took them, through the production noise."""
        draws = drawing(grant, THRESHOLDS), drawing(grant, COLUMNS)
        yield from _walk_runs(self, self.schedule, (), np.arange(runs), -1, np.empty(0, np.int64), draws)


@dataclass(frozen=True, slots=True, eq=False)
class Joint(joint.Asked):
    """What `joint_sequence` was called with."""

    def law(self) -> dict[Outcome, float]:
        """The chance of every sequence."""
        found: dict[Outcome, float] = {}
        for sequence, chance in self._paths([]):
            found[sequence] = found.get(sequence, 0.0) + chance
        return found

    def sample(self, runs: int, grant: Grant) -> Iterator[tuple[Outcome, Ints]]:
        """Sequences with the runs that took them, through the production selection."""
        yield from self._runs([], np.arange(runs), grant, [0])

    def _follow(self, script: list[int]) -> tuple[Outcome | None, Lattice | None, float]:
        """Run the production code along scripted choices: where it ends, or the scores of the next."""
        grant = ScriptedGrant(*_known((joint.DEPTH, joint.RANK, joint.COLUMN)), script=script)
        try:
            sequence = _draw_sequence(self.counts, self.k, self.public, grant)
        except _NextChoice as reached:
            return None, reached.scores, math.prod(grant.chances)
        return tuple(sequence.tolist()), None, math.prod(grant.chances)

    def _paths(self, script: list[int]) -> Iterator[tuple[Outcome, float]]:
        sequence, scores, chance = self._follow(script)
        if sequence is not None:
            yield sequence, chance
        elif scores is not None:
            for index in range(scores.units.size):
                yield from self._paths([*script, index])

    def _runs(
        self, script: list[int], runs: Ints, grant: Grant, used: list[int]
    ) -> Iterator[tuple[Outcome, Ints]]:
        sequence, scores, _ = self._follow(script)
        if sequence is not None:
            yield sequence, runs
        elif scores is not None:
            used[0] += 1
            chosen = select_many(scores, 1.0, 1, grant.key(COLUMNS, used[0]), len(runs))[:, 0]
            for index in np.unique(chosen):
                yield from self._runs([*script, int(index)], runs[chosen == index], grant, used)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """So many indices, one after the other, each with a chance proportional to exp(score / scale)."""

    scores: Lattice
    scale: float
    rounds: int = 1

    def law(self) -> dict[Outcome, float]:
        """The chance of every sequence."""
        logits = self.scores.to_float() / self.scale
        weights = np.exp(logits - logits.max())
        found: dict[Outcome, float] = {(): 1.0}
        for _ in range(self.rounds):
            found = {
                (*taken, index): chance * float(weights[index] / np.delete(weights, taken).sum())
                for taken, chance in found.items()
                for index in range(len(weights))
                if index not in taken
            }
        return found

    def sample(self, runs: int, grant: Grant) -> Iterator[tuple[Outcome, Ints]]:
        """Sequences with the runs that drew them, through the production selection."""
        chosen = select_many(self.scores, self.scale, self.rounds, grant.key(COLUMNS), runs)
        sequences, members = np.unique(chosen, axis=0, return_inverse=True)
        for number, sequence in enumerate(sequences):
            yield tuple(sequence.tolist()), np.flatnonzero(members.reshape(-1) == number)


class _NextChoice(Exception):
    def __init__(self, scores: Lattice) -> None:
        super().__init__()
        self.scores = scores


@dataclass(frozen=True, slots=True, eq=False)
class ScriptedGrant(FixedGrant):
    """A grant whose selections are written down beforehand; it notes the exact chance of each."""

    script: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)

    def key(self, purpose: str, block: int = 0) -> "ScriptedKey":
        """The scripted key of a declared purpose."""
        self.require_usable(purpose, block)
        return ScriptedKey(self, purpose, block)

    def choose(self, scores: Lattice, scale: float) -> int:
        """The next choice of the script; where it ends, the scores to choose from are raised."""
        if len(self.chances) == len(self.script):
            raise _NextChoice(Lattice(scores.units, scores.exponent))
        weights = np.exp(scores.to_float() / scale)
        index = self.script[len(self.chances)]
        self.chances.append(float(weights[index] / weights.sum()))
        return index


class ScriptedKey(NoiseKey):
    """A key of a `ScriptedGrant`."""

    __slots__ = ("_grant",)

    def __init__(self, grant: ScriptedGrant, purpose: str, block: int) -> None:
        secret = derive_secret(grant.secret.reveal(), purpose, block)
        super().__init__(purpose, block, secret, grant.claims)
        self._grant = grant

    def apply(self, call: NoiseCall, draw: Callable[[], T]) -> T:  # noqa: ARG002 - nothing is drawn
        """One scripted index, as a selection of one returns it."""
        index = self._grant.choose(call.value, float(call.scale))
        return cast("T", np.array([index], np.int64))


Discrete = Comparison | Joint | Choice


def discrete(asked: object) -> Discrete:
    """A step as a mechanism described it to its grant."""
    match asked:
        case svt.Asked():
            return Comparison(asked.halves, asked.threshold, asked.schedule)
        case joint.Asked():
            return Joint(asked.counts, asked.k, asked.public)
    raise VerificationFailed(f"step of type {type(asked).__name__}: its law is not known; add it here")


_draw_sequence = joint.joint_sequence


def belongs_inside(purpose: str, kind: str) -> bool:
    """Whether such noise is made for a discrete step, and may not be drawn outside one."""
    if kind == "laplace":
        return purpose.removesuffix("-threshold") in COMPARING
    return purpose in (joint.DEPTH, joint.RANK, joint.COLUMN)


@dataclass(frozen=True, slots=True, eq=False)
class StepPair:
    """One discrete step on a table and on its neighbour."""

    first: Discrete
    second: Discrete

    def log_ratios(self) -> dict[Outcome, float]:
        """The log likelihood ratio (neighbour over table) of every outcome."""
        before, after = self.first.law(), self.second.law()
        return {outcome: _log_ratio(after, before, outcome) for outcome in before.keys() | after.keys()}

    def loss(self) -> tuple[float, float]:
        """The largest ratio either way, and how often the likelier table shows an outcome of it."""
        before, after = self.first.law(), self.second.law()
        outcomes = sorted(before.keys() | after.keys())
        found = {outcome: _log_ratio(after, before, outcome) for outcome in outcomes}
        worst = max(outcomes, key=lambda outcome: abs(found[outcome]))
        likelier = after if found[worst] > 0 else before
        same = [outcome for outcome in outcomes if abs(found[outcome] - found[worst]) < 1e-9]
        return abs(found[worst]), math.fsum(likelier.get(outcome, 0.0) for outcome in same)

    def scores(self, side: int, runs: int, secret: int) -> Array:
        """The ratio of every run on one side."""
        ratios, found = self.log_ratios(), np.zeros(runs)
        grant = _grant(secret, (THRESHOLDS, COLUMNS))
        for outcome, taken in (self.first, self.second)[side].sample(runs, grant):
            found[taken] = ratios[outcome]
        return found


def _log_ratio(after: dict[Outcome, float], before: dict[Outcome, float], outcome: Outcome) -> float:
    """The log of two chances; infinite where one table alone can show the outcome."""
    over, under = after.get(outcome, 0.0), before.get(outcome, 0.0)
    if over > 0 and under > 0:
        return math.log(over) - math.log(under)
    return 0.0 if over == under else math.copysign(math.inf, over - under)


def select_many(scores: Lattice, scale: float, k: int, key: NoiseKey, runs: int) -> Ints:
    """`gumbel_top_k` for so many runs at once: its own intervals, and its own exact order in doubt."""
    count, high = scores.units.size, int(scores.units.max())
    drop = scores.units - np.int64(high)
    found, piece = np.empty((runs, k), np.int64), max(1, AT_ONCE // count)
    for start in range(0, runs, piece):
        size = min(piece, runs - start)
        words = key.words("gumbel", size * count, start * count).reshape(size, count)
        lower, upper = selection._intervals(drop, scores.grid / scale, words)  # noqa: SLF001
        order = np.argsort(-upper, axis=1, kind="stable")[:, : min(k + 1, count)]
        low, up = (np.take_along_axis(bound, order, axis=1) for bound in (lower, upper))
        found[start : start + size] = order[:, :k]
        for run in start + np.flatnonzero((low[:, :-1] <= up[:, 1:]).any(axis=1)):
            part: Any = _Part(
                key, int(run) * count
            )  # stands in for a key: its words are asked for alone
            found[run] = selection._order(drop, scores.exponent, scale, k, part)  # noqa: SLF001
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """One run's part of a key's words."""

    key: NoiseKey
    offset: int

    def words(self, stream: str, count: int, start: int = 0) -> Words:
        return self.key.words(stream, count, self.offset + start)


def _known(purposes: tuple[str, ...]) -> tuple[str, Promised, tuple[str, ...], str, Secret]:
    """What makes up a grant of the auditor."""
    known = _grant(0, purposes)
    return known.entry_id, known.guarantee, known.purposes, known.ledger_head, known.secret


def _grant(secret: int, purposes: tuple[str, ...]) -> Grant:
    return fixed_grant(secret, pure(1.0, Unit.ROW, Neighbours.REPLACE_ONE), purposes)


def _ratio(epsilon: Fraction) -> float:
    """The ratio of neighbouring chances of `drawing`'s noise, on halves."""
    return math.exp(-0.5 * float(1 / max(1 / epsilon, FINEST)))


def _sides(t: Array, r: float) -> tuple[Array, Array]:
    """P[z <= t] and P[z > t] for noise z, each with a small relative error."""
    inner, outer = r ** np.maximum(t + 1, 0) / (1 + r), r ** np.maximum(-t, 0) / (1 + r)
    return np.where(t >= 0, 1 - inner, outer), np.where(t >= 0, inner, 1 - outer)


def _walk_law(  # noqa: PLR0913, PLR0917 - the state of a walk
    case: Comparison,
    state: Schedule,
    labels: Outcome,
    chance: float,
    block: int,
    grid: Array,
    weights: Array,
) -> Iterator[tuple[Outcome, float]]:
    """Transcripts below a node; `weights` over noisy thresholds is the open block, `chance` the rest."""
    inside = float(weights.sum()) if weights.size else 1.0
    if state.done or len(labels) == len(case.halves):
        yield labels, chance * inside
        return
    if state.block != block:
        chance, block = chance * inside, state.block
        r = _ratio(state.threshold)
        steps = np.arange(-math.ceil(REACH / -math.log(r)), math.ceil(REACH / -math.log(r)) + 1.0)
        grid, weights = case.threshold + steps, (1 - r) / (1 + r) * r ** np.abs(steps)
    sides = _sides(grid - case.halves[len(labels)], _ratio(state.column))
    for label, share in zip((False, True), sides, strict=True):
        after = state.after(label)
        yield from _walk_law(case, after, (*labels, label), chance, block, grid, weights * share)


Draws = tuple[Callable[[Ints, Fraction], Ints], Callable[[Ints, Fraction], Ints]]


def _walk_runs(  # noqa: PLR0913, PLR0917 - as above
    case: Comparison,
    state: Schedule,
    labels: Outcome,
    runs: Ints,
    block: int,
    noisy: Ints,
    draws: Draws,
) -> Iterator[tuple[Outcome, Ints]]:
    """The runs below a node, split by their labels as `label_columns` splits them."""
    if state.done or len(labels) == len(case.halves):
        yield labels, runs
        return
    if state.block != block:
        block = state.block
        noisy = draws[0](np.full(len(runs), case.threshold, np.int64), state.threshold)
    value = np.full(len(runs), case.halves[len(labels)], np.int64)
    above = draws[1](value, state.column) > noisy
    for label in (False, True):
        taken = above == label
        if taken.any():
            below = _walk_runs(
                case, state.after(label), (*labels, label), runs[taken], block, noisy[taken], draws
            )
            yield from below
