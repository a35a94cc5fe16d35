"""16 processes against one cap: exactly the cap is granted, on every database."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adumbra.privacy.ledger import create_ledger, open_ledger
from support.ledger import DATABASES, FULL, new_location, register

SCRIPT = Path(__file__).parents[1] / "support" / "ledger_race.py"
PROCESSES = 16
ATTEMPTS = 1000 if FULL else 40
CAP = 1000 if FULL else 60


@pytest.mark.parametrize("database", DATABASES)
def test_no_double_spend(database, tmp_path, record_property):
    location = new_location(database, tmp_path)
    with create_ledger(location) as ledger:
        register(
            ledger, epsilon=CAP / 1000
        )  # in costs of 0.001: floats that do not add up by themselves
    job = {"location": location, "epsilon": 0.001, "attempts": ATTEMPTS, "processes": PROCESSES}
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), json.dumps(job)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    found = json.loads(done.stdout)
    assert sum(found["granted"]) == CAP
    with open_ledger(location) as ledger:
        statement = ledger.show("people")[0]
        assert (statement.spent, statement.left, len(statement.entries)) == (CAP / 1000, 0.0, CAP)
        assert ledger.verify().entries == CAP
    speed = PROCESSES * ATTEMPTS / found["seconds"]
    record_property(
        "figure",
        f"{database}: {PROCESSES} processes x {ATTEMPTS} attempts against a cap of {CAP}: "
        f"{sum(found['granted'])} granted, {speed:.0f} attempts/s "
        f"({PROCESSES * ATTEMPTS / found['cpu']:.0f} a second of processor time)",
    )
