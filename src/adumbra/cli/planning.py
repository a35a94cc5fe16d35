"""`plan` and `release`: say what it costs, then pay and do it."""

import hashlib
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.counting import RowsPerPerson, counted, counting, show_within
from adumbra.cli.engines import (
    EngineFlags,
    EngineName,
    Memory,
    PartsFolder,
    Scheduler,
    Threads,
    Workers,
    open_engine,
    progress_bar,
    require_memory_for,
)
from adumbra.cli.key_commands import OperatorKey, SigningKey
from adumbra.cli.options import (
    AsJson,
    Force,
    Header,
    open_signing_key,
    operated,
    print_json,
    read_schema,
    require_new_file,
)
from adumbra.errors import ChargeNote, InvalidInput, Terminated, require

if TYPE_CHECKING:
    from rich.console import Console

    from adumbra.mechanisms.base import Plan
    from adumbra.prepared import PreparedRelease
    from adumbra.privacy.ledger import Quote
    from adumbra.release.artifact import Release


# A plan, its price and a finished release, in words for people and as values for scripts.
def plan_facts(planned: "Plan") -> dict[str, object]:
    """A plan as plain values."""
    return {
        "method": planned.method,
        "guarantee": planned.guarantee.facts(),
        "sentence": planned.guarantee.sentence(),
        "noise": [asdict(noise) for noise in planned.noise],
        "expected": dict(planned.expected),
        "notes": list(planned.notes),
        "details": planned.details,
        "size": None if planned.size is None else planned.size.to_dict(),
    }


def show_plan(planned: "Plan") -> None:
    """Print a plan for a person."""
    from rich.console import Console
    from rich.table import Table

    from adumbra.report.page import expected_words

    console = Console(highlight=False)
    console.print(f"[bold]{planned.method}[/bold]  costs {planned.guarantee.sentence()}")
    table = Table("noise for", "law", "scale", "sensitivity", box=None, padding=(0, 3, 0, 0))
    for noise in planned.noise:
        numbers = (f"{noise.scale:.6g}", f"{noise.sensitivity:.6g}")
        table.add_row(noise.purpose, noise.distribution, *numbers)
    console.print(table)
    for name, value in planned.expected.items():
        print_hanging(console, f"expected {expected_words(name)}: {value:.4g}", "  ")
    if planned.size is not None:
        print_hanging(console, planned.size.sentence(), "  ")
    for note in planned.notes:
        print_hanging(console, note, "- ")


def print_hanging(console: "Console", text: str, mark: str, style: str = "") -> None:
    """Print a sentence whose further lines start below its first letter."""
    from rich.text import Text

    lines = textwrap.wrap(
        text,
        console.width,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_on_hyphens=False,
    )
    console.print(Text("\n".join(lines), style=style), soft_wrap=True)


def show_price(quotes: "Sequence[Quote]", instead: "Quote | None", *, err: bool) -> None:
    """Print what each account pays, and what a Gaussian release would cost the first one."""
    from rich.console import Console

    from adumbra.numerics import figure_upper

    console = Console(highlight=False, stderr=err)
    for quoted in quotes:
        print_hanging(console, quoted.sentence(), "price     ")
    if instead is not None:
        takes, pure = figure_upper(instead.takes, 12), figure_upper(quotes[0].takes, 12)
        words = f"--delta {instead.delta!r} would take epsilon={takes} of it, not {pure}, with"
        print_hanging(console, f"{words} Gaussian noise", "instead   ")


def show_release(made: "Release", out: Path, *, json: bool, quotes: "Sequence[Quote]" = ()) -> None:
    """Print where a release is."""
    if json:
        facts = {
            "out": str(out),
            "entry": made.card["ledger"]["entry"],
            "digest": hashlib.sha256((out / "card.json").read_bytes()).hexdigest(),
            "signed_by": made.card.get("signed_by"),
            "guarantee": made.guarantee.facts(),
            "price": [quoted.to_dict() for quoted in quotes],
            "contents": made.card["contents"],
        }
        print_json(facts)
        return
    typer.echo(f"released  {out}  ({made.guarantee.sentence()})")
    typer.echo(f"page      {out / 'card.html'}")
    signer = made.card.get("signed_by")
    typer.echo(f"signed    by {signer}" if signer else "signed    NOT SIGNED; --key signs a release")
    typer.echo(f"check     adumbra verify {out}")


SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema file (TOML).")]
Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="The mechanism (`adumbra methods` lists them); auto: by a public rule. "
        "Default: moments, or auto with --goal.",
    ),
]
Goal = Annotated[
    str | None,
    typer.Option(
        "--goal",
        help="What the release is for: distances, clusters, classify, regress, answers or top-k.",
    ),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget of this release.")]
Epsilons = Annotated[
    str, typer.Option("--epsilon", help="The budget; several with commas are compared: 0.1,0.3,1,3.")
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="0: pure epsilon. Above 0: Gaussian noise. Default: see `adumbra methods`.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("-o", "--option", help="Set a method option (name=value). Repeatable."),
]


def plan(  # noqa: PLR0913, PLR0917 - one argument per flag
    schema: SchemaFile,
    epsilon: Epsilons,
    method: Method = None,
    goal: Goal = None,
    delta: Delta = None,
    option: Options = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="One line per method that fits the schema, not --method.")
    ] = False,
    data: Annotated[
        str | None,
        typer.Option("--data", help="The data; only column names and a public row count are read."),
    ] = None,
    header: Header = False,
    threads: Threads = None,
    memory: Memory = None,
    rows_per_person: RowsPerPerson = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure", help="Write a chart (.svg) of the error and the attacker's chance by budget."
        ),
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Show what a release would cost and its expected error. Reads no values."""
    from adumbra.cli import comparing
    from adumbra.cli.options import make_config, say_notes, spelled_as_options, undeclared
    from adumbra.data.opening import open_source
    from adumbra.data.sources import WatchedSource
    from adumbra.mechanisms import methods

    budgets = comparing.epsilons_of(epsilon)
    if figure is not None:
        require_new_file("figure", figure, force=force)
    declared = read_schema(schema, header=header)
    known = declared if data is None else WatchedSource(open_source(data, declared)).schema
    if rows_per_person:
        known, method = counting(known, method, goal)
    name, why = comparing.chosen_method(method, goal, known, delta)
    if compare or len(budgets) > 1 or figure is not None:
        for flag, value in (("memory", memory), ("threads", threads)):
            require(value is None, f"{flag}: is asked of one plan; leave out --compare and more budgets")
        names = comparing.compared_names(goal) if compare else [name]
        with progress_bar(quiet=json) as report:
            found = comparing.compare(known, budgets, names, delta, option or [], report)
        comparing.show(found, json=json, why="" if compare else why)
        if figure is not None:
            comparing.draw(found, figure, json=json)
        return
    with spelled_as_options(name):
        options = comparing.with_components(
            name, budgets[0], delta, option or [], known, why=why, goal=goal
        )
        config = make_config(name, budgets[0], delta, options)
        planned = methods.plan(config, known, threads=threads)
    require_memory_for(planned, memory)
    unread = None if data is None or rows_per_person else undeclared(data, known)
    if json:
        facts = {**plan_facts(planned), **({} if unread is None else unread.facts())}
        facts |= {"chosen": why} if why else {}
        print_json(facts)
    else:
        typer.echo(f"chosen    {why}") if why else None
        show_plan(planned)
    if unread is not None:
        say_notes(unread, json=json)


def release(  # noqa: PLR0913, PLR0917 - one argument per flag
    data: Annotated[str, typer.Argument(help="Parquet file, folder or glob, CSV, or FIMI .dat.")],
    schema: SchemaFile,
    epsilon: Epsilon,
    ledger: Annotated[str, typer.Option("--ledger", help="Ledger file, or a PostgreSQL URL.")],
    population: Annotated[str, typer.Option("--population", help="The population to charge.")],
    out: Annotated[Path, typer.Option("--out", help="The new folder for the release.")],
    method: Method = None,
    goal: Goal = None,
    delta: Delta = None,
    option: Options = None,
    header: Header = False,
    rows_per_person: RowsPerPerson = False,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    workers: Workers = None,
    threads: Threads = None,
    memory: Memory = None,
    parts: PartsFolder = None,
    before_dp: Annotated[
        str,
        typer.Option(
            "--before-dp", help="What was done to the rows before release. Printed on the card."
        ),
    ] = "not declared",
    about: Annotated[
        list[str] | None,
        typer.Option(
            "--about",
            help="Add a public line to the card (name=value): title, curator, intended_use, why, "
            "product, region or sector. Repeatable.",
        ),
    ] = None,
    key: SigningKey = None,
    operator: OperatorKey = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation (for scripts).")
    ] = False,
    json: AsJson = False,
) -> None:
    """Plan, pay the ledger, release, and write the folder with its card and page."""
    from adumbra import workflow
    from adumbra.cli.comparing import chosen_method, with_components
    from adumbra.cli.options import make_about, make_config, say_notes, spelled_as_options, undeclared

    said = make_about(about or [])
    declared = read_schema(schema, header=header)
    table: object = data
    if rows_per_person:
        table, declared, method = counted(data, declared, method, goal)
    name, why = chosen_method(method, goal, declared, delta)
    with spelled_as_options(name):
        options = with_components(name, epsilon, delta, option or [], declared, why=why, goal=goal)
        config = make_config(name, epsilon, delta, options)
    with ExitStack() as held:
        asked = EngineFlags(
            engine=engine,
            scheduler=scheduler,
            workers=workers,
            threads=threads,
            memory=memory,
            parts=parts,
        )
        running = held.enter_context(open_engine(asked, out))
        with spelled_as_options(name):
            prepared = workflow.prepare(
                table,
                config,
                schema=declared,
                ledger=ledger if operator is None else held.enter_context(operated(ledger, operator)),
                population=population,
                out=out,
                engine=running,
                about=said,
                before_dp=before_dp,
                key=open_signing_key(key),
                check=False,
            )
        held.enter_context(prepared)
        if not json:
            typer.echo(f"chosen    {why}") if why else None
            show_plan(prepared.plan)
        with spelled_as_options(name):
            prepared.check()
        quotes = prepared.quote
        if prepared.before_dp != before_dp:  # the ledger knows of an evaluation
            typer.echo(f"before    {prepared.before_dp} (--before-dp says it otherwise)", err=json)
        if not rows_per_person:
            say_notes(undeclared(data, prepared.settled.schema), json=json)
        if not (json and yes):
            show_price(quotes, _gaussian_quote(prepared, quotes[0].delta, name, options), err=json)
        if not yes:
            _require_consent(f"Charge population {population} and release?", err=json)
        with stopped_in_words(), progress_bar(quiet=json, unit=running.unit) as report:
            running.progress = report
            made = prepared.commit()
    show_release(made, out, json=json, quotes=quotes)
    if rows_per_person and not json:
        show_within(made)


def _gaussian_quote(
    prepared: "PreparedRelease", delta: float, method: str, options: list[str]
) -> "Quote | None":
    """The price of the same release at the account's delta, where this one is pure and both exist."""
    from adumbra.cli.options import make_config

    guarantee = prepared.plan.guarantee
    if delta == 0 or not guarantee.is_pure:
        return None
    try:
        config = make_config(method, prepared.settled.config.epsilon, delta, options)
        gaussian = prepared.method.settle(config, prepared.settled.schema).plan.guarantee
    except InvalidInput:
        return None
    return prepared.ledger.quote(prepared.population, gaussian)[0]


def _require_consent(question: str, *, err: bool) -> None:
    """Ask the person at the terminal; without one, or with another answer, nothing is charged."""
    require(sys.stdin.isatty(), "yes: there is no terminal to ask at; give --yes (nothing was charged)")
    try:
        agreed = typer.confirm(question, err=err)
    except typer.Abort as stop:
        typer.echo("nothing was charged", err=True)
        asked = stop.__context__
        raise typer.Exit(exit_code_of(asked) if isinstance(asked, KeyboardInterrupt) else 1) from None
    if not agreed:
        typer.echo("nothing was charged", err=True)
        raise typer.Exit(1)


@contextmanager
def stopped_in_words() -> "Iterator[None]":
    """Ctrl-C or SIGTERM after the charge says which entry stays charged, and what to do."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo("stopped", err=True)
        for note in charge_notes(stop):
            typer.echo(note, err=True)
        raise typer.Exit(exit_code_of(stop)) from None


def exit_code_of(stop: BaseException) -> int:
    """128 and the number of the signal, as a shell says it."""
    return 143 if isinstance(stop, Terminated) else 130


def charge_notes(error: BaseException) -> list[str]:
    """Our own notes on an error; those of other libraries may hold data."""
    return [note for note in getattr(error, "__notes__", ()) if isinstance(note, ChargeNote)]
