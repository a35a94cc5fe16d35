"""Where to centre and where to clip, from the first noisy sums: arithmetic on released numbers only.

mean    k y,  y the noisy mean,  k = max(0, 1 - (d - 2) s^2 / |y|^2)      (James and Stein)
        of a class: g + k (y - g) about the mean g of all
clip    clip_factor times the root mean square of |v - W^T mean|, v the projected rows
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.matrices import into_unit_ball
from adumbra.postprocess.ron_gauss.space import Space

SHORTEST_CLIP = 2.0**-11  # of the public radius


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """Noisy, hence public; lengths in units of the row norm. One row of `means` per class, or one."""

    means: Array  # of m columns (or p directions): what is subtracted
    shifts: Array  # the same in the p directions
    clip: float | None = None  # of centred projected rows; None: the public radius
    spread: float | None = None  # their root mean square
    count: float | None = None  # rows, as far as they are known

    def mean_of(self, labels: Ints | None) -> Array:
        """What is subtracted from each row."""
        return self.means[0] if labels is None or len(self.means) == 1 else self.means[labels]

    def shift_of(self, labels: Ints | None) -> Array:
        """What is subtracted from each projected row."""
        return self.shifts[0] if labels is None or len(self.shifts) == 1 else self.shifts[labels]


def public_centre(space: Space) -> Centre:
    """Rows are centred by the middle of their bounds already: nothing was bought."""
    return Centre(means=np.zeros((1, space.mean_width)), shifts=np.zeros((1, space.components)))


def centre_of(space: Space, noisy: Array, deviation: float, public_rows: int | None) -> Centre:
    """The centre that the noise allows one to believe, and the spread of rows about it."""
    p, radius = space.components, space.radius
    sums = (noisy if space.normalise else noisy[:-1]).reshape(-1, space.mean_width + 1)
    bought = float(sums[:, -1].sum())
    count = bought if public_rows is None else float(public_rows)
    unit = 1.0 if space.columns else radius  # the length of one unit of the sums
    common, kept_common = _shrunk(sums[:, :-1].sum(axis=0) * unit, deviation * unit, count, len(sums))
    if space.mean_classes is None:
        seen, means, kept = sums[:, :-1] * unit / max(count, 1.0), common[None], np.array([kept_common])
        rows = np.array([max(count, 1.0)])
    else:
        rows = np.maximum(sums[:, -1], 1.0)
        seen = sums[:, :-1] * unit / rows[:, None]
        offsets = [
            _shrunk(y - common, deviation * unit / n, 1.0, 1) for y, n in zip(seen, rows, strict=True)
        ]
        means = np.array([into_unit_ball(common + offset) for offset, _ in offsets])
        kept = np.array([k for _, k in offsets])
    if space.normalise:
        return Centre(means=means, shifts=np.zeros((len(means), p)), count=count)
    into = space.matrix().to_float() if space.columns else np.eye(p)
    shifts = means @ into
    # E |v - shift|^2 = E |v|^2 - 2 shift . E v + |shift|^2; of shift . seen the noise gives k p s^2
    errors = deviation * unit / rows
    overlap = ((seen @ into) * shifts).sum(axis=1) - kept * p * errors**2
    weights = rows / rows.sum()
    second = 2.0 * float(noisy[-1]) / max(count, 1.0) * radius**2
    second += float(weights @ ((shifts**2).sum(axis=1) - 2.0 * overlap))
    spread = math.sqrt(max(second, (SHORTEST_CLIP * radius) ** 2))
    clip = min(max(space.clip_factor * spread, SHORTEST_CLIP * radius), 2.0 * radius)
    return Centre(means=means, shifts=shifts, clip=clip, spread=spread, count=count)


def _shrunk(total: Array, deviation: float, count: float, terms: int) -> tuple[Array, float]:
    """The mean of a noisy sum of so many terms, shrunk toward 0 by its noise, and by how much."""
    average = total / max(count, 1.0)
    error = math.sqrt(terms) * deviation / max(count, 1.0)
    square = max(float(average @ average), 1e-300)
    kept = max(0.0, 1.0 - max(len(average) - 2, 0) * error**2 / square)
    return into_unit_ball(kept * average), kept
