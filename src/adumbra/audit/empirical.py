"""Attacks on a finished release, private rows in hand: evidence, no guarantee. NOT FOR RELEASE.

    membership    are members denser in the release than people who were left out? (density ratio), and
                  can a classifier trained on shadow releases tell? Advantage = best (hit - false alarm)
    attribute     guess a member's column from the others through the release, against a guess for
                  people who were left out: only the difference is about membership
    distance      nearest released row of members against that of people left out

A low score shows that these attacks failed; another may not. A high score shows a defect or a claim that
is too weak. The guarantee of a release is on its card and comes from its proof.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array, Ints

WORDS = "Evidence from particular attacks; not a guarantee. A low score is no proof of privacy."
BLOCK, CANDIDATES = 500, 4  # points at once, and rows whose distance is computed exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Scores of the attacks; each advantage is 0 for a blind guess and 1 for a certain one."""

    density_advantage: float
    shadow_advantage: float | None
    attribute_advantage: float
    distance_ratio: float  # members' median distance to the release over outsiders'; 1: no difference
    standard_error: float  # of an advantage that is 0
    shadow_error: float | None = None  # the same for the shadow attack
    words: str = WORDS

    def to_dict(self) -> dict[str, object]:
        """Plain values for a report."""
        return asdict(self)


def advantage(members: Array, outsiders: Array) -> float:
    """The largest difference of the two tails over thresholds fixed by half of the scores.

    The threshold comes from one half and the score from the other: a blind attack scores 0 on average.
    """
    half_members, half_outsiders = len(members) // 2, len(outsiders) // 2
    levels = np.quantile(np.concatenate([members[:half_members], outsiders[:half_outsiders]]),
                         np.linspace(0.05, 0.95, 19))  # fmt: skip

    def gap(one: Array, other: Array, level: float) -> float:
        return float((one > level).mean() - (other > level).mean())

    best = max(levels, key=lambda level: gap(members[:half_members], outsiders[:half_outsiders], level))
    return gap(members[half_members:], outsiders[half_outsiders:], float(best))


def nearest(rows: Array, points: Array) -> tuple[Array, Ints]:
    """Distance and place of the row nearest to each point; of a copied row the distance is 0.

    Products find a few candidates, whose differences are then taken: a tree is slow in many columns, and
    a product alone would leave a rounding error where there is no distance.
    """
    lengths, few = np.square(rows).sum(axis=1), min(CANDIDATES, len(rows))
    distances, places = np.empty(len(points)), np.empty(len(points), np.int64)
    for start in range(0, len(points), BLOCK):
        block = points[start : start + BLOCK]
        close = np.argpartition(lengths - 2.0 * (block @ rows.T), few - 1, axis=1)[:, :few]
        exact = np.sqrt(np.square(rows[close] - block[:, None]).sum(axis=2))
        best = exact.argmin(axis=1)
        every = np.arange(len(block))
        distances[start : start + BLOCK] = exact[every, best]
        places[start : start + BLOCK] = close[every, best]
    return distances, places


def log_density(released: Array, points: Array) -> Array:
    """How dense the release is about points, up to a constant: from the distance of its nearest row."""
    distances, _ = nearest(released, points)
    return np.asarray(-released.shape[1] * np.log(distances + 1e-12))


def density_attack(released: Array, members: Array, outsiders: Array, reference: Array) -> float:
    """Density in the release over density among people like them, members against outsiders."""
    scores = [log_density(released, who) - log_density(reference, who) for who in (members, outsiders)]
    return advantage(scores[0], scores[1])


def shadow_attack(
    release: Callable[[Array, int], Array],
    target: Array,
    population: Array,
    *,
    shadows: int,
    seed: int = 0,
) -> float:
    """Is one target recognisable from shadow releases with and without it? Scores moments linearly.

    `release(rows, number)` returns released rows; half of the shadows train the score, half judge it.
    """
    require(shadows >= 4, f"shadows={shadows}: must be at least 4")
    rng = np.random.default_rng(seed)
    features: tuple[list[Array], list[Array]] = ([], [])
    for number in range(shadows):
        rows = population[rng.permutation(len(population))]
        for side, table in enumerate((rows, np.concatenate([target[None], rows[1:]]))):
            out = release(table, 2 * number + side)
            features[side].append(
                np.concatenate([out.mean(axis=0), (out.T @ out).reshape(-1) / len(out)])
            )
    without, having = (np.array(side) for side in features)
    train = shadows // 2
    spread = np.concatenate([without[:train], having[:train]]).std(axis=0) + 1e-12
    direction = (having[:train].mean(axis=0) - without[:train].mean(axis=0)) / spread**2
    level = float((having[:train] @ direction).mean() + (without[:train] @ direction).mean()) / 2.0
    hits, alarms = ((side[train:] @ direction > level).mean() for side in (having, without))
    return float(hits - alarms)


def attribute_attack(released: Array, members: Array, outsiders: Array, column: int) -> float:
    """Guess one column by the nearest released row; how much nearer for members than for outsiders."""
    others = np.arange(released.shape[1]) != column

    def closeness(who: Array) -> Array:
        guess = released[nearest(released[:, others], who[:, others])[1], column]
        return np.asarray(-np.abs(guess - who[:, column]))

    return advantage(closeness(members), closeness(outsiders))


def distance_ratio(released: Array, members: Array, outsiders: Array) -> float:
    """Members' median distance to the nearest released row over outsiders'."""
    near, far = (float(np.median(nearest(released, who)[0])) for who in (members, outsiders))
    return near / far if far > 0 else 1.0


def evidence(
    released: Array,
    members: Array,
    outsiders: Array,
    *,
    column: int = 0,
    shadow: tuple[float, int] | None = None,
) -> Evidence:
    """Attack a release of the members, with people of the same kind who were left out.

    `shadow` is the score of `shadow_attack` with its number of shadows.
    """
    for name, rows in (("released", released), ("members", members), ("outsiders", outsiders)):
        require(rows.ndim == 2 and len(rows) >= 8, f"{name}: needs a table of at least 8 rows")
    half = len(outsiders) // 2
    reference, judged = outsiders[:half], outsiders[half:]
    count = min(len(members), len(judged)) // 2
    return Evidence(
        density_advantage=density_attack(released, members, judged, reference),
        shadow_advantage=None if shadow is None else shadow[0],
        shadow_error=None if shadow is None else float(np.sqrt(0.5 / max(shadow[1] // 2, 1))),
        attribute_advantage=attribute_attack(released, members, judged, column),
        distance_ratio=distance_ratio(released, members, judged),
        standard_error=float(np.sqrt(0.5 / max(count, 1))),
    )
