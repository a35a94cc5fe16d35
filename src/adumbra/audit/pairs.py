"""Worst-case neighbouring tables: what a case is, and the rows that move most.

A pair is worst when it moves every noised statistic as far as the proof allows: opposite or orthogonal
rows at the corners of the declared box, a category or class that changes, a cell from one bound to the
other, one item more. Where the worst one depends on a drawn matrix several are listed, and the recorder
takes the one that moves most.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from adumbra.matrices import ProjectionMatrix, orthonormal_matrix, public_matrix
from adumbra.numerics import Array
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

WIDTH = 4  # columns; in units of the encoding the corners of their box have length 1
HEAPS = 8  # bins of a number beside a category
WIDE = 32  # columns of rows that a projection to WIDTH can make longer than any clip radius
MANY = 20_000  # rows at the middle, so that a private mean and radius are known well
MANY_ITEMS = 128  # enough of them on every side of a sparse matrix
VERY_MANY = 200_000  # the same for means of every column by class
ROW, ELEMENT = Unit.ROW, Unit.ELEMENT
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
Tables = tuple[object, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One mechanism under one claim, with neighbouring tables to attack it with."""

    name: str  # method/variant/relation
    config: Any  # the mechanism's own frozen config
    schema: Schema
    tables: tuple[Tables, ...]  # candidates; the first is used until another is chosen
    is_worst: bool = True  # whether the pair is made to show nearly all of the claim

    @property
    def method(self) -> str:
        """The first part of the name: what `--method` selects."""
        return self.name.split("/", 1)[0]

    @property
    def before(self) -> object:
        """The table."""
        return self.tables[0][0]

    @property
    def after(self) -> object:
        """Its neighbour."""
        return self.tables[0][1]

    def candidates(self) -> Iterator["Case"]:
        """The case with each pair of tables."""
        return (replace(self, tables=(pair,)) for pair in self.tables)


def corners() -> Array:
    """Rows at the corners of the box."""
    return np.array(list(product((-1.0, 1.0), repeat=WIDTH)))


def replaced(schema: Schema, rows: int, first: Array, second: Array) -> Tables:
    """A middle table whose first row is one of two."""
    tables = np.zeros((2, rows, len(first)))
    tables[0, 0], tables[1, 0] = first, second
    return table_of(schema, tables[0]), table_of(schema, tables[1])


def added(schema: Schema, rows: int, row: Array) -> Tables:
    """A middle table, and the same with one row more."""
    base = np.zeros((rows, len(row)))
    return table_of(schema, base), table_of(schema, np.concatenate([base, row[None]]))


def changed(schema: Schema, rows: int, first: Array, second: Array) -> Tables:
    """A middle table in which the first row becomes the second, or which the first one joins."""
    if schema.neighbours is ADD:
        return added(schema, rows, first)
    return replaced(schema, rows, first, second)


def heaps(schema: Schema, rows: int) -> Tables:
    """As many rows in each of eight bins, and one that goes from the first to the last, with its class.

    Every cell of every histogram moves. Centred rows of different bins stand nearly at right angles,
    where their products differ most: the more bins, the nearer.
    """
    places = np.linspace(-1.0, 1.0, HEAPS)
    base = np.zeros((rows, WIDTH + 1))
    base[:, :WIDTH] = places[np.arange(rows) % HEAPS, None]
    one, other = (
        np.concatenate([np.append(np.full(WIDTH, place), code)[None], base])
        for place, code in ((places[0], 0.0), (places[-1], 1.0))
    )
    return table_of(schema, base if schema.neighbours is ADD else one), table_of(schema, other)


def between(schema: Schema, rows: int, first: Array, second: Array) -> Tables:
    """Half of the rows at each of two places, and one that goes over: along what varies most."""
    tables = np.tile(np.stack([first, second]), (2, rows // 2, 1))
    tables[1, 0] = second
    return table_of(schema, tables[0]), table_of(schema, tables[1])


def table_of(schema: Schema, values: Array) -> object:
    """Numbers and codes as the schema's own columns; an array where all are numbers."""
    if all(one.kind is Kind.NUMBER and one.missing != "null" for one in schema.columns):
        return values
    columns: dict[str, pa.Array] = {}
    for column, cells in zip(schema.columns, values.T, strict=True):
        if column.kind is Kind.CATEGORY:
            levels = pa.array([*column.categories, None], pa.string())  # the last: what cannot be read
            codes = cells.astype(np.int64)
            columns[column.name] = levels.take(pa.array(np.where(codes < 0, codes + len(levels), codes)))
        elif column.is_numeric:
            columns[column.name] = pa.array(cells, mask=cells > column.limits[1])  # above: kept missing
        else:
            columns[column.name] = pa.array(cells > 0)
    return pa.table(columns)


def corner_pairs(schema: Schema, rows: int, others: tuple[int, ...]) -> tuple[Tables, ...]:
    """One corner against some of the others, in the order of `corners`: the last is the opposite one."""
    first = corners()
    return tuple(replaced(schema, rows, first[0], first[other]) for other in others)


def longest_projected(family: str) -> Array:
    """The row of the box that the family's public matrix (seed 0) makes longest."""
    matrix = public_matrix(family, WIDE, WIDTH, matrix_seed=0).to_float()
    row = np.linalg.svd(matrix)[0][:, 0]
    return np.asarray(row / np.abs(row).max())


def opposite_sets(matrix: ProjectionMatrix, direction: Array) -> Tables:
    """Item sets that a sparse matrix sends one way along a direction, and the other way."""
    along = matrix.to_float() @ direction
    up, down = (np.flatnonzero(side > 0).tolist() for side in (along, -along))
    return item_table([up, []]), item_table([down, []])


def projected_rows() -> tuple[Array, Array, Array]:
    """Rows whose projections by the public matrix have the worst Grams in L1: one alone, and a pair.

    Equal coordinates are worst alone; of two rows, those that make all |x_i x_j - y_i y_j| equal.
    """
    high, low = np.sqrt(2 + np.sqrt(2)), np.sqrt(2 - np.sqrt(2))
    wanted = np.array([[1.0] * 4, [high, high, low, low], [-low, -low, high, high]])
    rows = wanted @ orthonormal_matrix(WIDTH, WIDTH, matrix_seed=0).to_float().T
    equal, one, other = rows / np.abs(rows).max(axis=1, keepdims=True)
    return equal, one, other


def numbers(unit: Unit, neighbours: Neighbours, width: int = WIDTH) -> Schema:
    """Four (or so many) numbers between -1 and 1."""
    return Schema.numeric(width, -1.0, 1.0, unit=unit, neighbours=neighbours)


def labelled(neighbours: Neighbours, kind: Kind = Kind.CATEGORY) -> Schema:
    """Four numbers with a class of three levels, or with a numeric target."""
    target = Column(name="y", kind=Kind.CATEGORY, categories=("a", "b", "c"))
    if kind is Kind.NUMBER:
        target = Column(name="y", kind=Kind.NUMBER, lower=-1.0, upper=1.0)
    columns = (*numbers(ROW, neighbours).columns, target)
    return Schema(columns=columns, unit=ROW, neighbours=neighbours, label="y")


def keeping_null(schema: Schema) -> Schema:
    """The same, with numbers that stay missing where they cannot be read."""
    columns = [replace(one, missing="null") if one.is_numeric else one for one in schema.columns]
    return replace(schema, columns=tuple(columns))


def unbounded(schema: Schema) -> Schema:
    """The same columns, whose bounds and levels are bought."""
    columns = [
        replace(one, private=True) if one.kind is not Kind.BOOLEAN else one for one in schema.columns
    ]
    return replace(schema, columns=tuple(columns))


def categories(neighbours: Neighbours) -> Schema:
    """Five categories of three and two levels, the last of them the class."""
    columns = tuple(
        Column(name=name, kind=Kind.CATEGORY, categories=levels)
        for name, levels in (("a", ("p", "q", "r")), *((n, ("u", "v")) for n in "bcdy"))
    )
    return Schema(columns=columns, unit=ROW, neighbours=neighbours, label="y")


def crossed(schema: Schema, rows: int) -> Tables:
    """Most rows alike, others of all kinds, and one that goes from a corner to the opposite one.

    Of a column the usual level is the first, of the last but one the second: so the two corners stand
    nearly at right angles around the mean.
    """
    rng = np.random.default_rng(0)
    levels = np.array([len(column.categories) for column in schema.columns])
    base = rng.integers(0, levels, size=(rows, len(levels))).astype(np.float64)
    is_usual = rng.random((rows, len(levels) - 1)) < 0.9
    base[:, :-1] = np.where(is_usual, np.eye(1, len(levels) - 1, len(levels) - 2), base[:, :-1])
    corner = np.concatenate([base, [[0.0] * len(levels)]])
    other = np.concatenate([base, [levels - 1.0]])
    before = base if schema.neighbours is ADD else corner
    return table_of(schema, before), table_of(schema, other)


def mixed(neighbours: Neighbours) -> Schema:
    """Two numbers and two categories, of three and of two levels."""
    columns = (
        Column(name="a", kind=Kind.NUMBER, lower=-1.0, upper=1.0),
        Column(name="b", kind=Kind.NUMBER, lower=-1.0, upper=1.0),
        Column(name="c", kind=Kind.CATEGORY, categories=("p", "q", "r")),
        Column(name="d", kind=Kind.BOOLEAN),
    )
    return Schema(columns=columns, unit=ROW, neighbours=neighbours)


def item_table(rows: list[list[int]]) -> pa.Table:
    """Item sets as a table."""
    return pa.table({"items": pa.array(rows, pa.list_(pa.int64()))})
