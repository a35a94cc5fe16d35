"""The events of a ledger as a reader checks them: their links, the signed head, and who might sign.

    hash_i = SHA-256(body_i || hash_(i-1)),  body_i = canonical JSON (RFC 8785)

Once an operator is enrolled, every event of a log is signed by the key of the operator who acts. The
ledger's own key signs three kinds of events and nothing else: `enrol`, `dismiss` and `require-two`.

    message of an event   "adumbra-act/1", ledger, hash of the event before, body without `signature`
    message of an approval   "adumbra-approval/1", ledger, population, cap before, cap after, reason

The hash of the event before stands for the whole history, so a signature fits one place of one ledger.
An operator is known in the log by the fingerprint of a key, never by a name.

Nothing here needs the ledger itself, nor the database library that comes with it.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Self

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from adumbra.attestation.signers import Signer
from adumbra.attestation.sshsig import HASHES, PublicKey, Signature
from adumbra.errors import InvalidInput, LedgerError, require

FORMAT = "adumbra-ledger/1"
RIGHTS = ("register", "raise", "release", "void", "read")
RIGHT_OF = {
    **dict.fromkeys(("register", "link", "declare-different", "withdraw-different"), "register"),
    **dict.fromkeys(("raise-cap", "change-delta"), "raise"),
    **dict.fromkeys(("reserve", "draw", "seal", "publish", "commit"), "release"),
    **dict.fromkeys(("evaluate", "withdraw", "supersede", "fingerprint", "retarget"), "release"),
    "void": "void",
}
OWNER_KINDS = ("enrol", "dismiss", "require-two")  # signed by the ledger's key
CAPS = ("register", "change-delta", "raise-cap")  # kinds that set a cap
ACTS, HEADS, APPROVALS = "adumbra-ledger", "adumbra-ledger-head", "adumbra-ledger-approval"


class NotPermitted(LedgerError):
    """The operator, or nobody, was given the right to do this."""


def canonical(value: object) -> bytes:
    """RFC 8785 bytes of a JSON value; anything that is not JSON is the caller's mistake."""
    try:
        return bytes(rfc8785.dumps(value))  # type: ignore[arg-type]
    except (rfc8785.CanonicalizationError, RecursionError):
        raise InvalidInput("request: must be JSON with finite numbers; integers below 2^53") from None


def link_hash(body: bytes, previous: str) -> str:
    """The hash of one event on top of the hash before it."""
    return hashlib.sha256(body + bytes.fromhex(previous)).hexdigest()


def head_message(ledger: str, log: str, sequence: int, digest: str) -> bytes:
    """What the head's signature signs."""
    return canonical(
        {"format": FORMAT, "hash": digest, "ledger": ledger, "log": log, "sequence": sequence}
    )


@dataclass(frozen=True, slots=True)
class Link:
    """One event on top of the hash before it: its bytes, its hash, and what a head there signs."""

    body: bytes = field(repr=False)  # of a fingerprint it holds the number of rows, which is private
    hash: str
    message: bytes = field(repr=False)


def link(ledger: str, event: Mapping[str, Any], before: str) -> Link:
    """The link that an event with its log and sequence makes."""
    body = canonical(event)
    digest = link_hash(body, before)
    return Link(body, digest, head_message(ledger, event["log"], event["sequence"], digest))


def unhex(text: str) -> bytes:
    """The bytes of lower-case hex; any other spelling is a change and a `ValueError`."""
    value = bytes.fromhex(text)
    if value.hex() != text:
        raise ValueError("hex: must be lower-case")
    return value


def act_message(ledger: str, previous: str, event: Mapping[str, Any]) -> bytes:
    """What is signed of an event, whose field `signature` is left out."""
    body = {name: value for name, value in event.items() if name != "signature"}
    return f"adumbra-act/1\n{ledger}\n{previous}\n".encode() + bytes(rfc8785.dumps(body))


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether an Ed25519 signature of a ledger's key holds."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_signed_hex(public_key: str, message: bytes, signature: str) -> bool:
    """The same of lower-case hex; malformed keys and signatures do not hold."""
    try:
        return is_signed(unhex(public_key), message, unhex(signature))
    except ValueError:
        return False


def encode(raw: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(raw).decode()


def _holds(key: PublicKey, namespace: str, message: bytes, signed: object) -> bool:
    """Whether base64 holds a signature of this key in this namespace, in its one form."""
    try:
        raw = base64.b64decode(str(signed), validate=True)
    except binascii.Error:
        return False
    return encode(raw) == signed and Signature(key, namespace, HASHES[0], raw).holds(message)


@dataclass(frozen=True, slots=True)
class Enrolment:
    """The event by which a ledger's key enrolled an operator; `read` checks its form alone."""

    body: str
    previous: str
    key: PublicKey
    rights: tuple[str, ...]

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From {"event", "previous"}; raises KeyError, TypeError or ValueError if it is none."""
        body, previous = str(value["event"]), str(value["previous"])
        event = json.loads(body)
        key = PublicKey.parse(str(event["key"]))
        rights = tuple(str(one) for one in event["rights"])
        fits = event["kind"] == "enrol" and event["operator"] == key.fingerprint()
        if (
            not fits
            or not rights
            or not set(rights) <= set(RIGHTS)
            or len(bytes.fromhex(previous)) != 32
        ):
            raise ValueError("enrolment")
        return cls(body, previous, key, rights)

    @property
    def operator(self) -> str:
        """The name in the log: the key's fingerprint."""
        return self.key.fingerprint()

    def holds(self, ledger: str, public_key: bytes) -> bool:
        """Whether this ledger's key made it."""
        event = json.loads(self.body)
        try:
            signature = bytes.fromhex(event["signature"])
        except (KeyError, TypeError, ValueError):
            return False
        return is_signed(public_key, act_message(ledger, self.previous, event), signature)

    def to_dict(self) -> dict[str, object]:
        """As in a file."""
        return {"event": self.body, "previous": self.previous}


@dataclass(frozen=True, slots=True)
class Acting:
    """An enrolled operator with the key at hand."""

    signer: Signer
    enrolment: Enrolment
    public_key: bytes  # the ledger's

    def sign_event(self, ledger: str, previous: str, event: Mapping[str, Any]) -> str:
        """The signature of one event."""
        return encode(self.signer.sign(act_message(ledger, previous, event), ACTS).signed)

    def sign_head(self, message: bytes) -> bytes:
        """The signature of a head or of its notices."""
        return self.signer.sign(message, HEADS).signed


HeadKey = Ed25519PrivateKey | Acting


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A second operator's word for one raise of one cap."""

    ledger: str
    population: str
    before: str
    epsilon: str
    reason: str
    operator: str
    signature: str

    @staticmethod
    def message(ledger: str, population: str, before: str, epsilon: str, reason: str) -> bytes:
        """What is signed; the values are single lines."""
        lines = ("adumbra-approval/1", ledger, population, before, epsilon, reason, "")
        return "\n".join(lines).encode()

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """From a file that `ledger approve` wrote."""
        names = ("ledger", "population", "before", "epsilon", "reason", "operator", "signature")
        try:
            value = json.loads(raw)
            known = value["format"] == "adumbra-approval/1"
            found = cls(**{name: str(value[name]) for name in names})
        except (KeyError, TypeError, ValueError):
            known = False
        if not known:
            raise InvalidInput("approval: is not a file that `adumbra ledger approve` wrote")
        return found

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        value = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({"format": "adumbra-approval/1", **value}, indent=1).encode() + b"\n"


class Roll:
    """Who is enrolled as a log stands, grown event by event; no event of another ledger fits."""

    def __init__(self, ledger: str, public_key: bytes) -> None:
        self.ledger, self.public_key = ledger, public_key
        self.enrolled: dict[str, Enrolment] = {}
        self.threshold: Decimal | None = None
        self.has_operators = False  # for ever, once one was enrolled

    @classmethod
    def begun(cls, ledger: str, public_key: str) -> Self:
        """Of a ledger in which nobody is enrolled yet, by its public key in hex."""
        return cls(ledger, unhex(public_key))

    def take(self, body: str, previous: str) -> None:
        """An act of the ledger's own key; raises ValueError if it is not one."""
        event = json.loads(body)
        message = act_message(self.ledger, previous, event)
        if not is_signed(self.public_key, message, bytes.fromhex(str(event["signature"]))):
            raise ValueError("not signed by the ledger's key")
        if event["kind"] == "enrol":
            found = Enrolment.read({"event": body, "previous": previous})
            self.enrolled[found.operator] = found
            self.has_operators = True
        elif event["kind"] == "dismiss":
            del self.enrolled[event["operator"]]
        elif event["kind"] == "require-two":
            self.threshold = decimal_of(event["above"])
        else:
            raise ValueError("not a kind of the ledger's key")

    def acting(self, signer: Signer) -> Acting:
        """An operator with a key, if it is enrolled now."""
        found = self.enrolled.get(signer.public.fingerprint())
        if found is None:
            raise NotPermitted(
                f"operator={signer.public.fingerprint()}: is not enrolled in this ledger; its owner "
                "runs `adumbra ledger enrol`"
            )
        return Acting(signer, found, self.public_key)

    def require_right(self, kind: str, operator: str | None) -> None:
        """Refuse an act that its operator has no right to, or that nobody signs."""
        right = RIGHT_OF[kind]
        if operator is None:
            raise NotPermitted(
                f"{kind}: acts on this ledger are signed by operators; give the key of one with the "
                f"right {right} (--operator)"
            )
        found = self.enrolled.get(operator)
        if found is None or right not in found.rights:
            held = "none" if found is None else ", ".join(found.rights)
            raise NotPermitted(f"operator={operator}: {kind} needs the right {right}; held: {held}")

    def needs_two(self, event: Mapping[str, Any]) -> bool:
        """Whether it sets a cap above the threshold."""
        if self.threshold is None or event["kind"] not in CAPS:
            return False
        return decimal_of(event["epsilon"]) > self.threshold

    def require_two(self, event: Mapping[str, Any], operator: str) -> None:
        """Refuse a cap above the threshold that a second operator did not approve."""
        if not self.needs_two(event):
            require("approval" not in event, "approval: is not needed for this cap; leave it out")
            return
        where = f"population={event['population']}: a cap above {self.threshold} needs two operators"
        if event["kind"] != "raise-cap":
            raise NotPermitted(f"{where}; set it to {self.threshold} or less, then raise it")
        given = event.get("approval")
        if not isinstance(given, Mapping):
            raise NotPermitted(f"{where}; another one runs `adumbra ledger approve`; give its file")
        second = self.enrolled.get(str(given.get("operator")))
        said = (str(event[name]) for name in ("population", "before", "epsilon", "reason"))
        if second is None or "raise" not in second.rights:
            raise NotPermitted(f"{where}; the approval is not by an operator with the right raise")
        if second.operator == operator:
            raise NotPermitted(f"{where}; both signatures are by one key")
        if not _holds(
            second.key, APPROVALS, Approval.message(self.ledger, *said), given.get("signature")
        ):
            raise NotPermitted(f"{where}; the approval is for another raise, or not signed")

    def fault(self, body: str, previous: str) -> str | None:
        """What is wrong with one event of the public log, which then counts; None if nothing is."""
        try:
            event = json.loads(body)
            kind = event["kind"]
            if kind in OWNER_KINDS:
                self.take(body, previous)
            elif not self.has_operators:
                return "is signed in a ledger without operators" if "operator" in event else None
            else:
                self._require_act(event, previous)
        except NotPermitted as error:
            return str(error)
        except (KeyError, TypeError, ValueError, AttributeError):
            return "is not signed by somebody who may do it"
        return None

    def _require_act(self, event: Mapping[str, Any], previous: str) -> None:
        operator = event.get("operator")
        self.require_right(event["kind"], None if operator is None else str(operator))
        key = self.enrolled[str(operator)].key
        message = act_message(self.ledger, previous, event)
        if not _holds(key, ACTS, message, event.get("signature")):
            raise ValueError("signature")
        self.require_two(event, str(operator))

    def private_fault(
        self, event: Mapping[str, Any], previous: str, known: Mapping[str, PublicKey]
    ) -> bool:
        """Whether an event of the private log is signed neither by the ledger nor by an operator."""
        message = act_message(self.ledger, previous, event)
        signature = str(event.get("signature"))
        if event["kind"] in OWNER_KINDS:
            raw = bytes.fromhex(signature) if len(signature) == 128 else b""
            return not is_signed(self.public_key, message, raw)
        key = known.get(str(event.get("operator")))
        return key is None or not _holds(key, ACTS, message, signature)


def head_holds(head: Mapping[str, Any]) -> bool:
    """Whether a head, as a card has it, was signed by its ledger's key or by an operator of that key."""
    try:
        if "act" not in head and "enrolment" not in head:
            message = head_message(
                str(head["ledger"]), "public", int(head["sequence"]), str(head["hash"])
            )
            return is_signed_hex(str(head["public_key"]), message, str(head["signature"]))
        act, enrolment = head["act"], head["enrolment"]
        event = json.loads(act["event"])
        roll = Roll.begun(str(head["ledger"]), str(head["public_key"]))
        roll.take(enrolment["event"], enrolment["previous"])
        return (
            link_hash(act["event"].encode(), act["previous"]) == head["hash"]
            and (event["log"], event["sequence"]) == ("public", head["sequence"])
            and json.loads(enrolment["event"])["signature"] == head["signature"]
            and event["kind"] not in (*OWNER_KINDS, "init")
            and event["operator"] in roll.enrolled
            and roll.fault(act["event"], act["previous"]) is None
        )
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return False


def decimal_of(text: object) -> Decimal:
    """A declared number; raises ValueError if it is none."""
    try:
        found = Decimal(str(text))
    except InvalidOperation:
        raise ValueError("number") from None
    if not found.is_finite():
        raise ValueError("number")
    return found
