"""Everything that leaves, byte for byte, on hostile neighbours: through Python and the command."""

import os
import sys
from pathlib import Path

import pytest

from adumbra.audit import replay
from adumbra.audit.planted import altered_release, plant, with_fact
from adumbra.audit.replay_kinds import NAME, POPULATION, kinds, neighbours
from adumbra.cli import main as cli
from adumbra.mechanisms import ron_gauss
from support.topk import full

PAIRS = full(2, 1000)
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


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_nothing_that_leaves_depends_on_one_row(kind, tmp_path):
    seed = sorted(KINDS).index(kind.name)  # other neighbours for each kind; `make audit` has them all
    for first, second, hostile in neighbours(kind, PAIRS, seed):
        assert replay.compare(tmp_path, kind, (first, second)) == [], (hostile, second[-300:])


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
