"""Make, open, or keep in memory: how a `Ledger` comes to be."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import URL, Connection, insert, inspect

from adumbra.errors import InvalidInput
from adumbra.privacy.ledger import files
from adumbra.privacy.ledger.chain import GENESIS, LOGS, Chain
from adumbra.privacy.ledger.ledger import Ledger
from adumbra.privacy.ledger.model import FORMAT, create_all, heads, keys
from adumbra.privacy.ledger.store import Store, check_file, parse_location


def create_ledger(location: str | Path) -> Ledger:
    """Make a new ledger: SQLite at a path (mode 0600), or PostgreSQL; never over an existing one."""
    url = parse_location(location)
    if url.get_backend_name() == "postgresql":
        store = Store(url)
        _initialise(store)
        return Ledger(store)
    final = Path(str(url.database))
    if os.path.lexists(final):
        raise InvalidInput(f"ledger={final}: exists already; open it or choose another name")
    if not final.parent.is_dir():
        raise InvalidInput(f"ledger={final}: its folder does not exist")
    # Made under a passing name and then linked, so that a crash leaves no half-made ledger.
    draft = final.with_name(f".{final.name}.{os.getpid()}.new")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        store = Store(URL.create("sqlite", database=str(draft)))
        _initialise(store)
        store.close()
        os.link(draft, final)
    finally:
        draft.unlink()
    files.flush(final.parent)
    return open_ledger(final)


def open_ledger(location: str | Path) -> Ledger:
    """Open a ledger that exists."""
    url = parse_location(location)
    check_file(url)
    return Ledger(Store(url))


def memory_ledger() -> Ledger:
    """A ledger that lives and dies with this object: for estimators that were given none."""
    store = Store(URL.create("sqlite"))
    _initialise(store)
    return Ledger(store)


def _initialise(store: Store) -> None:
    """Tables, guards, keys and the first event, in one transaction."""
    try:
        with store.write() as connection:
            _require_new(connection)
            create_all(connection)
            _write_keys(connection)
    except BaseException:
        store.close()
        raise


def _require_new(connection: Connection) -> None:
    if inspect(connection).has_table(keys.name):
        raise InvalidInput("ledger: exists already; open it")


def _write_keys(connection: Connection) -> None:
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
    chain.act("init", {"format": FORMAT, "ledger": ledger, "public_key": public_key}, private)
