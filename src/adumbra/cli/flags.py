"""Flags that several commands share, and the one rule for a file that a command writes."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from adumbra.data.schema import Schema

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

    from adumbra.data.schema import Schema
    from adumbra.errors import require

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
