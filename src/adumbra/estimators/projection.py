"""`DPPro` and `JLLaplace` for arrays: released rows, and distances read off them.

Rows are encoded by their declared bounds (each column to [-1/2, 1/2]) before they are projected;
released rows and distances are in that unit. Every `fit`, `fit_transform` and `transform` is a release
of the rows it is given and is charged to `guarantee_`.
"""

from typing import Literal, Self, overload

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from adumbra.data.sources import open_source
from adumbra.errors import InvalidInput, require
from adumbra.estimators._base import PrivateEstimator, numeric_schema
from adumbra.estimators._inputs import Bounds, as_numbers
from adumbra.mechanisms.base import Draft
from adumbra.mechanisms.dppro import DPProConfig
from adumbra.mechanisms.jl_laplace import JLLaplaceConfig
from adumbra.numerics import Array
from adumbra.postprocess.distances import DistanceModel, block_distances
from adumbra.relations import Neighbours, Unit


class _Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """What both faces share; a subclass has the keywords and makes the config."""

    unit: str
    bounds: Bounds | None
    noise_scale_: float
    distance_model_: DistanceModel

    def _config(self) -> DPProConfig | JLLaplaceConfig:
        raise NotImplementedError

    def _release(self, x: ArrayLike, *, is_new: bool) -> tuple[Array, Draft]:
        """Pay for and draw a release of these rows, in encoded units."""
        require(self.unit in ("row", "element"), f"unit={self.unit}: must be 'row' or 'element'")
        unit = Unit(self.unit)
        neighbours = Neighbours.REPLACE_ONE if unit is Unit.ROW else Neighbours.ONE_ELEMENT
        values = as_numbers(x)
        if is_new:
            self._note_features(x, values.shape[1])
        else:
            self._require_features(x, values)
        schema = numeric_schema(values.shape[1], self.bounds, unit, neighbours)
        planned, draft = self._pay_and_draw(open_source(values, schema), self._config())
        facts = draft.facts["distances"]
        if not isinstance(facts, dict):
            raise InvalidInput("distances: absent from the draft")
        model = DistanceModel.from_facts(facts)
        table = draft.tables["data"]
        batches = table.to_batches() if isinstance(table, pa.Table) else table.batches
        parts = [np.column_stack(batch.columns) for batch in batches]
        self.noise_scale_ = (draft.noise or planned.noise)[0].scale * model.unit
        # In encoded units the model's own unit is 1: the noise is scaled instead of every distance.
        self.distance_model_ = model.in_encoded_units()
        return np.concatenate(parts) * model.unit, draft

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002  (scikit-learn's signature)
        """Release the rows of X and keep the release as `released_`."""
        self.released_, _ = self._release(X, is_new=True)
        self._n_features_out = self.released_.shape[1]
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Array:  # noqa: ARG002
        """Release the rows of X, one released row for each."""
        return self.fit(X).released_

    def transform(self, X: ArrayLike) -> Array:
        """Release other rows with the same settings; charged like a fit."""
        self._require_fitted()
        return self._release(X, is_new=False)[0]

    @overload
    def squared_distances(
        self, P: Array, Q: Array | None = None, *, return_std: Literal[False] = False
    ) -> Array: ...
    @overload
    def squared_distances(
        self, P: Array, Q: Array | None = None, *, return_std: Literal[True]
    ) -> tuple[Array, Array]: ...
    def squared_distances(
        self, P: Array, Q: Array | None = None, *, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """Unbiased squared distances of released rows P with Q (or P), and their standard errors."""
        self._require_fitted()
        distances = block_distances(self.distance_model_, P, P if Q is None else Q)
        return (distances, self.distance_model_.standard_error(distances)) if return_std else distances


class DPPro(_Projection):
    """Rows through a public projection with Gaussian noise; see `adumbra.mechanisms.dppro`."""

    def __init__(  # noqa: PLR0913 - scikit-learn: every parameter is a keyword of the constructor
        self,
        n_components: int = 20,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        unit: str = "row",
        bounds: Bounds | None = None,
        row_norm: float | None = None,
        family: str = "auto",
        matrix_seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.bounds = bounds
        self.row_norm = row_norm
        self.family = family
        self.matrix_seed = matrix_seed

    def _config(self) -> DPProConfig:
        return DPProConfig(
            n_components=self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            row_norm=self.row_norm,
            family=self.family,
            matrix_seed=self.matrix_seed,
        )

    def _release(self, x: ArrayLike, *, is_new: bool) -> tuple[Array, Draft]:
        released, draft = super()._release(x, is_new=is_new)
        self.components_ = np.asarray(draft.arrays["projection"], dtype=np.float64)
        return released, draft


class JLLaplace(_Projection):
    """Rows through a secret projection with Laplace noise; see `adumbra.mechanisms.jl_laplace`.

    There is no `components_`, and each release has a matrix of its own: distances hold within one
    release, never between two.
    """

    def __init__(  # noqa: PLR0913 - as above
        self,
        n_components: int = 20,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        unit: str = "row",
        bounds: Bounds | None = None,
        row_norm: float | None = None,
        family: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.bounds = bounds
        self.row_norm = row_norm
        self.family = family

    def _config(self) -> JLLaplaceConfig:
        return JLLaplaceConfig(
            n_components=self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            row_norm=self.row_norm,
            family=self.family,
        )
