"""AIM and MST of other packages on the tables of `moments.py`: same split, same ε and δ, same judges.

    python benchmarks/utility/others.py --environments FOLDER [--data ../shared/data] [--only xor,...]
        [--epsilons 1] [--methods adumbra,dpmm_mst,dpmm_aim] [--draws 3] [--cpu-seconds 900]

Each draw of theirs runs in the package's own environment (made if there is none), under a cap of
processor time. A time-out or a crash is a result. These packages are private under add-remove alone,
so `adumbra` is `moments` under add-remove here, --draws draws of it. A missing code is a code of its
own for them, a missing number the lower bound, since they refuse missing values. Lines are appended to
benchmarks/results/utility.jsonl, and what stands there is not run again.
"""

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.append(str(Path(__file__).resolve().parents[1]))
from comparison import capped, environments, facts, tables
from peers import METHODS
from utility import moments, moments_page
from utility.moments_tables import load
from utility.others_page import OWN
from utility.tables_common import ADD, schema_of

from adumbra.schema.schema import Column, Kind

HERE = Path(__file__).resolve().parents[1] / "comparison"
RESULTS = facts.RESULTS / "utility.jsonl"
ABSENT = "N"  # a missing code
TRIED = (
    "keel-titanic", "titanic", "xor", "plants16", "keel-mammographic", "keel-tic-tac-toe", "keel-pima",
    "keel-contraceptive", "keel-banana", "keel-phoneme", "keel-german", "keel-vehicle", "keel-marketing",
    "keel-mushroom", "num14", "adult-add-remove", "nist_taxi", "salary", "acs_ma2019",
)  # fmt: skip


def is_coded(column):
    return column.kind in {Kind.CATEGORY, Kind.BOOLEAN}


def told(table, schema):
    """The rows as a package is given them, numbers and texts without missing ones, and their schema."""
    data, columns = {}, []
    for column in schema.columns:
        cells = table[column.name].to_pylist()
        absent = [cell is None or cell != cell for cell in cells]
        if is_coded(column):
            own = column.missing == "category"
            if ABSENT in column.categories or (any(absent) and not own):
                raise ValueError(f"column {column.name!r}: {ABSENT!r} cannot stand for a missing code")
            data[column.name] = [
                ABSENT if lacks else as_text(cell) for cell, lacks in zip(cells, absent, strict=True)
            ]
            levels = ("0", "1") if column.kind is Kind.BOOLEAN else column.categories
            levels += (ABSENT,) if column.missing == "category" else ()
            columns.append(Column(name=column.name, kind=Kind.CATEGORY, categories=levels))
        else:
            low, high = column.limits
            data[column.name] = [
                low if lacks else cell for cell, lacks in zip(cells, absent, strict=True)
            ]
            columns.append(Column(name=column.name, kind=column.kind, lower=low, upper=high))
    return pa.table(data), schema_of(columns, schema.label, ADD)


def as_text(cell):
    return str(int(cell)) if isinstance(cell, bool) else str(cell)


def untold(rows, schema):
    """A package's rows in the types of the table: the judges read these."""
    data = {}
    for column in schema.columns:
        cells = rows[column.name]
        if column.kind is Kind.BOOLEAN:
            data[column.name] = [cell == "1" for cell in cells.to_pylist()]
        elif is_coded(column):
            data[column.name] = [None if cell == ABSENT else cell for cell in cells.to_pylist()]
        else:
            values = cells.to_numpy()
            data[column.name] = np.rint(values) if column.kind is Kind.INTEGER else values
    return pa.table(data)


def one_draw(options, method, name, epsilon, caps):
    """One capped run of a package on one table; scores if it left rows."""
    train, test, schema = load(options.data, name)
    given, public = told(train, schema)
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        tables.write(folder, given, public)
        python = environments.python_of(options.environments, METHODS[method])
        words = [python, HERE / "adapters.py", method, folder / "train.csv", folder / "public.json"]
        words += [folder / "out.csv", epsilon, moments.DELTA]
        ended = capped.run(list(map(str, words)), caps, folder / "log")
        found = {}
        if ended.outcome == "ok":
            rows = untold(tables.read(folder / "out.csv", public), schema)
            found = moments.scores(rows, test, schema, name)
    return {**asdict(ended), "scores": found, "cap_s": caps.cpu_seconds}


def own_draw(options, name, epsilon, draw):
    """One release of ours under the relation that the others are private under."""
    train, test, declared = load(options.data, name)
    schema = schema_of(declared.columns, declared.label, ADD)
    start = time.process_time()
    rows = moments.synthesize("moments", train, schema, epsilon, draw)
    spent = time.process_time() - start
    found = moments.scores(rows, test, schema, name)
    return {"outcome": "ok", "message": "", "cpu_s": round(spent, 1), "scores": found}


class Results:
    """The file of lines; whoever first adds one says what ran where."""

    def __init__(self, path):
        self.path, self.lines, self.is_stamped = path, facts.read(path), False

    def add(self, cell, found):
        if not self.is_stamped:
            self.is_stamped = True
            stamp = facts.stamp("python benchmarks/utility/others.py")
            facts.append(self.path, {"kind": "others", **stamp})
        facts.append(self.path, {"kind": "other", **cell, **found})
        shown = "  ".join(f"{k} {v:.4f}" for k, v in found["scores"].items())
        name, method, epsilon = (cell[key] for key in ("data", "method", "epsilon"))
        print(f"{name} {method} eps={epsilon}: {found['outcome']} {shown}", flush=True)

    def has(self, cell, cap):
        return any(is_known(line, cell, cap) for line in self.lines)


def measure_own(options, results, name, epsilon):
    """Every draw of ours that this source has not made yet."""
    for draw in range(options.draws):
        cell = {"data": name, "method": OWN, "epsilon": epsilon, "source": moments.state()}
        cell["draw"] = draw
        if not results.has(cell, 0):
            results.add(cell, own_draw(options, name, epsilon, draw))


def measure(options):
    """Every cell that these versions have not run yet, or that a smaller cap ended."""
    caps = capped.Caps(
        cpu_seconds=options.cpu_seconds, wall_seconds=8 * options.cpu_seconds, memory_gib=8.0
    )
    results = Results(options.out)
    for name in options.only:
        for epsilon in options.epsilons:
            for method in options.methods:
                if method == OWN:
                    measure_own(options, results, name, epsilon)
                    continue
                made = environments.make(options.environments, METHODS[method])
                if not made.ok:
                    print(f"{METHODS[method]}: {made.message}", flush=True)
                    continue
                source = f"{METHODS[method]} {made.version}"
                cell = {"data": name, "method": method, "epsilon": epsilon, "source": source, "draw": 0}
                if not results.has(cell, options.cpu_seconds):
                    results.add(cell, one_draw(options, method, name, epsilon, caps))


def is_known(line, cell, cap):
    same = line["kind"] == "other" and all(line[key] == value for key, value in cell.items())
    return same and not (line["outcome"] == "time-out" and line["cap_s"] < cap)


def options_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, required=True, help="a folder for environments")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", type=lambda text: text.split(","), default=TRIED)
    parser.add_argument("--epsilons", type=moments.numbers, default=[1.0])
    parser.add_argument(
        "--methods", type=lambda text: text.split(","), default=[OWN, "dpmm_mst", "dpmm_aim"]
    )
    parser.add_argument("--draws", type=int, default=3, help="of ours")
    parser.add_argument("--cpu-seconds", type=int, default=900)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(words)
    if unknown := set(options.methods) - {OWN, *METHODS}:
        parser.error(f"{', '.join(sorted(unknown))}: not known; they stand in benchmarks/peers.py")
    return options


def main(words=None):
    options = options_of(words)
    warnings.filterwarnings("ignore", category=UserWarning)  # slow convergence of the judge's own models
    measure(options)
    if options.out == RESULTS:
        moments_page.write(facts.read(options.out), facts.ROOT / "docs" / "explanation" / "utility.md")


if __name__ == "__main__":
    main()
