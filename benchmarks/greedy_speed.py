"""Time of the greedy sampler, compiled and in array calls, and whether both give the same rows.

    python benchmarks/greedy_speed.py [--rows 30000] [--repeat 1]

Moments of a made table (fixed seed) of 35 encoded columns in two shapes: 5 numbers and 5 categories, as
in Adult; and 35 numbers. Times are after a warm-up of 100 rows; they hold on this machine alone.
"""

import argparse
import time

import numpy as np

from adumbra.postprocess.greedy import Targets, greedy_rows

SHAPES = {"5 numbers and 5 categories": (5, (8, 7, 6, 7, 2)), "35 numbers": (35, ())}


def moments(numbers, levels, rows=20_000):
    """Class means and second moments of a mixed table with two classes."""
    rng = np.random.default_rng(0)
    y = rng.random(rows) < 0.25
    common = rng.normal(scale=0.1, size=(rows, 1)) + 0.1 * y[:, None]
    parts = [np.clip(rng.normal(common - 0.1, 0.15, (rows, numbers)), -0.5, 0.5)]
    groups, width = [], numbers
    for count in levels:
        codes = np.clip((rng.integers(0, count, rows) + 5 * common[:, 0]).astype(int), 0, count - 1)
        parts.append(np.eye(count)[codes])
        groups.append(slice(width, width + count))
        width += count
    x = np.concatenate(parts, axis=1)
    means = np.array([x[~y].mean(axis=0), x[y].mean(axis=0)])
    shares = np.array([1 - y.mean(), y.mean()])
    return Targets(shares, means, x.T @ x / rows, tuple(range(numbers)), tuple(groups))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    for name, (numbers, levels) in SHAPES.items():
        targets = moments(numbers, levels)
        width = len(targets.second)
        print(f"{given.rows} rows x {width} encoded columns ({name})")
        for loss in ("squared", "absolute"):
            made = {}
            for engine in ("numba", "numpy"):
                greedy_rows(targets, 100, loss=loss, engine=engine)
                clock, processor = [], []
                for _ in range(given.repeat):
                    started, used = time.perf_counter(), time.process_time()
                    made[engine], _ = greedy_rows(targets, given.rows, loss=loss, engine=engine)
                    clock.append(time.perf_counter() - started)
                    processor.append(time.process_time() - used)
                shown = f"{min(clock):6.2f} s clock {min(processor):6.2f} s processor"
                print(f"  {loss:9s} {engine:6s} {shown}", flush=True)
            same = np.array_equal(made["numba"], made["numpy"])
            print(f"  {loss:9s} the same rows: {same}", flush=True)


if __name__ == "__main__":
    main()
