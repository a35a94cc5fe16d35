"""What plans of `moments` forecast for one-way tables, beside what releases had.

    python benchmarks/utility/forecasts.py [--data ../shared/data] [--only adult,...]

Reads the kept lines of `moments.py` (newest source of each table) and plans the same releases. `got` is
the error beside the training rows: that beside the test rows, less what the training rows themselves
have (squares). Its last line is the range of got / forecast, of tables whose columns are not read
together.
"""

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))
from comparison import facts
from utility import moments
from utility.moments_tables import NAMES, load

from adumbra import workflow
from adumbra.mechanisms.moments import MomentsConfig

MEAN = "one_way_total_variation_mean"
SMALL = 0.05  # forecasts below this say little of the reading


def measured(path):
    """Mean one-way errors: of `moments` by (table, ε), of the training rows by table."""
    lines = [line for line in facts.read(path) if line.get("kind") == "utility"]
    kept = facts.newest([x for x in lines if x["method"] == "moments"], "data", "epsilon")
    found = {key: np.mean([x["scores"]["one-way TV"] for x in held]) for key, held in kept.items()}
    real = {x["data"]: x["scores"]["one-way TV"] for x in lines if x["method"] == "real"}
    return found, real


def forecast(data, name, epsilon):
    """The mean over columns, and where columns look alike (None: they are not read together)."""
    train, _, schema = load(data, name)
    config = MomentsConfig(epsilon=epsilon, delta=moments.DELTA, synthetic_rows=1000)
    if schema.neighbours.rows_are_public:
        schema = replace(schema, rows=train.num_rows)
    else:
        config = replace(config, expected_rows=train.num_rows)
    expected = workflow.plan(config, schema).expected
    return expected[MEAN], expected.get(f"{MEAN}_if_columns_are_alike")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", type=lambda text: text.split(","), default=NAMES)
    asked = parser.parse_args()
    found, real = measured(facts.RESULTS / "utility.jsonl")
    parts = []
    for (name, epsilon), error in found.items():
        if name not in asked.only or name not in real:
            continue
        most, least = forecast(asked.data, name, epsilon)
        got = math.sqrt(max(0.0, error**2 - real[name] ** 2))
        alike = "" if least is None else f", alike {least:.3f}"
        print(f"{name} eps={epsilon}: forecast {most:.3f}{alike}, got {got:.3f}", flush=True)
        if least is None and most > SMALL:
            parts.append(got / most)
    if parts:
        print(f"got / forecast, {len(parts)} cells above {SMALL}: {min(parts):.2f} to {max(parts):.2f}")


if __name__ == "__main__":
    main()
