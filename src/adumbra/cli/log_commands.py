"""`adumbra ledger publish-head`, `watch`, `withdraw` and `supersede`: the log that others witness."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.ledger_commands import EntryId, Location, Reason, opened
from adumbra.cli.options import AsJson, Force, require_new_file, say
from adumbra.errors import InvalidInput, VerificationFailed, require

if TYPE_CHECKING:
    from adumbra.attestation.loghead import LogHead
    from adumbra.release.detached import Log


def publish_head(
    path: Annotated[Path, typer.Argument(help="The file for readers and witnesses.")],
    ledger: Location,
    since: Annotated[
        list[int] | None,
        typer.Option(
            "--since", help="Also prove that the log extends its state at this size. Repeatable."
        ),
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write the signed head of the log, with every withdrawal; `verify --log` and `watch` take it."""
    from adumbra.privacy.ledger.files import replace_file

    require_new_file("path", path, force=force)
    with opened(ledger) as book:
        made = book.published_head(since or [])
    replace_file(path, made.to_bytes())
    facts = {"path": str(path), **made.head.to_dict(), "notices": len(made.notices)}
    say(f"written: {path}, the log of {made.head.size} events", facts, json)


def watch(
    source: Annotated[str, typer.Argument(help="A head file, a public export (.jsonl), or a ledger.")],
    keep: Annotated[Path, typer.Option("--keep", help="Your file of heads seen; made if missing.")],
    json: AsJson = False,
) -> None:
    """Compare a log with the heads that you saw before; exit code 4 if it was rolled back or forked."""
    from adumbra.attestation.witness import WITNESS, WholeLog
    from adumbra.privacy.ledger.files import replace_file
    from adumbra.release.detached import require_continued

    seen = _seen(keep)
    found, head = _log(source)
    for older in seen:
        if older.issuer != head.issuer:
            raise VerificationFailed("log: was issued by another ledger than the heads kept")
    for older in seen if isinstance(found, WholeLog) else seen[-1:]:
        require_continued(found, older, "a head that you keep")
    grown = head.size - (seen[-1].size if seen else 0)
    if grown or not seen:
        require(
            bool(head.signature),
            "log: heads of this ledger are signed by operators; give --operator, or watch an export",
        )
        kept = [*seen, head]
        value = {"format": WITNESS, "heads": [one.to_dict() for one in kept]}
        replace_file(keep, json_module.dumps(value, indent=1).encode() + b"\n")
    text = f"whole: {head.size} events, {grown} since the last look; {len(seen)} earlier heads hold"
    say(text, {"size": head.size, "new": grown, "heads": len(seen) + bool(grown)}, json)


def _seen(keep: Path) -> "list[LogHead]":
    """The heads that were kept, in order."""
    from adumbra.attestation.loghead import LogHead
    from adumbra.attestation.witness import WITNESS

    if not keep.exists():
        return []
    try:
        value = json_module.loads(keep.read_bytes())
        heads = [LogHead.read(one) for one in value["heads"]]
        known = value["format"] == WITNESS and heads
    except (OSError, KeyError, TypeError, ValueError):
        known = False
    if not known:
        raise InvalidInput(f"keep={keep}: is not a file that `ledger watch` wrote; choose another name")
    return heads


def _log(source: str) -> "tuple[Log, LogHead]":
    """A log from a file or a ledger, with its head."""
    from adumbra.privacy.ledger.files import is_database
    from adumbra.release.detached import read_log

    path = Path(source)
    if "://" in source or (path.is_file() and is_database(path)):
        with opened(source) as book:
            log = book.whole_log()
            return log, log.head
    found = read_log(path)
    return found, found.head


def withdraw(entry: EntryId, ledger: Location, reason: Reason, json: AsJson = False) -> None:
    """Mark a release as withdrawn in the public log. It stays charged and genuine."""
    with opened(ledger) as book:
        book.withdraw(entry, reason)
    say(f"withdrawn: {entry}; publish a new head", {"entry": entry, "notice": "withdraw"}, json)


def supersede(
    entry: EntryId,
    ledger: Location,
    by: Annotated[str, typer.Option("--by", help="The entry of the release that takes its place.")],
    reason: Reason,
    json: AsJson = False,
) -> None:
    """Mark a release as replaced by another one in the public log."""
    with opened(ledger) as book:
        book.supersede(entry, by, reason)
    facts = {"entry": entry, "notice": "supersede", "by": by}
    say(f"superseded: {entry} by {by}; publish a new head", facts, json)
