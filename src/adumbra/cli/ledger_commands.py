"""`adumbra ledger`: the steward's commands. `--json` on whatever reports; heavy imports wait."""

import hashlib
import json as json_module
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adumbra.cli.key_commands import (
    OperatorKey,
    SigningKey,
    Unsigned,
)
from adumbra.cli.options import AsJson, Force, open_signing_key, print_json, require_new_file, say
from adumbra.errors import InvalidInput, visible
from adumbra.relations import Unit

if TYPE_CHECKING:
    from adumbra.privacy.ledger import Ledger, Statement

app = typer.Typer(
    help="The budget ledger: what each population may still spend, and the state of every release.",
    no_args_is_help=True,
)


class RelationName(StrEnum):
    """Which tables must look alike; the same words as `relations.Neighbours` and `Moved`."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    ONE_ELEMENT = "one-element"
    REPLACE_PERSON = "replace-person"
    ADD_REMOVE_PERSON = "add-remove-person"
    CELL_MOVES = "cell-moves"
    ROW_MOVES = "row-moves"


Location = Annotated[str, typer.Option("--ledger", help="Ledger file, or a postgresql:// address.")]
Name = Annotated[str, typer.Argument(help="A registered population.")]
EntryId = Annotated[str, typer.Argument(help="The id of an entry, as `ledger show` lists it.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; one line. It is public: name no one.")]


_operator: ContextVar[Path | None] = ContextVar("operator", default=None)


@app.callback()
def _who_acts(operator: OperatorKey = None) -> None:
    _operator.set(operator)


def opened(location: str) -> "Ledger":
    """The ledger at a place, for the operator of the command line; a context manager."""
    from adumbra.privacy.ledger import open_ledger

    return open_ledger(location, operator=open_signing_key(_operator.get()))


@app.command()
def init(
    ledger: Annotated[str, typer.Argument(help="A new file, or a postgresql:// address.")],
    json: AsJson = False,
) -> None:
    """Make a new, empty ledger (a file gets mode 0600)."""
    from adumbra.privacy.ledger import create_ledger

    with create_ledger(ledger) as made:
        head = made.head()
    say(f"ledger {head.ledger} made; its public key is {head.public_key}", head.to_dict(), json)


@app.command()
def register(  # noqa: PLR0913, PLR0917 - one argument per flag
    name: Annotated[str, typer.Argument(help="A name for the people the data is about.")],
    ledger: Location,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The cap for all releases together.")],
    unit: Annotated[
        Unit,
        typer.Option(
            "--unit", help="What the guarantee hides: one row, one element of a row, or one person."
        ),
    ],
    neighbours: Annotated[
        RelationName, typer.Option("--neighbours", help="Which tables count as neighbours.")
    ],
    amount: Annotated[
        float | None,
        typer.Option(
            "--amount",
            help="How far a cell or row may move, in the columns' units (cell-moves, row-moves).",
        ),
    ] = None,
    delta: Annotated[
        float,
        typer.Option(
            "--delta", help="Above 0: a Gaussian budget (mu^2 adds). 0: a pure budget (epsilon adds)."
        ),
    ] = 1e-6,
    parent: Annotated[
        str | None, typer.Option("--parent", help="A parent population that is charged too.")
    ] = None,
    owner: Annotated[str, typer.Option("--owner", help="Who is accountable; stays private.")] = "",
    purpose: Annotated[str, typer.Option("--purpose", help="What it is for; public.")] = "",
    json: AsJson = False,
) -> None:
    """Register a population with its cap."""
    from adumbra.privacy.ledger import Population
    from adumbra.relations import relation_named

    population = Population(
        name=name,
        unit=unit,
        neighbours=relation_named(neighbours, amount),
        epsilon=epsilon,
        delta=delta,
        owner=owner,
        purpose=purpose,
        parent=parent,
    )
    with opened(ledger) as book:
        book.register(population)
        statement = book.show(name)[0]
    text = f"registered {statement.sentence()}"
    if not delta:
        text += "\nit pays for pure releases only; `ledger raise --delta` can change that until a charge"
    say(text, _facts(statement), json)


@app.command()
def show(
    ledger: Location,
    population: Annotated[str | None, typer.Argument(help="One population. Default: all.")] = None,
    json: AsJson = False,
) -> None:
    """Show what is spent and left, and any release that a crash interrupted."""
    with opened(ledger) as book:
        statements = book.show(population)
    if json:
        print_json({"populations": [_facts(each) for each in statements]})
    else:
        for statement in statements:
            _print(statement)


@app.command()
def verify(
    ledger: Location,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            help="A release (verified too), a card.json, or a head that `head --json` printed.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check hash chains, signatures, sums and states. With a card or head: no roll-back."""
    from dataclasses import asdict

    card, digest = (None, None) if against is None else read_card(against)
    with opened(ledger) as book:
        verified = book.verify(card, card_digest=digest)
    say(f"whole: {verified.sentence()}", asdict(verified), json)


@app.command()
def head(ledger: Location, json: AsJson = False) -> None:
    """Print the signed head. Keep it elsewhere (--json): `verify --against` then sees a roll-back."""
    with opened(ledger) as book:
        found = book.head()
    signed = f"signature {found.signature}\npublic key {found.public_key}"
    text = f"event {found.sequence} of ledger {found.ledger}: {found.hash}\n{signed}"
    say(text, found.to_dict(), json)


@app.command()
def resume(  # noqa: PLR0913, PLR0917 - one argument per flag
    entry: EntryId,
    ledger: Location,
    target: Annotated[
        Path | None,
        typer.Option("--target", help="Where to publish, if no place was recorded or it is taken."),
    ] = None,
    key: SigningKey = None,
    unsigned: Unsigned = False,
    json: AsJson = False,
) -> None:
    """Finish an interrupted release: publish the same sealed bytes."""
    from adumbra.release.resuming import resume as finish

    with opened(ledger) as book:
        place = finish(book, entry, target=target, key=open_signing_key(key), unsigned=unsigned)
    say(f"published {entry} at {place}", {"entry": entry, "target": str(place)}, json)


@app.command()
def void(entry: EntryId, ledger: Location, reason: Reason, json: AsJson = False) -> None:
    """Cancel a reservation before its noise was drawn. Its charge is returned."""
    with opened(ledger) as book:
        book.void(entry, reason)
    say(f"voided {entry}", {"entry": entry, "state": "void"}, json)


@app.command("raise")
def raise_cap(  # noqa: PLR0913, PLR0917 - one argument per flag
    population: Name,
    ledger: Location,
    reason: Reason,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The new, higher cap.")] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Another delta; only before the first charge.")
    ] = None,
    approval: Annotated[
        Path | None, typer.Option("--approval", help="What a second operator's `approve` wrote.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Raise a cap, or change the delta of an unused account. Act and reason stay in the log."""
    from adumbra.cli.operator_commands import read_approval

    with opened(ledger) as book:
        if delta is not None:
            book.change_delta(population, delta, reason, epsilon=epsilon)
        elif epsilon is not None:
            book.raise_cap(population, epsilon, reason, approval=read_approval(approval))
        else:
            raise InvalidInput("epsilon: give the new cap, a --delta, or both")
        statement = book.show(population)[0]
    say(f"raised: {statement.sentence()}", _facts(statement), json)


@app.command()
def link(
    population: Name,
    ledger: Location,
    to: Annotated[str, typer.Option("--to", help="The parent population, which is charged too.")],
    reason: Reason,
    json: AsJson = False,
) -> None:
    """Make a population the child of another: what it spends, and has spent, is charged to both."""
    with opened(ledger) as book:
        book.link(population, to, reason)
        statement = book.show(to)[0]
    say(f"linked {population}; {statement.sentence()}", _facts(statement), json)


@app.command()
def declare(  # noqa: PLR0913, PLR0917 - one argument per flag
    population: Name,
    other: Annotated[str, typer.Argument(help="Another registered population.")],
    ledger: Location,
    reason: Reason,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Withdraw such a declaration.")] = False,
    json: AsJson = False,
) -> None:
    """Declare that two populations are different people although their rows look alike."""
    with opened(ledger) as book:
        (book.withdraw_different if withdraw else book.declare_different)(population, other, reason)
    what = "not declared different" if withdraw else "different people"
    facts = {"population": population, "other": other, "declared": what}
    said = "withdrawn: no longer declared that" if withdraw else "declared:"
    say(f"{said} {population} and {other} hold different people", facts, json)


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="A new .jsonl or .parquet file.")],
    ledger: Location,
    private: Annotated[bool, typer.Option("--private", help="Include paths, owners and users.")] = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write the log to a file. Without --private it names no path and no person."""
    require_new_file("path", path, force=force)
    with opened(ledger) as book:
        if force:
            fresh = path.with_name(f".{path.stem}.new{path.suffix}")
            fresh.unlink(missing_ok=True)
            book.export(fresh, public=not private)
            fresh.replace(path)
        else:
            book.export(path, public=not private)
    say(f"written: {path}", {"path": str(path), "public": not private}, json)


def _facts(statement: "Statement") -> dict[str, Any]:
    from dataclasses import asdict

    facts = asdict(statement)
    facts["stranded"] = [entry.id for entry in statement.stranded]
    return facts


def _print(statement: "Statement") -> None:
    typer.echo(statement.sentence())
    for change in statement.raised:
        also = "" if change.delta is None else f", delta now {change.delta!r}"
        caps = f"from {change.before!r} to {change.after!r}{also}"
        typer.echo(f"  cap raised {change.day} {caps}: {change.reason}")
    for entry in statement.entries:
        charged = f"{entry.id}  {entry.day}  {entry.state:<10}  charged epsilon={entry.epsilon!r}"
        typer.echo(
            f"  {charged}  {entry.population}  {visible(entry.method) or 'a release'}: {entry.guarantee}"
        )
        if entry.target:
            typer.echo(f"      in {visible(entry.target)}")
    if statement.entries and statement.population.delta:
        at = f"delta={statement.population.delta!r}"
        typer.echo(
            f"  charged: each alone, at {at}; together the squares of their mu add, not the epsilons"
        )
    for entry in statement.stranded:
        typer.echo(f"  not published: {entry.id} is {entry.state}; {entry.remedy}")
    for overlap in statement.overlaps:
        typer.echo(f"  look: {overlap.sentence()}")


def read_card(path: Path) -> tuple[dict[str, Any], str | None]:
    """A card and its digest, or a ledger's head, which has none; a whole release is verified."""
    if path.is_dir():
        from adumbra.release.artifact import verify as verify_release

        checked = verify_release(path)
        return checked.card, checked.digest
    try:
        raw = path.read_bytes()
        card = json_module.loads(raw)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"against={path}: cannot be read as a card or head; give a release, its card.json, or what "
            "`ledger backup` or `head --json` wrote"
        ) from error
    if not isinstance(card, dict) or "ledger" not in card:
        raise InvalidInput(
            f"against={path}: neither a card nor a head; give a release or what `head --json` prints"
        )
    return card, None if isinstance(card["ledger"], str) else hashlib.sha256(raw).hexdigest()
