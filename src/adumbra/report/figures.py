"""Figures of the page: inline SVG, the same bytes each time, coloured by the page's CSS.

Only numbers go in, so no text from outside can come out. The shapes are written here: a drawing library
would take longer to load than a small release takes to make.
"""

import html
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from adumbra.numerics import Array

INK, MUTED, ACCENT, SECOND, PAPER = (
    f"var(--{name})" for name in ("ink", "muted", "accent", "second", "card")
)
WIDTH, HEIGHT = 300, 220  # points; small, so that its 12 point text is still read on a telephone
TEXT = 12


class Axes:
    """Data units to points of the picture: x from left to right, y upwards."""

    def __init__(
        self, box: tuple[float, float, float, float], x: tuple[float, float], top: float
    ) -> None:
        self.left, self.right, self.upper, self.lower = box
        self._first, self._span, self._top = x[0], x[1] - x[0], top

    def across(self, x: Array | float) -> Array:
        """Where a value of x lies, in points."""
        return np.asarray(self.left + (x - self._first) / self._span * (self.right - self.left))

    def up(self, y: Array | float) -> Array:
        """Where a value of y lies, in points from above."""
        return np.asarray(self.lower - y / self._top * (self.lower - self.upper))

    def path(self, x: Array, y: Array) -> str:
        """A line through points, as the attribute d of a path."""
        places = zip(self.across(x).tolist(), self.up(y).tolist(), strict=True)
        return "M" + "L".join(f"{a:.2f} {b:.2f}" for a, b in places)


def overlap_figure(density: Callable[[Array], Array], shift: float, alt: str) -> str:
    """Two noise curves `shift` apart: what an attacker would have to tell apart."""
    reach = 3.4 + shift / 2.0
    x = np.linspace(shift / 2.0 - reach, shift / 2.0 + reach, 161)
    one, other = density(x), density(x - shift)
    top = float(density(np.zeros(1))[0])
    axes = Axes((6.0, 294.0, 6.0, 190.0), (float(x[0]), float(x[-1])), 1.22 * top)
    high = float(axes.up(1.13 * top))
    return _svg(
        [
            _area(axes.path(x, np.minimum(one, other)), MUTED),
            _line(axes.path(x, one), ACCENT, 2.4),
            _line(axes.path(x, other), SECOND, 2.4, dashes="7.2 3.6"),
            _line(f"M{axes.left} {axes.lower}H{axes.right}", MUTED, 0.8),
            _words("this table", (axes.left, high), ACCENT, "start"),
            _words("a neighbour of it", (axes.right, high), SECOND, "end"),
            _words("what is released, at worst", (WIDTH / 2, HEIGHT - 12.0), INK, "middle"),
        ],
        alt,
    )


def attack_figure(power: Callable[[Array], Array], best: tuple[float, float], alt: str) -> str:
    """The best attack at every rate of false alarms, against blind guessing."""
    x = np.concatenate([[0.0], np.geomspace(1e-6, 0.01, 24), np.linspace(0.01, 1.0, 120)[1:]])
    axes = Axes((62.0, 278.0, 8.0, 174.0), (0.0, 1.0), 1.03)
    y, middle = power(x), float(axes.up(0.5))
    ticks = [mark for rate, words in ((0.0, "0"), (0.5, "50 %"), (1.0, "100 %"))
             for mark in _tick(axes, rate, words)]  # fmt: skip
    at = f'cx="{float(axes.across(best[0])):.2f}" cy="{float(axes.up(best[1])):.2f}"'
    upwards = _words("true alarms", (14.0, middle), INK, "middle")
    legend = axes.right - 96.0
    return _svg(
        [
            _area(axes.path(np.append(x, 0.0), np.append(y, 0.0)), ACCENT),
            _line(axes.path(x, y), ACCENT, 2.4),
            _line(axes.path(np.array([0.0, 1.0]), np.array([0.0, 1.0])), MUTED, 1.2, dashes="3.6 3.6"),
            f'<circle {at} r="4" style="fill: {ACCENT}; stroke: {PAPER}; stroke-width: 1.6"/>',
            _line(f"M{axes.left} {axes.upper}V{axes.lower}H{axes.right}", MUTED, 0.8),
            *ticks,
            _words("false alarms", ((axes.left + axes.right) / 2, HEIGHT - 10.0), INK, "middle"),
            f'<g transform="rotate(-90 14 {middle:.2f})">{upwards}</g>',
            _line(f"M{legend - 24.0} {axes.lower - 26.0}h18", ACCENT, 2.4),
            _words("best attack", (legend, axes.lower - 22.0), INK, "start"),
            _line(f"M{legend - 24.0} {axes.lower - 10.0}h18", MUTED, 1.2, dashes="3.6 3.6"),
            _words("blind guessing", (legend, axes.lower - 6.0), INK, "start"),
        ],
        alt,
    )


def _tick(axes: Axes, rate: float, words: str) -> list[str]:
    """Marks and words of one share on both axes."""
    x, y = float(axes.across(rate)), float(axes.up(rate))
    return [
        _line(f"M{x:.2f} {axes.lower}v3M{axes.left} {y:.2f}h-3", MUTED, 0.8),
        _words(words, (x, axes.lower + 16.0), MUTED, "middle"),
        _words(words, (axes.left - 5.0, y + 4.0), MUTED, "end"),
    ]


def gaussian_power(mu: float) -> Callable[[Array], Array]:
    """True alarms of the best test of N(0, 1) against N(mu, 1): Phi(Phi^-1(rate) + mu)."""

    def power(rate: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(ndtr(ndtri(rate) + mu), dtype=np.float64)

    return power


def pure_power(epsilon: float) -> Callable[[Array], Array]:
    """The most true alarms that pure epsilon allows: min(e^eps rate, 1 - e^-eps (1 - rate))."""
    grow = np.exp(min(epsilon, 700.0))

    def power(rate: Array) -> Array:
        return np.asarray(np.minimum(grow * rate, 1.0 - (1.0 - rate) / grow), dtype=np.float64)

    return power


def normal_density(x: Array) -> Array:
    """The standard normal's."""
    return np.asarray(np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi), dtype=np.float64)


def laplace_density(x: Array) -> Array:
    """The standard Laplace's."""
    return np.asarray(0.5 * np.exp(-np.abs(x)), dtype=np.float64)


def _area(path: str, colour: str) -> str:
    return f'<path d="{path}Z" style="fill: {colour}; opacity: 0.15"/>'


def _line(path: str, colour: str, width: float, dashes: str = "") -> str:
    dashed = f"; stroke-dasharray: {dashes}" if dashes else ""
    style = f"fill: none; stroke: {colour}; stroke-width: {width}{dashed}"
    return f'<path d="{path}" style="{style}"/>'


def _words(words: str, at: tuple[float, float], colour: str, anchor: str) -> str:
    style = f"fill: {colour}; font-size: {TEXT}px; text-anchor: {anchor}"
    return f'<text x="{at[0]:.2f}" y="{at[1]:.2f}" style="{style}">{words}</text>'


def _svg(shapes: Sequence[str], alt: str) -> str:
    """Shapes as an <svg> element with a label for whoever cannot see it."""
    label = html.escape(alt)
    drawn = "\n".join(shapes)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">\n{drawn}\n</svg>\n'
