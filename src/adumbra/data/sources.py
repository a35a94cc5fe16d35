"""Open private rows: files, Arrow objects, arrays; always in blocks of fixed global row ranges.

Opening looks at file names, column names and storage types (and row counts where those are public).
Whatever is wrong with these is said here; past it no value raises and none is shown.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from adumbra.data.batch import Batch, SetBatch
from adumbra.data.schema import Schema
from adumbra.errors import InvalidInput


@runtime_checkable
class Source(Protocol):
    """Private rows in schema order, readable as often as needed."""

    @property
    def schema(self) -> Schema:
        """The schema with every pattern expanded."""
        ...

    @property
    def width(self) -> int:
        """Values a row: schema columns, or items of the universe."""
        ...

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """Blocks of exactly `rows` rows (the last one shorter) of the rows from `start` to `stop`.

        Both are multiples of `rows`, or `stop` is the end. Block boundaries depend on nothing else.
        """
        ...

    def public_rows(self) -> int | None:
        """The number of rows where it is public, else None."""
        ...

    def pin(self) -> str:
        """A digest of names, sizes and modification times; changes when the files do."""
        ...


def open_source(data: object, schema: Schema) -> Source:
    """Open a path, folder, glob, Arrow C stream object, numpy array or scipy.sparse matrix."""
    if isinstance(data, str | Path):
        return _open_files(data, schema)
    if isinstance(data, np.ndarray):
        from adumbra.data.arrays import open_array  # noqa: PLC0415  (each kind loads only what it needs)

        return open_array(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        from adumbra.data.arrays import open_arrow  # noqa: PLC0415

        return open_arrow(data, schema)
    kind = type(data).__name__
    remedy = "give a path, a pandas, polars or pyarrow table, a numpy array or a scipy.sparse matrix"
    raise InvalidInput(f"data of type {kind}: cannot be read; {remedy}")


def _open_files(location: str | Path, schema: Schema) -> Source:
    """Open files by their suffix."""
    from adumbra.data.files import find_files  # noqa: PLC0415

    paths = find_files(location)
    from adumbra.data.parquet import open_parquet  # noqa: PLC0415

    return open_parquet(paths, schema)
