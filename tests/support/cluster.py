"""A cluster of worker processes for tests, mostly two, and what is done to it."""

import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adumbra.data.bounds import bound_rows
from adumbra.data.encode import Encoder
from adumbra.data.opening import open_source
from adumbra.data.sources import WatchedSource
from adumbra.engine.cluster import local_engine
from adumbra.engine.dask import DaskEngine
from adumbra.numerics import NOISE_BLOCK, Lattice
from adumbra.privacy.fingerprint import Fingerprint
from adumbra.privacy.noise import add_gaussian
from adumbra.schema.schema import Schema
from support.methods import draw, released

LENGTHS = (7, 5000, 0, 1, 3600, 92)  # rows of files; 8,700 in all, more than two noise blocks
SCHEMA = Schema.numeric(3, lower=-1.0, upper=1.0)
ENCODER = Encoder(SCHEMA)


@contextmanager
def some_workers(count, parts):
    """An engine on so many processes; its cluster is the one that a release would start."""
    with local_engine(count, threads=1, parts=parts) as engine:
        yield engine


def two_workers(parts):
    """The usual one."""
    return some_workers(2, parts)


def another(engine, **settings):
    """Another engine on the same workers."""
    return DaskEngine(engine.client, parts=engine.parts, **settings)


def kill(pid):
    """End a process at once, as the system does when memory is short."""
    os.kill(pid, signal.SIGKILL)


def prepare(batch):
    """Rows for a Gram."""
    return bound_rows(ENCODER.encode(batch), 0.7)


def noisy(batch, keys):
    """One block of rows with noise."""
    exact = Lattice(np.rint(np.ldexp(batch.values, 20)).astype(np.int64), -20)
    values = add_gaussian(exact, 1.0, keys.key("rows", batch.noise_block)).to_float()
    return pa.RecordBatch.from_arrays(list(values.T.copy()), names=["a", "b", "c"])


def dying(folder, deaths, function, after=0):
    """The function in a process that dies so many times, each time after its first rows were written."""

    def dies(*passed):
        from adumbra.engine import orders

        orders.PART_BYTES = 1
        batch = passed[0]
        marker = folder / f"death-{batch.start}"
        if (
            batch.start >= after
            and batch.start % (2 * NOISE_BLOCK)
            and sum(1 for _ in folder.iterdir()) < deaths
        ):
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                return function(*passed)
            time.sleep(0.3)  # its first part is there by now
            kill(os.getpid())
        return function(*passed)

    return dies


def cells_of(column, rows, rng):
    """A column of numbers, truths or words, some beyond its bounds and some missing."""
    if column.is_numeric:
        low, high = column.limits
        values = rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), rows)
        return pa.array(values, mask=rng.random(rows) < 0.03)
    if column.kind == "boolean":
        return pa.array(rng.random(rows) < 0.4)
    return pa.array(rng.choice(np.array(column.categories), rows))


def write_files(folder, schema, lengths=LENGTHS, group=1000):
    """Rows in uneven files, from a public seed; the same rows for any lengths with the same sum."""
    rng, rows = np.random.default_rng(12), sum(lengths)
    if schema.items is not None:
        present = rng.random((rows, schema.width)) < 1 / (np.arange(schema.width) + 2)
        lists = [(np.flatnonzero(row) + schema.items.lower).tolist() for row in present]
        whole = pa.table({schema.items.column: pa.array(lists, pa.list_(pa.int64()))})
    else:
        whole = pa.table({c.name: cells_of(c, rows, rng) for c in schema.columns})
    folder.mkdir()
    start = 0
    for index, length in enumerate(lengths):
        pq.write_table(whole.slice(start, length), folder / f"{index:02d}.parquet", row_group_size=group)
        start += length
    return folder


def drawn(path, schema, config, engine):
    """All that is handed over, and all that the ledger's tripwire would keep."""
    source = WatchedSource(open_source(path, schema))
    seen = Fingerprint(b"key", source.watched_columns)
    source.watch(seen.update, seen)
    draft = draw(source, config, engine=engine)
    tables = {name: released(draft, name) for name in (*draft.tables, *draft.pending)}
    arrays = {name: (str(a.dtype), a.shape, a.tobytes()) for name, a in draft.arrays.items()}
    return tables, arrays, draft.facts, draft.noise, seen.digest(), seen.sketch(), source.is_seen
