"""The part of a ledger that its operators sign: who is enrolled, heads for readers, and raised caps.

A ledger without operators signs with its own key. From the first `enrol` on, every act needs the key of
an operator with the right to it, and the ledger's key does no more than enrol, dismiss and declare when
two are needed. There is no way back: a ledger whose operators are all dismissed waits for the next one.
"""

from collections.abc import Sequence
from pathlib import Path

from adumbra.attestation.events import (
    APPROVALS,
    RIGHTS,
    Approval,
    encode,
)
from adumbra.attestation.signers import Signer
from adumbra.attestation.sshsig import PublicKey
from adumbra.attestation.witness import PublishedHead, WholeLog
from adumbra.errors import InvalidInput, require
from adumbra.privacy.ledger import accounts, log, populations
from adumbra.privacy.ledger.chain import read_roll
from adumbra.privacy.ledger.export import write_export
from adumbra.privacy.ledger.grants import grants_sql
from adumbra.privacy.ledger.protocol import Spending


class Operated(Spending):
    """Acts and readings of a ledger that depend on who its operators are."""

    # Operators

    def _require_enrolled(self, operator: Signer) -> None:
        """Refuse a key that may do nothing here, when the ledger is opened."""
        with self._store.read() as connection:
            read_roll(connection).acting(operator)

    def enrol(self, key: PublicKey | str | Path, rights: Sequence[str], name: str = "") -> str:
        """Let the holder of a key act with these rights; returns the operator's id, a fingerprint.

        The name stays in the private log. A second enrolment of one key replaces its rights.
        """
        public = public_key_of(key)
        require(
            len(name) <= 400 and name.isprintable(), "name: one printable line of at most 400 letters"
        )
        said = {"operator": public.fingerprint(), "key": public.line(), "rights": rights_of(rights)}
        with self._acts() as chain:
            chain.act("enrol", said, {"name": name})
        return public.fingerprint()

    def dismiss(self, operator: str, reason: str) -> None:
        """Take all rights from an operator; what was signed before stays as it is."""
        with self._acts() as chain:
            require(operator in chain.roll.enrolled, f"operator={operator}: is not enrolled")
            chain.act("dismiss", {"operator": operator, "reason": populations.reason_of(reason)})

    def require_two(self, above: float, reason: str) -> None:
        """Declare the epsilon above which a cap is raised by two operators only."""
        require(0 < above < float("inf"), f"above={above!r}: must be a number above 0")
        with self._acts() as chain:
            require(chain.roll.has_operators, "above: this ledger has no operators; enrol two first")
            said = {"above": repr(float(above)), "reason": populations.reason_of(reason)}
            chain.act("require-two", said)

    def operators(self) -> dict[str, tuple[str, ...]]:
        """Id of each enrolled operator -> rights."""
        with self._store.read() as connection:
            return {name: one.rights for name, one in read_roll(connection).enrolled.items()}

    def threshold(self) -> float | None:
        """Above which epsilon a cap needs two operators; None: one is enough."""
        with self._store.read() as connection:
            found = read_roll(connection).threshold
        return None if found is None else float(found)

    def approve(self, population: str, epsilon: float, reason: str) -> Approval:
        """As a second operator: agree to one raise, from the cap of now to this one, for this reason."""
        self.require_right("raise-cap")
        require(self._operator is not None, "approve: this ledger has no operators")
        assert self._operator is not None  # noqa: S101 - as required above; tells mypy so
        with self._store.read() as connection:
            before = repr(accounts.lineage(connection, population)[0].population.epsilon)
        after, text = repr(float(epsilon)), populations.reason_of(reason)
        message = Approval.message(self._id, population, before, after, text)
        return Approval(
            ledger=self._id,
            population=population,
            before=before,
            epsilon=after,
            reason=text,
            operator=self._operator.public.fingerprint(),
            signature=encode(self._operator.sign(message, APPROVALS).signed),
        )

    def raise_cap(
        self, population: str, epsilon: float, reason: str, *, approval: Approval | None = None
    ) -> None:
        """Raise a cap for a written reason; it stays visible for ever."""
        if approval is not None:
            require(approval.ledger == self._id, "approval: is for another ledger")
        with self._acts() as chain:
            chain.approval = approval
            populations.raise_cap(chain, population, epsilon, reason)

    def grants(self, prefix: str = "adumbra") -> str:
        """SQL that makes rights binding on PostgreSQL: a role per right; nothing is run."""
        with self._store.read() as connection:
            return grants_sql(connection, prefix)

    # Heads

    def published_head(self, since: Sequence[int] = ()) -> PublishedHead:
        """The log's head for readers and witnesses, with proofs from earlier sizes."""
        with self._heads() as (connection, key):
            return log.publish_head(connection, self._id, key, since)

    def whole_log(self) -> WholeLog:
        """The public log with its tree; its head is signed where a key is at hand."""
        with self._store.read() as connection:
            roll = read_roll(connection)
            at_hand = self._operator if roll.has_operators else self._signing_key
            key = None if at_hand is None else self._head_key(roll)
            return log.whole_log(connection, self._id, roll.public_key, key)

    def export(self, path: Path, *, public: bool = True) -> None:
        """Write the log as JSON Lines or Parquet, by the name's ending; the public one names no one."""
        with self._heads() as (connection, key):
            write_export(connection, path, key, public=public)


def public_key_of(key: PublicKey | str | Path) -> PublicKey:
    """A public key: itself, the line of a `.pub` file, or the path of one."""
    if isinstance(key, PublicKey):
        return key
    text = str(key)
    if isinstance(key, str) and " " in text:
        return PublicKey.parse(text)
    try:
        return PublicKey.parse(Path(text).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"key={text}: cannot be read; give the .pub file of the operator") from None


def rights_of(words: object) -> list[str]:
    """Rights in their order, each once."""
    given = [str(one) for one in words] if isinstance(words, list | tuple) else [str(words)]
    unknown = [one for one in given if one not in RIGHTS]
    require(
        bool(given) and not unknown,
        f"rights={', '.join(unknown) or 'none'}: choose among {', '.join(RIGHTS)}",
    )
    return [one for one in RIGHTS if one in given]
