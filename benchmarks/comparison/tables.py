"""The ladder of tables: real ones of 10, 15 and 24 columns, made-up ones up to 5,000, with public facts.

Bounds and codes of public data sets stand for declared ones, and everybody is given the same. A missing
code is a code of its own; a missing number is the lower bound, for everybody, as most peers refuse it.
"""

import json
import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from comparison.kmarginal import code_of

LADDER = {
    "acs10": 10, "num14": 14, "adult": 15, "acs24": 24, "num50": 50, "num100": 100, "num300": 300,
    "num784": 784, "num5000": 5000,
}  # fmt: skip
REAL = ("acs10", "adult", "acs24")  # these need a data folder
SMALL_ACS = [
    "AGEP",
    "SEX",
    "MSP",
    "HISP",
    "RAC1P",
    "HOUSING_TYPE",
    "OWN_RENT",
    "EDU",
    "PINCP_DECILE",
    "DVET",
]
ADULT = {
    "age": (17, 90), "fnlwgt": (10_000, 1_500_000), "education-num": (1, 16),
    "capital-gain": (0, 100_000), "capital-loss": (0, 5_000), "hours-per-week": (1, 99),
}  # fmt: skip
ACS = {
    "AGEP": (0, 99), "DENSITY": (0, 5_000), "PINCP": (-9_000, 1_400_000), "POVPIP": (0, 501),
    "PWGTP": (0, 700), "WGTP": (0, 700),
}  # fmt: skip


def _declared(data, bounds, label, fractions=()):
    columns = []
    for name, values in data.items():
        if name in bounds:
            kind = Kind.NUMBER if name in fractions else Kind.INTEGER
            columns.append(Column(name=name, kind=kind, lower=bounds[name][0], upper=bounds[name][1]))
        else:
            levels = tuple(sorted(set(values)))
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=levels))
    return Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, label=label)


def _split(table, seed=0, share=0.2):
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(table.num_rows * (1 - share))
    return table.take(pa.array(order[:cut])), table.take(pa.array(order[cut:]))


def _filled(column, bounds):
    """Numbers with missing ones at the lower bound; or codes as text, a missing one as `N`."""
    cells = column.to_pylist()
    if bounds is not None:
        return [
            bounds[0] if cell is None or cell != cell else min(max(cell, bounds[0]), bounds[1])
            for cell in cells
        ]
    return ["N" if cell is None or cell != cell else code_of(str(cell)) for cell in cells]


def acs(folder, names=None):
    table = pq.read_table(folder / "acs_ma2019.parquet")
    chosen = names or table.column_names
    data = {name: _filled(table[name], ACS.get(name)) for name in chosen}
    return *_split(pa.table(data)), _declared(data, ACS, "OWN_RENT", ("DENSITY",))


def adult(folder):
    table = pq.read_table(folder / "adult.parquet")
    names = [name for name in table.column_names if name != "split"]
    data = {name: _filled(table[name], ADULT.get(name)) for name in names}
    is_train = np.array(table["split"].to_pylist()) == "train"
    whole = pa.table(data)
    return (
        whole.filter(pa.array(is_train)),
        whole.filter(pa.array(~is_train)),
        _declared(data, ADULT, "income"),
    )


def numeric(width, factors=8, seed=7):
    """width - 1 numbers in [-1, 1] from 8 hidden factors, and a binary label."""
    rows, tests = (20_000, 10_000) if width <= 1000 else (5_000, 2_000)
    rng = np.random.default_rng(seed + width)
    hidden = rng.standard_normal((rows + tests, factors))
    loadings = rng.standard_normal((factors, width - 1)) / math.sqrt(factors)
    x = np.tanh(0.6 * (hidden @ loadings + 0.5 * rng.standard_normal((rows + tests, width - 1))))
    y = hidden @ rng.standard_normal(factors) + 0.5 * rng.standard_normal(rows + tests) > 0
    data = {f"x{i}": x[:, i].round(6) for i in range(width - 1)}
    data["y"] = np.where(y, "1", "0").tolist()
    bounds = {name: (-1.0, 1.0) for name in data if name != "y"}
    table = pa.table(data)
    return table.slice(0, rows), table.slice(rows), _declared(data, bounds, "y", tuple(bounds))


@lru_cache(maxsize=1)
def load(folder, name):
    """Training rows, test rows and the public schema of one table."""
    if name.startswith("num"):
        return numeric(int(name[3:]))
    if name == "adult":
        return adult(folder)
    return acs(folder, SMALL_ACS if name == "acs10" else None)


def write(folder: Path, train: pa.Table, schema: Schema) -> None:
    """What a peer is given: its training rows as CSV and the public facts as JSON."""
    pcsv.write_csv(train, folder / "train.csv")
    facts = {
        "label": schema.label,
        "bounds": {c.name: c.limits for c in schema.columns if c.is_numeric},
        "categories": {c.name: list(c.categories) for c in schema.columns if not c.is_numeric},
        "integers": [c.name for c in schema.columns if c.kind is Kind.INTEGER],
    }
    (folder / "public.json").write_text(json.dumps(facts), encoding="utf-8")


def read(path: Path, schema: Schema) -> pa.Table:
    """A peer's rows: codes as text however it wrote them (`1.0` is `1`), numbers inside their bounds."""
    names = {column.name: pa.string() for column in schema.columns}
    raw = pcsv.read_csv(path, convert_options=pcsv.ConvertOptions(column_types=names))
    data = {}
    for column in schema.columns:
        cells = raw[column.name].to_pylist()
        if column.is_numeric:
            low, high = column.limits
            values = np.array([float(cell) if cell else np.nan for cell in cells])
            data[column.name] = pa.array(np.clip(values, low, high), from_pandas=True)
        else:
            known = set(column.categories)
            data[column.name] = pa.array(
                [None if cell is None else cell if cell in known else code_of(cell) for cell in cells]
            )
    return pa.table(data)
