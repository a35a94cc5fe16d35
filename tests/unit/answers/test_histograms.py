"""Answers from cells without noise are the truth, bounds hold it, and what is not held is refused."""

import math

import numpy as np
import pyarrow as pa
import pytest

from adumbra.answers.conditions import read_where
from adumbra.answers.estimate import Asked
from adumbra.errors import InvalidInput, Unsupported
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.answers import ExactCells
from support.moments import ADD, items_schema, mixed_schema, mixed_table

ASKED = Asked()
FRAME = mixed_table(3000).to_pandas()
TINY = 1e-9


@pytest.fixture(scope="module")
def exact():
    return ExactCells(mixed_table(3000), mixed_schema(), numbers="bins")


@pytest.fixture(scope="module")
def view(exact):
    return exact.answers(TINY)


@pytest.fixture(scope="module")
def over_all():
    """Beside numbers as scores, columns of two levels are counted over all classes alone."""
    return ExactCells(mixed_table(3000), mixed_schema(), numbers="scores")


def close(answer, truth):
    assert not answer.is_hidden
    assert answer.value == pytest.approx(truth, abs=1e-6)
    assert answer.interval[0] - 1e-6 <= truth <= answer.interval[1] + 1e-6


@pytest.mark.parametrize(
    ("where", "given", "rows", "among"),
    [
        ("region=a", None, FRAME.region == "a", None),
        ("region!=a", None, FRAME.region != "a", None),
        ("region is missing", None, FRAME.region.isna(), None),
        ("risk=high", None, FRAME.risk == "high", None),
        ("smoker=yes", None, FRAME.smoker, None),
        ("smoker=0", None, ~FRAME.smoker, None),
        ("smoker=yes", "risk=high", FRAME.smoker, FRAME.risk == "high"),
        ("age>=30 and age<50", None, (FRAME.age >= 30) & (FRAME.age < 50), None),
        ("age=41", None, FRAME.age == 41, None),
        ("region=a", "risk=low", FRAME.region == "a", FRAME.risk == "low"),
        ("risk=low", "region=a", FRAME.risk == "low", FRAME.region == "a"),
        ("region=b and risk=low", None, (FRAME.region == "b") & (FRAME.risk == "low"), None),
        ("age<=40 and risk=high", "age>20", FRAME.age.le(40) & (FRAME.risk == "high"), FRAME.age > 20),
        ("age>=30", "age>=20", FRAME.age >= 30, FRAME.age >= 20),
    ],
)
def test_shares_and_counts_of_exact_cells_are_the_truth(view, where, given, rows, among):
    among = np.ones(len(FRAME), bool) if among is None else among
    close(view.share(read_where(where), read_where(given), ASKED), rows[among].mean())
    if given is None:
        close(view.count(read_where(where), ASKED), rows.sum())


def test_means_medians_and_variances_of_whole_values_are_the_truth(view):
    high = FRAME[FRAME.risk == "high"]
    close(view.mean("age", (), ASKED), FRAME.age.mean())
    close(view.mean("age", read_where("risk=high"), ASKED), high.age.mean())
    close(view.mean("age", read_where("age>=30"), ASKED), FRAME.age[FRAME.age >= 30].mean())
    close(view.mean("smoker", (), ASKED), FRAME.smoker.mean())
    close(view.variance("age", (), ASKED), FRAME.age.var(ddof=0))
    for q in (0.05, 0.5, 0.95):
        truth = np.quantile(FRAME.age, q, method="inverted_cdf")
        close(view.quantile("age", q, (), ASKED), truth)
    (difference,) = view.compare("age", "risk", None, ASKED).values()
    close(difference, high.age.mean() - FRAME.age[FRAME.risk == "low"].mean())


def test_a_number_in_wide_cells_is_between_its_bounds(view):
    answer = view.mean("income", (), ASKED)
    assert answer.interval[0] <= FRAME.income.mean() <= answer.interval[1]
    assert answer.unresolved == pytest.approx((answer.interval[1] - answer.interval[0]) / 2.0)
    assert any("conservative" in note for note in answer.notes)
    share = view.share(read_where("income>33.3"), (), ASKED)
    assert share.interval[0] <= (FRAME.income > 33.3).mean() <= share.interval[1]
    assert share.unresolved > 0
    low, high = view.variance("income", (), ASKED).interval
    assert low <= FRAME.income.var(ddof=0) <= high
    low, high = view.quantile("income", 0.9, (), ASKED).interval
    assert low <= np.quantile(FRAME.income, 0.9, method="inverted_cdf") <= high


def test_a_crosstab_adds_up_and_names_its_cells(view):
    for names in (("region", "risk"), ("risk", "region")):
        table = view.crosstab(*names, ASKED)
        assert sum(answer.value for answer in table.values()) == pytest.approx(1.0)
        for name, answer in table.items():
            close(view.share(read_where(name), (), ASKED), answer.value)


def test_the_error_of_a_share_is_that_of_its_cells(exact):
    """One cell of 2 x 3: sqrt(s^2 (1 - 1/6)) of the joint, with the public total used."""
    answer = exact.answers(7.0).share(read_where("job=x and risk=low"), (), ASKED)
    assert answer.privacy == pytest.approx(7.0 * math.sqrt(5.0 / 6.0) / 3000)
    assert answer.sampling == 0.0
    assert answer.std_error == answer.privacy


def test_counts_over_all_classes_narrow_what_they_tell_of(exact, over_all):
    """Least squares: s^2 within two classes, and v = 1 / (1 / 2 s^2 + 1 / p^2) for their sum."""
    alone, both = exact.answers(7.0), exact.answers(7.0, second=5.0)
    whole, given = read_where("job=x"), read_where("risk=high")
    v = 1.0 / (1.0 / (2 * 7.0**2) + 1.0 / 5.0**2)
    share = both.share(whole, (), ASKED)
    assert share.value == pytest.approx(alone.share(whole, (), ASKED).value)
    assert share.privacy == pytest.approx(math.sqrt(v * 2.0 / 3.0) / 3000)
    assert both.count(read_where("smoker=yes"), ASKED).privacy == pytest.approx(math.sqrt(v / 2.0))
    count = over_all.answers(7.0, second=5.0).count(read_where("smoker=yes"), ASKED)
    assert count.privacy == pytest.approx(math.sqrt(0.5 / (1 / 7.0**2 + 1 / 5.0**2)))
    joint = both.count(
        (*whole, *given), ASKED
    )  # variance a, of two classes b together, over 2 x 3 cells
    a, b = 7.0**2 / 2 + v / 4, v / 4 - 7.0**2 / 2
    centred = np.array([[5, -1, -1], [-1, -1, -1]]) / 6
    wanted = (a - b) * (centred**2).sum() + b * (centred.sum(axis=0) ** 2).sum()
    assert joint.privacy == pytest.approx(math.sqrt(wanted))
    assert joint.privacy < alone.count((*whole, *given), ASKED).privacy
    assert both.share(whole, given, ASKED).privacy < alone.share(whole, given, ASKED).privacy
    both_ways = [view.compare("job", "risk", None, ASKED) for view in (alone, both)]
    for one, other in zip(*(answers.values() for answers in both_ways), strict=True):
        assert other.value == pytest.approx(one.value)


def test_a_population_adds_sampling_error(exact):
    share = exact.answers(7.0).share(read_where("job=x"), (), Asked(population=True))
    p = (FRAME.job == "x").mean()
    assert share.sampling == pytest.approx(math.sqrt(p * (1 - p) / 3000))
    assert share.std_error == pytest.approx(math.hypot(share.sampling, share.privacy))
    assert "population" in share.target
    mean = exact.answers(1.0).mean("age", (), Asked(population=True))
    assert mean.sampling == pytest.approx(FRAME.age.std(ddof=0) / math.sqrt(3000), rel=1e-3)
    with pytest.raises(Unsupported, match="fourth moments"):
        exact.answers(1.0).variance("age", (), Asked(population=True))


def test_noise_hides_what_is_too_small(exact):
    answer = exact.answers(2000.0).share(read_where("region=a"), read_where("risk=high"), ASKED)
    assert answer.is_hidden
    assert math.isnan(answer.value)
    assert answer.interval == (0.0, 1.0)
    assert "hidden by noise" in answer.notes[0]
    assert "hidden by noise" in str(answer)
    assert answer.to_dict()["value"] is None
    assert exact.answers(2000.0).mean("age", read_where("risk=high"), ASKED).interval == (0.0, 99.0)
    assert exact.answers(1e6).quantile("age", 0.5, (), ASKED).is_hidden


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda v: v.share(read_where("age>3 and region=a"), (), ASKED), "together"),
        (lambda v: v.mean("age", read_where("region=a"), ASKED), "'age' given 'region'"),
        (lambda v: v.crosstab("region", "job", ASKED), "together"),
        (lambda v: v.compare("age", "region", None, ASKED), "together"),
        (lambda v: v.mean("income", read_where("income>33.3"), ASKED), "ask at one of these ends"),
        (lambda v: v.regress("age", ("income",), ASKED), "shortened rows"),
        (lambda v: v.correlation("age", "income", ASKED), "shortened rows"),
        (lambda v: v.principal_components(2, ASKED), "shortened rows"),
        (lambda v: v.share(read_where("age is missing"), (), ASKED), "not counted apart"),
    ],
)
def test_what_the_cells_do_not_hold_is_refused(view, ask, said):
    with pytest.raises(Unsupported, match=said):
        ask(view)


def test_what_was_counted_over_all_classes_alone_is_not_compared(view, over_all):
    with pytest.raises(Unsupported, match="an `answers` release"):
        over_all.answers(TINY).compare("smoker", "risk", None, ASKED)
    (found,) = view.compare("smoker", "risk", None, ASKED).values()
    shares = FRAME.groupby("risk").smoker.mean()
    assert found.value == pytest.approx(shares["high"] - shares["low"], abs=1e-6)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda v: v.mean("agee", (), ASKED), "did you mean 'age'"),
        (lambda v: v.mean("region", (), ASKED), "ask for a share"),
        (lambda v: v.share(read_where("region=zz"), (), ASKED), "no such category"),
        (lambda v: v.share(read_where("region>a"), (), ASKED), "use = or !="),
        (lambda v: v.share(read_where("age=old"), (), ASKED), "holds numbers"),
        (lambda v: v.share(read_where("age=nan"), (), ASKED), "holds numbers"),
        (lambda v: v.share((), (), ASKED), "no condition"),
        (lambda v: v.share(read_where("job=x"), read_where("job=y and job=z"), ASKED), "no value"),
        (lambda v: v.quantile("age", 1.0, (), ASKED), "q=1.0"),
        (lambda v: v.regress("age", ("incom",), ASKED), "did you mean 'income'"),
        (lambda v: v.compare("age", "risk", "hi", ASKED), "no class"),
        (lambda v: v.crosstab("age", "age", ASKED), "two columns"),
    ],
)
def test_what_is_asked_wrongly_is_refused_with_a_remedy(view, ask, said):
    with pytest.raises(InvalidInput, match=said):
        ask(view)


def test_missing_numbers_are_counted_apart():
    schema = Schema(
        columns=(Column(name="x", kind=Kind.INTEGER, lower=0, upper=9, missing="null"),),
        unit=Unit.ROW,
        neighbours=Neighbours.REPLACE_ONE,
    )
    values = [1, 2, None, 4, None, 9]
    view = ExactCells(pa.table({"x": values}), schema).answers(TINY)
    close(view.mean("x", (), ASKED), 4.0)
    close(view.share(read_where("x is missing"), (), ASKED), 2 / 6)
    close(view.share(read_where("x>=2"), (), ASKED), 3 / 6)
    close(view.quantile("x", 0.5, (), ASKED), 2.0)
    assert "counted apart" in view.mean("x", (), ASKED).notes[0]


def test_a_private_number_of_rows_is_estimated_and_its_error_counted():
    view = ExactCells(mixed_table(3000), mixed_schema(ADD), numbers="bins", synthetic_rows=10).answers(
        5.0
    )
    count = view.count((), ASKED)
    assert count.value == pytest.approx(3000.0)
    assert 0.0 < count.privacy < 5.0
    assert view.share(read_where("job=x"), (), ASKED).privacy > 0.0


def test_items_are_columns_of_yes_and_no():
    rows = pa.table({"items": [[1, 3], [3], [], [2, 3]]})
    view = ExactCells(rows, items_schema(4)).answers(TINY)
    close(view.share(read_where("3=1"), (), ASKED), 0.75)
    close(view.count(read_where("1=yes"), ASKED), 1.0)
