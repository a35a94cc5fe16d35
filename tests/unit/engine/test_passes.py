"""Passes over workers: what they show of themselves, what they may take, and where released rows go."""

import errno
import os
from dataclasses import replace
from types import SimpleNamespace

import distributed
import pytest

from adumbra import workflow
from adumbra.audit.recorder import DirectEngine
from adumbra.audit.replay_kinds import kinds
from adumbra.data.opening import open_source
from adumbra.engine import dask as dask_engine
from adumbra.engine import orders
from adumbra.engine.dask import DaskEngine
from adumbra.engine.orders import PROBE, Order, carry_out, opened, running_code
from adumbra.errors import InvalidInput, NoSpace, NotWritable, OutOfMemory
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.numerics import NOISE_BLOCK
from adumbra.privacy.grant import KeyedRows
from adumbra.privacy.ledger import Population, create_ledger
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours, Unit
from adumbra.release import storage
from adumbra.statistics.moments import Gram
from support.cluster import SCHEMA, noisy, prepare, write_files
from support.inline import inline
from support.methods import draw
from support.noise import GUARANTEE

ONE, OTHER = "tls://10.1.2.3:1", "tls://10.1.2.3:2"
KEY = bytes(32)


@pytest.fixture
def path(tmp_path):
    return write_files(tmp_path / "rows", SCHEMA, (9 * NOISE_BLOCK + 3,))


@pytest.fixture
def source(path):
    return open_source(path, SCHEMA)


@pytest.mark.parametrize("tree", [1, dask_engine.TREE_BYTES], ids=["by workers", "by the driver"])
def test_progress_of_sums_rises_from_order_to_order(monkeypatch, source, tree):
    monkeypatch.setattr(dask_engine, "TREE_BYTES", tree)
    shown = []
    engine = DaskEngine(
        inline(monkeypatch, ONE, OTHER), orders=3, progress=lambda *told: shown.append(told)
    )
    engine.fold(source, prepare, Gram(width=3), stage="gram")
    counts = [done for _, done, _ in shown]
    assert {(stage, total) for stage, _, total in shown} == {("gram", 6)}
    assert counts == sorted(counts)
    assert set(counts) == set(range(7))  # also before the pass ends


def test_progress_of_rows_and_of_a_private_number_of_them(monkeypatch, tmp_path, source, path):
    shown = []
    client = inline(monkeypatch, ONE)
    engine = DaskEngine(client, parts=tmp_path, progress=lambda *told: shown.append(told))
    function = KeyedRows(noisy, fixed_grant(5, GUARANTEE, ("rows",)), ("rows",))
    list(engine.map_blocks(source, function, stage="rows"))
    assert shown == [("rows", done, 4) for done in range(5)]
    monkeypatch.setattr(dask_engine, "TREE_BYTES", 1)
    shown.clear()
    hidden = replace(SCHEMA, neighbours=Neighbours.ADD_REMOVE)
    engine.fold(open_source(path, hidden), prepare, Gram(width=3), stage="gram")
    assert set(shown) == {("gram", 0, None)}


def test_every_order_brings_the_limit_of_memory(monkeypatch, tmp_path, source):
    for memory in (3 * 10**9, None):
        client = inline(monkeypatch, ONE)
        engine = DaskEngine(client, parts=tmp_path, memory=memory)
        engine.fold(source, prepare, Gram(width=3), stage="gram")
        function = KeyedRows(noisy, fixed_grant(5, GUARANTEE, ("rows",)), ("rows",))
        list(engine.map_blocks(source, function, stage="rows"))
        assert [order.memory for order in client.sent[ONE]] == [memory] * 8
        assert orders._engine(client.sent[ONE][0]).memory == memory


@pytest.fixture
def ledger(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as book:
        book.register(Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 10.0, 1e-3))
        yield book


def prepared(path, config, engine, ledger, out):
    return workflow.prepare(
        path, config, schema=SCHEMA, ledger=ledger, population="people", out=out, engine=engine
    )


ROWS = DPProConfig(n_components=2, epsilon=0.1, delta=1e-6)
SUMS = MomentsConfig(epsilon=0.1, delta=1e-6)


@pytest.mark.parametrize("config", [ROWS, SUMS], ids=["rows", "sums"])
def test_a_process_that_would_take_more_than_it_may_is_refused_before_the_charge(
    monkeypatch, tmp_path, path, ledger, config
):
    client, out = inline(monkeypatch, ONE), tmp_path / "out"
    with prepared(path, config, DaskEngine(client, memory=10**10), ledger, out):
        pass
    asked = len(client.sent[ONE])
    with pytest.raises(OutOfMemory, match="memory=100 MB: the method needs up to .* allow more"):
        prepared(path, config, DaskEngine(client, memory=10**8), ledger, out)
    assert not ledger.show()[0].entries
    assert len(client.sent[ONE]) == asked  # no worker was asked


def test_parts_that_do_not_fit_their_folder_are_refused_before_the_charge(
    monkeypatch, tmp_path, path, ledger
):
    small, right = tmp_path / "small", os.statvfs
    small.mkdir()

    def statvfs(place):
        found = right(place)
        room = 5 if place == small else found.f_bavail
        return SimpleNamespace(f_bavail=room, f_frsize=found.f_frsize)

    monkeypatch.setattr(storage.os, "statvfs", statvfs)
    client = inline(monkeypatch, ONE)
    with pytest.raises(NoSpace, match=f"parts={small}: the release needs up to .* of disk and .* free"):
        prepared(path, ROWS, DaskEngine(client, parts=small), ledger, tmp_path / "out")
    assert not ledger.show()[0].entries
    with prepared(path, ROWS, DaskEngine(client, parts=tmp_path), ledger, tmp_path / "out"):
        pass
    with prepared(path, SUMS, DaskEngine(client, parts=small), ledger, tmp_path / "out"):
        pass  # no row of it goes through the folder


KINDS = [kind for kind in kinds() if kind.schema.person is None]  # others are not divided


class Keyed(DirectEngine):
    """The plain loop, which notes whether released rows were asked for."""

    seen = False

    def map_blocks(self, source, function, *, stage):
        self.seen = self.seen or isinstance(function, KeyedRows)
        return super().map_blocks(source, function, stage=stage)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_plan_knows_whether_rows_go_through_the_folder(tmp_path, kind):
    engine, config = Keyed(), kind.config()
    path = write_files(tmp_path / "rows", kind.schema, (40,))
    source = open_source(path, kind.schema)
    draw(source, config, engine=engine)
    assert workflow.plan(config, source.schema).releases_rows == engine.seen


def probed(folder, monkeypatch):
    """What a worker says of a folder of parts."""
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(data={}))
    source = SimpleNamespace(pin=lambda: "pin")
    order = Order(number=1, seal=KEY, source=source, pin="pin", code=running_code(), folder=folder)
    return opened(carry_out(order), KEY, 1).facts


def names(folder):
    return [path.name for path in folder.iterdir()]


def refusing(number):
    def fails(*_, **__):
        raise OSError(number, "/home/somebody/secret")

    return fails


@pytest.mark.parametrize("verb", ["link", "open"])
@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EROFS, errno.EIO])
def test_a_worker_that_cannot_write_or_link_in_the_folder_of_parts_does_not_fit(
    tmp_path, monkeypatch, verb, number
):
    (tmp_path / PROBE).touch()
    assert not probed(tmp_path, monkeypatch)
    assert names(tmp_path) == [PROBE]  # nothing is left
    monkeypatch.setattr(orders.os, verb, refusing(number))
    facts = probed(tmp_path, monkeypatch)
    monkeypatch.undo()
    assert facts["failed"] == "unfit"
    rule = f"a file and a hard link in the driver's folder of parts ({errno.errorcode[number]})"
    assert rule in facts["words"]
    assert "secret" not in facts["words"]
    assert names(tmp_path) == [PROBE]


def test_a_folder_of_parts_that_is_full_or_not_the_drivers(tmp_path, monkeypatch):
    assert "does not see the driver's folder of parts" in probed(tmp_path, monkeypatch)["words"]
    (tmp_path / PROBE).touch()
    monkeypatch.setattr(orders.os, "link", refusing(errno.ENOSPC))
    facts = probed(tmp_path, monkeypatch)
    assert (facts["failed"], facts["words"][:25]) == ("NoSpace", "worker: the disk is full;")


def test_what_a_worker_cannot_do_in_the_folder_is_refused_before_the_charge(
    monkeypatch, tmp_path, path, ledger
):
    right = orders.why_unfit
    client = inline(monkeypatch, ONE)
    monkeypatch.setattr(orders, "why_unfit", right)
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(data={}))
    engine = DaskEngine(client, parts=tmp_path)
    with prepared(path, ROWS, engine, ledger, tmp_path / "out"):
        pass
    monkeypatch.setattr(orders.os, "link", refusing(errno.EPERM))
    with pytest.raises(InvalidInput, match=rf"worker={ONE}: cannot write .* hard link .*\(EPERM\)"):
        prepared(path, ROWS, engine, ledger, tmp_path / "out")
    assert not ledger.show()[0].entries
    assert not list(tmp_path.glob(".adumbra-parts-*"))


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOENT, InvalidInput, "no folder can be made there"),
        (errno.EACCES, NotWritable, "permission denied"),
    ],
)
def test_a_folder_of_parts_that_cannot_be_made_is_refused_by_its_name(
    monkeypatch, tmp_path, source, number, kind, words
):
    engine = DaskEngine(inline(monkeypatch, ONE), parts=tmp_path)
    monkeypatch.setattr(dask_engine.tempfile, "mkdtemp", refusing(number))
    with pytest.raises(kind, match=f"parts={tmp_path}: {words}") as caught:
        engine.require_ready(source)
    assert "secret" not in str(caught.value)


def test_a_worker_of_another_user_does_not_fit(tmp_path, monkeypatch):
    """Its parts are for itself alone: the driver could not read them, after the charge (review)."""
    assert [orders.can_read(*users) for users in ((0, 0), (7, 7), (0, 7), (7, 0))] == [True] * 3 + [
        False
    ]
    (tmp_path / PROBE).touch()
    asked = []
    monkeypatch.setattr(orders, "can_read", lambda *users: asked.append(users))
    assert "runs as another user than the driver" in probed(tmp_path, monkeypatch)["words"]
    assert asked == [((tmp_path / PROBE).stat().st_uid, os.geteuid())]
