"""Noise and selection of one library, timed in that library's own environment.

    python timed_draws.py LIBRARY WHAT

WHAT is gaussian, laplace (noise on 100,000 integers or, where a library has none, floats) or selection
(one of 10,000 scores, exponential mechanism). Prints processor seconds per value, or per choice: the
best of five rounds after one to warm up.
"""

import sys
import time

import numpy as np

VALUES, SCORES, SCALE = 100_000, 10_000, 1000.0


def best(run, each):
    run()
    rounds = []
    for _ in range(5):
        start = time.process_time()
        run()
        rounds.append(time.process_time() - start)
    return min(rounds) / each


def adumbra(what):
    from adumbra.numerics import Lattice
    from adumbra.privacy import noise, selection
    from adumbra.privacy.guarantee import pure
    from adumbra.privacy.recorded_noise import fixed_grant
    from adumbra.relations import Neighbours, Unit

    rng = np.random.default_rng(0)
    key = fixed_grant(1, pure(1.0, Unit.ROW, Neighbours.ADD_REMOVE), ("bench",)).key
    block = iter(range(10**9))
    if what == "selection":
        scores = Lattice(rng.integers(0, 1000, SCORES), 0)
        return lambda: selection.exponential_choice(scores, 50.0, key("bench", next(block))), 1
    values = Lattice(rng.integers(-(2**20), 2**20, VALUES), 0)
    add = {"gaussian": noise.add_gaussian, "laplace": noise.add_laplace}[what]
    return lambda: add(values, SCALE, key("bench", next(block))), VALUES


def opendp(what):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rng = np.random.default_rng(0)
    if what == "selection":
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
        choose = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=50.0)
        scores = rng.integers(0, 1000, SCORES).tolist()
        return lambda: choose(scores), 1
    metric = {"gaussian": dp.l2_distance, "laplace": dp.l1_distance}[what](T="i64")
    make = {"gaussian": dp.m.make_gaussian, "laplace": dp.m.make_laplace}[what]
    add = make(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=SCALE)
    values = rng.integers(-(2**20), 2**20, VALUES).tolist()
    return lambda: add(values), VALUES


def diffprivlib(what):
    from diffprivlib import mechanisms

    rng, few = np.random.default_rng(0), VALUES // 20
    if what == "selection":
        scores = rng.integers(0, 1000, SCORES).tolist()
        choose = mechanisms.Exponential(epsilon=1.0, sensitivity=25.0, utility=scores)
        return choose.randomise, 1
    mechanism = {
        "gaussian": lambda: mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-6, sensitivity=SCALE / 4),
        "laplace": lambda: mechanisms.Laplace(epsilon=1.0, sensitivity=SCALE),
    }[what]()
    values = rng.integers(-(2**20), 2**20, few).tolist()
    return lambda: [mechanism.randomise(value) for value in values], few


def python_dp(what):
    from pydp.algorithms import numerical_mechanisms as numerical

    if what == "selection":
        raise SystemExit("no mechanism for a choice")
    few = VALUES // 20
    mechanism = {
        "gaussian": lambda: numerical.GaussianMechanism(1.0, 1e-6, SCALE / 4),
        "laplace": lambda: numerical.LaplaceMechanism(1.0, SCALE),
    }[what]()
    values = np.random.default_rng(0).integers(-(2**20), 2**20, few).tolist()
    return lambda: [mechanism.add_noise(value) for value in values], few


LIBRARIES = {"adumbra": adumbra, "opendp": opendp, "diffprivlib": diffprivlib, "python-dp": python_dp}

if __name__ == "__main__":
    print(best(*LIBRARIES[sys.argv[1]](sys.argv[2])))
