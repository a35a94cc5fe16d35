"""Noisy matrices denoised at their known noise level, by the shrinkers that are optimal for it.

    symmetric, Wigner noise s     w -> sqrt(w^2 - e^2) above e = 2 s sqrt(d), else 0
    rectangular noise s           Gavish & Donoho (2017), singular values above s (sqrt(p) + sqrt(q))
    class means                   empirical Bayes along the covariance's directions; small classes most
    projected rows                Y = S + N  ->  m + (Y - m) V diag(f) V^T, f = shrunk / observed

Distances through denoised rows are |s~_i - s~_j|^2 + c, with c such that they are right on average. They
are biased towards the average distance, and far closer than the unbiased ones where the noise is large
(measured in benchmarks/utility/projections.py). Where nothing rises above the noise, the answer is a
constant; where the noise is small the unbiased distances are better, and `helps` is False.

Only released numbers come in: nothing here can read data (an import contract).
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array, Ints
from adumbra.postprocess.distances import DistanceModel, pair_distances

# A noisy covariance made usable: symmetric already, positive by projection with the noise's own edge.
#
# eigenvalue >= edge   kept          edge = spectral edge of the known noise
# eigenvalue <  edge   their average, clipped to [0, edge]: what is left of the trace, spread evenly
#
# All of it is arithmetic on released numbers.
LEAST_REST = 1e-3  # of what the slopes explain: a target's own variance is at least this


def noise_edge(off_diagonal_sigma: float, width: int) -> float:
    """The largest eigenvalue that symmetric noise of this standard deviation alone would show."""
    return 2.0 * off_diagonal_sigma * math.sqrt(width)


def positive_covariance(noisy: Array, *, edge: float, trace_limit: float) -> Array:
    """The nearest thing to a covariance that the noise allows one to believe.

    `trace_limit` is a public bound of the trace (rows were clipped); noise cannot push beyond it.
    """
    require(noisy.ndim == 2 and noisy.shape[0] == noisy.shape[1], f"shape={noisy.shape}: must be square")
    values, vectors = np.linalg.eigh(noisy)
    buried = values < edge
    values[buried] = np.clip(values[buried].mean() if buried.any() else 0.0, 0.0, edge)
    total = float(values.sum())
    if total > trace_limit:
        values *= trace_limit / total
    result: Array = (vectors * values) @ vectors.T
    return (result + result.T) / 2.0


def regression_covariance(noisy: Array, *, edge: float) -> Array:
    """A positive covariance of (x, y) from a noisy one, y last: ridge regression at the noise's edge.

    Slopes are S^-1 c with the eigenvalues of the noisy covariance S of x at least twice the edge: a
    smaller one is mostly noise, and its inverse would be nothing else. What y has beyond is its own.
    """
    values, vectors = np.linalg.eigh(noisy[:-1, :-1])
    values = np.maximum(values, max(2.0 * edge, np.finfo(float).tiny))
    slopes = vectors @ ((vectors.T @ noisy[:-1, -1]) / values)
    inner = (vectors * values) @ vectors.T
    crossed = inner @ slopes
    explained = float(slopes @ crossed)
    rest = max(float(noisy[-1, -1]) - explained, LEAST_REST * explained)
    return np.block([[(inner + inner.T) / 2.0, crossed[:, None]], [crossed[None], explained + rest]])


def into_unit_ball(vector: Array) -> Array:
    """A noisy mean of unit-ball rows, pulled back to where every mean lies."""
    length = float(np.linalg.norm(vector))
    return vector / max(length, 1.0)


def gaussian_factor(covariance: Array) -> Array:
    """A with A A^T = the positive part of a covariance, from its eigenvectors."""
    values, vectors = np.linalg.eigh(covariance)
    factor: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return factor


def sample_gaussian(mean: Array, covariance: Array, rows: int, rng: np.random.Generator) -> Array:
    """Rows of N(mean, covariance), from a public generator."""
    return sample_factored(mean, gaussian_factor(covariance), rows, rng)


def sample_factored(mean: Array, factor: Array, rows: int, rng: np.random.Generator) -> Array:
    """Rows of N(mean, factor factor^T)."""
    drawn: Array = rng.standard_normal((rows, factor.shape[1])) @ factor.T + mean
    return drawn


def conditional_sizes(counts: Array, rows: int) -> list[int]:
    """`rows` split in proportion to noisy counts, by largest remainder; negative counts are empty."""
    shares = np.maximum(counts, 0.0)
    total = float(shares.sum())
    shares = np.full(len(counts), 1.0 / len(counts)) if total == 0.0 else shares / total
    exact = shares * rows
    sizes = np.floor(exact).astype(int)
    rest = np.argsort(sizes - exact, kind="stable")[: rows - int(sizes.sum())]
    sizes[rest] += 1
    return [int(size) for size in sizes]


_FLOOR = 1e-9  # relative eigenvalue floor of a root
_WIDE_MATRIX = 512  # of so many columns, eigenvectors are computed where they are needed only
_TRACY_WIDOM = 2.02  # 99 % quantile of the largest eigenvalue of noise: so far beyond the edge
_TINY = 1e-300
_LEAST_VARIANCE = 1e-6  # of a direction, relative to the largest
_POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # of a direction's variance: how classes differ along it
_STRENGTHS = range(-12, 41)  # logarithms of the strongest signal over noise
_LEAST_WEIGHT = 1e-30  # of a strength, relative to the likeliest so far: less changes no mean


def shrunk_directions(matrix: Array, sigma: float) -> tuple[Array, Array]:
    """A symmetric matrix with off-diagonal noise sigma, shrunk: positive eigenvalues and vectors."""
    edge = noise_edge(sigma, len(matrix))
    values, vectors = directions_above((matrix + matrix.T) / 2.0, edge)
    return np.sqrt(np.maximum(values**2 - edge**2, 0.0)), vectors


def shrunk_covariance(matrix: Array, sigma: float, variances: Array) -> tuple[Array, Array]:
    """A covariance with off-diagonal noise sigma, shrunk: positive eigenvalues and vectors.

    By its directions; but variances above the noise lift every direction above the edge, and all would
    keep their noise. So where no direction stands out of what lies off the diagonal, that part is drawn
    to nothing as far as noise explains it (James and Stein), beside variances that are known better. Of
    wide matrices it is not asked.
    """
    width = len(matrix)
    if not 2 <= width < _WIDE_MATRIX:
        return shrunk_directions(matrix, sigma)
    pairs = (matrix + matrix.T) / 2.0
    np.fill_diagonal(pairs, 0.0)
    highest = noise_edge(sigma, width) + _TRACY_WIDOM * sigma * width ** (-1.0 / 6.0)
    if float(np.abs(np.linalg.eigvalsh(pairs)).max()) > highest:
        return shrunk_directions(matrix, sigma)
    square = float((pairs**2).sum())
    kept = max(1.0 - width * (width - 1) * sigma**2 / square, 0.0) if square > 0.0 else 0.0
    values, vectors = np.linalg.eigh(np.diag(variances) + kept * pairs)
    return values[values > 0.0], vectors[:, values > 0.0]


def shrunk_blocks(matrix: Array, sigma: float, variances: Array, owners: Ints) -> tuple[Array, Array]:
    """The same where columns of one owner (levels of a category) are a block that is known.

    Known blocks lift every direction above the edge, and with it the noise between them. So what lies
    between the blocks is shrunk by itself: its own directions at the noise edge, of either sign, and
    what is left of it as far as noise does not explain it. Wide matrices are not cut up.
    """
    width = len(matrix)
    if not 2 <= width < _WIDE_MATRIX:
        return shrunk_directions(matrix, sigma)
    between = (matrix + matrix.T) / 2.0
    is_known = owners == owners[:, None]
    known = np.where(is_known, between, 0.0)
    np.fill_diagonal(known, variances)
    between[is_known] = 0.0
    edge = noise_edge(sigma, width)
    values, vectors = np.linalg.eigh(between)
    loud = np.copysign(np.sqrt(np.maximum(values**2 - edge**2, 0.0)), values)
    shown = (vectors * loud) @ vectors.T
    shown[is_known] = 0.0
    noise = int((~is_known).sum()) * sigma**2
    left = max(float((between**2).sum()) - noise - float((shown**2).sum()), 0.0)
    kept = left / (left + noise) if left > 0.0 else 0.0
    values, vectors = np.linalg.eigh(known + shown + kept * (between - shown))
    return values[values > 0.0], vectors[:, values > 0.0]


def standing_out(matrix: Array, sigma: float, shrunk: tuple[Array, Array]) -> int:
    """How many directions of a matrix are above its noise sigma; of a wide one those that were kept."""
    if len(matrix) >= _WIDE_MATRIX:
        return len(shrunk[0])
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2.0)
    return int((values > noise_edge(sigma, len(matrix))).sum())


def directions_above(symmetric: Array, edge: float) -> tuple[Array, Array]:
    """The eigenvalues above an edge, rising, and their vectors as columns.

    Of a wide matrix only these are computed. Where edge I - S has a Cholesky factor there are none, as
    in many blocks of wide tables under noise, and to see that costs a tenth.
    """
    if len(symmetric) < _WIDE_MATRIX:
        values, vectors = np.linalg.eigh(symmetric)
        return values[values > edge], vectors[:, values > edge]
    gap = -symmetric
    np.fill_diagonal(gap, edge - np.diagonal(symmetric))
    try:
        np.linalg.cholesky(gap)
    except np.linalg.LinAlgError:
        from scipy.linalg import eigh  # noqa: PLC0415 - start-up that narrow tables need not pay

        found: tuple[Array, Array] = eigh(symmetric, subset_by_value=(edge, math.inf))
        return found
    return np.empty(0), np.empty((len(symmetric), 0))


def is_diagonal(matrix: Array) -> bool:
    """Whether a square matrix has no entry off its diagonal."""
    return bool(np.count_nonzero(matrix) == np.count_nonzero(np.diagonal(matrix)))


def shrink_rectangular(matrix: Array, sigma: float) -> tuple[Array, int]:
    """A matrix with independent noise sigma, its singular values shrunk; and its rank."""
    if min(matrix.shape) == 0:
        return matrix, 0
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    longest, shape = max(matrix.shape), min(matrix.shape) / max(matrix.shape)
    unit = sigma * math.sqrt(longest)
    shrunk = shrink(values / unit, shape) * unit if sigma > 0 else values
    return np.asarray((left * shrunk) @ right), int((shrunk > 0).sum())


def shrink_means(sums: Array, sizes: Array, covariance: Array, sigma: float, entry: float) -> Array:
    """Class means (L x d) around their common mean, from sums over classes with noise sigma an entry.

    Empirical Bayes: classes differ along each direction of the covariance with the variance a v^b, where
    v is the direction's own variance; all a and b count, each by its likelihood. A small class has
    noisier means and is drawn further in. Noise of standard deviation `entry` in the covariance tilts
    its directions, so that means spill from those above the noise edge into the others; what that
    explains counts as noise there. So does what chance explains along directions below the edge: in so
    many rows even classes that do not differ have unlike means, and nothing says how far to believe
    them. Where even the covariance's trace drowns, nothing tells means from noise, and they stay.
    """
    classes, total = len(sizes), float(sizes.sum())
    if classes < 2:
        return np.zeros_like(sums)
    shares = sizes / total
    observed = sums / sizes[:, None]
    centred = observed - shares @ observed
    if np.trace(covariance) <= 0.0:
        return np.asarray(centred)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
    along = centred @ vectors
    # Variances of a centred mean: of independent noise, and of independent classes of variance 1.
    own = np.maximum(sigma**2 * (1.0 / sizes**2 - 2.0 / (sizes * total) + classes / total**2), _TINY)
    spread = 1.0 - 2.0 * shares + float(shares @ shares)
    variances, tilt = _directions(values, entry)
    is_drowned = values <= noise_edge(entry, len(values))
    chance = np.outer(np.maximum(1.0 / sizes - 1.0 / total, 0.0), variances * is_drowned)
    spilt = (np.maximum(along**2 - own[:, None], 0.0) @ tilt)[:, None] * (tilt == 0.0)
    noise = own[:, None] + chance + spilt
    part = _expected_part(along**2 / noise, spread[:, None] * own.min() / noise, variances)
    shrunk = (along * part) @ vectors.T
    return np.asarray(shrunk - shares @ shrunk)


def _expected_part(observed: Array, scale: Array, variances: Array) -> Array:
    """The part of each mean that is signal, of variance scale a v^b; `observed` is power over noise.

    The mean over all a and b, each by its likelihood: the likeliest alone takes more
    of the noise for signal where means are few. A quarter of the strengths leave nearly all to noise.
    """
    relative = np.maximum(variances / max(float(variances.max()), _TINY), _LEAST_VARIANCE)
    least, weights, total = math.inf, 0.0, np.zeros_like(observed)  # sums of weights and of parts
    for power in _POWERS:
        shape = scale * relative**power
        for strength in _STRENGTHS:
            gain = math.exp(strength) * shape
            parts = gain / (1.0 + gain)
            cost = float((np.log1p(gain) + observed * (1.0 - parts)).sum())
            if cost < least:  # what was summed up weighs less from here on
                ratio = math.exp(0.5 * (cost - least))
                least, weights, total = cost, weights * ratio, total * ratio
            weight = math.exp(0.5 * (least - cost))
            if weight > _LEAST_WEIGHT:
                weights += weight
                total += weight * parts
    return np.asarray(total / max(weights, _TINY))


def _directions(values: Array, entry: float) -> tuple[Array, Array]:
    """The variance along each noisy direction, and the part of its means that its tilt moves to others.

    A noisy eigenvalue w above the edge comes from l = (w + sqrt(w^2 - edge^2)) / 2; the squared sine of
    its tilt is (edge / 2 l)^2, spread over the other directions. It does no harm where these vary as
    much as l. Below the edge all directions vary alike.
    """
    width = len(values)
    edge = noise_edge(entry, width)
    is_above = values > edge
    shrunk = np.sqrt(np.maximum(values**2 - edge**2, 0.0)) * is_above
    rest = max(float(values.sum() - shrunk.sum()), 0.0) / max(int((~is_above).sum()), 1)
    true = np.where(is_above, (values + shrunk) / 2.0, 1.0)
    harm = np.maximum(1.0 - rest / np.maximum(true, _TINY), 0.0) ** 2
    tilt = np.where(is_above, (edge / (2.0 * true)) ** 2 * harm / width, 0.0)
    return np.maximum(shrunk, rest), tilt


def root(covariance: Array) -> Array:
    """A with A A^T = the positive part of a symmetric matrix (a floor keeps every direction alive)."""
    whole = (covariance + covariance.T) / 2.0
    if len(whole) >= _WIDE_MATRIX and is_diagonal(whole) and bool((np.diagonal(whole) > 0.0).all()):
        return np.diag(np.sqrt(np.diagonal(whole)))
    try:
        return np.asarray(np.linalg.cholesky(whole), np.float64)
    except np.linalg.LinAlgError:  # indefinite
        values, vectors = np.linalg.eigh(whole)
        floor = max(float(values[-1]), 1e-12) * _FLOOR
        return np.asarray(vectors * np.sqrt(np.maximum(values, floor)))


@dataclass(frozen=True, slots=True)
class Denoiser:
    """An affine map of released rows, and what it leaves of the noise."""

    model: DistanceModel
    mean: Array  # k
    gain: Array  # k x k, symmetric, eigenvalues f in [0, 1]
    floor: float  # c, in released units
    helps: bool  # whether distances of single pairs hold more noise than signal, judged on the release

    def rows(self, released: Array) -> Array:
        """The denoised rows, in the unit of the release."""
        return np.asarray(self.mean + (released - self.mean) @ self.gain)

    def pair_distances(self, left: Array, right: Array) -> Array:
        """Shrunk squared distance of row i of `left` with row i of `right`; never negative."""
        gap = (left - right) @ self.gain
        return np.asarray((np.einsum("ij,ij->i", gap, gap) + self.floor) * self.model.unit**2)


def fit_denoiser(model: DistanceModel, released: Array) -> Denoiser:
    """Fit the shrinkage on released rows; one k x k eigenproblem, whatever the number of rows."""
    n, k = released.shape
    mean, values, vectors, observed = _spectrum(model, released)
    gains = shrink(observed, k / n) / np.where(observed > 0.0, observed, 1.0)
    # Mean squared distance of two rows, once unbiased and once through the map.
    average = 2.0 * (float(values.sum()) / (n - 1) - k * model.noise.variance)
    shrunk = 2.0 * float(np.sum(values * gains**2)) / (n - 1)
    gain = (vectors * gains) @ vectors.T
    return Denoiser(model, mean, gain, max(average - shrunk, 0.0), _noise_dominates(model, released))


def signal_directions(model: DistanceModel, released: Array) -> Array:
    """The right singular vectors above the noise edge, as columns; all of them where none is above."""
    n, k = released.shape
    _, _, vectors, observed = _spectrum(model, released)
    above = observed > 1.0 + math.sqrt(k / n)
    return vectors[:, above] if bool(above.any()) else vectors


def _spectrum(model: DistanceModel, released: Array) -> tuple[Array, Array, Array, Array]:
    """Mean, squared singular values, right singular vectors, singular values in units of the noise."""
    n, k = released.shape
    require(n > k, f"{n} rows of {k} columns: a noise edge needs more rows than columns")
    mean = released.mean(axis=0)
    centred = released - mean
    values, vectors = np.linalg.eigh(centred.T @ centred)
    observed = np.sqrt(np.maximum(values, 0.0)) / math.sqrt(n * model.noise.variance)
    return mean, values, vectors, observed


def _noise_dominates(model: DistanceModel, released: Array) -> bool:
    """Whether more than half of the variance of unbiased distances is error, over disjoint pairs."""
    half = len(released) // 2
    found = pair_distances(model, released[:half], released[half : 2 * half])
    error = float(model.variance(np.asarray(max(float(found.mean()), 0.0))))
    return error > 0.5 * float(found.var())


def shrink(observed: Array, shape: float) -> Array:
    """The optimal Frobenius shrinker of singular values in units of sqrt(n s2); shape = k / n.

    y -> sqrt((y^2 - shape - 1)^2 - 4 shape) / y above the edge 1 + sqrt(shape), and 0 below.
    """
    edge = 1.0 + math.sqrt(shape)
    above = observed > edge
    y = np.where(above, observed, edge)
    root = np.sqrt(np.maximum((y * y - shape - 1.0) ** 2 - 4.0 * shape, 0.0))
    return np.asarray(np.where(above, root / y, 0.0))
