"""Would a covariance per class pay off? One model of all classes against one model per class.

    python benchmarks/utility/class_covariance.py --data FOLDER [--draws 2] [--epsilons 1,8]
        [--only rings,pol12,...]

`one model` is `moments` with the label declared: one Gram of all rows. `per class` is a bound from
above: the rows of each class are a table of their own, released with the whole budget. Under add-remove
a row is in one class, so that this costs no more (parallel composition), and each class has a Gram,
histograms and joint tables of its own. It is even told the size of every class for free, which a release
would have to buy. `tables` says whether joint tables may be measured (`table_share` as the rules say, or
0). delta = 1e-6, add-remove. Classifiers learn from synthetic rows and are tested on real ones. Prints
a table for docs/decisions/0033-one-covariance.md.
"""

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

sys.path.append(str(Path(__file__).resolve().parents[1]))
from utility.moments_tables import ADD, ADULT, load, schema_of, split
from utility.two_way import two_way

from adumbra.data.opening import open_source
from adumbra.evaluate import tstr, utility
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.schema.schema import Column, Kind
from adumbra.workflow import prepare_in_memory

DELTA = 1e-6
NAMES = ("rings", "pol12", "adult6", "num14", "gfe12", "gfe_user_a", "sylva", "mnist_5k")
MOST_JUDGED = 65  # columns up to which trees are grown and pairs compared
WAYS = [(model, tables) for tables in ("none", "by rule") for model in ("one model", "per class")]


def rings(width, rows=20_000, seed=4):
    """Two rings of one centre in the first two columns: means and correlations tell no class."""
    rng = np.random.default_rng(seed)
    is_outer, angle = rng.random(rows) < 0.5, rng.uniform(0.0, 2.0 * np.pi, rows)
    radius = np.where(is_outer, 2.0, 1.0) + rng.normal(0.0, 0.15, rows)
    rest = rng.standard_normal((rows, width - 2))
    values = np.clip(np.c_[radius * np.cos(angle), radius * np.sin(angle), rest], -3.5, 3.5)
    names = [f"x{i}" for i in range(width)]
    columns = [Column(name=name, kind=Kind.NUMBER, lower=-3.5, upper=3.5) for name in names]
    columns.append(Column(name="y", kind=Kind.BOOLEAN))
    table = pa.table(dict(zip(names, values.T, strict=True)) | {"y": is_outer})
    return *split(table), schema_of(columns, "y", ADD)


def cut(tables, names, label):
    """Some columns of a table that has its label already."""
    train, test, schema = tables
    kept = [column for column in schema.columns if column.name in {*names, label}]
    wanted = [column.name for column in kept]
    return train.select(wanted), test.select(wanted), schema_of(kept, label, ADD)


def halves(train, test, schema):
    """`pol` with a class: whether the target is above its median."""
    middle = float(np.median(train["target"].to_numpy()))
    tables = [
        t.drop_columns("target").append_column("high", pc.greater(t["target"], middle))
        for t in (train, test)
    ]
    columns = [c for c in schema.columns if c.name != "target"]
    return *tables, schema_of([*columns, Column(name="high", kind=Kind.BOOLEAN)], "high", ADD)


def table_of(folder, name):
    """Training rows, test rows and the schema, under add-remove."""
    if name.startswith("rings"):
        return rings(int(name[5:] or 6))
    if name == "pol12":
        tables = halves(*load(folder, "pol"))
        return cut(tables, tables[2].names[:12], "high")
    if name == "adult6":
        return cut(load(folder, "adult"), ADULT, "income")
    if name == "gfe12":
        tables = load(folder, "gfe_user_a")
        return cut(tables, tables[2].names[:-1:25], "class")
    train, test, schema = load(folder, name)
    return train, test, replace(schema, neighbours=ADD)


def drawn(table, schema, epsilon, share):
    """One release through plan, grant, engine and noise."""
    rows = {"synthetic_rows": table.num_rows, "expected_rows": table.num_rows}
    config = MomentsConfig(epsilon=epsilon, delta=DELTA, table_share=share, **rows)
    return prepare_in_memory(open_source(table, schema), config).draw().table()


def per_class(table, schema, epsilon, share):
    """Each class as a table of its own, with the whole budget."""
    label = schema.columns[schema.label_index]
    own = schema_of([c for c in schema.columns if c is not label], None, ADD)
    made = []
    for value in pc.unique(table[label.name]):
        rows = table.filter(pc.equal(table[label.name], value))
        part = drawn(rows.drop_columns(label.name), own, epsilon, share)
        made.append(part.append_column(label.name, pa.repeat(value, part.num_rows)))
    return pa.concat_tables(made).select(list(schema.names))


def judged(rows, test, schema):
    """Scores against real rows; boosted trees and pairs of columns where there are few."""
    logistic = tstr.logistic(rows, test, schema)
    left, right = (utility.table_codes(one, schema) for one in (rows, test))
    found = {"LR AUC": logistic.auc, "LR balanced": logistic.balanced_accuracy, "GB AUC": np.nan}
    found |= {"one-way TV": utility.one_way(left, right), "two-way TV": np.nan}
    if schema.width <= MOST_JUDGED:
        found |= {"GB AUC": tstr.boosted(rows, test, schema).auc}
        found |= {"two-way TV": two_way(left, right)}
    return found


def show(name, epsilon, way, runs):
    """One line of the table: means, and standard errors where there are several draws."""
    cells = []
    for key in runs[0]:
        values = np.array([run[key] for run in runs])
        half = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
        cells.append("" if np.isnan(values).any() else f"{values.mean():.3f}")
        cells[-1] += "" if np.isnan(half) else f" ± {half:.3f}"
    print(f"| {name} | {epsilon} | {way[0]} | {way[1]} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--epsilons", default="1,8")
    parser.add_argument("--only", default=",".join(NAMES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    scores = ("LR AUC", "LR balanced", "GB AUC", "one-way TV", "two-way TV")
    print(f"| table | ε | covariance | tables | {' | '.join(scores)} |")
    print("| --- " * 9 + "|")
    for name in given.only.split(","):
        train, test, schema = table_of(given.data, name)
        show(name, "", ("real rows", ""), [judged(train, test, schema)])
        # Wider tables measure no joint table by rule: two lines of them would be the same.
        ways = WAYS if schema.width <= MOST_JUDGED else WAYS[2:]
        for epsilon in given.epsilons.split(","):
            for model, tables in ways:
                make, share = per_class if model == "per class" else drawn, {"none": 0.0}.get(tables)
                runs = [
                    judged(make(train, schema, float(epsilon), share), test, schema)
                    for _ in range(given.draws)
                ]
                show(name, epsilon, (model, tables), runs)


if __name__ == "__main__":
    main()
