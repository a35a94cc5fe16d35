"""Releases on a real cluster: the local engine's bytes, whatever becomes of the workers."""

import errno
import gc
import json
import os
import pickle  # noqa: TID251 - how Dask sends a task to its scheduler
import random  # noqa: TID251 - which worker is killed when; no released value
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import replace

import dask
import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster, SchedulerPlugin, Status
from distributed.utils import get_mp_context

import adumbra as ad
from adumbra import workflow
from adumbra.audit.recorder import DirectEngine
from adumbra.audit.replay_kinds import kinds
from adumbra.data import csv
from adumbra.data.opening import open_source
from adumbra.engine import cluster as clusters
from adumbra.engine import dask as dask_engine
from adumbra.engine import dispatch
from adumbra.engine.channels import require_safe
from adumbra.engine.cluster import connect
from adumbra.engine.dask import DaskEngine
from adumbra.engine.local import LocalEngine
from adumbra.errors import (
    ChargeNote,
    ClusterFailed,
    InvalidInput,
    NoiseKeyReused,
    OutOfMemory,
    Unsupported,
)
from adumbra.numerics import NOISE_BLOCK
from adumbra.prepared import _publish
from adumbra.privacy.grant import KeyedRows
from adumbra.privacy.ledger import Population, create_ledger
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours, Unit
from adumbra.statistics.moments import Gram
from support.cli import adumbra, in_process
from support.cluster import (
    LENGTHS,
    SCHEMA,
    another,
    drawn,
    dying,
    kill,
    noisy,
    prepare,
    some_workers,
    two_workers,
    write_files,
)
from support.noise import GUARANTEE

pytestmark = [  # of connections to workers that were killed, by Dask
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FULL = bool(os.environ.get("ADUMBRA_FULL"))
KILLS = 200 if FULL else 1
SOME = ("dppro/row/label", "pca/rows", "moments/add-remove", "topk-tps-refine/add-remove")  # and see
# tests/unit/engine/test_every_kind.py
KINDS = [kind for kind in kinds() if kind.schema.person is None and (FULL or kind.name in SOME)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ADUMBRA_NOISE", "numpy")  # the same bits, and nothing to compile
        yield from started(tmp_path_factory)


def started(tmp_path_factory):
    with two_workers(tmp_path_factory.mktemp("parts")) as engine:
        yield engine
    gc.collect()  # of what was left open, before another test is blamed for it


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_releases_are_the_local_engines_bit_for_bit(cluster, tmp_path, kind):
    one = write_files(tmp_path / "one", kind.schema, (sum(LENGTHS),))
    many = write_files(tmp_path / "many", kind.schema)
    plain = drawn(one, kind.schema, kind.config(), DirectEngine())
    for path, engine in (
        (many, LocalEngine(threads=2)),
        (many, another(cluster, orders=2)),
        (one, another(cluster, orders=1, rows_per_block=NOISE_BLOCK)),
    ):
        assert drawn(path, kind.schema, kind.config(), engine) == plain
    assert plain[-1]  # a whole pass was watched


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(tmp_path, monkeypatch, workers):
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    path = write_files(tmp_path / "rows", SCHEMA)
    configs = ad.MomentsConfig(epsilon=1.0), ad.DPProConfig(n_components=2, epsilon=1.0)
    plain = [drawn(path, SCHEMA, config, DirectEngine()) for config in configs]
    with some_workers(workers, tmp_path) as engine:
        small = another(engine, orders=2, rows_per_block=NOISE_BLOCK)
        assert [drawn(path, SCHEMA, config, small) for config in configs] == plain
        assert len(engine.client.nthreads()) == workers
    gc.collect()


def as_csv(folder, other):
    """The rows of Parquet files as CSV files: plain, with CR LF, in quotes."""
    other.mkdir()
    for index, path in enumerate(sorted(folder.iterdir())):
        kind = {0: {}, 1: {"lineterminator": "\r\n"}, 2: {"quoting": 1}}[index % 3]
        pq.read_table(path).to_pandas().to_csv(other / f"{path.stem}.csv", index=False, **kind)
    return other


@pytest.mark.parametrize(
    "config",
    [ad.MomentsConfig(epsilon=1.0), ad.DPProConfig(n_components=2, epsilon=1.0)],
    ids=["sums", "rows"],
)
def test_text_and_stores_are_divided_and_give_the_same_bytes(cluster, tmp_path, config, monkeypatch):
    monkeypatch.setattr(csv, "COUNT_BYTES", 4096)  # many places at which a range may begin
    path = write_files(tmp_path / "rows", SCHEMA)
    plain = drawn(path, SCHEMA, config, DirectEngine())
    text, declared = as_csv(path, tmp_path / "text"), replace(SCHEMA, header=True)
    for orders, rows in ((1, NOISE_BLOCK), (3, None)):
        engine = another(cluster, orders=orders, rows_per_block=rows)
        assert drawn(text, declared, config, engine) == plain
        assert drawn(f"file://{path}", SCHEMA, config, engine) == plain
    assert drawn(f"file://{path}", SCHEMA, config, LocalEngine()) == plain


def test_large_sums_are_added_by_the_workers(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "TREE_BYTES", 1)
    path = write_files(tmp_path / "rows", SCHEMA)
    config = ad.MomentsConfig(epsilon=1.0)
    assert drawn(path, SCHEMA, config, another(cluster, orders=3)) == drawn(
        path, SCHEMA, config, LocalEngine()
    )


def keyed(function):
    return KeyedRows(function, fixed_grant(5, GUARANTEE, ("rows",)), ("rows",))


def test_a_worker_that_dies_in_mid_task_changes_no_byte_and_no_sum(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "TREE_BYTES", 1)  # sums are held by workers, and die with them
    path = write_files(tmp_path / "rows", SCHEMA, (9 * NOISE_BLOCK + 5,))
    source, marks = open_source(path, SCHEMA), tmp_path / "marks"
    engine = another(cluster, orders=2, rows_per_block=NOISE_BLOCK)
    local = LocalEngine()
    marks.mkdir()
    late = dying(marks, 1, prepare, after=6 * NOISE_BLOCK)  # in its second order
    total = engine.fold(source, late, Gram(width=3), stage="gram")
    assert len(list(marks.iterdir())) == 1  # a worker did die
    assert np.array_equal(total.units, local.fold(source, prepare, Gram(width=3), stage="gram").units)
    for mark in marks.iterdir():
        mark.unlink()
    rows = list(engine.map_blocks(source, keyed(dying(marks, 1, noisy)), stage="rows"))
    assert len(list(marks.iterdir())) == 1
    assert rows == list(local.map_blocks(source, keyed(noisy), stage="rows"))
    assert not list(cluster.parts.iterdir())  # no part is left behind


def test_a_slow_worker_takes_fewer_orders_and_changes_no_byte(cluster, tmp_path):
    path = write_files(tmp_path / "rows", SCHEMA, (9 * NOISE_BLOCK + 5,))
    source, marks = open_source(path, SCHEMA), tmp_path / "marks"
    marks.mkdir()
    slow, fast = cluster.client.run(os.getpid).values()

    def delayed(batch, keys):
        (marks / f"{os.getpid()}-{batch.start}").touch()
        time.sleep(0.5 if os.getpid() == slow else 0.0)
        return noisy(batch, keys)

    engine = another(cluster, orders=4, rows_per_block=NOISE_BLOCK)
    rows = list(engine.map_blocks(source, keyed(delayed), stage="rows"))
    assert rows == list(LocalEngine().map_blocks(source, keyed(noisy), stage="rows"))
    taken = [int(mark.name.split("-")[0]) for mark in marks.iterdir()]
    assert 1 <= taken.count(slow) < taken.count(fast)
    assert len(taken) == len(rows)  # nothing was done twice for its sake


def test_rows_that_change_between_two_runs_are_refused(cluster, tmp_path):
    """The first worker wrote a part and died; the second reads other rows: two noises for one row."""
    path = write_files(tmp_path / "rows", SCHEMA, (4 * NOISE_BLOCK,))
    marks = tmp_path / "marks"
    marks.mkdir()

    def changed(batch, keys):
        shift = 1.0 if any(marks.iterdir()) else 0.0  # other rows after the death
        return noisy(replace(batch, values=batch.values + shift), keys)

    engine = another(cluster, orders=1, rows_per_block=NOISE_BLOCK)
    function = keyed(dying(marks, 1, changed))
    with pytest.raises(NoiseKeyReused, match="is there already and differs"):
        list(engine.map_blocks(open_source(path, SCHEMA), function, stage="rows"))


@pytest.fixture
def ledger(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as book:
        book.register(Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 1000.0, 1e-3))
        yield book


def published(path, engine, out, ledger, config):
    """The files of a whole release under a known secret, and how its charge stands."""
    prepared = workflow.prepare(
        path, config, schema=SCHEMA, ledger=ledger, population="people", out=out, engine=engine
    )
    with prepared:
        _publish(prepared, out, lambda book, e, p: fixed_grant(8, book.mark_drawn(e, p), p))
    files = {f.name: f.read_bytes() for f in out.rglob("*") if f.suffix in {".parquet", ".safetensors"}}
    card = json.loads((out / "card.json").read_bytes())
    return files, card["contents"], card["facts"], card["mechanisms"]


@pytest.fixture
def soon_back(tmp_path):
    """An engine on two processes whose successors are forked from one that has all modules loaded.

    A worker that was killed is back in a moment, so most kills hit work and not the start of Python.
    """
    forked = {"distributed.worker.multiprocessing-method": "forkserver"}
    with pytest.MonkeyPatch.context() as environment, dask.config.set(forked):
        environment.setenv("ADUMBRA_NOISE", "numpy")
        get_mp_context().set_forkserver_preload(
            [
                "distributed",
                "adumbra.engine.orders",
                "adumbra.data.split",
                "adumbra.mechanisms.methods",
            ]
        )
        parts = tmp_path / "parts"
        parts.mkdir()
        with two_workers(parts) as engine:
            yield engine
        gc.collect()


def random_kills(engine, pause, stop, killed, kills):
    """Kill a worker that runs at any moment, until there were enough; both may be gone for a while."""
    chance = random.Random(3)  # noqa: S311
    while not stop.is_set() and len(killed) < kills:
        stop.wait(chance.uniform(0.0, 2 * pause))
        start = time.monotonic()
        while not stop.is_set() and not (pids := worker_pids(engine)):
            time.sleep(0.01)
        pause = max(pause, time.monotonic() - start)  # how long a new one takes says how fast this is
        if not stop.is_set():
            killed.append(chance.choice(pids))
            kill(killed[-1])


def worker_pids(engine):
    """Processes that have connected and were not killed yet."""
    nannies = list(engine.client.cluster.workers.values())
    running = [nanny.process for nanny in nannies if nanny.process is not None]
    return [one.pid for one in running if one.status is Status.running and one.pid is not None]


def test_killed_workers_change_no_byte(soon_back, tmp_path, ledger, monkeypatch):
    """Every round is a whole release; a lost or doubled row, or other noise, would be other bytes."""
    monkeypatch.setattr(dispatch, "LOSSES", 1000)
    path = write_files(tmp_path / "rows", SCHEMA, (20_000, 3, 20_000), group=5000)
    methods = (
        ad.DPProConfig(n_components=2, epsilon=0.1, delta=1e-6),
        ad.MomentsConfig(epsilon=0.1, delta=1e-6, synthetic_rows=100),
    )
    local = LocalEngine()
    right = [
        published(path, local, tmp_path / f"local-{i}", ledger, one) for i, one in enumerate(methods)
    ]
    stop, killed, rounds = threading.Event(), [], 0
    engine, start = another(soon_back, orders=4), time.monotonic()
    assert published(path, engine, tmp_path / "calm", ledger, methods[0]) == right[0]
    pause = (time.monotonic() - start) / 2  # some kills hit each release, and it ends
    thread = threading.Thread(target=random_kills, args=(engine, pause, stop, killed, KILLS))
    thread.start()
    try:
        while rounds == 0 or thread.is_alive():
            which, out = rounds % len(methods), tmp_path / f"far-{rounds}"
            assert published(path, engine, out, ledger, methods[which]) == right[which]
            rounds += 1
    finally:
        stop.set()
        thread.join()
    assert len(killed) == KILLS
    assert not list(soon_back.parts.iterdir())  # no part is left behind
    sys.stdout.write(f"{len(killed)} workers killed, {rounds} releases: the local engine's bytes\n")


class Onlooker(SchedulerPlugin):
    """Whoever runs the scheduler: every task it is given, and every name."""

    def __init__(self):
        self.names, self.content = [], []

    def transition(self, key, start, finish, *args, **kwargs):
        task = self.scheduler.tasks.get(key)
        if finish in {"waiting", "memory"} and task is not None:
            self.names.append(key)
            self.content.append(pickle.dumps((key, task.run_spec, task.annotations, str(task.type))))

    def within(self, engine, work):
        self.scheduler = engine.client.cluster.scheduler
        self.scheduler.add_plugin(self, name="onlooker")
        try:
            return work()
        finally:
            self.scheduler.remove_plugin("onlooker")


def test_the_scheduler_sees_no_key_row_or_count(cluster, tmp_path):
    path = write_files(tmp_path / "rows", SCHEMA, (3 * NOISE_BLOCK + 17,))
    source, function = open_source(path, SCHEMA), keyed(noisy)
    cluster.client.wait_for_workers(2, timeout=120)  # an earlier test may have killed one
    engine, eyes = another(cluster, orders=2), Onlooker()
    eyes.within(engine, lambda: list(engine.map_blocks(source, function, stage="rows")))
    secrets = [function.grant.key("rows", block)._secret.reveal() for block in range(4)]
    secrets += [function.grant.secret.reveal(), path.name.encode(), str(3 * NOISE_BLOCK + 17).encode()]
    secrets += [row.tobytes() for batch in source.batches(NOISE_BLOCK) for row in batch.values[:50]]
    assert len(set(eyes.names)) == 4  # two workers, two orders each; all were seen
    assert all(name.startswith("adumbra-") and len(name) == 40 for name in eyes.names)
    assert not any(secret in content for secret in secrets for content in eyes.content)
    planted = Onlooker()  # the same eyes see a key that is the argument of a task
    client = cluster.client
    planted.within(engine, lambda: client.submit(len, secrets[0], pure=False).result())
    assert any(secrets[0] in content for content in planted.content)


def test_the_number_of_tasks_is_not_a_function_of_the_rows(cluster, tmp_path):
    schema, counts, shown = replace(SCHEMA, neighbours=Neighbours.ADD_REMOVE), set(), []
    cluster.client.wait_for_workers(2, timeout=120)
    for rows in (1, 5 * NOISE_BLOCK):
        path, eyes = write_files(tmp_path / str(rows), schema, (rows,)), Onlooker()
        engine = another(cluster, orders=2, progress=lambda *told: shown.append(told))
        work = lambda: engine.fold(open_source(path, schema), prepare, Gram(width=3), stage="gram")  # noqa: B023, E731
        assert int(eyes.within(engine, work).units.sum()) > 0
        counts.add(len(set(eyes.names)))
    assert counts == {4}  # two workers, two orders each
    assert set(shown) == {("gram", 0, None)}


@contextmanager
def in_threads(workers, **settings):
    """An engine on a cluster inside this process: not for release, but soon started."""
    with (
        LocalCluster(workers, processes=False, dashboard_address="127.0.0.1:0", **settings) as made,
        Client(made, set_as_default=False) as client,
    ):
        yield DaskEngine(client, orders=1)


def test_what_does_not_fit_is_refused_before_the_charge(cluster, tmp_path, ledger, monkeypatch):
    path = write_files(tmp_path / "rows", SCHEMA, (50,))
    config = ad.MomentsConfig(epsilon=0.1)

    def refused(data, kind, words, engine=cluster):
        with pytest.raises(kind, match=words):
            workflow.release(
                data, config, schema=SCHEMA, ledger=ledger, population="people",
                out=tmp_path / "out", engine=engine,
            )  # fmt: skip
        assert not ledger.show()[0].entries

    refused(np.zeros((9, 3)), Unsupported, "engine=dask: data in memory cannot be divided")
    monkeypatch.setattr(dask_engine, "running_code", lambda: "another")
    refused(path, InvalidInput, "worker=tls://.*: runs another Adumbra or Python")
    monkeypatch.undo()
    usual = {"distributed.worker.memory.target": 0.6, "distributed.worker.memory.spill": 0.7}
    with dask.config.set(usual), in_threads(1, memory_limit="1GB") as spilling:
        refused(path, InvalidInput, "disk when memory is short", spilling)
    monkeypatch.setattr(dispatch, "_listed", lambda _: {})
    monkeypatch.setattr(dispatch, "PATIENCE", 0.0)
    refused(path, ClusterFailed, "cluster: it has no worker that answers")
    monkeypatch.undo()
    small = another(cluster, memory=10**8)
    refused(path, OutOfMemory, "memory=100 MB: the method needs up to .*; allow more", small)
    with in_threads(1, memory_limit=None) as near:  # whose folder has no hard links
        monkeypatch.setattr(os, "link", no_links)
        near.parts = tmp_path
        refused(path, InvalidInput, r"worker=inproc://.*: cannot write .* hard link .*\(EPERM\)", near)


def no_links(*_, **__):
    raise PermissionError(errno.EPERM, "as on a file system without them")


def test_a_lost_scheduler_is_a_clean_failure_and_the_charge_stands(tmp_path, ledger):
    path = write_files(tmp_path / "rows", SCHEMA, (9000,))
    soon = {"distributed.comm.timeouts.connect": "1s"}
    with dask.config.set(soon), in_threads(1, threads_per_worker=1, memory_limit=None) as engine:
        engine.parts = tmp_path
        prepared = workflow.prepare(
            path, ad.DPProConfig(n_components=2, epsilon=0.1, delta=1e-6), schema=SCHEMA, ledger=ledger,
            population="people", out=tmp_path / "out", engine=engine,
        )  # fmt: skip
        engine.client.sync(engine.client.cluster.scheduler.close)
        with prepared, pytest.raises(ClusterFailed, match="the scheduler does not answer") as caught:
            prepared.commit()
    assert any(isinstance(note, ChargeNote) for note in caught.value.__notes__)
    assert [entry.state for entry in ledger.show()[0].entries] == ["drawn"]
    assert not list(tmp_path.glob(".adumbra-parts-*"))


def test_no_key_crosses_a_network_in_the_clear(monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT", 1)
    for address in (
        "tcp://10.1.2.3:8786",
        "10.1.2.3:8786",
        "tcp://no.such.host.invalid:1",
        "ucx://127.0.0.1:1",
    ):
        with pytest.raises(InvalidInput, match="in the clear; use tls://host:port"):
            connect(address)
    for address in ("tls://10.1.2.3:8786", "tcp://127.0.0.1:8786", "localhost:8786"):
        require_safe(address)
    with pytest.raises(ClusterFailed, match="cannot be reached, or has no workers"):
        connect("tls://127.0.0.1:1")


def test_the_command_line_runs_on_workers_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / "rows", SCHEMA, (500,))
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    assert in_process("ledger", "init", "ledger.db").returncode == 0
    register = "ledger register people --ledger ledger.db --epsilon 2 --delta 1e-6 --unit row"
    assert in_process(*register.split(), "--neighbours", "replace-one").returncode == 0
    words = "release rows --schema schema.toml --ledger ledger.db --population people --yes"
    words += " --method dppro -o n_components=2 --epsilon 0.5 --delta 1e-6"
    for flags, rule in (
        ("--engine spark", "engine=spark: unknown; use local or dask"),
        ("--workers 2", "workers=2: needs workers; give --engine dask"),
        ("--engine dask --scheduler tls://h:1 --threads 2", "its workers are there already"),
        ("--engine dask --parts nowhere", "parts=nowhere: is not a folder"),
        ("--engine dask --scheduler 10.0.0.1:8786", "in the clear; use tls://host:port"),
    ):
        done = in_process(*words.split(), *flags.split(), "--out", "out")
        assert done.returncode == 2
        assert rule in done.stderr
    dask = "--engine dask --workers 1 --threads 1 --memory 4GB --out new/place/out"  # makes its parents
    done = adumbra(*words.split(), *dask.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert in_process("verify", "new/place/out").returncode == 0
    assert not list(tmp_path.glob(".adumbra-parts-*"))


def test_a_local_cluster_listens_to_this_machine_alone_over_tls_and_shows_no_page(cluster):
    scheduler = cluster.client.cluster.scheduler
    addresses = [scheduler.address, *cluster.client.nthreads()]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)

    ports = {int(address.rpartition(":")[2]) for address in addresses}
    own = [os.getpid(), *cluster.client.run(os.getpid).values()]
    heard = [
        c.laddr for pid in own for c in psutil.Process(pid).net_connections() if c.status == "LISTEN"
    ]
    assert ports <= {place.port for place in heard}
    assert {place.ip for place in heard} == {"127.0.0.1"}
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://127.0.0.1:{scheduler.http_server.port}/info/main/workers.html")
