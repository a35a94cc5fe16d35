"""Everything that leaves, byte for byte, on hostile neighbours: through Python and the command."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from adumbra.audit import replay
from adumbra.audit.planted import altered_release, plant, with_fact
from adumbra.audit.replay_kinds import NAME, POPULATION, families, kinds, neighbours
from adumbra.cli import main as cli
from adumbra.mechanisms import ron_gauss
from support.topk import full

PAIRS = full(6, 1000)  # `test_auditor_recorder` has 30 more for each kind, without files and ledger
COMMAND_PAIRS = full(3, 100)
KINDS = {kind.name: kind for kind in kinds()}


def through_the_command(folder, kind):
    """`adumbra release` in this process, from its folder; returns the exit code."""
    config = kind.config()
    arguments = [
        "adumbra",
        "release",
        kind.data_name,
        "--schema",
        f"{NAME}.toml",
        "--method",
        kind.method,
    ]
    arguments += ["--epsilon", str(config.epsilon), "--delta", str(config.delta), "--yes"]
    arguments += ["--ledger", replay.LEDGER, "--population", POPULATION, "--out", replay.OUT]
    for name, value in kind.options.items():
        arguments += ["-o", f"{name}={value}"]
    before, argv = Path.cwd(), sys.argv
    try:
        os.chdir(folder)
        sys.argv = arguments
        cli.main()
    except SystemExit as stop:
        return stop.code
    finally:
        os.chdir(before)
        sys.argv = argv


@pytest.fixture
def folder(tmp_path):
    """A folder in memory where there is one: thousands of small releases need no disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder inside has a random name
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as place:
        yield Path(place)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_nothing_that_leaves_depends_on_one_row(kind, folder):
    seed = sorted(KINDS).index(kind.name)  # other neighbours for each kind
    seen = 0
    for first, others in families(kind, PAIRS, seed):
        base = replay.observe_base(folder, kind, first)
        for second, hostile in others:
            assert base.differences(second) == [], (hostile, first[-300:], second[-300:])
            seen += hostile
    assert seen * 5 >= PAIRS


@pytest.mark.parametrize("name", ["dppro/element", "ron-gauss-mixture/add-remove"])
def test_the_command_shows_nothing_of_one_row(name, tmp_path):
    kind = KINDS[name]
    for first, second, _ in neighbours(kind, COMMAND_PAIRS, 99):
        assert replay.compare(tmp_path, kind, (first, second), act=through_the_command) == []


def test_a_leak_into_the_card_is_seen(tmp_path):
    kind = KINDS["ron-gauss/add-remove"]
    leak = with_fact("n", lambda _draft, source, _grant: sum(len(b) for b in source.batches(4096)))
    first, second, _ = next(neighbours(kind, 2))
    with plant(altered_release(ron_gauss, leak)):
        found = replay.compare(tmp_path, kind, (first, second))
    assert "release/card.json differs" in found
    assert "release/card.html differs" in found


def test_a_failure_is_seen(tmp_path):
    kind = KINDS["dppro/row"]
    found = replay.compare(tmp_path, kind, (b"wrong,header\n1,2\n", b"wrong,header\n1,2\n"))
    assert any(line.startswith("the release failed") for line in found)
