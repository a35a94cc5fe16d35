"""Attack a claim: many runs on two neighbours, one guess each, and what the guesses prove.

The release is recorded once on the worst pair; then each of its steps runs again, `runs` times on each
exact value, through the production samplers with a leading batch axis:

    noise         numbers with Laplace or Gaussian noise, and selections with Gumbel noise
    transcript    labels from comparisons, and sequences (`transcripts`)

The guess is the exact likelihood ratio of all steps. Later steps keep the values that the recorded
transcript gave them: the adaptive choice is frozen at one transcript.

The event is fixed before the counted runs: the midpoint of a Gaussian likelihood ratio; for pure claims
a threshold from a pilot sample that is thrown away.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from adumbra.audit.bounds import GATE, PRINTED, Counts, epsilon_lower, pure_epsilon_lower
from adumbra.audit.pairs import Case
from adumbra.audit.recorder import Recorded, exact_loss, record_pair, share_of_claim
from adumbra.audit.transcripts import StepPair, select_many
from adumbra.numerics import Array, Ints, Lattice
from adumbra.privacy.guarantee import pure
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.privacy.recorded_noise import FixedGrant, NoisePair, fixed_grant
from adumbra.relations import Neighbours, Unit

AT_ONCE = 2**19  # numbers drawn together
Progress = Callable[[int], None]
Step = NoisePair | StepPair


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
    measured_share: float  # exact loss of the pair over the claim
    exact_epsilon: float  # the same as an epsilon
    exact_chance: float  # how often an outcome of that loss is released
    events: tuple[int, int]

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon_lower > self.epsilon_claimed

    @property
    def blind(self) -> bool:
        """Whether the pair shows so little of the claim that the audit must have missed a step."""
        return is_blind(self.epsilon_claimed, self.measured_share)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**asdict(self), "confidence": GATE, "violated": self.violated, "blind": self.blind}


LEAST = 0.25  # of a claim that the worst pair of a case must show; the tightest shows 1, `joint` 0.38
# Claims that must show it: at a large epsilon comparisons keep a least noise, and at a small one a noisy
# mean or length is so wrong that the pair is far from the worst.
MUST_SHOW = (0.1, 8.0)


def is_blind(epsilon: float, share: float) -> bool:
    """Whether so small a share of the claim means that a step was missed."""
    return MUST_SHOW[0] <= epsilon <= MUST_SHOW[1] and share < LEAST


def worst(case: Case) -> tuple[Case, Recorded]:
    """The pair of tables that moves the noised values most, and what the recorder saw on it."""
    measured = [(one, record_pair(one)) for one in case.candidates()]
    return max(measured, key=lambda entry: share_of_claim(entry[1]))


def attack(case: Case, runs: int, *, seed: int = 0, progress: Progress = silent) -> Attack:
    """Attack one case with so many runs on each table."""
    return attack_recorded(case, worst(case)[1], runs, seed=seed, progress=progress)


def attack_recorded(
    case: Case, recorded: Recorded, runs: int, *, seed: int = 0, progress: Progress = silent
) -> Attack:
    """Attack what was recorded on one pair of tables."""
    steps, delta = steps_of(recorded), float(case.config.delta)
    counts = count_guesses(steps, runs, is_pure=delta == 0, seed=seed, progress=progress)
    exact, chance = exact_loss(recorded)
    return Attack(
        case=case.name,
        path="transcript" if recorded.steps else "noise",
        runs=counts.runs,
        epsilon_claimed=float(case.config.epsilon),
        delta=delta,
        epsilon_lower=epsilon_lower(counts, delta, GATE),
        epsilon_lower_99=epsilon_lower(counts, delta, PRINTED),
        measured_share=share_of_claim(recorded),
        exact_epsilon=exact,
        exact_chance=chance,
        events=(counts.before, counts.after),
    )


def steps_of(recorded: Recorded) -> list[Step]:
    """Everything that leaves and may differ."""
    return [*recorded.noisy(), *recorded.steps]


def count_guesses(
    steps: Sequence[Step], runs: int, *, is_pure: bool, seed: int, progress: Progress = silent
) -> Counts:
    """Runs on both values of every step, and how often the likelihood ratio passes the threshold."""
    threshold = 0.0
    if is_pure:
        pilot = [scores(steps, side, max(runs // 4, 100), seed + 1, silent) for side in (0, 1)]
        threshold = choose_threshold(*pilot)
    before = int((scores(steps, 0, runs, seed, progress) > threshold).sum())
    after = int((scores(steps, 1, runs, seed, progress) > threshold).sum())
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


def scores(steps: Sequence[Step], side: int, runs: int, seed: int, progress: Progress) -> Array:
    """The log likelihood ratio (neighbour over table) of every run on one side."""
    total = np.zeros(runs)
    for number, step in enumerate(steps):
        secret = seed * 1_000_003 + 2 * number + side
        if isinstance(step, StepPair):
            total += step.scores(side, runs, secret)
            progress(runs)
            continue
        width = step.first.value.units.size if step.first.kind == "gumbel" else _moved(step)
        chunk = max(1, AT_ONCE // width)
        for block, start in enumerate(range(0, runs, chunk)):
            size = min(chunk, runs - start)
            total[start : start + size] += _ratio(step, side, size, secret, block)
            progress(size)
    return total


def _moved(pair: NoisePair) -> int:
    return int((pair.difference() != 0).sum())


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
    """Many selections; the ratio of two sequences is exact."""
    value = (pair.first.value, pair.second.value)[side]
    scale, rounds = float(pair.first.scale), pair.first.detail
    chosen = select_many(value, scale, rounds, grant.key("audit", block), runs)
    logs = [_log_chances(one.value, chosen, scale) for one in (pair.first, pair.second)]
    return logs[1] - logs[0]


def _log_chances(value: Lattice, chosen: Ints, scale: float) -> Array:
    """The log probability of sequences under peeled exponential draws."""
    logits = np.tile(value.to_float() / scale, (len(chosen), 1))
    total, runs = np.zeros(len(chosen)), np.arange(len(chosen))
    for place in chosen.T:
        top = logits.max(axis=1)
        total += logits[runs, place] - top - np.log(np.exp(logits - top[:, None]).sum(axis=1))
        logits[runs, place] = -np.inf
    return total


def _grant(secret: int) -> FixedGrant:
    """A known secret for one side of one call: an audit can be repeated. Its guarantee is not used."""
    return fixed_grant(secret, pure(1.0, Unit.ROW, Neighbours.REPLACE_ONE), ("audit",))
