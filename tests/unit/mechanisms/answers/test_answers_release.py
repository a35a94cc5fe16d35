"""A release made for answers: what is summed, which noise it carries, its caps, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2, gamma

from adumbra import workflow
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.answers import AnswersConfig
from adumbra.postprocess.capped import asked_schema, choose_caps, column_squares, counted_features
from adumbra.relations import Neighbours, Unit
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from support.components import ADD, draft_of, mixed, table

RELEASES = 60
LOUD = {"epsilon": 1000.0, "delta": 1e-6}  # next to no noise


def capped_frame(data, facts):
    frame = data.to_pandas()
    return {name: frame[name].clip(low, high) for name, (low, high) in facts["caps"].items()}


def test_the_sums_are_of_capped_rows():
    """Whole rows: products of capped numbers, whatever the other columns of the row hold."""
    data = table(3000)
    draft = draft_of(data, mixed(), AnswersConfig(**LOUD, columns=("a", "n"), cap_share=0.05))
    caps = draft.facts["caps"]
    assert list(caps) == ["a", "n"]
    assert draft.facts["columns"] == ["a", "n"]
    low, high = caps["a"]
    assert 0 < low < high < 10
    numbers = capped_frame(data, {"caps": caps})
    a = numbers["a"].fillna(5.0).clip(low, high)  # a missing number is the middle of its bounds
    z = np.column_stack(
        [
            (a - (low + high) / 2) / (high - low),
            (numbers["n"] - sum(caps["n"]) / 2) / (caps["n"][1] - caps["n"][0]),
            np.ones(3000),
        ]
    )
    wanted = z.T @ z
    found = np.asarray(draft.arrays["noisy_sums"])
    # noise of at most 0.1 (6.2 deviations: 1e-9), and 3,000 rows rounded to 2^-15 each
    assert np.abs(found - wanted)[:2].max() < 0.7
    summary = draft.tables["data"].to_pylist()
    assert [line["column"] for line in summary] == ["a", "n"]
    assert summary[0]["mean_or_share"] == pytest.approx(a.mean(), abs=1e-3)


@pytest.mark.parametrize("relation", [Neighbours.REPLACE_ONE, ADD])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_is_that_of_the_card(relation, delta):
    """Sums of squares (or of sizes, of Laplace noise) of each entry, whose laws are known: 1e-9."""
    schema, data = mixed(relation), table(40)
    config = AnswersConfig(epsilon=1.0, delta=delta, columns=("a", "city", "b"), cap_share=0.0)
    settled = workflow.plan(config, schema)
    exact = draft_of(data, schema, AnswersConfig(**LOUD, columns=("a", "city", "b"), cap_share=0.0))
    squares, scale = np.array([4, *[1] * 4, 4, 1], float), settled.noise[1].scale
    deviations = scale / np.sqrt(2.0 * np.outer(squares, squares))
    np.fill_diagonal(deviations, scale / squares)
    errors = np.array(
        [
            np.asarray(draft_of(data, schema, config, seed=seed).arrays["noisy_sums"])
            - np.asarray(exact.arrays["noisy_sums"])
            for seed in range(RELEASES)
        ]
    )
    found = np.square(errors / deviations).sum(axis=0) if delta else np.abs(errors / scale).sum(axis=0)
    law = chi2(RELEASES) if delta else gamma(RELEASES)
    released = np.triu(np.ones((7, 7), bool))
    released[1:5, 1:5] = False  # levels of one column: known, or the same as their sums
    released[6, 6] = relation is ADD
    assert law.ppf(1e-11) < found[released].min()
    assert found[released].max() < law.isf(1e-11)
    assert settled.purposes == ("marginals", "moments")


def test_caps_follow_the_rows_and_never_meet():
    schema = asked_schema(mixed(), ("a", "n", "city"))
    features = counted_features(schema)
    a, city, n = features
    assert (a.name, city.name, n.name) == ("a", "city", "n")

    def caps(of_a, of_n, sigma=1.0):
        return choose_caps(features, [of_a, np.zeros(4), of_n], sigma, 0.005)

    narrow, one = np.zeros(a.counted), np.zeros(n.counted)
    narrow[8:12] = 1000.0
    one[5] = 1000.0  # all rows hold 0
    (low, high), (least, most) = caps(narrow, one)
    assert 0 < low < high < 10
    assert (least, most) == (-1.0, 1.0)
    at_bound = np.zeros(a.counted)
    at_bound[0] = 1000.0
    assert caps(at_bound, one)[0][0] == 0.0
    assert caps(at_bound, one)[0][1] > 0.0
    rng = np.random.default_rng(0)
    for scale in (1.0, 100.0):
        for _ in range(50):  # noise alone
            drawn = caps(rng.normal(0, scale, a.counted), rng.normal(0, scale, n.counted), scale)
            assert all(low < high for low, high in drawn)
            assert 0 <= drawn[0][0] < drawn[0][1] <= 10
            assert -5 <= drawn[1][0] < drawn[1][1] <= 5


def test_the_constant_and_the_outcome_are_strong():
    columns = tuple(Column(name=f"x{i}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for i in range(16))
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    assert column_squares(Layout(schema), None) == (*[4] * 16, 4)
    assert column_squares(Layout(schema), "x0") == (16, *[4] * 15, 4)
    plain, told = (
        workflow.plan(AnswersConfig(epsilon=1.0, expected_rows=10_000, outcome=one), schema).expected
        for one in (None, "x3")
    )
    assert told["coefficient_half_width"] < 0.6 * plain["coefficient_half_width"]


def test_the_plan_says_how_wide_intervals_will_be():
    few, many = (
        workflow.plan(AnswersConfig(epsilon=1.0, columns=names), mixed(rows=50_000))
        for names in (("a", "b"), ())
    )
    assert few.expected["mean_half_width"] < many.expected["mean_half_width"] < 0.01
    assert "95 % intervals, noise alone" in few.notes[0]
    poor = workflow.plan(AnswersConfig(epsilon=0.1), mixed(rows=300))
    assert "hidden by noise" in poor.notes[1]
    assert poor.expected["rows_for_a_coefficient"] > 300
    assert "expected_rows" in workflow.plan(AnswersConfig(epsilon=1.0), mixed()).notes[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ("a", "zzz")}, "not in the schema"),
        ({"columns": ("a", "a")}, "twice"),
        ({"outcome": "zzz"}, "not one of the columns"),
        ({"columns": ("a", "b"), "outcome": "n"}, "name it in columns"),
        ({"histogram_share": 0.0}, "histogram_share"),
        ({"cap_share": 0.5}, "cap_share"),
        ({"outcome": "a", "delta": 0.0}, "no effect with delta=0"),
        ({"columns": ("city", "kind"), "cap_share": 0.1}, "no effect without columns of numbers"),
        ({"columns": "a"}, "must be a list of texts"),
        ({"columns": (1, 2)}, "must be a list of texts"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_paid(options, words):
    with pytest.raises(InvalidInput, match=words):
        workflow.plan(AnswersConfig(epsilon=1.0, **options), mixed())


def test_schemas_that_have_no_proof_or_no_numbers_are_refused():
    element = Schema(columns=mixed().columns, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    with pytest.raises(Unsupported, match="sums whole rows"):
        workflow.plan(AnswersConfig(epsilon=1.0), element)
    sets = Schema(unit=Unit.ROW, neighbours=ADD, items=ItemSpec(upper=9))
    with pytest.raises(InvalidInput, match="item sets"):
        workflow.plan(AnswersConfig(epsilon=1.0), sets)
    kept = Column(name="x", kind=Kind.NUMBER, lower=0.0, upper=1.0, missing="null")
    holed = Schema(columns=(kept, *mixed().columns), unit=Unit.ROW, neighbours=ADD)
    with pytest.raises(Unsupported, match="missing='null'"):
        workflow.plan(AnswersConfig(epsilon=1.0), holed)
    assert workflow.plan(AnswersConfig(epsilon=1.0, columns=("a", "b")), holed).method == "answers"


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_and_one_value_are_released(rows):
    for data in (table(rows), pa.table({**{c.name: table(3)[c.name] for c in mixed().columns}})):
        draft = draft_of(data, mixed(ADD), AnswersConfig(epsilon=1.0))
        assert np.all(np.isfinite(np.asarray(draft.arrays["noisy_sums"])))
        assert all(low < high for low, high in draft.facts["caps"].values())


def test_a_table_that_is_too_wide_is_refused_before_memory_runs_out():
    columns = tuple(
        Column(name=f"x{at}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for at in range(10_001)
    )
    wide = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(InvalidInput, match="10001 have too many products; name at most 10000"):
        workflow.plan(AnswersConfig(epsilon=1.0), wide)
    assert workflow.plan(AnswersConfig(epsilon=1.0, columns=("x1", "x9000")), wide).method == "answers"
