"""What every estimator shares: schema from keywords, an in-memory account, the summed guarantee.

An estimator is a thin face for arrays and notebooks. Without a ledger it keeps a private one in memory;
`guarantee_` covers every fit of that object. Clones have accounts of their own, so the budgets of a grid
search add up over its clones: tune on public data.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from adumbra.data.sources import Source, open_source
from adumbra.errors import require
from adumbra.estimators._inputs import feature_names, read_bounds, read_relation, rows_of
from adumbra.mechanisms.base import Config, Draft, Settled
from adumbra.numerics import Array
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema
from adumbra.workflow import prepare_in_memory

# Ends the docstring of every estimator; indented as they are.
BUDGET = """
    Notes
    -----
    Every release pays `epsilon` again. `guarantee_` covers what this one object has released, refits
    included, and nothing else. A clone starts at nothing: `clone`, `cross_val_score` and `GridSearchCV`
    make clones, each of which pays, and their sum is shown nowhere. Tune on public data. To have spends
    added up and refused across objects, processes and days, use `adumbra.release` with a ledger.
    """


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class: constructor keywords only, fitted attributes end in `_`, no `random_state`."""

    guarantee_: PrivacyGuarantee

    def __init_subclass__(cls, **keywords: Any) -> None:  # noqa: ANN401  (passed on)
        """Say in every public docstring what pays."""
        super().__init_subclass__(**keywords)
        if cls.__module__.startswith("adumbra.") and cls.__doc__ and "Parameters" in cls.__doc__:
            cls.__doc__ = cls.__doc__.rstrip() + "\n" + BUDGET

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  (scikit-learn has no types)
        """Noise differs between fits; a cell that is no number is read as missing."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags

    def _pay_and_draw(self, source: Source, config: Config) -> tuple[Settled[Any, Any], Draft]:
        """Charge an account in memory, draw, and add this fit to the object's guarantee."""
        require(source.public_rows() != 0, "X with 0 rows: nothing to release; give at least one row")
        with prepare_in_memory(source, config) as prepared:
            draft = prepared.draw()
        amount = prepared.plan.guarantee
        spent: PrivacyGuarantee | None = getattr(self, "guarantee_", None)
        self.guarantee_ = amount if spent is None else spent.compose(amount)
        return prepared.settled, draft

    def _note_features(self, x: object, width: int) -> None:
        """Remember the number of columns of X and, if it is a table, their names."""
        self.n_features_in_ = width
        names = feature_names(x)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _require_features(self, x: object, values: Array) -> None:
        """Refuse rows that are unlike those of the fit, in number or names of columns."""
        width, expected = values.shape[1], self.n_features_in_
        name = type(self).__name__
        rule = f"X has {width} features, but {name} is expecting {expected} features as input"
        require(width == expected, rule)  # scikit-learn's own words, which its checks look for
        names, fitted = feature_names(x), getattr(self, "feature_names_in_", None)
        same = names is None or fitted is None or np.array_equal(names, fitted)
        require(same, "X: its columns are named unlike those of the fit; give the same ones in order")

    def _require_fitted(self) -> None:
        """Raise scikit-learn's NotFittedError before the first fit."""
        check_is_fitted(self, "guarantee_")


class TableEstimator(PrivateEstimator):
    """Estimators that take either a table with a schema, or an array with bounds (and classes)."""

    bounds: Any
    schema: Schema | None
    neighbours: str | None

    def _schema_source(self, x: object, y: object) -> Source:
        """A table with its schema; what the schema declares may not be said otherwise beside it."""
        schema = self.schema
        kind = type(schema).__name__
        require(isinstance(schema, Schema), f"schema of type {kind}: give adumbra.Schema.read(path)")
        assert isinstance(schema, Schema)  # noqa: S101  (for mypy; `require` raised)
        require(y is None, "y: with a schema the label is one of the table's columns; leave y out")
        for name in ("bounds", "classes"):
            is_absent = getattr(self, name, None) is None
            require(is_absent, f"{name}: the schema declares them; leave {name} or schema out")
        if self.neighbours is not None:
            said, declared = read_relation(self.neighbours), schema.neighbours
            require(
                said is declared,
                f"neighbours={str(said)!r}: the schema declares {str(declared)!r}; leave it out",
            )
        return open_source(x, schema)

    def _array(self, x: object) -> tuple[Array, Schema]:
        """The rows of an array with declared bounds, and their schema."""
        relation = Neighbours.REPLACE_ONE if self.neighbours is None else read_relation(self.neighbours)
        values = rows_of(x, self.bounds, relation)
        return values, numeric_schema(values.shape[1], self.bounds, Unit.ROW, relation)


def numeric_schema(width: int, bounds: object, unit: Unit, neighbours: Neighbours) -> Schema:
    """An all-number schema; bounds are declared, never taken from the array."""
    lower, upper = read_bounds(bounds)
    require(width >= 1, "X without a column: give rows x columns")
    return Schema.numeric(width, lower, upper, unit=unit, neighbours=neighbours)
