"""`TopKColumns` for item sets: the k most frequent columns of a 0/1 matrix or of lists of items.

Every `fit` is a release of the rows it is given and is charged to `guarantee_`.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, issparse

from adumbra.data.schema import ItemSpec, Schema
from adumbra.data.sources import Source, open_source
from adumbra.errors import InvalidInput, require
from adumbra.estimators._base import PrivateEstimator
from adumbra.mechanisms.topk import TopKConfig
from adumbra.numerics import Array, Ints
from adumbra.relations import Neighbours, Unit


class TopKColumns(PrivateEstimator):
    """The k most frequent columns; see `adumbra.mechanisms.topk`.

    X is a scipy.sparse matrix or an array of 0 and 1 (its columns are the universe), or a sequence of
    item lists, which needs `n_columns`. After a fit: `columns_` in rank order, `guarantee_`, and, where
    the method makes them, `counts_` and `standard_errors_` of these columns.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn: every parameter is a keyword of the constructor
        self,
        k: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        neighbours: str = "add-remove",
        method: str = "auto",
        length: int | None = None,
        max_length: int = 256,
        n_columns: int | None = None,
    ) -> None:
        self.k = k
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.method = method
        self.length = length
        self.max_length = max_length
        self.n_columns = n_columns

    columns_: Ints
    counts_: Array
    standard_errors_: Array

    def fit(self, X: object, y: object = None) -> Self:  # noqa: ARG002  (scikit-learn's signature)
        """Release the top columns of X."""
        config = TopKConfig(
            k=self.k,
            epsilon=self.epsilon,
            delta=self.delta,
            method=self.method,
            length=self.length,
            max_length=self.max_length,
        )
        _, draft = self._pay_and_draw(self._source(X), config)
        table = draft.tables["data"]
        if not isinstance(table, pa.Table):
            raise InvalidInput("data: absent from the draft")
        self.columns_ = table["item"].to_numpy()
        if "count" in table.column_names:
            self.counts_ = table["count"].to_numpy()
            self.standard_errors_ = table["standard_error"].to_numpy()
        return self

    def _source(self, x: object) -> Source:
        """Item sets of a matrix, or of lists over a declared number of columns."""
        legal = (Neighbours.ADD_REMOVE.value, Neighbours.REPLACE_ONE.value)
        require(
            self.neighbours in legal,
            f"neighbours={self.neighbours!r}: must be one of {', '.join(legal)}",
        )
        lists, width = _lists(x, self.n_columns)
        self.n_features_in_ = width
        schema = Schema(
            unit=Unit.ROW, neighbours=Neighbours(self.neighbours), items=ItemSpec(upper=width - 1)
        )
        return open_source(pa.table({"items": lists}), schema)


def _lists(x: object, n_columns: int | None) -> tuple[pa.Array, int]:
    """Rows as lists of column numbers; what is not zero (nor NaN) is there."""
    if isinstance(x, np.ndarray) or issparse(x):
        matrix = csr_array(x)  # type: ignore[arg-type]  # `issparse` says less than it knows
        require(matrix.ndim == 2, f"X with {matrix.ndim} dimensions: must be two-dimensional")
        fits = n_columns is None or n_columns == matrix.shape[1]
        require(fits, f"n_columns={n_columns}: X has {matrix.shape[1]} columns; leave it out")
        matrix = matrix.copy()
        matrix.data = (matrix.data != 0) & ~np.isnan(matrix.data.astype(np.float64))
        matrix.eliminate_zeros()
        offsets = pa.array(matrix.indptr.astype(np.int64))
        values = pa.array(matrix.indices.astype(np.int64))
        return pa.LargeListArray.from_arrays(offsets, values), int(matrix.shape[1])
    if n_columns is None:
        raise InvalidInput(
            "n_columns=None: lists of items need the number of columns, from public knowledge"
        )
    if not isinstance(x, Sequence) or isinstance(x, str):
        raise InvalidInput(
            f"X of type {type(x).__name__}: give a matrix, or a sequence of lists of items"
        )
    return pa.array([_items(row) for row in x], pa.list_(pa.int64())), n_columns


def _number(item: object) -> float:
    """An item number as a float; NaN for whatever is none."""
    try:
        return float(item)  # type: ignore[arg-type]  # total: anything else is caught
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _items(row: object) -> list[int]:
    """Item numbers of a row; whatever is none becomes -1, which lies outside every universe."""
    if not isinstance(row, Iterable) or isinstance(row, str):
        return []
    items = np.array([_number(item) for item in row], dtype=np.float64)
    inside = np.isfinite(items) & (np.abs(items) < 2.0**53)
    return [int(item) for item in np.where(inside, items, -1.0).reshape(-1)]
