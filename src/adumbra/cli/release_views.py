"""`inspect` and `verify`: what anyone may do with a release, offline.

A card may come from anybody: its words are printed without markup and without control characters.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adumbra.cli.key_commands import Publisher, Required, RevokedFile, SignerName, TrustFile, demanded
from adumbra.cli.options import AsJson, print_json
from adumbra.cli.planning import print_hanging
from adumbra.errors import VerificationFailed, visible

if TYPE_CHECKING:
    from rich.table import Table

    from adumbra.release.artifact import Verified

Folder = Annotated[Path, typer.Argument(help="The folder of a release.")]
Digest = Annotated[
    str | None, typer.Option("--digest", help="SHA-256 of card.json, from the publisher.")
]


def inspect(folder: Folder, json: AsJson = False) -> None:
    """Verify a release, then show what it holds and what it guarantees."""
    from adumbra.attestation.trust import user_trust
    from adumbra.release.artifact import verify as verify_release
    from adumbra.report.page import expected_words, in_order

    checked = verify_release(folder, trust=user_trust())
    if json:
        facts = {"digest": checked.digest, "signature": _signature(checked), "card": checked.card}
        print_json(facts)
        return
    from rich.console import Console
    from rich.text import Text

    card = checked.card
    console = Console(highlight=False)
    console.print(Text(visible(card["about"]["title"]), style="bold"))
    console.print(_facts(card))
    console.print(_noise(card))
    for name, value in in_order(card["accuracy"]).items():
        print_hanging(console, visible(f"expected {expected_words(name)}: {_short(value)}"), "  ")
    console.print(Text(visible(card["guarantee"]["attacker"]["sentence"])))
    for note in card["notes"]:
        print_hanging(console, visible(note), "  ")
    for limit in card["limits"]:
        print_hanging(console, visible(limit), "- ", "dim")
    if "card.html" in card["files"]:
        typer.echo(f"page      {folder / 'card.html'}")
    typer.echo(signature_line(checked))
    typer.echo(f"digest    {checked.digest}")


def signature_line(checked: "Verified") -> str:
    """Who vouches for a release, under a heading that its sentence does not repeat."""
    return f"signed    {checked.signature_words().removeprefix('signed ')}"


def verify(  # noqa: PLR0913, PLR0917 - one argument per flag
    folder: Folder,
    digest: Digest = None,
    key: Publisher = None,
    trust: TrustFile = None,
    revoked: RevokedFile = None,
    signer: SignerName = None,
    require_signature: Required = False,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            help="A head or public export of its ledger: is the release in it, and was it withdrawn?",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check every byte of a release, its card and its signatures. Exit code 4 on any fault."""
    from dataclasses import asdict

    from adumbra.release.artifact import find_faults
    from adumbra.release.detached import check_log

    demand = demanded(key, trust, revoked, signer, require_signature)
    faults, checked = find_faults(folder, digest=digest, demand=demand)
    standing = None
    if checked is not None and log is not None:
        try:
            standing = check_log(folder, log)
        except VerificationFailed as error:
            faults, checked = (str(error),), None
    if json:
        facts: dict[str, object] = {"verified": checked is not None, "faults": list(faults)}
        if checked is not None:
            facts |= {"digest": checked.digest, "files": checked.files, "bytes": checked.size}
            facts["signature"] = _signature(checked)
            facts["log"] = None if standing is None else asdict(standing)
        print_json(facts)
        if checked is None:
            raise typer.Exit(VerificationFailed.exit_code)
    elif checked is None:
        raise VerificationFailed("\n".join(faults))
    else:
        typer.echo(
            f"verified  {folder}: {checked.files} files, {checked.size:,} bytes, every byte covered"
        )
        typer.echo(f"promise   {visible(checked.card['guarantee']['sentence'])}")
        typer.echo(signature_line(checked))
        if standing is not None:
            typer.echo(f"log       {visible(standing.sentence())}")
        compared = "as the publisher names it" if digest else "compare it with what the publisher names"
        typer.echo(f"digest    {checked.digest}  ({compared})")


def _signature(checked: "Verified") -> dict[str, object] | None:
    """Who signed, for machines."""
    from dataclasses import asdict

    return None if checked.signature is None else asdict(checked.signature)


def _facts(card: dict[str, Any]) -> "Table":
    """What, how much, for whom, by whom."""
    from adumbra.report.page import in_order

    about, contents, ledger = card["about"], card["contents"], card["ledger"]
    tables = [
        (name, f"{t['rows']} rows x {len(t['columns'])} columns")
        for name, t in in_order(contents["tables"]).items()
    ]
    arrays = [
        (name, f"array {' x '.join(map(str, a['shape']))}")
        for name, a in in_order(contents["arrays"]).items()
    ]
    lines = [
        ("promise", card["guarantee"]["sentence"]),
        ("protects", card["unit"]["sentence"]),
        ("method", f"{card['method']['name']} (Adumbra {card['method']['adumbra_version']})"),
        *((f"holds {name}", held) for name, held in [*tables, *arrays]),
        ("declared by", card["public_inputs"]["declared_by"] or "nobody named"),
        *((name, about[name]) for name in ("curator", "population") if name in about),
        ("day", about["date"]),
        ("before", card["before_dp"]),
        ("ledger", f"entry {ledger['entry']}, head {ledger['head']['hash'][:16]}"),
    ]
    return _table([], lines)


def _noise(card: dict[str, Any]) -> "Table":
    """Each use of noise."""
    uses = [
        (u["purpose"], u["distribution"], u["scale"], u.get("sensitivity")) for u in card["mechanisms"]
    ]
    return _table(["noise for", "law", "scale", "hides a change of"], uses)


def _table(titles: list[str], rows: Sequence[tuple[object, ...]]) -> "Table":
    """Rows without lines around them, every cell plain text."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=None, show_header=bool(titles), padding=(0, 3, 0, 0))
    for row in rows:
        table.add_row(*(Text(visible(_short(cell))) for cell in row))
    return table


def _short(value: object) -> str:
    """A number with no more digits than mean something; anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
