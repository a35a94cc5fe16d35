"""`adumbra ledger backup` and `restore`: copies that are whole, and the way back."""

from pathlib import Path
from typing import Annotated

import typer

from adumbra.cli.flags import AsJson
from adumbra.cli.ledger_commands import Location, opened, read_card, say

Kept = Annotated[
    Path | None, typer.Option("--head", help="Where the head goes; beside the backup when left out.")
]


def backup(
    path: Annotated[Path, typer.Argument(help="A new file: a ledger of its own, mode 0600.")],
    ledger: Location,
    head: Kept = None,
    json: AsJson = False,
) -> None:
    """Copy the ledger while it is in use, verified, and write its signed head: keep that elsewhere."""
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
    """Make the ledger again from a backup; one that lacks the kept head is refused: it lost charges."""
    from adumbra.privacy.ledger import restore_ledger

    card, digest = read_card(against)
    with restore_ledger(backup_file, ledger, against=card, card_digest=digest) as book:
        found = book.head()
    text = f"restored ledger {found.ledger}, whole, at event {found.sequence}; use one copy of it only"
    say(text, found.to_dict(), json)
