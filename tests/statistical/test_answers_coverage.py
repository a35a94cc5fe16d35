"""Intervals cover the truth as often as they say: noise on fixed exact cells, every kind of answer.

Each limit is a binomial quantile at 1e-11; 14 answers from counts under two laws, by class alone and
with counts over all classes, and 10 from sums at two scales, with at most two sides, make 152 of them: a
false alarm has a chance below 2e-9.
Noise that is taken for 0.75 of itself covers about 0.86 and is caught in every answer (last tests): an
answer with chance 0.9998 in 1,000 draws. Noise taken for 1.5 of itself covers 0.997 and is caught
with chance 0.999; under Laplace noise, whose bound is 0.97, coverage of 0.9985 with chance 0.56.
"""

import numpy as np
import pytest
from scipy.stats import binom

from adumbra.answers.conditions import read_where
from adumbra.answers.estimate import Asked
from support.answers import ExactCells, ExactSums
from support.moments import mixed_schema, mixed_table
from support.topk import full

DRAWS, ALARM = full(1000, 1500), 1e-11
QUIET = 0.8  # noise of sums at which all is answered
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


def covered(exact, law, asked, wrong=1.0, second=None):
    """How many of the draws cover the truth, of every answer that is asked for."""
    rng = np.random.default_rng(7)
    hits = dict.fromkeys(asked, 0)
    for _ in range(DRAWS):
        view = exact.answers(SIGMA, rng, law, second)
        if wrong != 1.0:
            object.__setattr__(view, "sigma", SIGMA * wrong)
            for joint in view.joint.values():
                object.__setattr__(joint, "sigma", joint.sigma * wrong)
                object.__setattr__(joint, "shared", joint.shared * wrong**2)
            object.__setattr__(view.classes, "sigma", view.classes.sigma * wrong)
        for name, (question, truth) in asked.items():
            low, high = question(view).interval
            hits[name] += low - 1e-9 <= truth <= high + 1e-9
    return hits


@pytest.mark.parametrize("second", [None, 0.7 * SIGMA])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_intervals_hold_their_level(exact, law, second, record_property):
    hits = covered(exact, law, {**EXACT, **OPEN}, second=second)
    least = binom.ppf(ALARM, DRAWS, 0.95)
    most = binom.isf(ALARM, DRAWS, 0.97 if law == "laplace" else 0.95)
    for name, count in hits.items():
        assert count >= least, f"{name}: {count / DRAWS:.3f}"
        if name in EXACT:
            assert count <= most, f"{name}: {count / DRAWS:.3f}"
    record_property("figure", f"{law}: coverage {min(hits.values()) / DRAWS:.3f} at least")


@pytest.mark.parametrize("second", [None, 0.7 * SIGMA])
def test_noise_taken_for_less_than_it_is_would_be_caught(exact, second):
    hits, least = covered(exact, "gaussian", EXACT, 0.75, second), binom.ppf(ALARM, DRAWS, 0.95)
    assert [name for name in hits if hits[name] >= least] == []


def fit(v, feature, last={}):  # noqa: B006 - the slopes of one view answer three questions
    if last.get("view") is not v:
        last |= {"view": v, "slopes": v.regress("income", ("age", "smoker", "region"), ASKED)}
    return last["slopes"][feature]


REGION = FRAME.region.fillna("missing")
DESIGN = np.column_stack(
    [np.ones(4000), FRAME.age, FRAME.smoker, *(level == REGION for level in ("b", "c", "missing"))]
).astype(float)
SLOPES = np.linalg.lstsq(DESIGN, FRAME.income.to_numpy(), rcond=None)[0]
LINEAR = {  # noise enters these once: neither too often nor too seldom
    "mean": (lambda v: v.mean("income", (), ASKED), FRAME.income.mean()),
    "share": (lambda v: v.share(read_where("job=x"), (), ASKED), (FRAME.job == "x").mean()),
    "pair": (
        lambda v: v.share(read_where("job=x and region=b"), (), ASKED),
        ((FRAME.job == "x") & (FRAME.region == "b")).mean(),
    ),
    "variance": (lambda v: v.variance("age", (), ASKED), FRAME.age.var(ddof=0)),
}
SMOOTH = {  # first order, or wider than first order
    "correlation": (lambda v: v.correlation("age", "income", ASKED), FRAME.age.corr(FRAME.income)),
    "difference": (
        lambda v: next(iter(v.compare("age", "risk", None, ASKED).values())),
        HIGH.age.mean() - LOW.age.mean(),
    ),
    "mean in level": (
        lambda v: v.mean("income", read_where("region=c"), ASKED),
        FRAME.income[FRAME.region == "c"].mean(),
    ),
    "slope": (lambda v: fit(v, "age"), SLOPES[1]),
    "level": (lambda v: fit(v, "smoker=true"), SLOPES[2]),
    "other level": (lambda v: fit(v, "region=c"), SLOPES[4]),
}


@pytest.fixture(scope="module")
def sums():
    return ExactSums(mixed_table(4000), mixed_schema())


def covered_by_sums(sums, sigma, wrong=1.0):
    """How many of the draws cover the truth, and how many are answered, of every answer."""
    rng = np.random.default_rng(11)
    hits = dict.fromkeys({**LINEAR, **SMOOTH}, 0)
    shown = dict.fromkeys(hits, 0)
    for _ in range(DRAWS):
        view = sums.answers(sigma, rng)
        if wrong != 1.0:
            object.__setattr__(view.sums, "variances", view.sums.variances * wrong**2)
        for name, (question, truth) in {**LINEAR, **SMOOTH}.items():
            answer = question(view)
            low, high = answer.interval
            hits[name] += low <= truth <= high
            shown[name] += not answer.is_hidden
    return hits, shown


@pytest.mark.parametrize("sigma", [QUIET, 20.0])
def test_intervals_from_sums_hold_their_level(sums, sigma, record_property):
    hits, shown = covered_by_sums(sums, sigma)
    least, most = binom.ppf(ALARM, DRAWS, 0.95), binom.isf(ALARM, DRAWS, 0.95)
    for name, count in hits.items():
        assert count >= least, f"{name}: {count / DRAWS:.3f}"
        if name in LINEAR and shown[name] == DRAWS:
            assert count <= most, f"{name}: {count / DRAWS:.3f}"
    if sigma == QUIET:
        assert min(shown.values()) == DRAWS  # little noise: all is answered
    record_property(
        "figure", f"sums: coverage {min(hits.values()) / DRAWS:.3f} at least, noise {sigma:g}"
    )


def test_noise_of_sums_taken_for_less_than_it_is_would_be_caught(sums):
    hits, _ = covered_by_sums(sums, QUIET, wrong=0.75)
    least = binom.ppf(ALARM, DRAWS, 0.95)
    assert [name for name in hits if hits[name] >= least] == []
