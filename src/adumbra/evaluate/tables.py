"""NOT FOR RELEASE: the tables that an evaluation compares, read the way a release reads them.

A uniform sample of at most `MOST_ROWS` rows stands for a larger table: every row gets a mark from a
public seed and the smallest marks stay, so one pass with little memory is enough.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from adumbra.data.opening import open_source
from adumbra.data.sources import Batch
from adumbra.errors import Unsupported, require
from adumbra.numerics import NOISE_BLOCK, Array
from adumbra.release.artifact import Release
from adumbra.schema.schema import Schema

MOST_ROWS = 50_000
TEST_SHARE = 0.3
SEED = 20_261_116  # public: which rows are sampled is no secret of this page
LEAST_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Sampled rows as numbers and codes in schema order."""

    name: str
    values: Array = field(repr=False)
    counted: int  # rows of the whole table


def read_rows(name: str, data: object, schema: Schema) -> Rows:
    """A uniform sample of a table's rows; the declared number of rows is not held against it."""
    source = open_source(data, replace(schema.by_row(), rows=None))
    require(source.schema.items is None, f"{name}: holds item sets; give a table of columns")
    rng = np.random.default_rng(SEED)
    kept, marks, counted = np.empty((0, source.schema.width)), np.empty(0), 0
    for block in source.batches(NOISE_BLOCK):
        if isinstance(block, Batch):
            counted += len(block)
            kept = np.concatenate([kept, block.values])
            marks = np.concatenate([marks, rng.random(len(block))])
            if len(marks) > 2 * MOST_ROWS:
                kept, marks = _smallest(kept, marks)
    kept, _ = _smallest(kept, marks)
    require(len(kept) >= LEAST_ROWS, f"{name}: an evaluation needs at least {LEAST_ROWS} rows")
    return Rows(name=name, values=kept, counted=counted)


def _smallest(kept: Array, marks: Array) -> tuple[Array, Array]:
    """The rows of the smallest marks, in the order of their marks: shuffled, too."""
    order = np.argsort(marks)[:MOST_ROWS]
    return kept[order], marks[order]


def released_table(release: Release, schema: Schema, name: str) -> pa.Table:
    """The main table of a release that has the declared columns; others have no rows to compare."""
    absent = sorted(set(schema.names) ^ set(release.schema.names))
    require(
        not absent,
        f"{name}: column {absent[:1]} is in the release or in the schema, not in both; leave --schema "
        "out, or give the one that the release was made with",
    )
    main = release.card["contents"]["main"]
    contents = release.card["contents"]["tables"]
    columns = [] if main is None else [name for name, _ in contents[main]["columns"]]
    if set(columns) - {one.name for one in schema.derived} != set(schema.names):
        raise Unsupported(f"{name}: {_instead(release)}")
    return release.data


def _instead(release: Release) -> str:
    """Why a release has no rows to compare, and where its errors are said."""
    method = release.card["method"]["name"].split(" ", maxsplit=1)[0]
    if method == "answers":
        return "answers releases sums, not rows; `adumbra ask` gives its answers, each with an error bar"
    if method == "bounds":
        return (
            "bounds releases bounds and levels, not rows; `adumbra schema fill` writes them to a schema"
        )
    if method == "top-k":
        return "top-k releases counts, not rows; each count has its standard error beside it"
    if method in {"dppro", "jl-laplace"}:
        return (
            f"{method} releases projected rows, which have none of the declared columns; its card and "
            "`squared_distances` give the error of distances"
        )
    if release.schema.items is not None:
        return (
            f"{method} of item sets releases sets, and an evaluation compares columns; its card gives "
            "the frequent items with their noise"
        )
    return (
        f"{method} has released projected rows, which have none of the declared columns; evaluate a "
        "release with output='columns'"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Real rows to train on and to test on."""

    train: Array = field(repr=False)
    test: Array = field(repr=False)
    is_held_out: bool  # the test rows were in no release


def split_rows(real: Rows, holdout: Rows | None) -> Split:
    """The people left out are the test; else a part of the real rows, which the ceiling misses."""
    if holdout is not None:
        return Split(train=real.values, test=holdout.values, is_held_out=True)
    cut = int(TEST_SHARE * len(real.values))
    return Split(train=real.values[cut:], test=real.values[:cut], is_held_out=False)


def independent_rows(values: Array) -> Array:
    """The floor: real columns, each shuffled on its own, so that only one-way marginals are left."""
    rng = np.random.default_rng(SEED + 1)
    return np.stack([rng.permutation(column) for column in values.T], axis=1)
