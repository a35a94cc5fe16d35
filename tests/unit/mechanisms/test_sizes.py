"""What a plan says of memory and disk: never below what a release takes, and nothing private in it."""

from dataclasses import replace

import numpy as np
import pytest

from adumbra import workflow
from adumbra.errors import InvalidInput, NoSpace, OutOfMemory
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.mechanisms.sizes import Size
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.release import place, storage
from adumbra.schema.schema import Schema

CONFIG = DPProConfig(n_components=2, epsilon=0.5)
SCHEMA = Schema.numeric(3, -1.0, 1.0)
SMALL = Size(memory=0, output=0, card=0, rows=1)


@pytest.fixture
def ledger():
    with memory_ledger() as book:
        book.register(Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 2.0, 1e-6))
        yield book


def prepare(ledger, out, check=True):
    return workflow.prepare(
        np.zeros((50, 3)), CONFIG, schema=SCHEMA, ledger=ledger, population="p", out=out, check=check
    )


def with_size(prepared, **sizes):
    plan = replace(prepared.plan, size=replace(SMALL, **sizes))
    return replace(prepared, settled=replace(prepared.settled, plan=plan))


@pytest.mark.parametrize(
    ("sizes", "kind", "words"),
    [
        ({"output": 2**60}, NoSpace, "the release needs up to 1,152,921,505 GB of disk and "),
        ({"memory": 2**50}, OutOfMemory, "memory: the method needs up to 1,125,900 GB and "),
        ({"card": storage.CARD_LIMIT}, InvalidInput, "a card of .* bytes: at most"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_charge(ledger, tmp_path, sizes, kind, words):
    prepared = with_size(prepare(ledger, tmp_path / "out", check=False), **sizes)
    for act in (prepared.check, prepared.commit):
        with pytest.raises(kind, match=words) as caught:
            act()
        assert not hasattr(caught.value, "__notes__")
    assert ledger.show("p")[0].entries == ()
    with_size(prepared).commit()


def test_room_that_is_gone_since_the_question_is_seen(ledger, tmp_path):
    prepared = prepare(ledger, tmp_path / "out")
    with pytest.raises(OutOfMemory):
        with_size(prepared, memory=2**50).commit()
    assert ledger.show("p")[0].entries == ()


def test_a_limit_of_the_process_or_of_its_group_counts(monkeypatch, tmp_path):
    most = place.free_memory()
    assert 2**20 < most < 2**50
    group = tmp_path / "cg/inner"
    group.mkdir(parents=True)
    (tmp_path / "cg/memory.max").write_text("5000\n")
    (tmp_path / "cg/memory.current").write_text("3000\n")
    (tmp_path / "cg/memory.stat").write_text("anon 2500\ninactive_file 400\n")
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("100\n")
    right = place._lines

    def lines(path):
        if str(path) == "/proc/self/cgroup":
            return ["0::/inner"]
        text = str(path).replace("/sys/fs/cgroup", str(tmp_path / "cg"))
        return right(type(path)(text))

    monkeypatch.setattr(place, "_lines", lines)
    assert list(place._control_groups()) == [2400]
    assert place.free_memory() == 2400
    monkeypatch.setattr(place, "_lines", lambda _path: [])  # another system: nobody knows
    assert place.free_memory() is None
    place.require_memory(2**60, 0)


def test_300_rows_of_20000_columns_do_not_fit_3_gigabytes(monkeypatch):
    size = workflow.plan(MomentsConfig(epsilon=1.0), Schema.numeric(20_000, 0, 1, rows=300)).size
    monkeypatch.setattr(place, "free_memory", lambda: 3 * 10**9)
    with pytest.raises(OutOfMemory, match="memory: the method needs up to"):
        place.require_memory(size.memory, 0)
