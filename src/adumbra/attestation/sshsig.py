"""SSH public keys, and detached signatures in the format of `ssh-keygen -Y sign` (SSHSIG, version 1).

    signed bytes   "SSHSIG" || namespace || "" || hash name || hash of the message
    file           base64 of "SSHSIG" || version || key || namespace || "" || hash name || signature

Taken are Ed25519, ECDSA on the three NIST curves, RSA of 2,048 bits or more with SHA-2, and the two
kinds of hardware tokens (`sk-`), which must state that somebody touched them. A signature file has one
byte form, that of OpenSSH: any other spelling of the same signature is refused.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from adumbra.attestation.wire import Reader, string, uint32
from adumbra.errors import InvalidInput, require

MAGIC = b"SSHSIG"
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
LINE = 70  # letters of base64 per line, as OpenSSH writes them
HASHES = ("sha512", "sha256")
SMALLEST_RSA = 2048
TOUCHED = 1  # the flag by which a token says that somebody was there
_CURVES: dict[str, tuple[type[ec.EllipticCurve], hashes.HashAlgorithm]] = {
    "nistp256": (ec.SECP256R1, hashes.SHA256()),
    "nistp384": (ec.SECP384R1, hashes.SHA384()),
    "nistp521": (ec.SECP521R1, hashes.SHA512()),
}
_ECDSA = {f"ecdsa-sha2-{curve}": curve for curve in _CURVES}
_SK_ED25519, _SK_ECDSA = "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"
KINDS = ("ssh-ed25519", *_ECDSA, "ssh-rsa", _SK_ED25519, _SK_ECDSA)
_RSA_HASHES: dict[str, hashes.HashAlgorithm] = {
    "rsa-sha2-512": hashes.SHA512(),
    "rsa-sha2-256": hashes.SHA256(),
}

AnyPublic = Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One SSH public key; `blob` is its encoding, and two keys are the same if their blobs are."""

    blob: bytes
    kind: str = field(init=False, compare=False)
    application: bytes = field(init=False, compare=False)  # of a hardware token, else empty
    key: AnyPublic = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        reader = Reader(self.blob, "public key")
        kind = reader.text()
        require(kind in KINDS, f"public key: of kind {kind!r}; known are {', '.join(KINDS)}")
        try:
            key = _read_key(kind, reader)
        except InvalidInput:
            raise
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidInput("public key: is not a key of its kind") from None
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "application", reader.string() if kind.startswith("sk-") else b"")
        reader.end()

    @classmethod
    def parse(cls, line: str) -> Self:
        """From a line of a `.pub` file: kind, base64, and a comment that is not read."""
        words = line.split()
        require(len(words) >= 2, "public key: must be a line `kind base64 comment`, as in a .pub file")
        try:
            found = cls(base64.b64decode(words[1], validate=True))
        except binascii.Error:
            raise InvalidInput("public key: its base64 cannot be read") from None
        require(found.kind == words[0], "public key: its kind is not the one that it holds")
        return found

    def line(self) -> str:
        """As in a `.pub` file, without a comment."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"


def _read_key(kind: str, reader: Reader) -> AnyPublic:
    if kind in ("ssh-ed25519", _SK_ED25519):
        return Ed25519PublicKey.from_public_bytes(reader.string())
    if kind == "ssh-rsa":
        exponent, modulus = reader.mpint(), reader.mpint()
        require(
            modulus.bit_length() >= SMALLEST_RSA,
            f"public key: RSA of {modulus.bit_length()} bits; use {SMALLEST_RSA} or more, or Ed25519",
        )
        return rsa.RSAPublicNumbers(exponent, modulus).public_key()
    name, point = reader.text(), reader.string()
    if name not in _CURVES or not kind.startswith((f"ecdsa-sha2-{name}", f"sk-ecdsa-sha2-{name}@")):
        reader.fail()
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[name][0](), point)


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature with the key that made it; that it holds is another question (`holds`)."""

    key: PublicKey
    namespace: str
    hash_name: str
    signed: bytes  # the signature itself: its kind, then its bytes

    @classmethod
    def parse(cls, armoured: bytes) -> Self:
        """From a signature file; refuses any bytes but those that `armour` writes."""
        lines = armoured.decode("ascii", "replace").split("\n")
        require(lines[0] == BEGIN and lines[-2:] == [END, ""], "signature: is not an SSH signature file")
        try:
            content = base64.b64decode("".join(lines[1:-2]), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput("signature: its base64 cannot be read") from None
        reader = Reader(content, "signature")
        if reader.take(len(MAGIC)) != MAGIC or reader.uint32() != 1:
            reader.fail()
        key, namespace, reserved = PublicKey(reader.string()), reader.text(), reader.string()
        hash_name, signed = reader.text(), reader.string()
        reader.end()
        require(reserved == b"" and hash_name in HASHES, "signature: made by a rule that is not known")
        found = cls(key, namespace, hash_name, signed)
        require(found.armour() == armoured, "signature: not in the form that OpenSSH writes")
        return found

    def armour(self) -> bytes:
        """The bytes of the signature file."""
        fields = (self.key.blob, self.namespace.encode(), b"", self.hash_name.encode(), self.signed)
        text = base64.b64encode(MAGIC + uint32(1) + b"".join(map(string, fields))).decode()
        lines = (text[start : start + LINE] for start in range(0, len(text), LINE))
        return "\n".join((BEGIN, *lines, END, "")).encode()

    def holds(self, message: bytes) -> bool:
        """Whether the key signed this message in this namespace."""
        try:
            _verify(self.key, to_sign(message, self.namespace, self.hash_name), self.signed)
        except (InvalidSignature, InvalidInput, ValueError):
            return False
        return True


def to_sign(message: bytes, namespace: str, hash_name: str = HASHES[0]) -> bytes:
    """The bytes that a key signs in place of the message."""
    digest = hashlib.new(hash_name, message).digest()
    return MAGIC + b"".join(map(string, (namespace.encode(), b"", hash_name.encode(), digest)))


def _verify(key: PublicKey, content: bytes, signed: bytes) -> None:
    """Raise unless the signature holds."""
    reader = Reader(signed, "signature")
    kind, value = reader.text(), reader.string()
    public = key.key
    if isinstance(public, rsa.RSAPublicKey):
        if kind not in _RSA_HASHES:
            reader.fail()
        reader.end()
        public.verify(value, content, padding.PKCS1v15(), _RSA_HASHES[kind])
        return
    if kind != key.kind:
        reader.fail()
    if key.kind.startswith("sk-"):
        flags, counter = reader.take(1), reader.take(4)
        if not flags[0] & TOUCHED:
            reader.fail()
        said = hashlib.sha256(key.application).digest() + flags + counter
        content = said + hashlib.sha256(content).digest()
    reader.end()
    if isinstance(public, Ed25519PublicKey):
        public.verify(value, content)
    else:
        numbers = Reader(value, "signature")
        r, s = numbers.mpint(), numbers.mpint()
        numbers.end()
        algorithm = _CURVES[key.kind.partition("ecdsa-sha2-")[2].partition("@")[0]][1]
        public.verify(utils.encode_dss_signature(r, s), content, ec.ECDSA(algorithm))
