"""No order crosses a network in the clear, also not to a worker that comes late."""

import pytest

from adumbra.data.opening import open_source
from adumbra.engine import dask as dask_engine
from adumbra.engine import dispatch
from adumbra.engine.channels import is_safe, require_safe
from adumbra.engine.dask import DaskEngine
from adumbra.engine.local import LocalEngine
from adumbra.errors import ClusterFailed, InvalidInput
from adumbra.numerics import NOISE_BLOCK
from adumbra.privacy.grant import KeyedRows
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.statistics.moments import Gram
from support.cluster import SCHEMA, noisy, prepare, write_files
from support.inline import inline
from support.noise import GUARANTEE

HERE, LATE = "tcp://127.0.0.1:1", "tcp://10.1.2.3:4"  # the second one on another host, without TLS


@pytest.fixture
def source(tmp_path):
    return open_source(write_files(tmp_path / "rows", SCHEMA, (5 * NOISE_BLOCK + 3,)), SCHEMA)


def joining(client, worker, after):
    """The client, to which a worker comes after so many orders."""
    right = client.scatter

    def scatter(data, **words):
        found = right(data, **words)
        if sum(map(len, client.sent.values())) >= after:
            client.workers[worker] = 1
        return found

    client.scatter = scatter
    return client


def summed(engine, source):
    return engine.fold(source, prepare, Gram(width=3), stage="gram").units.tolist()


def drawn(engine, source):
    function = KeyedRows(noisy, fixed_grant(5, GUARANTEE, ("rows",)), ("rows",))
    return list(engine.map_blocks(source, function, stage="rows"))


@pytest.mark.parametrize("tree", [1, dask_engine.TREE_BYTES], ids=["by workers", "by the driver"])
@pytest.mark.parametrize("work", [summed, drawn])
@pytest.mark.parametrize("late", [LATE, "tls://10.1.2.3:4"])
def test_a_worker_that_comes_late_gets_orders_by_a_safe_channel_alone(
    tmp_path, monkeypatch, source, work, late, tree
):
    monkeypatch.setattr(dispatch, "LOOK", 0.0)  # it is seen at once
    monkeypatch.setattr(dask_engine, "TREE_BYTES", tree)
    client = joining(inline(monkeypatch, HERE), late, after=2)
    engine = DaskEngine(client, parts=tmp_path, rows_per_block=NOISE_BLOCK)
    assert work(engine, source) == work(LocalEngine(rows_per_block=NOISE_BLOCK), source)
    assert late in client.workers
    assert (late in client.sent) == late.startswith("tls://")
    assert HERE in client.sent


def test_a_pass_that_only_unsafe_workers_could_do_ends_and_says_so(tmp_path, monkeypatch, source):
    monkeypatch.setattr(dispatch, "PATIENCE", 0.0)
    client = inline(monkeypatch, LATE)
    with pytest.raises(ClusterFailed, match=rf"no worker .*{LATE} .*in the clear; .*tls://") as caught:
        summed(DaskEngine(client), source)
    assert "release again" in str(caught.value)
    assert not client.sent


def test_an_unsafe_worker_that_is_there_is_refused_before_the_charge(tmp_path, monkeypatch, source):
    client = inline(monkeypatch, HERE, LATE)
    with pytest.raises(InvalidInput, match=f"worker={LATE}: .*in the clear; use tls://host:port"):
        DaskEngine(client, parts=tmp_path).require_ready(source)
    assert LATE not in client.sent
    del client.workers[LATE]
    DaskEngine(client, parts=tmp_path).require_ready(source)


def test_no_order_is_sent_by_an_unsafe_channel_whoever_asks(monkeypatch):
    client = inline(monkeypatch, LATE)
    with pytest.raises(InvalidInput, match="in the clear"):
        dispatch.send(client, LATE, None)
    assert not client.sent


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("tls://10.1.2.3:8786", True),
        ("tcp://127.0.0.1:8786", True),
        ("tcp://[::1]:8786", True),
        ("localhost:8786", True),
        ("inproc://10.1.2.3/12/1", True),  # threads of this process
        ("tcp://10.1.2.3:8786", False),
        ("10.1.2.3:8786", False),
        ("tcp://[2001:db8::1]:8786", False),
        ("ws://127.0.0.1:8786", False),
        ("ucx://127.0.0.1:1", False),
        ("tcp://no.such.host.invalid:1", False),
        ("tcp://", False),
        ("", False),
    ],
)
def test_channels_that_stay_here_or_are_tls_are_safe(address, safe):
    assert is_safe(address) == safe


@pytest.mark.parametrize(
    "address",
    ["tls://[::1:8786", "tcp://a..b:1", "tcp://.localhost:1", f"tcp://{'a' * 64}:1", "tcp://℀.com:1"],
)
def test_what_is_no_address_is_refused_in_words(address):
    assert not is_safe(address)
    with pytest.raises(InvalidInput, match="in the clear"):
        require_safe(address)
