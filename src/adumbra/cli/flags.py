"""Flags that several commands share, and the one rule for a file that a command writes."""

import os
from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]


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
