"""What unit person costs: CPU and memory beside unit row, and utility over the rows of a person.

    python benchmarks/persons.py cost --rows 1000000 --columns 20
    python benchmarks/persons.py utility --data FOLDER        FOLDER holds tafeng_lines.parquet

cost      one moments release of generated numbers from a Parquet file, per unit in a process of its own.
utility   shares of values of a column: how far the released histogram is from that of all rows (total
          variation), beside what cutting or weighting alone changes (the exact histogram of the used
          rows), over m, for keep and scale; beside it the distance to the histogram that has no noise.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import adumbra
from adumbra.data.opening import open_source
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.privacy.ledger import Population, create_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.schema.table import PersonSpec

MOST = 8
EPSILON = 1.0
BOUNDS = (1, 2, 4, 8, 16, 32)
AGES = ("A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K")


def schema_of(columns: tuple[Column, ...], most: int | None, ids: str, bound: str = "keep") -> Schema:
    """Unit person with this bound, or unit row; add-remove in both."""
    if most is None:
        return Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    person = PersonSpec(column=ids, max_rows=most, bound=bound)
    relation = Neighbours.ADD_REMOVE_PERSON
    return Schema(columns=columns, unit=Unit.PERSON, neighbours=relation, person=person)


def released(data: object, schema: Schema, rows: int, folder: Path) -> pa.Table:
    """One moments release."""
    with create_ledger(folder / "ledger.db") as ledger:
        ledger.register(Population("p", schema.unit, schema.neighbours, 2 * EPSILON, 1e-6))
        config = MomentsConfig(epsilon=EPSILON, synthetic_rows=10_000, expected_rows=rows)
        out = folder / "out"
        return adumbra.release(data, config, schema=schema, ledger=ledger, population="p", out=out).data


def make(path: Path, rows: int, columns: int) -> None:
    """Numbers with ids of about ten rows each, in any order."""
    rng = np.random.default_rng(0)
    names = [f"x{place}" for place in range(columns)]
    kinds = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in names)])
    with pq.ParquetWriter(path, kinds) as writer:
        for start in range(0, rows, 500_000):
            count = min(500_000, rows - start)
            cells = {name: rng.random(count) for name in names}
            writer.write_table(pa.table({"id": rng.integers(0, max(rows // 10, 1), count), **cells}))


def cost(rows: int, columns: int) -> None:
    """CPU seconds and peak memory of unit row and of persons, each in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rows.parquet"
        make(path, rows, columns)
        found = {}
        for unit in ("row", "keep", "scale"):
            command = [sys.executable, __file__, "one", str(path), unit, str(columns)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[unit] = json.loads(done.stdout)
            print(f"{unit:7} {found[unit]['cpu']:8.1f} s CPU  {found[unit]['wall']:8.1f} s  "
                  f"{found[unit]['peak_mb']:7.0f} MB at most")  # fmt: skip
        for bound in ("keep", "scale"):
            print(f"{bound} / row: {found[bound]['cpu'] / found['row']['cpu']:.2f} of the CPU")


def one(path: str, unit: str, columns: int) -> None:
    """One release in this process."""
    numbers = tuple(
        Column(name=f"x{place}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for place in range(columns)
    )
    schema = schema_of(numbers, None if unit == "row" else MOST, "id", unit)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        released(path, schema, 10_000, Path(place))
    use = resource.getrusage(resource.RUSAGE_SELF)
    facts = {"cpu": use.ru_utime + use.ru_stime, "wall": time.perf_counter() - start}
    print(json.dumps({**facts, "peak_mb": use.ru_maxrss / 1024}))


def utility(folder: str) -> None:
    """Mean total variation over columns on purchases, over m and beside unit row."""
    table = pq.read_table(Path(folder) / "tafeng_lines.parquet")
    columns, ids = tafeng_columns(table)
    truth = histograms(open_source(table, schema_of(columns, None, ids)), columns)
    print(
        f"{len(table):,} lines; total variation, mean over {len(columns)} columns; epsilon {EPSILON:g}"
    )
    print("   m  bound   weight of used rows   bound alone   noise and synthesis   all together")
    for most in (*BOUNDS, None):
        for bound in ("keep", "scale") if most is not None else ("",):
            schema = schema_of(columns, most, ids, bound or "keep")
            used = histograms(open_source(table, schema), columns)
            with tempfile.TemporaryDirectory() as place:
                rows = released(table, schema, len(table), Path(place))
            drawn = histograms(open_source(rows, schema.by_row()), columns)
            name = "row" if most is None else str(most)
            shown = distance(used, truth), distance(drawn, used), distance(drawn, truth)
            weight = used[0].sum() / 2**schema.weight_bits
            print(f"{name:>4}  {bound:5} {weight:20,.0f} {shown[0]:13.4f} {shown[1]:21.4f} "
                  f"{shown[2]:14.4f}", flush=True)  # fmt: skip


def tafeng_columns(table: pa.Table) -> tuple[tuple[Column, ...], str]:
    """Declared columns of the purchases; bounds are round numbers, for this is a benchmark."""
    columns = []
    for field in table.schema:
        name = field.name.lower()
        if "amount" in name or "quantity" in name:
            columns.append(Column(name=field.name, kind=Kind.INTEGER, lower=0, upper=20))
        elif "price" in name or "asset" in name or "cost" in name:
            columns.append(Column(name=field.name, kind=Kind.NUMBER, lower=0.0, upper=1000.0))
        elif "age" in name:
            columns.append(
                Column(name=field.name, kind=Kind.CATEGORY, categories=AGES, missing="category")
            )
    ids = next(field.name for field in table.schema if "customer" in field.name.lower())
    return tuple(columns), ids


def histograms(source: object, columns: tuple[Column, ...]) -> list[np.ndarray]:
    """Counts by level, or by twenty equal cells of a number."""
    found = [np.zeros(column.levels or 20) for column in columns]
    for batch in source.batches(65_536):  # type: ignore[attr-defined]
        for place, column in enumerate(columns):
            low, high = column.limits
            cells = batch.values[:, place]
            if not column.levels:
                cells = np.clip((cells - low) / (high - low) * 20, 0, 19)
            found[place] += batch.weight * np.bincount(cells.astype(int), minlength=len(found[place]))
    return found


def distance(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """Mean total variation of shares."""
    pairs = zip(one, other, strict=True)
    return float(
        np.mean([np.abs(a / max(a.sum(), 1) - b / max(b.sum(), 1)).sum() / 2 for a, b in pairs])
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    costs = commands.add_parser("cost")
    costs.add_argument("--rows", type=int, default=1_000_000)
    costs.add_argument("--columns", type=int, default=20)
    commands.add_parser("utility").add_argument("--data", required=True)
    single = commands.add_parser("one")
    for name in ("path", "unit", "columns"):
        single.add_argument(name)
    asked = parser.parse_args()
    if asked.command == "cost":
        cost(asked.rows, asked.columns)
    elif asked.command == "utility":
        utility(asked.data)
    else:
        one(asked.path, asked.unit, int(asked.columns))


if __name__ == "__main__":
    main()
