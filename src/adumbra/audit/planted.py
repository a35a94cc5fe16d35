# ruff: noqa: ANN401 - a wrong version stands in for functions of many types
"""Ways to plant a bug: patches (object, name, wrong version), which the auditor's own process sets."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from adumbra.data.bounds import BoundedRows
from adumbra.data.encode import Encoder
from adumbra.data.sources import Batch, Source
from adumbra.engine.local import Engine, LocalEngine
from adumbra.mechanisms import methods
from adumbra.mechanisms.base import Draft
from adumbra.mechanisms.ron_gauss import sums
from adumbra.numerics import NOISE_BLOCK, ROW_BITS, Array, Ints, Lattice, coarsen
from adumbra.privacy import noise, selection
from adumbra.privacy.grant import Grant
from adumbra.privacy.noise import add_gaussian
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.moments import symmetric

Patch = tuple[object, str, object]


def weaker_noise(factor: float) -> list[Patch]:
    """The sampler itself draws noise that is too narrow."""
    right = noise._draw  # noqa: SLF001 - the sampler's inside is what is planted wrong

    def wrong(units: Ints, laws: Any, members: Ints, key: Any) -> Ints:
        drawn = right(units, laws, members, key)
        return np.asarray(units + np.rint((drawn - units) * factor).astype(np.int64))

    return [(noise, "_draw", wrong)]


def weaker_selection() -> list[Patch]:
    """Selections whose Gumbel noise is half as wide."""
    right = selection._intervals  # noqa: SLF001 - as above

    def wrong(drop: Ints, ratio: float, words: Any) -> tuple[Array, Array]:
        return right(drop, 2.0 * ratio, words)

    return [(selection, "_intervals", wrong)]


def sensitivity(kind: type, wrong: Callable[[Any, Any], Sensitivity]) -> list[Patch]:
    """A statistic that declares another sensitivity."""
    return [(kind, "sensitivity", wrong)]


Change = Callable[[Draft, Source, Any, Grant], Draft]
Draw = Callable[[Any, Source, Engine, Grant], Draft]


def replaced_draw(name: str, draw: Draw) -> list[Patch]:
    """The list of methods with another `draw` in the place of one."""
    right = methods.method_named(name)
    wrong = replace(right, steps=lambda: replace(right.steps(), draw=draw))
    changed = tuple(wrong if one is right else one for one in methods.METHODS)
    return [(methods, "METHODS", changed)]


def altered_draw(name: str, change: Change) -> list[Patch]:
    """A draw that does something more with the private rows after the right one."""
    right = methods.method_named(name).draw

    def wrong(settled: Any, source: Source, engine: Engine, grant: Grant) -> Draft:
        return change(right(settled, source, engine, grant), source, settled.config, grant)

    return replaced_draw(name, wrong)


def rows_of(source: Source) -> Array:
    """All private rows."""
    blocks = [batch.values for batch in source.batches(NOISE_BLOCK) if isinstance(batch, Batch)]
    return np.concatenate(blocks) if blocks else np.zeros((0, 1))


def with_fact(name: str, fact: Callable[[Draft, Source, Grant], object]) -> Change:
    """The draft with one more fact on its card."""

    def change(draft: Draft, source: Source, _config: Any, grant: Grant) -> Draft:
        return replace(draft, facts={**draft.facts, name: fact(draft, source, grant)})

    return change


def in_private_order(draft: Draft, source: Source, _config: Any, _grant: Grant) -> Draft:
    """Synthetic rows in the order of the private ones."""
    table = draft.table()
    values = rows_of(source)[: table.num_rows].sum(axis=1)
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return replace(draft, tables={"data": table.take(pa.array(order))}, pending={})


def unclipped(x: Array, norm: float, *, labels: Ints | None = None, owned: bool = False) -> BoundedRows:
    """Rows that claim a bound which nothing enforces."""
    del owned
    return BoundedRows(units=np.rint(x * (2.0**ROW_BITS / norm)), norm=norm, labels=labels)


def data_norm(right: Callable[..., BoundedRows]) -> Callable[..., BoundedRows]:
    """Divide by the longest row that is there instead of the declared bound."""

    def wrong(x: Array, _norm: float, **options: Any) -> BoundedRows:
        longest = float(np.sqrt(np.einsum("ij,ij->i", x, x).max(initial=1e-12)))
        return right(x, longest, **options)

    return wrong


def data_bounds(right: Callable[[Encoder, Batch], Array]) -> Callable[[Encoder, Batch], Array]:
    """Scale columns by the least and largest value that is there."""

    def wrong(self: Encoder, batch: Batch) -> Array:
        x = right(self, batch)
        if len(x) == 0:
            return x
        low, high = x.min(axis=0), x.max(axis=0)
        return np.asarray((x - low) / np.where(high > low, high - low, 1.0) - 0.5)

    return wrong


def skipping_missing(right: Callable[[Encoder, Batch], Array]) -> Callable[[Encoder, Batch], Array]:
    """Leave rows out that hold nothing but missing values."""

    def wrong(self: Encoder, batch: Batch) -> Array:
        fills = np.array([column.fill for column in self.schema.columns])
        kept = (batch.values != fills).any(axis=1)
        return right(self, Batch(batch.start, batch.values[kept]))

    return wrong


def exact_purpose(purpose: str) -> list[Patch]:
    """One of RON-Gauss's statistics goes on without its noise."""
    right = sums._noisy  # noqa: SLF001

    def wrong(value: Lattice, name: str, settled: Any, grant: Grant, weights: Any = None) -> Array:
        if name != purpose:
            return right(value, name, settled, grant, weights)
        return coarsen(value, settled.by_purpose[name].exponent).to_float()

    return [(sums, "_noisy", wrong)]


def redrawn_until_positive() -> list[Patch]:
    """Draw the Gram again until no eigenvalue is negative; each draw costs, and one is paid."""
    right = sums._noisy  # noqa: SLF001

    def wrong(value: Lattice, name: str, settled: Any, grant: Grant, weights: Any = None) -> Array:
        if name != "gram":
            return right(value, name, settled, grant, weights)
        one = settled.by_purpose[name]
        width = round((np.sqrt(8 * value.units.shape[-1] + 1) - 1) / 2)
        for block in range(64):
            key = grant.key(name, block)
            noisy = add_gaussian(coarsen(value, one.exponent), one.scale * weights, key).to_float()
            if np.linalg.eigvalsh(symmetric(noisy, width)).min() >= 0:
                break
        return noisy

    return [(sums, "_noisy", wrong)]


def scale_from_rows(place: ModuleType, name: str) -> list[Patch]:
    """Noise whose width follows the exact value that it hides, like a scale by an exact class size."""
    right = vars(place)[name]

    def wrong(value: Lattice, scale: Any, key: Any) -> Lattice:
        places = np.arange(1, value.units.size + 1)
        share = float((value.units.reshape(-1) * places).sum() % 997) / 997
        noisy: Lattice = right(value, scale * (1.0 + share), key)
        return noisy

    return [(place, name, wrong)]


def rows_counted_again() -> list[Patch]:
    """The engine of production adds what it has summed once more."""
    right = LocalEngine.fold

    def wrong(self: LocalEngine, *passed: Any, **named: Any) -> Lattice:
        total = right(self, *passed, **named)
        return Lattice(2 * total.units, total.exponent)

    return [(LocalEngine, "fold", wrong)]


class FloatNoise:
    """A value with numpy's float noise on it: not a lattice any more."""

    def __init__(self, value: Lattice, sigma: float) -> None:
        noise = np.random.default_rng(5).normal(scale=sigma, size=value.units.shape)
        self.exponent = value.exponent
        self.units = value.units + noise / value.grid  # no whole numbers

    def to_float(self, order: Literal["K", "F"] = "K") -> Array:
        """As `Lattice.to_float`."""
        return np.ldexp(self.units, self.exponent).astype(np.float64, order=order)


def float_noise(value: Lattice, sigma: float, _key: object) -> FloatNoise:
    """What `add_gaussian` must not be."""
    return FloatNoise(value, sigma)
