"""Data sets by a small TOML file: where the rows are, what is declared, which experiments they serve.

    file = "retail.parquet"            # in the data folder
    kind = "sets"                      # sets | rows
    roles = ["top-k"]                  # which experiments may use it; `papers.py --roles` lists them
    [rows]                             # of kind "rows" only
    drop = ["split"]
    label = "income"                   # classes, or
    target = "target"                  # a number with bounds [lower, upper]
    bounds = [0, 255]                  # of every feature; several pairs repeat over the columns
    wide = ["f3"]                      # columns with wide_bounds = [0, 1000] instead, or
    schema = "docs/tutorials/adult.toml"    # a schema file that declares all columns
    stands_for = "NLTCS"               # a data set of the paper that nobody may redistribute

A file of your own is read from any path: `--set my.toml`.
"""

import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adumbra.errors import InvalidInput
from adumbra.schema.schema import Schema

HERE = Path(__file__).parent / "sets"
ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"file", "kind", "roles", "rows", "stands_for", "note"}
KNOWN_ROWS = {"drop", "label", "target", "bounds", "target_bounds", "schema", "wide", "wide_bounds"}


@dataclass(frozen=True)
class DataSet:
    name: str
    path: Path
    kind: str
    roles: tuple[str, ...]
    rows: dict = field(default_factory=dict)
    stands_for: str = ""

    def frame(self):
        """All rows of kind `rows`, once the columns that the description names are known to be there."""
        if self.kind != "rows":
            raise InvalidInput(f'{self.name}: kind = "{self.kind}", but rows are needed')
        frame = pq.read_table(self.path).to_pandas()
        named = [*self.rows.get("drop", []), *self.rows.get("wide", [])]
        named += [self.rows[key] for key in ("label", "target") if key in self.rows]
        named += [] if self.schema is None else self.schema.names
        absent = [name for name in named if name not in frame]
        if absent:
            first = ", ".join(map(str, frame.columns[:8])) + (", ..." if frame.shape[1] > 8 else "")
            raise InvalidInput(
                f"{self.name}: {self.path.name} has no column {', '.join(map(repr, absent))}, which the "
                f"data set's TOML file names; it has {first}; copy that file, mend it, give --set FILE"
            )
        return frame

    @cached_property
    def lists(self):
        """Of kind `sets`: offsets and item codes 0, 1, ...; which items exist is taken as public."""
        found = pq.read_schema(self.path)
        if "items" not in found.names or not pa.types.is_list(found.field("items").type):
            raise InvalidInput(
                f"{self.name}: {self.path.name} needs a column 'items' of lists, one list per row "
                f'(kind = "sets"); it has {", ".join(found.names[:8])}'
            )
        items = pq.read_table(self.path, columns=["items"])["items"].combine_chunks()
        universe, codes = np.unique(items.flatten().to_numpy(), return_inverse=True)
        return items.offsets, codes.astype(np.int32), len(universe)

    @cached_property
    def schema(self):
        """The declared columns, where a schema file is named."""
        return Schema.read(ROOT / self.rows["schema"]) if "schema" in self.rows else None

    @cached_property
    def table(self):
        """Complete rows in the declared columns."""
        frame = self.frame()
        if self.schema is not None:
            frame = frame[list(self.schema.names)]
        return pa.Table.from_pandas(frame.dropna(), preserve_index=False)

    @cached_property
    def numbers(self):
        """Features scaled by their declared bounds to [0, 1], and class codes or a target in [-1, 1]."""
        frame = self.frame().drop(columns=self.rows.get("drop", []))
        if "bounds" not in self.rows:
            raise InvalidInput(f"{self.name}: its TOML file needs bounds = [lower, upper] under [rows]")
        goal = self.rows.get("label") or self.rows.get("target")
        features = frame.drop(columns=[goal] if goal else [])
        pattern = np.array(self.rows["bounds"], dtype=float).reshape(-1, 2)
        bounds = pattern[np.arange(features.shape[1]) % len(pattern)]  # a pattern repeats over columns
        wide = features.columns.isin(self.rows.get("wide", []))
        bounds[wide] = self.rows.get("wide_bounds", (0, 1))
        low, high = bounds.T
        x = np.clip((features.to_numpy(float) - low) / (high - low), 0, 1)
        if goal is None:
            return x, None
        if "label" in self.rows:
            return x, frame[goal].astype("category").cat.codes.to_numpy().astype(int)
        low, high = self.rows["target_bounds"]
        return x, np.clip((2 * frame[goal].to_numpy(float) - low - high) / (high - low), -1, 1)

    def binary(self, width):
        """The `width` most frequent columns of 0 and 1; their choice is a private query of its own."""
        if self.kind == "sets":
            offsets, codes, universe = self.lists
            counts = np.bincount(codes, minlength=universe)
            place = np.full(universe, -1)
            place[np.argsort(-counts, kind="stable")[:width]] = np.arange(width)
            dense = np.zeros((len(offsets) - 1, width), dtype=bool)
            owner = np.repeat(np.arange(len(dense)), np.diff(offsets.to_numpy()))
            kept = place[codes] >= 0
            dense[owner[kept], place[codes][kept]] = True
            return dense
        frame = self.frame().drop(columns=self.rows.get("drop", []))
        x = frame.to_numpy(float) > 0.5
        return x[:, np.argsort(-x.mean(axis=0), kind="stable")[:width]]


def read_set(path, folder):
    """One description; a clear error names what is expected."""
    try:
        told = tomllib.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(p.stem for p in HERE.glob("*.toml")))
        raise InvalidInput(
            f"no data set {Path(path).stem!r}: known are {known}; describe another in a TOML file "
            "(benchmarks/replication/sets.py says how) and give --set FILE"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{Path(path).name}: not a TOML file: {error}") from None
    strange = [*(set(told) - KNOWN), *(set(told.get("rows", {})) - KNOWN_ROWS)]
    if strange or {"file", "kind", "roles"} - set(told) or told.get("kind") not in {"sets", "rows"}:
        expected = 'needs file, kind ("sets" or "rows") and roles'
        raise InvalidInput(
            f"{Path(path).name}: {expected}"
            + (f"; unknown: {', '.join(sorted(strange))}" if strange else "")
        )
    file = Path(folder) / told["file"]
    return DataSet(
        Path(path).stem,
        file,
        told["kind"],
        tuple(told["roles"]),
        told.get("rows", {}),
        told.get("stands_for", ""),
    )


def all_sets(folder, own=()):
    """Every described data set whose file is in the folder, and the names of those that are not."""
    if not Path(folder).is_dir():
        raise InvalidInput(f"--data {folder}: there is no such folder")
    for path in own:
        one = read_set(path, folder)
        if not one.path.exists():
            raise InvalidInput(
                f"{Path(path).name}: its file {one.path.name!r} is not in --data {folder}"
            )
    found = [read_set(path, folder) for path in [*sorted(HERE.glob("*.toml")), *own]]
    return [s for s in found if s.path.exists()], [s.name for s in found if not s.path.exists()]
