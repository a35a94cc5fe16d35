"""What DPPro and JL + Laplace share: bounded rows, the exact product x R, the public clip radius.

    row       x <- encoded row / row_norm, inside the unit ball;   y = clip(x R, r)
    element   x <- encoded row, every cell in a range of width 1;  y = x R, nothing clipped
    moves     as element, for one cell or one row that moves by at most a declared amount

A boolean and a category of two levels are one coordinate, -1/2 or 1/2, as a number is.

Released numbers are in units of `RowSpace.norm` (1 for the element unit), so that they lie on a
power-of-two grid; `postprocess.distances` multiplies squared distances back.

Proof       rows.proof.md, of `row_space`, `RowSpace.exact` and, in release.py, `exact_rows`;
            dppro.proof.md and jl_laplace.proof.md, of `unclipped_sensitivity`.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from adumbra.data.bounds import CLIP_BITS, bound_elements, bound_rows, project
from adumbra.data.encode import Encoder
from adumbra.data.set_rows import bound_set_elements, bound_sets, project_sets
from adumbra.data.sources import Batch, SetBatch, few_rows
from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.matrices import ProjectionMatrix
from adumbra.mechanisms import sizes
from adumbra.mechanisms.sizes import Size
from adumbra.numerics import (
    MATRIX_BITS,
    ROW_BITS,
    Array,
    fraction_upper,
    sqrt_upper,
)
from adumbra.postprocess.distances import DistanceModel, NoiseLaw
from adumbra.relations import Moved, Moves, Neighbours, Relation, Unit
from adumbra.schema.schema import Kind, Schema
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.move_sensitivity import cell_move_sensitivity, row_move_sensitivity
from adumbra.statistics.projection_sensitivity import element_sensitivity

PURPOSE = "rows"  # of the noise of both, a key for each block of 4,096 rows
EXACT_EXPONENT = -(ROW_BITS + MATRIX_BITS)  # x R is exact on this grid
ROUNDED_BITS = 30  # an exact product is rounded to noise * 2^-30 at most: one random word still suffices
CLIPPED_BITS = 38  # a clipped row keeps its own grid (radius * 2^-22) down to noise of 2^16 radii
MATRICES = 5  # copies of the matrix while it is drawn and used: numbers, their QR, units, floats

AnyBatch = Batch | SetBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSpace:
    """The public shape of the rows that are projected."""

    unit: Unit
    neighbours: Relation
    width: int  # d
    norm: float  # the length of one released unit
    groups: tuple[slice, ...]  # one-hot groups of three levels and more, among the projected columns
    kept: tuple[int, ...]  # the encoded columns that are projected: of two levels the second alone
    halves: tuple[int, ...]  # where those of two levels stand among the projected columns
    spans: tuple[float, ...]  # of relations with an amount: upper - lower of each projected column
    encoder: Encoder | None = field(repr=False)  # None: item sets

    # Follows from the fields above:
    clips_rows: bool = field(init=False)  # rows are shortened; else a cell is bounded by itself alone
    # Of the projected columns: numbers by their name, levels as name=level; none for item sets
    names: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found = () if self.encoder is None else (self.encoder.names[place] for place in self.kept)
        object.__setattr__(self, "clips_rows", self.neighbours is Neighbours.REPLACE_ONE)
        object.__setattr__(self, "names", tuple(found))

    def exact(self, batch: AnyBatch, matrix: ProjectionMatrix) -> Array:
        """Rows of a block times the matrix, exactly: integers on 2**EXACT_EXPONENT of `norm`."""
        if isinstance(batch, SetBatch):
            sets = bound_sets(batch, self.norm) if self.clips_rows else bound_set_elements(batch)
            return project_sets(sets, matrix)
        if self.encoder is None:
            raise InvalidInput("a table where the schema declares item sets: check the source")
        slices = few_rows(batch, self.width)
        if len(slices) > 1:  # rows are projected one by one, so slices change nothing
            return np.concatenate([self.exact(piece, matrix) for piece in slices])
        encoded = self.encoder.encode(batch)
        if self.halves:  # 0 or 1 becomes -1/2 or 1/2
            encoded = encoded[:, self.kept]
            encoded[:, self.halves] -= 0.5
        if self.clips_rows:
            return project(bound_rows(encoded, self.norm, owned=True), matrix)
        for group in self.groups:  # 0 or 1 becomes -1/2 or 1/2: every cell of a table has the range 1
            encoded[:, group] -= 0.5
        return project(bound_elements(encoded), matrix)

    def largest(self, matrix: ProjectionMatrix) -> float:
        """A bound of every coordinate of x R, after a check that the product of no rows is exact.

        Both depend on public numbers alone: a matrix that is too large is refused before it is paid for.
        """
        if self.encoder is None:
            empty = np.zeros(0, dtype=np.int64)
            self.exact(SetBatch(0, np.zeros(1, dtype=np.int64), empty, self.width), matrix)
        else:
            self.exact(Batch(0, np.zeros((0, len(self.encoder.schema.columns)))), matrix)
        return (
            2.0 * matrix.largest_column * 2.0**matrix.exponent
        )  # twice: no rounding of the sum matters


def row_space(schema: Schema, row_norm: float | None) -> RowSpace:
    """The space of a schema's rows; refuses what has no proof."""
    if schema.unit is Unit.PERSON:
        raise Unsupported(
            "unit=person: a row-by-row release shows how many rows somebody has; use moments, "
            "ron-gauss, lda, pca with output=sample, or top-k"
        )
    if not schema.neighbours.rows_are_public:
        raise Unsupported(
            "neighbours=add-remove: a row-by-row release shows the number of rows; declare replace-one"
        )
    clips = schema.neighbours is Neighbours.REPLACE_ONE
    if not clips and row_norm is not None:
        raise Unsupported(
            f"row_norm={row_norm} with neighbours={schema.neighbours}: shortening a row moves its other "
            "cells when one changes, so one change would count as many; leave row_norm out, or declare "
            "unit='row' with replace-one"
        )
    schema.require_closed()
    schema.require_filled("a projection")
    encoder = Encoder(schema) if schema.items is None else None
    spans = _spans(schema, encoder)
    kept, halves, groups = _columns(encoder)
    width = len(kept) if encoder is not None else schema.width
    return RowSpace(
        unit=schema.unit,
        neighbours=schema.neighbours,
        width=width,
        norm=_row_norm(width, groups, encoder, row_norm) if clips else 1.0,
        groups=groups,
        kept=kept,
        halves=halves,
        spans=spans,
        encoder=encoder,
    )


def _spans(schema: Schema, encoder: Encoder | None) -> tuple[float, ...]:
    """The width of each column where the relation has an amount; only numbers have units to move in."""
    if not isinstance(schema.neighbours, Moves) or encoder is None:
        return ()
    for column in encoder.features:
        if column.kind not in (Kind.NUMBER, Kind.INTEGER):
            raise Unsupported(
                f"column {column.name!r}, kind={column.kind}: does not move by an amount, as "
                f"neighbours={schema.neighbours} asks; declare it a number (true or false as an integer "
                "from 0 to 1), leave it out, or declare one-element"
            )
    return tuple(column.limits[1] - column.limits[0] for column in encoder.features)


def _columns(
    encoder: Encoder | None,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[slice, ...]]:
    """The encoded columns that are projected, where those of two levels stand, and the other groups."""
    kept: list[int] = []
    halves: list[int] = []
    groups: list[slice] = []
    if encoder is None:
        return (), (), ()
    for column, start in zip(encoder.features, encoder.starts, strict=True):
        levels = 1 if column.is_numeric else column.levels
        if levels == 2:
            halves.append(len(kept))
            kept.append(start + 1)
            continue
        if not column.is_numeric:
            groups.append(slice(len(kept), len(kept) + levels))
        kept += range(start, start + levels)
    return tuple(kept), tuple(halves), tuple(groups)


def _row_norm(
    width: int, groups: tuple[slice, ...], encoder: Encoder | None, row_norm: float | None
) -> float:
    """The norm bound asked for, or else the longest row that the schema allows.

    Numbers and two levels lie in [-1/2, 1/2]; each one-hot group holds a single 1.
    """
    if row_norm is not None:
        require(
            math.isfinite(row_norm) and row_norm > 0, f"row_norm={row_norm}: must be finite and above 0"
        )
        return float(row_norm)
    if encoder is None:
        raise InvalidInput("row_norm=None: item sets need one; row_norm=4 keeps rows of 16 items whole")
    single = width - sum(group.stop - group.start for group in groups)
    return sqrt_upper(fraction_upper(Fraction(single, 4) + len(groups)))


def clip_exponent(radius: float) -> int:
    """The grid on which `bounds.clip_projected` leaves rows of this radius."""
    return math.frexp(radius)[1] - CLIP_BITS


def default_family(family: str, space: RowSpace, n_components: int, *, grouped: str) -> str:
    """The family asked for, or the best proven one for the unit.

    For elements the count-sketch has norm 1 in L1 and in L2, exactly and for any k; `grouped` is taken
    where one-hot groups make differences of its rows count. For rows haar has the smallest radius and
    the smallest variance of all, but needs k <= d.
    """
    if family != "auto":
        return family
    if space.unit is Unit.ELEMENT:
        return grouped if space.groups else "sparse"
    return "haar" if n_components <= space.width else "gaussian"


def column_names(n_components: int) -> list[str]:
    """The names of the released columns."""
    return [f"y{j + 1}" for j in range(n_components)]


def size_of(space: RowSpace, schema: Schema, n_components: int, *, released: bool) -> Size:
    """Memory and disk of projected rows: the matrix, blocks on their way, a row group of the file."""
    names, matrix = column_names(n_components), space.width * n_components
    return sizes.projected_size(
        schema, names, encoded=space.width, matrix=matrix, released=released, copies=MATRICES
    )


def natural_exponent(matrix: ProjectionMatrix) -> int:
    """The coarsest grid that every exact product lies on: powers of two common to all entries."""
    common = int(np.gcd.reduce(np.abs(matrix.units.astype(np.int64)), axis=None))
    shift = (common & -common).bit_length() - 1 if common else 0
    return EXACT_EXPONENT + shift


def distance_model(
    space: RowSpace, matrix: ProjectionMatrix, law: NoiseLaw, nonzeros: int
) -> DistanceModel:
    """How to read distances off the release."""
    return DistanceModel(
        family=matrix.family,
        n_features=matrix.n_features,
        n_components=matrix.n_components,
        noise=law,
        unit=space.norm,
        nonzeros=nonzeros,
    )


def unclipped_sensitivity(space: RowSpace, matrix: ProjectionMatrix) -> Sensitivity:
    """How far neighbours move x R for this matrix, in L1 and L2."""
    relation = space.neighbours
    if not isinstance(relation, Moves):
        return element_sensitivity(matrix, groups=space.groups)
    spans = np.array(space.spans)
    if relation.what is Moved.CELL:
        return cell_move_sensitivity(matrix, spans, relation.amount)
    return row_move_sensitivity(matrix, spans, relation.amount)
