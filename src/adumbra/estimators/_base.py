"""What every estimator shares: schema from keywords, an in-memory account, the summed guarantee.

An estimator is a thin layer for arrays and notebooks. Without a ledger it keeps a private one in memory;
`guarantee_` covers every fit of that object. Clones have accounts of their own, so the budgets of a grid
search add up over its clones: tune on public data.
"""

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from adumbra.data.opening import open_source
from adumbra.data.sources import Source
from adumbra.errors import InvalidInput, VerificationFailed, require
from adumbra.estimators._inputs import feature_names, read_bounds, read_relation, rows_of
from adumbra.estimators._saving import Kept, read_estimator, write_estimator
from adumbra.mechanisms.base import Config, Draft, Settled
from adumbra.mechanisms.methods import method_of
from adumbra.numerics import Array
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema
from adumbra.workflow import prepare_in_memory

LABEL = "label"  # the column of y beside an array

_Kind = TypeVar("_Kind", bound=Config)

# Ends the docstring of every estimator; indented as they are.
BUDGET = """
    Notes
    -----
    Every release pays `epsilon` again. `guarantee_` covers what this one object has released, refits
    included, and nothing else. A clone starts at nothing: `clone`, `cross_val_score` and `GridSearchCV`
    make clones, each of which pays, and their sum is shown nowhere. Tune on public data. To have spends
    added up and refused across objects, processes and days, use `adumbra.release` with a ledger.
    `save(path)` writes what was released, with `guarantee_`, and `load(path)` reads it back.
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

    def _config(self) -> Config:
        """The method's config, from the keywords of the constructor."""
        raise NotImplementedError

    def _config_of(self, kind: type[_Kind], **fixed: object) -> _Kind:
        """A config whose options are the keywords of the same names, and some that are fixed."""
        given = vars(self)  # not get_params: it knows no keyword that a subclass sets itself
        same = {name: given[name] for name in signature(kind).parameters if name in given}
        return kind(**same, **fixed)

    def _keep(self, kept: Kept, settled: Settled[Any, Any]) -> None:
        """Set the fitted attributes from what was released."""
        raise NotImplementedError

    def _note(
        self, settled: Settled[Any, Any], arrays: Mapping[str, NDArray[Any]], **facts: object
    ) -> None:
        """Keep what was released, for use and for `save`."""
        params = dict(self.get_params(deep=False))
        self._kept = Kept(params=params, schema=settled.schema, arrays=dict(arrays), facts=facts)
        self._keep(self._kept, settled)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write what was released and its guarantee to one new safetensors file; costs nothing.

        Parameters
        ----------
        path : the file to write
        force : whether to replace a file that exists
        """
        kept: Kept | None = getattr(self, "_kept", None)
        if kept is None:
            raise InvalidInput(
                f"save: this {type(self).__name__} has released nothing yet; fit it first"
            )
        names = getattr(self, "feature_names_in_", None)
        said = {
            "features": [self.n_features_in_, None if names is None else names.tolist()],
            "guarantee": self.guarantee_.to_dict(),
        }
        write_estimator(Path(path), type(self).__name__, kept, said, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """An estimator as `save` wrote it: it can do all that costs nothing, and a further fit adds up.

        Raises
        ------
        InvalidInput for a file of another class, VerificationFailed for one that was changed.
        """
        kept, header = read_estimator(Path(path), cls.__name__)
        try:
            made = cls(**kept.params)
            settled = method_of(made._config()).settle(made._config(), kept.schema)
            width, names = header["features"]
            made.n_features_in_ = int(width)
            if names is not None:
                made.feature_names_in_ = np.array(names, dtype=object)
            made.guarantee_ = PrivacyGuarantee.from_dict(header["guarantee"])
            made._kept = kept
            made._keep(kept, settled)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise VerificationFailed(
                f"{path}: its parts do not fit together; fit and save again"
            ) from None
        return made

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

    def _shown(self, table: pa.Table) -> pa.Table | Array:
        """A table for a schema, an array of the feature columns for bounds."""
        if self.schema is not None:
            return table
        names = [name for name in table.column_names if name != LABEL]
        return np.column_stack([table[name].to_numpy() for name in names])


def numeric_schema(width: int, bounds: object, unit: Unit, neighbours: Neighbours) -> Schema:
    """An all-number schema; bounds are declared, never taken from the array."""
    lower, upper = read_bounds(bounds)
    require(width >= 1, "X without a column: give rows x columns")
    return Schema.numeric(width, lower, upper, unit=unit, neighbours=neighbours)
