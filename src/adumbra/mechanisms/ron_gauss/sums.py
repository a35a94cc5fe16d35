"""The statistics of private rows: first sum and spread, then the Gram; each exact, each noised once.

Rows are read once: their projections are small, so they are kept in memory (up to `KEPT_BYTES`) until
the first noisy numbers say where to centre and where to clip. Beyond that, with `normalise`, and on the
workers of a cluster, the source is read again; where both ways are open they give the same bits.

Proof       release.proof.md, of `draw_moments`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from adumbra.data.bounds import BoundedRows, augment, bound_rows, project, with_constant
from adumbra.data.encode import Encoder
from adumbra.data.sources import Batch, Source, SourceView, few_rows
from adumbra.engine.local import Engine
from adumbra.errors import require
from adumbra.mechanisms.projection.rows import EXACT_EXPONENT
from adumbra.mechanisms.ron_gauss.scales import (
    Scales,
    gram_weights,
    gram_width,
    mean_statistic,
    released_entries,
    second_statistic,
)
from adumbra.numerics import ROW_BITS, Array, Ints, Lattice, coarsen, row_squares
from adumbra.postprocess.ron_gauss.centre import Centre, centre_of, public_centre
from adumbra.postprocess.ron_gauss.model import Released
from adumbra.postprocess.ron_gauss.space import CONSTANT, INTERCEPT, TARGET, Space
from adumbra.privacy.grant import Grant
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.statistics.class_sums import CountedSum, SpreadRows
from adumbra.statistics.moments import symmetric, upper_triangle

KEPT_BYTES = 400 * 2**20  # projected rows held between the two statistics; else rows are read again


@dataclass(frozen=True, slots=True)
class Projected:
    """A block of rows in the p directions: all that the second statistic needs of them."""

    values: NDArray[np.float32]  # in units of the row norm, not clipped
    labels: Ints | None
    targets: Array | None
    weight: int = 1  # as of a batch

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return sum(part.nbytes for part in (self.values, self.labels, self.targets) if part is not None)

    def slice(self, first: int, last: int) -> "Projected":
        """The block itself: it is a noise block, which no engine cuts."""
        require(first == 0 and last == len(self), f"rows {first} to {last}: a kept block is whole")
        return self


def _joined(found: list[Projected]) -> Projected:
    """One block of its slices."""
    if len(found) == 1:
        return found[0]
    labels = [one.labels for one in found if one.labels is not None]
    targets = [one.targets for one in found if one.targets is not None]
    return Projected(
        np.concatenate([one.values for one in found]),
        np.concatenate(labels) if labels else None,
        np.concatenate(targets) if targets else None,
        found[0].weight,
    )


class KeptRows(SourceView):
    """The projected rows of a source, for an engine: they were kept in row order."""

    def __init__(self, source: Source, kept: list[Projected]) -> None:
        super().__init__(source)
        self._kept = kept

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:  # noqa: ARG002
        """All noise blocks, whatever is asked."""
        return iter(cast("list[Batch]", self._kept))


def draw_moments(
    source: Source, space: Space, settled: Scales, *, engine: Engine, grant: Grant
) -> Released:
    """Run the statistics that the plan bought; a noisy result may steer the next (it is released)."""
    statistic = second_statistic(space)
    public = space.layout.schema.rows if space.neighbours.rows_are_public else None
    centre, kept = public_centre(space), None
    reader = _Reader(space)
    if space.private_centring:
        total, kept = _first_pass(source, reader, engine)
        noisy = _noisy(total, "mean", settled, grant)
        centre = centre_of(space, noisy, settled.deviation("mean"), public)
    rows = source if kept is None else KeptRows(source, kept)

    def prepare(batch: Batch | Projected) -> BoundedRows:
        if isinstance(batch, Projected):
            return reader.centred(batch, centre)
        return reader.second(batch, centre)

    exact = engine.fold(rows, prepare, statistic, stage="second moments")  # type: ignore[type-var]
    if not settled.isometric:
        return Released(
            centre=centre, noisy_gram=_noisy(exact, "gram", settled, grant), public_rows=public
        )
    width, entries = gram_width(space), released_entries(space)
    upper = upper_triangle(exact.units.reshape(-1, width, width))
    if entries is None:
        noisy = _noisy(Lattice(upper, exact.exponent), "gram", settled, grant, gram_weights(space))
    else:
        some = Lattice(np.ascontiguousarray(upper[:, entries]), exact.exponent)
        noisy = np.zeros(upper.shape)
        noisy[:, entries] = _noisy(some, "gram", settled, grant, gram_weights(space))
    return Released(centre=centre, noisy_gram=symmetric(noisy, width), public_rows=public)


def _first_pass(
    source: Source, reader: "_Reader", engine: Engine
) -> tuple[Lattice, list[Projected] | None]:
    """The exact sum and spread, and the projected rows if the second statistic can use them."""
    statistic, stage = mean_statistic(reader.space), "private mean"
    if isinstance(statistic, CountedSum):  # of whole rows: nothing is projected yet
        return engine.fold(source, reader.bounded, statistic, stage=stage), None
    # Weighted rows are summed by the engine; the rows of a remote one stay with its workers; and where
    # it is public that projected rows do not fit, none is kept.
    least = 4 * reader.space.components * (source.public_rows() or 0)
    is_remote = getattr(engine, "is_remote", False)
    if reader.space.layout.schema.weight_bits or is_remote or least > KEPT_BYTES:

        def spread(batch: Batch) -> SpreadRows:
            return reader.opened(batch)[0]

        return engine.fold(source, spread, statistic, stage=stage), None
    total, size = statistic.zero(), 0
    kept: list[Projected] | None = []

    def block(batch: Batch) -> tuple[Ints, Projected]:
        added, found = statistic.zero(), []
        for few in few_rows(batch, reader.space.width):  # a wide block is not copied whole
            rows, projected = reader.opened(few)
            added = statistic.add(added, rows)
            found.append(projected)
        return added, _joined(found)

    for part, projected in engine.map_blocks(source, block, stage=stage):
        total += part
        size += projected.nbytes
        if size > KEPT_BYTES:
            kept = None
        if kept is not None:
            kept.append(projected)
    return Lattice(total, statistic.exponent), kept


class _Reader:
    """Row by row, nothing else: bound, project, centre, clip, and add what the mode needs."""

    def __init__(self, space: Space) -> None:
        self.space, self.matrix, self.radius = space, space.matrix(), space.radius
        self.encoder = Encoder(space.layout.schema)

    def opened(self, batch: Batch) -> tuple[SpreadRows, Projected]:
        """Rows for the first statistic, with their spread in the projected ball, and projected."""
        rows = self.bounded(batch)
        projected = self._projected(rows, batch)
        inside = bound_rows(projected.values.astype(np.float64), self.radius, owned=True)
        squares = np.einsum("ij,ij->i", inside.units, inside.units)  # of integers: exact in any order
        spread = np.floor(squares * 2.0 ** -(ROW_BITS + 1))
        return SpreadRows(rows if self.space.columns else inside, spread), projected

    def second(self, batch: Batch, centre: Centre) -> BoundedRows:
        """Rows for the second statistic from the source itself."""
        rows = self.bounded(batch)
        if not self.space.normalise:
            return self.centred(self._projected(rows, batch), centre)
        offsets = _unit(rows.units * 2.0**-ROW_BITS - centre.mean_of(rows.labels))
        return self.centred(self._projected(bound_rows(offsets, 1.0, labels=rows.labels), batch), centre)

    def centred(self, block: Projected, centre: Centre) -> BoundedRows:
        """Centred, clipped at the noisy spread (or the public radius), with class or target."""
        offsets: Array = block.values.astype(np.float64)
        offsets -= centre.shift_of(block.labels)
        small = bound_rows(offsets, centre.clip or self.radius, labels=block.labels, owned=True)
        if block.targets is not None:
            target = np.rint(block.targets * TARGET)
            return with_constant(augment(small, target[:, None], TARGET**2), INTERCEPT)
        if block.labels is not None or self.space.private_centring:
            return small
        return with_constant(small, CONSTANT)

    def bounded(self, batch: Batch) -> BoundedRows:
        """Encoded rows in the unit ball of their public norm, with their class."""
        encoded = self.encoder.encode(batch)
        if self.space.unit_rows:  # the space's norm is 1 then
            encoded = _unit(encoded)
        labels = self.encoder.labels(batch) if self.space.mode == "gmm" else None
        return bound_rows(encoded, self.space.norm, labels=labels, owned=True)

    def _projected(self, rows: BoundedRows, batch: Batch) -> Projected:
        exact = project(rows, self.matrix)
        values = exact.astype(np.float32)
        values *= np.float32(2.0**EXACT_EXPONENT)  # exact: a power of two, far from the smallest float32
        supervised = self.space.mode == "supervised"
        return Projected(values, rows.labels, self.encoder.targets(batch) if supervised else None)


def _unit(x: Array) -> Array:
    """Rows of length 1; the zero row stays zero."""
    length = np.sqrt(row_squares(x))
    return x / np.where(length > 0.0, length, 1.0)[:, None]


def _noisy(
    value: Lattice, purpose: str, settled: Scales, grant: Grant, weights: Array | None = None
) -> Array:
    """The one noise call of a purpose."""
    one = settled.by_purpose[purpose]
    ready, key = coarsen(value, one.exponent), grant.key(purpose)
    if settled.is_pure:
        return add_laplace(ready, one.scale, key).to_float()
    sigma = one.scale if weights is None else one.scale * weights
    return add_gaussian(ready, sigma, key).to_float()
