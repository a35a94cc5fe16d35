"""No false alarm: sound claims, each examined by every check, every time with noise of its own.

An attack is wrong with chance 1e-9, a comparison of noise with 1e-10; the other checks are exact.
"""

import pytest

from adumbra.audit.checks import examine, settle
from support.claims import claims
from support.topk import full

RUNS = 1_000
PIECES, AUDITS = full(2, 40), full(2, 25)  # the whole grid: 1,000 audits of one claim each
CASES = claims(8.0)


@pytest.mark.parametrize("piece", range(PIECES))
def test_sound_claims_raise_no_alarm(piece, record_property):
    for number in range(piece * AUDITS, (piece + 1) * AUDITS):
        case = settle(next(CASES[number % len(CASES)].candidates()))
        assert examine(case, RUNS, seed=1 + number) == [], (number, case.name)
    record_property("audits", AUDITS)
