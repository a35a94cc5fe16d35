"""k-means on a projected release, with the known noise taken into account.

Rows are assigned in the directions that rise above the noise edge (`signal_directions`); centres
and the within-cluster spread are then read off the released rows with the noise subtracted: a centre
carries s2 / size of noise a coordinate, the spread (n - clusters) k s2 in all.
"""

from dataclasses import dataclass

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array, Ints
from adumbra.postprocess.distances import DistanceModel
from adumbra.postprocess.matrices import signal_directions

MOST_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """A clustering of released rows; lengths are in the encoded unit."""

    labels: Ints  # one per row
    centres: Array  # clusters x k, means of released rows (without bias, given the labels)
    sizes: Ints
    centre_errors: Array  # standard deviation of the noise on each coordinate of a centre
    spread: float  # within-cluster sum of squares without the noise; at least 0


def kmeans(
    model: DistanceModel, released: Array, clusters: int, *, sample_seed: int = 0, restarts: int = 8
) -> Clusters:
    """Lloyd's algorithm from k-means++ starts, where there is signal; the best of `restarts`."""
    n, k = released.shape
    require(1 <= clusters <= n, f"clusters={clusters}: must lie between 1 and the {n} rows")
    require(restarts >= 1, f"restarts={restarts}: must be at least 1")
    rows = released @ signal_directions(model, released) if n > k else released
    rng = np.random.default_rng(sample_seed)
    runs = [_lloyd(rows, _plus_plus(rows, clusters, rng)) for _ in range(restarts)]
    labels = min(runs, key=lambda run: run[1])[0]
    sizes = np.bincount(labels, minlength=clusters)
    centres = _means(released, labels, clusters)
    raw = float(np.sum((released - centres[labels]) ** 2))
    noise = (n - clusters) * k * model.noise.variance
    return Clusters(
        labels=labels,
        centres=centres * model.unit,
        sizes=sizes,
        centre_errors=model.unit * np.sqrt(model.noise.variance / np.maximum(sizes, 1)),
        spread=max(raw - noise, 0.0) * model.unit**2,
    )


def _plus_plus(rows: Array, clusters: int, rng: np.random.Generator) -> Array:
    """Starts drawn far apart: each next one with chance in proportion to its squared distance."""
    starts = [rows[rng.integers(len(rows))]]
    closest = np.sum((rows - starts[0]) ** 2, axis=1)
    for _ in range(clusters - 1):
        total = float(closest.sum())
        place = int(np.searchsorted(np.cumsum(closest), rng.random() * total)) if total > 0.0 else 0
        starts.append(rows[min(place, len(rows) - 1)])
        closest = np.minimum(closest, np.sum((rows - starts[-1]) ** 2, axis=1))
    return np.stack(starts)


def _lloyd(rows: Array, centres: Array) -> tuple[Ints, float]:
    """Assign and average until the labels stay; returns labels and the sum of squares."""
    labels = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(MOST_STEPS):
        gaps = np.sum(centres**2, axis=1) - 2.0 * (
            rows @ centres.T
        )  # + |row|^2, the same for all centres
        nearest = np.argmin(gaps, axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        filled = np.bincount(labels, minlength=len(centres)) > 0
        centres = np.where(filled[:, None], _means(rows, labels, len(centres)), centres)
    return labels, float(np.sum((rows - centres[labels]) ** 2))


def _means(rows: Array, labels: Ints, clusters: int) -> Array:
    """The mean of each cluster's rows; 0 for an empty one."""
    sums = np.zeros((clusters, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums / np.maximum(np.bincount(labels, minlength=clusters), 1)[:, None]
