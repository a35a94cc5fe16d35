"""One small true release by each method of the list, as a publisher makes them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from scipy.sparse import random as random_sparse

import adumbra as ad
from adumbra.mechanisms.methods import METHODS

ROWS = 400
OPTIONS = {  # of methods that need some
    "dppro": {"n_components": 2},
    "jl-laplace": {"n_components": 2},
    "pca": {"n_components": 2, "output": "sample"},
    "ron-gauss": {"n_components": 2},
    "top-k": {"k": 3},
}
ABOUT = {
    "title": "Ward stays",
    "curator": "County hospital",
    "intended_use": "planning of beds",
    "region": "the county",
    "sector": "healthcare",
}


def people():
    """A table with numbers, a truth, and a class."""
    rng = np.random.default_rng(5)
    age = rng.uniform(0.0, 90.0, ROWS)
    names = np.array(["north", "south"])
    columns = {
        "age": age,
        "days": rng.integers(0, 30, ROWS),
        "smoker": rng.integers(0, 2, ROWS).astype(bool),
        "ward": names[(age > 45).astype(int)],
    }
    schema = ad.Schema(
        unit=ad.Unit.ROW,
        neighbours=ad.Neighbours.REPLACE_ONE,
        columns=(
            ad.Column(name="age", kind=ad.Kind.NUMBER, lower=0.0, upper=90.0),
            ad.Column(name="days", kind=ad.Kind.INTEGER, lower=0, upper=30),
            ad.Column(name="smoker", kind=ad.Kind.BOOLEAN),
            ad.Column(name="ward", kind=ad.Kind.CATEGORY, categories=("north", "south")),
        ),
        label="ward",
    )
    return pa.table(columns), schema


def baskets():
    """Sets of items."""
    items = ad.Schema(
        unit=ad.Unit.ROW, neighbours=ad.Neighbours.REPLACE_ONE, items=ad.ItemSpec(lower=0, upper=29)
    )
    return random_sparse(ROWS, 30, density=0.2, format="csr", random_state=3), items


def release_each(folder, about=ABOUT):
    """Method -> the folder of its release; the ledger lies beside them."""
    made = {}
    with ad.create_ledger(folder / "ledger.db") as ledger:
        schema = people()[1]
        ledger.register(ad.Population("people", schema.unit, schema.neighbours, 100.0, 1e-6))
        for method in METHODS:
            data, schema = baskets() if method.name == "top-k" else people()
            if method.name == "bounds":
                columns = (
                    replace(one, private=one.kind is not ad.Kind.BOOLEAN) for one in schema.columns
                )
                schema = replace(schema, columns=tuple(columns))
            config = method.config(epsilon=1.5, **OPTIONS.get(method.name, {}))
            made[method.name] = folder / method.name
            ad.release(
                data, config, schema=schema, ledger=ledger, population="people",
                out=made[method.name], about=about,
            )  # fmt: skip
    return made
