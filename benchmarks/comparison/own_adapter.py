"""Our own method as a peer: the same CSV, the same public facts, the same caps, in a process of its own.

python own_adapter.py METHOD TRAIN.csv PUBLIC.json OUT.csv EPSILON DELTA
"""

import csv
import json
import sys
from pathlib import Path

import pyarrow.csv as pcsv

import adumbra as ad
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema


def schema_of(public, names, label):
    columns = []
    for name in names:
        if name in public["bounds"]:
            kind = Kind.INTEGER if name in public["integers"] else Kind.NUMBER
            low, high = public["bounds"][name]
            if kind is Kind.INTEGER:
                low, high = int(low), int(high)
            columns.append(Column(name=name, kind=kind, lower=low, upper=high))
        else:
            levels = tuple(public["categories"][name])
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=levels))
    return Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, label=label)


def main(name, source, public_path, out, epsilon, delta):
    """A whole release: ledger, charge, release folder with its card, then the rows as CSV."""
    public = json.loads(Path(public_path).read_text(encoding="utf-8"))
    with Path(source).open(encoding="utf-8") as file:
        lines = csv.reader(file)
        names = next(lines)
        rows = sum(1 for _ in lines)  # the number of rows to write is the same for every method
    folder = Path(out).parent / f"{Path(out).stem}.release"
    with ad.create_ledger(folder.with_suffix(".ledger")) as book:
        book.register(ad.Population("p", Unit.ROW, Neighbours.ADD_REMOVE, float(epsilon), float(delta)))
        config = ad.MomentsConfig(
            epsilon=float(epsilon), delta=float(delta), synthetic_rows=rows, expected_rows=rows
        )
        # Few peers can be told what the judge will predict: without a label we are not told either.
        label = {"adumbra_moments": public["label"], "adumbra_no_label": None}[name]
        schema = schema_of(public, names, label)
        release = ad.release(source, config, schema=schema, ledger=book, population="p", out=folder)
    pcsv.write_csv(release.data, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
