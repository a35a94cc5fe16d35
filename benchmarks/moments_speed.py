"""CPU time of each pass of a moments release against reading the file and one X.T @ X with numpy.

    python benchmarks/moments_speed.py [--rows 1000000] [--columns 300] [--repeat 3]
    python benchmarks/moments_speed.py --whole --rows 20000 --columns 784    (one release, end to end)
    python benchmarks/moments_speed.py --whole --rows 4000 --columns 10000
    python benchmarks/moments_speed.py --whole --items --rows 5000 --columns 4000      (sparse item sets)

Reference: pyarrow reads the Parquet file in batches, numpy takes X.T @ X. Passes and reference run in
turn in one process, BLAS on one thread; figures are ratios of the best CPU times of all threads. The
table (a class and numbers that share eight factors) is made from a fixed seed in a temporary folder.
"""

import argparse
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array, vstack
from threadpoolctl import threadpool_limits

from adumbra.data.opening import open_source
from adumbra.engine.local import LocalEngine
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from adumbra.workflow import prepare_in_memory

ROWS_A_PART = 20_000
BATCH = 65_536


def write_table(path, rows, columns):
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((8, columns)) / 3.0
    writer = None
    for start in range(0, rows, ROWS_A_PART):
        size = min(ROWS_A_PART, rows - start)
        hidden = rng.standard_normal((size, 8))
        x = np.tanh(hidden @ loadings + 0.3 * rng.standard_normal((size, columns)))
        named = {f"x{j}": x[:, j] for j in range(columns)} | {"y": hidden[:, 0] > 0}
        part = pa.table(named)
        writer = writer or pq.ParquetWriter(path, part.schema, compression="none", use_dictionary=False)
        writer.write_table(part)
    writer.close()


def declared(columns):
    numbers = [Column(name=f"x{j}", kind=Kind.NUMBER, lower=-1.0, upper=1.0) for j in range(columns)]
    label = Column(name="y", kind=Kind.BOOLEAN)
    relation = {"unit": Unit.ROW, "neighbours": Neighbours.REPLACE_ONE}
    return Schema(columns=(*numbers, label), label="y", **relation)


def reference(path):
    """Read the file and sum X.T @ X."""
    total = 0.0
    for batch in pq.ParquetFile(path).iter_batches(BATCH):
        x = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns[:-1]])
        total = total + x.T @ x
    return total


def seconds(function, *arguments):
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


class Watch(LocalEngine):
    """The product's own engine, with the CPU time of each pass noted."""

    def __init__(self):
        super().__init__()
        self.spent = {}

    def fold(self, source, prepare, statistic, *, stage):
        start = time.process_time()
        total = super().fold(source, prepare, statistic, stage=stage)
        self.spent[stage] = time.process_time() - start
        return total


def item_sets(rows, columns):
    """Sparse rows: item j is in about 0.3 / j^0.7 of them."""
    rng, parts = np.random.default_rng(0), []
    for start in range(0, rows, 1000):
        size = min(1000, rows - start)
        parts.append(csr_array(rng.random((size, columns)) < 0.3 / np.arange(1, columns + 1) ** 0.7))
    return vstack(parts, format="csr").astype(np.float64)


def declared_items(columns):
    relation = {"unit": Unit.ROW, "neighbours": Neighbours.REPLACE_ONE}
    return Schema(items=ItemSpec(upper=columns - 1), **relation)


def release(data, schema, synthetic_rows=None):
    config = MomentsConfig(epsilon=1.0, delta=1e-6, synthetic_rows=synthetic_rows)
    engine = Watch()
    replace(prepare_in_memory(open_source(data, schema), config), engine=engine).draw()
    return engine.spent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="one release, its CPU time and memory")
    parser.add_argument("--items", action="store_true", help="item sets instead of numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1, user_api="blas"):
        path = str(Path(folder) / "table.parquet")
        if arguments.items:
            data, schema = (
                item_sets(arguments.rows, arguments.columns),
                declared_items(arguments.columns),
            )
        else:
            write_table(path, arguments.rows, arguments.columns)
            data, schema = path, declared(arguments.columns)
        if arguments.whole or arguments.items:
            wall = time.perf_counter()
            spent = seconds(release, data, schema)
            wall = time.perf_counter() - wall
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            size = f"{arguments.rows} x {arguments.columns}"
            print(f"{size}: {spent:.1f} CPU s, {wall:.1f} s on the clock, {peak:.1f} GiB at most")
            return
        base, passes = [], []
        for _ in range(arguments.repeat):
            base.append(seconds(reference, path))
            passes.append(release(data, schema, synthetic_rows=1))
        print(f"reading and X.T @ X: {min(base):.2f} CPU s")
        for stage in passes[0]:
            best = min(found[stage] for found in passes)
            print(f"{stage:10s} {best:.2f} CPU s, {best / min(base):.2f} of it")


if __name__ == "__main__":
    main()
