"""`nearest` and `clusters`: like rows and groups of them in a projected release, offline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.options import AsJson, Force, print_json, require_new_file
from adumbra.cli.release_views import Folder
from adumbra.errors import InvalidInput, require

if TYPE_CHECKING:
    from adumbra.numerics import Array
    from adumbra.postprocess.distances import DistanceModel

Out = Annotated[
    Path | None, typer.Option("--out", help="Write row,cluster lines here (CSV), one for each row.")
]
Rows = Annotated[list[int], typer.Argument(help="Numbers of released rows, from 0.")]


def nearest(
    folder: Folder,
    rows: Rows,
    count: Annotated[int, typer.Option("--count", help="Neighbours to show per row.")] = 5,
    json: AsJson = False,
) -> None:
    """Show the rows nearest to given rows, with unbiased squared distances. Spends no budget."""
    import numpy as np

    from adumbra.postprocess.distances import nearest as nearest_rows

    model, released = projected(folder)
    for row in rows:
        require(0 <= row < len(released), f"row={row}: must lie between 0 and {len(released) - 1}")
    own = np.array(rows, dtype=np.int64)
    found = nearest_rows(model, released[own], released, count, own=own)
    columns = zip(rows, found.rows, found.distances, found.standard_errors, strict=True)
    listed: list[tuple[int, list[dict[str, float]]]] = [
        (row, _neighbours(*others)) for row, *others in columns
    ]
    if json:
        facts = [{"row": row, "neighbours": others} for row, others in listed]
        print_json(facts)
        return
    for row, others in listed:
        typer.echo(f"row {row}")
        for other in others:
            said = f"{other['squared_distance']:.4g} +- {other['standard_error']:.2g}"
            typer.echo(f"  row {other['row']}: squared distance {said}")
    typer.echo(
        "One distance is unbiased; the nearest of many rows looks nearer than it is. Distances are of "
        "encoded rows: each number by its declared range."
    )


def clusters(  # noqa: PLR0913, PLR0917 - one argument per flag
    folder: Folder,
    count: Annotated[int, typer.Option("--count", help="How many clusters.")],
    out: Out = None,
    sample_seed: Annotated[
        int, typer.Option("--sample-seed", help="Public seed for the starting points. Costs no budget.")
    ] = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Group released rows by k-means that knows the noise. Spends no budget."""
    from adumbra.postprocess.kmeans import kmeans

    if out is not None:
        require_new_file("out", out, force=force)
        inside = folder.resolve() in out.resolve().parents
        require(not inside, "out: lies inside the release; write it elsewhere")
    model, released = projected(folder)
    found = kmeans(model, released, count, sample_seed=sample_seed)
    facts = {
        "rows": len(released),
        "sizes": found.sizes.tolist(),
        "centre_standard_errors": found.centre_errors.tolist(),
        "spread_within": found.spread,
    }
    if out is not None:
        lines = ["row,cluster", *(f"{row},{label}" for row, label in enumerate(found.labels))]
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if json:
        print_json(facts)
        return
    for number, size in enumerate(found.sizes):
        error = found.centre_errors[number]
        typer.echo(f"cluster {number}: {size:,} rows; noise of a coordinate of its centre {error:.2g}")
    typer.echo(f"squared distances within clusters, without the noise: {found.spread:.4g} in all")
    if out is not None:
        typer.echo(f"written   {out}")


def projected(folder: Path) -> "tuple[DistanceModel, Array]":
    """The model of distances and the rows of a projected release, verified; a label is left out."""
    import numpy as np

    from adumbra.postprocess.distances import DistanceModel
    from adumbra.release.artifact import load

    release = load(folder)
    facts = release.card["facts"].get("distances")
    if facts is None:
        method = release.card["method"]["name"]
        raise InvalidInput(f"method={method}: no projected rows; use a release of dppro or jl-laplace")
    model, table = DistanceModel.from_facts(facts), release.data
    names = table.column_names[: model.n_components]
    return model, np.column_stack([table[name].to_numpy() for name in names])


def _neighbours(rows: "Array", distances: "Array", errors: "Array") -> list[dict[str, float]]:
    return [
        {"row": int(row), "squared_distance": float(distance), "standard_error": float(error)}
        for row, distance, error in zip(rows, distances, errors, strict=True)
    ]
