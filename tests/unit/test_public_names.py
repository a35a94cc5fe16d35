"""The public names are what they say, in whatever order modules are imported."""

import subprocess
import sys

import pytest

import adumbra


def test_every_public_name_can_be_had():
    for name in adumbra.__all__:
        assert getattr(adumbra, name) is not None
    assert dir(adumbra) == adumbra.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = adumbra.nothing


@pytest.mark.parametrize("first", ["adumbra.plan", "adumbra.load", "adumbra.release", "sys"])
def test_release_is_the_function_whatever_came_before(first):
    later = "from adumbra.release.artifact import load; print(callable(adumbra.release))"
    code = f"import sys, adumbra; {first}; {later}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_first_use_leaves_the_search_for_garbage_as_it_was():
    code = "import gc, adumbra; {}; adumbra.release; print(gc.isenabled())"
    for setting, known in (("gc.enable()", "True"), ("gc.disable()", "False")):
        command = [sys.executable, "-c", code.format(setting)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == known


def test_a_release_that_nobody_asks_loads_nothing_that_answers():
    code = "import sys, adumbra; adumbra.release, adumbra.load; "
    code += "print('adumbra.answers.asking' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
