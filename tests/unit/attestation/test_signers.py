"""Where a key may live: a file with or without a passphrase, or an agent."""

import copy

import pytest

from adumbra.attestation.signers import (
    AgentSigner,
    FileSigner,
    SigningFailed,
    new_key,
    open_key,
    read_public_key,
)
from adumbra.errors import InvalidInput
from support.ssh import KINDS, agent, make_key, openssh, openssh_accepts, stop

MESSAGE = b"message"


def test_a_new_key_is_one_that_openssh_reads(tmp_path):
    public = new_key(tmp_path / "k", passphrase="open sesame", comment="county hospital")
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "k.pub").read_text() == f"{public.line()} county hospital\n"
    read = openssh("ssh-keygen", "-y", "-P", "open sesame", "-f", tmp_path / "k")
    assert read.stdout.decode().startswith(public.line())
    assert openssh("ssh-keygen", "-y", "-P", "wrong", "-f", tmp_path / "k").returncode != 0
    assert open_key(tmp_path / "k", "open sesame").public == public
    for name in ("k", "k.pub"):
        with pytest.raises(InvalidInput, match=f"{name}: exists already"):
            new_key(tmp_path / name.removesuffix(".pub"))
        (tmp_path / name).unlink()
    with pytest.raises(InvalidInput, match="cannot be written"):
        new_key(tmp_path / "no" / "k")


@pytest.mark.parametrize("kind", KINDS)
def test_a_passphrase_is_asked_for_only_where_one_is_needed(kind, tmp_path):
    locked = make_key(tmp_path, "locked", kind=kind, passphrase="s3cret")
    asked = []

    def ask():
        asked.append(1)
        return "s3cret"

    assert open_key(locked, ask).sign(MESSAGE, "n").holds(MESSAGE)
    assert asked == [1]
    with pytest.raises(InvalidInput, match="needs its passphrase; run at a terminal, or `ssh-add` it"):
        open_key(locked)
    with pytest.raises(InvalidInput, match="cannot be read with this passphrase") as wrong:
        open_key(locked, "wrong")
    assert "wrong" not in str(wrong.value)
    open_key(make_key(tmp_path, "plain", kind=kind), ask)
    assert asked == [1]


def test_keys_in_the_old_format_are_read(tmp_path):
    for passphrase in ("", "s3cret"):
        path = tmp_path / f"pem{len(passphrase)}"
        made = openssh(*("ssh-keygen", "-q", "-t", "ecdsa", "-m", "PEM", "-N", passphrase, "-f", path))
        assert made.returncode == 0
        assert open_key(path, passphrase or None).sign(MESSAGE, "n").holds(MESSAGE)
    with pytest.raises(InvalidInput, match="needs its passphrase"):
        open_key(tmp_path / "pem6")


def test_a_key_that_others_can_read_is_refused(tmp_path):
    path = make_key(tmp_path)
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match="mode 0640 lets others read it; run chmod 600"):
        open_key(path)


def test_files_that_are_no_key(tmp_path, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(InvalidInput, match="cannot be read \\(No such file"):
        open_key(tmp_path / "none")
    (tmp_path / "long").write_bytes(b"x" * 70_000)
    with pytest.raises(InvalidInput, match="is too long"):
        open_key(tmp_path / "long")
    (tmp_path / "two").write_text("a\nb\n")
    with pytest.raises(InvalidInput, match="must hold one line"):
        open_key(tmp_path / "two")
    damaged = make_key(tmp_path)
    content = damaged.read_text()
    damaged.write_text(content[:120] + content[-36:])
    with pytest.raises(InvalidInput, match="damaged"):
        open_key(damaged)


def test_the_secret_is_not_shown_or_copied(tmp_path):
    signer = open_key(make_key(tmp_path))
    assert isinstance(signer, FileSigner)
    assert repr(signer) == f"FileSigner({signer.public.fingerprint()})"
    for copier in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="holds a secret"):
            copier(signer)


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_signs(kind, tmp_path, monkeypatch):
    path = make_key(tmp_path, kind=kind)
    public = read_public_key(f"{path}.pub")
    stranger = make_key(tmp_path, "stranger")
    with agent(tmp_path, path) as (address, pid):
        monkeypatch.setenv("SSH_AUTH_SOCK", address)
        signer = open_key(f"{path}.pub")
        assert isinstance(signer, AgentSigner)
        made = signer.sign(MESSAGE, "adumbra-release")
        assert openssh_accepts(f"ann {public.line()}", made.armour(), MESSAGE, tmp_path)
        with pytest.raises(InvalidInput, match="the agent does not hold SHA256:"):
            open_key(f"{stranger}.pub")
        assert openssh("ssh-add", "-D").returncode == 0
        with pytest.raises(SigningFailed, match="refused to sign"):
            signer.sign(MESSAGE, "n")
        stop(pid)
    with pytest.raises(SigningFailed, match="cannot be reached"):
        signer.sign(MESSAGE, "n")
    with pytest.raises(InvalidInput, match="cannot be reached"):
        open_key(f"{path}.pub")
    monkeypatch.delenv("SSH_AUTH_SOCK")
    with pytest.raises(InvalidInput, match="there is no agent"):
        open_key(f"{path}.pub")
