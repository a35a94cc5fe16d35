"""Run a mechanism on a table and, with the same noise, on its neighbour; measure what met the noise.

    Gaussian |change / sigma|_2        Laplace |change|_1 / scale        Gumbel k spread / scale
    comparisons, joint: the largest log ratio of any transcript (`transcripts`)

All are exact: the values are integers and the scales are those of the call. Summed over the steps of a
release (squares for mu) they must not exceed the claim; and each call must not exceed the sensitivity
that its own entry on the card declares.
"""

import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
from scipy.special import expit, ndtri

from adumbra.audit.pairs import Case
from adumbra.audit.transcripts import Choice, StepPair, discrete
from adumbra.data.opening import open_source
from adumbra.data.sources import Source, WatchedSource
from adumbra.engine.local import BatchT, Engine, add_rows, summed, whole_rows
from adumbra.errors import VerificationFailed
from adumbra.mechanisms.base import Draft, Noise, Plan
from adumbra.mechanisms.methods import method_of
from adumbra.numerics import NOISE_BLOCK, Lattice
from adumbra.privacy.conversion import epsilon_of
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.recorded_noise import NoisePair, NoiseRecord, recording_grant, replaying_grant
from adumbra.statistics.base import Statistic

RowsT = TypeVar("RowsT")
T = TypeVar("T")

SLACK = 1.0 + 1e-9  # of float sums in the auditor, not of the mechanism


@dataclass(frozen=True, slots=True)
class Transcript:
    """Which noise is recorded: that of a seed, so many times wider than drawn."""

    seed: int = 0
    stretch: int = 1

    def __str__(self) -> str:
        wider = f", noise {self.stretch} times as wide" if self.stretch != 1 else ""
        return f"seed {self.seed}{wider}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One release on both tables under the same noise."""

    planned: Plan
    transcript: Transcript
    record: NoiseRecord
    parts: tuple[Mapping[str, bytes], Mapping[str, bytes]]
    noise: tuple[Noise, ...]  # as the card prints it
    steps: tuple[StepPair, ...]  # labels and sequences, whose noise never leaves
    fault: str | None = None  # why the second run could not follow the first

    @property
    def pairs(self) -> list[NoisePair]:
        """Both exact values of every noise call."""
        return self.record.pairs

    def noisy(self) -> list[NoisePair]:
        """The calls whose noisy values leave, and whose exact values differ."""
        return [pair for pair in self.pairs if not self.is_inside(pair) and pair.l1() > 0]

    def is_inside(self, pair: NoisePair) -> bool:
        """Whether a call was made inside a step that the grant saw: its noise never leaves by itself."""
        return (pair.purpose, pair.block) in self.record.inside

    def differences(self) -> list[str]:
        """The parts of the release that differ although all noise was the same."""
        first, second = self.parts
        return sorted(
            name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
        )


class DirectEngine:
    """`fold` and `map_blocks` in this thread: the same bits, and many small releases a second."""

    def fold(
        self,
        source: Source,
        prepare: Callable[[BatchT], RowsT],
        statistic: Statistic[RowsT],
        *,
        stage: str,  # noqa: ARG002 - shown by engines that report progress
    ) -> Lattice:
        """Sum block by block."""
        total = statistic.zero()
        for batch in source.batches(NOISE_BLOCK):
            total = add_rows(statistic, total, prepare(cast("BatchT", batch)), batch.weight)
        return summed(source, statistic, total)

    def map_blocks(
        self,
        source: Source,
        function: Callable[[BatchT], T],
        *,
        stage: str,  # noqa: ARG002
    ) -> Iterator[T]:
        """Each noise block in order."""
        for batch in source.batches(NOISE_BLOCK):
            yield function(whole_rows(cast("BatchT", batch)))


def run_draft(case: Case, data: object, grant: Grant, engine: Engine | None = None) -> Draft:
    """One run of the method, settled and drawn as `workflow` does it; pending rows are not drawn yet."""
    return _run(case, data, grant, engine)[1]


def run_whole(
    case: Case, data: object, grant: Grant, engine: Engine | None = None
) -> tuple[Draft, dict[str, bytes]]:
    """The same, with everything that is handed over: what the draft holds and what the plan says."""
    planned, draft = _run(case, data, grant, engine)
    return draft, {"plan": repr(planned).encode(), **parts_of(draft)}


def _run(case: Case, data: object, grant: Grant, engine: Engine | None) -> tuple[Plan, Draft]:
    source = WatchedSource(open_source(data, case.schema))  # closes the schema
    method = method_of(case.config)  # looked up at each run, so that a mutant can plant another
    settled = method.settle(case.config, source.schema)
    return settled.plan, method.draw(settled, source, engine or DirectEngine(), grant)


def plan_of(case: Case) -> Plan:
    """The method's own plan."""
    source = WatchedSource(open_source(case.before, case.schema))
    return method_of(case.config).settle(case.config, source.schema).plan


def record_pair(case: Case, transcript: Transcript = Transcript()) -> Recorded:  # noqa: B008 - frozen
    """Record the noise on the table, replay it on the neighbour."""
    planned, record = plan_of(case), NoiseRecord()
    known = (transcript.seed, planned.guarantee, planned.purposes)
    grant = recording_grant(record, *known, stretch=transcript.stretch)
    draft, first = run_whole(case, case.before, grant)
    try:
        _, second = run_whole(case, case.after, replaying_grant(record, *known))
        fault = record.fault()
    except VerificationFailed as error:
        second, fault = {}, str(error)
    return Recorded(
        planned=planned,
        transcript=transcript,
        record=record,
        parts=(first, second),
        noise=draft.noise or planned.noise,
        steps=tuple(
            StepPair(discrete(first), discrete(second))
            for (first, _), second in zip(record.steps, record.steps_again, strict=False)
        ),
        fault=fault,
    )


def parts_of(draft: Draft) -> dict[str, bytes]:
    """Everything that a draft hands over, as bytes by name."""
    parts = {f"fact {name}": repr(value).encode() for name, value in draft.facts.items()}
    parts["noise entries"] = repr(draft.noise).encode()
    for name, array in draft.arrays.items():
        parts[f"array {name}"] = repr((array.shape, array.dtype)).encode() + array.tobytes()
    for name in {**draft.tables, **draft.pending}:
        whole = draft.table(name)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole)
        parts[f"table {name}"] = sink.getvalue()
    return parts


def step_loss(pair: NoisePair) -> float:
    """What one call reveals at most about this pair: epsilon, or mu of a Gaussian."""
    scale = pair.first.scale
    if pair.first.kind == "gaussian":
        return float(np.sqrt(np.square(pair.difference() / scale).sum()))
    if pair.first.kind == "laplace":
        return float((np.abs(pair.difference()) / scale).sum())
    return pair.first.detail * pair.spread() / float(scale)


def total_loss(recorded: Recorded) -> float:
    """What all steps reveal together, in the claim's own currency."""
    transcripts = [step.loss()[0] for step in recorded.steps]
    if recorded.planned.guarantee.is_pure:
        return math.fsum([*transcripts, *(step_loss(pair) for pair in recorded.noisy())])
    squares = [_pure_mu(loss) ** 2 for loss in transcripts]
    return math.sqrt(math.fsum([*squares, *(_mu(pair) ** 2 for pair in recorded.noisy())]))


def _mu(pair: NoisePair) -> float:
    loss = step_loss(pair)
    if pair.first.kind == "gaussian":
        return loss
    if pair.first.kind == "laplace":
        return _pure_mu(loss)
    rounds = pair.first.detail
    return math.sqrt(rounds) * _pure_mu(loss / rounds / 2.0)  # bounded range: half of it either way


def _pure_mu(epsilon: float) -> float:
    """The mu of a pure epsilon: 2 Phi^-1(e^eps / (1 + e^eps)); the auditor's own sum."""
    return float(2.0 * ndtri(expit(epsilon)))


def claim_of(guarantee: PrivacyGuarantee) -> float:
    """Epsilon of a pure claim, mu of a Gaussian one."""
    return guarantee.as_mu() if guarantee.mu is not None else guarantee.epsilon_at(0.0)


def share_of_claim(recorded: Recorded) -> float:
    """The measured loss over the claimed one: 1 is tight, above 1 is a violation."""
    return total_loss(recorded) / claim_of(recorded.planned.guarantee)


def exact_loss(recorded: Recorded) -> tuple[float, float]:
    """The epsilon of this pair, and how often a release shows an outcome that reveals so much.

    Pure claims: the largest privacy loss, on the likelier side; of a Laplace product it is reached where
    every coordinate lies beyond its farther value. Gaussian ones: epsilon at the claim's delta of the
    measured mu (every outcome counts).
    """
    guarantee = recorded.planned.guarantee
    if not guarantee.is_pure:
        mu = total_loss(recorded)
        return (epsilon_of(mu, guarantee.delta) if mu > 1e-6 else 0.0), 1.0
    steps = [*recorded.steps]
    loss, chance = 0.0, 1.0
    for pair in recorded.noisy():
        if pair.first.kind == "gumbel":
            scale, rounds = float(pair.first.scale), pair.first.detail
            sides = (Choice(one.value, scale, rounds) for one in (pair.first, pair.second))
            steps.append(StepPair(*sides))
            continue
        loss += step_loss(pair)
        chance *= _beyond(pair)
    found = [step.loss() for step in steps]
    loss += math.fsum(one for one, _ in found)
    return loss, chance * math.prod(often for _, often in found)


def _beyond(pair: NoisePair) -> float:
    """P[every moved coordinate's noise is at least 0, outwards]: 1 / (1 + q) each."""
    q = math.exp(-pair.first.value.grid / float(pair.first.scale))
    return float((1.0 + q) ** -float((pair.difference() != 0).sum()))


def exceedances(recorded: Recorded) -> list[str]:
    """Every call that moved more than its entry declares, and the whole if it passes the claim."""
    found = []
    for pair in recorded.pairs:
        entry = declared_for(pair.purpose, recorded.noise)
        if entry is None:
            found.append(f"{pair.purpose}: noise that no entry of the card declares")
            continue
        moved = moved_by(pair, entry, inside=recorded.is_inside(pair))
        if moved > entry.sensitivity * SLACK:
            found.append(
                f"{pair.purpose}: moved {moved:.4g}, declared sensitivity {entry.sensitivity:.4g}"
            )
    share = share_of_claim(recorded)
    if share > SLACK:
        found.append(f"all calls together reveal {share:.4g} of the claim")
    return found


def declared_for(purpose: str, entries: tuple[Noise, ...]) -> Noise | None:
    """The entry of a purpose; where its coordinates have several scales, the first of them.

    Such entries are named "purpose, coordinates". Their sensitivity is that of the whole call, in the
    norm that weighs each coordinate by the first scale over its own.
    """
    for entry in entries:
        if entry.purpose == purpose or entry.purpose.startswith(f"{purpose}, "):
            return entry
    return None


def moved_by(pair: NoisePair, entry: Noise, *, inside: bool) -> float:
    """The change in the norm that the entry declares its sensitivity in."""
    if pair.first.kind == "gumbel":
        return pair.spread()
    if inside:  # each compared value for itself
        return float(np.abs(pair.difference()).max(initial=0.0))
    return step_loss(pair) * entry.scale
