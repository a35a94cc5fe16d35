"""The folder of NIST's targets (CRC bundle): tables, feature sets, submitted files, our schema of it."""

import csv
import gzip
import importlib.util
import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from comparison import kmarginal

SETS = ("demographic-focused", "industry-focused", "family-focused", "simple-features", "all-features")
TARGETS = {"ma2019": "Massachusetts", "tx2019": "Texas"}
EPSILONS = (1.0, 10.0)
TOLERANCE = 1e-6  # between the folder's judge and our second implementation of it


@dataclass(frozen=True)
class Submission:
    """One line of the leaderboard: a table that somebody made with a stated epsilon."""

    feature_set: str
    epsilon: float
    algorithm: str
    library: str
    delta: str
    variant: str
    score: float
    file: str


class Target:
    """One target table with its public schema, and everything that was made from it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    @cached_property
    def dictionary(self) -> dict[str, dict]:
        loaded = json.loads((self.folder / self.name / f"{self.name}.json").read_text(encoding="utf-8"))
        return loaded.get("schema", loaded)

    @cached_property
    def table(self) -> pa.Table:
        """The target as text, cell by cell as NIST wrote it."""
        packed = (self.folder / self.name / f"{self.name}.csv.gz").read_bytes()
        names = gzip.decompress(packed).split(b"\n", 1)[0].decode().strip().split(",")
        options = pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        )
        return pcsv.read_csv(io.BytesIO(gzip.decompress(packed)), convert_options=options)

    @cached_property
    def _leaderboard(self) -> list[dict[str, str]]:
        with (self.folder / "LEADERBOARD.csv").open(encoding="utf-8") as file:
            return [line for line in csv.DictReader(file) if line["target"] == self.name]

    def submissions(self, feature_set: str, epsilon: float) -> list[Submission]:
        return [
            Submission(
                feature_set=feature_set, epsilon=epsilon, algorithm=line["algorithm"],
                library=line["library"], delta=line["delta"], variant=line["variant"],
                score=float(line["k_marginal"]), file=line["file"],
            )
            for line in self._leaderboard
            if line["feature_set"] == feature_set and line["epsilon"]
            and float(line["epsilon"]) == epsilon
        ]  # fmt: skip

    def columns(self, feature_set: str) -> list[str]:
        """The columns of a feature set, as the submitted files have them, in the target's order."""
        first = next(
            line for line in self._leaderboard if line["feature_set"] == feature_set and line["file"]
        )
        held = set(pq.read_schema(self.folder / first["file"]).names)
        return [name for name in self.table.column_names if name in held]

    def read(self, file: str) -> pa.Table:
        return pq.read_table(self.folder / file)

    def schema(self, feature_set: str) -> Schema:
        """What NIST's dictionary says, as our schema: add-remove, one row per person, no label."""
        declared = tuple(column_of(n, self.dictionary[n]) for n in self.columns(feature_set))
        return Schema(columns=declared, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)

    def rows(self, feature_set: str) -> pa.Table:
        """The target's rows of a feature set, typed; `N` in a number is missing."""
        typed = {}
        for column in self.schema(feature_set).columns:
            cells = self.table[column.name].to_pylist()
            if column.is_numeric:
                values = kmarginal.numbers(cells)
                typed[column.name] = pa.array(values, from_pandas=True)
            else:
                typed[column.name] = pa.array(cells)
        return pa.table(typed)


def column_of(name: str, facts: dict) -> Column:
    """One column of the dictionary. Its bounds are whole numbers, so a fraction lies below upper + 1."""
    if "values" in facts:
        levels = dict.fromkeys(str(value) for value in facts["values"])
        return Column(name=name, kind=Kind.CATEGORY, categories=tuple(levels))
    kept = {"missing": "null"} if facts.get("has_null") else {}
    if facts["dtype"] == "float64":
        lower, upper = float(facts["min"]), float(facts["max"]) + 1.0
        return Column(name=name, kind=Kind.NUMBER, lower=lower, upper=upper, **kept)
    return Column(name=name, kind=Kind.INTEGER, lower=facts["min"], upper=facts["max"], **kept)


class Judges:
    """The folder's `judge.py` and our own copy of the measure; a score is given only if they agree.

    Where the folder holds no judge (the small table of the tests), our copy judges alone.
    """

    def __init__(self, folder: Path) -> None:
        self.outside = None
        if (folder / "judge.py").exists():
            plan = importlib.util.spec_from_file_location("nist_judge", folder / "judge.py")
            self.outside = importlib.util.module_from_spec(plan)
            plan.loader.exec_module(self.outside)

    def score(self, target: Target, feature_set: str, table: pa.Table) -> tuple[float, list[str]]:
        names = [name for name in target.columns(feature_set) if name in table.column_names]
        true = kmarginal.texts(target.table.select(names))
        file = kmarginal.texts(table.select(names))
        ours, dropped = kmarginal.score(true, file, target.dictionary)
        if self.outside is None:
            return ours, dropped
        frames = [self.outside.pd.DataFrame(side, dtype=object) for side in (true, file)]
        theirs = float(self.outside.Judge(*frames, target.dictionary).score())
        if abs(ours - theirs) > TOLERANCE:
            raise SystemExit(f"{target.name}, {feature_set}: judges differ, {theirs} and {ours}")
        return theirs, dropped


def independent(table: pa.Table, seed: int) -> pa.Table:
    """The floor: every column shuffled on its own. One-way tables are exact, no relation is kept."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {n: table[n].take(pa.array(rng.permutation(table.num_rows))) for n in table.column_names}
    )


def half(table: pa.Table, seed: int) -> pa.Table:
    """The ceiling: half of the rows as they are."""
    order = np.random.default_rng(seed).permutation(table.num_rows)
    return table.take(pa.array(np.sort(order[: table.num_rows // 2])))
