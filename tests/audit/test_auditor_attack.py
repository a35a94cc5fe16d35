"""Every mechanism, unit, relation and currency: what is proven stays below the claim, and near it.

Keys are fixed, so a run repeats; over the choice of keys a false alarm has chance 1e-9 for each claim.
"""

import dataclasses
import typing

import pytest

from adumbra import workflow
from adumbra.audit.attack import attack, attack_recorded, count_guesses, steps_of, worst
from adumbra.audit.bounds import GATE, epsilon_lower
from adumbra.audit.cases import CHOICES, METHODS, all_cases
from adumbra.audit.recorder import exceedances
from adumbra.audit.replay_kinds import kinds
from adumbra.errors import AdumbraError, InvalidInput
from adumbra.mechanisms import topk
from adumbra.mechanisms.methods import METHODS as PRODUCT
from adumbra.relations import Neighbours
from support.claims import claims
from support.remembered import remembering
from support.topk import full

RUNS = full(100_000, 1_000_000)
SMALL, LARGE = claims(1.0), claims(8.0)
CASES = [*SMALL, *LARGE]
if full(0, 1) == 0:  # the small grid: at 8 all rows and half of the persons, at 1 one of each method
    persons = [case for case in LARGE if case.schema.person is not None]
    persons = [case for place, case in enumerate(persons) if place % 2 == place // 2 % 2]
    rows = [case for case in LARGE if case.schema.person is None]
    CASES = [*{case.method: case for case in reversed(SMALL)}.values(), *rows, *persons]


def name(case):
    return f"{case.name}-{case.config.epsilon:g}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_what_is_proven_stays_below_the_claim_and_near_it(case, record_property):
    with remembering():  # both tables release the same numbers: what is looked at are noise calls
        _, recorded = worst(case)
    assert exceedances(recorded) == []
    result = attack_recorded(case, recorded, RUNS)
    assert not result.violated
    assert result.epsilon_lower <= result.exact_epsilon <= result.epsilon_claimed * (1 + 1e-9)
    if case.config.delta > 0:  # a pair that is not nearly the worst would hide a fault
        assert result.measured_share >= 0.97
        if case.config.epsilon == 8.0 or RUNS >= 10**6:
            assert result.epsilon_lower >= 0.9 * result.epsilon_claimed
    known = {"name": case.name, "claimed": case.config.epsilon, "delta": case.config.delta, "runs": RUNS}
    found = {
        "proven": result.epsilon_lower,
        "at_99": result.epsilon_lower_99,
        "exact": result.exact_epsilon,
    }
    record_property("claim", {**known, **found})
    if case.config.epsilon == 8.0:  # an attack that proves nothing would say nothing
        assert result.epsilon_lower >= 0.1 * result.epsilon_claimed


def test_no_false_alarm_in_many_audits_through_the_production_noise(record_property):
    """Each audit is wrong with chance 1e-9, so all of them together with 1e-6."""
    case = next(case for case in CASES if case.name == "dppro/element" and case.config.epsilon == 8.0)
    steps = steps_of(worst(case)[1])
    audits = [count_guesses(steps, 2_000, is_pure=False, seed=seed) for seed in range(full(200, 1_000))]
    proven = [epsilon_lower(counts, case.config.delta, GATE) for counts in audits]
    assert max(proven) <= 8.0
    assert min(proven) >= 4.0
    record_property("figure", f"{len(audits)} audits of a correct mechanism: 0 false alarms")


# What must be in the list of cases: every method, unit, relation, currency and choice of the product.

AFTER_THE_NOISE = {"loss"}  # fields that change what is made of noisy numbers alone


def test_every_method_of_the_product_is_attacked_and_replayed():
    attacked = {type(case.config) for case in SMALL}
    replayed = {type(kind.config()) for kind in kinds()}
    configs = {method.config for method in PRODUCT}
    assert configs <= attacked
    assert configs <= replayed
    assert configs == set(CHOICES)
    assert len(METHODS) == len(CHOICES)
    assert {case.method for case in SMALL} == set(METHODS)


@pytest.mark.parametrize("config", CHOICES, ids=lambda kind: kind.__name__)
def test_every_choice_of_a_config_is_attacked_or_comes_after_the_noise(config):
    hints = typing.get_type_hints(config)
    literals = {
        field.name
        for field in dataclasses.fields(config)
        if typing.get_origin(hints[field.name]) is typing.Literal
    }
    assert literals <= set(CHOICES[config]) | AFTER_THE_NOISE
    cases = [case for case in SMALL if type(case.config) is config]
    for field, values in CHOICES[config].items():
        if field in literals:
            assert set(typing.get_args(hints[field])) - {"auto"} == set(values)
        for value in values:
            assert any(getattr(case.config, field) == value for case in cases), (field, value)


@pytest.mark.parametrize("case", SMALL, ids=name)
def test_every_relation_and_currency_of_a_case_is_attacked(case):
    """A relation or currency that the method's plan takes has a case with the same choices."""
    chosen = {field: getattr(case.config, field) for field in CHOICES[type(case.config)]}
    for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE):
        for delta in (0.0, 1e-6):
            try:
                config = dataclasses.replace(case.config, delta=delta)
                schema = dataclasses.replace(case.schema, neighbours=relation)
                workflow.plan(config, schema)
            except AdumbraError:
                continue
            assert any(
                other.schema.neighbours is relation
                and other.config.delta == delta
                and type(other.config) is type(config)
                and {field: getattr(other.config, field) for field in chosen} == chosen
                for other in SMALL
                if other.schema.unit is case.schema.unit
            ), (case.name, relation, delta)


def test_every_way_to_choose_columns_is_attacked_and_replayed():
    wanted = {method.value for method in topk.Algorithm} - {"auto"}
    attacked = [case.config for case in all_cases(1.0, method="topk")]
    assert {config.chosen.value for config in attacked} == wanted
    assert {kind.config().chosen.value for kind in kinds() if kind.method == "top-k"} == wanted


def test_an_attack_records_for_itself():
    case = next(case for case in SMALL if case.name == "topk/svt/replace-one")
    assert attack(case, 1_000) == attack_recorded(case, worst(case)[1], 1_000)


def test_selecting_cases():
    assert {case.method for case in all_cases(1.0, method="lda")} == {"lda"}
    assert all(case.config.delta == 0 for case in all_cases(1.0, 0.0))
    assert all(case.config.delta == 1e-5 for case in all_cases(1.0, 1e-5))
    with pytest.raises(InvalidInput, match="method=nothing"):
        all_cases(1.0, method="nothing")
