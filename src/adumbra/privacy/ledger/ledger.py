"""The ledger: who may still spend how much, what was spent, and where each spend stands."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, inspect, select

from adumbra.attestation.signers import Signer
from adumbra.errors import AdumbraError, InvalidInput, LedgerError, VerificationFailed
from adumbra.privacy.ledger import (
    accounts,
    crash_points,
    declarations,
    files,
    log,
    protocol,
    statements,
)
from adumbra.privacy.ledger.chain import sees_part_of_keys
from adumbra.privacy.ledger.check import Verified, check
from adumbra.privacy.ledger.model import FORMAT, keys
from adumbra.privacy.ledger.operated import Operated
from adumbra.privacy.ledger.store import Store
from adumbra.privacy.ledger.values import REMEDY, Population, State, Statement


class Ledger(Operated):
    """An open ledger; every method is one durable act or one consistent reading."""

    def __init__(self, store: Store, operator: Signer | None = None) -> None:
        self._store, self._operator = store, operator
        try:
            known = self._read_keys()
            self._id = known["ledger"]
            self._public_key = known["public_key"]
            self._fingerprint_key = bytes.fromhex(known["fingerprint_key"])
            signing = known["signing_key"]  # empty where this database role may not read it
            key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(signing)) if signing else None
            self._signing_key = key
            if operator is not None:
                self._require_enrolled(operator)
        except (KeyError, ValueError) as error:
            store.close()
            if isinstance(error, AdumbraError):
                raise
            raise VerificationFailed(f"ledger={store.name}: its keys are damaged") from None
        except BaseException:
            store.close()
            raise

    def _read_keys(self) -> dict[str, str]:
        name = self._store.name
        with self._store.read() as connection:
            if not inspect(connection).has_table(keys.name):
                raise InvalidInput(f"ledger={name}: not a ledger; make one with `adumbra ledger init`")
            known = {row.name: row.value for row in connection.execute(select(keys))}
            if sees_part_of_keys(connection, known):
                known = {"signing_key": "", "fingerprint_key": "", **known}
        if known.get("format") != FORMAT:
            raise LedgerError(f"ledger={name}: its format is not {FORMAT}; use the version that made it")
        return known

    def close(self) -> None:
        """Close the connections; the ledger can be opened again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        """For notebooks."""
        return statements.to_html(self.show())

    # Populations

    def register(self, population: Population) -> None:
        """Open an account for a population."""
        with self._acts() as chain:
            accounts.register(chain, population)

    def populations(self) -> tuple[Population, ...]:
        """Every registered population, by name."""
        with self._store.read() as connection:
            return tuple(account.population for account in accounts.all_accounts(connection))

    def change_delta(
        self, population: str, delta: float, reason: str, *, epsilon: float | None = None
    ) -> None:
        """Count with another delta, and a higher cap if one is given, before anything was charged."""
        with self._acts() as chain:
            accounts.change_delta(chain, population, delta, epsilon, reason)

    def link(self, population: str, parent: str, reason: str) -> None:
        """Make a population the child of another; what it has spent is charged there too."""
        with self._acts() as chain:
            declarations.require_undeclared(chain.connection, population, parent)
            accounts.link(chain, population, parent, reason)

    def declare_different(self, population: str, other: str, reason: str) -> None:
        """Record that two populations hold different people."""
        with self._acts() as chain:
            declarations.declare_different(chain, population, other, reason)

    def withdraw_different(self, population: str, other: str, reason: str) -> None:
        """Take back a declaration that two populations hold different people."""
        with self._acts() as chain:
            declarations.withdraw_different(chain, population, other, reason)

    def resume(
        self,
        entry_id: str,
        target: Path | None = None,
        *,
        digest_of: Callable[[Path], str],
    ) -> Path:
        """Finish a sealed entry after a crash: publish the same bytes, by their digest; idempotent.

        A target goes before the one recorded while the bytes are still staged: that may be taken by now.
        `digest_of` made the digest that `seal` was given: how releases are hashed is not known here.
        """
        with self._store.read() as connection:
            row = accounts.load(connection, entry_id)
            recorded = protocol.places(connection, row)
        state = State(row["state"])
        if state not in (State.SEALED, State.PUBLISHING, State.PUBLISHED):
            raise LedgerError(f"entry={entry_id}: is {state}, nothing is sealed; {REMEDY[state]}")
        if not recorded and target is None:
            raise LedgerError(
                f"entry={entry_id}: sealed without a target; say where it shall be published"
            )
        staged = Path(row["staged"])
        current = _holder([staged, *reversed(recorded)], target or recorded[-1])
        if digest_of(current) != row["digest"]:
            raise VerificationFailed(
                f"entry={entry_id}: the bytes at {current} are not those that were sealed"
            )
        crash_points.checkpoint("resume: checked")
        place = (target or recorded[-1]).absolute() if current == staged else current
        if state is State.SEALED:
            self.publish(entry_id, place)
        elif current == staged:
            self._publish_again(entry_id, staged, place, is_recorded=place == recorded[-1])
        else:
            if place != recorded[-1]:
                self._retarget(entry_id, place)
            files.flush_move(staged, place)
        if state is not State.PUBLISHED:
            self.commit(entry_id)
        files.open_to_readers(place)
        return place

    def _publish_again(self, entry_id: str, staged: Path, place: Path, *, is_recorded: bool) -> None:
        """Move what is still staged to its place, or to another one."""
        if is_recorded and os.path.lexists(place):
            raise LedgerError(
                f"target={place}: exists already; free the place, or resume with --target elsewhere"
            )
        if not is_recorded:
            files.require_target(staged, place)
            self._retarget(entry_id, place)
        files.move(staged, place)

    def _retarget(self, entry_id: str, place: Path) -> None:
        with self._acts() as chain:
            protocol.retarget(chain, entry_id, place)

    # Reading

    def show(self, population: str | None = None) -> tuple[Statement, ...]:
        """The statement of one population, or of all."""
        with self._store.read() as connection:
            return statements.read(connection, population)

    def standing(self, entry_id: str) -> str:
        """Where an entry stands and what can be done with it, in a sentence; for whoever was stopped."""
        try:
            with self._store.read() as connection:
                state = State(accounts.load(connection, entry_id)["state"])
        except (InvalidInput, LedgerError):
            return f"entry={entry_id}: stays charged; `adumbra ledger show` tells where it stands"
        return f"entry={entry_id}: is {state} and stays charged; {REMEDY[state]}"

    def verify(
        self, against_card: Mapping[str, Any] | None = None, *, card_digest: str | None = None
    ) -> Verified:
        """Check chains, signatures, sums and states, and that a card's head is part of this history.

        `card_digest`, the SHA-256 of the card's file, also shows that it is the card that was sealed.
        """
        with self._store.read() as connection:
            return check(connection, against_card, card_digest)

    def withdraw(self, entry_id: str, reason: str) -> None:
        """Say in the public log that a release shall no longer be used; it stays charged."""
        with self._acts() as chain:
            log.withdraw(chain, entry_id, reason)

    def supersede(self, entry_id: str, by: str, reason: str) -> None:
        """Say in the public log that another release takes the place of this one."""
        with self._acts() as chain:
            log.supersede(chain, entry_id, by, reason)

    def note_evaluation(self, noted: Sequence[str]) -> None:
        """Say in the public log that releases are held against private rows; before a row is read."""
        with self._acts() as chain:
            log.note_evaluation(chain, noted)

    def evaluated(self, population: str) -> tuple[str, ...]:
        """Releases of the population, and of those that share its people, that were evaluated."""
        with self._store.read() as connection:
            return log.evaluated(connection, population)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """The tables as they stand at one moment, secrets included: for a backup and nothing else."""
        with self._store.read() as connection:
            yield connection

    def maintain(self, work: Callable[[Connection], bool]) -> bool:
        """One transaction on the tables beside the log: for `migrate_ledger` and nothing else."""
        with self._store.write() as connection:
            return work(connection)


def _holder(places: Sequence[Path], otherwise: Path) -> Path:
    """Where the bytes of an entry are: the first place that holds a folder."""
    return next((place for place in places if place.is_dir()), otherwise)
