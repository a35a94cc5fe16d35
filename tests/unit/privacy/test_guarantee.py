"""The guarantee as a value: what it accepts, how it adds, what it says."""

import dataclasses
import json
import math

import pytest

from adumbra.errors import InvalidInput, Unsupported
from adumbra.privacy.conversion import compose_mu, mu_of, pure_to_mu
from adumbra.privacy.guarantee import PrivacyGuarantee, promise, pure, require_budget
from adumbra.relations import Neighbours, Unit

ROW = (Unit.ROW, Neighbours.REPLACE_ONE)


def test_exactly_one_currency():
    for epsilon, mu in ((None, None), (1.0, 1.0)):
        with pytest.raises(InvalidInput, match="set exactly one"):
            PrivacyGuarantee(
                unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, pure_epsilon=epsilon, mu=mu
            )


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1", 1e-13, 2e4])
def test_amounts_refused(bad):
    with pytest.raises(InvalidInput, match=r"^epsilon=.*: must lie in"):
        PrivacyGuarantee(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, pure_epsilon=bad)
    with pytest.raises(InvalidInput, match=r"^mu=.*: must lie in"):
        PrivacyGuarantee(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, mu=bad, delta=1e-6)


@pytest.mark.parametrize("delta", [0.0, 0.5, -1e-6, 1e-301])
def test_gaussian_needs_a_delta(delta):
    with pytest.raises(InvalidInput, match="quoted at a delta"):
        PrivacyGuarantee(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, mu=1.0, delta=delta)


@pytest.mark.parametrize("delta", [math.nan, math.inf, "0", None, False])
def test_delta_is_a_number(delta):
    with pytest.raises(InvalidInput, match=r"delta=.*: must be a number"):
        PrivacyGuarantee(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, mu=1.0, delta=delta)


def test_pure_has_no_delta():
    with pytest.raises(InvalidInput, match="a pure guarantee has delta=0"):
        PrivacyGuarantee(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, pure_epsilon=1.0, delta=1e-6)


def test_illegal_pair_refused():
    with pytest.raises(Unsupported, match="not a legal pair"):
        pure(1.0, Unit.ELEMENT, Neighbours.ADD_REMOVE)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        pure(1.0, *ROW).mu = 0.1


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0.0, 0.0, "epsilon=0.0: must lie in"),
        (-1.0, 0.0, "epsilon=-1.0: must lie in"),
        (1e4, 0.0, "epsilon=10000.0: must lie in"),
        (math.nan, 0.0, "epsilon=nan: must be a number"),
        (math.inf, 0.0, "epsilon=inf: must be a number"),
        (True, 0.0, "epsilon=True: must be a number"),
        ("1", 0.0, "epsilon='1': must be a number"),
        (None, 0.0, "epsilon=None: must be a number"),
        (1.0, 0.5, "delta=0.5: must be 0"),
        (1.0, -1e-9, "delta=-1e-09: must be 0"),
        (1.0, 1e-310, "delta=1e-310: must be 0"),
        (1.0, math.nan, "delta=nan: must be a number"),
        (-0.0, 0.0, "epsilon=-0.0: must lie in"),
        (5e-324, 0.0, "epsilon=5e-324: must lie in"),
    ],
)
def test_budget_refused(epsilon, delta, message):
    with pytest.raises(InvalidInput) as caught:
        require_budget(epsilon, delta)
    assert str(caught.value).startswith(message)


def test_budget_accepted():
    for epsilon, delta in ((1, 0), (1e-9, 1e-300), (1000.0, 0.4999), (0.1, -0.0)):
        require_budget(epsilon, delta)


def test_constructors_keep_the_request():
    g = promise(1, 1e-6, *ROW)
    assert not g.is_pure
    assert g.mu == mu_of(1.0, 1e-6)
    assert g.epsilon_at(1e-6) <= 1.0
    assert g.delta_at(1.0) <= 1e-6
    assert promise(1, 0, *ROW) == pure(1.0, *ROW)
    assert pure(1.0, *ROW).is_pure


def test_pure_figures():
    g = pure(1.0, *ROW)
    assert g.epsilon_at(1e-6) == 1.0
    assert g.delta_at(1.0) == 0.0
    assert g.delta_at(0.5) == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e), rel=1e-14)
    assert g.as_mu() == pure_to_mu(1.0)


def test_pure_adds():
    total = pure(0.1, *ROW)
    for _ in range(2):
        total = total.compose(pure(0.1, *ROW))
    assert total == pure(total.epsilon, *ROW)
    assert 0.3 <= total.epsilon <= 0.3000000000000001


def test_gaussian_squares_add():
    a, b = promise(1.0, 1e-6, *ROW), promise(0.5, 1e-7, *ROW)
    both = a.compose(b)
    assert both.mu == compose_mu(a.mu, b.mu)
    assert both.delta == 1e-6
    assert both.epsilon_at(1e-6) > 1.0


def test_mixed_enters_by_mu():
    a, b = promise(1.0, 1e-6, *ROW), pure(0.1, *ROW)
    assert a.compose(b).mu == compose_mu(a.mu, pure_to_mu(0.1))
    assert a.compose(b).delta == 1e-6


def test_compose_is_commutative():
    for a, b in ((pure(0.3, *ROW), pure(0.1, *ROW)), (promise(1.0, 1e-6, *ROW), pure(0.1, *ROW))):
        assert a.compose(b) == b.compose(a)


def test_unlike_refused():
    element = (Unit.ELEMENT, Neighbours.ONE_ELEMENT)
    others = (element, (Unit.ROW, Neighbours.ADD_REMOVE))
    for other in others:
        with pytest.raises(Unsupported, match="unlike guarantees do not compose"):
            pure(1.0, *ROW).compose(pure(1.0, *other))


def test_sentence():
    assert pure(0.1, *ROW).sentence() == "epsilon=0.1 (pure), replace-one, per row"
    assert promise(1.0, 1e-6, *ROW).sentence() == (
        "epsilon=1 at delta=1e-06 (mu=0.2368), replace-one, per row"
    )
    assert pure(2.0, Unit.ELEMENT, Neighbours.ONE_ELEMENT).sentence() == (
        "epsilon=2 (pure), one-element, per element"
    )


@pytest.mark.parametrize("epsilon", [1.0000001, 0.123456789, 12.3456789, 999.99999, 0.0001234567891])
def test_sentence_never_understates(epsilon):
    text = pure(epsilon, *ROW).sentence()
    figure = float(text.removeprefix("epsilon=").partition(" ")[0])
    assert epsilon <= figure <= epsilon * 1.00001


@pytest.mark.parametrize("g", [pure(0.1, *ROW), promise(1.0, 1e-6, *ROW)])
def test_round_trip(g):
    assert PrivacyGuarantee.from_dict(g.to_dict()) == g
    assert PrivacyGuarantee.from_dict(json.loads(json.dumps(g.to_dict()))) == g


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": "planet"}, "guarantee: 'planet' is not a valid Unit"),
        ({"neighbours": "swap"}, "guarantee: 'swap' is not a valid Neighbours"),
        ({"epsilon": "1"}, "epsilon='1': must be a number or null"),
        ({"mu": True}, "mu=True: must be a number or null"),
        ({"mu": math.nan}, "mu=nan: must be a number or null"),
        ({"delta": None}, "guarantee: a number is missing"),
        ({"extra": 1}, "guarantee fields="),
    ],
)
def test_from_dict_refuses(change, message):
    with pytest.raises(InvalidInput) as caught:
        PrivacyGuarantee.from_dict({**pure(1.0, *ROW).to_dict(), **change})
    assert str(caught.value).startswith(message)


def test_from_dict_refuses_a_missing_field():
    fields = pure(1.0, *ROW).to_dict()
    del fields["delta"]
    with pytest.raises(InvalidInput, match="guarantee fields="):
        PrivacyGuarantee.from_dict(fields)
