"""`adumbra report`: the page of a release; with --internal, attacks on it with private rows in hand."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from adumbra.workflow import Config

Folder = Annotated[Path, typer.Argument(help="The folder of a release.")]


def report(  # noqa: PLR0913, PLR0917 - one argument a flag
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", help="The page to write; never inside the release.")],
    internal: Annotated[
        bool, typer.Option("--internal", help="Attack the release with private rows. NOT FOR RELEASE.")
    ] = False,
    data: Annotated[str | None, typer.Option("--data", help="The rows that were released.")] = None,
    holdout: Annotated[
        str | None, typer.Option("--holdout", help="Rows of the same kind that were left out.")
    ] = None,
    schema: Annotated[Path | None, typer.Option("--schema", help="The schema file (TOML).")] = None,
    shadows: Annotated[
        int, typer.Option("--shadows", min=0, help="Shadow releases of each kind; 0: none.")
    ] = 60,
    json: Annotated[bool, typer.Option("--json", help="Also print the scores as JSON.")] = False,
) -> None:
    """Write the page of a release, or the internal page of empirical attacks on it."""
    from adumbra.errors import require
    from adumbra.release.storage import load

    inside = out.resolve().is_relative_to(folder.resolve())
    require(not inside, f"out={out}: lies in the release; an internal page may never be published")
    release = load(folder)
    if not internal:
        from adumbra.report.page import render

        out.write_text(render(release.card), encoding="utf-8")
        typer.echo(f"page      {out}")
        return
    require(
        data is not None and holdout is not None and schema is not None,
        "internal: needs --data, --holdout and --schema",
    )
    from adumbra.audit.internal import attack_release, facts
    from adumbra.data.schema import Schema
    from adumbra.report.internal import render_internal

    found = attack_release(
        release,
        data,
        holdout,
        Schema.read(Path(str(schema))),
        config=_config(release.card),
        shadows=shadows,
    )
    shown = facts(found, release.card)
    out.write_text(render_internal(shown), encoding="utf-8")
    out.chmod(0o600)  # made from private rows
    if json:
        typer.echo(json_module.dumps(shown, indent=2))
    else:
        typer.echo(f"NOT FOR RELEASE  {out}: {found.words}")


def _config(card: dict[str, Any]) -> "Config":
    """The config that the card prints."""
    from adumbra.cli.options import config_classes

    kind = config_classes()[card["method"]["name"]]
    made: Config = kind(**card["method"]["config"])
    return made
