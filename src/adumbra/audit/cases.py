"""The table of cases: every mechanism, unit, relation and currency with its worst-case neighbours."""

from itertools import product
from typing import Any

import numpy as np

from adumbra.audit.pairs import (
    ADD,
    ELEMENT,
    MANY,
    REPLACE,
    ROW,
    WIDTH,
    Case,
    Tables,
    added,
    corner_pairs,
    corners,
    first_chosen,
    item_table,
    labelled,
    mixed,
    numbers,
    projected_rows,
    replaced,
)
from adumbra.data.schema import ItemSpec, Kind, Schema
from adumbra.errors import InvalidInput
from adumbra.mechanisms import dppro, jl_laplace, lda, moments, pca, ron_gauss, topk
from adumbra.mechanisms.moments_plan import MomentsConfig
from adumbra.relations import Neighbours

DELTA = 1e-6
ITEMS = 40


def methods() -> tuple[str, ...]:
    """Every method that has cases."""
    return tuple(dict.fromkeys(case.method for case in all_cases(1.0)))


def all_cases(epsilon: float, delta: float | None = None, method: str | None = None) -> list[Case]:
    """Every case at this epsilon; delta=0 keeps the pure ones, delta>0 the Gaussian ones (at it)."""
    gauss = delta or DELTA
    cases = [
        *_projections(epsilon, gauss),
        *_ron_gauss(epsilon, gauss),
        *_topk(epsilon, gauss),
        *_components(epsilon, gauss),
        *_moments(epsilon, gauss),
    ]
    known = tuple(dict.fromkeys(case.method for case in cases))
    if method is not None and method not in known:
        raise InvalidInput(f"method={method}: unknown; choose one of {', '.join(known)}")
    kept = [case for case in cases if method in (None, case.method)]
    if delta is None:
        return kept
    return [case for case in kept if (case.config.delta == 0) == (delta == 0)]


def _projections(epsilon: float, delta: float) -> list[Case]:
    element = numbers(ELEMENT, Neighbours.ONE_ELEMENT)
    cells = tuple(replaced(element, 3, -unit, unit) for unit in np.eye(WIDTH))
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((48, WIDTH))
    directions /= np.abs(directions).max(axis=1, keepdims=True)
    gauss = dppro.DPProConfig(n_components=WIDTH, epsilon=epsilon, delta=delta)
    pure = jl_laplace.JLLaplaceConfig(n_components=WIDTH, epsilon=epsilon)
    short = jl_laplace.JLLaplaceConfig(n_components=WIDTH, epsilon=epsilon, row_norm=0.5)
    row = numbers(ROW, REPLACE)
    anywhere = tuple(replaced(row, 3, one, -one) for one in directions)
    opposite = corner_pairs(row, 3)[-1:]
    return [
        Case(name="dppro/element", module=dppro, config=gauss, schema=element, tables=cells),
        Case(name="dppro/row", module=dppro, config=gauss, schema=row, tables=opposite),
        Case(name="jl-laplace/element", module=jl_laplace, config=pure, schema=element, tables=cells),
        Case(name="jl-laplace/row", module=jl_laplace, config=short, schema=row, tables=anywhere),
    ]


def _ron_gauss(epsilon: float, delta: float) -> list[Case]:
    shares = {"n_components": WIDTH, "mean_share": 0.02, "synthetic_rows": 8, "output": "projected"}

    def config(**options: object) -> object:
        merged: dict[str, Any] = {"epsilon": epsilon, "delta": delta, **shares, **options}
        return ron_gauss.RONGaussConfig(**merged)

    def case(name: str, schema: Schema, tables: tuple[Tables, ...], **options: object) -> Case:
        return Case(
            name=f"ron-gauss/{name}",
            module=ron_gauss,
            config=config(**options),
            schema=schema,
            tables=tables,
        )

    replace_one, add_remove = numbers(ROW, REPLACE), numbers(ROW, ADD)
    classes, target = labelled(REPLACE), labelled(REPLACE, Kind.NUMBER)
    equal, one, other = projected_rows()
    corner = corners()[0]
    half = np.array([1.0, 1.0, -1.0, -1.0])
    pairs = (*corner_pairs(replace_one, MANY), replaced(replace_one, MANY, one, other))
    more = (added(add_remove, MANY, equal), added(add_remove, MANY, corner))
    kinds = tuple(
        replaced(classes, MANY, np.append(a, 0.0), np.append(b, y))
        for a, b, y in ((equal, equal, 1.0), (equal, -equal, 1.0), (corner, half, 0.0))
    )
    targets = tuple(
        replaced(target, MANY, np.append(a, s), np.append(b, t))
        for a, b in ((corner, half), (corner, -corner))
        for s, t in ((1.0, -1.0), (1.0, 1.0))
    )
    public = {"centring": "public"}
    return [
        case("private/replace-one", replace_one, pairs),
        case("private/add-remove", add_remove, more),
        case("public/replace-one", replace_one, pairs, **public),
        case("public/add-remove", add_remove, more, **public),
        case("mixture/replace-one", classes, kinds, mode="gmm"),
        case("pure/mixture/replace-one", classes, kinds, mode="gmm", delta=0.0),
        case("target/replace-one", target, targets, mode="supervised"),
        case("pure/replace-one", replace_one, pairs, delta=0.0),
        case("pure/add-remove", add_remove, more, delta=0.0),
    ]


def _topk(epsilon: float, delta: float) -> list[Case]:
    everything = list(range(1, ITEMS))
    swapped = (item_table([[0, 1]] * 3 + [everything]), item_table([[0, 1]] * 3 + [[0]]))
    grown = (item_table([]), item_table([[0]]))
    moved = (item_table([[1]]), item_table([[0]]))

    def case(
        name: str, relation: Neighbours, tables: Tables, *, whole: bool = False, **options: object
    ) -> Case:
        schema = Schema(unit=ROW, neighbours=relation, items=ItemSpec(upper=ITEMS - 1))
        merged: dict[str, Any] = {"k": 1, "epsilon": epsilon, **options}
        return Case(
            name=f"topk/{name}/{relation}",
            module=topk,
            config=topk.TopKConfig(**merged),
            schema=schema,
            tables=(tables,),
            event=first_chosen if whole else None,
            tight=options.get("method") != "gumbel",
        )

    counts: list[Case] = []
    for relation, tables in ((ADD, grown), (REPLACE, moved)):
        counts += [
            case("frefirst", relation, tables, length=1),
            case("frefirst-gaussian", relation, tables, length=1, delta=delta),
            case("em", relation, swapped if relation is REPLACE else grown, method="em"),
            case(
                "gumbel-gaussian",
                relation,
                grown if relation is ADD else swapped,
                method="gumbel",
                delta=delta,
            ),
        ]
    whole = [
        case(name, REPLACE, swapped, whole=True, method=name, max_length=10)
        for name in ("svt", "tps-em", "tps-pfm", "tps-refine", "joint")
    ]
    return [*counts, *whole]


def _components(epsilon: float, delta: float) -> list[Case]:
    grids = ((-1.0, 0.0, 1.0), (-1.0, 1.0), (0.0, 1.0, 2.0), (0.0, 1.0))
    rows = np.array(list(product(*grids)))
    table, more, classed = mixed(REPLACE), mixed(ADD), labelled(REPLACE)
    pairs = tuple(replaced(table, 50, rows[0], row) for row in rows[1:])
    corner = corners()[0]
    fewer = [corner * (np.arange(WIDTH) < kept) for kept in range(WIDTH)]
    moved = tuple(
        replaced(classed, 50, np.append(corner, 0.0), np.append(row, y))
        for row in (*fewer, -corner, np.array([-1.0, -1.0, 1.0, 1.0]))
        for y in (0.0, 1.0)
    )
    one_more = (added(more, 50, rows[-1]),)
    one_classed = (added(labelled(ADD), 50, np.append(corner, 1.0)),)
    cases = []
    for label, amount in (("", delta), ("pure/", 0.0)):
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": amount}
        publish = pca.PCAConfig(n_components=2, bound="clip", clip_deviations=1e-3, **budget)
        sample = pca.PCAConfig(n_components=2, output="sample", synthetic_rows=8, **budget)
        discriminant = lda.LDAConfig(synthetic_rows=8, **budget)
        made = (
            (f"pca/{label}rows/replace-one", pca, publish, table, pairs),
            (f"pca/{label}sample/replace-one", pca, sample, table, pairs),
            (f"pca/{label}sample/add-remove", pca, sample, more, one_more),
            (f"lda/{label}replace-one", lda, discriminant, classed, moved),
            (f"lda/{label}add-remove", lda, discriminant, labelled(ADD), one_classed),
        )
        cases += [
            Case(name=name, module=module, config=config, schema=schema, tables=tables)
            for name, module, config, schema, tables in made
        ]
    return cases


def _moments(epsilon: float, delta: float) -> list[Case]:
    replace_one, add_remove = labelled(REPLACE), labelled(ADD)
    corner = np.append(corners()[0], 0.0)
    # every cell of every histogram moves, and the two rows of the Gram stand at right angles
    inner = np.array([-0.9, -0.9, 0.9, 0.9])
    pairs = tuple(
        replaced(replace_one, MANY, corner, np.append(row, 1.0)) for row in (inner, 0.0 * inner)
    )
    more = (added(add_remove, MANY, corner),)
    cases = []
    for label, amount in (("", delta), ("pure/", 0.0)):
        for schema, tables in ((replace_one, pairs), (add_remove, more)):
            config = MomentsConfig(epsilon=epsilon, delta=amount, sample_rows=8, numbers="scores")
            name = f"moments/{label}{schema.neighbours}"
            cases.append(Case(name=name, module=moments, config=config, schema=schema, tables=tables))
    return cases
