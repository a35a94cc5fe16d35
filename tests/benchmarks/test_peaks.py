"""What plans say of memory and disk, beside small releases of every method."""

import json
import subprocess
import sys

import peaks

from adumbra.mechanisms.methods import METHODS

# One process: its peak only grows, so that every estimate must be above all peaks before it.
PEAKS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import peaks
folder = Path(sys.argv[2])
print(json.dumps([peaks.measure(case, folder / case.method) for case in peaks.CASES["small"]]))
"""


def test_no_estimate_is_below_what_was_measured(tmp_path):
    folder = str(peaks.__file__).rsplit("/", 1)[0]
    for case in peaks.CASES["small"]:
        (tmp_path / case.method).mkdir()
        peaks.write_rows(case, tmp_path / case.method / "rows.parquet")
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, folder, str(tmp_path)], capture_output=True, text=True, check=True
    )
    measured = json.loads(done.stdout)
    assert {one["case"]["method"] for one in measured} == {method.name for method in METHODS}
    for one in measured:
        assert one["peak"] <= one["memory"], one
        assert one["written"] <= one["output"], one
        assert one["card"] <= one["card_limit"], one


def test_every_method_says_what_it_takes():
    for case in peaks.CASES["small"]:
        size = peaks.settled(case).plan.size
        assert size.to_dict()["peak_memory_bytes"] == size.memory
        assert size.sentence().startswith("needs up to ")
