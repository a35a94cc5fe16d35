"""`plan` and `release`: say what it costs, then pay and do it."""

import json as json_module
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.flags import AsJson, Header, read_schema
from adumbra.cli.plan_views import plan_facts, show_plan, show_price, show_release

if TYPE_CHECKING:
    from adumbra.data.schema import Schema
    from adumbra.engine.base import Progress
    from adumbra.mechanisms.base import Plan
    from adumbra.privacy.ledger import Quote

SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema file (TOML).")]
Method = Annotated[str, typer.Option("--method", help="The mechanism; `adumbra methods` lists them.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget of this release.")]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="0: pure epsilon; above 0: Gaussian noise; left out: the method's own, which "
        "`adumbra methods` lists (1e-6 for moments).",
    ),
]
Options = Annotated[
    list[str] | None, typer.Option("-o", "--option", help="A parameter, as name=value; repeat.")
]


def plan(  # noqa: PLR0913, PLR0917 - one argument a flag
    schema: SchemaFile,
    epsilon: Epsilon,
    method: Method = "moments",
    delta: Delta = None,
    option: Options = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Only names and a public row count are read.")
    ] = None,
    header: Header = False,
    json: AsJson = False,
) -> None:
    """Say what a release would cost and how wrong it would be; reads no value."""
    from adumbra import workflow
    from adumbra.cli.data_notes import say_notes, undeclared
    from adumbra.cli.options import make_config, spelled_as_options
    from adumbra.data.sources import open_source
    from adumbra.data.watched import WatchedSource

    with spelled_as_options(method):
        config = make_config(method, epsilon, delta, option or [])
    declared = read_schema(schema, header=header)
    known = declared if data is None else WatchedSource(open_source(data, declared)).schema
    with spelled_as_options(method):
        planned = workflow.plan(config, known)
    unread = None if data is None else undeclared(data, known)
    if json:
        facts = {**plan_facts(planned), **({} if unread is None else unread.facts())}
        typer.echo(json_module.dumps(facts, indent=2))
    else:
        show_plan(planned)
    if unread is not None:
        say_notes(unread, json=json)


def release(  # noqa: PLR0913, PLR0917 - one argument a flag
    data: Annotated[str, typer.Argument(help="Parquet file, folder or glob, CSV, or FIMI .dat.")],
    schema: SchemaFile,
    epsilon: Epsilon,
    ledger: Annotated[str, typer.Option("--ledger", help="Ledger file, or a PostgreSQL URL.")],
    population: Annotated[str, typer.Option("--population", help="The population that pays.")],
    out: Annotated[Path, typer.Option("--out", help="The new folder of the release.")],
    method: Method = "moments",
    delta: Delta = None,
    option: Options = None,
    header: Header = False,
    engine: Annotated[str, typer.Option("--engine", help="Where it runs: local.")] = "local",
    before_dp: Annotated[
        str, typer.Option("--before-dp", help="What was done to the rows before; goes on the card.")
    ] = "not declared",
    about: Annotated[
        list[str] | None,
        typer.Option(
            "--about",
            help="A line of the card, as name=value: title, curator, intended_use, why, product, region "
            "or sector; repeat. It is public.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; for scripts.")] = False,
    json: AsJson = False,
) -> None:
    """Plan, pay the ledger, release, and write the folder with its card and page."""
    from adumbra import workflow
    from adumbra.cli.data_notes import say_notes, undeclared
    from adumbra.cli.options import make_about, make_config, spelled_as_options
    from adumbra.data.sources import open_source
    from adumbra.data.watched import WatchedSource
    from adumbra.engine.local import LocalEngine
    from adumbra.errors import require

    require(engine == "local", f"engine={engine}: unknown; use local")
    said = make_about(about or [])
    with spelled_as_options(method):
        config = make_config(method, epsilon, delta, option or [])
    source = WatchedSource(open_source(data, read_schema(schema, header=header)))
    with spelled_as_options(method):
        planned = workflow.plan(config, source.schema)
    if not json:
        show_plan(planned)
    say_notes(undeclared(data, source.schema), json=json)
    workflow.require_payable(
        config,
        planned,
        schema=source.schema,
        ledger=ledger,
        population=population,
        out=out,
        about=said,
        before_dp=before_dp,
    )
    quotes = _quote(planned, ledger, population)
    if not (json and yes):
        gaussian = _gaussian_plan(
            planned, quotes[0].delta, source.schema, (method, epsilon, option or [])
        )
        instead = None if gaussian is None else _quote(gaussian, ledger, population)[0]
        show_price(quotes, instead, err=json)
    if not yes:
        _require_consent(f"Charge population {population} and release?", err=json)
    with stopped_in_words(), progress_bar(quiet=json) as report:
        made = workflow.release(
            data,
            config,
            schema=source.schema,
            ledger=ledger,
            population=population,
            out=out,
            engine=LocalEngine(progress=report),
            about=said,
            before_dp=before_dp,
        )
    show_release(made, out, json=json, quotes=quotes)


def _quote(planned: "Plan", ledger: str, population: str) -> "tuple[Quote, ...]":
    """What the plan takes of every account that pays."""
    from adumbra.privacy.ledger import open_ledger

    with open_ledger(ledger) as book:
        return book.quote(population, planned.guarantee)


def _gaussian_plan(
    planned: "Plan", delta: float, schema: "Schema", words: tuple[str, float, list[str]]
) -> "Plan | None":
    """The same release at the account's delta, where this one is pure and the method can do both."""
    from adumbra import workflow
    from adumbra.cli.options import make_config
    from adumbra.errors import InvalidInput

    if delta == 0 or not planned.guarantee.is_pure:
        return None
    method, epsilon, options = words
    try:
        return workflow.plan(make_config(method, epsilon, delta, options), schema)
    except InvalidInput:
        return None


def _require_consent(question: str, *, err: bool) -> None:
    """Ask the person at the terminal; without one, or with another answer, nothing is charged."""
    from adumbra.errors import require

    require(sys.stdin.isatty(), "yes: there is no terminal to ask at; give --yes (nothing was charged)")
    try:
        agreed = typer.confirm(question, err=err)
    except typer.Abort as stop:
        typer.echo("nothing was charged", err=True)
        raise typer.Exit(130 if isinstance(stop.__context__, KeyboardInterrupt) else 1) from None
    if not agreed:
        typer.echo("nothing was charged", err=True)
        raise typer.Exit(1)


@contextmanager
def stopped_in_words() -> "Iterator[None]":
    """Ctrl-C after the charge says which entry stays charged, and what to do; exit code 130."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo("stopped", err=True)
        for note in charge_notes(stop):
            typer.echo(note, err=True)
        raise typer.Exit(130) from None


def charge_notes(error: BaseException) -> list[str]:
    """Our own notes on an error; a stranger's may hold data."""
    from adumbra.errors import ChargeNote

    return [note for note in getattr(error, "__notes__", ()) if isinstance(note, ChargeNote)]


@contextmanager
def progress_bar(*, quiet: bool) -> "Iterator[Progress]":
    """Stages and public block counts as a bar on stderr; never a private count."""
    if quiet:
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report
