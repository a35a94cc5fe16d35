"""What a number of attacks proves: lower bounds on epsilon and mu, with their confidence.

An attack says "the neighbour" or "the table" for each run. Its two error rates are bounded from above by
Clopper-Pearson, and no mechanism of a smaller epsilon (or mu) could have both so small:

    pure        epsilon >= log(p / q)                          p, q chances of one event on both tables
    Gaussian    mu >= Phi^-1(1 - alpha) - Phi^-1(beta)          alpha, beta the two error rates
                mu >= -2 Phi^-1((alpha + beta) / 2)             nobody has a smaller sum of errors

The event is fixed before the runs that are counted, so no correction for choosing it is due. The last
line counts the errors of both tables together. Their number is a sum of two binomials, whose tails are
thinner than those of one binomial of the same mean (Hoeffding 1956), so Clopper-Pearson holds for it
and is narrower by sqrt(2) than two bounds at once.
"""

import math
from dataclasses import dataclass

from scipy.special import betainccinv, betaincinv, ndtri

from adumbra.errors import require
from adumbra.privacy.conversion import epsilon_of

GATE = 1.0 - 1e-9  # an alarm at this confidence is false once in a billion audits
PRINTED = 0.99  # what is shown beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How often the event happened in `runs` runs on each table."""

    before: int  # on the table: false alarms of the attacker
    after: int  # on its neighbour: right guesses
    runs: int  # on each

    def __post_init__(self) -> None:
        require(self.runs >= 1, f"runs={self.runs}: must be at least 1")
        inside = 0 <= self.before <= self.runs and 0 <= self.after <= self.runs
        require(inside, f"before={self.before}, after={self.after}: must lie between 0 and {self.runs}")


def rate_bounds(hits: int, runs: int, tail: float) -> tuple[float, float]:
    """Clopper-Pearson: the true rate passes either bound with a chance of at most `tail`."""
    low = float(betaincinv(hits, runs - hits + 1, tail)) if hits else 0.0
    high = float(betainccinv(hits + 1, runs - hits, tail)) if hits < runs else 1.0
    return low, high


def pure_epsilon_lower(counts: Counts, confidence: float) -> float:
    """The largest log ratio that the rates prove, over the event and its complement, both ways."""
    tail = (1.0 - confidence) / 4.0  # two bounds on each of two rates hold together
    p, q = (rate_bounds(hits, counts.runs, tail) for hits in (counts.after, counts.before))
    ratios = [(p[0], q[1]), (q[0], p[1]), (1 - q[1], 1 - p[0]), (1 - p[1], 1 - q[0])]
    return max([0.0, *(math.log(a / b) for a, b in ratios if a > 0 and b > 0)])


def mu_lower(counts: Counts, confidence: float) -> float:
    """The mu below which no attacker could have erred so seldom.

    Half of the tail goes to the sum of errors, which proves most where both are alike, and half to each
    of them for itself.
    """
    tail, missed = (1.0 - confidence) / 4.0, counts.runs - counts.after
    alpha, miss = (rate_bounds(errors, counts.runs, tail)[1] for errors in (counts.before, missed))
    both = rate_bounds(counts.before + missed, 2 * counts.runs, 2 * tail)[1]
    apart = -ndtri(alpha) - ndtri(miss) if max(alpha, miss) < 1.0 else 0.0
    return max(0.0, float(apart), float(-2 * ndtri(both)))


def gaussian_epsilon_lower(counts: Counts, delta: float, confidence: float) -> float:
    """The epsilon, at the claim's own delta, of the mu that is proven."""
    mu = mu_lower(counts, confidence)
    return epsilon_of(mu, delta) if mu > 1e-6 else 0.0


def epsilon_lower(counts: Counts, delta: float, confidence: float) -> float:
    """The proven epsilon of a claim: pure where its delta is 0."""
    if delta == 0:
        return pure_epsilon_lower(counts, confidence)
    return gaussian_epsilon_lower(counts, delta, confidence)
