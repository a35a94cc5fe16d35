"""What an estimator is given: rows, labels, and the public facts about them.

A cell of X or y is read by its own type and value alone (`adumbra.data.cells`): numpy would make every
label of [1, 1, "x"] a text, and print the cell that it cannot convert. The shape is public: the rows of
a list must all have the same number of cells.
"""

from collections.abc import Mapping, Sequence, Sized
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.data.arrays import arrow_table
from adumbra.data.cells import array_column, array_numbers, pandas_column, read_cells
from adumbra.data.columns import fill_column, number_text, read_numbers
from adumbra.errors import InvalidInput, require
from adumbra.numerics import Array
from adumbra.relations import Neighbours
from adumbra.schema.schema import Column, Kind

Bounds = tuple[float, float] | tuple[Sequence[float], Sequence[float]]
Side = float | list[float]


def as_numbers(x: object, name: str = "X") -> Array:
    """Rows x columns as float64; a cell that is no number becomes NaN, which the schema's rule fills."""
    if hasattr(x, "tocsr"):
        raise InvalidInput(f"{name} of type {type(x).__name__}: is sparse; give {name}.toarray()")
    if is_table(x):
        columns = [_chunked_numbers(column) for column in arrow_table(x).columns]
        return np.column_stack(columns) if columns else np.empty((0, 0))
    if isinstance(x, list | tuple):
        return _listed_numbers(x, name)
    given = np.asarray(x)
    require(given.ndim == 2, f"{name} with {given.ndim} dimensions: must be two-dimensional")
    if given.dtype.kind not in "OSUT":
        return array_numbers(given)
    return _chunked_numbers(array_column(given.reshape(-1))).reshape(given.shape)


def rows_of(x: object, bounds: object, relation: Neighbours) -> Array:
    """`as_numbers` of X; where the number of rows is private, X without a row is as good as any other.

    A list without a row has no width, so a list is taken only beside bounds that say it, empty or not.
    """
    if relation.rows_are_public:
        return as_numbers(x)
    width = _declared_width(bounds)
    is_list = isinstance(x, list | tuple)
    require(
        width is not None or not is_list,
        f"X as a list with neighbours={str(relation)!r}: an empty list has no width, and whether X is "
        "empty is private; give an array or a table, or bounds as two lists with one number per column",
    )
    is_empty = len(x) == 0 if is_list else isinstance(x, np.ndarray) and x.shape == (0,)  # type: ignore[arg-type]
    return np.empty((0, width)) if is_empty and width is not None else as_numbers(x)


def _declared_width(bounds: object) -> int | None:
    """The number of columns, where the bounds are lists."""
    sides = [len(side) for side in read_bounds(bounds) if isinstance(side, list)]
    return sides[0] if sides else None


def is_table(x: object) -> bool:
    """Whether an object has named columns (pandas, polars, pyarrow)."""
    return hasattr(x, "__arrow_c_stream__") and hasattr(x, "columns")


def _listed_numbers(rows: list[Any] | tuple[Any, ...], name: str) -> Array:
    """A list of rows, whose cells are Python objects."""
    try:
        given = np.asarray(rows)
        if given.dtype.kind in "biuf" and given.ndim == 2:  # widening numbers changes none of them
            return array_numbers(given)
    except Exception:  # noqa: BLE001, S110  (uneven rows, or a foreign cell; the message would show it)
        pass
    cells = [list(row) for row in rows if _is_row(row)]
    require(bool(cells) or not rows, f"{name} with 1 dimensions: must be two-dimensional")
    width = len(cells[0]) if cells else 0
    is_even = len(cells) == len(rows) and all(len(row) == width for row in cells)
    require(is_even, f"{name}: every row must have the same number of cells")
    require(width > 0, f"{name} without a column: give an array of rows x columns")
    return read_numbers(read_cells(cell for row in cells for cell in row)).reshape(-1, width)


def _is_row(row: object) -> bool:
    """Whether an element of a list is a row of cells rather than a cell."""
    if isinstance(row, np.ndarray):
        return row.ndim > 0
    is_scalar = isinstance(row, str | bytes | Mapping)
    return isinstance(row, Sized) and hasattr(row, "__iter__") and not is_scalar


def _chunked_numbers(column: Any) -> Array:  # noqa: ANN401  (pyarrow has no types)
    """The numbers of an Arrow column in one piece or several."""
    parts = [read_numbers(part) for part in _chunks(column)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])


def _chunks(column: Any) -> list[Any]:  # noqa: ANN401  (as above)
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def as_column(y: object, rows: int) -> Any:  # noqa: ANN401  (as above)
    """Labels as an Arrow column, one for each row."""
    message = "y: need one label for each row of X"
    if hasattr(y, "columns") or getattr(y, "ndim", 1) != 1:
        raise InvalidInput(f"{message}, in one dimension")
    if hasattr(y, "iloc"):
        column = pandas_column(y)
    elif isinstance(y, list | tuple):
        column = read_cells(y)
    elif isinstance(y, pa.Array | pa.ChunkedArray):
        column = y
    else:
        given = np.asarray(y)
        require(given.ndim == 1, f"{message}, in one dimension")
        column = array_column(given)
    require(len(column) == rows, message)
    return column


def label_numbers(y: object, rows: int) -> Array:
    """Numeric labels as float64; NaN where a label is no number."""
    return _chunked_numbers(as_column(y, rows))


def label_codes(y: object, classes: object, rows: int) -> Array:
    """The place of each label among the declared classes; one that is none of them counts as the first.

    A label matches like a category of a schema: to the letter, or by its value as a number.
    """
    column = Column(name="label", kind=Kind.CATEGORY, categories=_class_names(classes))
    codes = np.empty(rows)
    start = 0
    for part in _chunks(as_column(y, rows)):
        fill_column(column, part, codes[start : start + len(part)])
        start += len(part)
    return codes


def class_values(classes: object) -> NDArray[Any]:
    """The declared classes as an array, none of them changed by its neighbours."""
    listed = _listed_classes(classes)
    values = np.asarray(listed)
    is_widened = values.dtype.kind in "SU" and not all(isinstance(value, str) for value in listed)
    if is_widened or values.ndim != 1:
        values = np.empty(len(listed), dtype=object)
        values[:] = listed
    return values


def _listed_classes(classes: Any) -> list[Any]:  # noqa: ANN401  (whatever the user gave)
    try:
        return list(np.ravel(classes)) if hasattr(classes, "dtype") else list(classes)
    except TypeError:
        raise InvalidInput(f"classes={classes!r}: give the public list of classes") from None


def _class_names(classes: object) -> tuple[str, ...]:
    """The text of each class."""
    names = []
    for cell in read_cells(_listed_classes(classes)).to_pylist():
        text, number = cell["text"], cell["number"]
        require(
            text is not None or np.isfinite(number), "classes: each must be a number, a truth or a text"
        )
        names.append(number_text(number) if text is None else text.decode("utf-8", "replace"))
    return tuple(names)


def read_bounds(bounds: Any) -> tuple[Side, Side]:  # noqa: ANN401  (as above)
    """The declared lower and upper bounds: two numbers, or two lists of them."""
    if bounds is None:
        raise InvalidInput("bounds=None: declare (lower, upper) from public knowledge, never from X")
    try:
        lower, upper = bounds
        return _side(lower), _side(upper)
    except (TypeError, ValueError):
        rule = "give (lower, upper), two numbers or two lists with one number per column"
        raise InvalidInput(f"bounds={bounds!r}: {rule}") from None


def _side(value: Any) -> Side:  # noqa: ANN401  (whatever the user gave)
    return float(value) if np.ndim(value) == 0 else [float(each) for each in value]


def read_count(name: str, value: object, least: int = 1) -> int:
    """A whole number that a caller gives, such as how many rows to draw."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or int(value) < least:  # type: ignore[call-overload]  # an Integral has `int`
        raise InvalidInput(f"{name}={value!r}: must be a whole number of at least {least}")
    return int(value)  # type: ignore[call-overload,no-any-return]  # as above


def read_relation(neighbours: object) -> Neighbours:
    """The neighbour relation of arrays, by its name."""
    legal = (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE)
    for relation in legal:
        if neighbours == relation:
            return relation
    raise InvalidInput(f"neighbours={neighbours!r}: must be one of {', '.join(legal)}")


def feature_names(x: object) -> NDArray[np.object_] | None:
    """The names of a table's columns, if all are text."""
    names = getattr(x, "column_names", None) if isinstance(x, pa.Table) else getattr(x, "columns", None)
    listed = list(names) if is_table(x) and names is not None else []
    is_named = bool(listed) and all(isinstance(name, str) for name in listed)
    return np.array(listed, dtype=object) if is_named else None
