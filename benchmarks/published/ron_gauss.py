"""What RON-Gauss is compared with: the paper as printed, and its four rivals. NOT FOR RELEASE.

Everything here works on exact float arrays outside the ledger: it is for comparing utility on data that
may be looked at. `as_published_not_private` uses the paper's scale, which is too small from p = 3 on
(docs/theory.md E12) and whose class sizes leak (docs/theory.md E16). The other baselines use the right
constants with float noise, which is no guarantee either.

Each function takes unit-ball rows and class codes and returns synthetic (rows, codes) in some space,
with a function that maps test rows into it.
"""

from collections.abc import Callable

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.matrices import into_unit_ball, positive_covariance, sample_gaussian

RowMap = Callable[[Array], Array]
Synthetic = tuple[Array, Ints, RowMap]

MEAN_SHARE = 0.3  # the paper's split of epsilon
CANDIDATES = 64  # random tables that the exponential baseline chooses from


def unit_rows(x: Array) -> Array:
    """Rows of length 1; the zero row stays zero."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1.0)


def as_published_not_private(
    x: Array, codes: Ints, epsilon: float, components: int, rng: np.random.Generator
) -> Synthetic:
    """Algorithm 5 as printed: exact class sizes, Laplace 2 sqrt(p) / n_c on all p^2 entries.

    The matrix is symmetrised and negative eigenvalues are dropped, else nothing can be drawn. The
    orthonormal matrix is one for all classes.
    """
    rows, m = unit_rows(x), x.shape[1]
    basis = np.linalg.qr(rng.uniform(size=(m, m)))[0][:, :components]
    parts, labels = [], []
    for code in np.unique(codes):
        own = rows[codes == code]
        size = len(own)
        scale = 2 * np.sqrt(m) / (size * MEAN_SHARE * epsilon)
        mean = own.mean(axis=0) + rng.laplace(scale=scale, size=m)
        projected = unit_rows(own - mean) @ basis
        scale = 2 * np.sqrt(components) / (size * (1 - MEAN_SHARE) * epsilon)
        noisy = projected.T @ projected / size + rng.laplace(scale=scale, size=(components, components))
        covariance = positive_covariance((noisy + noisy.T) / 2, edge=0.0, trace_limit=np.inf)
        parts.append(sample_gaussian(mean @ basis, covariance, size, rng))
        labels.append(np.full(size, code))
    return np.concatenate(parts), np.concatenate(labels), lambda test: unit_rows(test) @ basis


def as_published_supervised_not_private(
    x: Array, targets: Array, epsilon: float, components: int, rng: np.random.Generator
) -> tuple[Array, Array, RowMap]:
    """Algorithm 4 as printed: labels within [-1, 1], no intercept, scale 2 sqrt(p) + 4 sqrt(p) + 1."""
    rows, m, n = unit_rows(x), x.shape[1], len(x)
    basis = np.linalg.qr(rng.uniform(size=(m, m)))[0][:, :components]
    mean = rows.mean(axis=0) + rng.laplace(scale=2 * np.sqrt(m) / (n * MEAN_SHARE * epsilon), size=m)
    joint = np.column_stack([unit_rows(rows - mean) @ basis, targets])
    scale = (6 * np.sqrt(components) + 1) / (n * (1 - MEAN_SHARE) * epsilon)
    noisy = joint.T @ joint / n + rng.laplace(scale=scale, size=(components + 1, components + 1))
    covariance = positive_covariance((noisy + noisy.T) / 2, edge=0.0, trace_limit=np.inf)
    drawn = sample_gaussian(np.zeros(components + 1), covariance, n, rng)

    def place(test: Array) -> Array:
        placed: Array = unit_rows(unit_rows(test) - mean) @ basis
        return placed

    return drawn[:, :-1], drawn[:, -1], place


def gaussian_without_projection(
    x: Array, codes: Ints, classes: int, epsilon: float, rng: np.random.Generator
) -> Synthetic:
    """MODIPS in kind: noisy class sums, counts and pooled Gram of the full width, pure epsilon."""
    rows, m = unit_rows(x), x.shape[1]
    share = epsilon / 2
    sums = np.stack([rows[codes == code].sum(axis=0) for code in range(classes)])
    sums += rng.laplace(scale=(2 * np.sqrt(m) + 2) / share, size=sums.shape)
    counts = np.bincount(codes, minlength=classes) + rng.laplace(
        scale=(2 * np.sqrt(m) + 2) / share, size=classes
    )
    counts = np.maximum(counts, 1.0)
    means = np.stack([into_unit_ball(row) for row in sums / counts[:, None]])
    centred = rows - means[codes]
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1.0)
    scale = min(np.sqrt(m * (m + 3) / 2), m / np.sqrt(2) + 1) / share
    noise = rng.laplace(scale=scale, size=(m, m))
    noise = np.triu(noise) + np.triu(noise, 1).T
    covariance = positive_covariance(
        (centred.T @ centred + noise) / counts.sum(), edge=0.0, trace_limit=1.0
    )
    sizes = np.maximum(1, np.round(counts / counts.sum() * len(rows))).astype(int)
    parts = [sample_gaussian(means[c], covariance, sizes[c], rng) for c in range(classes)]
    return np.concatenate(parts), np.repeat(np.arange(classes), sizes), unit_rows


def gaussian_supervised_without_projection(
    x: Array, targets: Array, epsilon: float, rng: np.random.Generator
) -> tuple[Array, Array, RowMap]:
    """MODIPS in kind for a target in [-1, 1]: noisy mean and Gram of (x, y, 1) at the full width."""
    rows, m, n = unit_rows(x), x.shape[1], len(x)
    joint = np.column_stack([rows, targets, np.ones(n)])
    scale = min(np.sqrt(m * (m + 3) / 2), m / np.sqrt(2) + 1) + 4 * np.sqrt(m) + 3
    noise = rng.laplace(scale=scale / epsilon, size=(m + 2, m + 2))
    noisy = (joint.T @ joint + np.triu(noise) + np.triu(noise, 1).T) / n
    mean = noisy[:-1, -1]
    covariance = positive_covariance(noisy[:-1, :-1] - np.outer(mean, mean), edge=0.0, trace_limit=2.0)
    drawn = sample_gaussian(mean, covariance, n, rng)
    return drawn[:, :-1], np.clip(drawn[:, -1], -1.0, 1.0), unit_rows


def identity_query(
    x: Array, codes: Ints, epsilon: float, basis: Array, rng: np.random.Generator
) -> Synthetic:
    """Every row through a projection with Laplace noise (Li et al.: Bernoulli; Jiang et al.: PCA).

    Labels stay as they are, as in both papers: they are not protected.
    """
    projected = unit_rows(x) @ basis
    radius = np.linalg.norm(projected, axis=1).max(initial=0.0)
    scale = 2 * radius * np.sqrt(basis.shape[1]) / epsilon
    noisy = projected + rng.laplace(scale=scale, size=projected.shape)
    return noisy, codes, lambda test: unit_rows(test) @ basis


def bernoulli_basis(width: int, components: int, rng: np.random.Generator) -> Array:
    """Random signs over sqrt(k), as Li et al. project."""
    signs: Array = rng.choice((-1.0, 1.0), size=(width, components)) / np.sqrt(components)
    return signs


def principal_basis_not_private(x: Array, components: int) -> Array:
    """The leading directions of the exact second moment: what PCA would see without noise."""
    rows = unit_rows(x)
    _, vectors = np.linalg.eigh(rows.T @ rows)
    leading: Array = vectors[:, ::-1][:, :components]
    return leading


def exponential_choice(
    x: Array, codes: Ints, classes: int, epsilon: float, rng: np.random.Generator
) -> Synthetic:
    """Blum et al. in kind: choose by the exponential mechanism among data-independent random tables.

    Quality is minus the largest gap between a candidate's and the table's class means (sensitivity 2 / n
    over all classes together), so at these sizes the choice hardly matters; that is the paper's point.
    """
    rows, m, n = unit_rows(x), x.shape[1], len(x)
    target = np.stack([rows[codes == code].sum(axis=0) for code in range(classes)]) / n
    tables, quality = [], []
    for _ in range(CANDIDATES):
        centres = unit_rows(rng.standard_normal((classes, m)))
        tables.append(centres)
        quality.append(-np.abs(centres / classes - target).max())
    weights = np.array(quality) * epsilon * n / 4
    chosen = tables[int(np.argmax(weights + rng.gumbel(size=CANDIDATES)))]
    labels = rng.integers(0, classes, n)
    return unit_rows(chosen[labels] + rng.standard_normal((n, m)) / np.sqrt(m)), labels, unit_rows


def exponential_choice_supervised(
    x: Array, targets: Array, epsilon: float, rng: np.random.Generator
) -> tuple[Array, Array, RowMap]:
    """The same for a target in [-1, 1]: random tables with random slopes, scored by mean(y x)."""
    rows, m, n = unit_rows(x), x.shape[1], len(x)
    wanted = rows.T @ targets / n
    slopes = unit_rows(rng.standard_normal((CANDIDATES, m)))
    quality = -np.abs(slopes / m - wanted).max(
        axis=1
    )  # of rows uniform on the sphere: E y x = slope / m
    chosen = slopes[int(np.argmax(quality * epsilon * n / 4 + rng.gumbel(size=CANDIDATES)))]
    drawn = unit_rows(rng.standard_normal((n, m)))
    return drawn, np.clip(drawn @ chosen, -1.0, 1.0), unit_rows
