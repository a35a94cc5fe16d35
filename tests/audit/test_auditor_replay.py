"""Everything that leaves, byte for byte, on hostile neighbours: through Python and the command."""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adumbra import prepared
from adumbra.audit import replay
from adumbra.audit.planted import altered_draw, with_fact
from adumbra.audit.replay_kinds import NAME, POPULATION, families, kinds, neighbours
from adumbra.cli import main as cli
from adumbra.mechanisms.moments import release as moments
from adumbra.privacy.ledger import Ledger
from adumbra.privacy.ledger.chain import Chain
from support.planting import plant
from support.remembered import Remembered, remembering
from support.topk import full

PAIRS = full(30, 1000)
PERSON_PAIRS = full(4, 1000)
COMMAND_PAIRS = full(3, 100)
FRESH = (0, 1)  # of each family, a hostile and a tame pair whose models are both built
KINDS = {kind.name: kind for kind in kinds()}


def through_the_command(run):
    """`adumbra release` in this process, from its folder; returns the exit code.

    It takes no grant, so the replay's is planted, and a card without the stamp that would stop it.
    """
    kind = run.kind
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
        if name != "epsilon":
            arguments += ["-o", f"{name}={value}"]
    before, argv = Path.cwd(), sys.argv
    try:
        os.chdir(run.folder)
        sys.argv = arguments
        with plant([(Ledger, "draw", run.open_grant), (prepared, "stamped", lambda card: card)]):
            cli.main()
    except SystemExit as stop:
        return stop.code, ""
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
def test_nothing_that_leaves_depends_on_one_row(kind, folder, record_property):
    seed = sorted(KINDS).index(kind.name)  # other neighbours for each kind
    pairs = PAIRS if kind.schema.person is None else PERSON_PAIRS
    seen = 0
    with remembering() as models:
        for first, others in families(kind, pairs, seed):
            models.forget()
            base = replay.observe_base(folder, kind, first)
            for place, (second, hostile) in enumerate(others):
                with models.fresh(place in FRESH):
                    found = base.differences(second)
                assert found == [], (hostile, first[-300:], second[-300:])
                seen += hostile
    assert (models.made > 0) == (kind.method == "moments")
    assert seen * 5 >= pairs
    record_property("pairs", (pairs, seen))


@pytest.mark.parametrize("name", ["dppro/element", "ron-gauss-mixture/add-remove"])
def test_the_command_shows_nothing_of_one_row(name, tmp_path, capfd):
    kind, said = KINDS[name], []

    def streams():
        said.append(capfd.readouterr())
        return tuple(said[-1])

    for first, second, _ in neighbours(kind, COMMAND_PAIRS, 99):
        pair = (first, second)
        assert replay.compare(tmp_path, kind, pair, act=through_the_command, streams=streams) == []
    assert sum("check     adumbra verify release" in one.out for one in said) == 2 * COMMAND_PAIRS


def test_a_model_that_looks_at_more_than_released_numbers_is_seen(folder, monkeypatch):
    kind, right, sizes = KINDS["moments/add-remove"], moments.build_model, []
    monkeypatch.setattr(moments, "build_model", lambda *args: replace(right(*args), rank=sizes[-1]))

    def watched(run):
        sizes.append(size_of(run))
        return replay.release_through_workflow(run)

    first, others = next(families(kind, len(FRESH)))
    with remembering() as models:
        base = replay.observe_base(folder, kind, first, act=watched)
        for second, _ in others:
            with models.fresh():
                assert "code differs" in base.differences(second)


def test_equal_arguments_are_answered_once_and_others_anew():
    models, seen = Remembered(), []
    double = models.wrap("double", lambda array: seen.append(1) or 2 * array)
    one = double(np.arange(3.0))
    assert np.array_equal(double(np.arange(3.0)), one)
    assert double(np.arange(3.0)) is not one  # a copy: what is done to it is not remembered
    assert len(seen) == 1
    assert double(np.nextafter(np.arange(3.0), 1.0))[0] > 0.0
    assert len(seen) == 2
    with models.fresh():
        double(np.arange(3.0))
    assert len(seen) == 3
    assert (models.made, models.spared) == (3, 2)


def test_a_leak_into_the_card_is_seen(tmp_path):
    kind = KINDS["ron-gauss/add-remove"]
    leak = with_fact("n", lambda _draft, source, _grant: sum(len(b) for b in source.batches(4096)))
    first, second, _ = next(neighbours(kind, 2))
    with plant(altered_draw("ron-gauss", leak)):
        found = replay.compare(tmp_path, kind, (first, second))
    assert "release/card.json differs" in found
    assert "release/card.html differs" in found


def size_of(run):
    """Something about the private rows."""
    return (run.folder / run.kind.data_name).stat().st_size


LEAKS = {
    "stdout": lambda _folder, size: sys.stdout.write(f"{size}"),
    "stderr": lambda _folder, size: sys.stderr.write(f"{size}"),
    "names": lambda folder, size: (folder / f"left-{size}").touch(),
    "release/data/data.parquet": lambda folder, size: os.truncate(
        folder / "release/data/data.parquet", size % 50
    ),
}


@pytest.mark.parametrize("channel", LEAKS)
def test_a_leak_is_seen_wherever_it_leaves(channel, tmp_path, capfd):
    kind = KINDS["ron-gauss-public/add-remove"]

    def act(run):
        done = replay.release_through_workflow(run)
        LEAKS[channel](run.folder, size_of(run))
        return done

    pair = next(neighbours(kind, 2))[:2]
    found = replay.compare(tmp_path, kind, pair, act=act, streams=lambda: tuple(capfd.readouterr()))
    assert f"{channel} differs" in found


def test_an_exit_code_that_tells_is_seen(tmp_path):
    kind = KINDS["ron-gauss-public/add-remove"]
    first, second, _ = next(neighbours(kind, 2))
    found = replay.compare(tmp_path, kind, (first, second), act=lambda run: (size_of(run), ""))
    assert "code differs" in found
    found = replay.compare(tmp_path, kind, (first, second), act=lambda run: (0, str(size_of(run))))
    assert "words differs" in found


def test_a_private_line_in_the_public_ledger_is_seen(tmp_path):
    """What only the steward may read (here: a digest of the file's size) goes to the public log."""
    kind, right = KINDS["dppro/row"], Chain.act

    def wrong(self, name, public, private=None):
        right(self, name, {**public, **(private or {})}, private)

    first, second, _ = next(neighbours(kind, 2))
    with plant([(Chain, "act", wrong)]):
        found = replay.compare(tmp_path, kind, (first, second))
    assert "export.jsonl differs" in found


def test_a_failure_is_seen(tmp_path):
    kind = KINDS["dppro/row"]
    found = replay.compare(tmp_path, kind, (b"wrong,header\n1,2\n", b"wrong,header\n1,2\n"))
    assert any(line.startswith("the release failed") for line in found)
