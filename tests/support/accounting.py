"""Oracles for the accounting that share no code with it."""

import math

import mpmath
import numpy as np
from scipy.special import ndtr

EPSILONS = (1e-3, 1e-2, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0)
DELTAS = (1e-18, 1e-15, 1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 1e-2, 0.1)


def curve(mu, epsilon):
    """delta(mu, epsilon) at 60 digits, from the formula of Balle & Wang."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return mpmath.ncdf(a) - mpmath.exp(epsilon) * mpmath.ncdf(b)


def curve_by_quadrature(mu, epsilon):
    """The same as an integral of density differences: no normal cdf, no cancellation."""
    with mpmath.workdps(30):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        start = epsilon / mu - mu / 2  # in units of the N(mu, 1) variable minus mu

        def gain(x):
            # Scaled to about 1 at the start, because the quadrature stops at an absolute error.
            return mpmath.exp((start * start - x * x) / 2) * -mpmath.expm1(-mu * (x - start))

        steps = [start + mpmath.mpf(i * i) / 16 for i in range(23)]  # to start + 30, fine at first
        return mpmath.quad(gain, steps) * mpmath.npdf(start)


def pure_excess(mu, epsilon):
    """Phi(-mu/2) (1 + e^epsilon) - 1 at 60 digits: 0 at a pure mechanism's exact mu, falling."""
    with mpmath.workdps(60):
        return mpmath.ncdf(-mpmath.mpf(mu) / 2) * (1 + mpmath.exp(mpmath.mpf(epsilon))) - 1


def rounded_normal_delta(sigma, shift, epsilon):
    """The exact delta of lattice value + rounded normal between two values `shift` steps apart."""
    half = int(12 * sigma) + shift
    k = np.arange(-half, half + 1)
    here, there = _rounded_normal(k - shift, sigma), _rounded_normal(k, sigma)
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def _rounded_normal(k, sigma):
    """P(round(N(0, sigma^2)) = k); by symmetry a difference of lower tails, which are small numbers."""
    low = -np.abs(k)
    return ndtr((low + 0.5) / sigma) - ndtr((low - 0.5) / sigma)
