"""The log that others witness: proofs, heads, exports, roll-backs, forks and withdrawals."""

import json
import os
import shutil

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from adumbra import workflow
from adumbra.attestation.loghead import LogHead, Proof, Tree
from adumbra.attestation.witness import PublishedHead
from adumbra.errors import InvalidInput, LedgerError, VerificationFailed
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import create_ledger, open_ledger
from adumbra.release.artifact import find_faults, verify
from adumbra.release.detached import check_log, require_continued
from adumbra.schema.schema import Schema
from support.cli import in_process
from support.ledger import register, reserve

CONFIG = DPProConfig(n_components=2, epsilon=1.0, delta=1e-6)
ROWS = np.random.default_rng(5).uniform(-1, 1, (300, 4))
TRIES = 1000 if os.environ.get("ADUMBRA_FULL") == "1" else 200


def release(location, out):
    schema = Schema.numeric(4, -1.0, 1.0)
    made = workflow.release(ROWS, CONFIG, schema=schema, ledger=location, population="people", out=out)
    return made.card["ledger"]["entry"]


def said(words, *more, code=0):
    done = in_process(*words.split(), *more)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def book(location, tmp_path):
    with create_ledger(location) as made:
        register(made, epsilon=9.0, delta=1e-6)
    release(location, tmp_path / "r")
    return location


def test_a_release_carries_a_proof_that_a_head_and_an_export_confirm(book, tmp_path):
    release(book, tmp_path / "later")
    raw = (tmp_path / "r" / "proof.json").read_bytes()
    assert len(raw) < 2048
    proof = Proof.parse(raw)
    assert proof.event["digest"] == verify(tmp_path / "r").digest
    assert set(proof.event) == {"day", "digest", "entry", "kind", "log", "sequence"}
    assert proof.head.size == proof.index + 1 == 5
    said("ledger publish-head", tmp_path / "head.json", "--ledger", book)
    said("ledger export", tmp_path / "log.jsonl", "--ledger", book)
    for log in ("head.json", "log.jsonl"):
        text = said("verify", tmp_path / "r", "--log", tmp_path / log)
        assert "log       in the log of 12 events; not withdrawn there" in text
    facts = json.loads(said("verify --json", tmp_path / "r", "--log", tmp_path / "head.json"))
    assert facts["log"] == {"size": 12, "notice": None}


def test_a_withdrawn_release_is_genuine_and_said_to_be_withdrawn(book, tmp_path):
    first = json.loads((tmp_path / "r" / "card.json").read_bytes())["ledger"]["entry"]
    second = release(book, tmp_path / "s")
    third = release(book, tmp_path / "t")
    said("ledger publish-head", tmp_path / "before", "--ledger", book)
    said(f"ledger withdraw {first} --ledger", book, "--reason", "a wrong bound")
    said(f"ledger supersede {second} --by {third} --ledger", book, "--reason", "better bounds")
    with open_ledger(book) as opened:
        assert opened.verify().events == 19
        digest = next(e.digest for e in opened.show("people")[0].entries if e.id == third)
    said("ledger publish-head", tmp_path / "after.json", "--ledger", book)
    said("ledger export", tmp_path / "log.jsonl", "--ledger", book)
    assert "not withdrawn there" in said("verify", tmp_path / "r", "--log", tmp_path / "before")
    for log in ("after.json", "log.jsonl"):
        text = said("verify", tmp_path / "r", "--log", tmp_path / log)
        assert "verified" in text
        assert "genuine, and WITHDRAWN on 20" in text
        assert text.count(": a wrong bound") == 1
        text = said("verify", tmp_path / "s", "--log", tmp_path / log)
        assert f"genuine, and SUPERSEDED by the release {digest} on 20" in text
        assert "not withdrawn there" in said("verify", tmp_path / "t", "--log", tmp_path / log)
    # A notice that is cut out of a head is missed: the list is signed, too.
    head = json.loads((tmp_path / "after.json").read_bytes())
    head["notices"] = head["notices"][1:]
    (tmp_path / "cut.json").write_text(json.dumps(head))
    assert "its signature does not hold" in said(
        "verify", tmp_path / "r", "--log", tmp_path / "cut.json", code=4
    )


def test_what_cannot_be_withdrawn(book, tmp_path):
    with open_ledger(book) as opened:
        first = opened.show("people")[0].entries[0].id
        waiting = reserve(opened, epsilon=0.1)
        with pytest.raises(InvalidInput, match="is reserved; this needs a published release"):
            opened.withdraw(waiting, "no")
        with pytest.raises(InvalidInput, match="is reserved; this needs"):
            opened.supersede(first, waiting, "no")
        with pytest.raises(InvalidInput, match="is the release itself"):
            opened.supersede(first, first, "no")
        with pytest.raises(InvalidInput, match="reason: write one printable line"):
            opened.withdraw(first, "")
        with pytest.raises(LedgerError, match="is not sealed; there is nothing to prove yet"):
            opened.proof(waiting)
        opened.withdraw(first, "a wrong bound")
        with pytest.raises(InvalidInput, match="there is a notice on it already \\(withdraw, 20"):
            opened.withdraw(first, "again")
        assert opened.verify().entries == 2


def test_any_other_byte_of_a_proof_is_seen(book, tmp_path):
    path = tmp_path / "r" / "proof.json"
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in range(0, len(good), 1 if TRIES == 1000 else 7):
        changed = bytearray(good)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        assert find_faults(tmp_path / "r")[0], place
    path.write_bytes(b"x" * 20_000)
    assert find_faults(tmp_path / "r")[0] == ("proof.json: is larger than 16384 bytes",)
    release(book, tmp_path / "s")
    shutil.copy(tmp_path / "s" / "proof.json", path)  # a true proof, of another release
    assert find_faults(tmp_path / "r")[0] == (
        "proof.json: proves another event than the seal of this card",
    )
    path.unlink()
    assert find_faults(tmp_path / "r")[0] == ()
    said("ledger publish-head", tmp_path / "head.json", "--ledger", book)
    assert "proof.json: is missing" in said(
        "verify", tmp_path / "r", "--log", tmp_path / "head.json", code=4
    )


def test_a_forger_with_a_ledger_of_their_own_is_seen_by_the_head(book, tmp_path):
    """Whole by its hashes, its proof and its signatures: only the publisher's head tells."""
    own = tmp_path / "own.db"
    with create_ledger(own) as made:
        register(made, epsilon=9.0, delta=1e-6)
    release(str(own), tmp_path / "forged")
    assert find_faults(tmp_path / "forged")[0] == ()
    said("ledger publish-head", tmp_path / "head.json", "--ledger", book)
    text = said("verify", tmp_path / "forged", "--log", tmp_path / "head.json", code=4)
    assert "was issued by another ledger than the release" in text


def test_an_older_head_and_one_without_a_proof(book, tmp_path):
    said("ledger publish-head", tmp_path / "old.json", "--ledger", book)
    release(book, tmp_path / "s")
    text = said("verify", tmp_path / "s", "--log", tmp_path / "old.json", code=4)
    assert "it is older, or was rolled back" in text
    said("ledger publish-head", tmp_path / "new.json", "--ledger", book)
    head = json.loads((tmp_path / "new.json").read_bytes())
    head["earlier"] = []
    (tmp_path / "bare.json").write_text(json.dumps(head))
    text = said("verify", tmp_path / "r", "--log", tmp_path / "bare.json", code=4)
    assert "ask for `ledger publish-head --since 5`, or for a public export" in text
    assert "since: is newer than this ledger" in said(
        "ledger publish-head", tmp_path / "x", "--ledger", book, "--since", "99", code=2
    )
    assert "exists already" in said(
        "ledger publish-head", tmp_path / "new.json", "--ledger", book, code=2
    )
    assert "no such file" in said("verify", tmp_path / "r", "--log", tmp_path / "none", code=2)


def test_a_witness_sees_growth_roll_back_and_fork(tmp_path):
    """A SQLite ledger is put back to an older copy, and goes on from there: a roll-back, then a fork."""
    book = str(tmp_path / "l.db")
    with create_ledger(book) as made:
        register(made, epsilon=9.0, delta=1e-6)
    older = (tmp_path / "l.db").read_bytes()
    keep = tmp_path / "seen.json"

    def head(name, *more):
        said("ledger publish-head", tmp_path / name, "--ledger", book, *more)
        return tmp_path / name

    assert "whole: 2 events" in said("ledger watch", book, "--keep", keep)
    with open_ledger(book) as opened:
        for _ in range(3):
            reserve(opened, epsilon=0.1)
    grown = head("grown.json", "--since", "2")
    assert "3 since the last look; 1 earlier heads hold" in said("ledger watch", grown, "--keep", keep)
    assert "0 since the last look; 2 earlier heads hold" in said("ledger watch", book, "--keep", keep)
    said("ledger export", tmp_path / "log.jsonl", "--ledger", book)
    said("ledger watch", tmp_path / "log.jsonl", "--keep", keep)
    kept = keep.read_bytes()
    (tmp_path / "l.db").write_bytes(older)
    for source in (book, head("rolled.json")):
        assert "or was rolled back" in said("ledger watch", source, "--keep", keep, code=4)
    with open_ledger(book) as opened:
        opened.raise_cap("people", 20.0, "nobody will see")
        for _ in range(4):
            reserve(opened, epsilon=0.2)
    said("ledger export", tmp_path / "forked.jsonl", "--ledger", book)
    for source in (book, tmp_path / "forked.jsonl", head("forked.json", "--since", "5")):
        assert "it was FORKED" in said("ledger watch", source, "--keep", keep, code=4)
    with create_ledger(tmp_path / "other.db"):
        pass
    assert "another ledger" in said("ledger watch", tmp_path / "other.db", "--keep", keep, code=4)
    assert keep.read_bytes() == kept  # what was seen stays
    keep.write_text("{}")
    assert "is not a file that `ledger watch` wrote" in said(
        "ledger watch", book, "--keep", keep, code=2
    )


def test_every_roll_back_and_fork_is_seen_by_a_witness(record_property):
    """Logs rewritten at random places by the ledger's own key, against any earlier head."""
    key = Ed25519PrivateKey.generate()
    rng = np.random.default_rng(9)
    missed = honest = 0
    for number in range(TRIES):
        size = int(rng.integers(2, 300))
        events = [b"%d %d" % (number, one) for one in range(size)]
        seen = int(rng.integers(1, size + 1))
        kept = LogHead.sign(key, "l", Tree(events), seen)
        place = int(rng.integers(seen))
        match number % 4:
            case 0:  # rolled back, and perhaps no longer signed anew
                events = events[:place] or [b"first"]
            case 1:  # one event changed
                events[place] = b"another"
            case 2:  # one left out, others appended
                del events[place]
                events += [b"more"] * 300
            case _:  # two exchanged, or one put in
                events.insert(place, b"between")
        tree = Tree(events)
        now = LogHead.sign(key, "l", tree, len(tree))
        made = PublishedHead.make(key, now, tree, [], [seen])
        made = PublishedHead.parse(made.to_bytes())
        try:
            require_continued(made, kept, "a head")
            missed += 1
        except VerificationFailed:
            pass
        grown = Tree([b"%d %d" % (number, one) for one in range(size)] + [b"more"] * 5)
        now = LogHead.sign(key, "l", grown, len(grown))
        require_continued(PublishedHead.make(key, now, grown, [], [seen]), kept, "a head")
        honest += 1
    assert missed == 0
    assert honest == TRIES  # what only grew is taken
    record_property("figure", f"roll-backs and forks against a witness: {TRIES} tried, 0 missed")


def test_a_head_in_python(book, tmp_path):
    with open_ledger(book) as opened:
        assert check_log(tmp_path / "r", opened.published_head()).notice is None
        assert check_log(tmp_path / "r", opened.whole_log()).size == 7


def test_a_proof_of_another_release_does_not_vouch_for_this_card(book, tmp_path):
    """A withdrawn release with the proof of one that was not: the log is asked of the card's digest."""
    entry = release(book, tmp_path / "later")
    with open_ledger(book) as opened:
        opened.withdraw(entry, "wrong table")
        shutil.copy(tmp_path / "r" / "proof.json", tmp_path / "later" / "proof.json")
        with pytest.raises(VerificationFailed, match="proves another event than the seal of this card"):
            check_log(tmp_path / "later", opened.whole_log())
