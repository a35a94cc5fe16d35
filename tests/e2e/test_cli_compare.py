"""`adumbra plan` with several budgets, as a person types it."""

import subprocess
import sys

import pytest

from adumbra.cli import comparing
from adumbra.cli.demo import example_schema
from adumbra.schema.schema import Schema


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--epsilon", "0.1,1"], 0, "at most 50.6 %"),
        (["--epsilon", "1", "--compare", "-o", "n_components=4"], 0, "not compared: top-k"),
        (["--epsilon", "1,x"], 2, "must be a number, or several with commas"),
        (["--epsilon", "1", "-o", "nonsense=1"], 2, "nonsense"),
    ],
)
def test_plans_side_by_side(tmp_path, flags, code, words):
    (tmp_path / "s.toml").write_text(example_schema())
    command = [sys.executable, "-m", "adumbra", "plan", "--schema", str(tmp_path / "s.toml"), *flags]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stderr
    assert words in run.stdout + run.stderr


def test_a_comparison_says_how_far_it_is():
    """One step for each plan, refused ones too; the numbers are public."""
    schema = Schema.numeric(3, 0.0, 1.0, rows=100)
    said = []
    comparing.compare(
        schema, [0.5, 1.0], ["moments", "top-k"], None, [], lambda *step: said.append(step)
    )
    assert said == [("plan", done, 4) for done in (1, 2, 3, 4)]
