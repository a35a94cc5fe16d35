"""`MomentsSynthesizer` for tables and arrays: pay once at `fit`, draw as many rows as wanted.

A table needs a schema; an array needs bounds (and classes, if it comes with labels). Every `fit` is a
release and is charged to `guarantee_`; `sample` costs nothing.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from adumbra.data.opening import open_source
from adumbra.data.sources import Source
from adumbra.errors import InvalidInput
from adumbra.estimators._base import LABEL, TableEstimator
from adumbra.estimators._inputs import Bounds, class_values, label_codes, read_count
from adumbra.estimators._saving import Kept
from adumbra.mechanisms.base import Settled
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.plan import Parts
from adumbra.mechanisms.moments.release import model_of
from adumbra.numerics import Array
from adumbra.postprocess.moments.model import MomentsModel
from adumbra.postprocess.moments.sampling import synthesize_where
from adumbra.relations import Unit
from adumbra.schema.schema import Column, Kind, Schema


class MomentsSynthesizer(TableEstimator):
    """Synthetic rows of a mixed table or an array, from noisy histograms and second moments.

    `fit` releases and pays; `sample` draws from what was released and costs nothing. See
    `adumbra.mechanisms.moments.release`.

    Parameters
    ----------
    epsilon, delta : the price of one fit; delta=0 is pure epsilon
    neighbours : for arrays: "replace-one" (default) or "add-remove"; a schema declares its own
    schema : an `adumbra.Schema` for tables (anything that `adumbra.release` reads)
    bounds : for arrays: (lower, upper), two numbers or two lists with one for each column
    classes : for arrays with y: the public list of its classes
    expected_rows : a public guess of the number of rows, where that is private
    marginal_share : part of the budget for histograms; by default a public rule
    table_share : part of the budget for joint tables that are measured; by default a public rule
    numbers : "auto", "bins" or "scores": how numbers enter the second moments
    sample_seed : public seed of `sample`

    Attributes
    ----------
    guarantee_ : PrivacyGuarantee of all fits of this object
    model_ : the released model
    rank_ : directions of the covariance that stood out of the noise
    n_rows_ : the number of rows, where it is public

    Examples
    --------
    >>> import numpy as np
    >>> from adumbra import MomentsSynthesizer
    >>> model = MomentsSynthesizer(epsilon=1.0, bounds=(0.0, 1.0)).fit(np.full((500, 3), 0.5))
    >>> model.sample(10).shape
    (10, 3)
    """

    def __init__(  # noqa: PLR0913 - scikit-learn: every parameter is a keyword of the constructor
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: str | None = None,
        schema: Schema | None = None,
        bounds: Bounds | None = None,
        classes: Sequence[Hashable] | None = None,
        expected_rows: int | None = None,
        marginal_share: float | None = None,
        table_share: float | None = None,
        numbers: str = "auto",
        sample_seed: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.schema = schema
        self.bounds = bounds
        self.classes = classes
        self.expected_rows = expected_rows
        self.marginal_share = marginal_share
        self.table_share = table_share
        self.numbers = numbers
        self.sample_seed = sample_seed

    def fit(self, X: object, y: ArrayLike | None = None) -> Self:
        """Pay for and release the moments of a table with a schema, or of an array with bounds.

        Parameters
        ----------
        X : a table, with a schema; else an array, a list of rows or a table of numbers
        y : labels of an array, one per row; with a schema the label is a column of the table

        Raises
        ------
        InvalidInput, before anything is paid.
        """
        source = self._source(X, y)
        settled, draft = self._pay_and_draw(source, self._config())
        self._note(settled, draft.arrays, rows=source.public_rows(), has_labels=y is not None)
        self._note_features(X if self.schema is None else None, len(self.model_.design.features))
        return self

    def _config(self) -> MomentsConfig:
        # rows are drawn by `sample`, from the released arrays
        return self._config_of(MomentsConfig, synthetic_rows=1)

    def _keep(self, kept: Kept, settled: Settled[MomentsConfig, Parts]) -> None:
        arrays = {name: np.asarray(value, np.float64) for name, value in kept.arrays.items()}
        self.model_: MomentsModel = model_of(settled, arrays)
        self.rank_ = self.model_.rank
        self.n_rows_: int | None = kept.facts["rows"]
        self._has_labels = bool(kept.facts["has_labels"])

    def sample(
        self,
        n_samples: int | None = None,
        *,
        sample_seed: int | None = None,
        where: Mapping[str, object] | None = None,
    ) -> pa.Table | Array | tuple[Array, NDArray[np.generic]]:
        """Synthetic rows: a table if fitted with a schema, else X or (X, y).

        With `where`, rows that meet its conditions, in the words of a schema's rules: `{"age": "<15"}`.
        """
        self._require_fitted()
        rows = n_samples if n_samples is not None else self.n_rows_
        if rows is None:
            raise InvalidInput(
                "n_samples=None: the number of rows is private; say how many rows to draw"
            )
        seed = self.sample_seed if sample_seed is None else sample_seed
        counts = read_count("n_samples", rows), read_count("sample_seed", seed, 0)
        table = synthesize_where(self.model_, *counts, where)
        x = self._shown(table)
        if self.schema is not None or not self._has_labels:
            return x
        return x, class_values(self.classes)[table[LABEL].to_numpy()]

    def _source(self, x: object, y: ArrayLike | None) -> Source:
        """The data with its declared schema; nothing is taken from the values."""
        if self.schema is not None:
            return self._schema_source(x, y)
        if self.bounds is None:
            raise InvalidInput(
                "schema=None, bounds=None: declare either from public knowledge, never from X"
            )
        values, plain = self._array(x)
        if y is None:
            return open_source(values, plain)
        if self.classes is None:
            raise InvalidInput(
                "classes=None: declare the classes of y from public knowledge, never from y"
            )
        codes = label_codes(y, self.classes, len(values))
        label = Column(name=LABEL, kind=Kind.INTEGER, lower=0, upper=max(len(self.classes) - 1, 1))
        schema = Schema(
            columns=(*plain.columns, label), unit=Unit.ROW, neighbours=plain.neighbours, label=LABEL
        )
        return open_source(np.column_stack([values, codes]), schema)
