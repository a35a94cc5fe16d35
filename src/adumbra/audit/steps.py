"""Whether the grant saw every step that hides its noise, and each did what it described.

The noise of a comparison or of `joint` never leaves, so its calls are not judged one by one: the step
is, by its description in `Grant.step`. Two mistakes would go unseen, and both are findings:

    outside     noise made for such a step, drawn where the grant saw none
    another     a step that does other than it describes; production code runs again on the description,
                with the same keys, and must make the same calls and return the same
"""

import numpy as np

from adumbra.audit.recorder import Recorded
from adumbra.audit.transcripts import belongs_inside
from adumbra.errors import VerificationFailed
from adumbra.mechanisms.topk import joint, svt
from adumbra.mechanisms.topk.joint import joint_sequence
from adumbra.mechanisms.topk.svt import drawing, label_columns, marker
from adumbra.privacy.grant import NoiseCall
from adumbra.privacy.recorded_noise import NoiseRecord, RecordedGrant, public_facts, recording_grant

Place = tuple[str, int]  # purpose and block
Calls = dict[Place, tuple[NoiseCall, object]]


def check_steps(recorded: Recorded) -> list[str]:
    """Noise outside a step that it is made for, and steps that did not do what they described."""
    record = recorded.record
    outside = {
        purpose: None
        for (purpose, block), (call, _) in record.calls.items()
        if belongs_inside(purpose, call.kind) and (purpose, block) not in record.inside
    }
    found = [f"{purpose}: compared or chosen outside a step of the grant" for purpose in outside]
    for number, (asked, returned) in enumerate(record.steps):
        made = {place: record.calls[place] for place, step in record.inside.items() if step == number}
        if not _is_as_described(recorded, asked, returned, made):
            purposes = ", ".join(sorted({purpose for purpose, _ in made})) or "no noise"
            found.append(f"step {number + 1} ({purposes}): does other than it describes to its grant")
    return found


def _is_as_described(recorded: Recorded, asked: object, returned: object, made: Calls) -> bool:
    """Whether production code makes the same calls for what was described, and returns the same."""
    planned, transcript, again = recorded.planned, recorded.transcript, NoiseRecord()
    grant = recording_grant(
        again, transcript.seed, planned.guarantee, planned.purposes, stretch=transcript.stretch
    )
    return np.array_equal(np.asarray(returned), np.asarray(_run_again(asked, grant, made))) and (
        _all_alike(again.calls, made)
    )


def _run_again(asked: object, grant: RecordedGrant, made: Calls) -> object:
    match asked:
        case svt.Asked():
            steps = {purpose for purpose, _ in made if marker(purpose) in grant.purposes}
            if len(steps) != 1:
                return None  # no noise at all, or that of several steps
            step = steps.pop()
            thresholds, columns = drawing(grant, marker(step)), drawing(grant, step)
            described = (asked.halves, asked.threshold, asked.schedule)
            return label_columns(*described, thresholds=thresholds, columns=columns)
        case joint.Asked():
            return joint_sequence(asked.counts, asked.k, asked.public, grant)
    raise VerificationFailed(f"step of type {type(asked).__name__}: cannot be run again; add it here")


def _all_alike(one: Calls, other: Calls) -> bool:
    """The same purposes and blocks, on the same values with the same noise."""
    return one.keys() == other.keys() and all(
        public_facts(call) == public_facts(other[place][0])
        and np.array_equal(call.value.units, other[place][0].value.units)
        for place, (call, _) in one.items()
    )
