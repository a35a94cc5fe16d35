"""Who may do what: `adumbra ledger enrol`, `dismiss`, `operators`, `require-two`, `approve`, ..."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.ledger_commands import Location, Name, Reason, opened
from adumbra.cli.options import AsJson, Force, require_new_file, say
from adumbra.errors import InvalidInput

if TYPE_CHECKING:
    from adumbra.attestation.events import Approval

Rights = Annotated[
    list[str],
    typer.Option("--right", help="register, raise, release, void or read. Repeatable."),
]


def enrol(
    key: Annotated[Path, typer.Argument(help="The .pub file of the operator.")],
    ledger: Location,
    right: Rights,
    name: Annotated[str, typer.Option("--name", help="Who it is; stays in the private log.")] = "",
    json: AsJson = False,
) -> None:
    """Enrol an operator's key. From the first one on every act is signed by an operator."""
    with opened(ledger) as book:
        operator = book.enrol(key, right, name)
        rights = list(book.operators()[operator])
    text = f"enrolled {operator}: {', '.join(rights)}"
    say(text, {"operator": operator, "rights": rights}, json)


def dismiss(
    operator: Annotated[str, typer.Argument(help="The id of an operator, SHA256:...")],
    ledger: Location,
    reason: Reason,
    json: AsJson = False,
) -> None:
    """Take all rights from an operator. What was signed before stays."""
    with opened(ledger) as book:
        book.dismiss(operator, reason)
    say(f"dismissed {operator}", {"operator": operator, "rights": []}, json)


def operators(ledger: Location, json: AsJson = False) -> None:
    """List the enrolled operators with their rights."""
    with opened(ledger) as book:
        found, above = book.operators(), book.threshold()
    lines = [f"{operator}  {', '.join(rights)}" for operator, rights in found.items()]
    lines = lines or ["no operator is enrolled: acts are signed by the ledger's own key alone"]
    if above is not None:
        lines.append(f"a cap above epsilon={above!r} needs two operators")
    facts = {"operators": {name: list(rights) for name, rights in found.items()}, "two_above": above}
    say("\n".join(lines), facts, json)


def require_two(
    ledger: Location,
    above: Annotated[float, typer.Option("--above", help="Caps above this epsilon need two.")],
    reason: Reason,
    json: AsJson = False,
) -> None:
    """Declare the epsilon above which a cap is raised by two operators only."""
    with opened(ledger) as book:
        book.require_two(above, reason)
    say(f"a cap above epsilon={above!r} needs two operators now", {"two_above": above}, json)


def approve(  # noqa: PLR0913, PLR0917 - one argument per flag
    population: Name,
    ledger: Location,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The new cap, as it will be raised.")],
    reason: Reason,
    out: Annotated[Path, typer.Option("--out", help="The file for `ledger raise --approval`.")],
    force: Force = False,
    json: AsJson = False,
) -> None:
    """As the second operator, approve one raise of a cap for one stated reason."""
    require_new_file("out", out, force=force)
    with opened(ledger) as book:
        made = book.approve(population, epsilon, reason)
    out.write_bytes(made.to_bytes())
    text = (
        f"approved: {population} from {made.before} to {made.epsilon}; {out} is for the other operator"
    )
    say(text, {"path": str(out), "operator": made.operator, "before": made.before}, json)


def grants(
    ledger: Location,
    prefix: Annotated[str, typer.Option("--prefix", help="Prefix of the role names.")] = "adumbra",
) -> None:
    """Print the SQL that makes rights binding on PostgreSQL. Runs nothing."""
    with opened(ledger) as book:
        typer.echo(book.grants(prefix), nl=False)


def read_approval(path: Path | None) -> "Approval | None":
    """What `--approval` names."""
    from adumbra.attestation.events import Approval

    if path is None:
        return None
    try:
        return Approval.parse(path.read_bytes())
    except OSError:
        raise InvalidInput(f"approval={path}: cannot be read") from None
