"""The table of cases: every mechanism, unit, relation and currency with its worst-case neighbours."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from adumbra.audit.move_cases import move_cases, secret_matrix
from adumbra.audit.pairs import (
    ADD,
    ELEMENT,
    MANY,
    MANY_ITEMS,
    REPLACE,
    ROW,
    VERY_MANY,
    WIDE,
    WIDTH,
    Case,
    Tables,
    added,
    between,
    categories,
    changed,
    corner_pairs,
    corners,
    crossed,
    heaps,
    item_table,
    keeping_null,
    labelled,
    longest_projected,
    mixed,
    numbers,
    opposite_sets,
    projected_rows,
    replaced,
    unbounded,
)
from adumbra.audit.person_cases import person_cases
from adumbra.audit.topk_cases import topk_cases
from adumbra.errors import InvalidInput
from adumbra.matrices import FAMILIES, public_matrix
from adumbra.mechanisms.answers import AnswersConfig
from adumbra.mechanisms.bounds import BoundsConfig
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.pca import PCAConfig
from adumbra.mechanisms.projection import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.mechanisms.topk import Algorithm, TopKConfig
from adumbra.relations import Neighbours
from adumbra.schema.schema import ItemSpec, Kind, Schema

DELTA = 1e-6
LABELS = ("left-out", "public", "randomised")

# What is attacked: every value of these fields, under every relation and currency that its `plan` takes.
# A field that is not here acts after the noise, or sets a public size; a test sorts every field of every
# config of the product into one of the two.
CHOICES: Mapping[type, Mapping[str, tuple[object, ...]]] = {
    DPProConfig: {"family": FAMILIES, "label": LABELS},
    JLLaplaceConfig: {"family": FAMILIES, "label": LABELS},
    RONGaussConfig: {
        "mode": ("unsupervised", "supervised", "gmm"),
        "centring": ("private", "public"),
        "rescale": ("clip", "normalise"),
        "covariance": ("class", "tied", "sphere"),
        "output": ("columns", "projected"),
    },
    PCAConfig: {"output": ("rows", "sample"), "bound": ("basis", "clip")},
    LDAConfig: {},
    AnswersConfig: {"cap_share": (0.005, 0.0)},
    BoundsConfig: {},
    MomentsConfig: {"numbers": ("scores", "bins"), "table_share": (0.0, 0.5)},
    TopKConfig: {"algorithm": tuple(one.value for one in Algorithm if one is not Algorithm.AUTO)},
}


def all_cases(epsilon: float, delta: float | None = None, method: str | None = None) -> list[Case]:
    """Every case at this epsilon; delta=0 keeps the pure ones, delta>0 the Gaussian ones (at it)."""
    gauss = delta or DELTA
    if method is not None and method not in METHODS:
        raise InvalidInput(f"method={method}: unknown; choose one of {', '.join(METHODS)}")
    makers = dict.fromkeys(METHODS.values() if method is None else [METHODS[method]])
    made = [case for make in makers for case in make(epsilon, gauss)]
    kept = [case for case in (*made, *person_cases(made)) if method in (None, case.method)]
    if delta is None:
        return kept
    return [case for case in kept if (case.config.delta == 0) == (delta == 0)]


def _projections(epsilon: float, delta: float) -> list[Case]:
    element = numbers(ELEMENT, Neighbours.ONE_ELEMENT)
    cells = tuple(replaced(element, 3, -unit, unit) for unit in np.eye(WIDTH))
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((48, WIDTH))
    directions /= np.abs(directions).max(axis=1, keepdims=True)
    gauss = DPProConfig(n_components=WIDTH, epsilon=epsilon, delta=delta)
    pure = JLLaplaceConfig(n_components=WIDTH, epsilon=epsilon)
    short = JLLaplaceConfig(n_components=WIDTH, epsilon=epsilon, row_norm=0.5)
    row = numbers(ROW, REPLACE)
    anywhere = tuple(replaced(row, 3, one, -one) for one in directions)
    opposite = corner_pairs(row, 3, (-1,))
    # a ball inside the box of 32 columns: its longest projection passes the radius of every family
    wide, ball = numbers(ROW, REPLACE, WIDE), replace(gauss, row_norm=0.5)
    others = []
    for family in FAMILIES:
        space, config, tables = row, replace(gauss, family=family), opposite
        if family != "identity":
            longest = longest_projected(family)
            space, config = wide, replace(ball, family=family)
            tables = (replaced(wide, 3, longest, -longest),)
        by_cell = replace(pure, family=family)
        others += [
            Case(name=f"dppro/row/{family}", config=config, schema=space, tables=tables),
            Case(name=f"jl-laplace/element/{family}", config=by_cell, schema=element,
                 tables=cells),
        ]  # fmt: skip
    return [
        *others,
        Case(name="dppro/element", config=gauss, schema=element, tables=cells),
        Case(name="dppro/row", config=gauss, schema=row, tables=opposite),
        Case(name="jl-laplace/element", config=pure, schema=element, tables=cells),
        Case(name="jl-laplace/row", config=short, schema=row, tables=anywhere),
        *_projected_kinds(gauss, pure),
        *_projected_labels(gauss, pure),
        *move_cases(epsilon, delta),
    ]


def _projected_kinds(gauss: DPProConfig, pure: JLLaplaceConfig) -> list[Case]:
    """Cells of categories, and item sets by row and by item."""
    kinds = replace(mixed(REPLACE), unit=ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    middle = np.zeros(WIDTH)
    moved = [(2, level) for level in (1.0, 2.0)] + [(3, 1.0)]  # one cell becomes another category
    cells = tuple(replaced(kinds, 3, middle, middle + np.eye(WIDTH)[at] * to) for at, to in moved)
    sets = Schema(unit=ROW, neighbours=REPLACE, items=ItemSpec(upper=MANY_ITEMS - 1))
    by_item = replace(sets, unit=ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    one_more = tuple((item_table([[], []]), item_table([[item], []])) for item in range(MANY_ITEMS))
    by_row, secret = replace(gauss, row_norm=1.0, family="sparse"), replace(pure, row_norm=1.0)
    public = public_matrix("sparse", MANY_ITEMS, WIDTH, matrix_seed=0)
    # L2: items that go to one column with a plus against those with a minus; L1: so for all columns
    one_way = tuple(opposite_sets(public, axis) for axis in np.eye(WIDTH))
    all_ways = (opposite_sets(secret_matrix(secret, sets), np.ones(WIDTH)),)
    made: tuple[tuple[str, Any, Schema, tuple[Tables, ...]], ...] = (
        ("dppro/element/categories", gauss, kinds, cells),
        ("dppro/element/items", gauss, by_item, one_more),
        ("dppro/row/items", by_row, sets, one_way),
        ("jl-laplace/element/categories", pure, kinds, cells),
        ("jl-laplace/element/items", pure, by_item, one_more),
        ("jl-laplace/row/items", secret, sets, all_ways),
    )
    return [Case(name=n, config=c, schema=s, tables=t) for n, c, s, t in made]


def _projected_labels(gauss: DPProConfig, pure: JLLaplaceConfig) -> list[Case]:
    """A label beside projected rows: one feature changes, or a randomised label itself."""
    classed = replace(labelled(REPLACE), unit=ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    features = tuple(
        replaced(classed, 3, np.append(-unit, 0.0), np.append(unit, 0.0)) for unit in np.eye(WIDTH)
    )
    middle = np.zeros(WIDTH)
    label = replaced(classed, 3, np.append(middle, 0.0), np.append(middle, 2.0))
    made: list[Case] = []
    for method, config in (("dppro", gauss), ("jl-laplace", pure)):
        name = f"{method}/element/"
        public, random = replace(config, label="public"), replace(config, label="randomised")
        made += [
            Case(name=f"{name}public-label", config=public, schema=classed, tables=features),
            Case(
                name=f"{name}randomised-label", config=random, schema=classed, tables=(*features, label)
            ),
        ]
    return made


def _ron_gauss(epsilon: float, delta: float) -> list[Case]:
    shares = {"n_components": WIDTH, "mean_share": 0.02, "synthetic_rows": 8, "output": "projected"}
    equal, one, other = projected_rows()
    corner = corners()[0]
    half = np.array([1.0, 1.0, -1.0, -1.0])
    found = []
    for relation, (pure, amount) in product((REPLACE, ADD), (("", delta), ("pure/", 0.0))):
        rows, classes = numbers(ROW, relation), labelled(relation)
        target = labelled(relation, Kind.NUMBER)
        if relation is REPLACE:
            # of all corners these are worst somewhere: orthogonal to the first, nearly or all opposite
            near = corner_pairs(rows, MANY, (3, 6, 12, 14, 15))
            pairs: tuple[Tables, ...] = (*near, replaced(rows, MANY, one, other))
            kinds: tuple[Tables, ...] = tuple(
                replaced(classes, MANY, np.append(a, 0.0), np.append(b, y))
                for a, b in ((equal, equal), (equal, -equal), (corner, half), (one, other))
                for y in (0.0, 1.0)
                if y or a is not b
            )
            moved = (np.append(corner, 0.0), np.append(half, 1.0))
            aimed: tuple[Tables, ...] = (
                replaced(classes, MANY, *moved),
                replaced(classes, VERY_MANY, *moved),
            )
            targets: tuple[Tables, ...] = tuple(
                replaced(target, MANY, np.append(a, s), np.append(b, t))
                for a, b in ((corner, half), (corner, -corner), (one, other))
                for s, t in ((1.0, -1.0), (1.0, 1.0))
            )
        else:
            pairs = tuple(added(rows, MANY, row) for row in (equal, corner))
            kinds = tuple(added(classes, MANY, np.append(row, 1.0)) for row in (equal, corner))
            aimed = tuple(added(classes, VERY_MANY, np.append(row, 1.0)) for row in (equal, corner))
            targets = tuple(added(target, MANY, np.append(row, 1.0)) for row in (equal, corner))
        made: list[tuple[str, Schema, tuple[Tables, ...], dict[str, Any]]] = [
            ("private", rows, pairs, {}),
            ("public", rows, pairs, {"centring": "public", "mean_share": None}),
            ("normalise", rows, pairs, {"rescale": "normalise"}),
            ("columns", rows, pairs, {"output": "columns"}),
            ("mixture", classes, kinds, {"mode": "gmm", "covariance": "class"}),
            ("mixture-tied", classes, kinds, {"mode": "gmm", "covariance": "tied"}),
            ("mixture-sphere", classes, kinds, {"mode": "gmm", "covariance": "sphere"}),
            ("mixture-columns", classes, aimed, {"mode": "gmm", "output": "columns"}),
            ("target", target, targets, {"mode": "supervised"}),
        ]
        for name, schema, tables, options in made:
            merged: dict[str, Any] = {"epsilon": epsilon, "delta": amount, **shares, **options}
            config = RONGaussConfig(**merged)
            label = f"ron-gauss/{pure}{name}/{relation}"
            found.append(Case(name=label, config=config, schema=schema, tables=tables))
    return found


def _components(epsilon: float, delta: float) -> list[Case]:
    grids = ((-1.0, 0.0, 1.0), (-1.0, 1.0), (0.0, 1.0, 2.0), (0.0, 1.0))
    rows = np.array(list(product(*grids)))
    table, more, classed = mixed(REPLACE), mixed(ADD), labelled(REPLACE)
    pairs = tuple(replaced(table, 50, rows[0], rows[far]) for far in (27, 33, 35))  # all columns move
    corner = corners()[0]
    moved = tuple(
        replaced(classed, 50, np.append(corner, 0.0), np.append(row, y))
        for row, y in ((-corner, 0.0), (-corner, 1.0), (np.array([-1.0, -1.0, 1.0, 1.0]), 1.0))
    )
    # every column moves, along the direction that the basis then has
    along = (between(table, MANY, np.array([-1.0, -1.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0])),)
    one_more = (added(more, 50, rows[-1]),)
    one_classed = (added(labelled(ADD), 50, np.append(corner, 1.0)),)
    cases = []
    for label, amount in (("", delta), ("pure/", 0.0)):
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": amount}
        publish = PCAConfig(n_components=2, bound="clip", clip_deviations=1e-3, **budget)
        basis = PCAConfig(n_components=2, bound="basis", **budget)
        sample = PCAConfig(n_components=2, output="sample", synthetic_rows=8, **budget)
        discriminant = LDAConfig(synthetic_rows=8, **budget)
        made = (
            (f"pca/{label}rows/replace-one", publish, table, pairs),
            (f"pca/{label}rows-basis/replace-one", basis, table, along),
            (f"pca/{label}sample/replace-one", sample, table, pairs),
            (f"pca/{label}sample/add-remove", sample, more, one_more),
            (f"lda/{label}replace-one", discriminant, classed, moved),
            (f"lda/{label}add-remove", discriminant, labelled(ADD), one_classed),
        )
        cases += [Case(name=n, config=c, schema=s, tables=t) for n, c, s, t in made]
    return cases


def _moments(epsilon: float, delta: float) -> list[Case]:
    corner = np.append(corners()[0], 0.0)
    # every cell of every histogram moves, and the two rows of the Gram stand at right angles
    inner = np.array([-0.9, -0.9, 0.9, 0.9])
    cases = []
    for relation in (REPLACE, ADD):
        schema = labelled(relation)
        tables: tuple[Tables, ...] = tuple(
            replaced(schema, MANY, corner, np.append(row, 1.0)) for row in (inner, 0.0 * inner)
        )
        if relation is ADD:
            tables = (added(schema, MANY, corner),)
        holed, none = keeping_null(schema), np.array([np.nan] * WIDTH + [1.0])
        gone = replaced(holed, MANY, corner, none)
        if relation is ADD:
            gone = added(holed, MANY, none)
        binned = (heaps(schema, MANY),)
        # Four items in every row, seven in none: a full and an empty row differ in length then, and
        # stand at right angles, where their products differ most.
        sets = Schema(unit=ROW, neighbours=relation, items=ItemSpec(upper=10))
        usual = [[*range(4)]] * MANY
        baskets = (item_table([*usual, [*range(11)]]), item_table([*usual, []]))
        if relation is ADD:
            baskets = (item_table(usual), item_table([*usual, [*range(11)]]))
        # Joint tables of five categories, of which some have too many rows in a cell and some too few:
        # so scores move both ways.
        codes = categories(relation)
        moved = (crossed(codes, MANY),)
        made: list[tuple[str, Schema, tuple[Tables, ...], float, str]] = [
            ("", schema, tables, delta, "scores"),
            ("pure/", schema, tables, 0.0, "scores"),
            ("null/", holed, (gone,), delta, "scores"),
            ("pure/null/", holed, (gone,), 0.0, "scores"),
            ("bins/", schema, binned, delta, "bins"),
            ("pure/bins/", schema, binned, 0.0, "bins"),
            ("items/", sets, (baskets,), delta, "auto"),
            ("pure/items/", sets, (baskets,), 0.0, "auto"),
            ("tables/", codes, moved, delta, "auto"),
            ("pure/tables/", codes, moved, 0.0, "auto"),
        ]
        for label, declared, pairs, amount, way in made:
            share = 0.5 if "tables" in label else 0.0
            config = MomentsConfig(
                epsilon=epsilon, delta=amount, synthetic_rows=8, numbers=way, table_share=share
            )
            name = f"moments/{label}{relation}"
            cases.append(Case(name=name, config=config, schema=declared, tables=pairs))
    return cases


def _answers(epsilon: float, delta: float) -> list[Case]:
    """Numbers at their caps (or beyond), three of which turn round: all cells move."""
    corner, other = np.ones(WIDTH), np.array([-1.0, -1.0, -1.0, 0.99])
    cases = []
    for relation, (pure, amount), share in product(
        (REPLACE, ADD), (("", delta), ("pure/", 0.0)), (0.005, 0.0)
    ):
        classes = labelled(relation)
        first, second = np.append(corner, 0.0), np.append(other, 1.0)
        pair = changed(classes, MANY, first, second)
        config = AnswersConfig(epsilon=epsilon, delta=amount, cap_share=share)
        name = f"answers/{pure}{'' if share else 'bounds/'}{relation}"
        cases.append(Case(name=name, config=config, schema=classes, tables=(pair,)))
    return cases


def _bounds(epsilon: float, delta: float) -> list[Case]:
    """Private numbers and levels, of which every one moves to another cell."""
    first, second = np.append(np.ones(WIDTH), 0.0), np.array([-1.0, -1.0, 0.5, 0.25, 1.0])
    cases = []
    for relation, (pure, amount) in product((REPLACE, ADD), (("", delta), ("pure/", 0.0))):
        schema = unbounded(labelled(relation))
        pair = changed(schema, MANY, first, second)
        config = BoundsConfig(epsilon=epsilon, delta=amount)
        cases.append(Case(name=f"bounds/{pure}{relation}", config=config, schema=schema, tables=(pair,)))
    return cases


# What `--method` selects, and who makes its cases.
METHODS: Mapping[str, Callable[[float, float], list[Case]]] = {
    "dppro": _projections,
    "jl-laplace": _projections,
    "ron-gauss": _ron_gauss,
    "topk": topk_cases,
    "pca": _components,
    "lda": _components,
    "moments": _moments,
    "answers": _answers,
    "bounds": _bounds,
}
