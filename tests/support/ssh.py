"""Keys, signatures and an agent by OpenSSH itself: the other side of every comparison."""

import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

from adumbra.attestation.trust import NAMESPACE

KINDS = {
    "ed25519": ("ed25519", ""),
    "ecdsa-256": ("ecdsa", "256"),
    "ecdsa-384": ("ecdsa", "384"),
    "ecdsa-521": ("ecdsa", "521"),
    "rsa": ("rsa", "2048"),
}


def openssh(*words, content=b"", env=None):
    """Run one of OpenSSH's programs; the finished process."""
    return subprocess.run(
        [str(word) for word in words],
        input=content,
        capture_output=True,
        check=False,
        env=env,
        timeout=60,
    )


def make_key(folder: Path, name="k", kind="ed25519", passphrase="") -> Path:
    """A key made by ssh-keygen; returns the private file."""
    algorithm, bits = KINDS[kind]
    size = ("-b", bits) if bits else ()
    path = folder / name
    done = openssh(
        "ssh-keygen", "-q", "-t", algorithm, *size, "-N", passphrase, "-C", "a comment", "-f", path
    )
    assert done.returncode == 0, done.stderr
    return path


def openssh_sign(key: Path, message: bytes, namespace=NAMESPACE) -> bytes:
    done = openssh("ssh-keygen", "-Y", "sign", "-f", key, "-n", namespace, content=message)
    assert done.returncode == 0, done.stderr
    return done.stdout


def openssh_accepts(line, signature: bytes, message: bytes, folder: Path, namespace=NAMESPACE, more=()):
    """Whether `ssh-keygen -Y verify` takes a signature by the signer `ann` of this trust line."""
    (folder / "allowed").write_text(f"{line}\n")
    (folder / "sig").write_bytes(signature)
    done = openssh(
        *("ssh-keygen", "-Y", "verify", "-f", folder / "allowed", "-I", "ann", "-n", namespace),
        *("-s", folder / "sig", *more),
        content=message,
    )
    return done.returncode == 0


@contextmanager
def agent(folder: Path, *keys: Path):
    """A real ssh-agent that holds these keys; yields its socket and the process's id."""
    done = openssh("ssh-agent", "-a", folder / "agent.sock")
    pid = int(re.search(rb"SSH_AGENT_PID=(\d+)", done.stdout)[1])
    address = str(folder / "agent.sock")
    try:
        for key in keys:
            added = openssh("ssh-add", "-q", key, env={**os.environ, "SSH_AUTH_SOCK": address})
            assert added.returncode == 0, added.stderr
        yield address, pid
    finally:
        stop(pid)


def stop(pid: int) -> None:
    """End the agent that was started here."""
    try:
        os.kill(pid, 15)
    except ProcessLookupError:
        return
