"""CPU time of a RON-Gauss release against reading the file and one projected Gram with numpy.

    python benchmarks/ron_gauss_speed.py [--rows 500000] [--columns 300] [--components 32] [--repeat 5]

Reference: pyarrow reads the Parquet file in batches, numpy takes Y = X W and Y.T @ Y; once as one
writes it (`column_stack`), once with the tuned reading that the product has itself (small blocks, column
by column). All run in turn in one process, BLAS on one thread; figures are ratios of the best CPU
times of all threads. The table is made from a fixed seed in a temporary folder.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from streaming import write_table
from threadpoolctl import threadpool_limits

from adumbra.data.opening import open_source
from adumbra.engine.local import block_rows
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.schema.schema import Schema
from adumbra.workflow import prepare_in_memory

BATCH = 65_536


def read(path):
    """The file and nothing else, as numpy blocks."""
    for batch in pq.ParquetFile(path).iter_batches(BATCH):
        yield np.column_stack([column.to_numpy() for column in batch.columns])


def read_tuned(path):
    """The same column by column, in blocks of the size that the product reads."""
    file = pq.ParquetFile(path, pre_buffer=False)
    for batch in file.iter_batches(block_rows(file.metadata.num_columns)):
        x = np.empty(batch.num_rows * batch.num_columns).reshape(batch.num_rows, -1, order="F")
        for j, column in enumerate(batch.columns):
            x[:, j] = column.to_numpy()
        yield x


def reference(blocks, matrix):
    gram = np.zeros((matrix.shape[1], matrix.shape[1]))
    for x in blocks:
        y = x @ matrix
        gram += y.T @ y
    return gram


def ours(path, columns, components, **options):
    schema = Schema.numeric(columns, -1.0, 1.0)
    config = RONGaussConfig(
        epsilon=1.0, delta=1e-6, n_components=components, synthetic_rows=1, **options
    )
    return prepare_in_memory(open_source(str(path), schema), config).draw()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--components", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    matrix = np.linalg.qr(rng.standard_normal((given.columns, given.components)))[0]
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        path = Path(folder) / "table.parquet"
        write_table(path, given.rows, given.columns, part_rows=50_000)
        size = (path, given.columns, given.components)
        runs = {
            "reading alone": lambda: [None for _ in read(path)],
            "reading and numpy's projected Gram": lambda: reference(read(path), matrix),
            "tuned reading alone": lambda: [None for _ in read_tuned(path)],
            "tuned reading and projected Gram": lambda: reference(read_tuned(path), matrix),
            "centring=private": lambda: ours(*size, output="projected"),
            "centring=private, mean of all columns": lambda: ours(*size),
            "centring=private, rescale=normalise": lambda: ours(*size, rescale="normalise"),
            "centring=public": lambda: ours(*size, centring="public"),
        }
        best = dict.fromkeys(runs, np.inf)
        for _ in range(given.repeat):
            for name, run in runs.items():
                started = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - started)
    print(f"{given.rows:,} x {given.columns}, p={given.components}, best of {given.repeat}")
    print(f"  {'':42s}{'CPU seconds':>12s}{'ratio':>8s}{'to tuned':>10s}{'reads':>7s}")
    base, tuned = best["reading and numpy's projected Gram"], best["tuned reading and projected Gram"]
    for name, seconds in best.items():
        reads = 2 if "normalise" in name else 1
        print(f"  {name:42s}{seconds:12.2f}{seconds / base:8.2f}{seconds / tuned:10.2f}{reads:7d}")


if __name__ == "__main__":
    main()
