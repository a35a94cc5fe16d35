"""Plain words on pages: names of errors, the order of lists, and readings of attacks."""

from dataclasses import replace

import adumbra as ad
from adumbra.relations import Neighbours, Unit
from adumbra.report.internal import scores
from adumbra.report.page import EXPECTED, expected_words, fact_words, in_order, render
from adumbra.schema.schema import Column, Kind, Schema
from support.release import example_card

FACTS = {
    "title": "t",
    "method": "lda",
    "sentence": "s",
    "words": "Evidence.",
    "advantage_allowed": 0.4,
    "standard_error": 0.03,
    "density_advantage": 0.03,
    "shadow_advantage": 0.0,
    "shadow_error": 0.5,
    "attribute_advantage": 0.2,
    "distance_ratio": 0.97,
}
MIXED = Schema(
    columns=(
        *(Column(name=f"x{i}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for i in range(12)),
        Column(name="y", kind=Kind.CATEGORY, categories=("a", "b", "c")),
    ),
    unit=Unit.ROW,
    neighbours=Neighbours.REPLACE_ONE,
    label="y",
    rows=5000,
)


OLD_NAMES = ("one_way_total_variation", "one_way_total_variation_if_columns_are_alike")  # format 1


def test_every_expected_error_has_a_phrase():
    configs = [
        ad.MomentsConfig(epsilon=1.0),
        ad.MomentsConfig(epsilon=1.0, numbers="bins", table_share=0.3),
        ad.RONGaussConfig(epsilon=1.0, delta=0.0),
        ad.RONGaussConfig(epsilon=1.0, delta=0.0, mode="gmm"),
        ad.LDAConfig(epsilon=1.0, delta=0.0),
        ad.AnswersConfig(epsilon=1.0),
        ad.PCAConfig(n_components=2, epsilon=1.0, delta=0.0),
        ad.DPProConfig(n_components=2, epsilon=1.0, delta=1e-6),
        ad.JLLaplaceConfig(n_components=2, epsilon=1.0),
    ]
    met = {name for config in configs for name in ad.plan(config, MIXED).expected}
    amount = Column(name="amount", kind=Kind.INTEGER, lower=0, upper=100_000)
    kind = Column(name="kind", kind=Kind.CATEGORY, categories=("a", "b", "c"))
    amounts = replace(MIXED, columns=(amount, kind, *MIXED.columns[-3:]), rows=10**6)
    met |= set(ad.plan(ad.MomentsConfig(epsilon=1.0, numbers="bins"), amounts).expected)
    private = tuple(replace(column, private=True) for column in MIXED.columns)
    met |= set(ad.plan(ad.BoundsConfig(epsilon=1.0), replace(MIXED, columns=private)).expected)
    assert met == set(EXPECTED) - set(OLD_NAMES)
    assert all("mean over columns" in EXPECTED[name] for name in OLD_NAMES)


def test_other_names_are_shown_as_words():
    assert expected_words("standard error of a count, length 5") == "standard error of a count, length 5"
    assert fact_words("zone_scale") == "zone scale"
    assert expected_words("surviving_rank") != fact_words("surviving_rank")


def test_numbers_in_names_count_by_size():
    names = ["length 10", "length 2", "length 1", "a", ""]
    assert list(in_order(dict.fromkeys(names, 0))) == ["", "a", "length 1", "length 2", "length 10"]


def test_the_page_rounds_what_was_found_and_orders_like_a_card_read_from_a_file():
    facts = {"clip_radius": 1.8120056948677425, "alpha": [0.123456789, 2]}
    errors = {"length 10": 1.0, "length 9": 0.123456789}
    contents = {"main": "data", "tables": {}, "arrays": {}}
    card = {**example_card(facts=facts, expected_error=errors), "contents": contents, "files": {}}
    page = render(card)
    assert "1.8120056948677425" not in page
    assert "length to which longer centred rows were shortened</dt><dd>1.812<" in page
    assert "0.1235, 2" in page
    assert page.index("length 9") < page.index("length 10")
    turned = {**card, "facts": dict(reversed(facts.items())), "accuracy": dict(sorted(errors.items()))}
    assert render(turned) == page


def test_readings_name_their_line_and_own_up_to_too_few_trials():
    density, shadow, attribute, nearest = scores(FACTS)
    assert density.reading == "no better than chance (the line is drawn at +0.09)"
    assert density.score == "+0.03 ± 0.06"
    assert shadow.reading.startswith("too few trials")
    assert shadow.score == "+0.00"
    assert attribute.reading == "stands out of chance: look closer (the line is drawn at +0.09)"
    assert "0.80" in nearest.reading
