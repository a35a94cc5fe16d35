"""Make, open, or keep in memory: how a `Ledger` comes to be."""

import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import URL, Connection, insert, inspect

from adumbra.attestation.signers import Signer, open_key
from adumbra.errors import InvalidInput
from adumbra.privacy.ledger import files
from adumbra.privacy.ledger.chain import GENESIS, LOGS, Chain
from adumbra.privacy.ledger.files import require_sharing
from adumbra.privacy.ledger.ledger import Ledger
from adumbra.privacy.ledger.model import FORMAT, create_all, heads, keys
from adumbra.privacy.ledger.store import Store, parse_location

UNSIGNED = "not signed by operators until one is enrolled"  # what the log of a new ledger says
Fill = Callable[[Connection], None]  # writes the rows of a new ledger into its empty tables


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
