"""`adumbra schema draft | check | fill | upgrade`: write and check what is publicly known of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.key_commands import Publisher
from adumbra.cli.options import AsJson, Force, Header, print_json, read_schema, require_new_file
from adumbra.errors import InvalidInput, SchemaError, require

if TYPE_CHECKING:
    from adumbra.schema.schema import Schema

app = typer.Typer(help="Write and check schemas.", no_args_is_help=True)


@app.command()
def draft(  # noqa: PLR0913 - one argument per flag
    data: Annotated[str, typer.Argument(help="A file, a folder or a quoted glob.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to this file instead of the screen.")
    ] = None,
    codebook: Annotated[
        Path | None,
        typer.Option(
            "--codebook",
            help="Take kinds, bounds and categories from a public codebook: CSV, Frictionless, "
            "JSON Schema or DDI (its statistics are not read).",
        ),
    ] = None,
    *,
    header: Header = False,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Keep columns that look like identifiers or free text.")
    ] = False,
    force: Force = False,
) -> None:
    """Draft a schema from column names and storage types; values and statistics are never read.

    A CSV file needs --header: its first line may be a row.
    """
    from adumbra.cli.options import warn_of_values
    from adumbra.data.csv_header import likely_delimiter
    from adumbra.data.drafting import draft_schema
    from adumbra.data.opening import describe, find_files, is_csv
    from adumbra.schema.codebook import read_codebook
    from adumbra.schema.todo import to_do

    if out is not None:
        require_new_file("out", out, force=force)
    columns = describe(data, header=header)[0][1]
    book = None if codebook is None else read_codebook(codebook)
    text = draft_schema(
        columns,
        header=True if is_csv(data) else None,
        delimiter=likely_delimiter(find_files(data)[0]) if is_csv(data) else None,
        codebook=book,
        source="" if codebook is None else f"codebook {codebook.name}",
        keep_all=keep_all,
    )
    if is_csv(data):
        warn_of_values([name for name, _ in columns])
    if out is None:
        typer.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8")
    typer.echo(f"{out}: drafted; {to_do(text)}, then run: adumbra schema check {out} {data}")


@app.command()
def check(  # noqa: PLR0913 - one argument per flag
    schema: Annotated[Path, typer.Argument(help="The schema file.")],
    data: Annotated[
        str | None, typer.Argument(help="Data to compare names, types and a public row count with.")
    ] = None,
    expanded: Annotated[
        Path | None, typer.Option("--expanded", help="Write the schema with its patterns filled in.")
    ] = None,
    *,
    header: Header = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """List every fault of a schema. With DATA, also compare names, types and a public row count."""
    from adumbra.cli.options import fit_words, say_notes, undeclared
    from adumbra.schema.todo import count_todos, text_of, to_do

    if expanded is not None:
        require_new_file("expanded", expanded, force=force)
    try:
        declared = read_schema(schema, header=header)
        if data is not None:
            _warn_of_patterns(declared, data)
            declared = _compare(declared, data, schema)
    except SchemaError as problem:
        if as_json:
            left = count_todos(text_of(schema))
            print_json({"schema": str(schema), "faults": list(problem.faults), "to_do": left})
            raise typer.Exit(problem.exit_code) from None
        if count_todos(text_of(schema)):
            typer.echo(f"{schema}: {to_do(text_of(schema))}")
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
        "to_buy": [column.name for column in declared.columns if column.private],
    }
    unread = None if data is None else undeclared(data, declared)
    if as_json:
        print_json(facts | ({} if unread is None else unread.facts()))
    else:
        width = "columns by pattern" if declared.patterns else f"{declared.width} columns"
        if declared.items is not None:
            width = f"item sets of {declared.width} items"
        against = "" if data is None else f"; {fit_words(data, declared)}"
        relation = f"unit {declared.unit}, neighbours {declared.neighbours}"
        private = sum(column.private for column in declared.columns)
        buy = f"; to do: buy {private} of them by the method bounds" if private else ""
        typer.echo(f"{schema}: no fault; {width}, {relation}{against}{buy}")
    if unread is not None:
        say_notes(unread, json=as_json)


@app.command()
def upgrade(
    schema: Annotated[Path, typer.Argument(help="The schema file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here, and leave the file as it is.")
    ] = None,
    *,
    force: Force = False,
) -> None:
    """Rewrite an older schema file in today's format; what it declares and its digest stay the same."""
    from adumbra.schema.upgrade import upgraded

    if out is not None:
        require_new_file("out", out, force=force)
    try:
        text = schema.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"schema={str(schema)!r}: is not a UTF-8 file; check the path") from None
    new = upgraded(text, str(schema))
    target = schema if out is None else out
    if new != text or out is not None:
        target.write_bytes(new.encode("utf-8"))
    said = "upgraded" if new != text else "nothing to upgrade"
    typer.echo(f"{target}: {said}")


@app.command()
def fill(
    schema: Annotated[Path, typer.Argument(help="The schema file with private columns.")],
    release: Annotated[Path, typer.Argument(help="The folder of a release by the method bounds.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the filled schema to this file.")],
    *,
    key: Publisher = None,
    force: Force = False,
) -> None:
    """Write bought bounds and levels into a schema; each column cites the release as its source."""
    from adumbra.answers.askable import load
    from adumbra.mechanisms.bounds.filling import fill_schema

    require_new_file("out", out, force=force)
    declared = read_schema(schema, header=False)
    filled = fill_schema(declared, load(release, key=key))
    out.write_text(filled.to_toml(), encoding="utf-8")
    left = [column.name for column in filled.columns if column.private]
    bought = sum(column.source.startswith("bought: ") for column in filled.columns)
    typer.echo(f"{out}: {bought} columns cite the release{_left_words(left)}")


def _left_words(left: list[str]) -> str:
    """Which columns are still to be declared or bought."""
    if not left:
        return ""
    from adumbra.data.files import listed

    return f"; nothing was found for {listed(left)}: declare it, or buy it with more"


def _compare(declared: "Schema", data: str, path: Path) -> "Schema":
    """Expand the schema by the data's names, and list what does not fit, as `release` would say it."""
    from adumbra.data.opening import compare, open_source

    fitted, faults = compare(data, declared)
    if faults:
        raise SchemaError(tuple(f"{path}: {fault}" for fault in faults))
    try:
        open_source(data, fitted).public_rows()
    except InvalidInput as problem:
        raise SchemaError((f"{path}: {problem}",)) from problem
    return fitted


def _warn_of_patterns(declared: "Schema", data: str) -> None:
    """Warn, on stderr, of patterns that take more than they seem to; names must be public for it."""
    from adumbra.data.opening import fields_by, is_csv
    from adumbra.data.suspects import wide_patterns

    if not declared.patterns or (is_csv(data) and declared.header is not True):
        return
    names = [name for _, fields in fields_by(data, declared)[:1] for name, _ in fields]
    for sentence in wide_patterns(declared, names):
        typer.echo(f"warning: {sentence}", err=True)
