"""Relations with an amount: cells and rows that move by just that much, and planted bugs of them."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from adumbra.audit.mutant import sensitivity_mutant
from adumbra.audit.pairs import ELEMENT, ROW, WIDTH, Case, Tables, replaced
from adumbra.matrices import ProjectionMatrix
from adumbra.mechanisms.methods import method_of
from adumbra.mechanisms.projection import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection import rows as projected
from adumbra.mechanisms.projection.plan import MATRIX, secret_projection
from adumbra.mechanisms.projection.rows import row_space
from adumbra.numerics import Array
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Moved, Moves, Relation, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.statistics import move_sensitivity
from adumbra.statistics.base import Sensitivity

AMOUNT, TINY = 0.25, 2.0**-20  # the second is far below a step of the lattice
WIDTHS = (2.0, 2.0, 1.0, 4.0)  # of the columns: the narrowest moves most


def moving(what: Moved, amount: float = AMOUNT) -> Schema:
    """Four numbers of unequal widths about 0."""
    unit = Unit.ELEMENT if what is Moved.CELL else Unit.ROW
    columns = tuple(
        Column(name=f"x{j}", kind=Kind.NUMBER, lower=-w / 2, upper=w / 2) for j, w in enumerate(WIDTHS)
    )
    return Schema(columns=columns, unit=unit, neighbours=Moves(what, amount))


def secret_matrix(config: JLLaplaceConfig, schema: Schema) -> ProjectionMatrix:
    """The matrix that a recorded release draws: its secret is known here."""
    planned = method_of(config).settle(config, schema).plan
    grant = fixed_grant(0, planned.guarantee, planned.purposes)
    space = row_space(schema, config.row_norm)
    return secret_projection(config, space, grant.key(MATRIX))


def move_cases(epsilon: float, delta: float) -> list[Case]:
    """One cell, and one row, that move by the amount where that moves the release most."""
    gauss = DPProConfig(n_components=WIDTH, epsilon=epsilon, delta=delta)
    pure = JLLaplaceConfig(n_components=WIDTH, epsilon=epsilon)
    cells, rows = moving(Moved.CELL), moving(Moved.ROW)
    one_cell = tuple(_moved(cells, unit) for unit in np.eye(WIDTH))
    public = method_of(gauss).settle(gauss, rows).parts.matrix.to_float() / np.array(WIDTHS)[:, None]
    longest = np.linalg.svd(public)[0][:, 0]
    secret = secret_matrix(pure, rows).to_float() / np.array(WIDTHS)[:, None]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=WIDTH)))
    ways = (secret @ signs.T).T
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    made: tuple[tuple[str, Any, Schema, tuple[Tables, ...]], ...] = (
        ("dppro/cell-moves", gauss, cells, one_cell),
        ("dppro/row-moves", gauss, rows, (_moved(rows, longest),)),
        ("jl-laplace/cell-moves", pure, cells, one_cell),
        ("jl-laplace/cell-moves/tiny", pure, moving(Moved.CELL, TINY), (between_steps(),)),
        ("jl-laplace/row-moves", pure, rows, tuple(_moved(rows, way) for way in ways)),
    )
    return [Case(name=n, config=c, schema=s, tables=t) for n, c, s, t in made]


def _moved(schema: Schema, way: Array) -> Tables:
    """A row at the middle, and the same moved by the amount; just inside, for floats."""
    return replaced(schema, 3, 0.0 * way, way * AMOUNT * (1.0 - 1e-12))


def whole_range(schema: Schema, names: tuple[str, ...]) -> list[tuple[str, Schema]]:
    """A table whose every change is below the amount, so that hostile neighbours are neighbours."""
    far: list[tuple[str, Schema]] = []
    for what, unit in ((Moved.CELL, ELEMENT), (Moved.ROW, ROW)):
        columns = tuple(
            Column(name=name, kind=Kind.NUMBER, lower=-1.0, upper=9.0, cast=True) for name in names
        )
        relation: Relation = Moves(what, 100.0)
        moved = replace(schema, columns=columns, unit=unit, neighbours=relation, label=None)
        far.append((str(what), moved))
    return far


def without_widths(matrix: Any, _spans: Array, amount: float) -> Sensitivity:  # noqa: ANN401
    """The amount as if every column had the width 1 after scaling by the widest."""
    return move_sensitivity.cell_move_sensitivity(matrix, np.full(WIDTH, max(WIDTHS)), amount)


def as_one_cell(matrix: Any, spans: Array, amount: float) -> Sensitivity:  # noqa: ANN401
    """A row that moves as if one cell did (the paper's row scale, t at its minimum)."""
    return move_sensitivity.cell_move_sensitivity(matrix, spans, amount)


def without_rounding(spans: Array, amount: float) -> Array:
    """The amount alone: cells are rounded to the lattice after it."""
    return np.minimum(amount / spans, 1.0)


def between_steps() -> Tables:
    """A cell that moves by far less than a step of the lattice: one is rounded down, the other up."""
    half = np.zeros(WIDTH)
    half[2] = 2.0**-16  # of the column of width 1
    return replaced(moving(Moved.CELL), 3, half * (1 - 1e-3), half * (1 + 1e-3))


MOVE_MUTANTS = (
    sensitivity_mutant(
        name="moves: the amount in units of the widest column",
        case="dppro/cell-moves",
        patches=lambda: [(projected, "cell_move_sensitivity", without_widths)],
    ),
    sensitivity_mutant(
        name="moves: a row that moves is charged as one cell",
        case="jl-laplace/row-moves",
        patches=lambda: [(projected, "row_move_sensitivity", as_one_cell)],
    ),
    sensitivity_mutant(
        name="moves: the rounding to the lattice is forgotten",
        case="jl-laplace/cell-moves/tiny",
        patches=lambda: [(move_sensitivity, "cell_widths", without_rounding)],
    ),
)
