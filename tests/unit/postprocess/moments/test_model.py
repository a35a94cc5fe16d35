"""Post-processing of noisy moments: shrinkage, marginals, latent decoding. Public numbers only."""

import tracemalloc

import numpy as np
import pytest

from adumbra.postprocess import matrices
from adumbra.postprocess.latent import (
    Block,
    calibrate,
    choose_levels,
    class_labels,
    encoded,
    latent_model,
    normal_rows,
    sample,
)
from adumbra.postprocess.marginals import (
    cell_limits,
    cell_means,
    fill,
    merge_cells,
    merge_rare,
    project_simplex,
    quota,
)
from adumbra.postprocess.matrices import (
    noise_edge,
    root,
    shrink_means,
    shrink_rectangular,
    shrunk_blocks,
    shrunk_covariance,
    shrunk_directions,
    standing_out,
)
from adumbra.postprocess.moments import model as moments_model
from adumbra.postprocess.moments.stein import centred_mean, kept_part


def wigner(width, sigma, rng):
    upper = np.triu(rng.normal(size=(width, width)) * sigma, 1)
    return upper + upper.T + np.diag(rng.normal(size=width) * sigma * np.sqrt(2))


def shrink_symmetric(matrix, sigma):
    values, vectors = shrunk_directions(matrix, sigma)
    return (vectors * values) @ vectors.T, len(values)


def test_symmetric_shrinkage_beats_the_noisy_matrix_and_finds_the_rank():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(120, 3)))[0]
    truth = (basis * np.array([60.0, 45.0, 30.0])) @ basis.T
    noisy = truth + wigner(120, 1.0, rng)
    shrunk, rank = shrink_symmetric(noisy, 1.0)
    assert rank == 3
    assert np.linalg.norm(shrunk - truth) < 0.35 * np.linalg.norm(noisy - truth)
    nothing, rank = shrink_symmetric(wigner(200, 1.0, rng) * 0.9, 1.0)
    assert rank == 0
    assert not nothing.any()


@pytest.mark.parametrize(("strength", "spread"), [(0.0, 0.0), (40.0, 0.0), (40.0, 1.0)])
def test_wide_matrices_take_shorter_ways_to_the_same_numbers(monkeypatch, strength, spread):
    rng, width = np.random.default_rng(5), 90
    basis = np.linalg.qr(rng.normal(size=(width, 4)))[0]
    noisy = strength * basis @ basis.T + 0.9 * wigner(width, 1.0, rng)
    means = spread * rng.normal(size=(2, width))
    between, variances = means.T @ means, rng.uniform(50.0, 60.0, width)
    found = []
    for wide in (1024, 2):
        monkeypatch.setattr(matrices, "_WIDE_MATRIX", wide)
        monkeypatch.setattr(moments_model, "_MANY", wide)
        signal = shrunk_directions(noisy, 1.0)
        within = moments_model.with_rest(signal, between, variances, np.ones(width, bool))
        found.append((len(signal[0]), within, root(within) @ root(within).T))
    assert found[0][0] == found[1][0] == (4 if strength else 0)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-9, atol=1e-9)


def test_a_diagonal_factor_multiplies_column_by_column():
    labels, width = np.zeros(50, np.int64), 1100
    factor = np.diag(np.linspace(0.5, 2.0, width))
    direct = normal_rows(labels, width, np.random.default_rng(7), factor)
    plain = normal_rows(labels, width, np.random.default_rng(7))
    np.testing.assert_array_equal(direct, plain @ factor.T)
    assert direct.flags.f_contiguous


def test_rectangular_shrinkage_beats_the_noisy_matrix():
    rng = np.random.default_rng(1)
    truth = np.outer(rng.normal(size=200), rng.normal(size=16)) * 2
    noisy = truth + rng.normal(size=truth.shape)
    shrunk, rank = shrink_rectangular(noisy, 1.0)
    assert rank == 1
    assert np.linalg.norm(shrunk - truth) < 0.5 * np.linalg.norm(noisy - truth)
    same, _ = shrink_rectangular(noisy, 0.0)
    assert np.allclose(same, noisy)
    assert shrink_rectangular(np.empty((3, 0)), 1.0)[1] == 0


def test_class_means_are_shrunk_along_the_covariance():
    rng = np.random.default_rng(2)
    truth = np.zeros((4, 100))
    truth[:, :3] = rng.normal(size=(4, 3)) * 3
    truth -= truth.mean(axis=0)
    sizes = np.full(4, 50.0)
    noisy = truth + rng.normal(size=truth.shape)
    covariance = np.diag(np.r_[np.full(3, 50.0), np.full(97, 1.0)])
    shrunk = shrink_means(noisy * 50.0, sizes, covariance, 50.0, 0.1)
    assert np.linalg.norm(shrunk - truth) < 0.4 * np.linalg.norm(noisy - truth)
    assert np.allclose(sizes @ shrunk, 0.0)
    exact = shrink_means(truth * 50.0, sizes, covariance, 1e-6, 1e-9)
    assert np.allclose(exact, truth, atol=1e-6)
    assert not shrink_means(np.ones((1, 5)), np.ones(1), np.eye(5), 1.0, 0.1).any()
    assert not shrink_means(np.zeros((2, 5)), np.ones(2), np.eye(5), 1.0, 0.1).any()


def test_means_stay_where_the_trace_drowns():
    sums = np.array([[3.0, -1.0], [1.0, 5.0]])
    kept = shrink_means(sums, np.array([1.0, 3.0]), np.diag([1.0, -1.5]), 1.0, 1.0)
    assert np.allclose(kept[0] - kept[1], sums[0] - sums[1] / 3.0)
    assert np.allclose(np.array([1.0, 3.0]) @ kept, 0.0)


def test_a_small_class_is_drawn_further_in():
    rng = np.random.default_rng(7)
    truth = rng.normal(size=(8, 40))
    sizes = np.r_[np.full(7, 100.0), 2.0]
    sums = truth * sizes[:, None] + rng.normal(size=truth.shape) * 10.0
    shrunk = shrink_means(sums, sizes, np.eye(40), 10.0, 1e-3)
    kept = np.linalg.norm(shrunk, axis=1) / np.linalg.norm(sums / sizes[:, None], axis=1)
    assert kept[-1] < 0.2 < 0.8 < kept[:-1].min()


def test_means_that_spill_through_tilted_directions_are_taken_back():
    """One strong direction carries the means; noise in the covariance tilts it, its estimate leaks."""
    rng = np.random.default_rng(6)
    width, entry = 200, 0.1
    noise = rng.normal(size=(width, width)) * entry
    covariance = np.diag(np.r_[9.0, np.full(width - 1, 0.01)]) + (noise + noise.T) / np.sqrt(2.0)
    truth = np.zeros((2, width))
    truth[:, 0] = [-1.0, 1.0]
    sizes, sigma = np.full(2, 100.0), 0.1
    vectors = np.linalg.eigh(covariance)[1]
    found = shrink_means(truth * 100.0, sizes, covariance, sigma, entry) @ vectors
    blind = shrink_means(truth * 100.0, sizes, covariance, sigma, 1e-9) @ vectors
    assert abs(found[1, -1]) > 0.9
    assert np.linalg.norm(found[:, :-10]) < 0.5 * np.linalg.norm(blind[:, :-10])


def test_root_of_an_indefinite_matrix_is_that_of_its_positive_part():
    matrix = np.diag([2.0, -1.0])
    factor = root(matrix)
    assert np.allclose(factor @ factor.T, np.diag([2.0, 0.0]), atol=1e-8)


def test_simplex_projection_is_the_nearest_law():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(50, 7))
    found = project_simplex(rows)
    assert np.allclose(found.sum(axis=1), 1.0)
    assert found.min() >= 0.0
    others = rng.dirichlet(np.ones(7), size=400)
    for row, law in zip(rows, found, strict=True):
        assert np.linalg.norm(row - law) <= np.linalg.norm(row - others, axis=1).min() + 1e-12
    assert np.allclose(project_simplex(np.array([1.0, 1.0]), 6.0), [3.0, 3.0])
    assert np.allclose(project_simplex(np.array([1.0, -np.inf, 3.0]), 8.0), [3.0, 0.0, 5.0])
    assert np.allclose(project_simplex(np.array([[1.0, 2.0]]), np.array([-1.0])), 0.0)


def noisy_variances(seed, signal):
    noise = np.triu(np.random.default_rng(seed).normal(scale=0.01, size=(12, 12)), 1)
    return np.diag(np.full(12, 0.25)) + signal * (1.0 - np.eye(12)) + noise + noise.T


def test_correlations_among_which_nothing_stands_out_are_dropped():
    """It kept them all: variances far above the noise lifted every direction above its edge."""
    kept = []
    for seed in range(200):
        noisy = noisy_variances(seed, 0.0)
        values, vectors = shrunk_covariance(noisy, 0.01, np.full(12, 0.25))
        found, off = (vectors * values) @ vectors.T, ~np.eye(12, dtype=bool)
        kept.append(np.linalg.norm(found[off]) / np.linalg.norm(noisy[off]))
    assert np.mean(np.array(kept) > 0.5) < 0.04  # noise alone passes its 99 % in 1 or 2 of 100 cases
    assert np.median(kept) < 0.1


def test_correlations_that_stand_out_are_shrunk_by_directions():
    noisy = noisy_variances(9, 0.1)
    values, vectors = shrunk_covariance(noisy, 0.01, np.full(12, 0.25))
    others, directions = shrunk_directions(noisy, 0.01)
    assert np.array_equal(values, others)
    assert np.array_equal(vectors, directions)
    alone, _ = shrunk_covariance(np.array([[4.0]]), 1.0, np.array([3.0]))
    assert alone == pytest.approx(np.sqrt(4.0**2 - 2.0**2))
    drowned, _ = shrunk_covariance(np.zeros((3, 3)), 1.0, np.array([0.5, 0.0, 0.25]))
    assert drowned.tolist() == [0.25, 0.5]


OWNERS = np.repeat(np.arange(10), 4)  # ten categories of four levels
APART = OWNERS[:, None] != OWNERS


def noisy_levels(seed, between):
    """A covariance of even levels, with what lies between categories, and noise."""
    noise = np.triu(np.random.default_rng(seed).normal(scale=0.01, size=(40, 40)), 1)
    own = np.kron(np.eye(10), np.diag(np.full(4, 0.25)) - 1.0 / 16.0)
    return np.where(APART, between + noise + noise.T, own)


def test_levels_do_not_keep_the_noise_between_categories():
    """Variances of levels lifted every direction above its edge, and rows showed the noise."""
    before, after = [], []
    for seed in range(20):
        noisy = noisy_levels(seed, 0.0)
        for found, kept in (
            (shrunk_directions(noisy, 0.01), before),
            (shrunk_blocks(noisy, 0.01, np.full(40, 3.0 / 16.0), OWNERS), after),
        ):
            values, vectors = found
            shown = (vectors * values) @ vectors.T
            kept.append(np.linalg.norm(shown[APART]) / np.linalg.norm(noisy[APART]))
    assert np.mean(before) > 0.5
    assert np.mean(after) < 0.2


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_stands_out_between_categories_is_kept(sign):
    side = np.where(np.arange(40) % 4 < 2, 1.0, -1.0) * np.where(OWNERS < 5, 1.0, sign)
    truth = np.where(APART, 0.02 * np.outer(side, side), 0.0)
    values, vectors = shrunk_blocks(noisy_levels(3, truth), 0.01, np.full(40, 3.0 / 16.0), OWNERS)
    shown = (vectors * values) @ vectors.T
    assert np.linalg.norm((shown - truth)[APART]) < 0.5 * np.linalg.norm(truth)
    wide = shrunk_blocks(np.eye(1), 0.1, np.ones(1), np.zeros(1, int))
    assert wide[0] == pytest.approx(shrunk_directions(np.eye(1), 0.1)[0])


def test_the_card_counts_directions_above_the_noise_alone():
    """All positive ones were counted where what lies between categories is shrunk by itself."""
    noisy = noisy_levels(3, 0.0)
    shrunk = shrunk_blocks(noisy, 0.03, np.full(40, 3.0 / 16.0), OWNERS)
    above = int((np.linalg.eigvalsh(noisy) > noise_edge(0.03, 40)).sum())
    assert standing_out(noisy, 0.03, shrunk) == above < len(shrunk[0])
    wide = np.diag(np.linspace(0.0, 1.0, 512))
    kept = shrunk_directions(wide, 0.01)
    assert standing_out(wide, 0.01, kept) == len(kept[0])


def test_means_of_many_classes_take_little_memory():
    """All strengths were held at once, twice: 371 times the means each, which no plan counted."""
    rng = np.random.default_rng(4)
    sums, sizes = rng.normal(size=(64, 300)), np.full(64, 100.0)
    tracemalloc.start()
    shrink_means(sums, sizes, np.eye(300), 1.0, 1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * sums.nbytes


def test_few_means_that_noise_explains_are_drawn_in():
    """The likeliest strength kept up to .65 of what is noise alone, .10 in the mean."""
    kept = []
    for seed in range(200):
        sums = np.random.default_rng(seed).normal(scale=10.0, size=(9, 1))
        shown = shrink_means(sums, np.full(9, 100.0), np.eye(1), 10.0, 1e-3)
        centred = sums / 100.0 - sums.mean() / 100.0
        kept.append(np.linalg.norm(shown) / np.linalg.norm(centred))
    assert max(kept) < 0.55
    assert np.mean(kept) < 0.085
    loud = 100.0 * np.linspace(-1.0, 1.0, 9)[:, None]
    assert np.allclose(
        shrink_means(loud, np.full(9, 100.0), np.eye(1), 1.0, 1e-3), loud / 100.0, rtol=0.01
    )


def test_rare_levels_share_the_last_group():
    assert merge_rare(np.array([9.0, 1.0, 8.0, 2.0]), 3.0).tolist() == [0, 2, 1, 2]
    assert merge_rare(np.array([9.0, 8.0]), 3.0).tolist() == [0, 1]
    assert merge_rare(np.array([1.0, 2.0]), 3.0).tolist() == [0, 0]


def test_merged_cells_are_neighbours_and_heavy_enough():
    weights = np.array([1.0, 2.0, 60.0, 1.0, 1.0, 5.0, 20.0, 10.0, 0.5])
    groups = merge_cells(weights, 5, 2.0)
    assert np.all(np.diff(groups) >= 0)
    assert set(np.diff(groups)) <= {0, 1}
    totals = np.bincount(groups, weights)
    assert totals.min() >= 2.0
    assert groups[2] != groups[1]
    assert merge_cells(np.array([5.0, 0.1]), 1, 1.0).tolist() == [0, 0]
    assert merge_cells(np.array([5.0, 0.1]), 2, 1.0).tolist() == [0, 0]
    assert merge_cells(np.array([0.1]), 2, 1.0).tolist() == [0]


def test_values_hit_the_law_exactly_and_stay_in_their_cells():
    edges = np.array([0.0, np.nextafter(0.0, 1.0), 2.0, 4.0])
    low, high = cell_limits(edges, is_integer=False)
    assert high[0] == low[0] == 0.0
    order = np.random.default_rng(5).permutation(1000)
    values = fill(order, np.array([0.25, 0.5, 0.25]), (low, high))
    assert np.sum(values == 0.0) == 250
    assert np.sum(values >= 2.0) == 250
    assert np.all(np.diff(values[order]) >= 0)
    whole_low, whole_high = cell_limits(np.array([-0.5, 0.5, 3.2, 3.3]), is_integer=True)
    assert whole_low.tolist() == [0.0, 1.0, 4.0]
    assert whole_high.tolist() == [0.0, 3.0, 4.0]
    assert cell_means(np.array([0.0, 2.0, 6.0]), is_integer=False).tolist() == [1.0, 4.0]
    assert quota(np.zeros(4), 8).tolist() == [2, 2, 2, 2]
    assert quota(np.array([1.0, 2.0]), 0).tolist() == [0, 0]


def test_normal_rows_have_exact_moments_where_rows_suffice():
    rng = np.random.default_rng(6)
    labels = class_labels(np.array([0.3, 0.7]), 1000)
    assert np.bincount(labels).tolist() == [300, 700]
    rows = normal_rows(labels, 20, rng)
    assert np.allclose(rows.T @ rows / 1000, np.eye(20), atol=1e-8)
    few = normal_rows(labels[:30], 20, rng)
    assert np.allclose(few.mean(axis=0), 0.0, atol=1e-12)


def two_block_model(correlation=0.6):
    law = np.array([0.5, 0.3, 0.2])
    number = Block(start=0, width=1, shares=law, values=np.array([0.0, 0.5, 1.0]))
    levels = Block(
        start=1, width=3, shares=np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), values=np.empty(0)
    )
    covariance = np.zeros((4, 4))
    covariance[0, 0] = law @ number.values**2 - (law @ number.values) ** 2
    for code in range(3):
        covariance[1 + code, 1 + code] = 0.2
    covariance[0, 3] = covariance[3, 0] = correlation * 0.12
    covariance[0, 1] = covariance[1, 0] = -correlation * 0.12
    means = np.array([[-0.05, 0.2, 0.0, -0.2], [0.05, -0.2, 0.0, 0.2]])
    return latent_model((number, levels), np.array([0.5, 0.5]), means, (covariance,)), means, covariance


def test_calibrated_rows_show_marginals_means_and_covariance():
    model, means, covariance = two_block_model()
    rng = np.random.default_rng(7)
    model = calibrate(model, means, 10, 6000, rng)
    decoded = sample(model, 20_000, rng)
    shown = encoded(model, decoded)
    counts = np.bincount((2 * shown[:, 0]).astype(int), minlength=3) / len(shown)
    assert np.allclose(counts, [0.5, 0.3, 0.2], atol=1e-4)
    for code in range(2):
        rows = shown[decoded.labels == code]
        assert np.allclose(rows[:, 1:].mean(axis=0), model.blocks[1].shares[code], atol=0.02)
    gap = shown[decoded.labels == 1, 0].mean() - shown[decoded.labels == 0, 0].mean()
    assert abs(gap - 0.1) < 0.02
    within = np.concatenate(
        [shown[decoded.labels == c] - shown[decoded.labels == c].mean(axis=0) for c in (0, 1)]
    )
    found = within.T @ within / len(within)
    assert abs(found[0, 3] - covariance[0, 3]) < 0.02
    assert abs(found[0, 1] - covariance[0, 1]) < 0.02


def test_empty_classes_and_several_runs_of_columns_are_fine():
    model, means, covariance = two_block_model()
    parts = (covariance[:1, :1], covariance[1:, 1:])
    lonely = latent_model(model.blocks, np.array([1.0, 0.0]), means, parts)
    rng = np.random.default_rng(8)
    lonely = calibrate(lonely, means, 2, 500, rng)
    decoded = sample(lonely, 100, rng)
    assert not decoded.labels.any()
    codes, offsets = choose_levels(
        rng.normal(size=(10, 2)), np.zeros(10, np.int64), np.full((2, 2), 0.5), np.zeros((2, 2)), 3
    )
    assert set(codes) <= {0, 1}
    assert not offsets[1].any()


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_hardly_any_rows_are_fine(rows):
    model, _, _ = two_block_model()
    assert len(sample(model, rows, np.random.default_rng(0)).labels) == rows


def test_a_mean_that_noise_explains_is_none():
    rng = np.random.default_rng(3)
    lost = [kept_part(rng.normal(size=100), 1.0) for _ in range(50)]
    assert np.mean(lost) < 0.15  # it was 1: noise became a direction of the covariance
    assert kept_part(np.full(100, 10.0), 1.0) == pytest.approx(0.99)
    assert kept_part(np.zeros(3), 1.0) == 0.0
    mean = np.array([0.1, -0.1, 7.0])
    assert centred_mean(mean, 1.0, np.array([True, True, False])).tolist() == [0.0, 0.0, 7.0]
    assert centred_mean(mean, 0.0, is_centred=True).tolist() == mean.tolist()


def test_chance_is_no_difference_of_classes_where_directions_drown():
    """Two classes of 5,000 rows that differ along a few loud directions; the others show only chance."""
    rng = np.random.default_rng(4)
    sizes, loud = np.array([5_000.0, 5_000.0]), np.arange(100) < 4
    variances = np.where(loud, 20.0, 0.05)
    means = np.outer([1.0, -1.0], np.where(loud, 1.0, 0.0))
    means += rng.standard_normal((2, 100)) * np.sqrt(variances / sizes[0])
    shrunk = shrink_means(means * sizes[:, None], sizes, np.diag(variances), 1e-3, 0.01)
    assert np.abs(shrunk[:, ~loud]).max() < 0.1 * np.abs(means[:, ~loud]).max()
    np.testing.assert_allclose(shrunk[0, loud], (means[0] - means[1])[loud] / 2.0, rtol=0.01)
    quiet = shrink_means(means * sizes[:, None], sizes, np.diag(variances), 1e-3, 1e-6)  # none drown
    np.testing.assert_allclose(quiet[0], (means[0] - means[1]) / 2.0, atol=1e-3)
