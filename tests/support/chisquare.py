"""Chi-square tests with a stated false-alarm chance; the laws share no code with the sampler."""

import os
from collections.abc import Callable

import numpy as np
from scipy import special, stats

FALSE_ALARM = 1e-9  # each test below says "wrong" of right noise with at most this chance
FULL = os.environ.get("ADUMBRA_FULL") == "1"
WRONG_SCALES = (0.97, 1.03)
_LEAST_EXPECTED = 1000  # counts this large make the chi-square limit good far into its tail


def gaussian_tail(scale: float, m: np.ndarray) -> np.ndarray:
    """P(K >= m) of the rounded normal."""
    return special.ndtr(-(m - 0.5) / scale)


def laplace_tail(scale: float, m: np.ndarray) -> np.ndarray:
    """P(K >= m) of the discrete Laplace."""
    q = np.exp(-1 / scale)
    return np.where(
        m > 0, np.exp(-np.maximum(m, 0) / scale) / (1 + q), 1 - np.exp((m - 1) / scale) / (1 + q)
    )


TAILS: dict[str, Callable[[float, np.ndarray], np.ndarray]] = {
    "gaussian": gaussian_tail,
    "laplace": laplace_tail,
}


def pmf_p_value(kind: str, scale: float, draws: np.ndarray, bins: int = 200) -> float:
    """How well draws fit a law: the chi-square p-value over integer bins of about equal chance."""
    edges = _edges(kind, scale, draws.size, bins)
    above = TAILS[kind](scale, edges.astype(np.float64))
    expected = draws.size * -np.diff(np.concatenate([[1.0], above, [0.0]]))
    assert expected.min() >= _LEAST_EXPECTED
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=edges.size + 1)
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), edges.size))


def _edges(kind: str, scale: float, size: int, bins: int) -> np.ndarray:
    """Increasing integers that cut the law into at most `bins` bins of enough expected draws each."""
    reach = np.arange(-40, 41) if scale < 8 else np.unique(np.rint(scale * np.linspace(-12, 12, 40001)))
    reach = reach.astype(np.int64)
    tail = TAILS[kind](scale, reach.astype(np.float64))
    least = max(1.0 / bins, 1.5 * _LEAST_EXPECTED / size)
    edges, left = [], 1.0
    for edge, above in zip(reach.tolist(), tail.tolist(), strict=True):
        if left - above >= least and above >= least:
            edges.append(edge)
            left = above
    return np.array(edges, np.int64)


def two_sample_p_value(one: np.ndarray, other: np.ndarray, bins: int = 20) -> float:
    """Whether two samples of integers share a law: chi-square over common quantile bins."""
    edges = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, bins + 1)[1:-1]))
    counts = np.array([_counts(edges, sample) for sample in (one, other)], np.float64)
    counts = counts[:, counts.sum(axis=0) > 0]
    return contingency_p_value(counts)


def contingency_p_value(counts: np.ndarray) -> float:
    """Whether rows of a table of counts share one law (independence of rows and columns)."""
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), freedom))


def _counts(edges: np.ndarray, sample: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(edges, sample, side="right"), minlength=edges.size + 1)


def multinomial_p_value(chances: np.ndarray, observed: np.ndarray) -> float:
    """How well counts fit given chances."""
    expected = observed.sum() * chances / chances.sum()
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), chances.size - 1))
