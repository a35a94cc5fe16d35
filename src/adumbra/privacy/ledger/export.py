"""The log as a file: JSON Lines or Parquet.

The public export is the public chain itself: its reader can check every hash and the signature with
`verify_export`, and finds no path, no person's name and no time finer than a day in it. The private
export adds the private chain, without the fingerprints: those never leave.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, select

from adumbra.attestation.loghead import LogHead
from adumbra.attestation.merkle import Tree
from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.privacy.ledger.chain import GENESIS, Log, canonical, head_message, is_signed, link_hash
from adumbra.privacy.ledger.model import FORMAT, events, heads, keys


def write_export(connection: Connection, path: Path, *, public: bool) -> None:
    """Write `path` (.jsonl or .parquet); refuses to overwrite."""
    if path.suffix not in (".jsonl", ".parquet"):
        raise InvalidInput(f"path={path.name}: must end in .jsonl or .parquet")
    if path.exists():
        raise InvalidInput(f"path={path.name}: exists already")
    known = {row.name: row.value for row in connection.execute(select(keys))}
    head = connection.execute(select(heads).where(heads.c.log == "public")).one()
    top = {
        "format": FORMAT,
        "ledger": known["ledger"],
        "public_key": known["public_key"],
        "sequence": head.sequence,
        "hash": head.hash,
        "signature": head.signature,
    }
    rows = list(_rows(connection, "public"))
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(known["signing_key"]))
    tree = Tree(row["body"].encode() for row in rows)
    top["log_head"] = LogHead.sign(key, known["ledger"], tree, len(rows)).to_dict()
    if not public:
        rows += _rows(connection, "private")
    # A private export is its owner's alone, as the ledger is.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if public else 0o600))
    if path.suffix == ".jsonl":
        lines = [top, *({"hash": row["hash"], "event": json.loads(row["body"])} for row in rows)]
        path.write_bytes(b"".join(canonical(line) + b"\n" for line in lines))
    else:
        _write_parquet(path, top, rows)


def _rows(connection: Connection, log: Log) -> Iterator[dict[str, Any]]:
    """The events of one log; a fingerprint is left out, its hash stays."""
    for row in connection.execute(select(events).where(events.c.log == log).order_by(events.c.sequence)):
        event = json.loads(row.body)
        withheld = event["kind"] == "fingerprint"
        yield {
            "log": log,
            "sequence": row.sequence,
            "day": event["day"],
            "kind": event["kind"],
            "body": "null" if withheld else row.body,
            "hash": row.hash,
        }


def _write_parquet(path: Path, top: dict[str, object], rows: list[dict[str, Any]]) -> None:
    types = {name: pa.int64() if name == "sequence" else pa.string() for name in rows[0]}
    schema = pa.schema(types.items(), metadata={"adumbra-ledger": canonical(top)})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def verify_export(path: Path) -> int:
    """Check a public JSON Lines export offline, every link and the signature; counts its events."""
    try:
        top, *lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        previous, sequence = GENESIS, 0
        for sequence, line in enumerate(lines, start=1):
            previous_hash = link_hash(canonical(line["event"]), previous)
            if line["hash"] != previous_hash or line["event"]["sequence"] != sequence:
                raise VerificationFailed(f"event {sequence}: the chain is broken")
            previous = previous_hash
        message = head_message(top["ledger"], "public", sequence, previous)
        signed = is_signed(top["public_key"], message, top["signature"])
    except (KeyError, TypeError, ValueError) as error:
        raise VerificationFailed("export: not a readable public export") from error
    if not signed or (top["sequence"], top["hash"]) != (sequence, previous):
        raise VerificationFailed("export: its head is not the end of its chain")
    return sequence
