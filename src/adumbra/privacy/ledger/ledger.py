"""The ledger: who may still spend how much, what was spent, and where each spend stands.

`create_ledger` makes one, `open_ledger` opens it, `memory_ledger` keeps one in memory.
"""

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import URL, Connection, insert, inspect, select

from adumbra.attestation.events import FORMAT
from adumbra.attestation.signers import Signer, open_key
from adumbra.errors import AdumbraError, InvalidInput, LedgerError, VerificationFailed
from adumbra.privacy.ledger import (
    accounts,
    declarations,
    files,
    log,
    populations,
    protocol,
    statements,
)
from adumbra.privacy.ledger.chain import GENESIS, LOGS, Chain, sees_part_of_keys
from adumbra.privacy.ledger.check import Verified, check
from adumbra.privacy.ledger.files import require_sharing
from adumbra.privacy.ledger.model import create_all, heads, keys
from adumbra.privacy.ledger.operated import Operated
from adumbra.privacy.ledger.store import Store, parse_location
from adumbra.privacy.ledger.values import REMEDY, Population, State, Statement

UNSIGNED = "not signed by operators until one is enrolled"  # what the log of a new ledger says
Fill = Callable[[Connection], None]  # writes the rows of a new ledger into its empty tables


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
            populations.register(chain, population)

    def populations(self) -> tuple[Population, ...]:
        """Every registered population, by name."""
        with self._store.read() as connection:
            return tuple(account.population for account in accounts.all_accounts(connection))

    def change_delta(
        self, population: str, delta: float, reason: str, *, epsilon: float | None = None
    ) -> None:
        """Count with another delta, and a higher cap if one is given, before anything was charged."""
        with self._acts() as chain:
            populations.change_delta(chain, population, delta, epsilon, reason)

    def link(self, population: str, parent: str, reason: str) -> None:
        """Make a population the child of another; what it has spent is charged there too."""
        with self._acts() as chain:
            declarations.require_undeclared(chain.connection, population, parent)
            populations.link(chain, population, parent, reason)

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
            row = protocol.load(connection, entry_id)
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
        files.checkpoint("resume: checked")
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
                state = State(protocol.load(connection, entry_id)["state"])
        except (InvalidInput, LedgerError):
            return f"entry={entry_id}: stays charged; `adumbra ledger show` prints its state"
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


def create_ledger(location: str | Path) -> Ledger:
    """Make a new ledger: SQLite at a path (mode 0600), or PostgreSQL; never over an existing one."""
    return make_ledger(location, _write_keys)


def make_ledger(location: str | Path, fill: Fill) -> Ledger:
    """Tables, guards and first rows in one transaction; a crash or an error leaves no ledger."""
    url = parse_location(location)
    if url.get_backend_name() == "postgresql":
        store = Store(url)
        _initialise(store, fill)
        return Ledger(store)
    final = Path(str(url.database))
    require_new(final)
    # Made under a passing name and then linked, so that a crash leaves no half-made ledger.
    draft = final.with_name(f".{final.name}.{secrets.token_hex(8)}.new")
    held = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.fchmod(held, 0o600)  # whatever the umask is
        fcntl.flock(held, fcntl.LOCK_EX)  # `ledger clean` leaves it alone while we live
        require_sharing(draft)
        store = Store(URL.create("sqlite", database=str(draft)))
        _initialise(store, fill)
        store.close()
        os.link(draft, final)
    finally:
        draft.unlink()
        os.close(held)
    files.flush(final.parent)
    return open_ledger(final)


def require_new(path: Path, name: str = "ledger") -> None:
    """Nothing may stand where a new ledger (or a file beside it) goes, and its folder must be there."""
    if os.path.lexists(path):
        remedy = "open it or choose another name" if name == "ledger" else "choose another name"
        raise InvalidInput(f"{name}={path}: exists already; {remedy}")
    if not path.parent.is_dir():
        raise InvalidInput(f"{name}={path}: its folder does not exist; make it first")


def open_ledger(location: str | Path, *, operator: Signer | str | Path | None = None) -> Ledger:
    """Open a ledger that exists; the write-ahead log of an earlier version is moved into it.

    `operator` is the key of whoever acts, where operators are enrolled: a path, or what `open_key` made.
    """
    store = Store.open(location)
    return Ledger(store, open_key(operator) if isinstance(operator, str | Path) else operator)


def memory_ledger() -> Ledger:
    """A ledger that lives and dies with this object: for estimators that were given none."""
    store = Store(URL.create("sqlite"))
    _initialise(store, _write_keys)
    return Ledger(store)


def _initialise(store: Store, fill: Fill) -> None:
    """Tables, guards and first rows, in one transaction."""
    try:
        with store.write() as connection:
            _require_none(connection)
            create_all(connection)
            fill(connection)
    except BaseException:
        store.close()
        raise


def _require_none(connection: Connection) -> None:
    if inspect(connection).has_table(keys.name):
        raise InvalidInput("ledger: exists already; open it")


def _write_keys(connection: Connection) -> None:
    """Fresh keys and the first event."""
    signing_key = Ed25519PrivateKey.generate()
    secret = os.urandom(32)
    ledger, public_key = os.urandom(16).hex(), signing_key.public_key().public_bytes_raw().hex()
    values = {
        "format": FORMAT,
        "ledger": ledger,
        "public_key": public_key,
        "signing_key": signing_key.private_bytes_raw().hex(),
        "fingerprint_key": secret.hex(),
    }
    connection.execute(insert(keys), [{"name": name, "value": value} for name, value in values.items()])
    start = [{"log": log, "sequence": 0, "hash": GENESIS, "signature": ""} for log in LOGS]
    connection.execute(insert(heads), start)
    chain = Chain(connection, ledger, signing_key)
    private = {"fingerprint_key_hash": files.hash_bytes(secret)}
    public = {"format": FORMAT, "ledger": ledger, "public_key": public_key, "acts": UNSIGNED}
    chain.act("init", public, private)
