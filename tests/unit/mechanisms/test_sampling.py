"""Further rows of a release: the recipient's own, under conditions, from released numbers alone."""

from dataclasses import replace

import pytest

import adumbra as ad
from adumbra.errors import InvalidInput, Unsupported
from adumbra.postprocess.moments.design import READING
from adumbra.postprocess.rules import broken_rows
from adumbra.relations import Neighbours, Unit
from adumbra.schema.row_rules import Derived, Rule
from support.moments import mixed_schema, mixed_table


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampling")
    schema = replace(
        mixed_schema(),
        rules=(Rule.of({"never": {"smoker": True, "job": "x"}}),),
        derived=(Derived.read({"name": "decade", "cut": "age", "at": [40, 60]}),),
    )
    with ad.create_ledger(folder / "ledger.db") as ledger:
        ledger.register(ad.Population("town", Unit.ROW, Neighbours.REPLACE_ONE, 9.0, 1e-5))
        config = ad.MomentsConfig(epsilon=2.0, sample_seed=5, table_share=0.3)
        out = folder / "out"
        ad.release(mixed_table(), config, schema=schema, ledger=ledger, population="town", out=out)
    return ad.load(out)


def test_the_seed_of_the_card_gives_the_released_rows_again(released):
    assert ad.sample(released, 2000, sample_seed=5).equals(released.data)
    assert not ad.sample(released, 2000, sample_seed=6).equals(released.data)


@pytest.mark.parametrize("purpose", ["one_way", "radius", "choices", "tables"])
def test_a_release_of_other_rules_is_refused_by_name(released, purpose):
    """Its numbers would be read with noise that they do not have."""
    held = released.card["mechanisms"]
    assert [one["purpose"] for one in held].count(purpose) == 1
    other = [{**one, "scale": 2.0 * one["scale"]} if one["purpose"] == purpose else one for one in held]
    older = [one for one in held if one["purpose"] != purpose]
    for mechanisms in (other, older):
        changed = replace(released, card={**released.card, "mechanisms": mechanisms})
        with pytest.raises(Unsupported, match="made by other rules"):
            ad.sample(changed, 10)


@pytest.mark.parametrize("number", [None, 1, READING - 1, READING + 1])
def test_a_release_whose_laws_were_read_by_other_rules_is_refused(released, number):
    """Its rows were centred elsewhere: the Gram would be read around another centre, without a word."""
    facts = {**released.card["facts"], "reading_rules": number}
    changed = replace(released, card={**released.card, "facts": facts})
    with pytest.raises(Unsupported, match="made by other rules"):
        ad.sample(changed, 10)


def test_every_row_meets_the_conditions_and_the_rules(released):
    where = {"age": "<30", "region": ["a", "b"], "smoker": {"not": True}}
    table = ad.sample(released, 700, where=where, sample_seed=1)
    assert table.num_rows == 700
    assert table.schema.equals(released.data.schema)
    for row in table.to_pylist():
        assert row["age"] < 30
        assert row["region"] in ("a", "b")
        assert row["smoker"] is False
        assert row["decade"] == 0
    assert broken_rows(released.schema, table) == 0
    assert table.equals(ad.sample(released, 700, where=where, sample_seed=1))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"aged": 3}, "is not a declared column"),
        ({"decade": 0}, "is not a declared column"),
        ({"age": ">99"}, "no value of 'age' meets"),
        ({"job": "w"}, "is none of its categories"),
        ({"smoker": True, "job": "x"}, "0 of 65,536 rows that were drawn"),
    ],
)
def test_conditions_that_cannot_be_met_are_refused(released, where, words, monkeypatch):
    monkeypatch.setattr("adumbra.postprocess.moments.sampling.MOST_DRAWN", 2**16)
    with pytest.raises(InvalidInput, match=words):
        ad.sample(released, 10, where=where)


def test_other_methods_have_no_model(released):
    card = {**released.card, "method": {**released.card["method"], "name": "lda"}}
    with pytest.raises(Unsupported, match="method=lda: has no model to draw from"):
        ad.sample(replace(released, card=card), 10)
    with pytest.raises(InvalidInput, match="n=0"):
        ad.sample(released, 0)
