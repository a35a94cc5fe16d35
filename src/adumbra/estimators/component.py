"""`PCAPublisher` and `LDAPublisher`: arrays with declared bounds, or mixed tables with a schema.

With `bounds` the data is an array and arrays come back; with `schema` it is a table (anything that
`adumbra.release` reads) and Arrow tables come back, in the schema's own columns and types. Every `fit`
is a release and is charged to `guarantee_`; `sample` reads the released synopsis and costs nothing.
"""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from adumbra.data.opening import open_source
from adumbra.data.sources import Source
from adumbra.errors import InvalidInput, require
from adumbra.estimators._base import LABEL, TableEstimator
from adumbra.estimators._inputs import Bounds, class_values, label_codes, read_count
from adumbra.estimators._saving import Kept, column_table, column_values
from adumbra.mechanisms.base import Settled
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.lda.release import greedy_targets
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.numerics import Array
from adumbra.postprocess.decode import decode_rows
from adumbra.postprocess.greedy import Loss, greedy_rows
from adumbra.postprocess.subspace import ClassMoments, Subspace, sample_subspace
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Column, Kind, Schema


class PCAPublisher(TransformerMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Rows through their leading private directions (PCA).

    `fit` and `fit_transform` release and pay; `sample` draws from what was released, for nothing.
    `fit_transform` gives one released row for each, in its order. See `adumbra.mechanisms.pca.release`.

    Parameters
    ----------
    n_components : private directions to keep; 0 publishes the mean
    epsilon, delta : the price of one fit; delta=0 is pure epsilon
    bounds : for arrays: (lower, upper), two numbers or two lists with one for each column
    schema : an `adumbra.Schema` for tables; Arrow tables come back then
    neighbours : for arrays: "replace-one" (default) or "add-remove" (with output="sample" only)
    output : "rows" releases every row with noise, "sample" the synopsis alone
    moments_share : part of the budget for mean and directions, where rows follow
    shrink : pull noisy rows towards the mean, for the least squared error

    Attributes
    ----------
    released_ : the released rows, or None with output="sample"
    mean_, components_, explained_variance_ : the released synopsis
    noise_scales_ : the noise of each part
    guarantee_ : PrivacyGuarantee of all fits of this object

    Examples
    --------
    >>> import numpy as np
    >>> from adumbra import PCAPublisher
    >>> model = PCAPublisher(2, epsilon=1.0, bounds=(0.0, 1.0), output="sample")
    >>> model.fit(np.full((500, 3), 0.5)).sample(10).shape
    (10, 3)
    """

    def __init__(  # noqa: PLR0913 - scikit-learn: every parameter is a keyword of the constructor
        self,
        n_components: int = 5,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Bounds | None = None,
        schema: Schema | None = None,
        neighbours: str | None = None,
        output: Literal["rows", "sample"] = "rows",
        moments_share: float = 0.5,
        shrink: bool = False,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.neighbours = neighbours
        self.output = output
        self.moments_share = moments_share
        self.shrink = shrink

    def fit(self, X: object, y: object = None) -> Self:  # noqa: ARG002  (scikit-learn's signature)
        """Release the synopsis (and rows, unless output="sample"), kept as `released_`."""
        source = self._source(X)
        settled, draft = self._pay_and_draw(source, self._config())
        self._note_features(X if self.schema is None else None, len(source.schema.columns))
        arrays, columns = dict(draft.arrays), []
        if self.output == "rows":
            table = draft.table()
            columns = table.column_names
            arrays["released"] = column_values(table, source.schema)
        self._note(
            settled, arrays, scales={one.purpose: one.scale for one in draft.noise}, columns=columns
        )
        return self

    def _config(self) -> PCAConfig:
        rows = 1 if self.output == "sample" else None
        return self._config_of(PCAConfig, synthetic_rows=rows)

    def _keep(self, kept: Kept, settled: Settled[Any, Any]) -> None:
        self.layout_ = Layout(replace(settled.schema, label=None))
        self.mean_, self.components_, self.explained_variance_ = (
            np.asarray(kept.arrays[name], dtype=np.float64)
            for name in ("mean", "components", "variances")
        )
        self.noise_scales_ = dict(kept.facts["scales"])
        self.released_ = None
        if self.output == "rows":
            values = kept.arrays["released"]
            self.released_ = self._shown(column_table(values, settled.schema, kept.facts["columns"]))

    def fit_transform(self, X: object, y: object = None) -> pa.Table | Array:  # noqa: ARG002
        """Release the rows of X, one released row for each."""
        require(
            self.output == "rows", "output='sample': no rows correspond to those of X; use fit, sample"
        )
        return self.fit(X).released_

    def sample(self, n_samples: int, sample_seed: int = 0) -> pa.Table | Array:
        """Synthetic rows from the released synopsis; costs nothing."""
        self._require_fitted()
        n_samples = read_count("n_samples", n_samples)
        sample_seed = read_count("sample_seed", sample_seed, 0)
        found = Subspace(self.mean_, self.components_.T, self.explained_variance_)
        rows = sample_subspace(found, n_samples, np.random.default_rng(sample_seed))
        return self._shown(decode_rows(self.layout_, rows))

    def _source(self, x: object) -> Source:
        if self.schema is not None:
            return self._schema_source(x, None)
        return open_source(*self._array(x))


class LDAPublisher(TableEstimator):
    """Synthetic rows that keep class means and a pooled covariance (LDA).

    `fit` releases and pays; `sample` costs nothing. See `adumbra.mechanisms.lda.release`.

    Parameters
    ----------
    epsilon, delta : the price of one fit; delta=0 is pure epsilon
    bounds : for arrays: (lower, upper), two numbers or two lists with one for each column
    classes : for arrays: the public list of classes of y; a schema names its label instead
    schema : an `adumbra.Schema` for tables; Arrow tables come back then
    neighbours : for arrays: "replace-one" (default) or "add-remove"
    loss : "squared", or "absolute" as in the paper: the error that the sampler makes small

    Attributes
    ----------
    class_shares_, class_means_, covariance_, moments_ : what was released
    noise_scale_ : the noise of a sum
    guarantee_ : PrivacyGuarantee of all fits of this object

    Examples
    --------
    >>> import numpy as np
    >>> from adumbra import LDAPublisher
    >>> model = LDAPublisher(epsilon=1.0, bounds=(0.0, 1.0), classes=["no", "yes"])
    >>> rows, labels = model.fit(np.full((500, 3), 0.5), ["no", "yes"] * 250).sample(10)
    >>> rows.shape, len(labels)
    ((10, 3), 10)
    """

    def __init__(  # noqa: PLR0913 - as above
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Bounds | None = None,
        classes: ArrayLike | None = None,
        schema: Schema | None = None,
        neighbours: str | None = None,
        loss: Loss = "squared",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.schema = schema
        self.neighbours = neighbours
        self.loss = loss

    def fit(self, X: object, y: ArrayLike | None = None) -> Self:
        """Release class means, pooled second moment and class shares."""
        source = self._source(X, y)
        settled, draft = self._pay_and_draw(source, self._config())
        self._note_features(X if self.schema is None else None, len(source.schema.columns) - 1)
        self._note(settled, draft.arrays)
        return self

    def _config(self) -> LDAConfig:
        return self._config_of(LDAConfig, synthetic_rows=1)

    def _keep(self, kept: Kept, settled: Settled[Any, Any]) -> None:
        self.layout_ = Layout(settled.schema)
        arrays = {name: np.asarray(array, dtype=np.float64) for name, array in kept.arrays.items()}
        self.moments_ = ClassMoments(
            arrays["class_shares"], arrays["class_means"], arrays["second_moment"]
        )
        self.class_shares_, self.class_means_ = self.moments_.shares, self.moments_.means
        self.covariance_ = self.moments_.within()
        self.noise_scale_ = settled.plan.noise[0].scale

    def sample(self, n_samples: int) -> pa.Table | tuple[Array, Array]:
        """Synthetic rows: a table, or (X, y) for arrays; the same rows for the same number."""
        self._require_fitted()
        n_samples = read_count("n_samples", n_samples)
        rows, codes = greedy_rows(greedy_targets(self.moments_, self.layout_), n_samples, loss=self.loss)
        table = decode_rows(self.layout_, rows, labels=codes)
        if self.schema is not None:
            return table
        return self._shown(table), class_values(self.classes)[codes]

    def _source(self, x: object, y: ArrayLike | None) -> Source:
        if self.schema is not None:
            return self._schema_source(x, y)
        values, features = self._array(x)
        if self.classes is None:
            raise InvalidInput("classes=None: give the public list of classes, or a schema")
        if y is None:
            raise InvalidInput("y=None: LDA needs the class of each row")
        codes = label_codes(y, self.classes, len(values))
        names = tuple(str(code) for code in range(len(class_values(self.classes))))
        label = Column(name=LABEL, kind=Kind.CATEGORY, categories=names)
        schema = replace(features, columns=(*features.columns, label), label=LABEL)
        return open_source(np.column_stack([values, codes]), schema)
