"""Are the error bars of docs/how-to/read-a-release.md right? `python benchmarks/error_bars.py`.

One table is released again and again by `moments`. The spread and the bias that this shows are held
against what a reader of one release can work out: the noise of a count over the rows, and the same
method run on the released rows as if they were the data.
"""

import argparse

import numpy as np
import pyarrow as pa

import adumbra as ad
from adumbra.numerics import Array
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

WARDS, SHARES = ("a", "b", "c", "d"), (0.5, 0.3, 0.15, 0.05)
NAMES = ("share of smokers", *(f"share of ward {ward}" for ward in WARDS), "mean weight")


def example(rows: int) -> tuple[pa.Table, Schema]:
    """Weights, smokers and wards, made and public."""
    rng = np.random.default_rng(0)
    smoker = rng.random(rows) < 0.3
    weight = np.clip(70.0 + 8.0 * smoker + 12.0 * rng.standard_normal(rows), 30.0, 200.0)
    ward = np.array(WARDS)[rng.choice(len(WARDS), rows, p=SHARES)]
    schema = Schema(
        columns=(
            Column(name="weight", kind=Kind.NUMBER, lower=30.0, upper=200.0),
            Column(name="smoker", kind=Kind.BOOLEAN),
            Column(name="ward", kind=Kind.CATEGORY, categories=WARDS),
        ),
        unit=Unit.ROW,
        neighbours=Neighbours.REPLACE_ONE,
        rows=rows,
    )
    return pa.table({"weight": weight, "smoker": smoker, "ward": ward}), schema


def figures(table: pa.Table) -> Array:
    """What a reader computes."""
    wards = np.array(table["ward"].to_pylist())
    shares = [np.mean(table["smoker"].to_numpy()), *(np.mean(wards == ward) for ward in WARDS)]
    return np.array([*shares, np.mean(table["weight"].to_numpy())])


def released(table: pa.Table, schema: Schema, epsilon: float) -> pa.Table:
    """One more release of a table."""
    return ad.MomentsSynthesizer(schema=schema, epsilon=epsilon).fit(table).sample()


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--releases", type=int, default=40)
    asked = parser.parse_args()
    table, schema = example(asked.rows)
    planned = ad.plan(ad.MomentsConfig(epsilon=asked.epsilon), schema)
    predicted = planned.expected["count_sigma"] / asked.rows
    true = figures(table)
    made = [released(table, schema, asked.epsilon) for _ in range(asked.releases)]
    errors = np.array([figures(one) for one in made]) - true
    again = np.array(
        [figures(released(made[0], schema, asked.epsilon)) for _ in range(asked.releases)]
    ) - figures(made[0])
    print("| figure | true | spread | bias | count_sigma / n | again: spread | again: bias |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for i, name in enumerate(NAMES):
        said = f"{predicted:.4f}" if name.startswith("share") else "-"
        measured = f"{errors[:, i].std():.4f} | {errors[:, i].mean():+.4f}"
        print(
            f"| {name} | {true[i]:.4f} | {measured} | {said} | "
            f"{again[:, i].std():.4f} | {again[:, i].mean():+.4f} |"
        )


if __name__ == "__main__":
    main()
