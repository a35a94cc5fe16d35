"""The label of projected rows: left out with a sentence, public, or randomised at its price."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput
from adumbra.mechanisms.projection.labels import label_epsilon, row_amount
from adumbra.privacy.conversion import compose_mu, mu_of, pure_to_mu
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.methods import draw, released

CONFIGS = (ad.DPProConfig, ad.JLLaplaceConfig)
LABELS = {
    "two": Column(name="two", kind=Kind.BOOLEAN),
    "four": Column(name="four", kind=Kind.CATEGORY, categories=("a", "b", "c", "d")),
    "whole": Column(name="whole", kind=Kind.INTEGER, lower=3, upper=5),
    "real": Column(name="real", kind=Kind.NUMBER, lower=0.0, upper=9.0),
}


def schema(label, unit=Unit.ROW, rows=None):
    columns = (
        Column(name="x", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        Column(name="z", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        LABELS[label],
    )
    pair = Neighbours.REPLACE_ONE if unit is Unit.ROW else Neighbours.ONE_ELEMENT
    return Schema(columns=columns, unit=unit, neighbours=pair, label=label, rows=rows)


def table(label, rows):
    rng = np.random.default_rng(4)
    cells = {
        "two": rng.integers(0, 2, rows) == 1,
        "four": rng.choice(list("abcd"), rows),
        "whole": rng.integers(3, 6, rows),
        "real": np.round(rng.uniform(0.0, 9.0, rows), 3),
    }
    return pa.table({"x": rng.random(rows), "z": rng.random(rows), label: pa.array(cells[label])})


def run(config, label, rows=5000, unit=Unit.ROW):
    data = table(label, rows)
    return data, draw(open_source(data, schema(label, unit)), config, seed=3)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_label_is_left_out_with_a_sentence(config):
    made = config(n_components=2, epsilon=1.0)
    assert any(
        note.startswith("The label two is left out of the release; label=public")
        for note in ad.plan(made, schema("two")).notes
    )
    assert released(run(made, "two", 9)[1]).column_names == ["y1", "y2"]
    assert not any("label" in note for note in ad.plan(made, replace(schema("two"), label=None)).notes)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("label", sorted(LABELS))
def test_a_public_label_leaves_as_it_is(config, label):
    made = config(n_components=2, epsilon=1.0, label="public")
    data, draft = run(made, label)
    out = released(draft)
    assert out.column_names == ["y1", "y2", label]
    assert out[label].to_pylist() == data[label].to_pylist()
    planned = ad.plan(made, schema(label))
    assert f"The label {label} is released as it is, declared public" in planned.notes[0]
    assert planned.noise == ad.plan(replace(made, label="left-out"), schema(label)).noise
    assert draft.facts["label"] == {"name": label, "released": "public"}


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("unit", [Unit.ROW, Unit.ELEMENT])
@pytest.mark.parametrize("label", ["two", "four", "whole"])
def test_a_randomised_label_is_true_as_often_as_the_card_says(config, unit, label):
    """At 6.5 standard errors: a false alarm has chance 1e-10."""
    made = config(n_components=2, epsilon=2.0, label="randomised")
    data, draft = run(made, label, 20_000, unit)
    said = draft.facts["label"]["kept"]
    shown = released(draft)[label].to_pylist()
    true = np.array(data[label].to_pylist()) == np.array(shown)
    tolerance = 6.5 * np.sqrt(said * (1 - said) / len(true)) + (0.0 if label == "two" else 2e-3)
    assert abs(true.mean() - said) < tolerance
    assert abs(true.mean() - said * 0.9) > tolerance
    assert f"true one with chance {said:.3g}" in ad.plan(made, schema(label, unit)).notes[0]
    assert set(shown) == set(data[label].to_pylist())


def test_two_classes_are_randomised_response():
    made = ad.JLLaplaceConfig(n_components=2, epsilon=1.6, label="randomised", label_share=0.25)
    _, draft = run(made, "two", 10)
    assert draft.facts["label"]["kept"] == pytest.approx(np.exp(0.4) / (1 + np.exp(0.4)), rel=1e-9)
    cells = replace(made, label_share=0.5)
    _, draft = run(cells, "two", 10, Unit.ELEMENT)
    assert draft.facts["label"]["kept"] == pytest.approx(np.exp(1.6) / (1 + np.exp(1.6)), rel=1e-9)


def test_parts_never_exceed_the_budget():
    for share in (0.1, 0.5, 0.9):
        pure = ad.JLLaplaceConfig(n_components=2, epsilon=1.3, label="randomised", label_share=share)
        parts = row_amount(pure, Unit.ROW), label_epsilon(pure, Unit.ROW)
        assert 1.3 * (1 - 1e-12) < sum(parts) <= 1.3
        assert parts[1] == pytest.approx(share * 1.3)
        gauss = ad.DPProConfig(n_components=2, epsilon=1.3, label="randomised", label_share=share)
        both = compose_mu(row_amount(gauss, Unit.ROW), pure_to_mu(label_epsilon(gauss, Unit.ROW)))
        whole = mu_of(1.3, 1e-6)
        assert whole * (1 - 1e-9) < both <= whole * (1 + 1e-15)
        assert row_amount(gauss, Unit.ELEMENT) == whole


@pytest.mark.parametrize(
    ("label", "unit", "options", "message"),
    [
        ("real", Unit.ROW, {"label": "randomised"}, "a number has no classes"),
        ("two", Unit.ROW, {"label_share": 0.2}, "label_share=0.2: has no effect with label=left-out"),
        (
            "two",
            Unit.ELEMENT,
            {"label": "randomised", "label_share": 0.2},
            "label_share=0.2: has no effect with unit=element",
        ),
        ("two", Unit.ROW, {"label": "secret"}, "label='secret': must be one of left-out, public"),
        ("two", Unit.ROW, {"label": "randomised", "label_share": 1.0}, "between 0 and 1"),
    ],
)
@pytest.mark.parametrize("config", CONFIGS)
def test_what_cannot_be_is_refused_in_the_plan(config, label, unit, options, message):
    with pytest.raises(InvalidInput, match=message):
        ad.plan(config(**{"n_components": 2, "epsilon": 1.0, **options}), schema(label, unit))


def test_a_label_that_is_all_noise_is_refused():
    made = ad.JLLaplaceConfig(n_components=2, epsilon=1e-8, label="randomised")
    with pytest.raises(InvalidInput, match="label_share: too small a budget"):
        ad.plan(made, schema("two"))


def test_a_label_needs_to_exist_and_a_name_of_its_own():
    made = ad.DPProConfig(n_components=2, epsilon=1.0, label="public")
    with pytest.raises(InvalidInput, match="label=public: the schema declares no label"):
        ad.plan(made, replace(schema("two"), label=None))
    named = replace(
        schema("two"),
        columns=(*schema("two").columns[:2], Column(name="y1", kind=Kind.BOOLEAN)),
        label="y1",
    )
    with pytest.raises(InvalidInput, match="'y1' is the name of a component"):
        ad.plan(made, named)
