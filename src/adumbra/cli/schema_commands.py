"""`adumbra schema draft | check`: write and check what is publicly known of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.flags import AsJson, Force, require_new_file

if TYPE_CHECKING:
    from adumbra.data.schema import Schema

app = typer.Typer(help="Write and check schemas.", no_args_is_help=True)

SHOWN_NAMES, LONGEST_NAME = 8, 60  # of undeclared columns


@app.command()
def draft(
    data: Annotated[str, typer.Argument(help="A file, a folder or a quoted glob.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here, not to the screen.")
    ] = None,
    *,
    force: Force = False,
) -> None:
    """Draft a schema from column names and storage types; values and statistics are never read."""
    from adumbra.data.schema_text import draft_schema
    from adumbra.data.sources import describe

    if out is not None:
        require_new_file("out", out, force=force)
    text = draft_schema(describe(data)[0][1])
    if out is None:
        typer.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8")
    typer.echo(f"{out}: drafted; replace every TODO, then run: adumbra schema check {out} {data}")


@app.command()
def check(
    schema: Annotated[Path, typer.Argument(help="The schema file.")],
    data: Annotated[
        str | None, typer.Argument(help="Data to compare names, types and a public row count with.")
    ] = None,
    expanded: Annotated[
        Path | None, typer.Option("--expanded", help="Write the schema with its patterns filled in.")
    ] = None,
    *,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Say every fault of a schema at once; with DATA, compare names, types, public row count."""
    from adumbra.data.schema import Schema
    from adumbra.errors import SchemaError, require

    if expanded is not None:
        require_new_file("expanded", expanded, force=force)
    try:
        declared = Schema.read(schema)
        if data is not None:
            declared = _compare(declared, data, schema)
    except SchemaError as problem:
        if as_json:
            _print_json({"schema": str(schema), "faults": list(problem.faults)})
            raise typer.Exit(problem.exit_code) from None
        raise
    if expanded is not None:
        require(
            data is not None or not declared.patterns, "expanded: patterns need DATA to be filled in"
        )
        expanded.write_text(declared.to_toml(), encoding="utf-8")
    facts: dict[str, object] = {
        "schema": str(schema),
        "faults": [],
        "columns": None if declared.patterns else declared.width,
        "unit": str(declared.unit),
        "neighbours": str(declared.neighbours),
        "digest": declared.digest(),
    }
    unread = [] if data is None else undeclared(data, declared)
    if data is not None:
        facts["undeclared"] = unread
    if as_json:
        _print_json(facts)
        return
    width = "columns by pattern" if declared.patterns else f"{declared.width} columns"
    if declared.items is not None:
        width = f"item sets of {declared.width} items"
    against = "" if data is None else "; names and types fit the data"
    typer.echo(
        f"{schema}: no fault; {width}, unit {declared.unit}, neighbours {declared.neighbours}{against}"
    )
    if unread:
        typer.echo(undeclared_words(unread))


def undeclared(data: str, schema: "Schema") -> list[str]:
    """Columns of the data that the schema does not name: no release reads them. Names are public."""
    from adumbra.data.sources import describe

    known = set(schema.names) if schema.items is None else {schema.items.column}
    files = [fields for where, fields in describe(data, schema.items) if not where.endswith(".dat'")]
    return list(dict.fromkeys(name for fields in files for name, _ in fields if name not in known))


def undeclared_words(names: list[str]) -> str:
    """How many columns stay out, and the first of them by name."""
    from adumbra.cli.release_views import clean

    listed = ", ".join(clean(name)[:LONGEST_NAME] for name in names[:SHOWN_NAMES])
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    columns = "1 column" if len(names) == 1 else f"{len(names)} columns"
    verb = "is not declared and stays" if len(names) == 1 else "are not declared and stay"
    return f"{columns} of the data {verb} out: {listed}{more}"


def _compare(declared: "Schema", data: str, path: Path) -> "Schema":
    """Expand the schema by the data's names, and list what does not fit, as `release` would say it."""
    from adumbra.data.sources import compare, open_source
    from adumbra.errors import InvalidInput, SchemaError

    fitted, faults = compare(data, declared)
    if faults:
        raise SchemaError(tuple(f"{path}: {fault}" for fault in faults))
    try:
        open_source(data, fitted).public_rows()
    except InvalidInput as problem:
        raise SchemaError((f"{path}: {problem}",)) from problem
    return fitted


def _print_json(facts: dict[str, object]) -> None:
    import json

    typer.echo(json.dumps(facts, indent=2))
