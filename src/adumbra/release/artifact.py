"""A release in the reader's hands: tables, arrays, card and guarantee."""

import html
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adumbra.errors import InvalidInput, require
from adumbra.numerics import Array
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.release.card import Card
from adumbra.schema.facts import schema_of
from adumbra.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]  # stubs are not a dependency
    import polars as pl

T = TypeVar("T")

PREVIEW_ROWS = 5
PREVIEW_COLUMNS = 8


class ReadOnDemand(Mapping[str, T], Generic[T]):
    """Named parts of a release, each read from its file when it is first asked for."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], T]) -> None:
        self._names, self._read = names, read
        self._held: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._held:
            self._held[name] = self._read(name)
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{', '.join(self._names)}>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release:
    """What left, with its promise; everything in it is public."""

    tables: Mapping[str, pa.Table]
    arrays: Mapping[str, NDArray[np.generic]]
    card: Card
    guarantee: PrivacyGuarantee
    path: Path | None = None

    @property
    def data(self) -> pa.Table:
        """The main table; a release of arrays alone has none."""
        main = self.card["contents"]["main"]
        require(main is not None, "data: this release has no table, only arrays; look at its `arrays`")
        return self.tables[main]

    @property
    def schema(self) -> Schema:
        """What was declared about the table, as the card prints it."""
        return schema_of(self.card["public_inputs"]["schema"])

    def to_pandas(self) -> "pd.DataFrame":
        """The main table as a pandas frame."""
        try:
            frame: pd.DataFrame = self.data.to_pandas()
        except ModuleNotFoundError:
            raise InvalidInput(
                "to_pandas: pandas is not installed; pip install pandas, or use `data`"
            ) from None
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """The main table as a polars frame."""
        try:
            import polars as pl  # noqa: PLC0415 - optional
        except ModuleNotFoundError:
            raise InvalidInput(
                "to_polars: polars is not installed; pip install polars, or use `data`"
            ) from None
        frame = pl.from_arrow(self.data)
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 - a table always gives a frame; tells mypy so
        return frame

    def to_numpy(self) -> Array:
        """The main table as a float64 matrix, rows by columns; text and sets have no place in one."""
        table = self.data
        text = [field.name for field in table.schema if pa.types.is_string(field.type)]
        require(
            not text, f"to_numpy: column {text[:1]} holds text; choose numeric columns of `data` first"
        )
        sets = [field.name for field in table.schema if pa.types.is_list(field.type)]
        require(not sets, f"to_numpy: column {sets[:1]} holds sets of items; use `to_pairs()`")
        columns = [column.to_numpy().astype(np.float64) for column in table.columns]
        return np.column_stack(columns)

    def to_pairs(self) -> pa.Table:
        """Sets of items as a flat table of (row, item), for CSV and SQL; an empty set has no line."""
        table = self.data
        names = [field.name for field in table.schema if pa.types.is_list(field.type)]
        require(bool(names), "to_pairs: the main table holds no sets of items; use `data` as it is")
        sets = table[names[0]].combine_chunks()
        return pa.table({"row": pc.list_parent_indices(sets), "item": pc.list_flatten(sets)})

    def __repr__(self) -> str:
        return f"Release({self.card['method']['name']}: {self.summary()}; {self.guarantee.sentence()})"

    def summary(self) -> str:
        """What is in it, in a few words."""
        contents = self.card["contents"]
        parts = [f"{name} {t['rows']} x {len(t['columns'])}" for name, t in contents["tables"].items()]
        parts += [f"{name} {' x '.join(map(str, a['shape']))}" for name, a in contents["arrays"].items()]
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        """A short escaped table for notebooks."""
        title = html.escape(str(self.card["about"]["title"]))
        promise = html.escape(self.guarantee.sentence())
        head = f"<p><strong>{title}</strong><br>{html.escape(self.summary())}<br>{promise}</p>"
        if self.card["contents"]["main"] is None:
            return f"<div>{head}</div>"
        shown = self.data.slice(0, PREVIEW_ROWS).select(
            range(min(PREVIEW_COLUMNS, self.data.num_columns))
        )
        names = "".join(f"<th>{html.escape(name)}</th>" for name in shown.column_names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row.values()) + "</tr>"
            for row in shown.to_pylist()
        )
        return f"<div>{head}<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table></div>"


def off_grid(values: Array, grid: float) -> int:
    """How many values are not whole multiples of the power of two `grid`; a true release has none."""
    require(grid > 0 and math.frexp(grid)[0] == 0.5, f"grid={grid}: must be a power of two")
    given = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        units = np.ldexp(
            given, 1 - math.frexp(grid)[1]
        )  # exact but for overflow (whole) and underflow (not)
        whole = (units == np.rint(units)) & np.isfinite(given) & ((units != 0) | (given == 0))
    return int(whole.size - np.count_nonzero(whole))
