"""The receipt for one spend: a grant holds the fresh secret from which all its noise keys derive.

The secret lives in memory only. It is never printed, copied, pickled or written, and a forked child of
the process that opened the grant cannot use it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, SupportsIndex, TypeVar

from adumbra.errors import require
from adumbra.privacy.keys import ClaimBook, NoiseKey, Secret, derive_key, refuse_copy

if TYPE_CHECKING:
    from adumbra.privacy.guarantee import PrivacyGuarantee

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Grant:
    """What the ledger hands out after a durable spend; a mechanism draws its keys from it.

    Its secret is fresh and cannot be given: a grant with a known secret is of another class, the
    auditor's, and says `not_private`.
    """

    entry_id: str
    guarantee: "PrivacyGuarantee"
    purposes: tuple[str, ...]  # declared by the plan; no other key exists
    ledger_head: str
    secret: Secret = field(default_factory=lambda: Secret(os.urandom(32)), repr=False, init=False)
    claims: ClaimBook = field(default_factory=ClaimBook, repr=False)

    def __post_init__(self) -> None:
        unique = len(set(self.purposes)) == len(self.purposes)
        require(
            bool(self.purposes) and unique and all(self.purposes),
            f"purposes={self.purposes}: must be distinct, non-empty names; declare one for each draw",
        )

    @property
    def not_private(self) -> bool:
        """Whether a test or an audit knows the secret; a release under it is stamped NOT PRIVATE."""
        return False

    def step(self, asked: object, draw: Callable[[], T], *, whole: bool = False) -> T:  # noqa: ARG002
        """Run a step whose outcome alone leaves, not the noisy values inside it: just `draw()`.

        The auditor's grants note what was `asked`. With `whole`, the draws inside choose among sets of
        private size, so that they can be replayed only together.
        """
        return draw()

    def key(self, purpose: str, block: int = 0) -> NoiseKey:
        """The noise key of a declared purpose and a block number."""
        self.require_usable(purpose, block)
        return derive_key(self.secret.reveal(), purpose, block, self.claims)

    def require_usable(self, purpose: str, block: int) -> None:
        """Refuse an undeclared purpose, a bad block number and a forked child."""
        self.claims.require_same_process()
        require(
            purpose in self.purposes,
            f"purpose={purpose!r}: not declared; the plan declares {', '.join(self.purposes)}",
        )
        require(0 <= block < 2**64, f"block={block}: must be a block number from 0 to 2^64 - 1")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        refuse_copy(self)


def open_grant(
    entry_id: str, guarantee: "PrivacyGuarantee", purposes: tuple[str, ...], ledger_head: str
) -> Grant:
    """A grant with a fresh 256-bit secret of the operating system; the ledger's `draw` calls this."""
    return Grant(entry_id, guarantee, tuple(purposes), ledger_head)
