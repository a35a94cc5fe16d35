"""Peak memory and size of releases beside what their plans say, each in a fresh process.

python benchmarks/peaks.py [small|all] [--folder F]      all takes about ten minutes
python benchmarks/peaks.py wide                          plans of 100,000 columns; nothing is released

A plan may overstate a peak by a factor of 2 (of item sets, whose lengths are private, by 3), and never
understates it (item sets: up to 1,024 items per row on average). `wide` shows what each method says of
100,000 columns and 1,000 rows: its refusal, or the memory that a release would need, and what the plan
itself took.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adumbra import workflow
from adumbra.errors import AdumbraError
from adumbra.mechanisms import methods
from adumbra.mechanisms.methods import method_named
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.release.storage import in_words
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema


@dataclass(frozen=True, kw_only=True)
class Case:
    method: str
    rows: int
    numbers: int = 0
    categories: int = 0
    levels: int = 4
    classes: int = 0
    items: int = 0
    each: int = 8  # items of a row
    config: dict = field(default_factory=dict)

    def schema(self):
        columns = [
            Column(name=f"x{i}", kind=Kind.NUMBER, lower=-1.0, upper=1.0) for i in range(self.numbers)
        ]
        columns += [
            Column(name=f"c{i}", kind=Kind.CATEGORY, categories=_levels("l", self.levels))
            for i in range(self.categories)
        ]
        if self.classes:
            columns.append(
                Column(name="label", kind=Kind.CATEGORY, categories=_levels("k", self.classes))
            )
        if self.method == "bounds":
            columns = [replace(column, private=True) for column in columns]
        return Schema(
            columns=tuple(columns),
            unit=Unit.ROW,
            neighbours=Neighbours.REPLACE_ONE,
            label="label" if self.classes else None,
            items=ItemSpec(column="items", lower=0, upper=self.items - 1) if self.items else None,
            rows=self.rows,
        )

    def make_config(self):
        return method_named(self.method).config(epsilon=1.0, **self.config)


CASES = {
    "small": [
        Case(method="bounds", rows=500, numbers=10, classes=3),
        Case(method="dppro", rows=500, numbers=10, config={"n_components": 3}),
        Case(method="jl-laplace", rows=500, numbers=10, config={"n_components": 3}),
        Case(method="pca", rows=500, numbers=10, config={"n_components": 3}),
        Case(method="ron-gauss", rows=500, numbers=10, categories=2),
        Case(method="moments", rows=500, numbers=10, categories=2, classes=3),
        Case(method="top-k", rows=500, items=50, config={"k": 5}),
        Case(method="lda", rows=500, numbers=10, classes=3),
        Case(method="answers", rows=500, numbers=10, classes=3),
    ],
    "large": [
        Case(method="moments", rows=100_000, numbers=64),
        Case(method="moments", rows=1000, numbers=1000),
        Case(method="moments", rows=1000, numbers=3000),
        Case(method="moments", rows=300, numbers=6000),
        Case(method="moments", rows=1000, categories=200, levels=10),
        Case(method="moments", rows=100_000, categories=30, levels=10, classes=5),
        Case(method="moments", rows=1000, numbers=20, config={"synthetic_rows": 1_000_000}),
        Case(method="moments", rows=300, numbers=20_000),
        Case(method="lda", rows=1000, numbers=1000, classes=3),
        Case(method="lda", rows=100_000, numbers=20, classes=3),
        Case(method="lda", rows=200, numbers=3000, classes=2),
        Case(method="pca", rows=1000, numbers=1000, config={"n_components": 5}),
        Case(method="pca", rows=500_000, numbers=30, config={"n_components": 5}),
        Case(
            method="pca",
            rows=1000,
            numbers=30,
            config={"n_components": 5, "output": "sample", "synthetic_rows": 500_000},
        ),
        Case(method="ron-gauss", rows=1000, numbers=1000),
        Case(method="ron-gauss", rows=500_000, numbers=64),
        Case(method="ron-gauss", rows=1000, numbers=3000, config={"n_components": 300}),
        Case(method="dppro", rows=200_000, numbers=64, config={"n_components": 32}),
        Case(method="dppro", rows=1000, numbers=20_000, config={"n_components": 500}),
        Case(method="jl-laplace", rows=200_000, numbers=64, config={"n_components": 32}),
        Case(method="jl-laplace", rows=1000, numbers=20_000, config={"n_components": 500}),
        Case(method="top-k", rows=200_000, items=100_000, config={"k": 100, "all_counts": True}),
        Case(method="top-k", rows=100_000, items=20_000, each=1000, config={"k": 20}),
        Case(
            method="dppro",
            rows=100_000,
            items=20_000,
            each=1000,
            config={"n_components": 20, "row_norm": 4.0},
        ),
        Case(method="dppro", rows=300_000, items=20_000, config={"n_components": 200, "row_norm": 4.0}),
    ],
}


WIDE = 100_000
WIDE_CASES = [
    Case(method="bounds", rows=1000, numbers=WIDE),
    Case(method="dppro", rows=1000, numbers=WIDE, config={"n_components": 20}),
    Case(method="jl-laplace", rows=1000, numbers=WIDE, config={"n_components": 20}),
    Case(method="pca", rows=1000, numbers=WIDE, config={"n_components": 5}),
    Case(method="ron-gauss", rows=1000, numbers=WIDE),
    Case(method="moments", rows=1000, numbers=WIDE),
    Case(method="top-k", rows=1000, items=WIDE, config={"k": 5}),
    Case(method="lda", rows=1000, numbers=WIDE, classes=3),
    Case(method="answers", rows=1000, numbers=WIDE),
]


def _levels(letter, count):
    return tuple(f"{letter}{i}" for i in range(count))


def write_rows(case, path):
    """Random rows, written in pieces; called in a process of its own."""
    rng, schema = np.random.default_rng(0), case.schema()
    step = max(64, min(50_000, 2_000_000 // max(len(schema.columns), case.each)))
    writer = None
    for start in range(0, case.rows, step):
        size = min(step, case.rows - start)
        if case.items:
            drawn = np.sort(rng.integers(0, case.items, (size, case.each)), axis=1)
            ends = np.arange(size + 1, dtype=np.int32) * case.each
            table = pa.table({"items": pa.ListArray.from_arrays(ends, drawn.ravel())})
        else:
            table = pa.table({c.name: _column(c, size, rng) for c in schema.columns})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def _column(column, size, rng):
    if column.is_numeric:
        return rng.uniform(-1.0, 1.0, size)
    codes = pa.array(rng.integers(0, len(column.categories), size), pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.categories)).cast(pa.string())


def settled(case):
    config = case.make_config()
    return method_named(case.method).settle(config, case.schema())


def laid_out(case, folder):
    """A folder with rows, written by another process: the peak of this one is the release's."""
    place = Path(tempfile.mkdtemp(dir=folder))
    call = [sys.executable, __file__, "--write", json.dumps(asdict(case)), "--folder", str(place)]
    subprocess.run(call, check=True)
    return place


def measure(case, place):
    """One release in this process of the rows in a folder; the peak is that of the process so far."""
    config, schema = case.make_config(), case.schema()
    with memory_ledger() as book:
        book.register(Population("p", schema.unit, schema.neighbours, 9.0, 1e-6))
        given = {"schema": schema, "ledger": book, "population": "p", "out": place / "out"}
        with workflow.prepare(place / "rows.parquet", config, **given) as prepared:
            made, size = prepared.commit(), prepared.plan.size
    added = {name: made.card[name] for name in ("facts", "contents", "files")}
    return {
        "case": asdict(case),
        "memory": size.memory,
        "peak": _peak(),
        "output": size.output,
        "written": sum(path.stat().st_size for path in (place / "out").rglob("*") if path.is_file()),
        "card_limit": size.card,
        "card": len(json.dumps(added, indent=2, ensure_ascii=False).encode()),
    }


def _peak():
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def planned(case):
    """What the plan says, and what it took by itself beyond the schema."""
    schema, config = case.schema(), case.make_config()
    before, start = _peak(), time.process_time()
    try:
        words = in_words(methods.plan(config, schema).size.memory)
    except AdumbraError as error:
        words = f"refused: {error}"
    return {"words": words, "seconds": time.process_time() - start, "taken": _peak() - before}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("which", nargs="?", default="small", choices=("small", "all", "wide"))
    parser.add_argument("--folder", default=None)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write_rows(Case(**json.loads(given.write)), Path(given.folder) / "rows.parquet")
        return
    if given.plan:
        print(json.dumps(planned(Case(**json.loads(given.plan)))))
        return
    if given.which == "wide":
        print(f"{WIDE:,} columns, 1,000 rows; the plan's CPU and memory, what it says of a release")
        for case in WIDE_CASES:
            call = [sys.executable, __file__, "--plan", json.dumps(asdict(case))]
            found = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
            took = f"{found['seconds']:6.1f} s{found['taken'] / 1e6:8.0f} MB"
            print(f"{case.method:10s} {took}  {found['words']}", flush=True)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if given.one:
            case = Case(**json.loads(given.one))
            print(json.dumps(measure(case, laid_out(case, folder))))
            return
        print(f"{os.cpu_count()} cores; MB; the plan's figure, what was measured, their ratio")
        for case in CASES["small"] + (CASES["large"] if given.which == "all" else []):
            call = [sys.executable, __file__, "--one", json.dumps(asdict(case)), "--folder", folder]
            found = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
            words = {key: value for key, value in asdict(case).items() if value and key != "method"}
            line = [f"{case.method:10s}"]
            for said, seen in (("memory", "peak"), ("output", "written")):
                line.append(
                    f"{found[said] / 1e6:9.1f}{found[seen] / 1e6:9.1f}{found[said] / found[seen]:6.2f}"
                )
            print(*line, words, flush=True)


if __name__ == "__main__":
    main()
