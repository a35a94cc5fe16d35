"""What stands beside a card: its signature `card.sig`, and `proof.json`, its place in the ledger's log.

card.sig is over the bytes of card.json, which covers every other byte.

`write_signature` puts it into a sealed folder before that is published. `judge` says of a release who
signed it, and by the reader's own trust files whether that is somebody they know.

proof.json shows that the card's digest was sealed in the ledger whose head the card carries. A head that
came by another channel shows that this log was not forked, and whether the release was withdrawn since.
"""

import datetime as dt
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adumbra.attestation.loghead import LogHead, Proof
from adumbra.attestation.signers import Signer, read_public_key
from adumbra.attestation.sshsig import PublicKey, Signature
from adumbra.attestation.trust import NAMESPACE, Trust
from adumbra.attestation.witness import PublishedHead, WholeLog
from adumbra.errors import InvalidInput, VerificationFailed, require

SIGNATURE = "card.sig"
SIGNATURE_LIMIT = 2**14  # bytes of card.sig


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a reader asks of a signature."""

    key: str | None = None  # the fingerprint of the only key that will do
    trust: Trust | None = None
    signer: str | None = None  # a name that the trust file must give to the key
    required: bool = False

    def __post_init__(self) -> None:
        known = self.key is not None or self.trust is not None
        require(
            known or not (self.required or self.signer),
            "require_signature: whose? give the publisher's key, or a trust file",
        )

    @property
    def must_be_signed(self) -> bool:
        """Whether a release without a good signature is a fault."""
        return self.required or self.key is not None or self.signer is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedBy:
    """The key that signed a release, and what the reader's trust files say of it."""

    key: str  # its fingerprint
    kind: str
    names: tuple[str, ...]  # by the trust file; none if it does not know the key
    is_trusted: bool
    why: str  # in words

    def sentence(self) -> str:
        """For people."""
        by = f"{', '.join(self.names)} ({self.key})" if self.names else self.key
        return f"signed by {by}, {self.why}"


def words_on(signature: SignedBy | None, card: Mapping[str, Any]) -> str:
    """Who vouches for a release, in a sentence for people."""
    if signature is not None:
        return signature.sentence()
    named = " although its card names a signer" if "signed_by" in card else ""
    return f"NOT SIGNED{named}: nothing shows who made it"


def make_demand(
    *,
    key: str | Path | PublicKey | None = None,
    trust: str | Path | Trust | None = None,
    signer: str | None = None,
    require_signature: bool = False,
) -> Demand:
    """From what a caller gives: a key as an object, a `.pub` file, a line of one, or a fingerprint."""
    files = trust if trust is None or isinstance(trust, Trust) else Trust.read(trust)
    name = None if key is None else _fingerprint(key)
    return Demand(key=name, trust=files, signer=signer, required=require_signature)


def _fingerprint(key: str | Path | PublicKey) -> str:
    if isinstance(key, PublicKey):
        return key.fingerprint()
    text = str(key)
    if text.startswith("SHA256:"):
        require(len(text) == 50, f"key={text}: a fingerprint has 43 letters after SHA256:")
        return text
    if text.startswith(("ssh-", "ecdsa-", "sk-")) and " " in text:
        return PublicKey.parse(text).fingerprint()
    return read_public_key(text).fingerprint()


def write_signature(folder: Path, signer: Signer, card: bytes) -> None:
    """Sign card.json of a sealed folder and put card.sig there, whole or not at all, durably."""
    content = signer.sign(card, NAMESPACE).armour()
    put_file(folder, SIGNATURE, content)


def put_file(folder: Path, name: str, content: bytes) -> None:
    """A small file in a folder of its own, by one rename, flushed; replaces what was there."""
    draft = folder.parent / f"{folder.name}.{name}"
    descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(stream.fileno(), 0o644)  # whatever the umask is
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(folder / name)
    sync_directory(folder)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def judge(
    folder: Path, sizes: Mapping[str, int], card: Mapping[str, Any], demand: Demand
) -> tuple[list[str], SignedBy | None]:
    """Faults of a signature under a demand, and who signed if the signature holds."""
    if SIGNATURE not in sizes:
        missing = f"{SIGNATURE}: is missing; the release is not signed"
        return ([missing] if demand.must_be_signed else []), None
    if sizes[SIGNATURE] > SIGNATURE_LIMIT:
        return [f"{SIGNATURE}: is larger than {SIGNATURE_LIMIT} bytes"], None
    raw_card, raw_signature = (folder / "card.json").read_bytes(), (folder / SIGNATURE).read_bytes()
    try:
        signature = Signature.parse(raw_signature)
    except InvalidInput as error:
        return [f"{SIGNATURE}: {error}"], None
    if signature.namespace != NAMESPACE or not signature.holds(raw_card):
        return [f"{SIGNATURE}: does not hold for card.json"], None
    found = signature.key.fingerprint()
    named = card.get("signed_by")
    faults = []
    if named not in (None, found):
        faults.append(f"{SIGNATURE}: is by {found}; the card names another signer")
    if demand.key not in (None, found):
        faults.append(f"{SIGNATURE}: is by {found}, not by the key given ({demand.key})")
    trust = demand.trust or Trust()
    if signature.key.blob in trust.revoked:
        faults.append(f"{SIGNATURE}: is by {found}, which is revoked; trust nothing that it signed")
    by = _identify(signature.key, str(card["about"]["date"]), demand, trust)
    if demand.signer is not None and demand.signer not in by.names:
        faults.append(f"{SIGNATURE}: is by {found}, which is not a key of signer={demand.signer}")
    if demand.must_be_signed and not by.is_trusted and not faults:
        faults.append(f"{SIGNATURE}: {by.sentence()}")
    return faults, by


def _identify(key: PublicKey, day: str, demand: Demand, trust: Trust) -> SignedBy:
    """What the reader's trust says of a key that signed a card of this day."""
    lines = [line for line in trust.lines_for(key) if line.is_for(NAMESPACE)]
    try:
        date = dt.date.fromisoformat(day)
    except ValueError:  # the pattern of a day, but no day of any year
        date = None
    valid = [line for line in lines if date is not None and line.is_valid_on(date)]
    names = tuple(dict.fromkeys(name for line in valid or lines for name in line.names))
    given = demand.key == key.fingerprint()
    if valid or (given and not lines):
        why = f"valid on {day}" if valid else "the key that you gave"
    elif lines:
        why = f"but that key is not valid for a release of {day}"
    else:
        why = "a key that you have not said you trust"
    return SignedBy(
        key=key.fingerprint(),
        kind=key.kind,
        names=names,
        is_trusted=bool(valid) or (given and not lines),
        why=why,
    )


PROOF_FILE = "proof.json"
PROOF_LIMIT = 2**14  # bytes of proof.json

Log = PublishedHead | WholeLog


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStanding:
    """What a log says of a release."""

    size: int  # events in the log that was asked
    notice: Mapping[str, Any] | None  # the event that withdrew or superseded the release

    def sentence(self) -> str:
        """For people."""
        if self.notice is None:
            return f"in the log of {self.size} events; not withdrawn there"
        what = (
            "WITHDRAWN"
            if self.notice["kind"] == "withdraw"
            else f"SUPERSEDED by the release {self.notice['by_digest']}"
        )
        return f"genuine, and {what} on {self.notice['day']}: {self.notice['reason']}"


def write_beside(staged: Path, proof: Proof, signer: Signer | None) -> None:
    """Write what vouches for a sealed card: its proof, and its signature if somebody signs."""
    put_file(staged, PROOF_FILE, proof.to_bytes())
    if signer is not None:
        write_signature(staged, signer, (staged / "card.json").read_bytes())


def judge_beside(
    folder: Path, sizes: Mapping[str, int], card: Mapping[str, Any], digest: str, demand: Demand
) -> tuple[list[str], SignedBy | None]:
    """What is wrong with a card's signature and proof, the files that vouch for it; and who signed."""
    faults, signed = judge(folder, sizes, card, demand)
    return faults + proof_faults(folder, sizes, card, digest), signed


def proof_faults(
    folder: Path, sizes: Mapping[str, int], card: Mapping[str, Any], digest: str
) -> list[str]:
    """What is wrong with proof.json, if there is one."""
    if PROOF_FILE not in sizes:
        return []
    if sizes[PROOF_FILE] > PROOF_LIMIT:
        return [f"{PROOF_FILE}: is larger than {PROOF_LIMIT} bytes"]
    try:
        proof = Proof.parse((folder / PROOF_FILE).read_bytes())
    except InvalidInput as error:
        return [f"{PROOF_FILE}: {error}"]
    head, event = card["ledger"]["head"], proof.event
    faults = []
    if proof.head.issuer != _issuer(card):
        faults.append(f"{PROOF_FILE}: is of another ledger than the card")
    if (event.get("kind"), event.get("log")) != ("seal", "public") or (
        event.get("entry"),
        event.get("digest"),
    ) != (card["ledger"]["entry"], digest):
        faults.append(f"{PROOF_FILE}: proves another event than the seal of this card")
    if event.get("sequence") != proof.index + 1 or proof.head.size <= head["sequence"]:
        faults.append(f"{PROOF_FILE}: its event is not where the log has it")
    return faults


def _issuer(card: Mapping[str, Any]) -> tuple[str, bytes]:
    head = card["ledger"]["head"]
    return head["ledger"], bytes.fromhex(head["public_key"])


def read_log(path: str | Path) -> Log:
    """A head that `ledger publish-head` wrote, or a public export (.jsonl), checked."""
    place = Path(path)
    if not place.is_file():
        raise InvalidInput(f"log={place}: no such file; give a head or a public export")
    if place.suffix == ".jsonl":
        from adumbra.privacy.ledger.log import read_export  # noqa: PLC0415 - SQLAlchemy comes with it

        return read_export(place)
    try:
        return PublishedHead.parse(place.read_bytes())
    except InvalidInput as error:
        raise VerificationFailed(f"log={place}: {error}") from None


def check_log(folder: str | Path, log: str | Path | Log) -> LogStanding:
    """Hold a verified release against a log that came by another channel; says what it has of it.

    `log` is a head file of `adumbra ledger publish-head`, or a public export of the ledger (.jsonl).
    Raises `VerificationFailed` if the log lacks the release, or was rolled back or forked.
    """
    asked = log if isinstance(log, PublishedHead | WholeLog) else read_log(log)
    place = Path(folder)
    raw = (place / "card.json").read_bytes()
    card = json.loads(raw)
    if not (place / PROOF_FILE).is_file():
        raise VerificationFailed(f"{PROOF_FILE}: is missing; the release has no proof of its log")
    sizes = {PROOF_FILE: (place / PROOF_FILE).stat().st_size}
    faults = proof_faults(place, sizes, card, hashlib.sha256(raw).hexdigest())
    if faults:
        raise VerificationFailed("\n".join(faults))
    proof = Proof.parse((place / PROOF_FILE).read_bytes())
    if proof.head.issuer != asked.head.issuer:
        raise VerificationFailed("log: was issued by another ledger than the release")
    require_continued(asked, proof.head, "the release")
    notices = [json.loads(body) for body in asked.notices]
    mine = [notice for notice in notices if notice["digest"] == proof.event["digest"]]
    return LogStanding(size=asked.head.size, notice=mine[0] if mine else None)


def require_continued(log: Log, older: LogHead, what: str) -> None:
    """Refuse a log of which an older head is no beginning: it was rolled back or forked."""
    size = log.head.size
    if size < older.size:
        raise VerificationFailed(
            f"log: has {size} events, {what} was issued at {older.size}; it is older, or was rolled back"
        )
    continued = log.continues(older)
    if continued is None:
        raise VerificationFailed(
            f"log: the head has no proof from size {older.size} on; ask for "
            f"`ledger publish-head --since {older.size}`, or for a public export"
        )
    if not continued:
        raise VerificationFailed(
            f"log: is not a continuation of the one that {what} was issued in; it was FORKED"
        )
