"""Start-up does not search for garbage, and leaves the collector as it found it."""

import gc
import subprocess
import sys
from contextlib import contextmanager

import pytest

from adumbra.starting import uncollected


@contextmanager
def collector(*, enabled, frozen=False):
    """The collector in one state, and as it was afterwards."""
    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    if frozen:
        gc.freeze()
    try:
        yield
    finally:
        if frozen:
            gc.unfreeze()
        (gc.enable if was_enabled else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_pauses_and_is_left_as_it_was(enabled):
    with collector(enabled=enabled):
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
        with pytest.raises(KeyError), uncollected():
            raise KeyError
        assert gc.isenabled() is enabled


def test_what_was_made_counts_as_old():
    code = """
import gc
from adumbra.starting import uncollected
with uncollected():
    import colorsys
    made = [[] for _ in range(10_000)]
old = {id(one) for one in gc.get_objects(generation=2)}
print(all(id(one) in old for one in made), gc.get_freeze_count())
"""  # in a process of its own: this one has frozen what it imported
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0"]


def test_where_nothing_is_imported_nothing_is_counted(monkeypatch):
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("takes as long as what is frozen"))
    with collector(enabled=True), uncollected():
        pass


def test_what_somebody_froze_stays_frozen(monkeypatch):
    with collector(enabled=True, frozen=True):
        held = gc.get_freeze_count()
        monkeypatch.delitem(sys.modules, "colorsys", raising=False)
        with uncollected():
            import colorsys  # noqa: F401
        assert gc.get_freeze_count() > held // 2 > 0  # a few frozen objects may go by themselves
