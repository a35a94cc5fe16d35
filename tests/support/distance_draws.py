"""Many independent draws of (matrix, noise) for one pair of rows, through the product's own lattices."""

import numpy as np

from adumbra.matrices import draw_values, lattice_matrix
from adumbra.numerics import Lattice
from adumbra.postprocess.distances import DistanceModel, gaussian_law, laplace_law
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.privacy.recorded_noise import fixed_grant

GRID = -20


def projected_draws(family, a, k, draws, seed):
    """a R for independent matrices R on the lattice, one per row."""
    d = len(a)
    words = np.random.default_rng(seed).bit_generator.random_raw
    if family == "identity":
        return np.broadcast_to(a, (draws, d))
    if family == "haar":
        matrices = (lattice_matrix(draw_values(family, d, k, words)).to_float() for _ in range(draws))
        return np.array([a @ matrix for matrix in matrices])
    parts = []
    for start in range(0, draws, 20_000):  # rows are independent, so one tall matrix is many small ones
        count = min(20_000, draws - start)
        tall = lattice_matrix(draw_values(family, count * d, k, words)).to_float()
        parts.append(np.einsum("j,tjk->tk", a, tall.reshape(count, d, k)))
    return np.concatenate(parts)


def distance_draws(family, noise, a, k, scale, draws, seed):
    """Unbiased squared distances of one pair over many releases, and the model that describes them."""
    exact = projected_draws(family, a, k, draws, seed)
    grant = fixed_grant(seed, None, ("p", "q"))
    near = Lattice(np.rint(np.ldexp(exact, -GRID)).astype(np.int64), GRID)
    far = Lattice(np.zeros_like(near.units), GRID)
    add = add_gaussian if noise == "gaussian" else add_laplace
    law = (gaussian_law if noise == "gaussian" else laplace_law)(scale, 2.0**GRID)
    gap = add(near, scale, grant.key("p")).to_float() - add(far, scale, grant.key("q")).to_float()
    model = DistanceModel(family=family, n_features=len(a), n_components=k, noise=law)
    return np.einsum("ij,ij->i", gap, gap) - model.offset, model
