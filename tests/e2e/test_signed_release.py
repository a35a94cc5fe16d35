"""Signed releases on the command line: made, checked here and by OpenSSH, stopped and resumed."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra as ad
from adumbra import workflow
from adumbra.attestation.signers import SigningFailed, open_key, read_public_key
from adumbra.errors import ChargeNote, InvalidInput
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import Population, State, open_ledger
from adumbra.schema.schema import Schema
from support.cli import at_hidden_prompts
from support.cli import in_process as adumbra
from support.ledger import ROW
from support.ssh import agent, make_key, openssh, openssh_accepts, stop

SCHEMA = """format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"
rows = 60

[[groups]]
match = "x{0..1}"
kind = "number"
lower = 0
upper = 1
"""
RELEASE = (
    "release t.parquet --schema s.toml --epsilon 1 --delta 1e-6 --method dppro -o n_components=2 "
    "--ledger l.db --population people --yes"
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA)
    rows = np.random.default_rng(0).uniform(0, 1, 60)
    pq.write_table(pa.table({"x0": rows, "x1": rows}), tmp_path / "t.parquet")
    done("ledger init l.db")
    done("ledger register people --ledger l.db --epsilon 9 --unit row --neighbours replace-one")
    return tmp_path


def done(words, *more):
    finished = adumbra(*words.split(), *more)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_a_signed_release_end_to_end(place):
    made = json.loads(done("key new ann --no-passphrase --comment office --json"))
    assert (place / "ann").stat().st_mode & 0o777 == 0o600
    text = done(f"{RELEASE} --out r --key ann")
    assert f"signed    by {made['fingerprint']}" in text
    card = (place / "r" / "card.json").read_bytes()
    assert json.loads(card)["signed_by"] == made["fingerprint"]

    # Anybody can check it with OpenSSH alone.
    line = json.loads(done("key show ann.pub --name ann --json"))["trust_line"]
    assert line.startswith('ann namespaces="adumbra-release" ssh-ed25519 ')
    signature = (place / "r" / "card.sig").read_bytes()
    assert openssh_accepts(line, signature, card, place)
    assert not openssh_accepts(line, signature, card + b" ", place)

    # And here: unknown at first, then trusted, then revoked.
    assert "a key that you have not said you trust" in done("verify r")
    demanded = adumbra("verify", "r", "--require-signature")
    assert demanded.returncode == 2
    assert "whose? give the publisher's key, or a trust file" in demanded.stderr
    assert "the key that you gave" in done("verify r --key ann.pub")
    assert line in done("key trust ann ann.pub")
    assert f"signed    by ann ({made['fingerprint']}), valid on 20" in done(
        "verify r --require-signature"
    )
    assert "signed    by ann" in done("inspect r")
    facts = json.loads(done("verify r --json --signer ann"))
    assert facts["signature"]["names"] == ["ann"]
    assert facts["signature"]["is_trusted"] is True
    done("key revoke ann.pub")
    for more in ((), ("--require-signature",), ("--key", "ann.pub")):
        refused = adumbra("verify", "r", *more)
        assert refused.returncode == 4
        assert "which is revoked" in refused.stderr


def test_a_key_with_a_window_and_files_of_ones_own(place):
    done("key new ann --no-passphrase")
    done(f"{RELEASE} --out r --key ann")
    done("key trust ann ann.pub --valid-before 20200101")
    late = adumbra("verify", "r", "--require-signature")
    assert late.returncode == 4
    assert "that key is not valid for a release of 20" in late.stderr
    public = read_public_key("ann.pub")
    (place / "mine").write_text(f"ann {public.line()}\n")
    assert "signed    by ann" in done("verify r --require-signature --trust mine")
    (place / "bad").write_text(f"{public.line()}\n")
    revoked = adumbra("verify", "r", "--trust", "mine", "--revoked", "bad")
    assert revoked.returncode == 4
    for words in ("--valid-after soon", "--valid-before 2026"):
        assert adumbra("key", "trust", "ann", "ann.pub", *words.split()).returncode == 2
    assert adumbra("key", "trust", "a*", "ann.pub").returncode == 2


def test_an_unsigned_release_is_called_so(place):
    assert "signed    NOT SIGNED; --key signs a release" in done(f"{RELEASE} --out r")
    assert "signed    NOT SIGNED: nothing shows who made it" in done("verify r")
    assert "NOT SIGNED" in done("inspect r")
    assert json.loads(done("verify r --json"))["signature"] is None
    done("key new ann --no-passphrase")
    refused = adumbra("verify", "r", "--key", "ann.pub")
    assert refused.returncode == 4
    assert "is not signed" in refused.stderr


def test_a_key_that_cannot_sign_is_refused_before_the_charge(place):
    make_key(place, "locked", passphrase="s3cret")
    for key, text in {
        "none": "cannot be read",
        "locked": "needs its passphrase",
        "locked.pub": "there is no agent",
    }.items():
        refused = adumbra(*RELEASE.split(), "--out", "r", "--key", key)
        assert refused.returncode == 2
        assert text in refused.stderr
    with open_ledger("l.db") as book:
        assert book.show("people")[0].entries == ()


def test_a_passphrase_at_the_terminal(place):
    locked = make_key(place, "locked", passphrase="s3cret")
    words = (*RELEASE.split(), "--key", locked)
    made = at_hidden_prompts(*words, "--out", "r", answers=["s3cret\n"], cwd=place)
    assert made.returncode == 0, made.stderr
    assert "s3cret" not in made.stdout + made.stderr
    assert "the key that you gave" in done("verify r --key locked.pub")
    wrong = at_hidden_prompts(*words, "--out", "q", answers=["wrong\n"], cwd=place)
    assert wrong.returncode == 2
    assert "cannot be read with this passphrase" in wrong.stderr
    made = at_hidden_prompts("key", "new", "mine", answers=["word\n", "word\n"], cwd=place)
    assert made.returncode == 0, made.stderr
    assert openssh("ssh-keygen", "-y", "-P", "word", "-f", place / "mine").returncode == 0


def test_an_agent_that_dies_leaves_a_sealed_entry_that_resume_signs(place, monkeypatch):
    """The key is asked for again; another key, or bytes that are not the sealed ones, sign nothing."""
    ann, bob = make_key(place, "ann"), make_key(place, "bob")
    schema, config = Schema.read("s.toml"), DPProConfig(n_components=2, epsilon=1.0, delta=1e-6)
    pay = {"schema": schema, "ledger": "l.db", "population": "people"}
    entries = []
    with agent(place, ann) as (address, pid):
        monkeypatch.setenv("SSH_AUTH_SOCK", address)
        waiting = [
            workflow.prepare("t.parquet", config, **pay, out=name, key="ann.pub")
            for name in ("r", "q", "u")
        ]
        stop(pid)
        for prepared in waiting:
            with prepared, pytest.raises(SigningFailed, match="cannot be reached") as stopped:
                prepared.commit()
            (note,) = [note for note in stopped.value.__notes__ if isinstance(note, ChargeNote)]
            assert "is sealed and stays charged; `adumbra ledger resume`" in note
            entries.append(note.split(":")[0].removeprefix("entry="))
    monkeypatch.delenv("SSH_AUTH_SOCK")
    first, second, third = entries
    assert not (place / "r").exists()

    def resume(entry, *words):
        return adumbra("ledger", "resume", entry, "--ledger", "l.db", *words)

    with pytest.raises(InvalidInput, match="its card names the signer SHA256:"):
        ad.resume("l.db", first, target="r")
    asked = resume(first, "--target", "r")
    assert asked.returncode == 2
    assert "its card names the signer SHA256:" in asked.stderr
    assert "give --key, or else --unsigned" in asked.stderr
    other = resume(first, "--target", "r", "--key", str(bob))
    assert other.returncode == 2
    assert "give that key" in other.stderr
    both = resume(first, "--target", "r", "--key", str(ann), "--unsigned")
    assert both.returncode == 2
    assert resume(first, "--target", "r", "--key", str(ann)).returncode == 0
    assert "the key that you gave" in done("verify r --key ann.pub")
    times = {path.stat().st_mtime_ns % (86_400 * 10**9) for path in (place / "r").rglob("*")}
    assert times == {0}  # no time of day

    (staged,) = place.glob(f".q.{second}.*.staged")
    forged = place / "kept"
    shutil.copytree(staged, forged)
    from support.release import reseal

    reseal(staged, lambda card: {**card, "before_dp": "another word"})
    refused = resume(second, "--target", "q", "--key", str(ann))
    assert refused.returncode == 4
    assert "proof.json: proves another event than the seal of this card" in refused.stderr
    (staged / "proof.json").unlink()  # the ledger knows the digest all the same
    refused = resume(second, "--target", "q", "--key", str(ann))
    assert refused.returncode == 4
    assert "nothing was signed" in refused.stderr
    assert not (staged / "card.sig").exists()
    shutil.rmtree(staged)
    forged.rename(staged)
    assert ad.resume("l.db", second, target="q", key=ann) == place / "q"
    assert ad.verify("q", key="ann.pub").signature is not None

    assert resume(third, "--target", "u", "--unsigned").returncode == 0
    assert "NOT SIGNED although its card names a signer" in done("verify u")
    again = resume(third, "--key", str(ann))
    assert again.returncode == 2
    assert "nothing waits for a signature" in again.stderr
    with open_ledger("l.db") as book:
        assert {entry.state for entry in book.show("people")[0].entries} == {State.PUBLISHED}


def test_an_agent_signs_a_release_of_the_command_line(place):
    ann = make_key(place, "ann", passphrase="")
    with agent(place, ann) as (address, _):
        (place / "ann").unlink()  # the agent alone has it now
        os.environ["SSH_AUTH_SOCK"] = address
        try:
            done(f"{RELEASE} --out r --key ann.pub")
        finally:
            del os.environ["SSH_AUTH_SOCK"]
    assert "the key that you gave" in done("verify r --key ann.pub")


def test_python_takes_a_key(place):
    make_key(place, "ann")
    schema, config = Schema.read("s.toml"), DPProConfig(n_components=2, epsilon=1.0, delta=1e-6)
    with open_ledger("l.db") as book:
        book.register(Population("more", *ROW, 9.0, 1e-6))
        pay = {"schema": schema, "ledger": book, "population": "more"}
        for number, key in enumerate(("ann", open_key("ann"))):
            made = workflow.release("t.parquet", config, **pay, out=f"p{number}", key=key)
            assert made.card["signed_by"] == read_public_key("ann.pub").fingerprint()
            done(f"verify p{number} --key ann.pub")
        with pytest.raises(InvalidInput, match="key of type int: give its path"):
            workflow.release("t.parquet", config, **pay, out="p3", key=3)
