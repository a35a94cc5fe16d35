"""`adumbra demo`: the main job on a generated table, end to end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.errors import require

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from adumbra.numerics import Array

ROWS, LEFT_OUT = 30_000, 3_000
PANELS = ("blood", "heart", "kidney", "lipid", "liver", "lung")
MARKERS = 25  # measurements of one panel, which are alike
COSTS, PROCEDURES, SURVEY = 16, 14, 10
REGIONS = ("north", "east", "south", "west")
WARDS = ("cardiology", "oncology", "surgery", "maternity", "other")
OUTCOMES = ("home", "readmitted", "died")  # of which the last is rare
COLUMNS = MARKERS * len(PANELS) + COSTS + PROCEDURES + SURVEY + 10
EXAMPLE_SEED = 20_261_116  # the example is made, not private: its seed is public


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the data, the ledger and the release.")
    ] = Path("demo-out"),
) -> None:
    """Make a table of 30,000 rows and 200 mixed columns, then plan, pay, release, verify, evaluate."""
    import shutil

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
    from adumbra.cli.engines import progress_bar
    from adumbra.cli.options import make_config
    from adumbra.cli.planning import show_plan, show_release, stopped_in_words
    from adumbra.engine.local import LocalEngine
    from adumbra.evaluate.evaluation import evaluate
    from adumbra.mechanisms.methods import plan
    from adumbra.privacy.ledger import Population, create_ledger
    from adumbra.release.artifact import verify
    from adumbra.schema.schema import Schema

    data, schema_file = out / "patients.parquet", out / "patients.toml"
    typer.echo(f"1  a table of {ROWS:,} rows and {COLUMNS} columns: {data}")
    write_example(data, out / "left-out.parquet")
    schema_file.write_text(example_schema())
    schema = Schema.read(schema_file)

    typer.echo(f"2  a ledger, with epsilon=4 at delta=1e-6 for the patients: {out / 'ledger.db'}")
    ledger = create_ledger(out / "ledger.db")
    people = Population("patients", schema.unit, schema.neighbours, 4.0, 1e-6, owner="demo")
    ledger.register(people)

    typer.echo("3  the plan, from public numbers only")
    config = make_config("moments", 1.0, 1e-6, [])
    show_plan(plan(config, schema))

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

    typer.echo("7  for the custodian alone: the release against the rows it was made from")
    with progress_bar(quiet=False) as report:
        others = str(out / "left-out.parquet")
        found = evaluate(str(data), made, holdout=others, shadows=0, rows=2_000, progress=report)
    found.save(out / "evaluation.html")
    ledger.close()
    typer.echo(f"page      {out / 'evaluation.html'}  (NOT FOR RELEASE)")


def write_example(path: Path, left_out: Path) -> None:
    """A hospital-like table with structure, and people of the same kind who are in no release."""
    import pyarrow.parquet as pq

    table = example_table(ROWS + LEFT_OUT)
    pq.write_table(table.slice(0, ROWS), path)
    pq.write_table(table.slice(ROWS), left_out)


def example_table(rows: int) -> "pa.Table":
    """Correlated panels, skewed costs, counts that are mostly 0, a survey with gaps, a rare outcome."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(EXAMPLE_SEED)
    illness, age_score, costly = (rng.standard_normal(rows) for _ in range(3))
    columns: dict[str, pa.Array] = {}
    for place, panel in enumerate(PANELS):
        own = rng.standard_normal(rows) + (0.8 if place % 2 else 0.3) * illness
        weights = rng.uniform(0.4, 1.0, MARKERS) * rng.choice([-1.0, 1.0], MARKERS, p=[0.25, 0.75])
        for j in range(MARKERS):
            values = weights[j] * own + 0.6 * rng.standard_normal(rows)
            columns[f"{panel}_{j:02d}"] = pa.array(np.round(50 + 12 * np.clip(values, -4, 4), 2))
    for j in range(COSTS):
        cost = np.exp(6 + 0.7 * costly + 0.4 * illness + 0.5 * rng.standard_normal(rows))
        is_free = rng.random(rows) < (j / COSTS) * 0.8
        columns[f"cost_{j:02d}"] = pa.array(np.round(np.where(is_free, 0.0, np.minimum(cost, 1e4)), 2))
    for j in range(PROCEDURES):
        rate = 0.25 * np.exp(0.5 * illness + 0.3 * rng.standard_normal(rows))
        columns[f"procedure_{j:02d}"] = pa.array(np.minimum(rng.poisson(rate), 30).astype(np.int32))
    for j in range(SURVEY):
        answer = 50 + 15 * (0.6 * age_score + 0.8 * rng.standard_normal(rows))
        is_missing = rng.random(rows) < 0.1 + 0.3 * j / SURVEY + 0.1 * (illness > 1)
        columns[f"survey_{j:02d}"] = pa.array(np.round(np.clip(answer, 0, 100), 1), mask=is_missing)
    columns["age"] = pa.array(np.clip(55 + 16 * age_score, 0, 110).astype(np.int32))
    for name, mean in (("visits", 3.0), ("days", 5.0), ("drugs", 2.0), ("scans", 1.0)):
        count = rng.poisson(mean * np.exp(0.3 * illness))
        columns[name] = pa.array(np.minimum(count, 60).astype(np.int32))
    columns["region"] = _choose(rng, REGIONS, np.tile([0.4, 0.3, 0.2, 0.1], (rows, 1)))
    heart = np.exp(np.outer(illness, [0.6, 0.4, 0.1, -0.8, 0.0]))
    columns["ward"] = _choose(rng, WARDS, heart)
    columns["smoker"] = pa.array(0.5 * illness + rng.standard_normal(rows) > 1.1)
    columns["blood_group"] = _choose(rng, ("A", "B", "AB", "0"), np.tile([9, 2, 1, 8], (rows, 1)))
    risk = illness + 0.5 * age_score
    chances = np.stack([np.full(rows, 8.0), 1.2 * np.exp(0.9 * risk), 0.03 * np.exp(1.4 * risk)], axis=1)
    columns["outcome"] = _choose(rng, OUTCOMES, chances)
    return pa.table(columns)


def example_schema() -> str:
    """What the custodian declares: groups by pattern, bounds from public knowledge."""
    panels = "\n".join(_group(f"{name}_{{00..{MARKERS - 1}}}", 0.0, 100.0) for name in PANELS)
    return f"""format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"
label = "outcome"
rows = {ROWS}
declared_by = "the demo"

{panels}
{_group(f"cost_{{00..{COSTS - 1}}}", 0.0, 10_000.0)}
{_group(f"procedure_{{00..{PROCEDURES - 1}}}", 0, 30)}
{_group(f"survey_{{00..{SURVEY - 1:02d}}}", 0.0, 100.0)}missing = "null"

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
name = "blood_group"
kind = "category"
categories = ["A", "B", "AB", "0"]

[[columns]]
name = "outcome"
kind = "category"
categories = {list(OUTCOMES)}
"""


def _group(match: str, lower: float, upper: float) -> str:
    kind = "integer" if isinstance(lower, int) else "number"
    return f'[[groups]]\nmatch = "{match}"\nkind = "{kind}"\nlower = {lower}\nupper = {upper}\n'


def _choose(rng: "np.random.Generator", levels: tuple[str, ...], weights: "Array") -> "pa.Array":
    """One level per row, by the weights of that row."""
    import numpy as np
    import pyarrow as pa

    ends = np.cumsum(weights, axis=1)
    drawn = rng.random(len(ends))[:, None] * ends[:, -1:]
    return pa.array(np.array(levels)[(drawn > ends).sum(axis=1)])
