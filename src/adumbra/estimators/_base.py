"""What every estimator shares: schema from keywords, an in-memory account, the summed guarantee.

An estimator is a thin face for arrays and notebooks. Without a ledger it keeps a private one in memory;
`guarantee_` covers every fit of that object. Clones have accounts of their own, so the budgets of a grid
search add up over its clones: tune on public data.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from adumbra.data.schema import Schema
from adumbra.data.sources import Source, open_source
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput, require
from adumbra.mechanisms.base import Draft, Plan
from adumbra.numerics import Array
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.workflow import Config, draw, plan

Bounds = tuple[float, float] | tuple[Sequence[float], Sequence[float]]


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the faces: constructor keywords only, fitted attributes end in `_`, no `random_state`."""

    guarantee_: PrivacyGuarantee

    def _pay_and_draw(self, source: Source, config: Config) -> tuple[Plan, Draft]:
        """Charge an in-memory account, draw, and add this fit to the object's guarantee."""
        planned = plan(config, source.schema)
        ledger = memory_ledger()
        amount = planned.guarantee
        epsilon = amount.epsilon_at(amount.delta) if amount.delta else amount.epsilon_at(0.0)
        population = Population("estimator", amount.unit, amount.neighbours, epsilon, amount.delta)
        ledger.register(population)
        entry = ledger.reserve("estimator", amount, request={}, source_pin=source.pin())
        grant = ledger.draw(entry, planned.purposes)
        draft = draw(source, config, engine=LocalEngine(), grant=grant)
        spent: PrivacyGuarantee | None = getattr(self, "guarantee_", None)
        self.guarantee_ = amount if spent is None else spent.compose(amount)
        return planned, draft


def array_source(x: ArrayLike, bounds: Bounds, unit: Unit, neighbours: Neighbours) -> Source:
    """A numeric array with declared bounds as a source; bounds are never taken from the array."""
    values = as_numbers(x)
    require(
        values.ndim == 2, f"X with {values.ndim} dimensions: must be two-dimensional, one row a record"
    )
    if bounds is None:
        raise InvalidInput("bounds=None: declare (lower, upper) from public knowledge, never from X")
    lower, upper = bounds
    schema = Schema.numeric(values.shape[1], lower, upper, unit=unit, neighbours=neighbours)
    return open_source(values, schema)


def as_numbers(x: ArrayLike, name: str = "X") -> Array:
    """The array as float64; a cell that is no number becomes NaN, which the schema's rule then fills.

    numpy's own conversion would raise and print the cell.
    """
    try:
        given = np.asarray(x)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: every row must have the same number of cells") from None
    if given.dtype.kind in "biuf":
        return given.astype(np.float64)
    values = np.full(given.shape, np.nan)
    for place, cell in np.ndenumerate(given):
        try:
            values[place] = float(cell)
        except (TypeError, ValueError, OverflowError):
            continue
    return values
