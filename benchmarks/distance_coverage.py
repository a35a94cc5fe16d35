"""How often 95 % intervals of squared distances hold, for every family, noise, k and kind of pair.

    python benchmarks/distance_coverage.py [--draws N] [--components 2 4 ...] [--by-pair]

The table has the lowest and the highest share over the kinds of pair, each draw with a fresh matrix and
fresh noise. The kinds of pair:

    dense       64 cells differ, by normal amounts (no cell by more than 1)
    sparse      6 of 64 cells differ, by uniform amounts
    two cells   2 cells differ by 1: the worst for a count-sketch, whose cells may cancel
    binary      24 of 64 cells differ, each by 1
    constant    every cell differs by the same amount, 1/8: all pairs of the table have one distance

The noise has a standard deviation of 1/4 on each number: small against the projection's own spread, so
that the law of the matrix matters most.
"""

import argparse
import math
import sys
from itertools import product

import numpy as np

from adumbra.matrices import FAMILIES, draw_values
from adumbra.postprocess.distances import DistanceModel, gaussian_law, interval, laplace_law

WIDTH = 64
COMPONENTS = (2, 4, 8, 16, 32, 64, 128, 256)
NOISE = 0.25  # standard deviation on one released number
BLOCK = 2_000_000  # numbers of matrices that are drawn at a time


def pairs():
    """The differences of two encoded rows, by kind."""
    rng = np.random.default_rng(1)
    dense = np.clip(rng.normal(0.0, 0.4, WIDTH), -1.0, 1.0)
    some = np.zeros(WIDTH)
    some[:6] = rng.uniform(-1.0, 1.0, 6)
    few, binary = np.zeros(WIDTH), np.zeros(WIDTH)
    few[:2] = 1.0
    binary[:24] = rng.choice([-1.0, 1.0], 24)
    constant = np.full(WIDTH, 0.125)
    return {"dense": dense, "sparse": some, "two cells": few, "binary": binary, "constant": constant}


def projected(family, a, k, draws, rng):
    """a R for fresh matrices, one per row; haar by its law, which is the same for every a."""
    if family == "haar":
        towards = rng.standard_normal((draws, k))
        towards /= np.linalg.norm(towards, axis=1)[:, None]
        share = rng.beta(k / 2, (len(a) - k) / 2, draws) if k < len(a) else np.ones(draws)
        return towards * np.sqrt(a @ a * len(a) / k * share)[:, None]
    if family == "identity":
        return np.tile(a, (draws, 1))
    support = np.flatnonzero(a)  # rows of R for cells that agree do not matter
    parts, step = [], max(1, BLOCK // (len(support) * k))
    for start in range(0, draws, step):
        count = min(step, draws - start)
        tall = draw_values(family, count * len(support), k, rng.bit_generator.random_raw)
        parts.append(np.einsum("j,tjk->tk", a[support], tall.reshape(count, len(support), k)))
    return np.concatenate(parts)


def coverage(family, noise, a, k, draws, seed):
    """The share of draws whose interval holds the true squared distance."""
    rng = np.random.default_rng(seed)
    rows = projected(family, a, k, draws, rng)
    if noise == "gaussian":
        law, error = gaussian_law(NOISE, 0.0), rng.normal(0.0, NOISE, (2, draws, k))
    else:
        scale = NOISE / math.sqrt(2.0)
        law, error = laplace_law(scale, 2.0**-40), rng.laplace(0.0, scale, (2, draws, k))
    gap = rows + error[0] - error[1]
    model = DistanceModel(family=family, n_features=len(a), n_components=k, noise=law)
    low, high = interval(model, np.einsum("ij,ij->i", gap, gap) - model.offset)
    true = float(a @ a)
    return float(np.mean((low <= true) & (true <= high)))


def table(draws, components, *, by_pair):
    """Lines of a page: a row per family and noise (and kind of pair), a column per k."""
    yield "| matrix | noise | pair | " + " | ".join(f"k={k}" for k in components) + " |"
    yield "| " + " | ".join(["---"] * (3 + len(components))) + " |"
    for family, noise in product(FAMILIES, ("gaussian", "laplace")):
        found = {kind: [] for kind in pairs()}
        for (kind, a), k in product(pairs().items(), components):
            fits = (family != "haar" or k <= WIDTH) and (family != "identity" or k == WIDTH)
            found[kind].append(coverage(family, noise, a, k, draws, 7 + k) if fits else math.nan)
        if not by_pair:
            columns = [*zip(*found.values(), strict=True)]
            found = {"lowest": [min(one) for one in columns], "highest": [max(one) for one in columns]}
        for kind, shares in found.items():
            cells = ("" if math.isnan(share) else f"{share:.3f}" for share in shares)
            yield f"| {family} | {noise} | {kind} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--components", type=int, nargs="+", default=COMPONENTS)
    parser.add_argument("--by-pair", action="store_true", help="a row for each kind of pair")
    given = parser.parse_args()
    for line in table(given.draws, given.components, by_pair=given.by_pair):
        print(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
