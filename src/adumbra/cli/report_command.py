"""`adumbra report`: the page of a release; with --internal, attacks on it with private rows in hand."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adumbra.cli.options import Force, Header, read_schema, require_new_file

if TYPE_CHECKING:
    from adumbra.mechanisms.base import Config

Folder = Annotated[Path, typer.Argument(help="The folder of a release.")]


def report(  # noqa: PLR0913, PLR0917 - one argument a flag
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", help="The page to write; never inside the release.")],
    internal: Annotated[
        bool, typer.Option("--internal", help="Attack the release with private rows. NOT FOR RELEASE.")
    ] = False,
    data: Annotated[str | None, typer.Option("--data", help="The rows that were released.")] = None,
    holdout: Annotated[
        str | None, typer.Option("--holdout", help="Rows from the same source that were not released.")
    ] = None,
    schema: Annotated[Path | None, typer.Option("--schema", help="The schema file (TOML).")] = None,
    header: Header = False,
    shadows: Annotated[
        int, typer.Option("--shadows", min=0, help="Shadow releases per kind; 0 for none.")
    ] = 60,
    force: Force = False,
    json: Annotated[
        bool, typer.Option("--json", help="With --internal: print the scores as JSON.")
    ] = False,
) -> None:
    """Write the page of a release, or the internal page of empirical attacks on it."""
    from adumbra.errors import require
    from adumbra.release.storage import load

    inside = out.resolve().is_relative_to(folder.resolve())
    why = "an internal page may never be published" if internal else "it would no longer verify"
    require(not inside, f"out={out}: lies in the release; {why}; choose another place")
    rows = {"--data": data, "--holdout": holdout, "--schema": schema}
    given = [flag for flag, value in rows.items() if value is not None]
    if internal:
        require(len(given) == len(rows), "internal: needs --data, --holdout and --schema")
    require(
        internal or not given, f"{', '.join(given)}: only with --internal; the public page reads no rows"
    )
    require_new_file("out", out, force=force)
    release = load(folder)
    if not internal:
        from adumbra.mechanisms.methods import pictures_of_release
        from adumbra.report.page import render

        page = render(release.card, pictures_of_release(release))
        out.write_text(page, encoding="utf-8")
        typer.echo(f"page      {out}")
        return
    from adumbra.audit.internal import attack_release, facts
    from adumbra.report.internal import render_internal

    found = attack_release(
        release,
        data,
        holdout,
        read_schema(Path(str(schema)), header=header),
        config=_config(release.card),
        shadows=shadows,
    )
    shown = facts(found, release.card)
    out.unlink(missing_ok=True)
    out.touch(mode=0o600)  # made from private rows: nobody else's from its first byte on
    out.write_text(render_internal(shown), encoding="utf-8")
    if json:
        typer.echo(json_module.dumps(shown, indent=2))
    else:
        typer.echo(f"NOT FOR RELEASE  {out}: {found.words}")


def _config(card: dict[str, Any]) -> "Config":
    """The config that the card prints."""
    from adumbra.mechanisms.methods import config_of

    made: Config = config_of(card["method"]["name"], card["method"]["config"])
    return made
