"""Populations and charges, on every database: one suite, one code path."""

import pytest

from adumbra.errors import BudgetRefused, InvalidInput, LedgerError, Unsupported
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import Currency, Population, accounts
from adumbra.relations import Neighbours, Unit
from support.ledger import ROW, ask, register, reserve, run


def test_ten_times_a_tenth_is_one(ledger):
    register(ledger, epsilon=1.0)
    for _ in range(10):
        reserve(ledger, epsilon=0.1)
    with pytest.raises(
        BudgetRefused, match=r"epsilon=1e-09 asked, 0\.0 left of 1\.0 for population people"
    ):
        reserve(ledger, epsilon=1e-9)
    statement = ledger.show("people")[0]
    assert (statement.spent, statement.left, statement.more_like_last) == (1.0, 0.0, 0)


def test_refusal_says_asked_left_and_largest_and_changes_nothing(ledger):
    register(ledger, "cohort-7", 4.0)
    reserve(ledger, "cohort-7", 3.25)
    before = ledger.head()
    with pytest.raises(BudgetRefused) as refused:
        reserve(ledger, "cohort-7", 2.0)
    assert str(refused.value) == (
        "epsilon=2.0 asked, 0.75 left of 4.0 for population cohort-7; "
        "ask for at most 0.75; only `adumbra ledger raise`, with a written reason, allows more"
    )
    assert (refused.value.asked, refused.value.left, refused.value.largest) == (2.0, 0.75, 0.75)
    assert refused.value.exit_code == 3
    assert ledger.head() == before
    reserve(ledger, "cohort-7", 0.5)  # smaller requests still pass after a refusal
    reserve(ledger, "cohort-7", 0.25)
    assert ledger.verify().entries == 3


def test_gaussian_population_counts_mu_squared(ledger):
    register(ledger, epsilon=4.0, delta=1e-6)
    statement = ledger.show("people")[0]
    assert (statement.left, statement.more_like_last, statement.population.currency) == (
        4.0,
        None,
        Currency.GAUSSIAN,
    )
    reserve(ledger, epsilon=4.0, delta=1e-6)  # the whole cap in one request passes, and nothing after it
    with pytest.raises(
        BudgetRefused, match="the budget of these people is spent; only `adumbra ledger raise`"
    ):
        reserve(ledger, epsilon=1e-3, delta=1e-6)
    assert ledger.show("people")[0].spent == 4.0
    ledger.verify()


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-5])
def test_the_largest_that_a_gaussian_refusal_prints_passes(ledger, delta):
    register(ledger, epsilon=4.0, delta=1e-6)
    reserve(ledger, epsilon=3.0, delta=1e-6)
    with pytest.raises(BudgetRefused) as refused:
        reserve(ledger, epsilon=3.0, delta=delta)
    largest = refused.value.largest
    assert f"at most {largest!r}" in str(refused.value)
    assert "4.0 at delta=1e-06" in str(refused.value)
    with pytest.raises(BudgetRefused):
        reserve(ledger, epsilon=largest * 1.0001, delta=delta)  # and it is nearly the largest
    reserve(ledger, epsilon=largest, delta=delta)


@pytest.mark.parametrize("mu", [1e4, 90.0, 1.0])
def test_a_huge_spend_is_refused_by_the_gate_itself(ledger, mu):
    register(ledger, epsilon=1.0, delta=1e-6)
    huge = PrivacyGuarantee(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, mu=mu, delta=1e-6)
    with pytest.raises(BudgetRefused, match="1.0 left"), ledger._acts() as chain:
        accounts.charge(chain, "people", huge)  # without the look before the lock
    assert ledger.show("people")[0].spent_units == 0


def test_children_charge_every_ancestor(ledger):
    register(ledger, "all", 1.0)
    register(ledger, "city", 0.9, parent="all")
    register(ledger, "street", 0.85, parent="city")
    reserve(ledger, "street", 0.5)
    reserve(ledger, "all", 0.2)
    spent = {each.population.name: each.spent for each in ledger.show()}
    assert spent == {"all": 0.7, "city": 0.5, "street": 0.5}
    with pytest.raises(
        BudgetRefused, match=r"0\.3 left of 1\.0 for population all; ask for at most 0\.3"
    ):
        reserve(ledger, "street", 0.31)  # the street has 0.35 left of its own; the root binds
    assert ledger.show("street")[0].left == 0.3
    assert ledger.show("street")[0].more_like_last == 0
    reserve(ledger, "street", 0.3)
    ledger.verify()


def test_a_pure_child_pays_a_gaussian_parent_in_its_currency(ledger):
    register(ledger, "all", 1.0, delta=1e-6)
    register(ledger, "child", 5.0, parent="all")
    with pytest.raises(BudgetRefused, match="for population all") as refused:
        reserve(ledger, "child", 1.0)
    largest = refused.value.largest
    assert 0 < largest < 0.3
    assert ledger.show("child")[0].left == largest
    reserve(ledger, "child", largest)
    ledger.verify()


def test_what_does_not_fit_is_refused_with_its_reason(ledger):
    register(ledger, "pure", 1.0)
    register(ledger, "gauss", 1.0, delta=1e-6)
    cell = ask(0.1, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    with pytest.raises(
        Unsupported, match="element/one-element: population pure is registered for row/replace-one"
    ):
        ledger.reserve("pure", cell, request={}, source_pin="")
    with pytest.raises(Unsupported, match="row/add-remove"):
        ledger.reserve("gauss", ask(0.1, neighbours=Neighbours.ADD_REMOVE), request={}, source_pin="")
    with pytest.raises(Unsupported, match="takes pure epsilon only"):
        reserve(ledger, "pure", 0.1, delta=1e-6)
    with pytest.raises(InvalidInput, match="population=nobody: not registered; run `adumbra ledger"):
        reserve(ledger, "nobody")
    with pytest.raises(InvalidInput, match=r"did you mean gauss\? For other people run `adumbra"):
        reserve(ledger, "gaus")
    with pytest.raises(Unsupported, match="its parent pure"):
        ledger.register(Population("x", Unit.ELEMENT, Neighbours.ONE_ELEMENT, 1.0, 0.0, parent="pure"))
    with pytest.raises(Unsupported, match="its parent pure is pure"):
        register(ledger, "x", 1.0, delta=1e-6, parent="pure")
    with pytest.raises(InvalidInput, match="not registered"):
        register(ledger, "x", 1.0, parent="nobody")
    with pytest.raises(InvalidInput, match="registered already"):
        register(ledger, "pure", 1.0)
    assert [each.spent_units for each in ledger.show()] == [0, 0]


@pytest.mark.parametrize("request_", [{"x": float("nan")}, {"x": 2**60}, {"x": object()}])
def test_a_request_that_is_not_json_is_refused_before_any_charge(ledger, request_):
    register(ledger)
    with pytest.raises(InvalidInput, match="request: must be JSON"):
        ledger.reserve("people", ask(0.1), request=request_, source_pin="")
    assert ledger.show("people")[0].spent_units == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a b"}, "name='a b'"),
        ({"name": ""}, "name=''"),
        ({"name": "a/../b"}, "name="),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"delta": 0.7}, "delta=0.7"),
        ({"owner": "two\nlines"}, "owner"),
        ({"purpose": "x" * 401}, "purpose"),
        ({"neighbours": Neighbours.ONE_ELEMENT}, "not a legal pair"),
    ],
)
def test_a_population_must_make_sense(fields, message):
    whole = {
        "name": "people",
        "unit": Unit.ROW,
        "neighbours": Neighbours.REPLACE_ONE,
        "epsilon": 1.0,
    } | fields
    with pytest.raises(InvalidInput, match=message):
        Population(**whole)


def test_a_raise_is_recorded_and_shown(ledger, tmp_path):
    register(ledger, epsilon=1.0, delta=1e-6)
    run(ledger, tmp_path, reserve(ledger, epsilon=1.0, delta=1e-6))
    ledger.raise_cap("people", 2.0, " the ethics board agreed ")
    statement = ledger.show("people")[0]
    change = statement.raised[0]
    assert (change.before, change.after, change.reason) == (1.0, 2.0, "the ethics board agreed")
    with pytest.raises(InvalidInput, match=r"must be above the cap of 2\.0"):
        ledger.raise_cap("people", 1.5, "down")
    with pytest.raises(BudgetRefused) as refused:
        reserve(ledger, epsilon=2.0, delta=1e-6)
    reserve(ledger, epsilon=refused.value.largest, delta=1e-6)
    ledger.raise_cap("people", 3.0, "again")
    assert [each.after for each in ledger.show("people")[0].raised] == [2.0, 3.0]
    ledger.verify()


@pytest.mark.parametrize("reason", ["", "   ", "x" * 401, "two\nlines"])
def test_an_act_needs_a_written_reason(ledger, reason):
    register(ledger)
    with pytest.raises(InvalidInput, match="reason"):
        ledger.raise_cap("people", 2.0, reason)
    assert ledger.show("people")[0].population.epsilon == 1.0


def test_linking_charges_the_past(ledger, tmp_path):
    register(ledger, "root", 2.0)
    register(ledger, "all", 1.0, parent="root")
    register(ledger, "again", 1.0)
    run(ledger, tmp_path, reserve(ledger, "again", 0.4))
    reserve(ledger, "all", 0.1)
    gone, open_ = reserve(ledger, "again", 0.2), reserve(ledger, "again", 0.3)
    ledger.void(gone, "not needed")
    ledger.link("again", "all", "the same people under a new name")
    spent = {each.population.name: each.spent for each in ledger.show()}
    assert spent == {"root": 0.8, "all": 0.8, "again": 0.7}
    ledger.verify()
    with pytest.raises(BudgetRefused, match="population all"):
        reserve(ledger, "again", 0.25)
    ledger.void(open_, "not needed")  # a void returns the charge to the ancestors that came later, too
    assert ledger.show("root")[0].spent == 0.5
    assert ledger.show("again")[0].more_like_last == 1
    with pytest.raises(LedgerError, match="a child of all already"):
        ledger.link("again", "root", "twice")
    with pytest.raises(InvalidInput, match="cannot be its own ancestor"):
        ledger.link("root", "again", "a circle")
    ledger.verify()


def test_a_link_that_does_not_fit_needs_a_raise_first(ledger):
    register(ledger, "all", 1.0)
    register(ledger, "again", 1.0)
    reserve(ledger, "all", 0.7)
    reserve(ledger, "again", 0.7)
    with pytest.raises(BudgetRefused, match="raise the cap of all first"):
        ledger.link("again", "all", "the same people")
    assert ledger.show("all")[0].spent == 0.7
    ledger.raise_cap("all", 2.0, "two releases were made on the same people")
    ledger.link("again", "all", "the same people")
    assert ledger.show("all")[0].spent == 1.4
    ledger.verify()


def test_an_empty_population_can_be_linked(ledger):
    register(ledger, "all", 1.0)
    register(ledger, "new", 1.0)
    ledger.link("new", "all", "a sample of them")
    assert ledger.populations()[1] == Population("new", *ROW, 1.0, 0.0, parent="all")
    ledger.verify()


def test_a_declaration_names_two_registered_populations(ledger):
    register(ledger, "a")
    register(ledger, "b")
    with pytest.raises(InvalidInput, match="two different"):
        ledger.declare_different("a", "a", "why")
    with pytest.raises(InvalidInput, match="not registered"):
        ledger.declare_different("a", "c", "why")
    ledger.declare_different("b", "a", "other hospital")
    ledger.verify()


def test_a_link_and_a_declaration_contradict_each_other(ledger):
    for name in ("all", "ward", "bed", "other"):
        register(ledger, name)
    ledger.link("ward", "all", "a ward of the hospital")
    ledger.link("bed", "ward", "a bed of the ward")
    for pair in (("ward", "all"), ("all", "ward"), ("bed", "all")):
        with pytest.raises(InvalidInput, match="is a child of all, so they share people"):
            ledger.declare_different(*pair, "other people")
    ledger.declare_different("bed", "other", "another hospital")
    head = ledger.head()
    with pytest.raises(InvalidInput, match="population=bed: was declared to hold other people"):
        ledger.link("all", "other", "the same people after all")
    with pytest.raises(InvalidInput, match="not declared different from all; there is nothing to take"):
        ledger.withdraw_different("bed", "all", "wrong")
    assert ledger.head() == head
    ledger.withdraw_different("other", "bed", "it was the same hospital")
    ledger.link("all", "other", "the same people after all")
    ledger.verify()
