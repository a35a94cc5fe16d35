"""The hash chain of a ledger as a reader checks it: links, and the signed head that stands on a card.

    hash_i = SHA-256(body_i || hash_(i-1)),  body_i = canonical JSON (RFC 8785)

Nothing here needs the ledger itself, nor the database library that comes with it.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from adumbra.attestation.operators import OWNER_KINDS, Roll
from adumbra.errors import InvalidInput

FORMAT = "adumbra-ledger/1"


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


def unhex(text: str) -> bytes:
    """The bytes of lower-case hex; any other spelling is a change and a `ValueError`."""
    value = bytes.fromhex(text)
    if value.hex() != text:
        raise ValueError("hex: must be lower-case")
    return value


def is_signed(public_key: str, message: bytes, signature: str) -> bool:
    """Whether an Ed25519 signature holds; malformed keys and signatures do not."""
    try:
        Ed25519PublicKey.from_public_bytes(unhex(public_key)).verify(unhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def head_holds(head: Mapping[str, Any]) -> bool:
    """Whether a head, as a card has it, was signed by its ledger's key or by an operator of that key."""
    try:
        if "act" not in head and "enrolment" not in head:
            message = head_message(
                str(head["ledger"]), "public", int(head["sequence"]), str(head["hash"])
            )
            return is_signed(str(head["public_key"]), message, str(head["signature"]))
        act, enrolment = head["act"], head["enrolment"]
        event = json.loads(act["event"])
        roll = Roll(str(head["ledger"]), unhex(str(head["public_key"])))
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
