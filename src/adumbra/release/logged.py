"""A release in its ledger's log: `proof.json`, and what a kept head or an export says of the release.

proof.json shows that the card's digest was sealed in the ledger whose head the card carries. A head that
came by another road shows that this log was not forked, and whether the release was withdrawn since.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adumbra.attestation.loghead import LogHead, Proof, PublishedHead, WholeLog
from adumbra.errors import InvalidInput, VerificationFailed

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
    """Hold a verified release against a log that came by another road; says what it has of it.

    `log` is a head file of `adumbra ledger publish-head`, or a public export of the ledger (.jsonl).
    Raises `VerificationFailed` if the log lacks the release, or was rolled back or forked.
    """
    asked = log if isinstance(log, PublishedHead | WholeLog) else read_log(log)
    place = Path(folder)
    card = json.loads((place / "card.json").read_bytes())
    if not (place / PROOF_FILE).is_file():
        raise VerificationFailed(f"{PROOF_FILE}: is missing; the release has no proof of its log")
    proof = Proof.parse((place / PROOF_FILE).read_bytes())
    if not _issuer(card) == proof.head.issuer == asked.head.issuer:
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
