"""What bought bounds cost: rows made with declared bounds and with bounds for a tenth of the budget.

    python benchmarks/utility/bought_bounds.py --data FOLDER [--draws 3] [--epsilons 1,8]
        [--only adult] [--levels]

`declared` spends all of epsilon on moments. `bounds bought` declares no bounds: a tenth of epsilon goes
to the method bounds, the rest to moments. `bounds and levels bought` buys the levels of every
category but the label, too, from the declared list (with --levels). delta = 1e-6, replace-one.
Classifiers learn from synthetic rows and are tested on real ones (area under the curve). Prints a table
for docs/explanation/bought-bounds.md.
"""

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))
from utility.moments_tables import load
from utility.two_way import two_way

from adumbra.data.opening import open_source
from adumbra.evaluate import tstr, utility
from adumbra.mechanisms.bounds import BoundsConfig
from adumbra.mechanisms.bounds.filling import filled
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.schema.schema import Kind
from adumbra.workflow import prepare_in_memory

NAMES, SHARE, DELTA = ("adult", "acs_ma2019"), 0.1, 1e-6
WAYS = ("declared", "bounds bought", "bounds and levels bought")


def private(schema, way):
    """The schema without the facts that are bought."""
    columns = []
    for column in schema.columns:
        is_level = column.kind is Kind.CATEGORY and column.name != schema.label
        if column.kind.has_bounds:
            columns.append(replace(column, lower=None, upper=None, private=True))
        else:
            columns.append(replace(column, private=is_level and "levels" in way))
    return replace(schema, columns=tuple(columns))


def drawn(table, schema, config):
    return prepare_in_memory(open_source(table, schema), config).draw()


def synthetic(table, schema, way, epsilon, seed):
    """Rows, and the schema that they were made with."""
    if way != "declared":
        config = BoundsConfig(epsilon=SHARE * epsilon, delta=DELTA)
        hidden = private(schema, way)
        schema = filled(hidden, drawn(table, hidden, config).facts["found"], "bought")
        kept = tuple(column for column in schema.columns if not column.private)
        schema = replace(schema, columns=kept)  # what was not found is left out
        epsilon -= SHARE * epsilon
    config = MomentsConfig(epsilon=epsilon, delta=DELTA, sample_seed=seed)
    return drawn(table, schema, config).table(), schema


def judged(rows, made, test, schema):
    """Scores against real rows, by the declared schema; columns that were not found have no say."""
    names = set(made.names)
    schema = replace(schema, columns=tuple(one for one in schema.columns if one.name in names))
    left, right = (utility.table_codes(one.select(list(schema.names)), schema) for one in (rows, test))
    return {
        "columns": len(schema.columns),
        "LR AUC": tstr.logistic(rows, test, schema).auc,
        "GB AUC": tstr.boosted(rows, test, schema).auc,
        "one-way TV": utility.one_way(left, right),
        "two-way TV": two_way(left, right),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--levels", action="store_true")
    parser.add_argument("--only", default=",".join(NAMES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | epsilon | bounds | columns | LR AUC | GB AUC | one-way TV | two-way TV |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in given.only.split(","):
        train, test, schema = load(given.data, name)
        for epsilon in map(float, given.epsilons.split(",")):
            for way in WAYS if given.levels else WAYS[:2]:
                runs = []
                for seed in range(given.draws):
                    rows, made = synthetic(train, schema, way, epsilon, seed)
                    runs.append(judged(rows, made, test, schema))
                means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
                errors = {
                    key: float(np.std([run[key] for run in runs], ddof=1)) / len(runs) ** 0.5
                    if len(runs) > 1
                    else 0.0
                    for key in runs[0]
                }
                cells = [f"{means['columns']:.3g}"]
                cells += [f"{means[key]:.4f} ± {errors[key]:.4f}" for key in list(means)[1:]]
                print(f"| {name} | {epsilon:g} | {way} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
