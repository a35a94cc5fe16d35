"""The tables that `moments.py` measures on: public data, whose bounds and codes stand for declared ones.

TUNED lists the tables that a person looked at while rules and constants of `moments` were chosen;
figures on these are in-sample. The others (see held_out_tables.py) were only measured.
"""

import math
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from utility import held_out_tables
from utility.tables_common import ADD, REPLACE, schema_of, split

from adumbra.schema.schema import Column, Kind

ADULT = {
    "age": (17, 90), "fnlwgt": (10_000, 1_500_000), "education-num": (1, 16),
    "capital-gain": (0, 100_000), "capital-loss": (0, 5_000), "hours-per-week": (1, 99),
}  # fmt: skip
BINARY = ("plants", "jester", "accidents_111", "pumsb_star_163")
CODED = {  # tables of codes: columns that are categories (others are whole numbers), label, rows to take
    "nist_taxi": (
        ("shift", "company_id", "pickup_community_area", "dropoff_community_area", "payment_type"),
        "payment_type",
        60_000,
    ),
    "salary": (("first-name", "organization-name", "pay-rate", "system"), "pay-rate", 60_000),
    "titanic": (("Pclass", "Sex", "Cabin", "Embarked", "Survived"), "Survived", 2_000),
}
NAMES = [
    "titanic", "plants16", "xor", "pol", "num14", "num50", "num100", "adult", "adult-add-remove",
    "acs_ma2019", "sylva", "plants", "salary", "nist_taxi", "jester", "accidents_111", "gfe_user_a",
    "mnist_5k", "w8a", "num300", "isolet_1560", "num784", "pumsb_star_163", *held_out_tables.NAMES,
]  # fmt: skip
TUNED = {
    "adult", "adult-add-remove", "num14", "num50", "num100", "num300", "num784", "gfe_user_a",
    "mnist_5k", "sylva", "isolet_1560", "acs_ma2019", "plants", "plants16", "jester", "accidents_111",
    "w8a", "pol", "titanic", "xor", "salary", "nist_taxi", *held_out_tables.SEEN,
}  # fmt: skip
OTHER = {  # a target that nobody declared: a second column of few levels, where there is one
    "adult": "sex", "adult-add-remove": "sex", "acs_ma2019": "SEX", "nist_taxi": "tips",
    "salary": "system", "titanic": "Pclass",
}  # fmt: skip


def adult(folder, neighbours=REPLACE):
    frame = pq.read_table(folder / "adult.parquet").to_pandas()
    texts = [name for name in frame if name not in ADULT and name != "split"]
    for name in texts:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), "?").astype(str)
    columns = [
        Column(name=name, kind=Kind.INTEGER, lower=ADULT[name][0], upper=ADULT[name][1])
        if name in ADULT
        else Column(name=name, kind=Kind.CATEGORY, categories=tuple(sorted(set(frame[name]))))
        for name in frame
        if name != "split"
    ]
    is_train = frame["split"] == "train"
    tables = [
        pa.Table.from_pandas(part.drop(columns="split"), preserve_index=False)
        for part in (frame[is_train], frame[~is_train])
    ]
    return *tables, schema_of(columns, "income", neighbours)


def numeric(width, rows=20_000, tests=10_000, factors=8, seed=7):
    """The generator of the comparison with peers: factors, tanh, a binary label."""
    rng = np.random.default_rng(seed + width)
    hidden = rng.standard_normal((rows + tests, factors))
    loadings = rng.standard_normal((factors, width - 1)) / math.sqrt(factors)
    x = np.tanh(0.6 * (hidden @ loadings + 0.5 * rng.standard_normal((rows + tests, width - 1))))
    y = hidden @ rng.standard_normal(factors) + 0.5 * rng.standard_normal(rows + tests) > 0
    columns = [Column(name=f"x{i}", kind=Kind.NUMBER, lower=-1.0, upper=1.0) for i in range(width - 1)]
    columns.append(Column(name="y", kind=Kind.BOOLEAN))
    table = pa.table({f"x{i}": x[:, i].round(6) for i in range(width - 1)} | {"y": y})
    return table.slice(0, rows), table.slice(rows), schema_of(columns, "y")


def wide(folder, name):
    frame = pq.read_table(folder / f"{name}.parquet").to_pandas()
    label = "expression" if name == "gfe_user_a" else "label"
    if name == "gfe_user_a":
        frame = frame.drop(columns=["user", "frame", "target", "timestamp"])
    values = frame.drop(columns=label).astype(float)
    classes = frame[label].astype(str)
    bounds = {
        c: (0.0, 255.0) if name == "mnist_5k" else (values[c].min(), values[c].max()) for c in values
    }
    columns = [
        Column(name=c, kind=Kind.NUMBER, lower=low, upper=high if high > low else low + 1.0)
        for c, (low, high) in bounds.items()
    ]
    columns.append(Column(name="class", kind=Kind.CATEGORY, categories=tuple(sorted(set(classes)))))
    table = pa.table({c: values[c].to_numpy() for c in values} | {"class": classes.to_numpy()})
    return *split(table), schema_of(columns, "class")


def binary(folder, name, width=None):
    """Binary tables have no label: the column nearest to one half (of public data) plays the class."""
    frame = pq.read_table(folder / f"{name}.parquet").to_pandas().drop(columns="split").astype(bool)
    order = (frame.mean() - 0.5).abs().sort_values(kind="stable").index
    frame = frame[list(order[:width])] if width else frame
    columns = [Column(name=c, kind=Kind.BOOLEAN) for c in frame]
    return *split(pa.Table.from_pandas(frame, preserve_index=False)), schema_of(columns, order[0])


def parity(rows=20_000, width=12, seed=5):
    """The class is the xor of two columns, 10 % flipped: no pair of columns tells of it."""
    rng = np.random.default_rng(seed)
    bits = rng.random((rows, width - 1)) < rng.uniform(0.3, 0.7, width - 1)
    bits[:, :2] = rng.random((rows, 2)) < 0.5
    y = bits[:, 0] ^ bits[:, 1] ^ (rng.random(rows) < 0.1)
    columns = [Column(name=f"b{i}", kind=Kind.BOOLEAN) for i in range(width - 1)]
    columns.append(Column(name="y", kind=Kind.BOOLEAN))
    table = pa.table({f"b{i}": bits[:, i] for i in range(width - 1)} | {"y": y})
    return *split(table), schema_of(columns, "y")


def coded(folder, name):
    """Tables of codes: some are categories, others are whole numbers."""
    levels, label, rows = CODED[name]
    table = pq.read_table(folder / f"{name}.parquet")
    order = np.random.default_rng(0).permutation(table.num_rows)[:rows]
    frame = table.take(pa.array(order)).to_pandas()
    columns = []
    for column in frame:
        if column in levels:
            frame[column] = frame[column].astype(str)
            named = tuple(sorted(set(frame[column]), key=int))
            columns.append(Column(name=column, kind=Kind.CATEGORY, categories=named))
        else:
            low, high = int(frame[column].min()), int(frame[column].max())
            columns.append(Column(name=column, kind=Kind.INTEGER, lower=low, upper=high))
    return *split(pa.Table.from_pandas(frame, preserve_index=False)), schema_of(columns, label)


def web(folder):
    """w8a: 300 binary items and the label, as columns."""
    table = pq.read_table(folder / "w8a.parquet")
    rows = np.zeros((table.num_rows, 300), bool)
    for number, items in enumerate(table["items"].to_pylist()):
        rows[number, np.array(items, int) - 1] = True
    data = {f"i{j}": rows[:, j] for j in range(300)} | {"label": table["label"].to_numpy() > 0}
    columns = [Column(name=c, kind=Kind.BOOLEAN) for c in data]
    return *split(pa.table(data)), schema_of(columns, "label")


def census(folder):
    """acs_ma2019: few values make a category (missing one of its own), others are numbers."""
    frame = pq.read_table(folder / "acs_ma2019.parquet").to_pandas()
    columns, data = [], {}
    for name in frame:
        values = frame[name]
        if values.nunique() <= 30:
            text = values.astype(object).where(values.notna(), None)
            data[name] = [None if v is None else str(v) for v in text]
            levels = tuple(sorted({v for v in data[name] if v is not None}))
            own = {"missing": "category"} if None in data[name] else {}
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=levels, **own))
        else:
            data[name] = values.astype(float).to_numpy(na_value=float("nan"))
            low, high = float(values.min()), float(values.max())
            columns.append(Column(name=name, kind=Kind.NUMBER, lower=low, upper=high))
    return *split(pa.table(data)), schema_of(columns, "OWN_RENT")


def regression(folder):
    table = pq.read_table(folder / "pol.parquet")
    columns = [
        Column(name=n, kind=Kind.NUMBER, lower=float(np.min(table[n])), upper=float(np.max(table[n])))
        for n in table.column_names
    ]
    return *split(table), schema_of(columns, "target")


@cache
def load(folder, name):
    """Training rows, test rows and the schema."""
    if name in held_out_tables.NAMES:
        return held_out_tables.load(folder, name)
    if name.startswith("adult"):
        return adult(folder, ADD if "add-remove" in name else REPLACE)
    if name.startswith("num"):
        return numeric(int(name[3:]))
    if name in BINARY:
        return binary(folder, name)
    if name in CODED:
        return coded(folder, name)
    special = {
        "w8a": web, "acs_ma2019": census, "pol": regression, "xor": lambda _: parity(),
        "plants16": lambda there: binary(there, "plants", 16),
    }  # fmt: skip
    return special[name](folder) if name in special else wide(folder, name)


def other_of(name, schema, rows):
    """The same columns with another one as the label, to be judged by: it was not declared."""
    if name in (*BINARY, "plants16", "retail50"):
        free = [c.name for c in schema.columns if c.name != schema.label]
        other = min(free, key=lambda column: abs(np.mean(rows[column].to_numpy()) - 0.5))
    elif name in held_out_tables.NAMES:  # the first that there is: picked by no result
        levels = [c.name for c in schema.columns if c.kind is Kind.CATEGORY and c.name != schema.label]
        other = levels[0] if levels else None
    else:
        other = OTHER.get(name)
    if other is None:
        return None
    return schema_of(schema.columns, other, schema.neighbours)
