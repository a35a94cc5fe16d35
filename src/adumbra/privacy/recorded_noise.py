"""NOT PRIVATE: grants with a known secret, and noise recorded on a table and replayed on its neighbour.

Only the audit and the tests import this module (an import contract). Production has no way in: a
`NoiseKey` calls its own `apply`, and only the keys made here have another one.

    record = NoiseRecord()
    first = release(table, config, engine=..., grant=recording_grant(record, seed, guarantee, purposes))
    second = release(neighbour, config, engine=..., grant=replaying_grant(record, seed, ...))
    record.pairs        # at each noise call: both exact values and both declared scales

In the replay every noise call returns the noisy value that was recorded, whatever its own value is. If
the two releases then differ, something private went around the noise; and the pairs show the real
sensitivity. A call whose kind, shape, grid or scale differs is refused: noise that follows the rows in
its width gives them away, and no difference of values would show it.

A grant with `stretch` above 1 records noise that is so many times wider: every noise value has a chance
in every release, so what must hold for all of them can be looked at where they are rare.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from adumbra.errors import VerificationFailed
from adumbra.numerics import Array, Lattice
from adumbra.privacy.grant import Grant, NoiseCall, NoiseKey, Secret, derive_secret

if TYPE_CHECKING:
    from adumbra.privacy.guarantee import PrivacyGuarantee

T = TypeVar("T")
NOT_PRIVATE = "NOT PRIVATE"
FARTHEST = 2.0**52  # grid steps that stretched noise reaches at most


@dataclass(frozen=True, slots=True, eq=False)
class FixedGrant(Grant):
    """A grant whose secret anybody can compute."""

    secret: Secret = field(repr=False)  # given here, never in a `Grant`

    @property
    def not_private(self) -> bool:
        """Always: whoever knows the seed can take the noise off."""
        return True


def fixed_grant(seed: int, guarantee: "PrivacyGuarantee", purposes: tuple[str, ...]) -> FixedGrant:
    """A grant with reproducible noise, for tests and for attacks on a mechanism."""
    return FixedGrant(f"{NOT_PRIVATE}-{seed}", guarantee, purposes, NOT_PRIVATE, _known_secret(seed))


def _known_secret(seed: int) -> Secret:
    return Secret(hashlib.sha256(f"{NOT_PRIVATE}:{seed}".encode()).digest())


@dataclass(frozen=True, slots=True, eq=False)
class NoisePair:
    """One noise call on a table and on its neighbour."""

    purpose: str
    block: int
    first: NoiseCall
    second: NoiseCall

    def difference(self) -> Array:
        """The second value minus the first in the real unit, exact while below 2^53 grid steps."""
        units = self.second.value.units - self.first.value.units
        return np.ldexp(units.astype(np.float64), self.first.value.exponent)

    def l1(self) -> float:
        """The L1 distance of the two exact values."""
        return float(np.abs(self.difference()).sum())

    def l2(self) -> float:
        """The L2 distance of the two exact values."""
        return float(np.sqrt(np.square(self.difference()).sum()))

    def spread(self) -> float:
        """The range of the differences, max - min: what a selection pays for."""
        difference = self.difference()
        return float(difference.max() - difference.min())


@dataclass(slots=True, eq=False)
class NoiseRecord:
    """The noise calls of a first run with their outputs, and the pairs that a second run makes."""

    calls: dict[tuple[str, int], tuple[NoiseCall, object]] = field(default_factory=dict)
    pairs: list[NoisePair] = field(default_factory=list)
    steps: list[tuple[object, object]] = field(default_factory=list)  # asked and returned, first run
    steps_again: list[object] = field(default_factory=list)  # asked in the second run
    within: set[tuple[str, int]] = field(default_factory=set)  # calls that only a whole step replays
    inside: dict[tuple[str, int], int] = field(default_factory=dict)  # the step that a call is part of
    _whole: bool = False  # whether the first run is inside such a step now
    _step: int | None = None  # the step that the first run is inside now

    def unmatched(self) -> tuple[tuple[str, int], ...]:
        """The recorded (purpose, block) that no replay has asked for yet."""
        seen = {(pair.purpose, pair.block) for pair in self.pairs}
        return tuple(sorted(self.calls.keys() - seen - self.within))

    def followed(self) -> "NoiseRecord":
        """The same first run, for one more second run."""
        return NoiseRecord(calls=self.calls, steps=self.steps, within=self.within, inside=self.inside)

    def fault(self) -> str | None:
        """Why the second run, now over, did not follow the first."""
        missing = self.unmatched()
        if missing or len(self.steps) != len(self.steps_again):
            return f"noise calls on the table only: {missing}"
        return None

    def keep(self, key: NoiseKey, call: NoiseCall, output: T) -> T:
        """Store what a call of the first run returned."""
        self.calls[key.purpose, key.block] = (call, output)
        if self._whole:
            self.within.add((key.purpose, key.block))
        if self._step is not None:
            self.inside[key.purpose, key.block] = self._step
        return output

    def keep_step(self, asked: object, draw: Callable[[], T], *, whole: bool) -> T:
        """Store a step of the first run."""
        place = len(self.steps)
        self.steps.append((asked, None))
        outer = self._whole, self._step
        self._whole = self._whole or whole
        self._step = place if self._step is None else self._step
        try:
            output = draw()
        finally:
            self._whole, self._step = outer
        self.steps[place] = (asked, output)
        return output

    def replay_step(self, asked: object, draw: Callable[[], T], *, whole: bool) -> T:
        """The step again with the noise of the first run; a whole one returns what it returned there."""
        place = len(self.steps_again)
        self.steps_again.append(asked)
        if place >= len(self.steps) or type(self.steps[place][0]) is not type(asked):
            raise VerificationFailed(
                f"step {place + 1}: on the neighbour only; steps must not depend on data"
            )
        return cast("T", self.steps[place][1]) if whole else draw()

    def replay(self, key: NoiseKey, call: NoiseCall) -> object:
        """What the first run returned here; refuses a call that the first run did not make alike."""
        where = f"purpose={key.purpose!r}, block={key.block}"
        if (key.purpose, key.block) not in self.calls:
            raise VerificationFailed(
                f"{where}: drawn on the neighbour only; calls must not depend on data"
            )
        first, output = self.calls[key.purpose, key.block]
        if public_facts(first) != public_facts(call):
            raise VerificationFailed(f"{where}: kind, shape, grid or scale differ; they must be public")
        self.pairs.append(NoisePair(key.purpose, key.block, first, call))
        return output


def public_facts(call: NoiseCall) -> tuple[object, ...]:
    """All of a call but its value."""
    scale = np.asarray(call.scale, np.float64)
    return (
        *(call.kind, call.detail, call.value.exponent, call.value.units.shape),
        *(scale.shape, scale.tobytes()),
    )


class RecordedKey(NoiseKey):
    """A key that writes to a record, or reads from it."""

    __slots__ = ("_record", "_replays", "_stretch")

    def __init__(self, grant: "RecordedGrant", purpose: str, block: int) -> None:
        super().__init__(
            purpose, block, derive_secret(grant.secret.reveal(), purpose, block), grant.claims
        )
        self._record = grant.record
        self._replays = grant.replays
        self._stretch = grant.stretch

    def apply(self, call: NoiseCall, draw: Callable[[], T]) -> T:
        """Draw and record, or return what was recorded."""
        if self._replays:
            self.claim(self._digest(call))
            return cast("T", self._record.replay(self, call))  # recorded from the same kind of `draw`
        drawn = super().apply(call, draw)
        if self._stretch != 1:
            drawn = cast("T", self._stretched(call, drawn))
        return self._record.keep(self, call, drawn)

    def _stretched(self, call: NoiseCall, drawn: object) -> object:
        """Another outcome of the same call that has a chance: wider noise, or any indices."""
        if isinstance(drawn, Lattice):
            units = call.value.units
            noise = np.clip((drawn.units - units) * float(self._stretch), -FARTHEST, FARTHEST)
            return Lattice(units + noise.astype(np.int64), call.value.exponent)
        words = self.words("stretched", call.value.units.size)
        return np.argsort(words, kind="stable")[: call.detail].astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedGrant(FixedGrant):
    """A fixed grant whose keys record or replay."""

    record: NoiseRecord = field(default_factory=NoiseRecord, repr=False)
    replays: bool = False
    stretch: int = 1  # how many times wider than drawn the recorded noise is

    def key(self, purpose: str, block: int = 0) -> RecordedKey:
        """The recorded key of a declared purpose."""
        self.require_usable(purpose, block)
        return RecordedKey(self, purpose, block)

    def step(self, asked: object, draw: Callable[[], T], *, whole: bool = False) -> T:
        """Run the step and note it, or run it again."""
        run = self.record.replay_step if self.replays else self.record.keep_step
        return run(asked, draw, whole=whole)


def recording_grant(
    record: NoiseRecord,
    seed: int,
    guarantee: "PrivacyGuarantee",
    purposes: tuple[str, ...],
    *,
    stretch: int = 1,
) -> RecordedGrant:
    """A fixed grant that writes every noise call to `record`."""
    name, secret = f"{NOT_PRIVATE}-{seed}", _known_secret(seed)
    return RecordedGrant(name, guarantee, purposes, NOT_PRIVATE, secret, record=record, stretch=stretch)


def replaying_grant(
    record: NoiseRecord, seed: int, guarantee: "PrivacyGuarantee", purposes: tuple[str, ...]
) -> RecordedGrant:
    """A fixed grant whose noise calls return what `record` holds; it adds to `record.pairs`."""
    name = f"{NOT_PRIVATE}-{seed}-replay"
    return RecordedGrant(
        name, guarantee, purposes, NOT_PRIVATE, _known_secret(seed), record=record, replays=True
    )
