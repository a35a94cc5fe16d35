"""Flags that several commands share, and the one rule for a file that a command writes."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from adumbra.schema.schema import Schema


from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adumbra.schema.schema import Schema


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Header = Annotated[
    bool,
    typer.Option(
        "--header",
        help="Declare that the first line of a CSV file holds column names, which are public; "
        "the same as header = true in the schema.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]


def read_schema(path: Path, *, header: bool) -> "Schema":
    """The schema file, with what `--header` declares."""
    from dataclasses import replace

    from adumbra.errors import require
    from adumbra.schema.schema import Schema

    declared = Schema.read(path)
    if not header:
        return declared
    rule = "the schema says header = false; correct the schema or leave the flag out"
    require(declared.header is not False, f"header: {rule}")
    return replace(declared, header=True)


def require_new_file(name: str, path: Path, *, force: bool) -> None:
    """Refuse, before any work is done, a file that exists (unless forced) or cannot be made."""
    from adumbra.errors import require

    folder = path.absolute().parent
    require(folder.is_dir(), f"{name}={path}: its folder does not exist; make it first")
    require(
        os.access(folder, os.W_OK), f"{name}={path}: its folder cannot be written to; choose another"
    )
    require(not path.is_dir(), f"{name}={path}: is a folder; give the name of a file")
    require(
        force or not os.path.lexists(path),
        f"{name}={path}: exists already; choose another name or give --force",
    )


# What a command says of data besides its plan: columns that stay out, a first line that looks odd.
SHOWN_NAMES, LONGEST_NAME = 8, 60  # of undeclared columns
LOOKS_LIKE_A_ROW = (
    "warning: some of the column names in the first line look like numbers or dates; "
    "if that line is a row, it would be published: declare header = false and list the columns"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Columns of the data that no release reads; their names only where they are public."""

    count: int
    names: tuple[str, ...] | None
    warns: bool = False  # the first line was declared public and looks like a row

    def facts(self) -> dict[str, object]:
        """For `--json`."""
        names = None if self.names is None else list(self.names)
        return {"undeclared": names, "undeclared_count": self.count}

    def words(self) -> str:
        """How many columns stay out, and the first of them by name."""
        from adumbra.cli.release_views import clean

        columns = "1 column" if self.count == 1 else f"{self.count} columns"
        verb = "is not declared and stays" if self.count == 1 else "are not declared and stay"
        if self.names is None:
            return f"{columns} of the data {verb} out"
        listed = ", ".join(clean(name)[:LONGEST_NAME] for name in self.names[:SHOWN_NAMES])
        more = f" and {self.count - SHOWN_NAMES} more" if self.count > SHOWN_NAMES else ""
        return f"{columns} of the data {verb} out: {listed}{more}"


def undeclared(data: str, schema: "Schema") -> Unread:
    """Columns of the data that the schema does not name.

    Names are public in Parquet, and in CSV where the schema says `header = true`; else the first line
    may be a row, and its cells are counted only.
    """
    from adumbra.data.csv_header import look_like_values
    from adumbra.data.sources import fields_by, is_csv

    known = {*schema.names, *(one.name for one in schema.derived)}
    known |= set() if schema.items is None else {schema.items.column}
    described = fields_by(data, schema)
    files = [fields for where, fields in described if not where.endswith(".dat'")]
    names = tuple(dict.fromkeys(name for fields in files for name, _ in fields if name not in known))
    if not is_csv(data):
        return Unread(count=len(names), names=names)
    is_public = schema.header is True
    warns = is_public and any(look_like_values(name for name, _ in fields) for fields in files)
    return Unread(count=len(names), names=names if is_public else None, warns=warns)


def say_notes(unread: Unread, *, json: bool) -> None:
    """Print what stays out, unless JSON says it, and a warning on stderr."""
    if unread.count and not json:
        typer.echo(unread.words())
    if unread.warns:
        typer.echo(LOOKS_LIKE_A_ROW, err=True)


def warn_of_values(names: list[str]) -> None:
    """Warn, on stderr, of declared names that look like a row; quotes nothing."""
    from adumbra.data.csv_header import look_like_values

    if look_like_values(names):
        typer.echo(LOOKS_LIKE_A_ROW, err=True)


def fit_words(data: str, schema: "Schema") -> str:
    """What was compared with the data, and what cannot be without reading cells."""
    from adumbra.data.sources import is_csv

    if not is_csv(data):
        return "names and types fit the data"
    names = "the first line holds the declared names"
    if schema.header is False:
        names = "columns are taken in the order of the schema and their number was not compared"
    unknown = "CSV files store no types, so kinds were not compared"
    return f"{names}; {unknown}: a cell that cannot be read as its kind becomes the missing value"
