"""Top-k methods as published, to compare ours with; and the F-score. NOT FOR RELEASE.

The paper names DPsense for its truncation length without its rule. Two readings are offered as a target
T of "the length whose tail #{i : |t_i| > theta} is nearest to T", drawn by the exponential mechanism:
`narrow` (T = 2k / epsilon: only the k columns and their rivals matter) and `wide` (T = d / epsilon).

Each is epsilon-DP under add-remove as the paper claims, but PFM returns fewer than k columns at times,
and no other relation is covered: they are baselines, and `mechanisms.topk` has them mended.

Reference   Wang et al., IEEE Access 7, 2019, Algorithms 1 and 2; section VI for budgets and F-score.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from adumbra.data.sources import Source
from adumbra.engine.local import Engine
from adumbra.errors import Unsupported
from adumbra.mechanisms.topk.config import Step
from adumbra.mechanisms.topk.counting import NoisyCounts
from adumbra.mechanisms.topk.methods import exponential, pfm, zones
from adumbra.mechanisms.topk.phases import Run, counted, exact_counts
from adumbra.mechanisms.topk.svt import marker
from adumbra.numerics import Ints, Lattice
from adumbra.privacy.conversion import gumbel_scale, split_epsilon
from adumbra.privacy.grant import Grant
from adumbra.privacy.selection import exponential_choice
from adumbra.relations import Neighbours
from adumbra.statistics.counts import item_rows
from adumbra.statistics.lengths import LengthHistogram, tail_counts

PURPOSES = (Step.LENGTH.value, Step.COUNTS.value, Step.SELECT.value, marker(Step.SELECT))
ONE_PHASE = {Step.LENGTH: 0.1, Step.COUNTS: 0.9}
TWO_PHASES = {Step.LENGTH: 0.1, Step.COUNTS: 0.6, Step.SELECT: 0.3}

Target = Callable[[int, int, float], float]  # (width, k, epsilon of the counts) -> T


def narrow(width: int, k: int, epsilon: float) -> float:  # noqa: ARG001 - one shape for both targets
    """T = 2k / epsilon."""
    return 2 * k / epsilon


def wide(width: int, k: int, epsilon: float) -> float:  # noqa: ARG001 - as above
    """T = d / epsilon."""
    return width / epsilon


def f_score(exact: Sequence[int] | Ints, found: Sequence[int] | Ints) -> float:
    """2 |R and R'| / (|R| + |R'|), the harmonic mean of precision and recall."""
    common = len(set(np.asarray(exact).tolist()) & set(np.asarray(found).tolist()))
    return 2 * common / (len(exact) + len(found))


def true_columns(counts: Ints, k: int) -> Ints:
    """The k largest counts, equal ones by number."""
    return np.argsort(-counts, kind="stable")[:k]


def prepare(
    source: Source, k: int, epsilon: float, shares: Mapping[Step, float], *, engine: Engine, grant: Grant
) -> Run:
    """The paper's budget on a source; it proves add-remove alone."""
    if source.schema.neighbours is not Neighbours.ADD_REMOVE:
        raise Unsupported(f"neighbours={source.schema.neighbours}: the paper proves add-remove alone")
    return Run(
        source=source,
        engine=engine,
        grant=grant,
        reach=source.schema.reach,
        width=source.width,
        k=min(k, source.width),
        length=None,
        longest=256,
        is_pure=True,
        budget=dict(zip(shares, split_epsilon(epsilon, tuple(shares.values())), strict=True)),
    )


def dpsense(run: Run, target: Target) -> NoisyCounts:
    """Noisy counts with a length drawn by the exponential mechanism, score -|tail - T|."""
    longest = min(run.longest, run.width)
    histogram = run.engine.fold(run.source, item_rows, LengthHistogram(longest=longest), stage="lengths")
    goal = round(target(run.width, run.k, run.budget[Step.COUNTS]))
    scores = Lattice(-np.abs(tail_counts(histogram.units) - goal), 0)
    scale = gumbel_scale(2.0, run.budget[Step.LENGTH])  # the score may rise here and fall there
    length = 1 + exponential_choice(scores, scale, run.grant.key(Step.LENGTH))
    return counted(run, Step.COUNTS, length)


def frefirst(run: Run, target: Target) -> Ints:
    """The k largest noisy counts."""
    return dpsense(run, target).order[: run.k]


def tps_em(run: Run, target: Target) -> Ints:
    """Algorithm 1 with the exponential mechanism in the unsafe zone."""
    safe, zone = zones(dpsense(run, target), run.k)
    wanted = run.k - len(safe)
    if len(zone) > wanted:
        zone = zone[exponential(run, exact_counts(run)[zone], wanted)]
    return np.concatenate((safe, zone))


def tps_pfm(run: Run, target: Target) -> Ints:
    """Algorithm 2 to the letter: the k-th count is the threshold, and nothing fills a short answer."""
    safe, zone = zones(dpsense(run, target), run.k)
    wanted = run.k - len(safe)
    exact = exact_counts(run)[zone]
    threshold = 2 * int(-np.partition(-exact, wanted - 1)[wanted - 1])
    return np.concatenate((safe, pfm(run, exact, threshold, zone, wanted)))
