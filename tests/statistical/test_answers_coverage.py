"""Intervals cover the truth as often as they say: noise on fixed exact cells, every kind of answer.

Each limit is a binomial quantile at 1e-11; 14 answers, two laws and at most two sides make 56 of them:
a false alarm has a chance below 1e-9. Noise that is taken for 0.75 of itself covers about 0.86 and is
caught in every answer (last test).
"""

import numpy as np
import pytest
from scipy.stats import binom

from adumbra.answers.conditions import read_where
from adumbra.answers.estimate import Asked
from support.answers import ExactCells
from support.moments import mixed_schema, mixed_table

DRAWS, ALARM = 1500, 1e-11
ASKED = Asked()
FRAME = mixed_table(4000).to_pandas()
HIGH, LOW = FRAME[FRAME.risk == "high"], FRAME[FRAME.risk == "low"]
SIGMA = 12.0

EXACT = {  # answers whose cells leave nothing open: neither too often nor too seldom
    "share": (lambda v: v.share(read_where("job=x"), (), ASKED), (FRAME.job == "x").mean()),
    "class share": (
        lambda v: v.share(read_where("risk=high"), (), ASKED),
        (FRAME.risk == "high").mean(),
    ),
    "share in class": (
        lambda v: v.share(read_where("job=x"), read_where("risk=high"), ASKED),
        (HIGH.job == "x").mean(),
    ),
    "class in level": (
        lambda v: v.share(read_where("risk=high"), read_where("job=x"), ASKED),
        (FRAME.risk[FRAME.job == "x"] == "high").mean(),
    ),
    "joint": (
        lambda v: v.share(read_where("job=y and risk=low"), (), ASKED),
        ((FRAME.job == "y") & (FRAME.risk == "low")).mean(),
    ),
    "count": (lambda v: v.count(read_where("smoker=yes"), ASKED), FRAME.smoker.sum()),
    "mean": (lambda v: v.mean("age", (), ASKED), FRAME.age.mean()),
    "mean in class": (lambda v: v.mean("age", read_where("risk=high"), ASKED), HIGH.age.mean()),
    "difference": (
        lambda v: next(iter(v.compare("age", "risk", None, ASKED).values())),
        HIGH.age.mean() - LOW.age.mean(),
    ),
    "share difference": (
        lambda v: next(iter(v.compare("job", "risk", None, ASKED).values())),
        (HIGH.job == "x").mean() - (LOW.job == "x").mean(),
    ),
}
OPEN = {  # answers that are conservative, and say so
    "mean of cells": (lambda v: v.mean("income", (), ASKED), FRAME.income.mean()),
    "quantile": (
        lambda v: v.quantile("age", 0.4, (), ASKED),
        np.quantile(FRAME.age, 0.4, method="inverted_cdf"),
    ),
    "variance": (lambda v: v.variance("age", (), ASKED), FRAME.age.var(ddof=0)),
    "share beyond": (
        lambda v: v.share(read_where("income>33.3"), (), ASKED),
        (FRAME.income > 33.3).mean(),
    ),
}


@pytest.fixture(scope="module")
def exact():
    return ExactCells(mixed_table(4000), mixed_schema(), numbers="bins")


def covered(exact, law, wrong=1.0):
    """How many of the draws cover the truth, of every answer."""
    rng = np.random.default_rng(7)
    hits = dict.fromkeys({**EXACT, **OPEN}, 0)
    for _ in range(DRAWS):
        view = exact.answers(SIGMA, rng, law)
        if wrong != 1.0:
            object.__setattr__(view, "sigma", SIGMA * wrong)
            object.__setattr__(view.classes, "sigma", view.classes.sigma * wrong)
        for name, (question, truth) in {**EXACT, **OPEN}.items():
            low, high = question(view).interval
            hits[name] += low - 1e-9 <= truth <= high + 1e-9
    return hits


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_intervals_hold_their_level(exact, law, record_property):
    hits = covered(exact, law)
    least = binom.ppf(ALARM, DRAWS, 0.95)
    most = binom.isf(ALARM, DRAWS, 0.97 if law == "laplace" else 0.95)
    for name, count in hits.items():
        assert count >= least, f"{name}: {count / DRAWS:.3f}"
        if name in EXACT:
            assert count <= most, f"{name}: {count / DRAWS:.3f}"
    record_property("figure", f"{law}: coverage {min(hits.values()) / DRAWS:.3f} at least")


def test_noise_taken_for_less_than_it_is_would_be_caught(exact):
    hits, least = covered(exact, "gaussian", wrong=0.75), binom.ppf(ALARM, DRAWS, 0.95)
    assert [name for name in EXACT if hits[name] >= least] == []
