"""Attack a claim: many runs on two neighbours, one guess each, and what the guesses prove.

Two paths, and a result says which one it took:

    noise      the release is recorded once on the worst pair; then every noise call is run again, `runs`
               times on each exact value, through the production samplers with a leading batch axis. The
               guess is the exact likelihood ratio of all calls. Later calls keep the values that the
               recorded transcript gave them: the adaptive choice is frozen at one transcript.
    release    the whole release, run by run, and a fixed event on what leaves; `runs` is cut, for speed.

The event is fixed before the counted runs: the midpoint of a Gaussian likelihood ratio; for pure claims
a threshold from a pilot sample that is thrown away.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from adumbra.audit.bounds import GATE, PRINTED, Counts, epsilon_lower, pure_epsilon_lower
from adumbra.audit.pairs import Case
from adumbra.audit.recorder import plan_of, record_pair, run_draft, share_of_claim
from adumbra.numerics import Array, Ints, Lattice
from adumbra.privacy.guarantee import pure
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.privacy.recorded_noise import FixedGrant, NoisePair, fixed_grant
from adumbra.privacy.selection import gumbel_top_k
from adumbra.relations import Neighbours, Unit

AT_ONCE = 2**19  # numbers drawn together
SLOW = 50  # a selection or a whole release is run this many times less often
Progress = Callable[[int], None]


def silent(_done: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What one attack proves about one claim."""

    case: str
    path: str
    runs: int
    epsilon_claimed: float
    delta: float
    epsilon_lower: float  # at confidence 1 - 1e-9: the gate
    epsilon_lower_99: float
    measured_share: float | None  # exact loss of the pair over the claim, where the recorder has it
    events: tuple[int, int]

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon_lower > self.epsilon_claimed

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**asdict(self), "confidence": GATE, "violated": self.violated}


def worst(case: Case) -> tuple[Case, float]:
    """The pair of tables that moves the noised values most, and its exact share of the claim."""
    measured = [(share_of_claim(record_pair(one)), one) for one in case.candidates()]
    share, chosen = max(measured, key=lambda entry: entry[0])
    return chosen, share


def attack(case: Case, runs: int, *, seed: int = 0, progress: Progress = silent) -> Attack:
    """Attack one case with so many runs on each table."""
    if case.event is not None:
        counts = _whole_releases(case, max(runs // SLOW // 4, 100), seed, progress)
        return _result(case, "release", counts, None)
    chosen, share = worst(case)
    pairs = [pair for pair in record_pair(chosen).pairs if pair.l1() > 0]
    if any(pair.first.kind == "gumbel" for pair in pairs):
        runs = max(runs // SLOW, 100)
    counts = count_guesses(pairs, runs, is_pure=case.config.delta == 0, seed=seed, progress=progress)
    return _result(case, "noise", counts, share)


def count_guesses(
    pairs: list[NoisePair], runs: int, *, is_pure: bool, seed: int, progress: Progress = silent
) -> Counts:
    """Runs on both values of every call, and how often the likelihood ratio passes the threshold."""
    threshold = 0.0
    if is_pure:
        pilot = [scores(pairs, side, max(runs // 4, 100), seed + 1, silent) for side in (0, 1)]
        threshold = choose_threshold(*pilot)
    before = int((scores(pairs, 0, runs, seed, progress) > threshold).sum())
    after = int((scores(pairs, 1, runs, seed, progress) > threshold).sum())
    return Counts(before=before, after=after, runs=runs)


def choose_threshold(before: Array, after: Array) -> float:
    """The threshold that proves most on a pilot sample; the counted runs have not been seen."""
    steps = np.unique(np.quantile(np.concatenate([before, after]), np.linspace(0.01, 0.99, 60)))
    # an atom of the largest loss is cut off from below
    levels = np.unique(np.concatenate([steps - 1e-6, [0.0]]))

    def proven(level: float) -> float:
        hits = Counts(
            before=int((before > level).sum()), after=int((after > level).sum()), runs=len(before)
        )
        return pure_epsilon_lower(hits, PRINTED)

    return float(max(levels, key=proven))


def scores(pairs: list[NoisePair], side: int, runs: int, seed: int, progress: Progress) -> Array:
    """The log likelihood ratio (neighbour over table) of every run on one side."""
    total = np.zeros(runs)
    for number, pair in enumerate(pairs):
        secret = seed * 1_000_003 + 2 * number + side
        chunk = max(1, AT_ONCE // int((pair.difference() != 0).sum()))
        for block, start in enumerate(range(0, runs, chunk)):
            size = min(chunk, runs - start)
            total[start : start + size] += _ratio(pair, side, size, secret, block)
            progress(size if number == 0 else 0)
    return total


def _ratio(pair: NoisePair, side: int, runs: int, secret: int, block: int) -> Array:
    """One noise call, `runs` times: the production sampler on the values that differ."""
    grant = _grant(secret)
    first, second, grid = pair.first.value, pair.second.value, pair.first.value.grid
    if pair.first.kind == "gumbel":
        return _selections(pair, side, runs, grant, block)
    moved = first.units != second.units  # noise is independent by coordinate: the others say nothing
    units = (first.units[moved], second.units[moved])
    scale = np.broadcast_to(pair.first.scale, first.units.shape)[moved]
    value = Lattice(np.repeat(units[side][None], runs, axis=0), first.exponent)
    noisy: Ints
    if pair.first.kind == "gaussian":
        noisy = add_gaussian(value, scale, grant.key("audit", block)).units
        middle = (units[0] + units[1]) / 2.0
        weights = (units[1] - units[0]) * (grid / scale) ** 2
        return np.asarray((noisy - middle) @ weights)
    noisy = add_laplace(value, float(scale[0]), grant.key("audit", block)).units
    gap = np.abs(noisy - units[0]) - np.abs(noisy - units[1])
    return np.asarray(gap.sum(axis=1) * (grid / float(scale[0])))


def _selections(pair: NoisePair, side: int, runs: int, grant: FixedGrant, block: int) -> Array:
    """Draw selections one by one; the ratio of two sequences is exact."""
    value = (pair.first.value, pair.second.value)[side]
    scale, rounds = float(pair.first.scale), pair.first.detail
    found = np.empty(runs)
    for run in range(runs):
        chosen = gumbel_top_k(value, scale, rounds, grant.key("audit", block * AT_ONCE + run))
        logs = [_log_chance(one.value, chosen, scale) for one in (pair.first, pair.second)]
        found[run] = logs[1] - logs[0]
    return found


def _log_chance(value: Lattice, chosen: Ints, scale: float) -> float:
    """The log probability of a sequence under peeled exponential draws."""
    logits = value.to_float() / scale
    total, left = 0.0, np.ones(len(logits), dtype=bool)
    for index in chosen:
        total += float(logits[index] - np.logaddexp.reduce(logits[left]))
        left[index] = False
    return total


def _whole_releases(case: Case, runs: int, seed: int, progress: Progress) -> Counts:
    """Whole releases under fresh keys; the event was fixed in the table of cases."""
    planned, event = plan_of(case), case.event
    hits = [0, 0]
    for side, data in enumerate((case.before, case.after)):
        for run in range(runs):
            grant = fixed_grant((seed * 2 + side) * 10**9 + run, planned.guarantee, planned.purposes)
            draft = run_draft(case, data, grant)
            hits[side] += event is not None and event(draft)
            progress(1)
    return Counts(before=hits[0], after=hits[1], runs=runs)


def _grant(secret: int) -> FixedGrant:
    """A known secret for one side of one call: an audit can be repeated. Its guarantee is not used."""
    return fixed_grant(secret, pure(1.0, Unit.ROW, Neighbours.REPLACE_ONE), ("audit",))


def _result(case: Case, path: str, counts: Counts, share: float | None) -> Attack:
    delta = float(case.config.delta)
    return Attack(
        case=case.name,
        path=path,
        runs=counts.runs,
        epsilon_claimed=float(case.config.epsilon),
        delta=delta,
        epsilon_lower=epsilon_lower(counts, delta, GATE),
        epsilon_lower_99=epsilon_lower(counts, delta, PRINTED),
        measured_share=None if share is None or not math.isfinite(share) else share,
        events=(counts.before, counts.after),
    )
