"""Figures of the page: inline SVG from matplotlib, the same bytes each time, coloured by the page's CSS.

Only numbers go in, so no text from outside can come out. matplotlib is loaded when the first
figure is drawn: it takes longer than everything else on the page.
"""

import html
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from adumbra.numerics import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Stand-ins that matplotlib draws with; the page's own colours take their place, light or dark.
INK, MUTED, ACCENT, SECOND, PAPER = "#010101", "#020202", "#030303", "#040404", "#050505"
THEME = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    ACCENT: "var(--accent)",
    SECOND: "var(--second)",
    PAPER: "var(--card)",
}
WIDTH, HEIGHT = 300, 220  # points; small, so that its 12 point text is still read on a telephone

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "adumbra",
    "svg.fonttype": "none",
    "font.size": 12,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
}


def overlap_figure(density: Callable[[Array], Array], shift: float, alt: str) -> str:
    """Two noise curves `shift` apart: what an attacker would have to tell apart."""
    reach = 3.4 + shift / 2.0
    x = np.linspace(shift / 2.0 - reach, shift / 2.0 + reach, 161)
    one, other = density(x), density(x - shift)
    top = float(density(np.zeros(1))[0])

    def draw(axes: "Axes") -> None:
        axes.fill(x, np.minimum(one, other), color=MUTED, alpha=0.15, linewidth=0)
        axes.plot(x, one, color=ACCENT, linewidth=2.4)
        axes.plot(x, other, color=SECOND, linewidth=2.4, dashes=(3, 1.5))
        axes.set_xlim(x[0], x[-1])
        axes.set_ylim(0.0, 1.22 * top)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("what is released, at worst")
        for place, side, colour, words in (
            (0.0, "left", ACCENT, "this table"),
            (1.0, "right", SECOND, "a neighbour of it"),
        ):
            across = axes.get_yaxis_transform()  # the place in the picture, the height in the curve
            axes.text(place, 1.13 * top, words, color=colour, ha=side, transform=across)

    return _svg(draw, alt, "overlap")


def attack_figure(power: Callable[[Array], Array], best: tuple[float, float], alt: str) -> str:
    """The best attack at every rate of false alarms, against blind guessing."""
    x = np.concatenate([[0.0], np.geomspace(1e-6, 0.01, 24), np.linspace(0.01, 1.0, 120)[1:]])

    def draw(axes: "Axes") -> None:
        axes.fill(np.append(x, 0.0), np.append(power(x), 0.0), color=ACCENT, alpha=0.15, linewidth=0)
        axes.plot(x, power(x), color=ACCENT, linewidth=2.4, label="best attack")
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, dashes=(3, 3), label="blind guessing")
        axes.plot(*best, "o", markersize=8, color=ACCENT, markeredgecolor=PAPER, markeredgewidth=1.6)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.03)
        ticks, labels = [0.0, 0.5, 1.0], ["0", "50 %", "100 %"]
        axes.set_xticks(ticks, labels=labels)
        axes.set_yticks(ticks, labels=labels)
        axes.set_xlabel("false alarms")
        axes.set_ylabel("true alarms")
        axes.legend(loc="lower right", frameon=False, handlelength=1.6, borderaxespad=0.2)

    return _svg(draw, alt, "attack")


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


def _svg(draw: "Callable[[Axes], None]", alt: str, name: str) -> str:
    """Draw one pair of axes as an <svg> element."""
    import matplotlib as mpl  # noqa: PLC0415 - a second of start-up that only a page pays
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    sink = io.StringIO()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        figure.savefig(sink, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _themed(sink.getvalue(), alt, name)


def _themed(svg: str, alt: str, name: str) -> str:
    """Keep what is drawn; drop what a page does not need, and hand colours and type to its CSS."""
    drawn = svg[svg.index("</metadata>") + len("</metadata>") :]
    drawn = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<g id=\"[^\"]*\">", "<g>", drawn)
    drawn = re.sub(r"(id=\"|#)([mp][0-9a-f]{10})", rf"\g<1>{name}-\g<2>", drawn)
    drawn = drawn.replace("xlink:href", "href")
    drawn = re.sub(r" font-family: [^;]*;", "", drawn)
    drawn = re.sub(r" transform=\"rotate\(-0 [^)]*\)\"", "", drawn)
    drawn = re.sub(r"(\d\.\d\d)\d+", r"\1", drawn)
    drawn = re.sub(r"\s*\n\s*", "\n", drawn)
    for stand_in, colour in THEME.items():
        drawn = drawn.replace(stand_in, colour)
    label = html.escape(alt)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{drawn}'
