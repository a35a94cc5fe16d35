"""Speed and memory of a top-k release against reading the file and scipy's column sum, in one process.

    python benchmarks/topk_speed.py [--rows 500000] [--columns 16470] [--items 4000000] [--repeat 7]
                                    [--suffix parquet|dat]
    python benchmarks/topk_speed.py --stream 100000000 [--suffix dat|parquet]      # peak memory

The table is made from a fixed seed: lengths geometric, items skewed. Ratios hold on this machine alone.
"""

import argparse
import resource
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from adumbra.data.opening import open_source
from adumbra.mechanisms.topk import TopKConfig
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from adumbra.workflow import prepare_in_memory

ARMS = (
    ("frefirst", 0.0),
    ("frefirst", 1e-6),
    ("gumbel", 0.0),
    ("tps-em", 0.0),
    ("tps-pfm", 0.0),
    ("tps-refine", 0.0),
)


def baskets(rows, columns, items, seed=0):
    """Offsets and items of distinct, sorted, skewed sets."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.geometric(rows / items, rows), 200)
    row = np.repeat(np.arange(rows), lengths)
    item = np.minimum((columns * rng.random(len(row)) ** 3).astype(np.int64), columns - 1)
    keys = np.unique(row * columns + item)
    counts = np.bincount(keys // columns, minlength=rows)
    return np.concatenate(([0], np.cumsum(counts))), (keys % columns).astype(np.int32)


def best(functions, repeat):
    """For each, the least seconds on the clock and of processor time; in turns, on the same machine."""
    seconds = np.full((len(functions), 2), np.inf)
    for _ in range(repeat):
        for least, function in zip(seconds, functions, strict=True):
            started, used = time.perf_counter(), time.process_time()
            function()
            spent = time.perf_counter() - started, time.process_time() - used
            np.minimum(least, spent, out=least)
    return seconds


def schema_of(columns):
    return Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=ItemSpec(upper=columns - 1))


def draw(path, config, columns):
    source = open_source(str(path), schema_of(columns))
    return prepare_in_memory(source, config).draw()


def write_once(path, offsets, items):
    if path.suffix == ".parquet":
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(items))
        pq.write_table(pa.table({"items": lists}), path, row_group_size=65_536)
    else:
        path.write_text(text_of(offsets, items))


def read_parquet(path):
    """Items and where rows start, as fast as pyarrow reads them."""
    table = pq.read_table(path)["items"].combine_chunks()
    return table.flatten().to_numpy(), table.offsets.to_numpy()


def read_text(path):
    """The same of a FIMI file that is known to hold digits, single blanks and line ends alone."""
    data = path.read_bytes()
    breaks = np.frombuffer(data, np.uint8)
    words = np.cumsum(breaks <= 32)[breaks == 10]
    return np.fromstring(data, np.int64, sep=" "), np.concatenate(([0], words))


def text_of(offsets, items):
    words = np.char.mod("%d", items)
    return "\n".join(" ".join(words[a:b]) for a, b in pairwise(offsets.tolist())) + "\n"


def compare(given):
    """Ratios against reading the file and summing the columns with scipy."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"baskets.{given.suffix}"
        offsets, items = baskets(given.rows, given.columns, given.items)
        write_once(path, offsets, items)
        print(f"{given.rows} rows, {given.columns} columns, {len(items)} items, {given.suffix}")
        read = read_parquet if given.suffix == "parquet" else read_text

        def read_and_sum():
            values, starts = read(path)
            ones = np.ones(len(values), np.int32)
            return csr_array((ones, values, starts), shape=(given.rows, given.columns)).sum(axis=0)

        configs = [
            TopKConfig(k=100, epsilon=1.0, delta=delta, algorithm=method) for method, delta in ARMS
        ]
        arms = [partial(draw, path, config, given.columns) for config in configs]
        best(arms, 1)
        base, *seconds = best([read_and_sum, *arms], given.repeat)
        print(f"{'':36s} clock    processor")
        print(f"{'read the file and scipy column sum':36s} {base[0]:6.3f} s {base[1]:6.3f} s")
        for (method, delta), (clock, processor) in zip(ARMS, seconds, strict=True):
            label = f"top-k {method}, delta={delta:g}"
            shown = f"{clock:6.3f} s {processor:6.3f} s   ratios"
            print(f"{label:36s} {shown} {clock / base[0]:.2f} {processor / base[1]:.2f}")


def write_long(path, total, columns):
    """A file of at least `total` items, written in pieces of the same 100,000 baskets."""
    offsets, items = baskets(100_000, columns, 800_000)
    pieces = -(-total // len(items))
    if path.suffix == ".parquet":
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(items))
        table = pa.table({"items": lists})
        with pq.ParquetWriter(path, table.schema) as out:
            for _ in range(pieces):
                out.write_table(table)
        return
    text = text_of(offsets, items)
    with path.open("w") as out:
        for _ in range(pieces):
            out.write(text)


def stream(total, columns, suffix):
    """Release from a long file, and show the time and the peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"long.{suffix}"
        write_long(path, total, columns)
        size = path.stat().st_size / 2**20
        config = TopKConfig(k=100, epsilon=1.0, delta=0.0, algorithm="frefirst")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        started, used = time.perf_counter(), time.process_time()
        draw(path, config, columns)
        seconds, processor = time.perf_counter() - started, time.process_time() - used
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{total} items, a {suffix} file of {size:.0f} MiB, two passes:")
        print(f"{seconds:.1f} s on the clock, {processor:.1f} s of processor time")
        print(f"peak memory {after:.0f} MiB ({before:.0f} MiB before the release)")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=16_470)
    parser.add_argument("--items", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--stream", type=int, metavar="ITEMS")
    parser.add_argument("--suffix", choices=("dat", "parquet"), default="parquet")
    given = parser.parse_args()
    if given.stream:
        stream(given.stream, given.columns, given.suffix)
    else:
        compare(given)


if __name__ == "__main__":
    main()
