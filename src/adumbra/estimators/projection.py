"""`DPPro` and `JLLaplace` for arrays: released rows, and distances read off them.

Rows are encoded by their declared bounds (each column to [-1/2, 1/2]) before they are projected;
released rows and distances are in that unit. `fit` learns public facts only and costs nothing, as in
scikit-learn's own random projections; `transform` and `fit_transform` are releases of the rows they are
given and are charged to `guarantee_`.
"""

import warnings
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput, PrivacyCostWarning, require
from adumbra.estimators._base import PrivateEstimator, numeric_schema
from adumbra.estimators._inputs import Bounds, as_numbers
from adumbra.estimators._saving import Kept
from adumbra.mechanisms.base import Settled
from adumbra.mechanisms.methods import plan
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection.plan import public_projection
from adumbra.mechanisms.projection.rows import row_space
from adumbra.numerics import Array
from adumbra.postprocess.distances import DistanceModel, block_distances
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema


class _Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """What both estimators share; a subclass has the keywords and makes the config."""

    unit: str
    bounds: Bounds | None
    released_: Array
    noise_scale_: float
    distance_model_: DistanceModel

    def _config(self) -> DPProConfig | JLLaplaceConfig:
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002  (scikit-learn's signature)
        """Learn the shape of X and check the settings; no cell is used, nothing is released or paid.

        Parameters
        ----------
        X : rows x columns: array, list of rows, or table
        y : ignored

        Raises
        ------
        InvalidInput, if a setting or the shape of X breaks a rule.
        """
        values = as_numbers(X)
        require(len(values) > 0, "X with 0 rows: nothing to release; give at least one row")
        schema, config = self._schema(values.shape[1]), self._config()
        plan(config, schema)
        self._note_features(X, values.shape[1])
        self._n_features_out = self.n_components
        self._note_matrix(schema)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Array:  # noqa: ARG002
        """Fit, then pay for and release the rows of X: `fit(X).transform(X)` at the same price."""
        return self.fit(X).transform(X)

    def transform(self, X: ArrayLike) -> Array:
        """Pay for a release of the rows of X, and return it.

        Each call adds to `guarantee_` and draws noise of its own. From the second on it warns
        first (`PrivacyCostWarning`): rows released before are in `released_`, and cost nothing more.

        Parameters
        ----------
        X : rows x columns, as in `fit`

        Returns
        -------
        One released row of `n_components` numbers for each row of X, in encoded units.

        Raises
        ------
        InvalidInput, before anything is paid.
        """
        self._require_fitted()
        values = as_numbers(X)
        self._require_features(X, values)
        source, config = open_source(values, self._schema(values.shape[1])), self._config()
        if hasattr(self, "guarantee_"):
            self._warn_of_the_price()
        settled, draft = self._pay_and_draw(source, config)
        facts = draft.facts["distances"]
        if not isinstance(facts, dict):
            raise InvalidInput("distances: absent from the draft")
        parts = [np.column_stack(batch.columns) for batch in draft.pending["data"].batches]
        scale = (draft.noise or settled.plan.noise)[0].scale
        self._note(settled, {"released": np.concatenate(parts)}, distances=facts, scale=scale)
        return self.released_

    def _keep(self, kept: Kept, settled: Settled[Any, Any]) -> None:
        model = DistanceModel.from_facts(kept.facts["distances"])
        self.noise_scale_ = float(kept.facts["scale"]) * model.unit
        # In encoded units the model's own unit is 1: the noise is scaled instead of every distance.
        self.distance_model_ = model.in_encoded_units()
        self.released_ = np.asarray(kept.arrays["released"], np.float64) * model.unit
        self._n_features_out = settled.config.n_components
        self._note_matrix(settled.schema)

    def _schema(self, width: int) -> Schema:
        require(self.unit in ("row", "element"), f"unit={self.unit}: must be 'row' or 'element'")
        unit = Unit(self.unit)
        neighbours = Neighbours.REPLACE_ONE if unit is Unit.ROW else Neighbours.ONE_ELEMENT
        return numeric_schema(width, self.bounds, unit, neighbours)

    def _note_matrix(self, schema: Schema) -> None:
        """Keep the matrix, if it is public."""

    def _warn_of_the_price(self) -> None:
        name = type(self).__name__
        text = (
            f"this {name} has released rows before ({self.guarantee_.sentence()}); this transform is a "
            "further release and adds to guarantee_. Rows that were released stay in `released_`: use "
            "those instead of transforming them again"
        )
        warnings.warn(text, PrivacyCostWarning, stacklevel=3)

    def _require_fitted(self) -> None:
        check_is_fitted(self, "n_features_in_")

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
        check_is_fitted(self, "distance_model_")
        distances = block_distances(self.distance_model_, P, P if Q is None else Q)
        return (distances, self.distance_model_.standard_error(distances)) if return_std else distances


class DPPro(_Projection):
    """Every row through a public random projection, with Gaussian noise.

    `fit` learns the shape and pays nothing; `transform` and `fit_transform` release rows and pay. See
    `adumbra.mechanisms.projection`.

    Parameters
    ----------
    n_components : released numbers per row
    epsilon, delta : the price of one release; delta must be above 0
    unit : "row" hides a whole row, "element" one cell of it
    bounds : (lower, upper), two numbers or two lists with one for each column; declared from public
        knowledge, never taken from X
    row_norm : unit "row": longer encoded rows are scaled down to it; by default the bounds' own
    family : how the projection is drawn; "auto" follows a public rule
    matrix_seed : public seed of the projection

    Attributes
    ----------
    released_ : the rows of the last release, in encoded units (each column to [-1/2, 1/2])
    components_ : the public matrix
    noise_scale_ : standard deviation of a released number's noise
    distance_model_ : how to read distances off released rows
    guarantee_ : PrivacyGuarantee of all releases of this object, after the first

    Examples
    --------
    >>> import numpy as np
    >>> from adumbra import DPPro
    >>> model = DPPro(4, epsilon=4.0, bounds=(0.0, 1.0))
    >>> model.fit_transform(np.full((100, 8), 0.5)).shape
    (100, 4)
    >>> model.guarantee_.epsilon_at(1e-6) <= 4.0
    True
    """

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
        return self._config_of(DPProConfig)

    def _note_matrix(self, schema: Schema) -> None:
        matrix = public_projection(self._config(), row_space(schema, self.row_norm))
        self.components_: Array = matrix.to_float()


class JLLaplace(_Projection):
    """Every row through a secret random projection, with Laplace noise: pure epsilon.

    `fit` learns the shape and pays nothing; `transform` and `fit_transform` release rows and pay. There
    is no `components_`, and each release has a matrix of its own: distances hold within one release,
    never between two. See `adumbra.mechanisms.projection`.

    Parameters
    ----------
    n_components : released numbers per row
    epsilon : the price of one release; delta must be 0
    unit : "row" hides a whole row, "element" one cell of it
    bounds : (lower, upper), two numbers or two lists with one for each column; declared from public
        knowledge, never taken from X
    row_norm : unit "row": longer encoded rows are scaled down to it; by default the bounds' own
    family : how the projection is drawn; "auto" follows a public rule

    Attributes
    ----------
    released_, noise_scale_, distance_model_, guarantee_ : as those of `DPPro`

    Examples
    --------
    >>> import numpy as np
    >>> from adumbra import JLLaplace
    >>> model = JLLaplace(4, epsilon=4.0, unit="element", bounds=(0.0, 1.0))
    >>> rows = model.fit(np.full((100, 8), 0.5)).transform(np.full((100, 8), 0.5))
    >>> model.squared_distances(rows[:2]).shape
    (2, 2)
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
        return self._config_of(JLLaplaceConfig)
