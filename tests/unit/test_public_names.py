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


def printed(*codes):
    """What each of some codes prints where the package is imported anew; other packages stay loaded."""
    forget = (
        "import sys\n"
        "for name in [one for one in sys.modules if one.split('.')[0] == 'adumbra']:\n"
        "    del sys.modules[name]\n"
    )
    script = "".join(f"{forget}exec({code!r}, {{}})\n" for code in codes)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_release_is_the_function_whatever_came_before():
    later = "from adumbra.release.artifact import load; print(callable(adumbra.release))"
    came = ("adumbra.plan", "adumbra.load", "adumbra.release", "sys")
    assert printed(*(f"import sys, adumbra; {first}; {later}" for first in came)) == ["True"] * 4


def test_a_first_use_leaves_the_search_for_garbage_as_it_was():
    code = "import gc, adumbra; {}; adumbra.release; print(gc.isenabled())"
    settings = ("gc.enable()", "gc.disable()")
    assert printed(*(code.format(setting) for setting in settings)) == ["True", "False"]


def test_a_release_that_nobody_asks_loads_nothing_that_answers():
    code = "import sys, adumbra; adumbra.release, adumbra.load; "
    assert printed(code + "print('adumbra.answers.asking' in sys.modules)") == ["False"]
