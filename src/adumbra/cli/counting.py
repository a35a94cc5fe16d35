"""`--rows-per-person`: buy what a bound on the rows of a person is chosen by."""

from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.errors import require

if TYPE_CHECKING:
    import pyarrow as pa

    from adumbra.release.artifact import Release
    from adumbra.schema.schema import Schema

METHOD = "bounds"
RowsPerPerson = Annotated[
    bool,
    typer.Option(
        "--rows-per-person",
        help="Release a histogram of rows per person instead, to choose max_rows_per_person.",
    ),
]


def counting(schema: "Schema", method: str | None, goal: str | None) -> "tuple[Schema, str]":
    """The schema of rows per person, and the method that releases them."""
    from adumbra.data.person_sizes import sizes_schema

    is_free = method in (None, METHOD) and goal is None
    rule = f"is released by the method {METHOD}; leave out --method and --goal"
    require(is_free, f"rows-per-person: {rule}")
    return sizes_schema(schema), METHOD


def counted(
    data: str, schema: "Schema", method: str | None, goal: str | None
) -> "tuple[pa.Table, Schema, str]":
    """The table of rows per person with its schema, and the method that releases them."""
    from adumbra.data.person_sizes import rows_per_person

    counting(schema, method, goal)
    return *rows_per_person(data, schema), METHOD


def show_within(made: "Release") -> None:
    """The noisy part of persons up to each step, for whoever chooses the bound."""
    from adumbra.mechanisms.bounds.filling import persons_within

    for most, part in persons_within(made).items():
        rows = "row" if most == 1 else "rows"
        typer.echo(f"  at most {most} {rows}: {part:.2f} of persons")
