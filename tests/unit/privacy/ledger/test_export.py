"""Exports: the public one can be checked by anyone and names no one."""

import json
import stat

import pyarrow.parquet as pq
import pytest

from adumbra.attestation.events import canonical
from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.privacy.ledger import verify_export
from adumbra.privacy.ledger.log import read_export
from support.ledger import register, reserve, run

SECRETS = ("Ann Owner", "pin-of-the-source", "staged", "release-", "fingerprint")


@pytest.fixture
def used(ledger, tmp_path):
    register(ledger, owner="Ann Owner", purpose="research")
    entry = ledger.reserve(
        "people", _tenth(), request={"method": "dppro", "epsilon": 0.1}, source_pin="pin-of-the-source"
    )
    run(ledger, tmp_path, entry)
    ledger.record_fingerprint(entry, ledger.fingerprint(3))
    ledger.void(reserve(ledger), "a mistake")
    return ledger


def _tenth():
    from support.ledger import ask

    return ask(0.1)


def test_the_public_export_verifies_and_names_no_one(used, tmp_path):
    path = tmp_path / "log.jsonl"
    used.export(path)
    text = path.read_text()
    assert verify_export(path) == used.head().sequence == len(text.splitlines()) - 1
    assert [secret for secret in (*SECRETS, str(tmp_path)) if secret in text] == []
    assert "research" in text
    assert {"init", "register", "reserve", "draw", "seal", "publish", "commit", "void"} == {
        json.loads(line)["event"]["kind"] for line in text.splitlines()[1:]
    }
    days = {json.loads(line)["event"]["day"] for line in text.splitlines()[1:]}
    assert all(len(day) == len("2026-01-01") for day in days)


def test_the_private_export_is_its_owners_alone_and_has_no_fingerprint(used, tmp_path):
    path = tmp_path / "log.jsonl"
    used.export(path, public=False)
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "Ann Owner" in text
    assert "pin-of-the-source" in text
    assert "sketch" not in text
    assert '"event":null' in text


@pytest.mark.parametrize("public", [True, False])
def test_parquet_holds_the_same_events(used, tmp_path, public):
    used.export(tmp_path / "log.parquet", public=public)
    table = pq.read_table(tmp_path / "log.parquet")
    logs = table["log"].to_pylist()
    head = json.loads(table.schema.metadata[b"adumbra-ledger"])
    assert head["hash"] == used.head().hash == table["hash"].to_pylist()[logs.count("public") - 1]
    assert ("private" in logs) is not public
    assert [secret for secret in SECRETS if secret in str(table["body"].to_pylist())] == [] or not public


def test_refused_paths(used, tmp_path):
    with pytest.raises(InvalidInput, match=r"\.jsonl or \.parquet"):
        used.export(tmp_path / "log.csv")
    used.export(tmp_path / "log.jsonl")
    with pytest.raises(InvalidInput, match="exists already"):
        used.export(tmp_path / "log.jsonl")


def test_every_altered_line_is_seen(used, tmp_path):
    path = tmp_path / "log.jsonl"
    used.export(path)
    lines = path.read_bytes().splitlines()

    def fails(changed):
        path.write_bytes(b"\n".join(changed))
        with pytest.raises(VerificationFailed):
            verify_export(path)

    fails(lines[:-1])
    fails([*lines[:2], *lines[3:]])
    fails([lines[0].replace(b'"sequence":', b'"sequence":1'), *lines[1:]])
    fails([b"[]", *lines[1:]])
    fails([b"not json"])
    fails([])
    fails([lines[0]])
    for number in range(1, len(lines)):
        event = json.loads(lines[number])
        event["event"]["day"] = "1999-01-01"
        fails([*lines[:number], canonical(event), *lines[number + 1 :]])


def rewritten(path, change):
    """An export whose first line was changed."""
    top, *lines = path.read_bytes().splitlines()
    known = json.loads(top)
    change(known)
    path.write_bytes(b"\n".join([canonical(known), *lines]))
    return path


def test_a_tree_of_another_log_is_refused(used, tmp_path):
    path = tmp_path / "log.jsonl"
    used.export(path)
    earlier = json.loads(path.read_bytes().splitlines()[0])["log_head"]
    reserve(used)
    path = tmp_path / "later.jsonl"
    used.export(path)
    verify_export(path)
    rewritten(path, lambda top: top.update(log_head=earlier))
    with pytest.raises(VerificationFailed, match="the signed head of its tree is another log's"):
        verify_export(path)


def test_an_export_without_a_head_of_its_tree_is_no_log(used, tmp_path):
    path = tmp_path / "log.jsonl"
    used.export(path)
    assert read_export(path).head.size == used.head().sequence
    rewritten(path, lambda top: top.pop("log_head"))
    verify_export(path)  # as an earlier version wrote it
    with pytest.raises(VerificationFailed, match="has no signed head of its tree; ask for a new export"):
        read_export(path)
