"""The steward's commands on a real release: everything that `adumbra ledger` can do."""

import datetime as dt
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from adumbra import workflow
from adumbra.cli.main import app
from adumbra.errors import BudgetRefused, InvalidInput, LedgerError, VerificationFailed
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import Population, State, create_ledger, open_ledger, verify_export
from adumbra.schema.schema import Schema
from support.ledger import ROW, ask, reserve

CONFIG = DPProConfig(n_components=2, epsilon=1.0, delta=1e-6)
ROWS = np.random.default_rng(5).uniform(-1, 1, (300, 4))


def ledger(*words: str):
    done = CliRunner().invoke(app, ["ledger", *words])
    if done.exception is not None:
        raise done.exception
    assert done.exit_code == 0
    return done.stdout


def said(*words: str):
    return json.loads(ledger(*words, "--json"))


def release(location, out, population="people", rows=ROWS):
    schema = Schema.numeric(4, -1.0, 1.0)
    return workflow.release(rows, CONFIG, schema=schema, ledger=location, population=population, out=out)


@pytest.fixture
def book(location):
    made = said("init", location)
    assert len(made["public_key"]) == 64
    words = "--epsilon 4 --delta 1e-6 --unit row --neighbours replace-one --owner Ann --purpose research"
    text = ledger("register", "people", "--ledger", location, *words.split())
    assert text == "registered people: epsilon=0.0 spent of 4.0 at delta=1e-06, 4.0 left\n"
    return location


def test_a_release_is_accounted_for(book, tmp_path):
    release(book, tmp_path / "out")
    shown = said("show", "--ledger", book)["populations"][0]
    assert (shown["spent"], shown["stranded"], shown["entries"][0]["state"]) == (1.0, [], "published")
    text = ledger("show", "people", "--ledger", book)
    assert "epsilon=1.0 spent of 4.0 at delta=1e-06" in text
    assert "more releases like the last" in text
    assert ledger("verify", "--ledger", book).startswith("whole: ")
    assert said("verify", "--ledger", book, "--against", str(tmp_path / "out"))["card"] is True
    assert (
        said("verify", "--ledger", book, "--against", str(tmp_path / "out" / "card.json"))["card"]
        is True
    )
    assert said("head", "--ledger", book)["sequence"] == 7
    assert ledger("head", "--ledger", book).startswith("event 7 of ledger ")


def test_a_head_that_was_kept_shows_a_roll_back(book, tmp_path):
    kept = tmp_path / "head.json"
    kept.write_text(ledger("head", "--ledger", book, "--json"))
    head = json.loads(kept.read_text())
    text = ledger("head", "--ledger", book)
    assert all(str(value) in text for value in head.values())
    against = ("verify", "--ledger", book, "--against", str(kept))
    assert "the head compared is part of this history" in ledger(*against)
    release(book, tmp_path / "out")
    assert said(*against)["card"] is True  # an earlier state is part of the history, too
    for change, fault in {
        "sequence": (head["sequence"] + 99, "head: the signature"),
        "hash": ("0" * 64, "is not the one it was issued at; the history was rewritten"),
        "ledger": ("another", "head: was issued by another ledger"),
        "signature": ("", "head: the signature of its ledger head does not hold"),
        "public_key": (None, "head: was issued by another ledger"),
    }.items():
        kept.write_text(json.dumps({**head, change: fault[0]}))
        with pytest.raises(VerificationFailed, match=fault[1]):
            ledger(*against)
    kept.write_text(json.dumps({"ledger": head["ledger"]}))
    with pytest.raises(VerificationFailed, match="head: has no readable ledger head"):
        ledger(*against)


def test_a_ledger_put_back_to_an_older_copy_is_seen_by_the_head(tmp_path):
    location = str(tmp_path / "l.db")
    ledger("init", location)
    older = (tmp_path / "l.db").read_bytes()
    words = "--epsilon 4 --unit row --neighbours replace-one"
    ledger("register", "people", "--ledger", location, *words.split())
    (tmp_path / "head.json").write_text(ledger("head", "--ledger", location, "--json"))
    (tmp_path / "l.db").write_bytes(older)
    for side in tmp_path.glob("l.db-*"):
        side.unlink()
    with pytest.raises(VerificationFailed, match="head: issued at event 2, which this ledger lacks"):
        ledger("verify", "--ledger", location, "--against", str(tmp_path / "head.json"))


def test_backup_and_restore(book, tmp_path):
    release(book, tmp_path / "one")
    text = ledger("backup", str(tmp_path / "kept.db"), "--ledger", book)
    head = tmp_path / "kept.db.head.json"
    assert text.endswith(f"kept.db, whole, at event 7; keep {head} elsewhere\n")
    words = ("restore", str(tmp_path / "kept.db"), str(tmp_path / "again.db"), "--against")
    assert "at event 7; use one copy of it only" in ledger(*words, str(head))
    assert said("verify", "--ledger", str(tmp_path / "again.db"), "--against", str(head))["card"] is True
    release(book, tmp_path / "two")
    older = ("restore", str(tmp_path / "kept.db"), str(tmp_path / "third.db"), "--against")
    with pytest.raises(VerificationFailed, match="which this ledger lacks"):
        ledger(*older, str(tmp_path / "two"))
    assert not (tmp_path / "third.db").exists()
    made = said("backup", str(tmp_path / "b.db"), "--ledger", book, "--head", str(tmp_path / "h.json"))
    assert (made["head"], made["sequence"]) == (str(tmp_path / "h.json"), 12)


def test_show_says_by_which_method_when_and_where(book, tmp_path):
    release(book, tmp_path / "out")
    (entry,) = said("show", "--ledger", book)["populations"][0]["entries"]
    assert entry["method"] == "dppro"
    assert entry["day"] == dt.datetime.now(tz=dt.UTC).date().isoformat()
    text = ledger("show", "people", "--ledger", book)
    assert (
        f"{entry['id']}  {entry['day']}  published   charged epsilon=1.0  people  dppro: epsilon=1"
        in text
    )
    assert f"in {tmp_path / 'out'}" in text
    assert "3.81728 left (squares add); about" in text
    assert "together the squares of their mu add, not the epsilons" in text
    with open_ledger(book) as opened:
        opened.register(Population("pure", *ROW, 4.0, 0.0))
        opened.reserve("pure", ask(1.0), request={}, source_pin="")  # of whom no method is known
    text = ledger("show", "pure", "--ledger", book)
    assert "  a release: epsilon=1 (pure)" in text
    assert "squares" not in text


def test_a_card_that_was_changed_is_not_the_one_that_was_sealed(book, tmp_path):
    release(book, tmp_path / "out")
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    card["limits"] = ["none"]
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(VerificationFailed, match="was sealed with other bytes"):
        ledger("verify", "--ledger", book, "--against", str(tmp_path / "card.json"))


@pytest.mark.parametrize("change", ["swapped", "missing", "added"])
def test_a_release_whose_card_is_in_the_books_but_not_its_rows(book, tmp_path, change):
    release(book, tmp_path / "out")
    release(book, tmp_path / "other")
    rows = tmp_path / "out" / "data" / "data.parquet"
    if change == "swapped":
        rows.write_bytes((tmp_path / "other" / "data" / "data.parquet").read_bytes())
    elif change == "missing":
        rows.unlink()
    else:
        (tmp_path / "out" / "data" / "more.parquet").write_bytes(b"")
    for words in (
        ("verify", "--ledger", book),
        ("restore", str(tmp_path / "kept.db"), str(tmp_path / "again.db")),
    ):
        if words[0] == "restore":
            ledger("backup", words[1], "--ledger", book)
        with pytest.raises(VerificationFailed, match=r"data/(data|more)\.parquet: "):
            ledger(*words, "--against", str(tmp_path / "out"))


def test_a_card_of_another_ledger_or_none(book, tmp_path):
    release(book, tmp_path / "out")
    create_ledger(tmp_path / "other.db").close()
    with pytest.raises(VerificationFailed, match="another ledger"):
        ledger("verify", "--ledger", str(tmp_path / "other.db"), "--against", str(tmp_path / "out"))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "half.json").write_text("{")
    (tmp_path / "empty.json").write_text("{}")
    for name in ("list.json", "half.json", "empty.json", "none.json"):
        with pytest.raises(InvalidInput, match="against="):
            ledger("verify", "--ledger", book, "--against", str(tmp_path / name))


def test_a_sealed_release_is_resumed_with_its_own_bytes(book, tmp_path, monkeypatch):
    from adumbra.privacy.ledger import Ledger

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "publish", crash)
    with pytest.raises(KeyboardInterrupt):
        release(book, tmp_path / "out")
    monkeypatch.undo()
    stranded = said("show", "--ledger", book)["populations"][0]["stranded"]
    said_so = f"not published: {stranded[0]} is sealed; `adumbra ledger resume`"
    assert said_so in ledger("show", "--ledger", book)
    with pytest.raises(LedgerError, match="say where it shall be published"):
        ledger("resume", stranded[0], "--ledger", book)
    resumed = said("resume", stranded[0], "--ledger", book, "--target", str(tmp_path / "out"))
    assert resumed["target"] == str(tmp_path / "out")
    assert (
        ledger("resume", stranded[0], "--ledger", book)
        == f"published {stranded[0]} at {tmp_path / 'out'}\n"
    )
    said("verify", "--ledger", book, "--against", str(tmp_path / "out"))


def test_void_raise_link_declare(book):
    words = "--epsilon 2 --delta 1e-6 --unit row --neighbours replace-one --json"
    for name in ("again", "others"):
        made = json.loads(ledger("register", name, "--ledger", book, *words.split()))
        assert made["left"] == 2.0
    with open_ledger(book) as opened:
        entry = reserve(opened, "again", 1.0, 1e-6)
        reserve(opened, "again", 0.5, 1e-6)
    assert said("void", entry, "--ledger", book, "--reason", "a mistake") == {
        "entry": entry,
        "state": "void",
    }
    raised = said("raise", "people", "--ledger", book, "--epsilon", "5", "--reason", "agreed")
    assert raised["raised"][0]["reason"] == "agreed"
    assert "cap raised" in ledger("show", "--ledger", book)
    linked = said("link", "again", "--ledger", book, "--to", "people", "--reason", "the same people")
    assert linked["spent"] == 0.5
    ledger("declare", "people", "others", "--ledger", book, "--reason", "two hospitals")
    with open_ledger(book) as opened:
        assert opened.show("again")[0].entries[0].state is State.VOID
        opened.verify()
        with pytest.raises(BudgetRefused, match="for population again"):
            opened.reserve("again", ask(2.0, 1e-6), request={}, source_pin="")


def test_the_same_rows_under_a_new_name_are_pointed_at(book, tmp_path):
    with open_ledger(book) as opened:
        opened.register(Population("renamed", *ROW, 4.0, 1e-6))
    release(book, tmp_path / "one")
    release(book, tmp_path / "two", "renamed", ROWS[::-1].copy())
    assert "look: populations people and renamed hold the same rows" in ledger("show", "--ledger", book)
    ledger("declare", "people", "renamed", "--ledger", book, "--reason", "a test")
    assert "look:" not in ledger("show", "--ledger", book)


def test_export(book, tmp_path):
    release(book, tmp_path / "out")
    ledger("export", str(tmp_path / "log.jsonl"), "--ledger", book)
    assert verify_export(tmp_path / "log.jsonl") == 7
    assert "Ann" not in (tmp_path / "log.jsonl").read_text()
    assert (
        said("export", str(tmp_path / "log.parquet"), "--ledger", book, "--private")["public"] is False
    )
    with pytest.raises(InvalidInput, match="exists already; choose another name or give --force"):
        ledger("export", str(tmp_path / "log.jsonl"), "--ledger", book)
    with pytest.raises(InvalidInput, match="its folder does not exist; make it first"):
        ledger("export", str(tmp_path / "none" / "log.jsonl"), "--ledger", book)
    (tmp_path / "log.jsonl").write_text("old")
    ledger("export", str(tmp_path / "log.jsonl"), "--ledger", book, "--force")
    assert verify_export(tmp_path / "log.jsonl") == 7
    assert not list(tmp_path.glob(".log*"))


def test_a_wrong_declaration_is_taken_back_before_a_link(book):
    words = ("--ledger", book, "--epsilon", "4", "--delta", "1e-6", "--unit", "row")
    ledger("register", "again", *words, "--neighbours", "replace-one")
    why = ("--ledger", book, "--reason", "two registers")
    ledger("declare", "again", "people", *why)
    with pytest.raises(InvalidInput, match="`adumbra ledger declare again people --withdraw` first"):
        ledger("link", "again", "--to", "people", *why)
    assert ledger("declare", "again", "people", "--withdraw", *why).startswith("withdrawn: ")
    ledger("link", "again", "--to", "people", *why)
    with pytest.raises(InvalidInput, match="is a child of people, so they share people"):
        ledger("declare", "again", "people", *why)
