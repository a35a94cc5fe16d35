"""`TopKColumns` for item sets: the k most frequent columns of a 0/1 matrix or of lists of items.

Every `fit` is a release of the rows it is given and is charged to `guarantee_`.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, issparse

from adumbra.data.arrays import is_there
from adumbra.data.cells import array_numbers, read_lists
from adumbra.data.opening import open_source
from adumbra.data.sources import Source
from adumbra.errors import InvalidInput, require
from adumbra.estimators._base import PrivateEstimator
from adumbra.estimators._inputs import as_numbers, is_table, read_count, read_relation
from adumbra.estimators._saving import Kept
from adumbra.mechanisms.base import Settled
from adumbra.mechanisms.topk import TopKConfig
from adumbra.numerics import Array, Ints
from adumbra.relations import Unit
from adumbra.schema.schema import ItemSpec, Schema


class TopKColumns(PrivateEstimator):
    """The k most frequent columns of a 0/1 matrix, or of lists of items.

    `fit` releases and pays. X is a scipy.sparse matrix, an array or a table of 0 and 1, whose columns
    are the universe; or a list of lists of column numbers, which needs `n_columns`. A list is never read
    as a table. See `adumbra.mechanisms.topk`.

    Parameters
    ----------
    k : how many columns, at most the number there is
    epsilon, delta : the price of one fit; delta=0 is pure epsilon
    neighbours : "add-remove" or "replace-one"
    algorithm : the algorithm; "auto" is the best of them for the guarantee asked for
    length : items counted of one row, if publicly known; else chosen privately for a share
    max_length : the longest such length that the private choice considers
    expected_rows : under add-remove: a public guess of the number of rows, for "auto"
    n_columns : for lists of items: the public number of columns

    Attributes
    ----------
    columns_ : column numbers in rank order
    counts_, standard_errors_ : of these columns, where the method makes counts
    guarantee_ : PrivacyGuarantee of all fits of this object

    Examples
    --------
    >>> from adumbra import TopKColumns
    >>> TopKColumns(2, epsilon=50.0, n_columns=5).fit([[0, 1], [0, 1, 2], [0]] * 200).columns_.tolist()
    [0, 1]
    """

    def __init__(  # noqa: PLR0913 - scikit-learn: every parameter is a keyword of the constructor
        self,
        k: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: str = "add-remove",
        algorithm: str = "auto",
        length: int | None = None,
        max_length: int = 256,
        expected_rows: int | None = None,
        n_columns: int | None = None,
    ) -> None:
        self.k = k
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.algorithm = algorithm
        self.length = length
        self.max_length = max_length
        self.expected_rows = expected_rows
        self.n_columns = n_columns

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  (scikit-learn has no types)
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    columns_: Ints
    counts_: Array
    standard_errors_: Array

    def fit(self, X: object, y: object = None) -> Self:  # noqa: ARG002  (scikit-learn's signature)
        """Release the top columns of X."""
        settled, draft = self._pay_and_draw(self._source(X), self._config())
        table = draft.tables["data"]
        shown = [name for name in ("item", "count", "standard_error") if name in table.column_names]
        self._note(settled, {name: table[name].to_numpy() for name in shown})
        return self

    def _config(self) -> TopKConfig:
        return self._config_of(TopKConfig)

    def _keep(self, kept: Kept, settled: Settled[Any, Any]) -> None:  # noqa: ARG002  (as the others)
        self.columns_ = kept.arrays["item"]
        if "count" in kept.arrays:
            self.counts_, self.standard_errors_ = kept.arrays["count"], kept.arrays["standard_error"]

    def _source(self, x: object) -> Source:
        """Item sets of a matrix, or of lists over a declared number of columns."""
        relation = read_relation(self.neighbours)
        lists, width = _lists(x, self.n_columns)
        self._note_features(x, width)
        schema = Schema(unit=Unit.ROW, neighbours=relation, items=ItemSpec(upper=width - 1))
        return open_source(pa.table({"items": lists}), schema)


def _lists(x: object, n_columns: int | None) -> tuple[pa.Array, int]:
    """Rows as lists of column numbers; a number other than 0 says that the column is there."""
    if isinstance(x, np.ndarray) or issparse(x) or is_table(x):
        given = x.tocsr(copy=True) if hasattr(x, "tocsr") else is_there(as_numbers(x))
        matrix = csr_array(given)
        matrix.sum_duplicates()
        remedy = f"X has {matrix.shape[1]} columns, leave it out"
        require(n_columns is None, f"n_columns={n_columns}: is for lists of items; {remedy}")
        require(matrix.shape[1] >= 1, "X without a column: give rows x columns")
        matrix.data = is_there(array_numbers(matrix.data))
        matrix.eliminate_zeros()
        offsets = pa.array(matrix.indptr.astype(np.int64))
        values = pa.array(matrix.indices.astype(np.int64))
        return pa.LargeListArray.from_arrays(offsets, values), int(matrix.shape[1])
    rows = x.tolist() if hasattr(x, "iloc") and hasattr(x, "tolist") else x
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise InvalidInput(
            f"X of type {type(x).__name__}: give a matrix, a table, or a sequence of lists of items"
        )
    if n_columns is None:
        raise InvalidInput(
            "n_columns=None: a list is read as lists of items and needs the number of columns, from "
            "public knowledge; give rows of 0 and 1 as numpy.asarray(X)"
        )
    return read_lists(rows), read_count("n_columns", n_columns)
