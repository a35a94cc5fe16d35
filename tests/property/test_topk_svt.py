"""The block lemma (svt.proof.md) by exhaustive enumeration in rational arithmetic, no tolerance."""

import itertools
from fractions import Fraction

import mpmath
import pytest

from adumbra.mechanisms.topk.svt import blocks, sparse
from support.topk import Leaf, block_probability, common_unit, lemma_cost, probability, transcripts

ONE = Fraction(1)
HALF = Fraction(1, 2)


def schedules(epsilon=ONE):
    """Every schedule in use, with the number of columns that enumeration can bear."""
    return {
        "scan": (sparse(epsilon, 1, threshold_share=HALF), 4),
        "svt-1": (sparse(epsilon, 1, threshold_share=Fraction(1, 4)), 4),
        "svt-2": (sparse(epsilon, 2, threshold_share=Fraction(1, 4)), 5),
        "svt-3": (sparse(epsilon, 3, threshold_share=Fraction(1, 4)), 7),
        "pfm-1": (blocks(epsilon, 1), 4),
        "pfm-2": (blocks(epsilon, 2), 5),
        "pfm-3": (blocks(epsilon, 3), 6),
        "pfm-4": (blocks(epsilon, 4), 9),
    }


@pytest.mark.parametrize("name", schedules())
def test_spending_is_what_the_lemma_charges_and_some_transcript_spends_all(name):
    schedule, columns = schedules()[name]
    leaves = list(transcripts(schedule, columns))
    for leaf in leaves:
        assert lemma_cost(leaf) + leaf.left <= 1
        assert leaf.left >= 0
    assert max(lemma_cost(leaf) for leaf in leaves) == 1


def worst(schedule, columns, moves, thresholds, s, values=(0, 3)):
    """The largest loss over all neighbours in units of epsilon; probabilities add to exactly 1."""
    leaves = list(transcripts(schedule, columns))
    unit = common_unit(leaves)
    largest, excess = -1.0, False
    for start in itertools.combinations_with_replacement(values, columns):
        for move in itertools.product(moves, repeat=columns):
            for shift in thresholds:
                before = [probability(leaf, list(start), 2, unit, s) for leaf in leaves]
                moved = [a + 2 * b for a, b in zip(start, move, strict=True)]
                after = [probability(leaf, moved, 2 + shift, unit, s) for leaf in leaves]
                assert sum(before) == 1
                assert sum(after) == 1
                bound = 1 / s ** (2 * unit)  # e^epsilon: two lattice steps a count
                for p, q in zip(before, after, strict=True):
                    excess |= p > bound * q or q > bound * p
                    ratio = abs(
                        mpmath.log(mpmath.mpf(p.numerator) / p.denominator * q.denominator / q.numerator)
                    )
                    largest = max(
                        largest,
                        float(ratio / (-2 * unit * mpmath.log(mpmath.mpf(s.numerator) / s.denominator))),
                    )
    return largest, excess


SMALL = {
    "scan": (lambda e: sparse(e, 1, threshold_share=HALF), 2, Fraction(1, 3)),
    "svt-2": (lambda e: sparse(e, 2, threshold_share=Fraction(1, 4)), 3, Fraction(4, 5)),
    "pfm-1": (lambda e: blocks(e, 1), 3, Fraction(4, 5)),
    "pfm-2": (lambda e: blocks(e, 2), 3, Fraction(63, 64)),
}


@pytest.mark.parametrize("name", SMALL)
def test_no_neighbour_by_one_row_loses_more_than_epsilon(name):
    make, columns, s = SMALL[name]
    loss, excess = worst(make(ONE), columns, (0, 1), (0, 1, 2), s)
    assert not excess
    assert 0.3 < loss <= 1  # the bound is approached, so that the test has power


@pytest.mark.parametrize("name", ["svt-2", "pfm-1"])
def test_replacing_a_row_under_the_constants_of_adding_one_is_caught(name):
    make, columns, s = SMALL[name]
    loss, excess = worst(make(ONE), columns, (-1, 1), (-2, 2), s)
    assert excess
    assert loss > 1.1


@pytest.mark.parametrize("name", ["svt-2", "pfm-1"])
def test_replacing_a_row_is_covered_when_epsilon_is_halved(name):
    make, columns, s = SMALL[name]
    # s is the ratio of a whole epsilon; the schedule spends half of it.
    leaves = list(transcripts(make(HALF), columns))
    unit = common_unit(leaves)
    for move in itertools.product((-1, 1), repeat=columns):
        for shift in (-2, 2):
            start = [2] * columns
            moved = [a + 2 * b for a, b in zip(start, move, strict=True)]
            for leaf in leaves:
                p = probability(leaf, start, 2, unit, s)
                q = probability(leaf, moved, 2 + shift, unit, s)
                assert s ** (2 * unit) <= p / q <= s ** (-2 * unit)


def test_the_lemma_itself_for_every_label_pattern_and_free_label():
    """cost = e_t + the paid labels, for either choice of the free label and unequal epsilons."""
    s = Fraction(2, 3)
    e_t, e = 2, (1, 3, 2)
    for start in itertools.product((0, 3), repeat=3):
        for move in itertools.product((0, 1), repeat=3):
            for shift in (0, 2):
                for labels in itertools.product((False, True), repeat=3):
                    p = block_probability(
                        2, s**e_t, [(v, s**w, x) for v, w, x in zip(start, e, labels, strict=True)]
                    )
                    moved = [
                        (v + 2 * b, s**w, x) for v, b, w, x in zip(start, move, e, labels, strict=True)
                    ]
                    q = block_probability(2 + shift, s**e_t, moved)
                    for free in (False, True):
                        cost = e_t + sum(w for w, x in zip(e, labels, strict=True) if x is not free)
                        assert s ** (2 * cost) <= p / q <= s ** (-2 * cost)


def test_nothing_can_be_shaved_off():
    """N columns raised together, then one that is not: the loss tends to the whole epsilon."""
    with mpmath.workdps(40):
        schedule = blocks(ONE, 1)
        e_t, e_c = (
            mpmath.mpf(e.numerator) / e.denominator for e in (schedule.threshold, schedule.column)
        )

        def all_refused_then_accepted(count: int, raised: int) -> mpmath.mpf:
            r_t, r_c = mpmath.exp(-e_t / 2), mpmath.exp(-e_c / 2)

            def refused(t: int) -> mpmath.mpf:
                return 1 - r_c ** (t + 1) / (1 + r_c) if t >= 0 else r_c**-t / (1 + r_c)

            total = mpmath.mpf(0)
            for x in range(-600, 900):
                mass = (1 - r_t) / (1 + r_t) * r_t ** abs(x)
                total += mass * refused(x - raised) ** count * (1 - refused(x))
            return total

        losses = [
            abs(mpmath.log(all_refused_then_accepted(n, -2) / all_refused_then_accepted(n, 0)))
            for n in (1, 10, 1000, 10**6)
        ]
    assert losses == sorted(losses)
    assert 0.99 < losses[-1] <= 1 + 1e-15  # the sum over x is cut at e^-75


def test_pfm_ends_when_all_are_found_or_nothing_is_left():
    found = blocks(ONE, 1).after(True)
    assert found.done
    assert found.remaining > 0
    spent = blocks(ONE, 2).after(True).after(False)  # one wanted, so the "no" costs all that remains
    assert spent.done
    assert spent.remaining == 0
    assert Leaf(()).left == 0
