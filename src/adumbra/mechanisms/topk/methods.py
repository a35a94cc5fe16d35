"""The ways to choose k columns; each reads the data in `engine.fold` only and draws noise by purpose.

    one phase    frefirst, em, gumbel, svt
    two phases   safe zone by noisy counts, then the unsafe zone by EM, PFM or a second count

Guarantee   the sum of the steps that `budget_of` shares out; pure, or mu under delta.
Reference   Wang et al., IEEE Access 7, 2019, Algorithms 1, 2; Durfee and Rogers 2019 (one-shot Gumbel).
Proof       methods.proof.md, of `budget_of` and every function here that draws.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from adumbra.mechanisms.topk.config import Step, score_range
from adumbra.mechanisms.topk.counting import CountNoise, NoisyCounts
from adumbra.mechanisms.topk.phases import (
    Run,
    both_counts,
    counted,
    exact_counts,
    length_histogram,
    phase_one,
    scanned,
    zone_run,
)
from adumbra.mechanisms.topk.svt import blocks, comparing, sparse
from adumbra.numerics import Array, Ints, Lattice, fraction_upper
from adumbra.privacy.conversion import gumbel_epsilon0, gumbel_scale
from adumbra.privacy.selection import gumbel_top_k
from adumbra.statistics.counts import item_rows

SVT_THRESHOLD = Fraction(1, 4)  # of epsilon, as the paper has it
ZONE = 2  # the unsafe zone reaches this many noise scales to either side of the k-th noisy count


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The columns in rank order, with the noisy counts of all columns if the method made them."""

    columns: Ints
    counts: Array | None = None
    deviations: Array | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    counted: Mapping[str, CountNoise] = field(default_factory=dict)  # by purpose, as drawn
    rounds: int | None = None  # how many columns the selection was for, 0 if it drew nothing; None: k


def frefirst(run: Run) -> Chosen:
    """The k largest noisy counts."""
    noisy = phase_one(run)
    return _with_counts(noisy.order[: run.k], noisy)


def em(run: Run) -> Chosen:
    """The exponential mechanism k times, weight exp(epsilon f_j / (g k)): one shot of Gumbel noise."""
    return Chosen(columns=exponential(run, exact_counts(run), run.k))


def gumbel(run: Run) -> Chosen:
    """As `em` if pure; under delta each round may spend epsilon0 with k mu(epsilon0/2)^2 <= mu^2."""
    if run.is_pure:
        return em(run)
    epsilon0 = gumbel_epsilon0(run.budget[Step.SELECT], run.k)
    scale = gumbel_scale(score_range(run.reach), epsilon0)
    key = run.grant.key(Step.SELECT)
    return Chosen(columns=gumbel_top_k(Lattice(exact_counts(run), 0), scale, run.k, key))


def svt(run: Run) -> Chosen:
    """Columns by number against the midst of the k-th and next count; filled up by number."""
    exact = exact_counts(run)
    schedule = sparse(_comparing(run), run.k, threshold_share=SVT_THRESHOLD)
    labels = comparing(run.grant, Step.SELECT)(2 * exact, midway(exact, run.k), schedule)
    accepted = np.flatnonzero(labels)
    return Chosen(columns=filled(accepted, np.arange(run.width), run.k))


def tps_em(run: Run) -> Chosen:
    """The unsafe zone by EM on its exact counts."""
    return two_phases(run, lambda exact, zone, wanted: zone[exponential(run, exact, wanted)])


def tps_pfm(run: Run) -> Chosen:
    """The unsafe zone by PFM against the midst of two counts; filled up in noisy order."""

    def compared(exact: Ints, zone: Ints, wanted: int) -> Ints:
        return filled(pfm(run, exact, midway(exact, wanted), zone, wanted), zone, wanted)

    return two_phases(run, compared)


def two_phases(run: Run, choose: Callable[[Ints, Ints, int], Ints]) -> Chosen:
    """The safe columns, and as many of the zone as are wanted, chosen by its exact counts."""
    noisy, exact = both_counts(run)
    safe, zone = zones(noisy, run.k)
    wanted = run.k - len(safe)
    if len(zone) == wanted:
        return _with_zone(safe, zone, zone, noisy)
    return _with_zone(safe, zone, choose(exact[zone], zone, wanted), noisy)


def tps_refine(run: Run) -> Chosen:
    """The unsafe zone counted again alone, with its own length; merged by inverse variance."""
    noisy = phase_one(run)
    safe, zone = zones(noisy, run.k)
    wanted = run.k - len(safe)
    if len(zone) == wanted:
        return _with_zone(safe, zone, zone, noisy)
    near, columns = zone_run(run, zone), np.sort(zone)
    lengths = length_histogram(near, near.width)
    histogram = run.engine.fold(near.source, item_rows, lengths, stage="zone lengths").units
    length = scanned(near, Step.ZONE_LENGTH, Step.ZONE_COUNTS, near.width, histogram)
    again = counted(near, Step.ZONE_COUNTS, length)
    first, second = noisy.noise.deviation**-2, again.noise.deviation**-2
    counts, deviations = noisy.values, np.full(run.width, noisy.noise.deviation)
    counts[columns] = (first * counts[columns] + second * again.values) / (first + second)
    deviations[zone] = (first + second) ** -0.5
    best = zone[np.argsort(-counts[zone], kind="stable")[:wanted]]
    return Chosen(
        columns=np.concatenate((safe, best)),
        counts=counts,
        deviations=deviations,
        facts={
            **_facts(noisy),
            **_zone_facts(zone, best),
            "zone_length": again.noise.length,
            "zone_scale": again.noise.scale,
        },
        counted={Step.COUNTS: noisy.noise, Step.ZONE_COUNTS: again.noise},
    )


def zones(noisy: NoisyCounts, k: int) -> tuple[Ints, Ints]:
    """The columns safely above the k-th noisy count, and those about it, both in noisy order."""
    order = noisy.order
    counts = noisy.values[order]
    margin = ZONE * noisy.noise.scale
    safe = counts > counts[k - 1] + margin
    near = ~safe & (counts >= counts[k - 1] - margin)
    return order[safe], order[near]


def exponential(run: Run, exact: Ints, rounds: int) -> Ints:
    """Places of `rounds` columns drawn without return, weight exp(epsilon f / (g rounds))."""
    scale = fraction_upper(score_range(run.reach) * rounds / Fraction(run.budget[Step.SELECT]))
    return gumbel_top_k(Lattice(exact, 0), scale, rounds, run.grant.key(Step.SELECT))


def pfm(run: Run, exact: Ints, threshold: int, zone: Ints, wanted: int) -> Ints:
    """The accepted columns of the zone; may be fewer than wanted."""
    labels = comparing(run.grant, Step.SELECT)(2 * exact, threshold, blocks(_comparing(run), wanted))
    return zone[: len(labels)][labels]


def midway(exact: Ints, k: int) -> int:
    """The k-th largest count plus the next: their midst, in halves. One row moves it by at most 1."""
    after = min(k, len(exact) - 1)
    best = -np.partition(-exact, (k - 1, after))
    return int(best[k - 1] + best[after])


def filled(accepted: Ints, order: Ints, k: int) -> Ints:
    """The accepted columns, then others in a public order, k in all."""
    others = order[~np.isin(order, accepted)]
    return np.concatenate((accepted, others))[:k]


def _comparing(run: Run) -> Fraction:
    """Epsilon of the comparisons; halved where values may move both ways."""
    return Fraction(run.budget[Step.SELECT]) / score_range(run.reach)


def _facts(noisy: NoisyCounts) -> dict[str, object]:
    """What the card says of the counts: all of it paid for or public."""
    return {
        "length": noisy.noise.length,
        "norm": noisy.noise.norm.value,
        "scale": noisy.noise.scale,
        "sensitivity": noisy.noise.sensitivity,
        "grid": noisy.noise.grid,
        "standard_error": noisy.noise.deviation,
    }


def _zone_facts(zone: Ints, best: Ints) -> dict[str, object]:
    """How many columns stand about the k-th, and how many are wanted: functions of noisy counts."""
    return {"zone_columns": len(zone), "zone_wanted": len(best)}


def _with_zone(safe: Ints, zone: Ints, best: Ints, noisy: NoisyCounts) -> Chosen:
    """The safe columns and the best of the zone; a zone of just the wanted ones needed no draw."""
    counted = _with_counts(np.concatenate((safe, best)), noisy)
    rounds = len(best) if len(zone) > len(best) else 0
    return replace(counted, facts={**counted.facts, **_zone_facts(zone, best)}, rounds=rounds)


def _with_counts(columns: Ints, noisy: NoisyCounts) -> Chosen:
    deviations = np.full(len(noisy.values), noisy.noise.deviation)
    return Chosen(
        columns=columns,
        counts=noisy.values,
        deviations=deviations,
        facts=_facts(noisy),
        counted={Step.COUNTS: noisy.noise},
    )
