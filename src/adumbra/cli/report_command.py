"""`adumbra report`: the page of a release, written again from its card and its released numbers."""

from pathlib import Path
from typing import Annotated

import typer

from adumbra.cli.options import Force, require_new_file
from adumbra.errors import require


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    out: Annotated[Path, typer.Option("--out", help="The page to write; never inside the release.")],
    force: Force = False,
) -> None:
    """Write the page of a release; `adumbra evaluate` compares it with private rows."""
    from adumbra.mechanisms.pictured import pictures_of_release
    from adumbra.release.artifact import load
    from adumbra.report.page import render

    inside = out.resolve().is_relative_to(folder.resolve())
    rule = "lies in the release; it would no longer verify; choose another place"
    require(not inside, f"out={out}: {rule}")
    require_new_file("out", out, force=force)
    release = load(folder)
    out.write_text(render(release.card, pictures_of_release(release)), encoding="utf-8")
    typer.echo(f"page      {out}")
