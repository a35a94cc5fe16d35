"""The public log as a Merkle tree: heads for witnesses, and withdrawals.

The tree's entries are the bodies of the public events, in order, so each head of the chain has one root.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Connection

from adumbra.attestation.events import HeadKey, canonical
from adumbra.attestation.loghead import LogHead, Tree
from adumbra.attestation.witness import NOTICES, PublishedHead, WholeLog
from adumbra.errors import InvalidInput, VerificationFailed, require
from adumbra.privacy.ledger.chain import Chain, bodies
from adumbra.privacy.ledger.export import verify_export
from adumbra.privacy.ledger.populations import reason_of
from adumbra.privacy.ledger.protocol import load
from adumbra.privacy.ledger.values import State

MOST_EARLIER = 256  # proofs from earlier heads in one head file: the latest releases


def _tree(texts: Iterable[str]) -> Tree:
    return Tree(text.encode() for text in texts)


def _notices(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if json.loads(text)["kind"] in NOTICES]


def publish_head(
    connection: Connection, ledger: str, key: HeadKey, since: Iterable[int]
) -> PublishedHead:
    """The head of now, with proofs from the releases' own heads and from the sizes asked for."""
    texts = bodies(connection)
    tree = _tree(texts)
    sealed = [at for at, text in enumerate(texts, start=1) if json.loads(text)["kind"] == "seal"]
    asked = list(since)
    require(
        all(0 < size <= len(texts) for size in asked),
        "since: is newer than this ledger; was the ledger rolled back?",
    )
    sizes = sorted({*sealed[-MOST_EARLIER:], *asked})
    head = LogHead.sign(key, ledger, tree, len(texts))
    return PublishedHead.make(key, head, tree, _notices(texts), sizes)


def whole_log(connection: Connection, ledger: str, public_key: bytes, key: HeadKey | None) -> WholeLog:
    """The log of an open ledger; without a key its head has no signature and is for comparing only."""
    texts = bodies(connection)
    tree = _tree(texts)
    bare = LogHead(
        ledger=ledger, public_key=public_key, size=len(texts), root=tree.root(), signature=b""
    )
    head = bare if key is None else LogHead.sign(key, ledger, tree, len(texts))
    return WholeLog(head=head, tree=tree, notices=tuple(_notices(texts)))


def read_export(path: Path) -> WholeLog:
    """The log of a public JSON Lines export, after every link and the signature were checked."""
    verify_export(path)
    top, *lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    texts = [canonical(line["event"]).decode() for line in lines]
    tree = _tree(texts)
    try:
        head = LogHead.read(top["log_head"])
        is_ours = head.issuer == (top["ledger"], bytes.fromhex(top["public_key"]))
    except (KeyError, TypeError, ValueError):
        is_ours = False
    if not is_ours or (head.size, head.root) != (len(tree), tree.root()):
        raise VerificationFailed("export: has no signed head of its tree; ask for a new export")
    return WholeLog(head=head, tree=tree, notices=tuple(_notices(texts)))


def withdraw(chain: Chain, entry: str, reason: str) -> None:
    """Say that a published release shall no longer be used; it stays charged."""
    text = reason_of(reason)
    digest = _published(chain.connection, entry)
    _require_no_notice(chain.connection, entry)
    chain.act("withdraw", {"entry": entry, "digest": digest, "reason": text})


def supersede(chain: Chain, entry: str, by: str, reason: str) -> None:
    """Say that another published release shall be used in place of this one."""
    text = reason_of(reason)
    require(entry != by, f"by={by}: is the release itself; name the one that takes its place")
    digest, other = _published(chain.connection, entry), _published(chain.connection, by)
    _require_no_notice(chain.connection, entry)
    chain.act(
        "supersede", {"entry": entry, "digest": digest, "by": by, "by_digest": other, "reason": text}
    )


def note_evaluation(chain: Chain, noted: Iterable[str]) -> None:
    """Write that published releases are about to be held against private rows."""
    for entry in noted:
        chain.act("evaluate", {"entry": entry, "digest": _published(chain.connection, entry)})


def _published(connection: Connection, entry: str) -> str:
    """The digest of a published entry."""
    row = load(connection, entry)
    if row["state"] != State.PUBLISHED:
        raise InvalidInput(f"entry={entry}: is {row['state']}; this needs a published release")
    return str(row["digest"])


def _require_no_notice(connection: Connection, entry: str) -> None:
    for text in _notices(bodies(connection)):
        notice = json.loads(text)
        require(
            notice["entry"] != entry,
            f"entry={entry}: there is a notice on it already ({notice['kind']}, {notice['day']})",
        )
