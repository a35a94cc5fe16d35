"""`adumbra evaluate`: releases against the private rows, on a page that is NOT FOR RELEASE."""

from pathlib import Path
from typing import Annotated

import typer

from adumbra.cli.key_commands import OperatorKey
from adumbra.cli.options import Force, Header, operated, print_json, read_schema, require_new_file


def evaluate(  # noqa: PLR0913, PLR0917 - one argument per flag
    data: Annotated[str, typer.Argument(help="The rows that were released.")],
    releases: Annotated[list[Path], typer.Argument(help="The folders of one or more releases of them.")],
    out: Annotated[Path, typer.Option("--out", help="The page to write; never inside a release.")],
    holdout: Annotated[
        str | None,
        typer.Option(
            "--holdout", help="Rows from the same source that were not released. Adds attacks."
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="How to read the rows. Default: the schema on the first card."),
    ] = None,
    header: Header = False,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            help="Record the evaluation here: later releases of the population say so on their cards.",
        ),
    ] = None,
    operator: OperatorKey = None,
    shadows: Annotated[
        int, typer.Option("--shadows", min=0, help="Shadow releases per kind. 0: none.")
    ] = 60,
    rows: Annotated[
        int, typer.Option("--rows", min=100, help="Rows to train each model on. Fewer is faster.")
    ] = 10_000,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON too.")] = False,
) -> None:
    """Compare releases with the private rows they were made from. NOT FOR RELEASE."""
    from adumbra.answers.askable import load
    from adumbra.cli.engines import progress_bar
    from adumbra.evaluate.evaluation import evaluate as run
    from adumbra.evaluate.evaluation import require_outside

    require_outside(out, releases)
    require_new_file("out", out, force=force)
    loaded = [load(folder) for folder in releases]
    declared = loaded[0].schema if schema is None else read_schema(schema, header=header)
    with progress_bar(quiet=json) as report:
        found = run(
            data,
            loaded,
            holdout=holdout,
            schema=declared,
            shadows=shadows,
            rows=rows,
            ledger=operated(ledger, operator) if ledger and operator else ledger,
            progress=report,
        )
    found.save(out, force=force)
    if json:
        print_json(found.to_dict())
        return
    typer.echo(f"NOT FOR RELEASE  {out}")
    typer.echo(found.facts["warning"])
    if ledger is None:
        typer.echo(f'say so when you release again: --before-dp "{found.facts["before_dp"]}"')
