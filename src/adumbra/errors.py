"""Every exception that Adumbra raises on purpose.

    AdumbraError
    ├─ InvalidInput            exit code 2: a public argument, schema or file is wrong
    │  ├─ SchemaError          the schema file: every fault at once, with its position
    │  └─ Unsupported          a combination that has no proof (other unit, other relation, ...)
    ├─ BudgetRefused           exit code 3: asked, left, and the largest request that would pass
    ├─ VerificationFailed      exit code 4: a release or a ledger is not what it claims
    ├─ LedgerError             exit code 1: the ledger cannot do this now (wrong state, busy, gone)
    │  └─ LedgerNotWritable    exit code 8: it can be read, and not written (read-only, no space)
    ├─ NoSpace                 exit code 5: the disk or the quota is full; an OSError too
    ├─ NotWritable             exit code 6: read-only file system or no permission; an OSError too
    ├─ OutOfMemory             exit code 7: less memory than the method needs; a MemoryError too
    ├─ ClusterFailed           exit code 9: workers or their scheduler were lost, or failed
    └─ NoiseKeyReused          one noise key met a second value: a defect, never the data's fault

    PrivacyCostWarning         an estimator is about to pay again for rows it may have released before

Messages read `name=value: rule; remedy` and hold public values only. No exception carries a value that
was read from a private row, neither in its text nor as an attribute.
"""

import errno
import os
import re
from typing import NoReturn


class AdumbraError(Exception):
    """The root; `exit_code` is what the command line returns for it."""

    exit_code = 1


class InvalidInput(AdumbraError, ValueError):
    """A public argument breaks a rule that the message names."""

    exit_code = 2


class SchemaError(InvalidInput):
    """A schema file breaks its rules; `faults` lists all of them as (position, message)."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


class Unsupported(InvalidInput):
    """What was asked has no proof here, so it is refused rather than approximated."""


class BudgetRefused(AdumbraError):
    """The population's cap does not allow this spend; the numbers are the message's, in epsilon."""

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        asked: float | None = None,
        left: float | None = None,
        largest: float | None = None,
    ) -> None:
        self.asked, self.left, self.largest = asked, left, largest
        super().__init__(message)


class ChargeNote(str):
    """A note on whatever stopped a release after its charge: which entry, and what can be done now."""

    __slots__ = ()


class Terminated(KeyboardInterrupt):
    """SIGTERM: the same stop as Ctrl-C, asked for by the system."""


class VerificationFailed(AdumbraError):
    """A hash, a signature, a chain or a state does not fit."""

    exit_code = 4


class LedgerError(AdumbraError):
    """The ledger is readable but this act is not possible on it."""


class LedgerNotWritable(LedgerError):
    """The ledger can be read, and nothing can be written to it."""

    exit_code = 8


class NoSpace(AdumbraError, OSError):
    """No space is left, on the disk or in the quota."""

    exit_code = 5


class NotWritable(AdumbraError, OSError):
    """A place that is read-only, or that this user may not use."""

    exit_code = 6


class OutOfMemory(AdumbraError, MemoryError):
    """The method needs more memory than there is."""

    exit_code = 7


class ClusterFailed(AdumbraError):
    """Workers of a cluster, or the scheduler, were lost or did something else than they were asked."""

    exit_code = 9


class NoiseKeyReused(AdumbraError):
    """The same noise key was used for another value, scale or shape."""


class PrivacyCostWarning(UserWarning):
    """A further release is about to be paid for; made an error, it stops before the payment."""


TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # bidirectional controls


def visible(text: object, *, keep: str = "") -> str:
    """Text that cannot steer a terminal or turn what stands beside it: what is invisible is escaped."""
    return "".join(
        letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in str(text)
    )


# What the system says, by its number: our error and the remedy. Its own text may name a private file.
_SYSTEM: dict[int, tuple[type[AdumbraError], str]] = {
    errno.ENOSPC: (NoSpace, "the disk is full; make room or choose another place"),
    errno.EDQUOT: (NoSpace, "the quota is used up; make room or choose another place"),
    errno.EROFS: (NotWritable, "the file system is read-only; choose another place"),
    errno.EACCES: (NotWritable, "permission denied; choose another place, or ask for the right"),
    errno.EPERM: (NotWritable, "permission denied; choose another place, or ask for the right"),
}


def system_fault(error: BaseException, name: str) -> AdumbraError | None:
    """Our error for a fault of the machine that has a name (no space, no right, no memory), else None.

    `name` says where it happened, as `out=folder`. Nothing of the error's own text is kept.
    """
    if isinstance(error, AdumbraError):
        return None
    if isinstance(error, MemoryError):
        return OutOfMemory(
            f"{name}: not enough memory; use a machine with more, or fewer columns or rows"
        )
    if isinstance(error, OSError) and error.errno in _SYSTEM:
        kind, words = _SYSTEM[error.errno]
        return kind(f"{name}: {words}")
    return None


def unreadable(error: OSError) -> InvalidInput:
    """What is said of data that the system no longer lets us read, by its number and not by its text."""
    reason = os.strerror(error.errno) if error.errno else "input/output error"
    return InvalidInput(f"data: cannot be read any more ({reason}); check the files and their modes")


def raise_alone(fault: AdumbraError) -> NoReturn:
    """Raise an error that no other one is the cause or the context of.

    `from None` hides a context and keeps it; Python sets one wherever another error is being handled.
    """
    try:
        raise fault
    except AdumbraError:
        fault.__context__ = None
        raise


def require(rule: bool, message: str) -> None:
    """Raise `InvalidInput(message)` unless the rule holds."""
    if not rule:
        raise InvalidInput(message)
