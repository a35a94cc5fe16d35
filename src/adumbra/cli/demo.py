"""`adumbra demo`: the main job on a generated table, end to end, in a few seconds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

ROWS, NUMBERS = 50_000, 290
REGIONS = ("north", "east", "south", "west")
WARDS = ("cardiology", "oncology", "surgery", "maternity", "other")
EXAMPLE_SEED = 20_261_116  # the example is made, not private: its seed is public


def demo(
    out: Annotated[Path, typer.Option("--out", help="A folder for data, ledger, release.")] = Path(
        "demo-out"
    ),
) -> None:
    """Make an example table of 50,000 rows and 300 mixed columns, then plan, pay, release and verify."""
    import shutil

    from adumbra.errors import require

    ours = out / "this-is-an-adumbra-demo"
    require(
        not out.exists() or ours.exists() or not any(out.iterdir()),
        f"out={out}: exists and was not made by the demo; choose another folder",
    )
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    ours.touch()
    _run(out)


def _run(out: Path) -> None:
    from adumbra import workflow
    from adumbra.cli.options import make_config
    from adumbra.cli.planning import progress_bar, show_plan, show_release, stopped_in_words
    from adumbra.engine.local import LocalEngine
    from adumbra.privacy.ledger import Population, create_ledger
    from adumbra.release.storage import verify
    from adumbra.schema.schema import Schema

    data, schema_file = out / "patients.parquet", out / "patients.toml"
    typer.echo(f"1  a table of {ROWS:,} rows and {NUMBERS + 10} columns: {data}")
    write_example(data)
    schema_file.write_text(example_schema())
    schema = Schema.read(schema_file)

    typer.echo(f"2  a ledger, with epsilon=4 at delta=1e-6 for the patients: {out / 'ledger.db'}")
    ledger = create_ledger(out / "ledger.db")
    people = Population("patients", schema.unit, schema.neighbours, 4.0, 1e-6, owner="demo")
    ledger.register(people)

    typer.echo("3  the plan, from public numbers only")
    config = make_config("moments", 1.0, 1e-6, [])
    show_plan(workflow.plan(config, schema))

    typer.echo("4  pay, draw, seal, publish")
    with stopped_in_words(), progress_bar(quiet=False) as report:
        made = workflow.release(
            str(data),
            config,
            schema=schema,
            ledger=ledger,
            population="patients",
            out=out / "release",
            engine=LocalEngine(progress=report),
            before_dp="none: the table was generated",
        )
    show_release(made, out / "release", json=False)

    checked = verify(out / "release")
    typer.echo(f"5  verified: {checked.files} files, {checked.size:,} bytes, every byte covered")
    for statement in ledger.show():
        typer.echo(f"6  {statement.sentence()}")
    ledger.close()


def write_example(path: Path) -> None:
    """A hospital-like table: 290 correlated measurements, 5 whole numbers, 4 categories, 1 yes/no."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(EXAMPLE_SEED)
    factors = rng.standard_normal((ROWS, 8))
    loadings = rng.standard_normal((8, NUMBERS)) / 4
    numbers = np.tanh(factors @ loadings + 0.5 * rng.standard_normal((ROWS, NUMBERS)))
    columns: dict[str, pa.Array] = {f"marker_{j:03d}": pa.array(numbers[:, j]) for j in range(NUMBERS)}
    columns["age"] = pa.array(np.clip(50 + 15 * factors[:, 0], 0, 110).astype(np.int32))
    for name, mean in (("visits", 3), ("days", 5), ("drugs", 2), ("scans", 1)):
        columns[name] = pa.array(np.minimum(rng.poisson(mean, ROWS), 60).astype(np.int32))
    columns["region"] = _choose(rng, REGIONS)
    columns["ward"] = _choose(rng, WARDS)
    columns["smoker"] = pa.array(factors[:, 1] + rng.standard_normal(ROWS) > 1)
    columns["blood"] = _choose(rng, ("A", "B", "AB", "0"))
    columns["outcome"] = pa.array(np.where(factors[:, 2] > 0.8, "readmitted", "home"))
    pq.write_table(pa.table(columns), path)


def example_schema() -> str:
    """What the custodian declares: groups by pattern, bounds from public knowledge."""
    return f"""format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"
label = "outcome"
rows = {ROWS}
declared_by = "the demo"

[[groups]]
match = "marker_{{000..{NUMBERS - 1:03d}}}"
kind = "number"
lower = -1.0
upper = 1.0

[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 110

[[groups]]
names = ["visits", "days", "drugs", "scans"]
kind = "integer"
lower = 0
upper = 60

[[columns]]
name = "region"
kind = "category"
categories = {list(REGIONS)}

[[columns]]
name = "ward"
kind = "category"
categories = {list(WARDS)}

[[columns]]
name = "smoker"
kind = "boolean"

[[columns]]
name = "blood"
kind = "category"
categories = ["A", "B", "AB", "0"]

[[columns]]
name = "outcome"
kind = "category"
categories = ["home", "readmitted"]
"""


def _choose(rng: "np.random.Generator", levels: tuple[str, ...]) -> "pa.Array":
    import numpy as np
    import pyarrow as pa

    return pa.array(np.array(levels)[rng.integers(0, len(levels), ROWS)])
