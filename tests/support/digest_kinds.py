"""Every kind of release whose values are kept as digests: methods, modes, units, relations, families."""

from dataclasses import dataclass, replace
from itertools import product

import adumbra as ad
from adumbra.relations import Neighbours, Unit
from adumbra.schema.orders import Order
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from support.drawing import audited_kinds

REPLACE, ADD, ELEMENT = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE, Neighbours.ONE_ELEMENT
FAMILIES = ("auto", "gaussian", "sphere", "rademacher", "sparse", "haar", "identity")
PURE_AND_NOT = (("pure", 0.0), ("gaussian", 1e-6))
ROWS = 300
BLOCKS = 4100  # rows of more than one noise block


@dataclass(frozen=True)
class DigestKind:
    """One release: its public name, its schema and its config."""

    name: str
    schema: Schema
    config: object
    rows: int = ROWS


def table(neighbours=REPLACE, *, label="class", missing=None, ordered=False, rows=None):
    """Numbers, integers, a boolean, a category with a level for missing, a label."""
    columns = (
        Column(name="height", kind=Kind.NUMBER, lower=-2.0, upper=2.0, missing=missing),
        Column(name="from", kind=Kind.INTEGER, lower=0, upper=30),
        Column(name="to", kind=Kind.INTEGER, lower=5, upper=40, missing=missing),
        Column(name="city", kind=Kind.CATEGORY, categories=("x", "y", "z"), missing="category"),
        Column(name="member", kind=Kind.BOOLEAN),
        Column(name="class", kind=Kind.CATEGORY, categories=("r", "s", "t")),
        Column(name="score", kind=Kind.NUMBER, lower=0.0, upper=1.0),
    )
    orders = (Order(lower="from", upper="to"),) if ordered else ()
    return Schema(
        columns=columns, unit=Unit.ROW, neighbours=neighbours, label=label, constraints=orders, rows=rows
    )


def cells():
    """The same table, one cell protected."""
    return replace(table(label=None), unit=Unit.ELEMENT, neighbours=ELEMENT)


def sets(neighbours=REPLACE, upper=19):
    """Item sets whose first item is not 0."""
    unit = Unit.ELEMENT if neighbours is ELEMENT else Unit.ROW
    return Schema(unit=unit, neighbours=neighbours, items=ItemSpec(lower=1, upper=upper))


def all_kinds():
    """The kinds of the audit, then every further mode."""
    audited = [DigestKind(f"audit/{name}", schema, made) for name, schema, made in audited_kinds()]
    made = [
        *audited,
        *_projections(),
        *_ron_gauss(),
        *_components(),
        *_answers(),
        *_bounds(),
        *_moments(),
        *_topk(),
    ]
    assert len({kind.name for kind in made}) == len(made)
    return made


def _projections():
    for family, (unit, schema) in product(FAMILIES, (("row", table(label=None)), ("element", cells()))):
        wide = 12 if family == "identity" else 4  # of the encoded columns of both tables
        options = {"n_components": wide, "epsilon": 2.0, "family": family}
        if family == "sparse":
            options["nonzeros"] = 2
        seed = 0 if family == "identity" else 3  # it has none
        dppro = ad.DPProConfig(**options, delta=1e-5, matrix_seed=seed)
        yield DigestKind(f"dppro/{unit}/{family}", schema, dppro)
        yield DigestKind(f"jl-laplace/{unit}/{family}", schema, ad.JLLaplaceConfig(**options))
    short = {"n_components": 3, "epsilon": 1.0, "row_norm": 0.7, "clip_tail": 0.1}
    yield DigestKind("dppro/row/short", table(), ad.DPProConfig(**short, delta=1e-6))
    yield DigestKind("jl-laplace/row/short", table(), ad.JLLaplaceConfig(**short))
    for label, unit in product(("public", "randomised"), ("row", "element")):
        schema = table() if unit == "row" else replace(cells(), label="member")
        options = {"n_components": 2, "epsilon": 1.0, "label": label}
        if (label, unit) == ("randomised", "row"):
            options["label_share"] = 0.3
        yield DigestKind(f"dppro/{unit}/label-{label}", schema, ad.DPProConfig(**options))
        yield DigestKind(f"jl-laplace/{unit}/label-{label}", schema, ad.JLLaplaceConfig(**options))
    few = {"n_components": 2, "epsilon": 1.0}
    for unit, schema in (("row", table()), ("element", cells())):
        yield DigestKind(f"dppro/{unit}/blocks", schema, ad.DPProConfig(**few, delta=1e-6), rows=BLOCKS)
        yield DigestKind(f"jl-laplace/{unit}/blocks", schema, ad.JLLaplaceConfig(**few), rows=BLOCKS)


def _ron_gauss():
    labels = {"unsupervised": None, "supervised": "score", "gmm": "class"}
    for (mode, label), relation, (noise, delta), centring in product(
        labels.items(), (REPLACE, ADD), PURE_AND_NOT, ("private", "public")
    ):
        schema = table(relation, label=label)
        options = {"epsilon": 2.0, "delta": delta, "mode": mode, "centring": centring}
        made = ad.RONGaussConfig(**options, n_components=3, synthetic_rows=40)
        yield DigestKind(f"ron-gauss/{mode}/{relation}/{noise}/{centring}", schema, made)
    steps = {
        "class": {"mode": "gmm", "covariance": "class"},
        "tied": {"mode": "gmm", "covariance": "tied"},
        "sphere": {"mode": "gmm", "covariance": "sphere"},
        "normalise": {"rescale": "normalise", "n_components": 4},
        "unit-rows": {"unit_rows": True, "rescale": "normalise"},
        "projected": {"output": "projected", "n_components": 2},
        "projected-classes": {"output": "projected", "mode": "gmm", "n_components": 2},
        "shares": {"mean_share": 0.4, "clip_factor": 2.0, "clip_tail": 0.05, "row_norm": 1.1},
        "clusters": {"goal": "clusters"},
        "seeds": {"matrix_seed": 5, "sample_seed": 7, "n_components": 3},
    }
    for (name, options), (noise, delta) in product(steps.items(), PURE_AND_NOT):
        schema = table(ADD, rows=None)
        made = ad.RONGaussConfig(
            epsilon=3.0, delta=delta, expected_rows=ROWS, synthetic_rows=40, **options
        )
        yield DigestKind(f"ron-gauss/{name}/{noise}", schema, made)
    whole = ad.RONGaussConfig(epsilon=3.0, delta=1e-6)  # auto components, as many rows as there are
    yield DigestKind("ron-gauss/auto", table(label=None, rows=ROWS), whole)


def _components():
    for label, (noise, delta), bound, shrink in product(
        (None, "class"), PURE_AND_NOT, ("auto", "basis", "clip"), (False, True)
    ):
        made = ad.PCAConfig(n_components=3, epsilon=4.0, delta=delta, bound=bound, shrink=shrink)
        name = f"pca/rows/{label or 'no-label'}/{noise}/{bound}{'/shrink' if shrink else ''}"
        yield DigestKind(name, table(label=label), made)
    for relation, label, (noise, delta), k in product(
        (REPLACE, ADD), (None, "class"), PURE_AND_NOT, (0, 2)
    ):
        options = {"n_components": k, "epsilon": 2.0, "delta": delta, "output": "sample"}
        made = ad.PCAConfig(**options, synthetic_rows=40, sample_seed=min(k, 1))
        name = f"pca/sample/{relation}/{label or 'no-label'}/{noise}/{k}"
        yield DigestKind(name, table(relation, label=label), made)
    share = ad.PCAConfig(n_components=2, epsilon=2.0, delta=0.0, moments_share=0.2, clip_deviations=1.5)
    yield DigestKind("pca/rows/share", table(rows=ROWS), share)
    mean = ad.PCAConfig(n_components=0, epsilon=2.0, delta=1e-6)
    yield DigestKind("pca/rows/mean", table(), mean)
    for relation, (noise, delta), loss in product((REPLACE, ADD), PURE_AND_NOT, ("squared", "absolute")):
        made = ad.LDAConfig(epsilon=2.0, delta=delta, loss=loss, synthetic_rows=40)
        yield DigestKind(f"lda/{relation}/{noise}/{loss}", table(relation), made)
    yield DigestKind("lda/floor", table(rows=ROWS), ad.LDAConfig(epsilon=2.0, delta=0.0, floor=1.0))


def _answers():
    for relation, (noise, delta) in product((REPLACE, ADD), PURE_AND_NOT):
        made = ad.AnswersConfig(epsilon=3.0, delta=delta)
        yield DigestKind(f"answers/{relation}/{noise}", table(relation), made)
    few = {"histogram_share": 0.3, "cap_share": 0.1, "expected_rows": ROWS}
    names = [column.name for column in table().columns if column.missing != "null"][:3]
    made = ad.AnswersConfig(epsilon=3.0, columns=tuple(names), outcome=names[1], **few)
    yield DigestKind("answers/few", table(), made)


def _bounds():
    for relation, (noise, delta) in product((REPLACE, ADD), PURE_AND_NOT):
        schema = table(relation)
        columns = tuple(
            replace(one, private=True) if one.kind is not Kind.BOOLEAN else one for one in schema.columns
        )
        made = ad.BoundsConfig(epsilon=3.0, delta=delta, chance=0.05 if relation is ADD else 0.2)
        yield DigestKind(f"bounds/{relation}/{noise}", replace(schema, columns=columns), made)


def _moments():
    shapes = {
        "label": {},
        "no-label": {"label": None},
        "null": {"missing": "null"},
        "ordered": {"ordered": True, "missing": "null"},
    }
    for (shape, options), relation, (noise, delta) in product(
        shapes.items(), (REPLACE, ADD), PURE_AND_NOT
    ):
        ways = ("scores", "bins") if relation is REPLACE and shape != "no-label" else ("auto",)
        for numbers in ways:
            made = ad.MomentsConfig(epsilon=3.0, delta=delta, numbers=numbers, synthetic_rows=40)
            name = f"moments/{shape}/{relation}/{noise}/{numbers}"
            yield DigestKind(name, table(relation, **options), made)
    own = ad.MomentsConfig(epsilon=3.0, marginal_share=0.6, sample_seed=2)
    yield DigestKind("moments/share", table(rows=ROWS), own)
    guess = ad.MomentsConfig(epsilon=3.0, expected_rows=ROWS, synthetic_rows=40)
    yield DigestKind("moments/guess", table(ADD), guess)
    for relation, noise, delta in ((REPLACE, "gaussian", 1e-6), (ADD, "pure", 0.0)):
        joint = {"synthetic_rows": 40, "table_share": 0.5, "numbers": "bins"}
        made = ad.MomentsConfig(epsilon=8.0, delta=delta, **joint)
        yield DigestKind(f"moments/tables/{relation}/{noise}", table(relation, missing="null"), made)
    for relation, (noise, delta) in product((REPLACE, ADD), PURE_AND_NOT):
        made = ad.MomentsConfig(epsilon=3.0, delta=delta, synthetic_rows=40)
        yield DigestKind(f"moments/items/{relation}/{noise}", sets(relation), made)


def _topk():
    pure = ("auto", "frefirst", "em", "gumbel", "svt", "tps-em", "tps-pfm", "tps-refine", "joint")
    counting = ("auto", "frefirst", "tps-em", "tps-pfm", "tps-refine")
    kinds = [(method, "pure", 0.0) for method in pure]
    kinds += [(method, "gaussian", 1e-6) for method in ("auto", "frefirst", "gumbel")]
    for (method, noise, delta), relation, length in product(kinds, (REPLACE, ADD), (None, 4)):
        if length is not None and method not in counting:
            continue  # rows stay whole
        options = {"k": 5, "epsilon": 2.0, "delta": delta, "algorithm": method, "length": length}
        wants = method in counting
        scans = wants and (length is None or (method in ("auto", "tps-refine") and noise == "pure"))
        made = ad.TopKConfig(**options, max_length=12 if scans else 256, all_counts=wants)
        name = f"topk/{method}/{relation}/{noise}{'' if length is None else '/length'}"
        yield DigestKind(name, sets(relation), made)
