"""`adumbra ledger backup`, `restore` and `clean`: copies that are whole, and what a crash left."""

from pathlib import Path
from typing import Annotated

import typer

from adumbra.cli.ledger_commands import Location, opened, read_card
from adumbra.cli.options import AsJson, say
from adumbra.errors import visible

Kept = Annotated[
    Path | None, typer.Option("--head", help="Where to write the head. Default: beside the backup.")
]


def backup(
    path: Annotated[Path, typer.Argument(help="A new file: a ledger of its own, mode 0600.")],
    ledger: Location,
    head: Kept = None,
    json: AsJson = False,
) -> None:
    """Copy the ledger while it is in use, verify the copy, and write its signed head."""
    from adumbra.privacy.ledger import backup_ledger

    with opened(ledger) as book:
        found = backup_ledger(book, path, head)
    kept = path.with_name(f"{path.name}.head.json") if head is None else head
    text = f"backed up to {path}, whole, at event {found.sequence}; keep {kept} elsewhere"
    say(text, {"path": str(path), "head": str(kept), **found.to_dict()}, json)


def restore(
    backup_file: Annotated[Path, typer.Argument(help="A file that `backup` wrote.")],
    ledger: Annotated[str, typer.Argument(help="A new file, or a postgresql:// address.")],
    against: Annotated[
        Path, typer.Option("--against", help="The newest head, card or release that you have.")
    ],
    json: AsJson = False,
) -> None:
    """Restore the ledger from a backup. A backup older than the kept head is refused."""
    from adumbra.privacy.ledger import restore_ledger

    card, digest = read_card(against)
    with restore_ledger(backup_file, ledger, against=card, card_digest=digest) as book:
        found = book.head()
    text = f"restored ledger {found.ledger}, whole, at event {found.sequence}; use one copy of it only"
    say(text, found.to_dict(), json)


def migrate(
    ledger: Location,
    backup_file: Annotated[Path, typer.Option("--backup", help="A new file for the copy made first.")],
    json: AsJson = False,
) -> None:
    """Bring a ledger of an earlier version up to date. Its history and its head stay the same."""
    from adumbra.privacy.ledger import migrate_ledger

    done = migrate_ledger(ledger, backup_file)
    facts = {"changes": list(done.changes), "backup": str(backup_file), **done.head.to_dict()}
    say(f"migrated: {done.sentence()}; the copy from before is {backup_file}", facts, json)


def clean(
    folder: Annotated[Path, typer.Argument(help="A folder that releases or ledgers were made in.")],
    ledger: Location,
    remove: Annotated[bool, typer.Option("--remove", help="Delete what is listed.")] = False,
    json: AsJson = False,
) -> None:
    """List what crashes left in a folder: staging folders and half-made ledgers."""
    from adumbra.release.leftovers import find_leftovers
    from adumbra.release.leftovers import remove as remove_one

    with opened(ledger) as book:
        entries = {entry.id: entry for each in book.show() for entry in each.entries}
        found = find_leftovers(folder, entries)
        for leftover in found if remove else ():
            remove_one(leftover)
    done = "removed" if remove else "can go"
    lines = [f"{done}: {visible(each.path)}, {each.why}" for each in found] or ["nothing was left here"]
    if found and not remove:
        lines.append("nothing was removed; --remove deletes these")
    facts = [{"path": str(each.path), "why": each.why} for each in found]
    say("\n".join(lines), {"removed": remove, "leftovers": facts}, json)
