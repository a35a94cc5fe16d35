"""What a method imports after its passes is loaded while rows are read, and a fault of it waits."""

import subprocess
import sys
import time

from adumbra import prepared
from adumbra.mechanisms.methods import METHODS

BEHIND = """
import sys, threading
from adumbra import prepared
prepared.READING = 0.0
prepared._import_behind(("colorsys", "no_such_library", "colorsys.none", "wave"))
for one in threading.enumerate():
    if one is not threading.main_thread():
        one.join()
names = ("colorsys", "wave", "adumbra.answers.askable", "adumbra.report.page")
print([name in sys.modules for name in names])
"""


def test_all_of_it_is_loaded_and_what_cannot_be_is_left_to_its_place():
    call = [sys.executable, "-W", "ignore", "-c", BEHIND]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[True, True, True, True]"
    assert done.stderr == ""


def test_a_release_loads_what_its_method_names(monkeypatch):
    named = {method.name: method.steps().behind for method in METHODS}
    assert named["moments"] == ("scipy.linalg",)
    loaded = []
    monkeypatch.setattr(prepared, "READING", 0.0)
    monkeypatch.setattr(prepared, "import_module", loaded.append)
    prepared._import_behind(named["moments"])
    until = time.monotonic() + 60
    while not loaded and time.monotonic() < until:
        time.sleep(0.001)
    assert loaded == ["scipy.linalg"]
