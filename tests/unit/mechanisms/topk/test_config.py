from fractions import Fraction

import pytest

from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.topk import Algorithm, TopKConfig
from adumbra.mechanisms.topk.config import SHARES, Step, budget_of, guarantee_of, score_range
from adumbra.privacy.conversion import mu_of, pure_to_mu
from adumbra.relations import Neighbours, Reach, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from adumbra.workflow import plan

PURE = [method.value for method in Algorithm]
ITEMS = ItemSpec(upper=999)


def schema(neighbours=Neighbours.ADD_REMOVE, items=ITEMS):
    return Schema(unit=Unit.ROW, neighbours=neighbours, items=items)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"k": 0}, r"k=0: must be at least 1"),
        ({"epsilon": 0}, r"epsilon=0"),
        ({"delta": 0.7}, r"delta=0.7"),
        ({"algorithm": "best"}, r"algorithm='best': must be one of auto, frefirst, em, gumbel, svt"),
        ({"length": 0}, r"length=0: must be at least 1"),
        ({"max_length": 0}, r"max_length=0: must be at least 1"),
        ({"k": 10**6, "epsilon": 1e-3}, r"k=1000000, epsilon=0.001: k / epsilon must be at most 2\^28"),
        (
            {"max_length": 10**6, "epsilon": 1e-3},
            r"max_length / epsilon must be at most 2\^28; lower max_length",
        ),
        ({"length": 10**6, "epsilon": 1e-3}, r"length / epsilon must be at most 2\^28"),
        ({"algorithm": "em", "all_counts": True}, r"all_counts=True, algorithm='em': makes no counts"),
    ],
)
def test_bad_requests_are_refused_with_the_rule(fields, message):
    with pytest.raises(InvalidInput, match=message):
        TopKConfig(**{"k": 10, "epsilon": 1.0, "delta": 0.0} | fields)


@pytest.mark.parametrize("method", sorted(set(PURE) - {"auto", "frefirst", "gumbel"}))
def test_pure_methods_refuse_delta(method):
    with pytest.raises(Unsupported, match=rf"algorithm='{method}', delta=1e-06: is pure; give delta=0"):
        TopKConfig(k=10, epsilon=1.0, delta=1e-6, algorithm=method)


def test_auto_counts_the_near_columns_again_where_it_may():
    assert TopKConfig(k=1, epsilon=1.0, delta=0.0).chosen is Algorithm.TPS_REFINE
    assert TopKConfig(k=1, epsilon=1.0, delta=1e-6).chosen is Algorithm.FREFIRST


@pytest.mark.parametrize("method", PURE)
@pytest.mark.parametrize("length", [None, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.7])
def test_pure_parts_add_to_at_most_epsilon_and_waste_nothing(method, length, epsilon):
    budget = budget_of(TopKConfig(k=10, epsilon=epsilon, delta=0.0, algorithm=method, length=length))
    total = sum(Fraction(part) for part in budget.values())
    assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) < total <= Fraction(epsilon)
    scans = Step.LENGTH in SHARES[TopKConfig(k=1, epsilon=1.0, delta=0.0, algorithm=method).chosen]
    assert (Step.LENGTH in budget) == (scans and length is None)


@pytest.mark.parametrize("method", ["frefirst", "gumbel"])
@pytest.mark.parametrize("length", [None, 5])
def test_gaussian_parts_add_in_squares(method, length):
    budget = budget_of(TopKConfig(k=10, epsilon=1.0, delta=1e-6, algorithm=method, length=length))
    mus = [pure_to_mu(part) if step is Step.LENGTH else part for step, part in budget.items()]
    total, whole = sum(Fraction(mu) ** 2 for mu in mus), Fraction(mu_of(1.0, 1e-6)) ** 2
    assert whole * (1 - Fraction(1, 10**9)) < total <= whole


def test_the_schema_must_hold_sets_of_rows():
    config = TopKConfig(k=1, epsilon=1.0, delta=0.0)
    columns = (Column(name="a", kind=Kind.NUMBER, lower=0, upper=1),)
    truths = (
        Column(name="b", kind=Kind.BOOLEAN),
        Column(name="i", kind=Kind.INTEGER, lower=0, upper=1),
    )
    rows = {"unit": Unit.ROW, "neighbours": Neighbours.ADD_REMOVE}
    with pytest.raises(InvalidInput, match=r"column 'a': is neither boolean nor an integer from 0 to 1"):
        guarantee_of(config, Schema(columns=(*truths, *columns), **rows))
    wide = (Column(name="j", kind=Kind.INTEGER, lower=0, upper=2),)
    with pytest.raises(InvalidInput, match=r"column 'j': is neither boolean"):
        guarantee_of(config, Schema(columns=wide, **rows))
    assert guarantee_of(config, Schema(columns=truths, **rows)).epsilon == 1.0
    with pytest.raises(Unsupported, match=r"unit=element: top-k protects whole rows"):
        guarantee_of(
            config, Schema(columns=truths, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
        )
    with pytest.raises(Unsupported, match=r"unit=element: top-k protects whole rows"):
        guarantee_of(config, Schema(items=ITEMS, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT))
    assert guarantee_of(config, schema()).epsilon == 1.0


def test_score_range_by_relation():
    assert score_range(Reach(Neighbours.ADD_REMOVE)) == 1
    assert score_range(Reach(Neighbours.REPLACE_ONE)) == 2


@pytest.mark.parametrize("method", PURE)
@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
def test_plans_state_cost_noise_and_purposes(method, relation):
    made = plan(TopKConfig(k=10, epsilon=1.0, delta=0.0, algorithm=method), schema(relation))
    assert made.guarantee.neighbours is relation
    assert made.guarantee.epsilon == 1.0
    assert len(set(made.purposes)) == len(made.purposes) == len(made.noise)
    assert all(part.scale > 0 for part in made.noise)
    assert made.notes


@pytest.mark.parametrize("method", ["frefirst", "gumbel"])
def test_plans_under_delta(method):
    made = plan(TopKConfig(k=10, epsilon=1.0, delta=1e-6, algorithm=method), schema())
    assert made.guarantee.mu == mu_of(1.0, 1e-6)
    assert {part.distribution for part in made.noise} <= {"gaussian", "laplace", "gumbel"}


def test_replace_one_needs_more_noise_everywhere_but_in_the_length_scan():
    for method in PURE:
        config = TopKConfig(k=10, epsilon=1.0, delta=0.0, algorithm=method)
        pairs = zip(
            plan(config, schema()).noise, plan(config, schema(Neighbours.REPLACE_ONE)).noise, strict=True
        )
        for added, replaced in pairs:
            expected = 1 if "length" in added.purpose or added.scale == 1.0 else 2
            assert replaced.scale / added.scale == pytest.approx(expected, rel=1e-9)
    config = TopKConfig(k=10, epsilon=1.0, delta=1e-6, length=10)
    added, replaced = plan(config, schema()), plan(config, schema(Neighbours.REPLACE_ONE))
    assert replaced.noise[0].scale / added.noise[0].scale == pytest.approx(2**0.5)


def test_plans_say_what_a_reader_must_know():
    with pytest.raises(InvalidInput, match="k=1001: there are 1000 items; ask for fewer of them"):
        plan(TopKConfig(k=1001, epsilon=1.0, delta=0.0, algorithm="frefirst"), schema())
    many = plan(TopKConfig(k=1000, epsilon=1.0, delta=0.0, algorithm="frefirst"), schema())
    assert many.expected["standard error of a count, length 10"] == pytest.approx(
        2**0.5 * 10 / 0.95, rel=1e-4
    )
    known = plan(TopKConfig(k=5, epsilon=1.0, delta=0.0, algorithm="frefirst", length=7), schema())
    assert list(known.expected) == ["standard error of a count, length 7"]
    assert known.noise[0].scale == pytest.approx(7.0)
    assert plan(TopKConfig(k=5, epsilon=1.0, delta=0.0, algorithm="em"), schema()).expected == {}
