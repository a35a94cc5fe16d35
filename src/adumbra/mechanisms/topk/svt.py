"""Compare columns with a noisy threshold, one after another: the sparse vector technique in blocks.

    x = rho + L(e_t) once per block;      label of column j: f_j + L(e_j) > x      (a tie is "no")

L(e) is the discrete Laplace law on halves, P(z) ~ exp(-e |z|). A schedule says what each comparison may
cost, from the labels already given; the same primitive serves plain SVT, PFM and the length scan.

Guarantee   pure; a block costs e_t + (sum of e_j over the labels of one kind), the cheaper kind of which
            the schedule has set aside, when all values move the same way by at most 1 (add-remove).
            Twice that when they may move both ways (replace-one).
Reference   Wang et al., IEEE Access 7, 2019, Algorithm 2; Dwork and Roth 2014, section 3.6.
Proof       svt.proof.md, of `label_columns`, `Sparse` and `Blocks`.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import require
from adumbra.numerics import Ints, Lattice, fraction_upper
from adumbra.privacy import noise
from adumbra.privacy.grant import Grant

HALVES = -1  # the lattice of values and thresholds: a threshold may lie midway between two counts
FINEST = Fraction(1, 4)  # no noise is narrower than this scale, however large epsilon is
AHEAD = 64  # comparisons drawn at once where the schedule stands still; doubled as long as it does

Draw = Callable[[Ints, Fraction], Ints]  # (values in halves, epsilon) -> the same with fresh noise


def drawing(grant: Grant, purpose: str) -> Draw:
    """Laplace noise of one purpose, a new key for each call."""
    numbers = itertools.count()

    def draw(halves: Ints, epsilon: Fraction) -> Ints:
        scale = fraction_upper(max(1 / epsilon, FINEST))
        key = grant.key(purpose, next(numbers))
        return noise.add_laplace(Lattice(halves, HALVES), scale, key).units

    return draw


def marker(step: str) -> str:
    """The purpose of the thresholds of a step that compares."""
    return f"{step}-threshold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """Plain SVT: one threshold, `wanted` accepted columns of `column` each; refusals are free."""

    threshold: Fraction  # epsilon of the one threshold
    column: Fraction  # epsilon of the next comparison
    wanted: int

    @property
    def block(self) -> int:
        """The number of the threshold in force: one for all."""
        return 0

    @property
    def remaining(self) -> Fraction:
        """Epsilon not yet spent: the acceptances to come."""
        return self.column * self.wanted

    @property
    def free(self) -> bool:
        """The label that leaves the schedule as it is: a refusal."""
        return False

    @property
    def done(self) -> bool:
        """Whether all are found."""
        return self.wanted == 0

    def after(self, label: bool) -> "Sparse":
        """One fewer to find after an acceptance."""
        return replace(self, wanted=self.wanted - label)


def sparse(epsilon: Fraction, wanted: int, *, threshold_share: Fraction) -> Sparse:
    """Epsilon over one threshold and `wanted` acceptances."""
    require(wanted >= 1, f"wanted={wanted}: must be at least 1")
    return Sparse(
        threshold=epsilon * threshold_share,
        column=epsilon * (1 - threshold_share) / wanted,
        wanted=wanted,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """PFM: runs of equal labels, each ended by its opposite, which alone is paid.

    Each comparison may spend an equal share of what remains for the columns still wanted; each fresh
    threshold a quarter of such a share.
    """

    remaining: Fraction  # epsilon not yet spent, whatever the further labels are
    wanted: int
    block: int = 0  # the number of the threshold in force; a new number asks for a fresh one
    threshold: Fraction = Fraction(0)  # its epsilon, already taken off `remaining`
    run: bool | None = None  # the label that opened this block

    @property
    def column(self) -> Fraction:
        """An equal share of what remains."""
        return self.remaining / self.wanted

    @property
    def free(self) -> bool | None:
        """A refusal in a run of refusals; an acceptance changes how many are wanted."""
        return False if self.run is False else None

    @property
    def done(self) -> bool:
        """Whether all are found, or nothing remains."""
        return self.wanted == 0 or self.remaining == 0

    def after(self, label: bool) -> "Blocks":
        """Go on with the run, or pay its end and open the next block."""
        wanted = self.wanted - label
        if self.run is None or self.run == label:
            return replace(self, run=label, wanted=wanted)
        paid = replace(self, remaining=self.remaining - self.column, wanted=wanted)
        return paid if paid.done else _open(paid.remaining, wanted, self.block + 1)


def blocks(epsilon: Fraction, wanted: int) -> Blocks:
    """Epsilon over the blocks that hold `wanted` acceptances."""
    require(wanted >= 1, f"wanted={wanted}: must be at least 1")
    return _open(epsilon, wanted, 0)


def _open(remaining: Fraction, wanted: int, block: int) -> Blocks:
    """A block with its threshold paid."""
    threshold = remaining / (4 * wanted)
    return Blocks(remaining=remaining - threshold, wanted=wanted, block=block, threshold=threshold)


# What the next comparison may cost: a function of epsilon and of the labels given so far.
Schedule = Sparse | Blocks


def label_columns(
    halves: Ints, threshold: int, schedule: Schedule, *, thresholds: Draw, columns: Draw
) -> NDArray[np.bool_]:
    """The labels of the leading columns, in order, until the schedule is done or no column is left."""
    labels = np.zeros(len(halves), np.bool_)
    position, block, ahead = 0, -1, AHEAD
    noisy_threshold = 0
    while position < len(halves) and not schedule.done:
        if schedule.block != block:
            block = schedule.block
            noisy_threshold = int(thresholds(np.array([threshold], np.int64), schedule.threshold)[0])
        reach = 1 if schedule.free is None else ahead
        above = columns(halves[position : position + reach], schedule.column) > noisy_threshold
        run = _leading(above, schedule.free)
        taken = min(run + 1, len(above))  # what was drawn beyond is thrown away unseen
        labels[position : position + taken] = above[:taken]
        position += taken
        if run < len(above):
            schedule, ahead = schedule.after(bool(above[run])), AHEAD
        else:
            ahead *= 2
    return labels[:position]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a step that compares is asked; private."""

    halves: Ints
    threshold: int
    schedule: Schedule


Compare = Callable[[Ints, int, Schedule], NDArray[np.bool_]]  # what `label_columns` does, with its noise


def comparing(grant: Grant, step: str) -> Compare:
    """`label_columns` with the noise of one step of a grant."""

    def compare(halves: Ints, threshold: int, schedule: Schedule) -> NDArray[np.bool_]:
        def draw() -> NDArray[np.bool_]:
            thresholds, columns = drawing(grant, marker(step)), drawing(grant, step)
            return label_columns(halves, threshold, schedule, thresholds=thresholds, columns=columns)

        return grant.step(Asked(halves, threshold, schedule), draw)

    return compare


def _leading(labels: NDArray[np.bool_], free: bool | None) -> int:
    """How many labels at the start are the free one."""
    if free is None:
        return 0
    other = np.flatnonzero(labels != free)
    return int(other[0]) if len(other) else len(labels)
