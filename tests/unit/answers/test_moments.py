"""Answers from sums of products: without noise they are the truth; the law of noise is exact."""

import math
from dataclasses import replace

import numpy as np
import pytest

from adumbra.answers.conditions import read_where
from adumbra.answers.estimate import Asked
from adumbra.answers.moments import MomentAnswers, Term
from adumbra.answers.reported import REPORTED
from adumbra.answers.sums import Sums, least_squares
from adumbra.errors import InvalidInput, Unsupported
from support.answers import ExactSums
from support.moments import ADD, mixed_schema, mixed_table

ASKED = Asked()
FRAME = mixed_table(3000).to_pandas()
FRAME["region"] = FRAME.region.fillna("missing")
HIGH, LOW = FRAME[FRAME.risk == "high"], FRAME[FRAME.risk == "low"]


@pytest.fixture(scope="module")
def exact():
    return ExactSums(mixed_table(3000), mixed_schema())


@pytest.fixture(scope="module")
def view(exact):
    return exact.answers(1e-9)


def close(answer, truth):
    """Rows are rounded to 2^-15 of a column's width, and nothing else is lost."""
    assert not answer.is_hidden
    assert answer.value == pytest.approx(truth, rel=2e-4, abs=1e-3)


def test_means_shares_and_counts_are_the_truth(view):
    close(view.mean("age", (), ASKED), FRAME.age.mean())
    close(view.mean("age", read_where("risk=high"), ASKED), HIGH.age.mean())
    close(view.mean("income", read_where("region=c"), ASKED), FRAME.income[FRAME.region == "c"].mean())
    close(view.mean("smoker", (), ASKED), FRAME.smoker.mean())
    close(view.share(read_where("region is missing"), (), ASKED), (FRAME.region == "missing").mean())
    close(view.share(read_where("region!=a"), (), ASKED), (FRAME.region != "a").mean())
    both = (FRAME.region == "b") & (FRAME.job == "x")
    close(view.share(read_where("region=b and job=x"), (), ASKED), both.mean())
    close(view.count(read_where("region=b and job=x"), ASKED), both.sum())
    close(view.count(read_where("smoker=yes and risk=high"), ASKED), HIGH.smoker.sum())
    close(view.share(read_where("risk=high"), read_where("smoker=no"), ASKED),
          (FRAME.risk[~FRAME.smoker] == "high").mean())  # fmt: skip
    close(view.count((), ASKED), 3000)


def test_variances_correlations_and_differences_are_the_truth(view):
    close(view.variance("age", (), ASKED), FRAME.age.var(ddof=0))
    close(view.correlation("age", "income", ASKED), FRAME.age.corr(FRAME.income))
    (difference,) = view.compare("age", "risk", None, ASKED).values()
    close(difference, HIGH.age.mean() - LOW.age.mean())
    by_job = view.compare("income", "job", "y", ASKED)
    assert list(by_job) == ["mean of income, job=x less job=y", "mean of income, job=z less job=y"]
    means = FRAME.groupby("job").income.mean()
    close(by_job["mean of income, job=x less job=y"], means.x - means.y)
    table = view.crosstab("region", "smoker", ASKED)
    assert sum(answer.value for answer in table.values()) == pytest.approx(1.0)


def test_a_regression_is_that_of_the_table(view):
    found = view.regress("income", ("age", "smoker", "region", "risk"), ASKED)
    design = np.column_stack([
        np.ones(3000), FRAME.age, FRAME.smoker,
        *(FRAME.region == level for level in ("b", "c", "missing")),
        FRAME.risk == "high",
    ]).astype(float)  # fmt: skip
    truth = np.linalg.lstsq(design, FRAME.income.to_numpy(), rcond=None)[0]
    names = ["(constant)", "age", "smoker=true", "region=b", "region=c", "region=missing", "risk=high"]
    assert list(found) == names
    for answer, value in zip(found.values(), truth, strict=True):
        assert answer.value == pytest.approx(value, rel=2e-3, abs=0.2)
    to_class = view.regress("risk", ("age",), ASKED)["age"].value
    slope = np.polyfit(FRAME.age, (FRAME.risk == "high").astype(float), 1)[0]
    assert to_class == pytest.approx(slope, rel=1e-3)


def test_the_law_of_forms_and_fits_is_that_of_the_noise(exact):
    """Against brute force: derivatives by one independent entry at a time."""
    view = exact.answers(30.0)
    sums, rng = view.sums, np.random.default_rng(0)
    one, other = rng.normal(size=(2, len(sums.matrix)))
    entries = list(exact.entries(30.0))
    gradient = [sigma * (one @ change @ other) for change, sigma in entries]
    counts = np.array(gradient[-2:])  # two classes, whose counts add up to a public number
    variance = float(np.sum(np.square(gradient[:-2])) + np.sum((counts - counts.mean()) ** 2))
    assert sums.form_variance(one, other) == pytest.approx(variance)
    columns = np.column_stack([sums.constant, *(view.unit(place) for place in (0, 3, 6))])
    target = view.unit(1)
    fit = least_squares(sums, target, columns)
    step, moved, deviations = 1e-4, [], []
    for change, sigma in entries:
        nudged = replace(sums, matrix=sums.matrix + step * change)
        moved.append((least_squares(nudged, target, columns).beta - fit.beta) / step)
        deviations.append(sigma)
    jacobian = np.array(moved).T * np.array(deviations)
    pairs = jacobian[:, -2:] - jacobian[:, -2:].mean(axis=1, keepdims=True)
    truth = jacobian[:, :-2] @ jacobian[:, :-2].T + pairs @ pairs.T
    _, law = fit.combined(np.eye(4))
    assert law.noise**2 == pytest.approx(np.diagonal(truth), rel=1e-3, abs=1e-12)
    # what the size shares with the value, and its own noise, by the same entries
    own = (fit.inverse / np.diagonal(fit.inverse)[:, None]) @ columns.T
    pairs = [(own, np.broadcast_to(fit.rest, own.shape)), (own, own)]
    effects = [
        np.array(
            [sigma * np.einsum("ci,ij,cj->c", *_between(pair, change)) for change, sigma in entries]
        )
        for pair in pairs
    ]
    for effect in effects:
        effect[-2:] -= effect[-2:].mean(axis=0)
    assert law.shared == pytest.approx((effects[0] * effects[1]).sum(axis=0), rel=1e-9)
    assert law.size_variance == pytest.approx((effects[1] ** 2).sum(axis=0), rel=1e-9)
    # and the mean of E H E, which bends a fit
    middle = columns @ fit.inverse @ columns.T
    moved = [sigma * change for change, sigma in entries]
    centred = [*moved[:-2], *(one - (moved[-2] + moved[-1]) / 2.0 for one in moved[-2:])]
    wanted = sum(one @ middle @ one for one in centred)
    assert sums.twice(middle) == pytest.approx(wanted, rel=1e-9, abs=1e-9 * np.abs(wanted).max())


def _between(pair, change):
    return pair[0], change, pair[1]


def test_noise_hides_what_it_drowns(exact):
    view = exact.answers(3000.0)
    found = view.regress("income", ("age", "region"), ASKED)
    assert any(answer.is_hidden for answer in found.values())
    drowned = next(answer for answer in found.values() if answer.is_hidden)
    assert drowned.interval == (-math.inf, math.inf)
    assert drowned.to_dict()["interval"] == [None, None]
    assert view.correlation("age", "income", ASKED).is_hidden
    assert view.variance("age", (), ASKED).is_hidden
    assert view.mean("age", read_where("region=a"), ASKED).is_hidden


def test_a_population_adds_sampling_error(exact):
    view = exact.answers(1e-9)
    answer = view.regress("income", ("age",), Asked(population=True))["age"]
    rest = FRAME.income - np.polyval(np.polyfit(FRAME.age, FRAME.income, 1), FRAME.age)
    truth = math.sqrt((rest**2).mean() / (FRAME.age.var(ddof=0) * 3000))
    assert answer.sampling == pytest.approx(truth, rel=1e-3)
    assert any("homoskedastic" in note for note in answer.notes)
    share = view.share(read_where("job=x"), (), Asked(population=True))
    p = (FRAME.job == "x").mean()
    assert share.sampling == pytest.approx(math.sqrt(p * (1 - p) / 3000), rel=1e-3)
    with pytest.raises(Unsupported, match="fourth moments"):
        view.variance("age", (), Asked(population=True))


def test_a_private_number_of_rows_is_estimated(exact):
    view = ExactSums(mixed_table(3000), mixed_schema(ADD)).answers(3.0)
    assert view.count((), ASKED).privacy == pytest.approx(3.0 * math.sqrt(2.0))
    assert exact.answers(3.0).count((), ASKED).privacy == 0.0
    one = view.share(read_where("job=x and region=b"), (), ASKED)
    assert one.privacy >= exact.answers(3.0).share(read_where("job=x and region=b"), (), ASKED).privacy


@pytest.mark.parametrize(
    ("ask", "kind", "said"),
    [
        (lambda v: v.quantile("age", 0.5, (), ASKED), Unsupported, "moments. release"),
        (lambda v: v.share(read_where("age>3"), (), ASKED), Unsupported, "not counts of values"),
        (lambda v: v.principal_components(0, ASKED), InvalidInput, "must lie between 1"),
        (lambda v: v.principal_components(1, Asked(population=True)), Unsupported, "fourth moments"),
        (lambda v: v.variance("age", read_where("job=x"), ASKED), Unsupported, "three columns"),
        (lambda v: v.mean("age", read_where("job=x and risk=low"), ASKED), Unsupported, "three columns"),
        (lambda v: v.share(read_where("job=x"), read_where("job=y"), ASKED), Unsupported, "same column"),
        (lambda v: v.share(read_where("job=x and risk=low and age=1"), (), ASKED), Unsupported, "sums"),
        (lambda v: v.mean("region", (), ASKED), InvalidInput, "ask for a share"),
        (lambda v: v.mean("agee", (), ASKED), InvalidInput, "did you mean 'age'"),
        (lambda v: v.share(read_where("job=q"), (), ASKED), InvalidInput, "a level of 'job'"),
        (lambda v: v.share((), (), ASKED), InvalidInput, "no condition"),
        (lambda v: v.correlation("age", "job", ASKED), InvalidInput, "categories"),
        (lambda v: v.correlation("age", "age", ASKED), InvalidInput, "two columns"),
        (lambda v: v.regress("job", ("age",), ASKED), InvalidInput, "3 levels"),
        (lambda v: v.regress("age", (), ASKED), InvalidInput, "no features"),
        (lambda v: v.regress("age", ("age",), ASKED), InvalidInput, "twice"),
        (lambda v: v.compare("age", "income", None, ASKED), InvalidInput, "holds numbers"),
        (lambda v: v.compare("age", "job", "q", ASKED), InvalidInput, "no level"),
        (lambda v: v.crosstab("age", "job", ASKED), InvalidInput, "not levels"),
    ],
)  # fmt: skip
def test_what_is_refused_says_why(view, ask, kind, said):
    with pytest.raises(kind, match=said):
        ask(view)


@pytest.mark.parametrize("times", [3.9, 4.5, 6.5, 30.0])
def test_a_variance_near_the_border_is_wider(times):
    """The noise picks what is told near four deviations: the lower side of the interval knows it."""
    noise = 0.04 * 1000.0 / times
    variances = np.diag([noise**2, noise**2, 0.0])
    matrix = np.diag([40.0, 4000.0, 1000.0])
    sums = Sums(
        matrix=matrix, variances=variances, dummies=np.zeros(3, bool), classes=1, rows=1000.0,
        rows_are_public=True,
    )  # fmt: skip
    terms = {name: Term(name=name, places=(place,)) for place, name in enumerate("xy")}
    view = MomentAnswers(terms=terms, sums=sums, label=None, is_laplace=False)
    answer = view.variance("x", (), Asked())
    low, high = answer.interval
    plain = 1.959964 * 0.04 / times
    assert answer.is_hidden == (times < REPORTED)
    assert high == pytest.approx(0.04 + plain)
    if times == 30.0:
        assert low == pytest.approx(0.04 - plain)
    elif times > REPORTED:
        assert 0 <= low < 0.04 - 1.2 * plain
        assert any(note.startswith("conservative") for note in answer.notes)
