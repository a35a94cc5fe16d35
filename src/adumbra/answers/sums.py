"""Noisy sums of products of box-bounded rows, and the exact law of whatever is linear in them.

    z = (numbers, one-hot groups, one column per class),  G = sum z z' + E

E has independent entries on and above the diagonal, but for three rules: a dummy's square is its sum
over classes, two levels of one group never meet, and counts of classes add up to n where that is public.
A leading axis of the matrix, if there is one, holds several draws of E (benchmarks ask all at once).
A column of a question is a vector t (its values are z't), and every answer is made of forms t' G u.

    least squares    A = T'GT, b = T'Gy, beta = A^-1 b;   b - A beta is noise alone: T' E phi,
                     phi = y - T beta

Derivation: docs/explanation/answers.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.answers.reported import Law
from adumbra.numerics import Array

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
        return len(self.variances) - self.classes

    def only(self, columns: Array) -> "tuple[Sums, Array]":
        """The entries that columns (side by side) use, with all classes; and the columns in them."""
        used = np.any(columns != 0, axis=1)
        used[self.width :] = True
        part = np.ix_(used, used)
        kept = replace(
            self,
            matrix=self.matrix[..., part[0], part[1]],
            variances=self.variances[part],
            dummies=self.dummies[used],
        )
        return kept, columns[used]

    @property
    def constant(self) -> Array:
        """The column that is 1 in every row."""
        return np.concatenate((np.zeros(self.width), np.ones(self.classes)))

    def form(self, one: Array, other: Array) -> Array:
        """The sum over rows of the product of two columns."""
        return np.asarray(np.einsum("...i,...ij,...j->...", one, self.matrix, other))

    def form_variance(self, one: Array, other: Array) -> Array:
        """The noise variance of a form."""
        return np.maximum(self.covariance((one, other), (one, other)), 0.0)

    def covariance(self, first: tuple[Array, Array], second: tuple[Array, Array]) -> Array:
        """The covariance of the noise of two forms: a'Eb and c'Ed."""
        (a, b), (c, d), noise = first, second, self.variances
        found = _sum(a * c, b * d, noise) + _sum(a * d, b * c, noise)
        found = found - (a * b * c * d) @ np.diagonal(noise)
        if self.dummies.any():
            found = found + self._squares(first, second) + self._squares(second, first, own=False)
        if self.rows_are_public:
            counts = (a * b)[..., self.width :].sum(-1) * (c * d)[..., self.width :].sum(-1)
            found = found - self.variances[-1, -1] * counts / self.classes
        return np.asarray(found)

    def _squares(
        self, first: tuple[Array, Array], second: tuple[Array, Array], *, own: bool = True
    ) -> Array:
        """What the squares of dummies, which are their sums over classes, share with another form."""
        (a, b), (c, d) = first, second
        noise = self.variances[: self.width, self.width :]
        square = np.where(self.dummies, a * b, 0.0)[..., : self.width]
        left, right = c[..., : self.width], d[..., : self.width]
        found = _sum(square * left, d[..., self.width :], noise)
        found = found + _sum(square * right, c[..., self.width :], noise)
        return found + (square * left * right) @ noise.sum(axis=1) if own else found

    def twice(self, middle: Array) -> Array:
        """The mean of E H E, for a symmetric H."""
        noise, heads = self.variances, np.diagonal(middle, axis1=-2, axis2=-1)
        found, places = noise * middle, np.arange(len(noise))
        found[..., places, places] = heads @ noise
        if self.dummies.any():
            shared = np.where(self.dummies, noise[self.width :].T.sum(axis=1), 0.0)
            first, last = slice(None, self.width), slice(self.width, None)
            cross = noise[first, last] * self.dummies[first, None]
            both = cross * heads[..., first, None]
            found[..., first, last] += both
            found[..., last, first] += np.swapaxes(both, -1, -2)
            more = 2.0 * (middle[..., first, last] * cross).sum(-1) + heads[..., first] * shared[first]
            found[..., places[first], places[first]] += more
        if self.rows_are_public:
            last = slice(self.width, None)
            found[..., last, last] -= noise[-1, -1] * middle[..., last, last] / self.classes
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Least squares: the design, its inverse, coefficients and what is left."""

    sums: Sums = field(repr=False)
    columns: Array = field(repr=False)
    inverse: Array = field(repr=False)
    beta: Array
    rest: Array = field(repr=False)

    def combined(self, weights: Array, *, is_laplace: bool = False) -> tuple[Array, Law]:
        """Combinations of coefficients (a row of weights each) and their laws.

        With s = A^-1 w and D = 1 / (w's), r = T s D is what the combination has of its own; at any
        other value the rest is phi - t r, and r'G(phi - t r) = -D t is noise alone.
        """
        solved = weights @ self.inverse
        size = 1.0 / np.einsum("...ci,ci->...c", solved, weights)
        own = (solved * size[..., None]) @ self.columns.T
        rest = self.rest[..., None, :]
        value, itself = (own, rest), (own, own)
        law = Law.of_ratio(
            size,
            np.maximum(self.sums.covariance(value, value), 0.0),
            self.sums.covariance(value, itself),
            np.maximum(self.sums.covariance(itself, itself), 0.0),
            is_laplace=is_laplace,
        )
        # second order: the noise of the other columns bends the fit, and the more so what is its own
        bend = own @ self.sums.twice(self.columns @ self.inverse @ self.columns.T)
        shift = ((bend * rest).sum(-1) - law.shared / size) / size
        bent = ((bend * own).sum(-1) - law.size_variance / size) / size
        limit = np.nan_to_num(law.noise, nan=0.0, posinf=0.0)  # more than that is not known so well
        value = self.beta @ weights.T + np.clip(np.nan_to_num(shift), -limit, limit)
        if np.any(
            self.inverse * (1.0 - np.eye(self.inverse.shape[-1]))
        ):  # columns share what they explain
            drowned = np.any(law.is_near | ~law.is_reported, axis=-1)[..., None]
            bent = np.where(drowned, 1.0, bent)
        return value, replace(law, bent=np.nan_to_num(bent, nan=1.0))

    @property
    def error(self) -> Array:
        """The mean square of what is left."""
        return np.maximum(self.sums.form(self.rest, self.rest), 0.0) / self.sums.rows


def least_squares(sums: Sums, target: Array, columns: Array) -> Fit:
    """The regression of a column on others (side by side); a constant is one of them or not."""
    inner = columns.T @ sums.matrix @ columns
    try:
        inverse = np.asarray(np.linalg.inv(inner), np.float64)
    except np.linalg.LinAlgError:
        inverse = np.full(inner.shape, np.nan)
    beta = np.einsum("...ij,...j->...i", inverse, (sums.matrix @ target) @ columns)
    return Fit(sums=sums, columns=columns, inverse=inverse, beta=beta, rest=target - beta @ columns.T)


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
    spread = 0.0 if sums.rows_are_public else float(sums.form_variance(constant, constant)) ** 0.5 / rows
    return values, reach + NORMS * spread * float(np.abs(values[0]))


def _sum(one: Array, other: Array, noise: Array) -> Array:
    """The form one' noise other, for vectors on the last axis."""
    return np.asarray(((one @ noise) * other).sum(-1))
