"""Keys that sign: a private key file, with or without a passphrase, or a key that an SSH agent holds.

Give the path of a private key, or of a `.pub` file whose private half is in the agent (`ssh-add`, a
hardware token). Nothing secret is printed, copied or kept longer than the object lives.
"""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, Protocol, SupportsIndex

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from adumbra.attestation.sshsig import HASHES, PublicKey, Signature, to_sign
from adumbra.attestation.wire import Reader, mpint, string, uint32
from adumbra.errors import AdumbraError, InvalidInput, require

AGENT_SECONDS = 120  # a token waits for a touch
_FAILURE, _LIST, _LISTED, _SIGN, _SIGNED = 5, 11, 12, 13, 14
_RSA_SHA512 = 4  # flag of a request: not the SHA-1 of old
_ECDSA_HASHES: dict[int, hashes.HashAlgorithm] = {
    256: hashes.SHA256(),
    384: hashes.SHA384(),
    521: hashes.SHA512(),
}
LONGEST_FILE = 2**16

AnyPrivate = Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
AskPassphrase = Callable[[], str]


class SigningFailed(AdumbraError):
    """The key could not sign now: the agent is gone, refused, or was not touched in time."""


class Signer(Protocol):
    """Whatever can sign in the name of one public key."""

    @property
    def public(self) -> PublicKey:
        """The public half."""

    def sign(self, message: bytes, namespace: str) -> Signature:
        """A signature that was checked."""


class FileSigner:
    """A private key in memory; refuses to be printed, copied or pickled."""

    __slots__ = ("_key", "public")

    def __init__(self, key: AnyPrivate) -> None:
        self._key = key
        encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        self.public = PublicKey.parse(key.public_key().public_bytes(encoding, form).decode())

    def sign(self, message: bytes, namespace: str) -> Signature:
        """Sign with the key."""
        return _checked(self.public, message, namespace, self._sign(to_sign(message, namespace)))

    def _sign(self, content: bytes) -> bytes:
        key = self._key
        if isinstance(key, Ed25519PrivateKey):
            return string(b"ssh-ed25519") + string(key.sign(content))
        if isinstance(key, rsa.RSAPrivateKey):
            signed = key.sign(content, padding.PKCS1v15(), hashes.SHA512())
            return string(b"rsa-sha2-512") + string(signed)
        signed = key.sign(content, ec.ECDSA(_ECDSA_HASHES[key.curve.key_size]))
        r, s = utils.decode_dss_signature(signed)
        return string(self.public.kind.encode()) + string(mpint(r) + mpint(s))

    def __repr__(self) -> str:
        return f"FileSigner({self.public.fingerprint()})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("FileSigner: holds a secret; it cannot be copied or pickled")


class AgentSigner:
    """A key that the SSH agent at `SSH_AUTH_SOCK` holds; the secret stays there."""

    def __init__(self, public: PublicKey, address: str | None = None) -> None:
        self.public = public
        self._address = os.environ.get("SSH_AUTH_SOCK", "") if address is None else address
        require(
            bool(self._address),
            "key: is a public key, and there is no agent (SSH_AUTH_SOCK) with its private half; "
            "give the private key, or start an agent and `ssh-add` it",
        )
        try:
            held = self._held()
        except SigningFailed as error:
            raise InvalidInput(str(error)) from None
        require(
            public.blob in held,
            f"key: the agent does not hold {public.fingerprint()}; `ssh-add` it first",
        )

    def _held(self) -> set[bytes]:
        answer = self._ask(bytes([_LIST]), _LISTED)
        blobs = set()
        for _ in range(answer.uint32()):
            blobs.add(answer.string())
            answer.string()  # a comment
        return blobs

    def sign(self, message: bytes, namespace: str) -> Signature:
        """Let the agent sign; it may ask for a touch."""
        flags = _RSA_SHA512 if self.public.kind == "ssh-rsa" else 0
        content = string(self.public.blob) + string(to_sign(message, namespace)) + uint32(flags)
        signed = self._ask(bytes([_SIGN]) + content, _SIGNED).string()
        return _checked(self.public, message, namespace, signed)

    def _ask(self, request: bytes, expected: int) -> Reader:
        """One request and its answer."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(AGENT_SECONDS)
                line.connect(self._address)
                line.sendall(string(request))
                size = int.from_bytes(_receive(line, 4), "big")
                require(0 < size <= 2**20, "agent: its answer cannot be read")
                answer = _receive(line, size)
        except OSError:
            raise SigningFailed(
                "key: the SSH agent cannot be reached; is it running, and SSH_AUTH_SOCK right?"
            ) from None
        if answer[0] != expected:
            raise SigningFailed("key: the SSH agent refused to sign; unlock it, or touch the token")
        return Reader(answer[1:], "agent's answer")


def _receive(line: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        part = line.recv(count - len(content))
        if not part:
            raise OSError("closed")
        content += part
    return content


def _checked(public: PublicKey, message: bytes, namespace: str, signed: bytes) -> Signature:
    """The signature, after it was held against the message: a broken token must not be published."""
    made = Signature(public, namespace, HASHES[0], signed)
    if not made.holds(message):
        raise SigningFailed(f"key: the signature by {public.fingerprint()} does not hold; try again")
    return made


def open_key(path: str | Path, passphrase: str | AskPassphrase | None = None) -> Signer:
    """A key to sign with: a private key file, or a `.pub` file whose private half is in the agent.

    `passphrase` is the text, or a function that asks for it if the file needs one.
    """
    place = Path(path)
    content = read_small(place, "key")
    if b"PRIVATE KEY-----" not in content:
        return AgentSigner(read_public_key(place))
    mode = stat.S_IMODE(place.stat().st_mode)
    require(not mode & 0o077, f"key={place}: mode {mode:04o} lets others read it; run chmod 600 on it")
    locked = False
    try:
        key = _load(content, None)
    except TypeError:  # needs a passphrase
        locked = True
    if locked:
        require(
            passphrase is not None,
            f"key={place}: needs its passphrase; run at a terminal, or `ssh-add` it and give its .pub",
        )
        key = _unlock(place, content, passphrase() if callable(passphrase) else str(passphrase))
    require(
        isinstance(key, Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey),
        f"key={place}: is of a kind that cannot sign here; use Ed25519 (`adumbra key new`)",
    )
    return FileSigner(key)  # type: ignore[arg-type]  # just checked


def _load(content: bytes, passphrase: bytes | None) -> object:
    """The private key of an OpenSSH or PEM file; `TypeError` if it needs a passphrase."""
    openssh = b"BEGIN OPENSSH PRIVATE KEY" in content
    load = serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key
    try:
        return load(content, passphrase)
    except (ValueError, UnsupportedAlgorithm):
        if openssh and passphrase is None and _is_locked(content):
            raise TypeError from None
        raise InvalidInput("key: cannot be read with this passphrase, or is damaged") from None


def _is_locked(content: bytes) -> bool:
    """Whether an OpenSSH private key is encrypted."""
    import base64  # noqa: PLC0415 - used here only

    body = b"".join(content.split(b"-----")[2].split())
    return not base64.b64decode(body)[15:].startswith(string(b"none"))


def _unlock(place: Path, content: bytes, passphrase: str) -> object:
    try:
        return _load(content, passphrase.encode())
    except TypeError:
        raise InvalidInput(f"key={place}: cannot be read") from None


def read_small(path: Path, name: str) -> bytes:
    """The content of a short file."""
    try:
        content = path.read_bytes() if path.stat().st_size <= LONGEST_FILE else None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise InvalidInput(f"{name}={path}: cannot be read ({reason})") from None
    if content is None:
        raise InvalidInput(f"{name}={path}: is too long for one; give another file")
    return content


def read_public_key(path: str | Path) -> PublicKey:
    """The public key of a `.pub` file."""
    content = read_small(Path(path), "key").decode("utf-8", "replace").strip()
    require(
        content != "" and "\n" not in content,
        f"key={path}: must hold one line, as a .pub file does",
    )
    return PublicKey.parse(content)


def new_key(path: str | Path, *, passphrase: str = "", comment: str = "") -> PublicKey:
    """Make an Ed25519 key: the private half at `path` (mode 0600), the public one at `path.pub`."""
    place = Path(path)
    public_place = place.with_name(f"{place.name}.pub")
    require(comment.isprintable() and len(comment) <= 200, "comment: one printable line")
    for taken in (place, public_place):
        require(not os.path.lexists(taken), f"key={taken}: exists already; choose another name")
    key = Ed25519PrivateKey.generate()
    locked = (
        serialization.BestAvailableEncryption(passphrase.encode())
        if passphrase
        else serialization.NoEncryption()
    )
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, locked)
    public = FileSigner(key).public
    _write(place, content, 0o600)
    _write(public_place, f"{public.line()} {comment}".rstrip().encode() + b"\n", 0o644)
    return public


def _write(path: Path, content: bytes, mode: int) -> None:
    """A new file, flushed to disk."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except OSError as error:
        raise InvalidInput(f"key={path}: cannot be written ({error.strerror})") from None
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
