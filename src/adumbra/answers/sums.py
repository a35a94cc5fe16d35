"""Noisy sums of products of box-bounded rows, and the exact law of whatever is linear in them.

    z = (numbers, one-hot groups, one column per class),  G = sum z z' + E

E has independent entries on and above the diagonal, but for three rules: a dummy's square is its sum
over classes, two levels of one group never meet, and counts of classes add up to n where that is public.
A column of a question is a vector t (its values are z't), and every answer is made of forms t' G u.

    least squares    A = T'GT, b = T'Gy, beta = A^-1 b;   b - A beta is noise alone: T' E phi,
                     phi = y - T beta, so that cov beta = A^-1 T' cov(E phi) T A^-1 to first order

Derivation: docs/explanation/answers.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.numerics import Array, Ints

REFUSED = 1.0 / 3.0  # noise of what a column has of its own, over that: no answer from here on
# Intervals are 1 + WIDER rel^2 times as wide: near the limit the noise picks what is answered.
WIDER = 4.5
BORDER = 9.0  # the same of a variance: 1 + BORDER (noise / variance)^2 times
NORMS = 4.0  # standard deviations of a private number of rows that a variance is widened by


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The released matrix and the variance of each of its entries."""

    matrix: Array = field(repr=False)
    variances: Array = field(repr=False)  # symmetric; 0 where an entry is known or follows from others
    dummies: Array = field(repr=False)  # marks of one-hot columns
    classes: int  # the last so many columns
    rows: float
    rows_are_public: bool

    @property
    def width(self) -> int:
        """Columns before the classes."""
        return len(self.matrix) - self.classes

    def only(self, columns: Array) -> "tuple[Sums, Array]":
        """The entries that columns (side by side) use, with all classes; and the columns in them."""
        used = np.any(columns != 0, axis=1)
        used[self.width :] = True
        part = np.ix_(used, used)
        kept = replace(
            self,
            matrix=self.matrix[part],
            variances=self.variances[part],
            dummies=self.dummies[used],
        )
        return kept, columns[used]

    @property
    def constant(self) -> Array:
        """The column that is 1 in every row."""
        return np.concatenate((np.zeros(self.width), np.ones(self.classes)))

    def form(self, one: Array, other: Array) -> float:
        """The sum over rows of the product of two columns."""
        return float(one @ self.matrix @ other)

    def form_variance(self, one: Array, other: Array) -> float:
        """The noise variance of a form."""
        return self.combined_variance([(one, other, 1.0)])

    def combined_variance(self, forms: Sequence[tuple[Array, Array, float]]) -> float:
        """The noise variance of a weighted sum of forms."""
        weights = np.zeros_like(self.matrix)
        for one, other, factor in forms:
            weights += factor * self._weights(one, other)
        variance = float(np.sum(weights**2 * self.variances))
        if self.rows_are_public:
            counts = np.diagonal(weights)[self.width :]
            variance -= float(self.variances[-1, -1] * counts.sum() ** 2 / self.classes)
        return max(variance, 0.0)

    def _weights(self, one: Array, other: Array) -> Array:
        """What each independent entry (on and above the diagonal) counts for in a form."""
        cross = np.outer(one, other)
        diagonal = np.diagonal(cross).copy()
        weights = cross + cross.T
        np.fill_diagonal(weights, np.where(self.dummies, 0.0, diagonal))
        squares = np.where(self.dummies, diagonal, 0.0)[: self.width]
        weights[: self.width, self.width :] += squares[:, None]
        return np.triu(weights)

    def covariance(self, column: Array) -> Array:
        """cov(E phi) of a fixed column phi."""
        found = self.variances * np.outer(column, column)
        np.fill_diagonal(found, self.variances @ column**2)
        first = slice(self.width, None)
        own = np.where(self.dummies, column, 0.0)[: self.width]
        noise = self.variances[: self.width, first]
        classes = column[first]
        # a dummy's square is its sum over classes: E_vk meets phi_k + phi_v in row v, phi_v in row k
        more = (noise * (2.0 * np.outer(own, classes) + (own**2)[:, None])).sum(axis=1)
        places = np.arange(self.width)
        found[places, places] += more
        found[: self.width, first] += noise * (own**2)[:, None]
        found[first, : self.width] = found[: self.width, first].T
        if self.rows_are_public:
            found[first, first] -= self.variances[-1, -1] * np.outer(classes, classes) / self.classes
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Least squares with the noise of each coefficient."""

    beta: Array
    noise: Array = field(repr=False)  # covariance
    sampling: Array = field(repr=False)  # covariance, if the rows are a sample
    rel: Array  # of each coefficient: the noise of what its column has of its own, over that

    def is_hidden(self, place: int) -> bool:
        """Whether the noise hides a coefficient."""
        return not bool(self.rel[place] < REFUSED)

    def wider(self, places: Ints) -> float:
        """How much wider the interval of a combination is."""
        return 1.0 + WIDER * float(np.max(self.rel[places])) ** 2


def least_squares(sums: Sums, target: Array, columns: Array) -> Fit:
    """The regression of a column on others (side by side); a constant is one of them or not."""
    inner = columns.T @ sums.matrix @ columns
    count = columns.shape[1]
    try:
        inverse = np.asarray(np.linalg.inv(inner), np.float64)
    except np.linalg.LinAlgError:
        nothing = np.full((count, count), np.nan)
        return Fit(beta=nothing[0], noise=nothing, sampling=nothing, rel=np.full(count, np.inf))
    beta = inverse @ (columns.T @ sums.matrix @ target)
    rest = target - columns @ beta
    bread = inverse @ columns.T
    noise = bread @ sums.covariance(rest) @ bread.T
    error = max(sums.form(rest, rest), 0.0) / sums.rows
    return Fit(beta=beta, noise=noise, sampling=error * inverse, rel=_own(sums, columns, inverse))


def near_border(rel: float) -> float:
    """How much wider an interval is where noise is this part of a variance and picks what is told."""
    return 1.0 + BORDER * rel**2


DRAWS = 99  # of noise like the release's, for the reach of its largest eigenvalue


def spectrum(
    sums: Sums, places: Sequence[int], level: float, *, is_laplace: bool
) -> tuple[Array, float]:
    """Variances along the directions of some columns, largest first, and how far noise moves any one.

    No eigenvalue moves by more than the operator norm of the noise (Weyl). The norm of the release's
    noise is one more draw of those made here, so that the rank ceil((draws + 1) level) of them is
    passed with a chance of at most 1 - level.
    """
    own = np.asarray(places, np.int64)
    constant, rows = sums.constant, sums.rows
    totals = sums.matrix[own] @ constant
    mean = totals / rows
    covariance = sums.matrix[np.ix_(own, own)] / rows - np.outer(mean, mean)
    each = np.sqrt(sums.variances[np.ix_(own, own)])
    beside = np.sqrt(sums.variances[own] @ constant**2)
    draws = max(DRAWS, int(np.ceil(2.0 / (1.0 - level))))
    rng, norms = np.random.default_rng(0), []
    draw = (lambda size: rng.laplace(0.0, 0.5**0.5, size)) if is_laplace else rng.standard_normal
    for _ in range(draws):
        noise = np.triu(each * draw(each.shape))
        noise += np.triu(noise, 1).T
        off = beside * draw(beside.shape)
        noise += np.outer(off, off) / rows - np.outer(mean, off) - np.outer(off, mean)
        norms.append(float(np.abs(np.linalg.eigvalsh(noise)).max()) / rows)
    reach = sorted(norms)[int(np.ceil((draws + 1) * level)) - 1]
    values = np.asarray(np.linalg.eigvalsh(covariance)[::-1], np.float64)
    spread = 0.0 if sums.rows_are_public else sums.form_variance(constant, constant) ** 0.5 / rows
    return values, reach + NORMS * spread * float(np.abs(values[0]))


def _own(sums: Sums, columns: Array, inverse: Array) -> Array:
    """Of each column, the noise of what it has beside the others, over that; else infinite."""
    found = np.full(len(inverse), np.inf)
    for place, row in enumerate(inverse):
        own = row[place]
        if own > 0:
            beside = columns @ (row / own)
            found[place] = np.sqrt(sums.form_variance(beside, beside)) * own
    return found
