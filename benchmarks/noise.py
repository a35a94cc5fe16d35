"""Speed of the exact lattice noise beside numpy's float noise, interleaved in one run.

    python benchmarks/noise.py [--samples 1000000] [--rounds 25]

Every contender runs once a round in CPU time and its best round counts, so load hits all alike.
Ours include everything a release pays: the claim on the key, the bounds check, the keystream and the
addition.
"""

import argparse
import importlib.util
import os
import time
from collections.abc import Callable

import numpy as np

from adumbra.numerics import Lattice
from adumbra.privacy import noise
from adumbra.privacy.guarantee import pure
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours, Unit

SCALES = {"2^24.5": 2.0**24.5, "1000": 1000.0, "3": 3.0, "2^30": 2.0**30}


def contenders(samples: int) -> dict[str, Callable[[], object]]:
    generator = np.random.default_rng(1)
    floats = np.empty(samples)
    value = Lattice(generator.integers(-(2**40), 2**40, samples), 0)
    key = fixed_grant(1, pure(1.0, Unit.ROW, Neighbours.REPLACE_ONE), ("bench",)).key
    engines = ["numpy"] + (["numba"] if importlib.util.find_spec("numba") else [])
    block = iter(range(10**9))

    def ours(add: Callable[..., Lattice], scale: float, engine: str) -> Callable[[], object]:
        def run() -> None:
            os.environ["ADUMBRA_NOISE"] = engine
            add(value, scale, key("bench", next(block)))

        return run

    runs: dict[str, Callable[[], object]] = {
        "numpy standard_normal (float, not private)": lambda: generator.standard_normal(out=floats),
        "numpy laplace (float, not private)": lambda: generator.laplace(size=samples),
    }
    for label, scale in SCALES.items():
        for engine in engines:
            runs[f"gaussian, sigma = {label:>6} steps, {engine}"] = ours(
                noise.add_gaussian, scale, engine
            )
    for engine in engines:
        runs[f"laplace,  scale = 2^24.5 steps, {engine}"] = ours(noise.add_laplace, 2.0**24.5, engine)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    runs = contenders(arguments.samples)
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():  # tables, compilation, caches
        run()
    for _ in range(arguments.rounds):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    reference = best["numpy standard_normal (float, not private)"]
    print(f"{arguments.samples} samples, best of {arguments.rounds} interleaved rounds, CPU time")
    for name, seconds in best.items():
        each = 1e9 * seconds / arguments.samples
        print(f"  {name:44} {each:6.2f} ns/sample   {reference / seconds:5.2f}x normal")


if __name__ == "__main__":
    main()
