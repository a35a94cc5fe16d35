"""The passes over the data: exact counts, the length scan, and noisy counts of truncated rows.

Every function that draws takes its budget and its keys from a `Run`; only `engine.fold` reads data.

Proof       counting.proof.md (what is summed and noised), methods.proof.md (what the passes cost).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from adumbra.data.sources import Source
from adumbra.engine.local import Engine
from adumbra.mechanisms.topk.config import Step
from adumbra.mechanisms.topk.counting import (
    NoisyCounts,
    choose_length,
    count_noise,
    length_targets,
    noisy_counts,
    truncated,
)
from adumbra.mechanisms.topk.svt import comparing
from adumbra.mechanisms.topk.zone import zone_source
from adumbra.numerics import Ints
from adumbra.privacy.grant import Grant
from adumbra.relations import Reach
from adumbra.statistics.counts import ItemCounts, Norm, Stacked, item_rows
from adumbra.statistics.lengths import LengthHistogram, tail_counts

STAGES = {Step.ZONE_COUNTS: "zone counts"}  # of the progress line


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One release on its way: where the rows are, what may be spent, and what is asked."""

    source: Source
    engine: Engine
    grant: Grant
    reach: Reach
    width: int
    k: int  # at most the width
    length: int | None
    longest: int
    is_pure: bool
    budget: Mapping[Step, float]

    @property
    def norm(self) -> Norm:
        """How rows are cut: L1 for Laplace, L2 for Gaussian noise."""
        return Norm.L1 if self.is_pure else Norm.L2


def exact_counts(run: Run) -> Ints:
    """f_j of all columns; private."""
    return run.engine.fold(run.source, item_rows, ItemCounts(width=run.width), stage="count").units


def phase_one(run: Run) -> NoisyCounts:
    """Noisy counts of all columns, rows cut to the public or privately chosen length."""
    if Step.LENGTH not in run.budget:
        return counted(run, Step.COUNTS, min(run.length or run.width, run.width))
    histogram = run.engine.fold(
        run.source, item_rows, length_histogram(run, run.width), stage="lengths"
    ).units
    return counted(run, Step.COUNTS, scanned(run, Step.LENGTH, Step.COUNTS, run.width, histogram))


def both_counts(run: Run) -> tuple[NoisyCounts, Ints]:
    """Noisy counts of truncated rows and the exact ones of whole rows, in two passes."""
    if Step.LENGTH not in run.budget:
        return phase_one(run), exact_counts(run)
    lengths = length_histogram(run, run.width)
    both = run.engine.fold(
        run.source, item_rows, Stacked(lengths, ItemCounts(width=run.width)), stage="lengths"
    ).units
    histogram, exact = np.split(both, [len(lengths.zero())])
    length = scanned(run, Step.LENGTH, Step.COUNTS, run.width, histogram)
    return counted(run, Step.COUNTS, length), exact


def scanned(run: Run, scan: Step, count: Step, width: int, histogram: Ints) -> int:
    """The privately chosen length for counts of `width` columns."""
    tail = tail_counts(histogram)
    return choose_length(
        tail,
        length_targets(width, len(tail), run.budget[count], run.reach, run.norm),
        Fraction(run.budget[scan]) / run.reach.rows,
        comparing(run.grant, scan),
    )


def counted(run: Run, count: Step, length: int) -> NoisyCounts:
    """Noisy counts of all columns of the run, rows cut to a length; one pass."""
    calibrated = count_noise(length, run.budget[count], run.reach, norm=run.norm)
    statistic = truncated(run.width, calibrated)
    exact = run.engine.fold(run.source, item_rows, statistic, stage=STAGES.get(count, "count"))
    return noisy_counts(exact, calibrated, run.grant, count)


def length_histogram(run: Run, width: int) -> LengthHistogram:
    """Lengths up to the longest that the scan considers; no row of distinct items passes the width."""
    return LengthHistogram(longest=min(run.longest, width))


def zone_run(run: Run, columns: Ints) -> Run:
    """The same run on rows of these public columns alone, numbered as they rise."""
    return replace(run, source=zone_source(run.source, columns), width=len(columns))
