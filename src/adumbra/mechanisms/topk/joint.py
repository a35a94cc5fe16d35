"""One exponential mechanism over all sequences of k distinct columns.

    u(s) = max(-D, -max_r (c_(r) - c_(s_r)))        P(s) ~ exp(epsilon u(s) / (2 Delta)),  Delta = 1 or 2

c_(r) is the r-th largest count. Sequences of equal u are counted, not listed: first the depth -u is
drawn, then the first rank that falls so deep, then each rank's column uniformly among those that may
stand there.

Guarantee   pure epsilon; Delta = 1 for add-remove, 2 for replace-one. Logarithms of the (huge) numbers
            of sequences are rounded to a lattice; 8 such steps are taken off epsilon beforehand.
Reference   Gillenwater, Joseph, Munoz, Ribero, ICML 2022; the sampler by depth is ours.
Proof       joint.proof.md, of `joint_sequence`, `log_sequences` and `plan_lattice`.
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.errors import Unsupported
from adumbra.mechanisms.topk.config import Step, score_range
from adumbra.mechanisms.topk.methods import Chosen
from adumbra.mechanisms.topk.phases import Run, exact_counts
from adumbra.numerics import Array, Ints, Lattice
from adumbra.privacy.grant import Grant
from adumbra.privacy.selection import exponential_choice

DEPTH, RANK, COLUMN = f"{Step.SELECT}-depth", f"{Step.SELECT}-rank", f"{Step.SELECT}-column"
AT_ONCE = 2**20  # numbers of one piece of the table of depths
SPARE = 40.0  # the deepest level weighs at most e^-40 of the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLattice:
    """Public numbers of the draw."""

    bits: int  # log-weights are multiples of 2^-bits
    slope: float  # what one count of utility adds to a log-weight
    deepest: int  # D


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What the draw of a sequence is asked; private."""

    counts: Ints
    k: int
    public: JointLattice


def plan_lattice(epsilon: float, k: int, width: int, spread: int) -> JointLattice:
    """The lattice, the slope with eight lattice steps taken off epsilon, and the depth of the clip."""
    step = math.frexp(epsilon)[1] - 1 - 14  # 2^step <= epsilon 2^-14
    logs = k * math.log(max(width, 2)) + 64.0
    if math.ldexp((k + 8) * logs, -51) > math.ldexp(0.5, step):  # what floats may be wrong by
        message = (
            f"k={k}, epsilon={epsilon}, {width} columns: too fine for the joint mechanism; "
            "use 'frefirst', or raise epsilon"
        )
        raise Unsupported(message)
    spent = math.nextafter(epsilon - math.ldexp(8.0, step), 0.0)
    slope = math.nextafter(spent / (2 * spread), 0.0)
    return JointLattice(bits=-step, slope=slope, deepest=math.ceil((logs - 64.0 + SPARE) / slope))


def joint(run: Run) -> Chosen:
    """A sequence of k columns by the joint exponential mechanism."""
    public = plan_lattice(run.budget[Step.SELECT], run.k, run.width, score_range(run.reach))
    counts = exact_counts(run)

    def draw() -> Ints:
        return joint_sequence(counts, run.k, public, run.grant)

    return Chosen(columns=run.grant.step(Asked(counts, run.k, public), draw, whole=True))


def joint_sequence(counts: Ints, k: int, public: JointLattice, grant: Grant) -> Ints:
    """Draw the depth, the first rank that reaches it, and then the columns."""
    order = np.argsort(-counts, kind="stable")
    ranked = counts[order]
    depths, logs = log_sequences(ranked, k, public.deepest)
    scores = _lattice(logs - public.slope * depths, public.bits)
    depth = int(depths[exponential_choice(scores, 1.0, grant.key(DEPTH))])

    above, here = _allowed(ranked, k, np.array([depth - 1, depth]), public.deepest)
    first = _first_rank(above, here, public.bits, grant)
    taken = np.zeros(len(counts), np.bool_)  # by place in the order
    chosen = np.empty(k, np.int64)
    for rank in range(k):
        low, high = (
            (above[rank], here[rank]) if rank == first else (0, (above, here)[rank > first][rank])
        )
        open_places = low + np.flatnonzero(~taken[low:high])
        even = Lattice(np.zeros(len(open_places), np.int64), 0)
        chosen[rank] = open_places[exponential_choice(even, 1.0, grant.key(COLUMN, rank))]
        taken[chosen[rank]] = True
    return order[chosen]


def _first_rank(above: Ints, here: Ints, bits: int, grant: Grant) -> int:
    """The first rank of exactly this depth: ranks before it stand higher, those after it anywhere."""
    ranks = np.arange(len(here))
    new = here - above  # columns that bring a rank to exactly this depth
    higher = np.r_[True, above[:-1] > ranks[:-1]]  # whether the rank before can stand higher
    possible = np.flatnonzero((new > 0) & np.logical_and.accumulate(higher))
    before = np.r_[0.0, np.cumsum(np.log(np.maximum(above - ranks, 1)))]
    after = np.r_[np.cumsum(np.log(here - ranks)[::-1])[::-1], 0.0]
    logs = before[possible] + np.log(new[possible]) + after[possible + 1]
    return int(possible[exponential_choice(_lattice(logs, bits), 1.0, grant.key(RANK))])


def log_sequences(ranked: Ints, k: int, deepest: int) -> tuple[Ints, Array]:
    """The depths that some sequence has, and the logarithm of how many sequences have each.

    N(i) = prod_r (n_r(i) - r) sequences of depth at most i, n_r(i) = #{j : c_j >= c_(r) - i}
    log (N(i) - N(i-1)) = log N(i) + log(1 - exp(-sum_r log(1 + (n_r(i) - n_r(i-1)) / (n_r(i-1) - r))))
    """
    ranks = np.arange(k)
    free = _allowed(ranked, k, np.array([0]), deepest) - ranks
    depths, logs = [np.array([0])], [np.log(free).sum(axis=1)]  # nothing is above depth 0
    last, piece = min(int(ranked[0] - ranked[-1]), deepest), max(1, AT_ONCE // k)
    for start in range(1, last + 1, piece):
        span = np.arange(start, min(start + piece, last + 1))
        free = np.vstack((free[-1:], _allowed(ranked, k, span, deepest) - ranks))
        growth = np.log1p((free[1:] - free[:-1]) / free[:-1]).sum(axis=1)
        some = growth > 0  # exactly 0 where no column is new
        depths.append(span[some])
        logs.append(np.log(free[1:][some]).sum(axis=1) + np.log(-np.expm1(-growth[some])))
    return np.concatenate(depths), np.concatenate(logs)


def _allowed(ranked: Ints, k: int, depths: Ints, deepest: int) -> Ints:
    """n_r(i): how many columns may stand at each rank if none falls deeper than i; all at the clip."""
    places = np.searchsorted(-ranked, depths[:, None] - ranked[:k], side="right").astype(np.int64)
    places[depths >= deepest] = len(ranked)
    return places


def _lattice(logs: Array, bits: int) -> Lattice:
    """Log-weights relative to the largest, on the lattice."""
    return Lattice(np.rint(np.ldexp(logs - logs.max(), bits)).astype(np.int64), -bits)
