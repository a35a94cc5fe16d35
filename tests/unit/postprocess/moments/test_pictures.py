"""Bars and histograms of a moments card cover the counts that they stand for, as their caption says."""

import numpy as np
import pytest

from adumbra.mechanisms.moments import MomentsConfig, release
from adumbra.mechanisms.moments.plan import settle
from adumbra.mechanisms.moments.release import read_first
from adumbra.postprocess.moments import laws
from adumbra.postprocess.moments.pictures import class_bars, histograms_of
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

DRAWS = 300
COLUMNS = (
    Column(name="c", kind=Kind.CATEGORY, categories=tuple("abcdefgh")),
    Column(name="x", kind=Kind.NUMBER, lower=0.0, upper=1.0),
    Column(name="y", kind=Kind.CATEGORY, categories=tuple("klm")),
)


@pytest.mark.parametrize(("epsilon", "rows"), [(0.1, 1_500), (1.0, 50_000)])
@pytest.mark.parametrize("label", ["y", None])
def test_a_reach_covers_nineteen_of_twenty(epsilon, rows, label, monkeypatch):
    """Seeds are fixed. Reaches of .75 or 1.3 times the right width would cover .86 or .99.

    Pictures are of noisy counts: laws that are made of them are put out of reach (and take no time).
    """
    monkeypatch.setattr(laws, "conditional", lambda own, *_: [np.full((1, 1), np.nan)] * len(own))
    monkeypatch.setattr(laws, "_own_law", lambda *_: np.full(1, np.nan))
    monkeypatch.setattr(release, "read_centre", lambda *_: None)
    schema = Schema(
        columns=COLUMNS, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label=label,
        declared_by="test", rows=rows,
    )  # fmt: skip
    settled, rng = settle(MomentsConfig(epsilon=epsilon), schema), np.random.default_rng(0)
    design, scales = settled.parts.design, settled.parts.scales
    assert design.is_pooled == (label is not None)
    exact = [rng.multinomial(rows, np.ones(count) / count) for count in design.cells]
    over = [
        own.reshape(-1, count).sum(axis=0)
        for own, count in zip(exact, design.pooled_cells, strict=False)
    ]
    covered = []
    for _ in range(DRAWS):
        arrays = {"marginals": _noisy(exact, scales.marginals.scale, rng)}
        if scales.one_way is not None:
            arrays["one_way"] = _noisy(over, scales.one_way.scale, rng)
        marginals, _ = read_first(settled, arrays)
        shown = histograms_of(design, schema, marginals, is_pure=False)
        for own, histogram in zip(exact, shown, strict=False):
            truth = own.reshape(-1, len(histogram.shares)).sum(axis=0) / rows
            covered.append(np.mean(np.abs(histogram.shares - truth) <= histogram.reach))
        for bars in class_bars(design, schema, marginals, is_pure=False):
            inside = np.abs(np.array(bars.values) - exact[-1] / rows) <= np.array(bars.reaches)
            covered.append(np.mean(inside))
    assert 0.93 <= np.mean(covered) <= 0.97


def _noisy(parts, scale, rng):
    exact = np.concatenate(parts)
    return exact + scale * rng.normal(size=len(exact))
