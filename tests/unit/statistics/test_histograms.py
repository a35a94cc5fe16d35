"""One-way histograms: exact counts, totals of rows without a cell, declared shapes."""

import numpy as np
import pytest

from adumbra.errors import InvalidInput, Unsupported
from adumbra.postprocess.moments.design import number_edges
from adumbra.relations import Neighbours
from adumbra.statistics.histograms import (
    Histograms,
    cell_rows,
    cut,
    cut_columns,
    histogram_sensitivity,
)


def test_counts_equal_a_naive_loop():
    rng = np.random.default_rng(0)
    cells = (3, 1, 5)
    codes = rng.integers(-1, 6, size=(500, 3))
    statistic = Histograms(cells=cells)
    total = statistic.add(statistic.zero(), cell_rows(codes[:200], cells))
    total = statistic.add(total, cell_rows(codes[200:], cells))
    for column, (size, found) in enumerate(zip(cells, statistic.split(total), strict=True)):
        assert [int(x) for x in found] == [int((codes[:, column] == c).sum()) for c in range(size)]
    assert statistic.exponent == 0


def test_cells_are_closed_below_and_take_in_what_lies_outside():
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    values = np.array([-9.0, 0.0, 0.999, 1.0, 2.0, 3.0, 99.0])
    assert cut(values, edges).tolist() == [0, 0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 1.0), (0.0, 255.0), (1e-9, 3e9), (-7.3, -7.1)])
def test_even_cells_are_found_as_by_a_search(lower, upper):
    rng = np.random.default_rng(1)
    edges = number_edges(lower, upper, 16, is_integer=False, is_fine=False)
    near = [np.nextafter(edges, way) for way in (-np.inf, np.inf)]
    beyond = [lower - 1e12, upper + 1e12, -np.inf, np.inf, np.nan]
    values = np.concatenate([edges, *near, rng.uniform(lower, upper, 20_000), beyond])
    found = cut(values, edges)
    wanted = np.searchsorted(edges[1:-1], values, side="right")
    assert np.array_equal(found[:-1], wanted[:-1])
    assert 0 <= found[-1] < len(edges) - 1


@pytest.mark.parametrize(
    "edges",
    [
        number_edges(-4.0, 300.0, 16, is_integer=True, is_fine=False),  # the ends stand apart
        number_edges(0.0, 300.0, 32, is_integer=False, is_fine=True),  # uneven
        np.arange(-3.5, 40.5),
        np.linspace(-1e-3, 1e300, 40),
        np.linspace(1.0, 1.0 + 2.0**-48, 20),  # steps of a few float64 numbers
        np.full(20, 2.0),
        np.geomspace(1e-3, 7.0, 70),
    ],
)
def test_cells_of_any_edges_are_found_as_by_a_search(edges):
    rng = np.random.default_rng(2)
    near = [np.nextafter(edges, way) for way in (-np.inf, np.inf)]
    spread = rng.uniform(edges[0] - 3.0, edges[-1] + 3.0, 5000)
    values = np.concatenate(
        [edges, *near, spread, np.rint(spread), [-np.inf, np.inf], edges[0] + np.arange(9)]
    )
    assert np.array_equal(cut(values, edges), np.searchsorted(edges[1:-1], values, side="right"))
    assert cut(values[:0], edges).shape == (0,)


def test_sensitivities_by_relation():
    replace = histogram_sensitivity(8, Neighbours.REPLACE_ONE)
    add = histogram_sensitivity(8, Neighbours.ADD_REMOVE)
    assert (replace.l1, replace.l2) == (16.0, 4.0)
    assert add.l1 == 8.0
    assert add.l2 >= np.sqrt(8)
    with pytest.raises(Unsupported, match="histograms are per row"):
        histogram_sensitivity(8, Neighbours.ONE_ELEMENT)


def test_wrong_shapes_are_refused():
    with pytest.raises(InvalidInput, match="need one column for each of 2"):
        cell_rows(np.zeros((3, 1), np.int64), (2, 2))
    with pytest.raises(InvalidInput, match="every column needs a cell"):
        Histograms(cells=(2, 0))
    with pytest.raises(InvalidInput, match="declared for 2"):
        Histograms(cells=(2, 2)).add(np.zeros(4, np.int64), cell_rows(np.zeros((1, 1), np.int64), (2,)))


@pytest.mark.parametrize("rows", [0, 1, 7, 5_000])
def test_columns_cut_together_are_those_cut_alone(rows):
    """Equal edges, edges of another place or number of cells, uneven ones, wide ends; hostile values."""
    rng = np.random.default_rng(rows)

    def even(lower, upper, parts=16):
        return number_edges(lower, upper, parts, is_integer=False, is_fine=False)

    def apart(lower, upper):  # the first and the last cell are wider than the others
        return number_edges(lower, upper, 16, is_integer=True, is_fine=False)

    edges = [even(-1.0, 1.0)] * 9 + [even(0.0, 3.0 + j) for j in range(9)] + [even(0.0, 1.0, 40)] * 3
    edges += [number_edges(0.0, 9.0, 16, is_integer=True, is_fine=False)] * 9
    edges += [number_edges(0.0, 1e6, 32, is_integer=False, is_fine=True), even(-1.0, 1.0)] * 5
    edges += [apart(0.0, 300.0 + j) for j in range(9)]
    values = np.asfortranarray(rng.uniform(-2.0, 5.0, (rows, len(edges))))
    for column, own in enumerate(edges):
        hostile = np.concatenate([own, np.nextafter(own, -np.inf), [np.inf, -np.inf, np.nan, -0.0]])
        few = min(rows, 60)
        values[:few, column] = rng.choice(hostile, few)
    found = np.empty(values.shape, np.int64, order="F")
    cut_columns(values, edges, found)
    assert all(np.array_equal(found[:, j], cut(values[:, j], own)) for j, own in enumerate(edges))
