"""Which dimension, and which covariance of a mixture: public rules, no row is looked at."""

import math

from adumbra.mechanisms.ron_gauss.scales import Budget, scales
from adumbra.numerics import ROW_BITS
from adumbra.postprocess.ron_gauss.space import TARGET, Covariance, Space

MOST_COMPONENTS = 128  # of a mixture or a regression by the rule; more can be asked for
NOISE_WEIGHT = 30.0  # of a class mean's noise against the share of directions that are left out
# Of one Gaussian that is read for groups of rows: groups are told apart best where few directions are
# left, and most noise is left out (gfe_user_a, Table 3 of the paper; chosen by looking at that table).
CLUSTER_COMPONENTS = 2
FEW_COMPONENTS = 24  # a mixture whose Gram affords fewer has one variance in all directions instead
CLASS_NOISE = 0.1  # a mixture whose classes' own Grams are this clear keeps one of each


def noise_to_signal(space: Space, budget: Budget, rows: int) -> float:
    """|noise|_F / |signal|_F of the covariance of unit rows of evenly spread variance (S = I/m).

    In units of the projected radius the signal is sqrt(p) / (m r^2) times the rows behind one Gram.
    """
    settled = scales(space, budget)
    p, m = space.components, space.width
    diagonal, off = settled.deviation("gram"), settled.off_diagonal
    noise = math.sqrt(p * diagonal**2 + p * (p - 1) * off**2)
    behind = rows / (space.classes or 1) if space.covariance == "class" else rows
    return noise / (math.sqrt(p) / (m * space.radius**2) * behind)


def mean_noise(space: Space, budget: Budget, rows: int) -> float:
    """Standard deviation of one coordinate of a class mean, or of a slope, in units of the clip."""
    weight = TARGET / 2**ROW_BITS if space.mode == "supervised" else 1.0
    return scales(space, budget).off_diagonal / weight / (rows / (space.classes or 1))


def best_components(space: Space, budget: Budget, rows: int) -> int:
    """The dimension by the public rule of the mode.

    One Gaussian: the p that keeps most variance above the noise, the maximum of p / (1 + ratio^2), as p
    directions hold p/m of the variance and a share 1 / (1 + ratio^2) of what is released is signal.
    Classes or a target: the minimum of 1/p + 30 s^2. Directions that are left out blur a class as 1/p
    does, noise of standard deviation s on its mean as s^2; 30 was chosen by looking at four tables.
    """
    last = max(space.width - 1, 1)  # beyond the ladder a Gram of all columns would not fit in memory
    candidates = [p for p in _ladder() if p < last] + ([last] if last <= max(_ladder()) else [])
    if space.mode == "unsupervised":
        return max(
            candidates,
            key=lambda p: p / (1.0 + noise_to_signal(space.with_components(p), budget, rows) ** 2),
        )

    def blur(p: int) -> float:
        return 1.0 / p + NOISE_WEIGHT * mean_noise(space.with_components(p), budget, rows) ** 2

    return min((p for p in candidates if p <= MOST_COMPONENTS), key=blur)


def best_covariance(
    space: Space, budget: Budget, rows: int | None, components: int | None
) -> Covariance:
    """Of a mixture: each class its own where that is clear, else one for all, else one variance.

    Under Laplace noise a Gram costs the class means dearly; where fewer than 24 directions would be
    affordable (or half of the columns, if there are few), none is bought. Gaussian noise gets it free.
    """
    if rows is None:
        return "tied"
    tied = space.with_covariance("tied")
    affordable = best_components(tied, budget, rows)
    if budget.is_pure and space.private_centring and affordable < min(FEW_COMPONENTS, space.width / 2):
        return "sphere"
    apart = space.with_covariance("class").with_components(components or affordable)
    return "class" if noise_to_signal(apart, budget, rows) <= CLASS_NOISE else "tied"


def _ladder() -> list[int]:
    """Candidate dimensions: about five an octave, to 4,096."""
    return sorted({round(2.0 ** (step / 5)) for step in range(61)})
