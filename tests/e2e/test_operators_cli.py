"""Operators at the command line, from the first enrolment to a release that others check offline."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra as ad
from adumbra.release.artifact import verify
from support.cli import in_process
from support.release import reseal
from support.ssh import make_key

SCHEMA = ad.Schema.numeric(3, 0.0, 1.0, names=["a", "b", "c"])


@pytest.fixture
def house(tmp_path):
    rows = np.random.default_rng(0).uniform(size=(300, 3))
    pq.write_table(pa.table({name: rows[:, i] for i, name in enumerate("abc")}), tmp_path / "t.parquet")
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    for name in ("clerk", "seller", "chief"):
        make_key(tmp_path, name)
    said("init", tmp_path / "l.db", operator=None)
    for name, rights in {
        "clerk": ["register", "raise"],
        "seller": ["release"],
        "chief": ["raise"],
    }.items():
        words = [word for right in rights for word in ("--right", right)]
        said("enrol", tmp_path / f"{name}.pub", "--ledger", tmp_path / "l.db", *words, "--name", name)
    return tmp_path


def ran(*words, operator=None):
    return in_process("ledger", *(["--operator", operator] if operator else []), *words)


def said(*words, operator=None):
    done = ran(*words, "--json", operator=operator)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def release(house, operator=None, out="r"):
    by = ["--operator", house / operator] if operator else []
    return in_process(
        "release", house / "t.parquet", "--schema", house / "s.toml", "--epsilon", "1", "--ledger",
        house / "l.db", "--population", "people", "--out", house / out, "--yes", "--method", "moments",
        *by,
    )  # fmt: skip


def test_from_enrolment_to_a_checked_release(house):
    book = ("--ledger", house / "l.db")
    words = ("people", *book, "--epsilon", "4", "--unit", "row", "--neighbours", "replace-one")
    assert ran("register", *words).returncode == 1
    assert "needs the right register" in ran("register", *words, operator=house / "seller").stderr
    said("register", *words, operator=house / "clerk")
    refused = release(house)
    assert refused.returncode == 1
    assert "give the key of one with the right release (--operator)" in refused.stderr
    assert "needs the right release; held: register, raise" in release(house, "clerk").stderr
    assert not (house / "r").exists()
    assert said("show", *book)["populations"][0]["entries"] == []  # nothing was charged
    done = release(house, "seller")
    assert done.returncode == 0, done.stderr

    card = verify(house / "r").card
    assert json.loads(card["ledger"]["head"]["act"]["event"])["kind"] == "draw"
    assert "t.parquet" not in json.dumps(card["ledger"])
    said("publish-head", house / "head.json", *book, operator=house / "seller")
    checked = in_process("verify", house / "r", "--log", house / "head.json")
    assert checked.returncode == 0, checked.stderr
    assert "in the log" in checked.stdout
    said("verify", *book, "--against", house / "r")
    entry = card["ledger"]["entry"]
    said("withdraw", entry, *book, "--reason", "a wrong bound", operator=house / "seller")
    said("export", house / "log.jsonl", *book, operator=house / "seller")
    assert "withdrawn" in in_process("verify", house / "r", "--log", house / "log.jsonl").stdout.lower()
    assert said("watch", house / "log.jsonl", "--keep", house / "seen.json", operator=None)["size"] > 8
    assert said("watch", house / "l.db", "--keep", house / "seen.json")["new"] == 0
    bare = ran("watch", house / "l.db", "--keep", house / "new.json")  # nothing unsigned is kept
    assert "give --operator, or watch an export" in bare.stderr
    assert not (house / "new.json").exists()
    said("watch", house / "l.db", "--keep", house / "new.json", operator=house / "seller")

    def forge(forged):
        event = json.loads(forged["ledger"]["head"]["act"]["event"])
        forged["ledger"]["head"]["act"]["event"] = json.dumps({**event, "day": "2020-01-01"})
        return forged

    reseal(house / "r", forge)
    failed = in_process("verify", house / "r")
    assert failed.returncode == 4
    assert "ledger/head: its signature does not hold" in failed.stderr


def test_two_at_the_command_line(house):
    book = ("--ledger", house / "l.db")
    words = ("people", *book, "--epsilon", "1", "--unit", "row", "--neighbours", "replace-one")
    said("register", *words, operator=house / "clerk")
    said("require-two", *book, "--above", "2", "--reason", "care")
    listed = ran("operators", *book).stdout
    assert "register, raise" in listed
    assert "a cap above epsilon=2.0 needs two operators" in listed
    more = ("people", *book, "--epsilon", "3", "--reason", "a study")
    assert "needs two operators" in ran("raise", *more, operator=house / "clerk").stderr
    said("approve", *more, "--out", house / "yes.json", operator=house / "chief")
    approved = ("--approval", house / "yes.json")
    assert (
        "both signatures are by one key"
        in ran("raise", *more, *approved, operator=house / "chief").stderr
    )
    said("raise", *more, *approved, operator=house / "clerk")
    chief = next(
        name for name, rights in said("operators", *book)["operators"].items() if rights == ["raise"]
    )
    said("dismiss", chief, *book, "--reason", "left")
    assert (
        "is not enrolled"
        in ran("approve", *more, "--out", house / "no", operator=house / "chief").stderr
    )
    assert "is a SQLite file" in ran("grants", *book).stderr
    assert (
        "cannot be read"
        in ran("raise", *more, "--approval", house / "none", operator=house / "clerk").stderr
    )
    assert ran("verify", *book).returncode == 0


def test_a_ledger_nobody_enrolled_in_says_so(tmp_path):
    said("init", tmp_path / "l.db")
    assert "no operator is enrolled" in ran("operators", "--ledger", tmp_path / "l.db").stdout
    make_key(tmp_path, "k")
    done = ran("show", "--ledger", tmp_path / "l.db", operator=tmp_path / "k")
    assert "is not enrolled in this ledger" in done.stderr
