"""Every kind of release by orders that were sent and answered: the plain loop's bytes, no cluster.

tests/e2e/test_dask.py does some of them on real workers; here all of them pass through the same orders,
in the bytes that Dask would send, one after the other in this process.
"""

import os

import pytest
from distributed.protocol.pickle import dumps, loads

from adumbra.audit.recorder import DirectEngine
from adumbra.audit.replay_kinds import kinds
from adumbra.data.split import split
from adumbra.engine import orders
from adumbra.engine.dask import _blocks, _read_part
from adumbra.engine.local import block_rows, fold_rows_of
from adumbra.engine.orders import RowsOrder, SumOrder, added, carry_out, opened
from adumbra.numerics import Lattice
from support.cluster import drawn, write_files

KEY = bytes(32)
FULL = bool(os.environ.get("ADUMBRA_FULL"))
LIKE = ("add-remove", "-pure/replace-one")  # names of kinds whose orders another kind has, too
KINDS = [k for k in kinds() if k.schema.person is None and (FULL or not k.name.endswith(LIKE))]


def sent(order):
    """What a worker answers to an order that crossed a wire."""
    buffers: list = []
    content = dumps(order, buffer_callback=buffers.append)
    answer = opened(carry_out(loads(content, buffers=buffers)), KEY, order.number)
    assert "failed" not in answer.facts, answer.facts
    return answer


class Posted:
    """An engine whose every order is sent, one after the other."""

    is_remote = True

    def __init__(self, folder):
        self.folder = folder

    def fold(self, source, prepare, statistic, *, stage):
        found = split(source, fold_rows_of(source), 3, 2)
        answers = [
            sent(
                SumOrder(
                    number=number, seal=KEY, source=part, pin=part.pin(), code="",
                    prepare=prepare, statistic=statistic,
                )
            )
            for number, part in enumerate(found.parts)
        ]  # fmt: skip
        if found.watched is not None:
            found.watched([answer.arrays[1:] for answer in answers])
        return Lattice(added(answers).arrays[0], statistic.exponent)

    def map_blocks(self, source, function, *, stage):
        found, answers = split(source, block_rows(source.width), 3, 2), []
        for number, part in enumerate(found.parts):
            blocks = _blocks(found.spans[number])
            order = RowsOrder(
                number=number, seal=KEY, source=part, pin=part.pin(), code="", folder=self.folder,
                function=function.function, keys=function.hand_over(*blocks),
            )  # fmt: skip
            answers.append(sent(order))
            claims = {(p, b): bytes.fromhex(d) for p, b, d in answers[-1].facts["claims"]}
            function.accept(*blocks, claims)
            for name, digest in answers[-1].facts["files"]:
                yield from _read_part(self.folder / name, digest)
        if found.watched is not None:
            found.watched([answer.arrays for answer in answers])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_release_by_orders_is_the_plain_loops(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(orders, "why_unfit", lambda _: None)  # there is no worker to ask
    lengths = (7, 2000, 0, 1, 2200)
    path = write_files(tmp_path / "rows", kind.schema, lengths)
    (tmp_path / "parts").mkdir()
    plain = drawn(path, kind.schema, kind.config(), DirectEngine())
    assert drawn(path, kind.schema, kind.config(), Posted(tmp_path / "parts")) == plain
    assert plain[-1]  # a whole pass was watched
