"""The auditor stands apart: no release of its process meets its grants, its bugs or its streams."""

import inspect
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import adumbra as package
from adumbra import workflow
from adumbra.audit import __main__ as own_process
from adumbra.audit import recorder, replay
from adumbra.audit.alone import reports
from adumbra.audit.pairs import item_table
from adumbra.audit.replay_kinds import kinds, neighbours
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.mechanisms.projection import DPProConfig
from adumbra.mechanisms.topk import TopKConfig
from adumbra.prepared import _publish
from adumbra.privacy.ledger import Ledger, Population, create_ledger
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours, Unit
from adumbra.release.artifact import load, verify
from adumbra.schema.schema import ItemSpec, Schema
from support.claims import claims
from support.cli import adumbra
from support.methods import draw

KINDS = {kind.name: kind for kind in kinds()}
ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 4))
SCHEMA = Schema.numeric(4, -1.0, 1.0, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
CONFIG = DPProConfig(n_components=4, epsilon=1.0, delta=1e-6, family="identity")
SETS = item_table([[row, (row + 1) % 40] for row in range(40)])
SET_SCHEMA = Schema(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, items=ItemSpec(upper=39))
JOINT = TopKConfig(k=8, epsilon=0.1, delta=0.0, algorithm="joint")


@pytest.fixture
def ledger(tmp_path):
    with create_ledger(tmp_path / "own.db") as book:
        book.register(
            Population(
                name="p", unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, epsilon=100.0, delta=1e-4
            )
        )
        yield book


def elsewhere(act):
    """An engine of the auditor that lets another thread act, and end well, while it is at work."""
    failed = []

    def guarded():
        try:
            act()
        except BaseException as error:
            failed.append(error)
            raise

    class Interrupted(recorder.DirectEngine):
        def wait(self):
            thread = threading.Thread(target=guarded)
            thread.start()
            thread.join()
            assert not failed

        def fold(self, *passed, **named):
            self.wait()
            return super().fold(*passed, **named)

        def map_blocks(self, *passed, **named):
            self.wait()
            yield from super().map_blocks(*passed, **named)

    return Interrupted


def known_rows(config, data, schema):
    """What a release would hold whose secret is the auditor's."""
    source = open_source(data, schema)
    batches = draw(source, config).pending["data"].batches
    return np.concatenate([np.column_stack(list(batch.to_pydict().values())) for batch in batches])


def test_a_release_during_a_replay_draws_fresh_noise(tmp_path, ledger, monkeypatch):
    """Chance of a false alarm: two draws of 120 noise values agree with a chance below 1e-100."""
    kind, made = KINDS["dppro/row"], []

    def release():
        out = tmp_path / f"real-{len(made)}"
        made.append(
            workflow.release(ROWS, CONFIG, schema=SCHEMA, ledger=ledger, population="p", out=out)
        )

    monkeypatch.setattr(replay, "DirectEngine", elsewhere(release))
    assert replay.compare(tmp_path, kind, next(neighbours(kind, 2))[:2]) == []
    assert len(made) == 2
    drawn = [one.to_numpy() for one in made]
    assert not np.array_equal(drawn[0], drawn[1])
    public = known_rows(CONFIG, ROWS, SCHEMA)
    assert not any(np.array_equal(rows, public) for rows in drawn)
    assert all("not_private" not in one.card and verify(one.path) for one in made)


def test_a_release_during_a_recording_is_neither_noted_nor_answered(tmp_path, ledger, monkeypatch):
    """The joint mechanism, whose sequences are replayed whole.

    Eight of forty columns with equal counts, in order: two draws agree with a chance of 4e-13.
    """
    case = next(one for one in claims(1.0) if one.name == "topk/joint/replace-one")
    undisturbed = recorder.record_pair(case)
    made = []

    def release():
        out = tmp_path / f"real-{len(made)}"
        made.append(
            workflow.release(SETS, JOINT, schema=SET_SCHEMA, ledger=ledger, population="p", out=out)
        )

    monkeypatch.setattr(recorder, "DirectEngine", elsewhere(release))
    recorded = recorder.record_pair(case)
    assert recorded.fault is None
    assert len(recorded.steps) == len(undisturbed.steps) == 1
    assert len(made) == 2
    first, second = (one.data.to_pylist() for one in made)
    assert first != second


def test_the_streams_of_the_process_stay_its_own(tmp_path, monkeypatch, capfd):
    kind = KINDS["dppro/row"]
    streams = sys.stdout, sys.stderr

    def speak():
        assert (sys.stdout, sys.stderr) == streams
        sys.stdout.write("said meanwhile\n")
        sys.stderr.write("complained meanwhile\n")

    monkeypatch.setattr(replay, "DirectEngine", elsewhere(speak))
    assert replay.compare(tmp_path, kind, next(neighbours(kind, 2))[:2]) == []
    out, err = capfd.readouterr()
    assert out == "said meanwhile\n" * 2
    assert err == "complained meanwhile\n" * 2


def stamped(tmp_path, ledger):
    """A release with the auditor's noise."""
    out = tmp_path / "stamped"

    def opened(book, entry, purposes):
        return fixed_grant(0, book.mark_drawn(entry, purposes), purposes)

    prepared = workflow.prepare(
        ROWS, CONFIG, schema=SCHEMA, ledger=ledger, population="p", out=out, before_dp="none"
    )
    _publish(prepared, out, opened)
    return out


def test_what_is_made_with_a_known_secret_is_stamped_and_fails_verify(tmp_path, ledger):
    out = stamped(tmp_path, ledger)
    card = json.loads((out / "card.json").read_bytes())
    assert card["not_private"].startswith("NOT PRIVATE: ")
    assert card["not_private"] in (out / "card.html").read_text()
    for check in (verify, load):
        with pytest.raises(VerificationFailed, match=r"^card.json: is stamped NOT PRIVATE: "):
            check(out)
    done = adumbra("verify", out)
    assert done.returncode == 4
    assert "card.json: is stamped NOT PRIVATE: made for a test or an audit" in done.stderr


def test_a_usual_release_has_no_stamp(tmp_path, ledger):
    out = tmp_path / "usual"
    workflow.release(ROWS, CONFIG, schema=SCHEMA, ledger=ledger, population="p", out=out)
    assert b"NOT PRIVATE" not in (out / "card.json").read_bytes() + (out / "card.html").read_bytes()


def test_no_public_function_takes_a_grant_or_a_way_to_open_one():
    for name in package.__all__:
        public = getattr(package, name)
        if isinstance(public, type) and issubclass(public, BaseException):
            continue
        for taken in inspect.signature(public).parameters if callable(public) else ():
            assert "grant" not in taken, (name, taken)
            assert "secret" not in taken, (name, taken)
    assert "grant" not in {*inspect.signature(workflow.release).parameters}
    assert {*inspect.signature(Ledger.draw).parameters} == {"self", "entry_id", "purposes"}


def test_bugs_cannot_be_planted_in_this_process():
    before = workflow.prepare
    with (
        pytest.raises(InvalidInput, match="only the auditor's own may do it"),
        own_process.plant([(workflow, "prepare", None)]),
    ):
        pass
    assert workflow.prepare is before


def test_a_broken_process_of_the_auditor_is_no_reassurance():
    with pytest.raises(VerificationFailed, match="ended with code 1: (.|\n)*ValueError"):
        list(reports("replay", "no number", ""))


SPEAKING = """
import sys
from adumbra.audit import __main__ as own, replay
from dataclasses import replace
from adumbra.mechanisms import methods
right = methods.method_named("dppro")
def wrong(settled, source, engine, grant):
    rows = sum(float(abs(b.values).sum()) for b in source.batches(4096))
    print(rows, file={stream})
    return right.draw(settled, source, engine, grant)
planted = replace(right, steps=lambda: replace(right.steps(), draw=wrong))
methods.METHODS = (planted, *methods.METHODS[1:])
own.chosen_kinds = lambda method: [one for one in own_kinds if one.name == "dppro/row"]
from adumbra.audit.replay_kinds import kinds
own_kinds = kinds()
own.main(["{descriptor}", "replay", "2", ""])
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_own_process_sees_what_is_written_to_its_streams(stream, tmp_path):
    reading, writing = os.pipe()
    script = SPEAKING.format(stream=f"sys.{stream}", descriptor=writing)
    with (tmp_path / "out").open("w+b") as out, (tmp_path / "err").open("w+b") as err:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=out, stderr=err, pass_fds=(writing,), check=False
        )
    os.close(writing)
    with os.fdopen(reading) as lines:
        found = [json.loads(line) for line in lines]
    assert done.returncode == 0, (tmp_path / "err").read_text()
    assert f"{stream} differs" in found[0]["differing"]
