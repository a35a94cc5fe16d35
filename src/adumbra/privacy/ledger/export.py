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
from sqlalchemy import Connection, select

from adumbra.attestation.events import (
    FORMAT,
    OWNER_KINDS,
    HeadKey,
    Roll,
    canonical,
    head_message,
    is_signed_hex,
    link_hash,
)
from adumbra.attestation.loghead import LogHead, Tree
from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.privacy.ledger.chain import GENESIS, Log
from adumbra.privacy.ledger.model import events, heads, keys


def write_export(connection: Connection, path: Path, key: HeadKey, *, public: bool) -> None:
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
    """Check a public JSON Lines export offline; counts its events.

    Every link, the signature of the chain's end, the signed head of the tree where there is one, and
    where there are operators that each act was signed by one who might do it.
    """
    try:
        top, *lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        roll = Roll(str(top["ledger"]), bytes.fromhex(top["public_key"]))
        previous, sequence = GENESIS, 0
        texts = []
        for sequence, line in enumerate(lines, start=1):
            raw = canonical(line["event"])
            following = link_hash(raw, previous)
            if line["hash"] != following or line["event"]["sequence"] != sequence:
                raise VerificationFailed(f"event {sequence}: the chain is broken")
            if fault := roll.fault(raw.decode(), previous):
                raise VerificationFailed(f"event {sequence}: {fault}")
            texts.append(raw)
            previous = following
        ends = (top["sequence"], top["hash"]) == (sequence, previous)
        signed = _end_is_signed(top, lines[-1]["event"])
        fits = "log_head" not in top or _tree_fits(top, Tree(texts))
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise VerificationFailed("export: not a readable public export") from error
    if not signed or not ends:
        raise VerificationFailed("export: its head is not the end of its chain")
    if not fits:
        raise VerificationFailed("export: the signed head of its tree is another log's")
    return sequence


def _end_is_signed(top: dict[str, Any], last: dict[str, Any]) -> bool:
    """By the ledger's key, or by the operator of the last event, whose signature was checked with it."""
    if "operator" in last and last["kind"] not in OWNER_KINDS:
        return bool(top["signature"] == last["signature"])
    message = head_message(top["ledger"], "public", top["sequence"], top["hash"])
    return is_signed_hex(top["public_key"], message, top["signature"])


def _tree_fits(top: dict[str, Any], tree: Tree) -> bool:
    head = LogHead.read(top["log_head"])  # raises where its signature does not hold
    issuer = (top["ledger"], bytes.fromhex(top["public_key"]))
    return (head.issuer, head.size, head.root) == (issuer, len(tree), tree.root())
