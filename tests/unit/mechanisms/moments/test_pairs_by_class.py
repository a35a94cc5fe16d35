"""Columns of two levels beside categories with a class: how they are counted, and what that saves."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adumbra.mechanisms.moments import release as moments
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import design
from adumbra.mechanisms.moments.plan import settle
from adumbra.postprocess.moments.bayes import evidence, shared_signals, signal
from adumbra.postprocess.moments.design import (
    BINS,
    FINER_CELLS,
    NUMBER_CELLS,
    NUMBERS,
    PAIRS,
    features_of,
    label_of,
)
from adumbra.postprocess.moments.laws import Noisy, read_marginals
from adumbra.postprocess.moments.model import Found, build_model
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.moments import run

REPLACE = Neighbours.REPLACE_ONE
AGE = Column(name="age", kind=Kind.INTEGER, lower=0, upper=99)


def pairs_beside(pairs, categories, *, rows, label="c0", numbers=()):
    """So many columns of two levels beside categories of three, the first of which is the class."""
    columns = [Column(name=f"p{i}", kind=Kind.BOOLEAN) for i in range(pairs)]
    columns += [
        Column(name=f"c{i}", kind=Kind.CATEGORY, categories=("a", "b", "c")) for i in range(categories)
    ]
    return Schema(
        columns=(*columns, *numbers), unit=Unit.ROW, neighbours=REPLACE, label=label, rows=rows
    )


def test_columns_of_two_levels_are_counted_by_class_where_others_are_more_and_pairs_are_heard():
    config = MomentsConfig(epsilon=1.0)
    few = design(config, pairs_beside(3, 6, rows=20_000))
    assert few.pairs_by_class
    assert all(feature.is_levels for feature in few.features)
    assert few.cells[:3] == (6, 6, 6)  # of three classes
    assert few.label_weight == pytest.approx(0.1, abs=1e-4)  # no column learns its classes there
    assert few.facts()[PAIRS] is True
    for other in (
        design(config, pairs_beside(3, 6, rows=300)),  # pairs are noise
        design(config, pairs_beside(5, 6, rows=20_000)),  # as many as others, but for the class
        design(config, pairs_beside(3, 6, rows=20_000, label=None)),
        design(replace(config, numbers="scores"), pairs_beside(3, 6, rows=20_000, numbers=(AGE,))),
    ):
        assert not other.pairs_by_class
        assert not other.features[0].is_levels
        assert other.cells[0] == 2
        assert PAIRS not in other.facts()
    binned = design(replace(config, numbers="bins"), pairs_beside(3, 6, rows=20_000, numbers=(AGE,)))
    assert binned.pairs_by_class


def test_the_class_weighs_little_beside_what_says_that_a_number_is_missing():
    config = MomentsConfig(epsilon=1.0, numbers="bins")
    flagged = replace(AGE, missing="null")
    found = design(config, pairs_beside(3, 6, rows=20_000, numbers=(flagged,)))
    assert found.pairs_by_class
    assert found.features[-1].is_flag
    assert not found.features[-1].is_levels
    assert found.label_weight == pytest.approx(0.3, abs=1e-4)
    scored = design(replace(config, numbers="scores"), pairs_beside(3, 6, rows=20_000, numbers=(AGE,)))
    assert scored.label_weight == pytest.approx(0.7071, abs=1e-4)


CONSTANT = Column(name="one", kind=Kind.CATEGORY, categories=("z",))
NARROW = Column(name="narrow", kind=Kind.INTEGER, lower=2**53 - 2, upper=2**53 - 1)  # one cell


@pytest.mark.parametrize(
    "numbers",
    [
        (),
        (CONSTANT,),
        (NARROW,),
        (AGE, CONSTANT),
        (replace(AGE, upper=1), replace(AGE, missing="null", name="b")),
    ],
)
@pytest.mark.parametrize("how", ["bins", "scores", "auto"])
def test_readers_find_the_cells_that_were_counted(numbers, how):
    for pairs in range(5):
        schema = pairs_beside(pairs, 4, rows=20_000, numbers=numbers)
        has_numbers = any(column.is_numeric for column in numbers)
        config = MomentsConfig(epsilon=1.0, **({"numbers": how} if has_numbers else {}))
        found = design(config, schema)
        facts, (label, _) = found.facts(), label_of(schema)
        read = features_of(
            schema,
            label,
            is_binned=facts[NUMBERS] == BINS,
            parts=facts[NUMBER_CELLS],
            steps=facts.get(FINER_CELLS, 0),
            pairs_by_class=facts.get(PAIRS, False),
        )
        assert [(f.name, f.cells, f.is_levels) for f in read] == [
            (f.name, f.cells, f.is_levels) for f in found.features
        ]


def test_columns_of_one_level_decide_nothing():
    config = MomentsConfig(epsilon=1.0)
    bare, more = (
        design(config, pairs_beside(2, 4, rows=20_000, numbers=numbers)) for numbers in ((), (CONSTANT,))
    )
    assert bare.pairs_by_class
    assert more.pairs_by_class
    assert more.label_weight == bare.label_weight
    alone = pairs_beside(1, 1, rows=20_000, numbers=(CONSTANT, replace(CONSTANT, name="two")))
    assert not design(config, alone).pairs_by_class


def test_histograms_get_more_the_louder_pairs_are():
    config = MomentsConfig(epsilon=1.0, table_share=0.0)
    found = [design(config, pairs_beside(3, 8, rows=n)) for n in (100_000, 1_000, 300)]
    shares = [one.shares[0] + one.shares[3] for one in found]
    assert shares == pytest.approx([0.7, 0.8, 0.8])
    pooled = [one.shares[3] / whole for one, whole in zip(found, shares, strict=True)]
    assert pooled == pytest.approx([0.45, 0.65, 0.65])
    assert [one.is_refined for one in found] == [True, True, False]
    assert [one.is_loud for one in found] == [False, True, False]
    asked = replace(config, marginal_share=0.5)
    assert [design(asked, pairs_beside(3, 8, rows=n)).shares[2] for n in (1_000, 300)] == [0.48, 0.48]


def test_columns_of_two_levels_that_are_read_together_are_forecast_so():
    plan = settle(MomentsConfig(epsilon=1.0), pairs_beside(12, 15, rows=20_000)).plan
    name = "one_way_total_variation_mean"
    assert plan.expected[f"{name}_if_columns_are_alike"] < plan.expected[name]
    few = settle(MomentsConfig(epsilon=1.0), pairs_beside(4, 15, rows=20_000)).plan
    assert f"{name}_if_columns_are_alike" not in few.expected


@pytest.mark.parametrize("seed", range(3))
def test_many_columns_of_two_levels_by_class_are_read_together(seed):
    rng = np.random.default_rng(seed)
    schema = pairs_beside(12, 15, rows=20_000)
    found = design(MomentsConfig(epsilon=1.0), schema)
    assert found.pairs_by_class
    sigma, rows = 300.0, 20_000.0
    histograms = [np.full(cells, rows / cells) for cells in found.cells]
    noisy = [h + sigma * rng.normal(size=len(h)) for h in histograms]
    read = read_marginals(found, Noisy(noisy, sigma), Noisy(), 20_000)
    shares = np.array([read.class_shares @ law for law in read.laws[:12]])[:, 1]
    alone = np.array([h.reshape(3, 2).sum(axis=0)[1] for h in noisy[:12]]) / rows
    assert np.std(shares) < 0.5 * np.std(alone)


def test_tables_of_columns_with_few_levels_are_measured_sooner():
    config = MomentsConfig(epsilon=8.0)
    small = [design(config, pairs_beside(4, 6, rows=n)).chosen for n in (2_000, 5_000)]
    assert [chosen is not None for chosen in small] == [False, True]
    levels = tuple("abcdefgh")
    wide = pairs_beside(4, 6, rows=5_000)
    columns = [
        replace(c, categories=levels) if c.name > "c0" and c.categories else c for c in wide.columns
    ]
    assert design(config, replace(wide, columns=tuple(columns))).chosen is None


def test_noise_of_class_sums_does_not_bend_categories():
    """Their classes come from the histograms, so sums that weigh little are noise alone."""
    rng = np.random.default_rng(3)
    schema = pairs_beside(0, 8, rows=4_000)
    hidden = rng.integers(0, 3, 4_000)
    moved = np.where(rng.random((8, 4_000)) < 0.6, hidden, rng.integers(0, 3, (8, 4_000)))
    table = pa.table({f"c{i}": np.array(list("abc"))[moved[i]] for i in range(8)})
    config = MomentsConfig(epsilon=1.0, table_share=0.0)
    planned = settle(config, schema)
    arrays = run(table, schema, config).arrays
    first = moments.read_first(planned, arrays)
    gram = moments.read_gram(planned, arrays, *planned.parts.gram_of(len(first[1].means)))
    assert np.abs(gram.class_sums).mean() > 0.5 * gram.class_sigma
    found = Found(planned.parts.design, schema, *first)
    given, none = (
        build_model(found, one, 0).latent.covariances[0]
        for one in (gram, replace(gram, class_sums=np.zeros_like(gram.class_sums)))
    )
    assert np.abs(given - none).max() < 0.05  # 0.2 if they were taken as they are


def test_strengths_that_all_tables_share_do_not_follow_chance():
    """Of 200 tables most have no signal; the likeliest strength of each alone takes noise for one."""
    rng = np.random.default_rng(4)
    expected, noise = np.full((5, 5), 50.0), np.full((5, 5), 100.0**2)
    truths = [np.zeros((5, 5))] * 190 + [rng.normal(size=(5, 5)) * 400.0 for _ in range(10)]
    seen = [truth + 100.0 * rng.normal(size=(5, 5)) for truth in truths]
    tables = [(one, expected, noise) for one in seen]
    logs = [evidence(*table) for table in tables]
    together = shared_signals(tables, np.stack([one.ravel() for one in logs]))
    alone = [signal(*table, one) for table, one in zip(tables, logs, strict=True)]

    def rms(found, part):
        return float(np.sqrt(np.mean([(f - t) ** 2 for f, t in zip(found, truths, strict=True)][part])))

    quiet, loud = slice(0, 190), slice(190, 200)
    assert rms(together, quiet) < 0.25 * rms(alone, quiet)
    assert rms(together, loud) < 1.1 * rms(alone, loud) < 110.0
