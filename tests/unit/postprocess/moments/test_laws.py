"""One-way laws that take in means of a second release: pairs of levels, numbers, and a whole table."""

import numpy as np
import pyarrow as pa
import pytest

from adumbra.data.opening import open_source
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.release import model_of, read_first
from adumbra.mechanisms.moments.rows import centred
from adumbra.postprocess.latent import sample
from adumbra.postprocess.marginals import COMMON_COLUMNS
from adumbra.postprocess.moments.laws import Marginals, score_values, tilted, with_means
from adumbra.postprocess.moments.model import Found, centred_rows
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.methods import draw, settled_on
from support.moments import numbers_schema, run

ROWS, SIGMA = 10_000.0, 200.0


def marginals_of(laws):
    return Marginals(
        rows=ROWS,
        sigma=SIGMA,
        pooled_sigma=SIGMA,
        own_sigma=SIGMA,
        counts=(),
        class_shares=np.full(2, 0.5),
        laws=tuple(laws),
    )


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def pairs(rng, misfit):
    """Shares of 64 columns, noisy laws of them, and what a second release of their means lacks."""
    shares = rng.uniform(0.2, 0.8, 64)
    noisy = shares + rng.normal(size=64) * SIGMA / ROWS / np.sqrt(2.0)
    noise = (SIGMA / ROWS) ** 2 / 2.0
    gaps = shares - noisy + rng.normal(size=64) * np.sqrt(noise) + misfit * rng.normal(size=64)
    laws = [np.array([1.0 - share, share]) for share in noisy]
    return (
        shares,
        noisy,
        with_means(marginals_of(laws), dict.fromkeys(range(64), np.arange(2.0)), gaps, noise),
    )


@pytest.mark.parametrize("seed", range(5))
def test_shares_of_both_releases_have_the_error_of_both(seed):
    shares, noisy, found = pairs(np.random.default_rng(seed), misfit=0.0)
    after = np.array([law[1] for law in found.laws])
    assert rms(after - shares) == pytest.approx(np.sqrt(0.5) * rms(noisy - shares), rel=0.25)


@pytest.mark.parametrize("seed", range(5))
def test_means_that_are_wrong_by_more_than_their_noise_count_for_little(seed):
    shares, noisy, found = pairs(np.random.default_rng(seed), misfit=0.2)
    after = np.array([law[1] for law in found.laws])
    assert rms(after - shares) < 1.1 * rms(noisy - shares)


@pytest.mark.parametrize("columns", [COMMON_COLUMNS - 1, 40])
def test_numbers_follow_means_where_many_share_the_evidence(columns):
    rng = np.random.default_rng(3)
    values = np.linspace(0.0, 1.0, 16)
    truth = rng.dirichlet(np.full(16, 2.0), columns)
    laws = np.abs(truth + rng.normal(size=truth.shape) * SIGMA / ROWS)
    laws /= laws.sum(axis=1, keepdims=True)
    gaps = (truth - laws) @ values
    found = with_means(marginals_of(laws), dict.fromkeys(range(columns), values), gaps, 1e-8)
    after = np.stack(found.laws)
    if columns < COMMON_COLUMNS:
        assert np.array_equal(after, laws)
    else:
        assert rms((after - truth) @ values) < 0.2 * rms(gaps)
        assert np.allclose(after.sum(axis=1), 1.0)


def test_gaps_that_noise_explains_move_no_number():
    rng = np.random.default_rng(4)
    laws, values = rng.dirichlet(np.full(16, 2.0), 40), np.linspace(0.0, 1.0, 16)
    gaps = rng.normal(size=40) * 0.01
    found = with_means(marginals_of(laws), dict.fromkeys(range(40), values), gaps, 4e-4)
    assert rms((np.stack(found.laws) - laws) @ values) < 1e-3


@pytest.mark.parametrize("shift", [-0.01, 0.0, 0.02])
def test_a_tilted_law_has_the_mean_that_is_wanted_and_no_new_cells(shift):
    law, values = np.array([0.0, 0.3, 0.2, 0.5, 0.0]), np.linspace(0.0, 1.0, 5)
    found = tilted(law, values, shift)
    assert found @ values == pytest.approx(law @ values + shift, abs=1e-9)
    assert found.sum() == pytest.approx(1.0)
    assert np.array_equal(found > 0.0, law > 0.0)


def test_a_law_is_tilted_at_most_half_the_way_to_its_last_cell():
    law, values = np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 2.0])
    assert tilted(law, values, 9.0) @ values == pytest.approx(0.75)
    assert tilted(law, values, -9.0) @ values == pytest.approx(0.25)
    single = np.array([0.0, 1.0, 0.0])
    assert np.array_equal(tilted(single, values, 0.3), single)


def boolean_table(rows=4000, width=40):
    rng = np.random.default_rng(11)
    label = rng.random(rows) < 0.4
    shares = rng.uniform(0.05, 0.6, width)
    hits = rng.random((rows, width)) < np.where(label[:, None], shares, shares[::-1])
    columns = [Column(name=f"b{i}", kind=Kind.BOOLEAN) for i in range(width)]
    columns.append(Column(name="y", kind=Kind.BOOLEAN))
    schema = Schema(
        columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label="y", rows=rows
    )
    return pa.table({f"b{i}": hits[:, i] for i in range(width)} | {"y": label}), schema


def test_drawn_rows_are_nearer_to_the_shares_than_histograms_alone():
    """Under one known secret, so that this is arithmetic; a tenth of the error at least goes."""
    table, schema = boolean_table()
    truth = np.array([np.mean(table[f"b{i}"].to_numpy(zero_copy_only=False)) for i in range(40)])
    config = MomentsConfig(epsilon=0.1, delta=1e-6)
    settled = settled_on(open_source(table, schema), config)
    errors = []
    for seed in range(4):
        arrays = dict(run(table, schema, config, seed=seed).arrays)
        model = model_of(settled, arrays)
        first, _ = read_first(settled, arrays)
        errors.append(
            [rms(np.array([law[1] for law in m.laws[:40]]) - truth) for m in (first, model.marginals)]
        )
        assert [block.shares[1] for block in model.latent.blocks] == [
            law[1] for law in model.marginals.laws
        ]
    before, after = np.mean(errors, axis=0)
    assert after < 0.9 * before


def test_without_classes_laws_stay_as_the_histograms_tell_them():
    rng = np.random.default_rng(2)
    table = pa.table({f"x{i}": rng.uniform(-1, 1, 500) for i in range(10)})
    schema = numbers_schema(10)
    config = MomentsConfig(epsilon=1.0, delta=1e-6, table_share=0.0)
    arrays = dict(run(table, schema, config).arrays)
    settled = settled_on(open_source(table, schema), config)
    first, _ = read_first(settled, arrays)
    assert all(
        np.array_equal(one, other)
        for one, other in zip(first.laws, model_of(settled, arrays).marginals.laws, strict=True)
    )


def test_means_that_all_columns_lack_alike_are_an_error_of_the_model():
    """Their histograms together know it better: what is common moves no column."""
    rng = np.random.default_rng(6)
    laws, values = rng.dirichlet(np.full(16, 2.0), 40), np.linspace(0.0, 1.0, 16)
    gaps = 0.02 + 1e-4 * rng.normal(size=40)
    found = with_means(marginals_of(laws), dict.fromkeys(range(40), values), gaps, 1e-8)
    assert rms((np.stack(found.laws) - laws) @ values) < 2e-4


@pytest.mark.parametrize("cells", [2, 16])
def test_no_mean_moves_by_more_than_twice_the_noise_of_its_histogram(cells):
    rng = np.random.default_rng(7)
    laws, values = rng.dirichlet(np.full(cells, 9.0), 64), np.linspace(0.0, 1.0, cells)
    noise = SIGMA / ROWS * float(np.linalg.norm(values - values.mean()))
    for gaps in (np.where(np.arange(64) == 3, 0.3, 0.0), 0.1 * rng.normal(size=64)):
        found = with_means(marginals_of(laws), dict.fromkeys(range(64), values), gaps, 1e-8)
        moved = np.abs((np.stack(found.laws) - laws) @ values)
        assert moved.max() < 2.001 * noise


def loud_table(rows=20_000, width=24):
    """One row in twelve is high everywhere: how it is shortened no normal law shows."""
    rng = np.random.default_rng(12)
    loud = rng.random(rows) < 0.08
    label = rng.integers(1, 3, rows)
    quiet = rng.normal(-0.6, 0.1, (rows, width))
    values = np.where(loud[:, None], rng.uniform(0.3, 1.0, (rows, width)), quiet)
    return np.clip(values + 0.1 * (label == 2)[:, None], -1.0, 1.0), label


def test_rows_that_are_shortened_unlike_those_of_the_model_do_little_harm():
    values, label = loud_table()
    width = values.shape[1]
    table = pa.table({f"x{i}": values[:, i] for i in range(width)} | {"y": label})
    source = open_source(table, numbers_schema(width, classes=2))
    config = MomentsConfig(epsilon=0.3, delta=1e-6, table_share=0.0)
    settled, arrays = settled_on(source, config), dict(draw(source, config).arrays)
    first, _ = read_first(settled, arrays)
    scores = [score_values(feature) for feature in settled.parts.design.features]
    before, after = (
        rms([law @ score for law, score in zip(one.laws, scores, strict=True)] - truth_of(values))
        for one in (first, model_of(settled, arrays).marginals)
    )
    assert after < 1.5 * before


def truth_of(values):
    return (values.mean(axis=0) + 1.0) / 2.0


def test_an_integer_of_two_values_follows_its_mean_like_a_boolean():
    """Beside levels it is scaled to vary like one: shares are compared, whatever their units."""
    rng = np.random.default_rng(8)
    shares = rng.uniform(0.02, 0.98, 40)
    laws = [np.array([1.0 - share, share]) for share in shares]
    gaps, noise = 0.01 * rng.normal(size=40), (SIGMA / ROWS) ** 2
    found = []
    for unit in (1.0, 4.0):
        units = np.where(np.arange(40) % 2, unit, 1.0)
        values = {place: np.array([0.0, one]) for place, one in enumerate(units)}
        # A column in larger units has a gap that is as much larger; half of the columns are booleans
        moved = with_means(marginals_of(laws), values, gaps * units, noise)
        found.append(np.array([law[1] for law in moved.laws]))
    is_boolean = np.arange(40) % 2 == 0
    assert np.allclose(found[0][is_boolean], found[1][is_boolean], atol=1e-12)
    assert rms(found[0] - shares) > 1e-4


def test_a_pair_of_values_that_float64_cannot_tell_apart_disturbs_no_other():
    """Integers near 2^52 have no halves: both cells of such a column have one mean."""
    rng = np.random.default_rng(9)
    laws = [np.array([1.0 - share, share]) for share in rng.uniform(0.02, 0.98, 40)]
    values = {place: np.array([0.0, 1.0]) for place in range(40)}
    gaps, noise = 0.01 * rng.normal(size=40), (SIGMA / ROWS) ** 2
    gaps[7] = 0.0
    values[7] = np.full(2, 2.0**52)
    with np.errstate(all="raise"):
        moved = with_means(marginals_of(laws), values, gaps, noise).laws
    assert np.array_equal(moved[7], laws[7])
    assert rms(np.array([law[1] for law in moved]) - np.array([law[1] for law in laws])) > 1e-4


def missing_table(rows=4000):
    """A number that is missing in most rows, beside booleans and a label."""
    rng = np.random.default_rng(14)
    number = rng.uniform(0.0, 1.0, rows) ** 3
    hits = rng.random((rows, 9)) < np.linspace(0.05, 0.5, 9)
    columns = [Column(name="x", kind=Kind.NUMBER, lower=0.0, upper=1.0, missing="null")]
    columns += [Column(name=f"b{i}", kind=Kind.BOOLEAN) for i in range(10)]
    schema = Schema(
        columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label="b9", rows=rows
    )
    data = {"x": pa.array(number, mask=rng.random(rows) < 0.7)}
    data |= {f"b{i}": hits[:, i] for i in range(9)} | {"b9": rng.random(rows) < 0.5}
    return pa.table(data), schema


def test_rows_of_the_model_have_missing_numbers_where_private_rows_have_them():
    """Both lie at the average there; drawn rows would else be longer, and be shortened more."""
    table, schema = missing_table()
    config = MomentsConfig(epsilon=8.0, delta=1e-6, table_share=0.0)
    source = open_source(table, schema)
    settled = settled_on(source, config)
    model = model_of(settled, dict(run(table, schema, config).arrays))
    found = Found(settled.parts.design, schema, model.marginals, model.centre)
    drawn = centred_rows(found, model.latent, sample(model.latent, 4000, np.random.default_rng(1)))
    batches = source.batches(4096)
    private = np.concatenate([centred(batch, found.design, found.centre, 0.0)[0] for batch in batches])
    place = next(f.index for f in found.design.features if f.is_flag)
    assert np.mean(private[:, place] == 0.0) == pytest.approx(0.7, abs=0.03)
    assert np.mean(drawn[:, place] == 0.0) == pytest.approx(0.7, abs=0.03)
    lengths = [np.mean(np.square(rows).sum(axis=1)) for rows in (drawn, private)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.05)
