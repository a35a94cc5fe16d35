"""`RONGauss` for arrays: a private Gaussian model of projected rows that can be sampled.

Columns are encoded by their declared bounds; `transform` maps a recipient's own rows with the released
matrix and mean (it touches nothing private and costs nothing), `inverse_transform` maps back.
"""

from numbers import Real
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput, require
from adumbra.estimators._base import PrivateEstimator, numeric_schema
from adumbra.estimators._inputs import (
    Bounds,
    as_numbers,
    class_values,
    label_codes,
    label_numbers,
    read_bounds,
    read_count,
    read_relation,
    rows_of,
)
from adumbra.estimators._saving import Kept
from adumbra.mechanisms.base import Settled
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.numerics import Array
from adumbra.postprocess.matrices import conditional_sizes, sample_gaussian
from adumbra.relations import Unit
from adumbra.schema.schema import Column, Kind, Schema

Mode = Literal["unsupervised", "supervised", "gmm"]


class RONGauss(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """A private Gaussian model of randomly projected rows, to sample from.

    `fit` releases and pays; `sample`, `transform` and `inverse_transform` cost nothing. `transform` adds
    no noise: it is for a recipient's own rows, and `fit_transform` is refused. See
    `adumbra.mechanisms.ron_gauss`.

    Parameters
    ----------
    epsilon, delta : the price of one fit; delta=0 is pure epsilon
    n_components : dimension of the projection; "auto" follows a public rule
    goal : what "auto" is for: "rows" like the real ones, or "clusters" of rows
    mode : "unsupervised", "supervised" (a numeric target) or "gmm" (one Gaussian per class)
    centring : "private" pays for a mean, "public" takes the middle of the bounds
    covariance : of "gmm": "class", "tied", "sphere", or "auto" by a public rule
    rescale : after centring, "clip" long rows, or "normalise" all to length 1 as the paper does
    unit_rows : scale every row to length 1 first, as the paper does
    mean_share : share of the budget for the mean; by default a public rule
    clip_factor : centred rows are clipped at this times their noisy root mean square
    clip_tail : expected share of rows that the clip after the projection shortens
    bounds : (lower, upper), two numbers or two lists with one for each column; declared from public
        knowledge, never taken from X
    classes : mode "gmm": the public list of classes
    y_bound : mode "supervised": a public bound of abs(y)
    neighbours : "replace-one" or "add-remove"
    row_norm : longer encoded rows are scaled down to it; by default the bounds' own
    expected_rows : a public guess of the number of rows, where that is private
    matrix_seed : public seed of the projection
    reconstruct : whether `sample` gives the original columns, or the projected ones

    Attributes
    ----------
    components_, row_norm_, centres_, counts_, mean_, covariance_ : the released model
    guarantee_ : PrivacyGuarantee of all fits of this object

    Examples
    --------
    >>> import numpy as np
    >>> from adumbra import RONGauss
    >>> RONGauss(epsilon=1.0, bounds=(0.0, 1.0)).fit(np.full((500, 3), 0.5)).sample(10).shape
    (10, 3)
    """

    def __init__(  # noqa: PLR0913 - one keyword a public decision, as scikit-learn has it
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_components: int | Literal["auto"] = "auto",
        goal: str = "rows",
        mode: Mode = "unsupervised",
        centring: Literal["private", "public"] = "private",
        covariance: Literal["auto", "class", "tied", "sphere"] = "auto",
        rescale: Literal["clip", "normalise"] = "clip",
        unit_rows: bool = False,
        mean_share: float | None = None,
        clip_factor: float = 1.0,
        clip_tail: float = 1e-3,
        bounds: Bounds | None = None,
        classes: ArrayLike | None = None,
        y_bound: float | None = None,
        neighbours: str = "replace-one",
        row_norm: float | None = None,
        expected_rows: int | None = None,
        matrix_seed: int = 0,
        reconstruct: bool = True,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_components = n_components
        self.goal = goal
        self.mode = mode
        self.centring = centring
        self.covariance = covariance
        self.rescale = rescale
        self.unit_rows = unit_rows
        self.mean_share = mean_share
        self.clip_factor = clip_factor
        self.clip_tail = clip_tail
        self.bounds = bounds
        self.classes = classes
        self.y_bound = y_bound
        self.neighbours = neighbours
        self.row_norm = row_norm
        self.expected_rows = expected_rows
        self.matrix_seed = matrix_seed
        self.reconstruct = reconstruct

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Pay for and release the noisy moments of these rows.

        Parameters
        ----------
        X : rows x columns: array, list of rows, or table of numbers
        y : numbers (mode "supervised") or classes (mode "gmm"), one per row

        Raises
        ------
        InvalidInput, before anything is paid.
        """
        modes = get_args(Mode)
        require(self.mode in modes, f"mode={self.mode!r}: must be one of {', '.join(modes)}")
        values = rows_of(X, self.bounds, read_relation(self.neighbours))
        schema = self._schema(values.shape)
        if self.mode != "unsupervised":
            values = np.column_stack([values, self._label_codes(y, len(values))])
        settled, draft = self._pay_and_draw(open_source(values, schema), self._config())
        self._note_features(X, schema.width - (self.mode != "unsupervised"))
        self._note(settled, draft.arrays)
        return self

    def _config(self) -> RONGaussConfig:
        output = "columns" if self.reconstruct else "projected"
        return self._config_of(RONGaussConfig, output=output, synthetic_rows=1)

    def _keep(self, kept: Kept, settled: Settled[Any, Any]) -> None:  # noqa: ARG002  (as the others)
        arrays = {name: np.asarray(array, dtype=np.float64) for name, array in kept.arrays.items()}
        self.components_ = arrays["projection"]
        self._n_features_out = self.components_.shape[1]
        self.row_norm_ = float(arrays["row_norm"][0])
        self.centres_, self.counts_ = arrays["centres"], arrays["counts"]
        self.mean_ = arrays["means"]
        self.covariance_ = arrays["covariances"]

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Array:  # noqa: ARG002
        """Refused: it would hand out the private rows themselves, projected and without noise."""
        raise InvalidInput("fit_transform: X is private, `transform` adds no noise; use fit and sample")

    def transform(self, X: ArrayLike) -> Array:
        """A recipient's own rows in the projected space (units of the row norm), without noise."""
        self._require_fitted()
        values = as_numbers(X)
        self._require_features(X, values)
        lower, scale = self._ranges()
        encoded = (values - lower) / scale - 0.5
        if self.unit_rows:
            length = np.linalg.norm(encoded, axis=1, keepdims=True)
            encoded = encoded / np.where(length > 0.0, length, 1.0)
        projected: Array = encoded / self.row_norm_ @ self.components_
        return projected

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Projected rows back in the original columns, within their bounds."""
        self._require_fitted()
        values, width = as_numbers(X), self.components_.shape[1]
        rule = f"X has {values.shape[1]} features: projected rows have {width}; give rows of `transform`"
        require(values.shape[1] == width, rule)
        lower, scale = self._ranges()
        encoded = values @ self.components_.T * self.row_norm_
        return np.clip(encoded + 0.5, 0.0, 1.0) * scale + lower

    def sample(self, n_samples: int, sample_seed: int = 0) -> Array | tuple[Array, Array]:
        """Synthetic rows: X, or (X, y) with a label; in the original columns if `reconstruct`."""
        self._require_fitted()
        n_samples = read_count("n_samples", n_samples)
        rng = np.random.default_rng(read_count("sample_seed", sample_seed, 0))
        parts, labels = [], []
        for group, size in enumerate(conditional_sizes(self.counts_, n_samples)):
            rows = sample_gaussian(self.mean_[group], self.covariance_[group], size, rng)
            if self.mode == "supervised":
                labels.append(np.clip(rows[:, -1], -1.0, 1.0) * self._target_bound())
                rows = rows[:, :-1]
            elif self.mode == "gmm":
                labels.append(np.full(size, group))
            parts.append(self._placed(rows, self.centres_[group]))
        order = rng.permutation(n_samples)
        drawn = np.concatenate(parts)[order]
        if self.mode == "unsupervised":
            return drawn
        chosen = np.concatenate(labels)[order]
        return drawn, (chosen if self.mode == "supervised" else class_values(self.classes)[chosen])

    def _placed(self, rows: Array, centre: Array) -> Array:
        """Drawn offsets about their centre, in the space that was asked for."""
        if not self.reconstruct:
            placed: Array = rows + centre @ self.components_
            return placed
        lower, scale = self._ranges()
        encoded = (rows @ self.components_.T + centre) * self.row_norm_
        return np.clip(encoded + 0.5, 0.0, 1.0) * scale + lower

    def _schema(self, shape: tuple[int, ...]) -> Schema:
        relation = read_relation(self.neighbours)
        features = numeric_schema(shape[1], self.bounds, Unit.ROW, relation).columns
        rows = shape[0] if relation.rows_are_public else None
        require(rows != 0, "X with 0 rows: nothing to release; give at least one row")
        if self.mode == "unsupervised":
            return Schema(columns=features, unit=Unit.ROW, neighbours=relation, rows=rows)
        if self.mode == "gmm":
            names = tuple(str(index) for index in range(len(class_values(self._public_classes()))))
            label = Column(name="label", kind=Kind.CATEGORY, categories=names)
        else:
            bound = self._target_bound()
            label = Column(name="label", kind=Kind.NUMBER, lower=-bound, upper=bound)
        return Schema(
            columns=(*features, label), label="label", unit=Unit.ROW, neighbours=relation, rows=rows
        )

    def _label_codes(self, y: ArrayLike | None, rows: int) -> Array:
        """Class codes or clamped targets; a label outside the declared classes is the first class."""
        if y is None:
            raise InvalidInput(f"y=None: mode={self.mode} needs labels")
        if self.mode == "supervised":
            return label_numbers(y, rows)
        return label_codes(y, self._public_classes(), rows)

    def _public_classes(self) -> ArrayLike:
        if self.classes is None:
            raise InvalidInput("classes=None: mode=gmm needs the public list of classes")
        return self.classes

    def _target_bound(self) -> float:
        if self.y_bound is None:
            raise InvalidInput("y_bound=None: mode=supervised needs a public bound of |y|")
        is_number = isinstance(self.y_bound, Real) and not isinstance(self.y_bound, bool)
        rule = f"y_bound={self.y_bound!r}: must be a finite number above 0"
        require(is_number and 0.0 < self.y_bound < float("inf"), rule)
        return float(self.y_bound)

    def _ranges(self) -> tuple[Array, Array]:
        lower, upper = (np.asarray(side) for side in read_bounds(self.bounds))
        return lower, upper - lower
