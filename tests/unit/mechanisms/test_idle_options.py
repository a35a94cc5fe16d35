"""Every option of every method, in every mode: it changes something that is shown, or it is refused."""

import dataclasses
import functools
import re
from itertools import chain, product

import numpy as np
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput
from adumbra.mechanisms.methods import METHODS
from adumbra.mechanisms.topk.config import Algorithm
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from support.methods import draw, released, settled_on

ROWS = 60
REPLACE, ADD, ELEMENT = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE, Neighbours.ONE_ELEMENT
# Other values of each option; one that a mode does not allow is refused, which counts as an answer.
OTHERS = {
    "epsilon": (7.0,), "delta": (1e-3, 0.0), "n_components": (1, 3), "row_norm": (0.4,),
    "family": ("gaussian", "sparse", "identity"), "nonzeros": (2,), "clip_tail": (0.4,),
    "matrix_seed": (9,), "distance_guess": (0.3,), "output": ("sample", "rows", "projected", "columns"),
    "moments_share": (0.2,), "bound": ("basis", "clip"), "clip_deviations": (0.2,), "shrink": (True,),
    "synthetic_rows": (17,), "sample_seed": (5,), "loss": ("absolute",), "floor": (9.0,),
    "columns": (("a", "c"), ("class", "b")), "outcome": ("c", "b"), "histogram_share": (0.4,),
    "cap_share": (0.2, 0.0), "expected_rows": (2000,), "marginal_share": (0.9,), "table_share": (0.3,),
    "numbers": ("bins", "scores"),
    "mode": ("unsupervised", "supervised", "gmm"), "centring": ("public", "private"),
    "covariance": ("class", "tied", "sphere"), "rescale": ("normalise",), "unit_rows": (True,),
    "mean_share": (0.7,), "clip_factor": (4.0,), "k": (2,), "length": (2,), "max_length": (1,),
    "label": ("public", "randomised"), "chance": (0.3,), "goal": ("clusters",),
    "label_share": (0.2,), "algorithm": tuple(map(str, Algorithm)), "all_counts": (True,),
}  # fmt: skip


def table(neighbours=REPLACE, *, label=None, unit=Unit.ROW, numbers=True, **changes):
    columns = (
        *((Column(name="a", kind=Kind.NUMBER, lower=-2.0, upper=2.0),) if numbers else ()),
        *((Column(name="b", kind=Kind.NUMBER, lower=0.0, upper=1.0),) if numbers else ()),
        Column(name="c", kind=Kind.CATEGORY, categories=("x", "y", "z")),
        Column(name="class", kind=Kind.CATEGORY, categories=("r", "s")),
    )
    return Schema(columns=columns, unit=unit, neighbours=neighbours, label=label, **changes)


def sets(neighbours=REPLACE, unit=Unit.ROW):
    return Schema(unit=unit, neighbours=neighbours, items=ItemSpec(upper=11))


def rows_of(schema):
    rng = np.random.default_rng(3)
    if schema.items is not None:
        rows = [np.flatnonzero(rng.random(12) < 0.5) for _ in range(ROWS)]
        return pa.table({"items": pa.array([row.tolist() for row in rows], pa.list_(pa.int64()))})
    shown = {
        "a": pa.array(rng.normal(size=ROWS)),
        "b": pa.array(rng.random(ROWS)),
        "c": pa.array(rng.choice(["x", "y", "z"], ROWS)),
        "class": pa.array(rng.choice(["r", "s"], ROWS)),
    }
    return pa.table({name: shown[name] for name in schema.names})


def projection_modes(config):
    families = ("auto", "gaussian", "haar", "sparse")
    rows, cells = table(), table(ELEMENT, unit=Unit.ELEMENT)
    for schema, family in product((rows, cells), families):
        yield schema, config(epsilon=2.0, n_components=2, family=family)
    for schema, family in product((rows, cells), ("haar", "identity")):
        yield schema, config(epsilon=2.0, n_components=6, family=family)
    for unit, label in product((Unit.ROW, Unit.ELEMENT), ("left-out", "randomised")):
        pair = REPLACE if unit is Unit.ROW else ELEMENT
        schema = table(pair, label="class", unit=unit)
        yield schema, config(epsilon=2.0, n_components=2, label=label)
    yield sets(), config(epsilon=2.0, n_components=2, row_norm=2.0)
    yield sets(ELEMENT, Unit.ELEMENT), config(epsilon=2.0, n_components=2)


def ron_gauss_modes():
    labels = {"unsupervised": None, "supervised": "b", "gmm": "class"}
    ways = (("private", "clip"), ("private", "normalise"), ("public", "clip"))
    for (mode, label), (centring, rescale) in product(labels.items(), ways):
        options = {"mode": mode, "centring": centring, "rescale": rescale, "n_components": 2}
        yield table(label=label), ad.RONGaussConfig(epsilon=20.0, **options)
    yield table(), ad.RONGaussConfig(epsilon=20.0, n_components=2, unit_rows=True)
    yield table(label="class"), ad.RONGaussConfig(epsilon=20.0, delta=0.0, n_components=2, mode="gmm")
    yield table(ADD), ad.RONGaussConfig(epsilon=20.0, n_components=2)
    yield table(), ad.RONGaussConfig(epsilon=20.0, n_components=7)
    yield table(), ad.RONGaussConfig(epsilon=20.0, n_components=2, output="projected")
    yield table(label="class"), ad.RONGaussConfig(epsilon=20.0, mode="gmm", covariance="sphere")


def component_modes():
    for delta, (output, relation) in product(
        (0.0, 1e-6), (("rows", REPLACE), ("sample", REPLACE), ("sample", ADD))
    ):
        for k in (0, 2):
            yield (
                table(relation),
                ad.PCAConfig(n_components=k, epsilon=2.0, delta=delta, output=output),
            )
    for bound in ("basis", "clip"):
        yield table(), ad.PCAConfig(n_components=2, epsilon=2.0, bound=bound)
    for delta, relation in product((0.0, 1e-6), (REPLACE, ADD)):
        yield table(relation, label="class"), ad.LDAConfig(epsilon=2.0, delta=delta)


def answers_modes():
    for label, relation, delta in product((None, "class"), (REPLACE, ADD), (0.0, 1e-6)):
        yield table(relation, label=label), ad.AnswersConfig(epsilon=20.0, delta=delta)
    yield table(), ad.AnswersConfig(epsilon=20.0, columns=("b", "c", "class"))


def bounds_modes():
    for relation, delta in product((REPLACE, ADD), (0.0, 1e-6)):
        schema = table(relation)
        private = tuple(dataclasses.replace(one, private=True) for one in schema.columns)
        yield dataclasses.replace(schema, columns=private), ad.BoundsConfig(epsilon=2.0, delta=delta)


def moments_modes():
    yield table(), ad.MomentsConfig(epsilon=2.0, delta=0.0)
    yield table(label="class"), ad.MomentsConfig(epsilon=2.0)
    yield table(ADD, label="class", numbers=False), ad.MomentsConfig(epsilon=2.0, synthetic_rows=30)
    yield sets(), ad.MomentsConfig(epsilon=2.0)


def topk_modes():
    for algorithm, length in product(Algorithm, (None, 3)):
        for delta, relation in ((0.0, REPLACE), (1e-6, ADD)):
            try:
                config = ad.TopKConfig(k=3, epsilon=2.0, delta=delta, algorithm=algorithm, length=length)
                settled_on(open_source(rows_of(sets()), sets(relation)), config)
            except InvalidInput:
                continue  # no mode: the algorithm has no delta or no length
            yield sets(relation), config


@functools.cache
def modes():
    """Every mode of every method: a schema and a config that are accepted."""
    projections = (projection_modes(config) for config in (ad.DPProConfig, ad.JLLaplaceConfig))
    others = (ron_gauss_modes(), component_modes(), answers_modes(), bounds_modes(), moments_modes())
    return [*chain(*projections, *others, topk_modes())]


def shown(source, config):
    """All that a reader sees of a release: its plan, and what it draws under a known secret."""
    plan = settled_on(source, config).plan
    draft = draw(source, config, seed=5)
    tables = {name: released(draft, name).to_pydict() for name in (*draft.tables, *draft.pending)}
    arrays = {name: np.asarray(array).tolist() for name, array in draft.arrays.items()}
    return repr((plan, tables, arrays, dict(draft.facts), draft.noise))


def test_every_method_and_option_is_tried():
    assert {type(config) for _, config in modes()} == {method.config for method in METHODS}
    fields = {field.name for method in METHODS for field in dataclasses.fields(method.config)}
    assert fields == set(OTHERS)


def answer_of(source, config, name, value, before):
    """How an option is met: refused by a named rule, with an effect, or silently."""
    try:
        after = shown(source, dataclasses.replace(config, **{name: value}))
    except InvalidInput as refusal:
        is_named = re.match(r"(\w+)=", str(refusal))
        return "refused" if is_named and is_named[1] != "mu" else f"no rule: {refusal}"
    return "silent" if after == before else "effect"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_option_is_silent(method, record_property):
    tried, silent = 0, []
    for schema, config in modes():
        if type(config) is not method.config:
            continue
        source = open_source(rows_of(schema), schema)
        before = shown(source, config)
        for field in dataclasses.fields(config):
            held = getattr(config, field.name)
            values = [value for value in OTHERS[field.name] if value not in (held, "auto")]
            answers = [answer_of(source, config, field.name, value, before) for value in values]
            tried += 1
            is_met = all(one in ("effect", "refused") for one in answers)
            if held == "auto":  # one of the words is what auto chose
                is_met = is_met or sorted(set(answers) - {"effect", "refused"}) == ["silent"]
                is_met = is_met and answers.count("silent") <= 1
            if not is_met:
                silent.append(f"{field.name}: {answers} with {config} and {schema.unit}")
    assert tried > 0
    assert not silent, f"{len(silent)} of {tried}:\n" + "\n".join(silent)
    record_property("figure", f"options: {method.name} {tried} pairs of option and mode, 0 silent")


@pytest.mark.parametrize(
    ("schema", "config", "message"),
    [
        (
            table(),
            ad.PCAConfig(n_components=2, epsilon=1.0, synthetic_rows=9),
            "synthetic_rows=9: has no",
        ),
        (
            table(),
            ad.PCAConfig(n_components=2, epsilon=1.0, output="sample", moments_share=0.2, shrink=True),
            "moments_share=0.2: has no effect with output=sample; leave it out\nshrink=True",
        ),
        (table(), ad.DPProConfig(n_components=2, epsilon=1.0, nonzeros=2), "nonzeros=2.*family=haar"),
        (
            table(ELEMENT, unit=Unit.ELEMENT),
            ad.DPProConfig(n_components=2, epsilon=1.0, clip_tail=0.2),
            "clip_tail=0.2: has no effect with unit=element: nothing is clipped; leave it out",
        ),
        (table(), ad.RONGaussConfig(epsilon=1.0, n_components=2, covariance="tied"), "covariance=tied"),
        (
            table(),
            ad.RONGaussConfig(epsilon=1.0, n_components=2, centring="public", mean_share=0.2),
            "mean_share=0.2: has no effect with centring=public",
        ),
        (
            table(),
            ad.RONGaussConfig(epsilon=1.0, n_components=2, rescale="normalise", clip_factor=2.0),
            "clip_factor=2.0: has no effect with rescale=normalise",
        ),
        (sets(), ad.TopKConfig(k=2, epsilon=1.0, delta=0.0, algorithm="em", length=3), "length=3.*em"),
        (sets(), ad.TopKConfig(k=2, epsilon=1.0, delta=0.0, algorithm="svt", max_length=3), "=3.*svt"),
        (sets(), ad.MomentsConfig(epsilon=1.0, numbers="bins"), "numbers=bins: has no effect without"),
    ],
)
def test_the_refusal_names_option_and_case(schema, config, message):
    with pytest.raises(InvalidInput, match=message):
        ad.plan(config, dataclasses.replace(schema, rows=ROWS))


def test_a_guess_of_a_public_number_of_rows_is_said_to_be_unused():
    schema = dataclasses.replace(table(label="class"), rows=ROWS)
    for config in (ad.AnswersConfig, ad.MomentsConfig, ad.LDAConfig, ad.RONGaussConfig):
        notes = ad.plan(config(epsilon=1.0, expected_rows=70), schema).notes
        assert "expected_rows=70 is not used: the number of rows is public (60)." in notes
        assert not any("expected_rows" in note for note in ad.plan(config(epsilon=1.0), schema).notes)
