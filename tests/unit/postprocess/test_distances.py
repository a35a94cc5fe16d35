"""Distances, intervals, blocks, neighbours: the arithmetic, against plain loops."""

import math

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.postprocess import distances as ds
from adumbra.postprocess.distances import DistanceModel, NoiseLaw

RNG = np.random.default_rng(0)
P, Q = RNG.standard_normal((50, 4)), RNG.standard_normal((33, 4))


def model(family="gaussian", noise="gaussian", unit=1.0, k=4):
    law = ds.gaussian_law(0.5, 1e-6) if noise == "gaussian" else ds.laplace_law(0.5, 1e-6)
    return DistanceModel(family=family, n_features=9, n_components=k, noise=law, unit=unit)


def plain(m, p, q):
    return m.unit**2 * (np.sum((p - q) ** 2) - 2 * len(p) * m.noise.variance)


@pytest.mark.parametrize("unit", [1.0, 3.0])
def test_pairs_and_blocks_are_the_plain_formula(unit):
    m = model(unit=unit)
    block = ds.block_distances(m, P, Q)
    loop = np.array([[plain(m, p, q) for q in Q] for p in P])
    assert np.allclose(block, loop, rtol=1e-12, atol=1e-12)
    assert np.allclose(ds.pair_distances(m, P[:33], Q), np.diag(loop[:33]), rtol=1e-12)


def test_a_far_away_table_keeps_its_digits():
    m = model()
    shifted = ds.block_distances(m, P + 1e6, Q + 1e6)
    assert np.allclose(shifted, ds.block_distances(m, P, Q), atol=1e-8)


def test_all_pairs_cover_each_pair_once_in_blocks():
    m = model()
    whole = ds.block_distances(m, P, P)
    seen = np.zeros((50, 50), dtype=int)
    for part in ds.all_pairs(m, P, block=7):
        rows, columns = part.distances.shape
        assert max(rows, columns) <= 7
        place = (slice(part.row, part.row + rows), slice(part.column, part.column + columns))
        assert np.allclose(part.distances, whole[place], atol=1e-9)
        seen[place] += 1
    assert np.all(np.triu(seen) == np.triu(np.ones((50, 50), dtype=int)))


def test_nearest_rows_are_those_of_a_full_sort():
    m = model()
    found = ds.nearest(m, Q, P, 5, block=8)
    whole = ds.block_distances(m, Q, P)
    assert np.array_equal(found.rows, np.argsort(whole, axis=1, kind="stable")[:, :5])
    assert np.allclose(found.distances, np.sort(whole, axis=1)[:, :5], atol=1e-9)
    assert np.allclose(found.standard_errors, m.standard_error(found.distances))
    itself, others = (
        ds.nearest(m, P[3:6], P, 2),
        ds.nearest(m, P[3:6], P, 2, own=np.arange(3, 6), block=8),
    )
    assert np.array_equal(itself.rows[:, 0], [3, 4, 5])
    assert np.array_equal(itself.rows[:, 1], others.rows[:, 0])


@pytest.mark.parametrize(("noise", "factor"), [("gaussian", 8.0), ("laplace", 14.0)])
def test_the_variance_is_the_formula(noise, factor):
    m, rho2 = model(noise=noise), np.array([0.0, 2.5])
    s2 = m.noise.variance
    expected = 2 / 4 * rho2**2 + 8 * s2 * rho2 + 4 * factor * s2**2
    assert np.allclose(m.variance(rho2), expected, rtol=1e-5)
    assert np.allclose(m.standard_error(np.array([-1.0, 0.0])), math.sqrt(4 * factor) * s2, rtol=1e-5)
    known = model(family="sphere", noise=noise).variance(rho2, fourth_power=1.5)
    assert np.allclose(known, expected - 2 / 4 * 1.5, rtol=1e-5)


@pytest.mark.parametrize("unit", [2.0, 0.25])
def test_units_scale_distances_and_errors_alike(unit):
    m = model(family="haar", unit=unit)
    plain_unit = m.in_encoded_units()
    assert plain_unit.unit == 1.0
    assert np.allclose(ds.block_distances(m, P, Q), ds.block_distances(plain_unit, P * unit, Q * unit))
    values = np.array([0.0, 1.0, 7.0])
    assert np.allclose(m.variance(values), plain_unit.variance(values), rtol=1e-12)


def test_laws_are_those_of_the_lattice():
    for scale, grid in ((0.7, 0.5), (3.0, 1.0), (1.0, 2.0**-20)):
        q = math.exp(-grid / scale)
        m = np.arange(-400, 401) if grid > 0.1 else None
        law = ds.laplace_law(scale, grid)
        if m is not None:
            p = (1 - q) / (1 + q) * q ** np.abs(m)
            second, fourth = np.sum(p * (grid * m) ** 2), np.sum(p * (grid * m) ** 4)
            assert law.variance == pytest.approx(second, rel=1e-12)
            assert law.fourth == pytest.approx(fourth - 3 * second**2, rel=1e-10)
        else:
            assert (law.variance, law.fourth) == pytest.approx((2.0, 12.0), rel=1e-6)
    rounded = ds.gaussian_law(2.0, 1.0)
    assert rounded.variance == pytest.approx(4 + 1 / 12)
    assert rounded.fourth == pytest.approx(-1 / 120)


def test_intervals_by_method():
    m, values = model(), np.array([-1.0, 3.0, 40.0])
    for method in ("auto", "law", "normal", "chebyshev"):
        low, high = ds.interval(m, values, method=method)
        assert np.all((low >= 0) & (low <= np.maximum(values, 0)) & (high >= values))
    normal, chebyshev = (ds.interval(m, values, method=name)[1] for name in ("normal", "chebyshev"))
    assert np.all(chebyshev > normal)
    assert np.array_equal(ds.interval(m, values)[1], ds.interval(m, values, method="chi-square")[1])
    other = model(family="sphere")
    assert np.array_equal(ds.interval(other, values)[1], ds.interval(other, values, method="law")[1])
    with pytest.raises(
        InvalidInput, match="method=chi-square: needs a gaussian matrix and gaussian noise"
    ):
        ds.interval(other, values, method="chi-square")
    with pytest.raises(InvalidInput, match="method=exact: unknown"):
        ds.interval(m, values, method="exact")
    for level in (0.0, 1.0):
        with pytest.raises(InvalidInput, match="must lie between 0 and 1"):
            ds.interval(m, values, level=level)


@pytest.mark.parametrize("family", ["sphere", "rademacher", "sparse", "haar", "identity", "gaussian"])
@pytest.mark.parametrize("k", [1, 300])
def test_limits_of_the_law_hold_their_estimate_and_rise_with_it(family, k):
    width = k if family == "identity" else 400
    m = ds.DistanceModel(
        family=family,
        n_features=width,
        n_components=k,
        noise=ds.laplace_law(0.2, 2.0**-30),
        unit=1.5,
    )
    values = np.array([-2.0, 0.0, 3.0, 40.0, 400.0])
    low, high = ds.interval(m, values, method="law")
    assert np.all((low >= 0.0) & (low <= high) & (low <= np.maximum(values, 0.0)))
    assert np.all(np.diff(low) >= 0.0)
    assert np.all(np.diff(high) >= 0.0)
    assert np.all(high[2:] >= values[2:])
    wider = ds.interval(m, values, level=0.99, method="law")
    assert np.all((wider[0] <= low) & (wider[1] >= high))


def test_the_law_of_a_gaussian_matrix_and_noise_is_the_chi_square():
    m, values = model(), np.array([0.5, 3.0, 40.0])
    exact, drawn = (ds.interval(m, values, method=name) for name in ("chi-square", "law"))
    assert np.allclose(exact[0], drawn[0], rtol=0.03, atol=0.05)
    assert np.allclose(exact[1], drawn[1], rtol=0.06)


def test_many_components_take_the_normal_limits_at_the_distance_itself():
    m = ds.DistanceModel(
        family="sparse", n_features=900, n_components=300, noise=ds.laplace_law(0.1, 2.0**-30)
    )
    values = np.array([4.0, 30.0])
    for side, limits in zip((1.0, -1.0), ds.interval(m, values), strict=True):
        gap = (values - limits) * side / np.sqrt(m.variance(limits))
        assert gap == pytest.approx(1.959964, rel=1e-6)


def test_facts_hold_the_nonzeros_of_a_sparse_matrix():
    m = ds.DistanceModel(
        family="sparse", n_features=9, n_components=4, noise=ds.laplace_law(0.1, 2.0**-30), nonzeros=3
    )
    assert ds.DistanceModel.from_facts(m.to_facts()) == m
    older = {name: value for name, value in m.to_facts().items() if name != "nonzeros"}
    assert ds.DistanceModel.from_facts(older).nonzeros == 1


def test_means_of_groups_carry_less_noise():
    m = model(noise="laplace")
    estimate, means = ds.centroid_distance(m, P, Q)
    gap = P.mean(axis=0) - Q.mean(axis=0)
    assert estimate == pytest.approx(gap @ gap - 4 * m.noise.variance * (1 / 50 + 1 / 33))
    assert means.noise.variance == pytest.approx(m.noise.variance * (1 / 50 + 1 / 33) / 2)
    assert means.noise.fourth == pytest.approx(m.noise.fourth * (1 / 50**3 + 1 / 33**3) / 2)
    assert m.averaged(1, 1) == m
    with pytest.raises(InvalidInput, match="a mean needs at least one"):
        ds.centroid_distance(m, P, Q[:0])


def test_a_model_survives_its_facts():
    m = model(noise="laplace", unit=2.5)
    assert DistanceModel.from_facts(m.to_facts()) == m
    facts = m.to_facts()
    del facts["unit"]
    with pytest.raises(InvalidInput, match="unit: absent from these facts"):
        DistanceModel.from_facts(facts)


def test_public_faults_are_refused():
    m = model()
    with pytest.raises(InvalidInput, match="must have the 4 columns of the release"):
        ds.block_distances(m, P[:, :3], Q)
    with pytest.raises(InvalidInput, match="50 and 33 rows: pairs need as many of both"):
        ds.pair_distances(m, P, Q)
    with pytest.raises(InvalidInput, match="block=0: must be at least 1"):
        next(ds.all_pairs(m, P, block=0))
    for count in (0, 51):
        with pytest.raises(InvalidInput, match=f"count={count}: must lie between 1 and the 50 rows"):
            ds.nearest(m, Q, P, count)


def test_a_law_is_a_value():
    assert NoiseLaw(name="gaussian", variance=1.0, fourth=0.0) == NoiseLaw(
        name="gaussian", variance=1.0, fourth=0.0
    )
