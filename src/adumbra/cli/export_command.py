"""`adumbra export`: the card of a release in the formats of others."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from adumbra.cli.options import Force, named_texts, require_new_file


class FormatName(StrEnum):
    """The same words as `report.exports.FORMATS`, without its import."""

    REGISTRY = "registry"
    CROISSANT = "croissant"
    FRICTIONLESS = "frictionless"
    SCHEMA_ORG = "schema-org"
    MARKDOWN = "markdown"


def export(  # noqa: PLR0913, PLR0917 - one argument per flag
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write; never inside the release.")],
    form: Annotated[
        FormatName, typer.Option("--format", help="Target format; registry is OpenDP's (YAML).")
    ],
    url: Annotated[
        str,
        typer.Option(
            "--url", help="Address where the folder will be published; the base of file addresses."
        ),
    ] = "",
    about: Annotated[
        list[str] | None,
        typer.Option(
            "--about", help="Facts that the card lacks (name=value): license, region, ... Repeatable."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Verify a release, then write its card in another format. Reads released numbers alone."""
    from adumbra.report.exports import export as export_release

    said = named_texts(about or [])
    require_new_file("out", out, force=force)
    export_release(folder, str(form), out=out, url=url, about=said)
    typer.echo(f"written   {out} ({form})")
