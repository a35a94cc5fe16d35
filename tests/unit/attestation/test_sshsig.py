"""Signatures are OpenSSH's own: each side takes what the other makes, for every kind of key."""

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adumbra.attestation.signers import open_key, read_public_key
from adumbra.attestation.sshsig import PublicKey, Signature, to_sign
from adumbra.attestation.wire import mpint, string
from adumbra.errors import InvalidInput
from support.ssh import KINDS, make_key, openssh, openssh_accepts, openssh_sign

MESSAGE = b"the bytes of a card\n"
SPACE = "adumbra-release"


@pytest.mark.parametrize("kind", KINDS)
def test_each_side_takes_what_the_other_signs(kind, tmp_path):
    path = make_key(tmp_path, kind=kind)
    public = read_public_key(f"{path}.pub")
    theirs = openssh_sign(path, MESSAGE)
    parsed = Signature.parse(theirs)
    assert (parsed.key, parsed.namespace, parsed.armour()) == (public, SPACE, theirs)
    assert parsed.holds(MESSAGE)
    ours = open_key(path).sign(MESSAGE, SPACE)
    assert ours.key == public
    assert openssh_accepts(f"ann {public.line()}", ours.armour(), MESSAGE, tmp_path)
    assert not openssh_accepts(f"ann {public.line()}", ours.armour(), MESSAGE + b"x", tmp_path)
    listed = openssh("ssh-keygen", "-l", "-f", f"{path}.pub").stdout.decode()
    assert public.fingerprint() in listed


@pytest.mark.parametrize("kind", KINDS)
def test_another_message_key_or_namespace_does_not_hold(kind, tmp_path):
    signer = open_key(make_key(tmp_path, kind=kind))
    other = open_key(make_key(tmp_path, "other", kind=kind))
    made = signer.sign(MESSAGE, SPACE)
    assert not made.holds(MESSAGE + b" ")
    assert not Signature(other.public, SPACE, made.hash_name, made.signed).holds(MESSAGE)
    assert not Signature(signer.public, "file", made.hash_name, made.signed).holds(MESSAGE)
    assert not Signature(signer.public, SPACE, "sha256", made.signed).holds(MESSAGE)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa-256", "rsa"])
def test_no_other_bytes_are_a_signature(kind, tmp_path):
    """Every byte of the file changed once, cut anywhere, or grown: parsed or not, it does not hold."""
    content = open_key(make_key(tmp_path, kind=kind)).sign(MESSAGE, SPACE).armour()
    rng = np.random.default_rng(3)
    changed = []
    for place in range(len(content)):
        one = bytearray(content)
        one[place] ^= int(rng.integers(1, 256))
        changed.append(bytes(one))
    changed += [content[:place] for place in range(0, len(content), 7)]
    changed += [content + b"\n", content.replace(b"\n", b"\r\n"), content[:-1], b" " + content]
    body = content.replace(b"\n", b"").removeprefix(b"-----BEGIN SSH SIGNATURE-----")
    changed.append(b"-----BEGIN SSH SIGNATURE-----\n" + body.replace(b"-----END", b"\n-----END") + b"\n")
    taken, said = [], []
    for one in changed:
        try:
            if Signature.parse(one).holds(MESSAGE):
                taken.append(one)
        except InvalidInput as error:
            said.append(str(error))
    assert taken == []
    assert all(text.isprintable() for text in said)
    assert len(said) > len(changed) // 4


def token(kind, flags=1, counter=7):
    """What a hardware token would sign, made by software: its key and one signature."""
    application = b"ssh:"
    content = to_sign(MESSAGE, SPACE)
    said = hashlib.sha256(application).digest() + bytes([flags]) + counter.to_bytes(4, "big")
    said += hashlib.sha256(content).digest()
    if kind == "sk-ssh-ed25519@openssh.com":
        key = Ed25519PrivateKey.generate()
        public = string(key.public_key().public_bytes_raw())
        value = key.sign(said)
    else:
        secret = ec.generate_private_key(ec.SECP256R1())
        point = secret.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        public = string(b"nistp256") + string(point)
        r, s = utils.decode_dss_signature(secret.sign(said, ec.ECDSA(hashes.SHA256())))
        value = mpint(r) + mpint(s)
    blob = string(kind.encode()) + public + string(application)
    tail = bytes([flags]) + counter.to_bytes(4, "big")
    return Signature(PublicKey(blob), SPACE, "sha512", string(kind.encode()) + string(value) + tail)


@pytest.mark.parametrize("kind", ["sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"])
def test_signatures_of_hardware_tokens(kind, tmp_path):
    made = token(kind)
    assert Signature.parse(made.armour()).holds(MESSAGE)
    assert openssh_accepts(f"ann {made.key.line()}", made.armour(), MESSAGE, tmp_path)
    assert not token(kind, flags=0).holds(MESSAGE)  # nobody touched it
    recounted = bytearray(made.signed)
    recounted[-1] ^= 1
    assert not Signature(made.key, SPACE, "sha512", bytes(recounted)).holds(MESSAGE)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", "must be a line `kind base64 comment`"),
        ("ssh-ed25519 !!!!", "its base64 cannot be read"),
        ("ssh-ed25519 AAAA", "cannot be read; it is damaged"),
        ("ssh-dss AAAAB3NzaC1kc3MAAAAA", "of kind 'ssh-dss'; known are ssh-ed25519"),
        (
            "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIL+dZmhtfhSUTfrPenRAmgeAtIjuShS7Ie60jjTjt0dr",
            "its kind is not",
        ),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAAA==", "is not a key of its kind"),
    ],
)
def test_what_is_no_public_key(line, text):
    with pytest.raises(InvalidInput, match=text):
        PublicKey.parse(line)


def test_a_short_rsa_key_is_refused(tmp_path):
    done = openssh("ssh-keygen", "-q", "-t", "rsa", "-b", "1024", "-N", "", "-f", tmp_path / "weak")
    assert done.returncode == 0
    with pytest.raises(InvalidInput, match="RSA of 1024 bits; use 2048 or more"):
        read_public_key(tmp_path / "weak.pub")
