"""Small SVG figures, written by hand: a strip of dots per row, and lines over a logarithmic axis."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

INK, SOFT, GRID = "#1b1b1b", "#666666", "#dddddd"
OURS, OTHER, LIMIT = "#0b5fa5", "#c06a1a", "#7a7a7a"
COLOURS = (OURS, "#c06a1a", "#3a8a4d", "#9a4f9e", "#b03a48", "#6b6b6b", "#1f8a8a", "#8a7a1f", "#4f5bb0")
LABEL_WIDTH = 16  # pixels between two labels of an axis, at least
Scale = Callable[[float], float]


@dataclass(kw_only=True)
class Canvas:
    """Marks in drawing order; `svg` closes the picture."""

    width: int
    height: int
    title: str
    marks: list[str] = field(default_factory=list)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str = GRID, width: float = 1
    ) -> None:
        self.marks.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"/>'
        )

    def dot(self, x: float, y: float, colour: str, size: float = 3.5, note: str = "") -> None:
        said = f"<title>{escape(note)}</title>" if note else ""
        self.marks.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}">{said}</circle>'
        )

    def text(
        self, x: float, y: float, said: str, *, anchor: str = "start", size: int = 12, colour: str = INK
    ) -> None:
        self.marks.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}">{escape(said)}</text>'
        )

    def ring(self, x: float, y: float, colour: str, size: float = 3.5, note: str = "") -> None:
        said = f"<title>{escape(note)}</title>" if note else ""
        self.marks.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="#ffffff" stroke="{colour}" '
            f'stroke-width="1.6">{said}</circle>'
        )

    def path(self, points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> None:
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="6 3"' if dashed else ""
        self.marks.append(
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>'
        )

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" font-family="sans-serif">'
        )
        back = f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>'
        return "\n".join([head, f"<title>{escape(self.title)}</title>", back, *self.marks, "</svg>", ""])


@dataclass(kw_only=True)
class Row:
    """One row of a strip: our mean with its interval, others as dots, floor and ceiling as ticks."""

    name: str
    ours: float
    half: float
    others: list[tuple[str, float]]
    floor: float
    ceiling: float


def scale(low: float, high: float, start: float, end: float, *, log: bool = False) -> Scale:
    """Data to pixels, linear or logarithmic."""
    move = math.log10 if log else float
    a, b = move(low), move(high)
    return lambda value: start + (move(value) - a) / ((b - a) or 1.0) * (end - start)


def strip(title: str, panels: Sequence[tuple[str, Sequence[Row]]], low: float, high: float) -> str:
    """Panels side by side; a dot left of the axis is drawn at its edge."""
    left, wide, gap, top, step = 150, 300, 40, 62, 34
    rows = max(len(held) for _, held in panels)
    canvas = Canvas(width=left + len(panels) * (wide + gap), height=top + rows * step + 40, title=title)
    canvas.text(12, 22, title, size=14)
    for number, (name, held) in enumerate(panels):
        start = left + number * (wide + gap)
        place = scale(low, high, start, start + wide)
        canvas.text(start, 46, name, size=12, colour=SOFT)
        for tick in range(int(low), int(high) + 1, 50):
            canvas.line(place(tick), top - 8, place(tick), top + rows * step - 8)
            canvas.text(place(tick), top + rows * step + 10, str(tick), anchor="middle", size=10)
        for line, row in enumerate(held):
            y = top + line * step + step / 3
            if number == 0:
                canvas.text(12, y + 4, row.name)
            for limit, what in ((row.floor, "independent columns"), (row.ceiling, "half sample")):
                x = place(max(limit, low))
                canvas.line(x, y - 9, x, y + 9, LIMIT, 2)
                canvas.dot(x, y - 9, LIMIT, 1.5, f"{what}: {limit:.0f}")
            for other, score in row.others:
                canvas.dot(place(max(score, low)), y, OTHER, 3.5, f"{other}: {score:.0f}")
            if not math.isnan(row.half):
                canvas.line(place(row.ours - row.half), y, place(row.ours + row.half), y, OURS, 2.5)
            canvas.dot(place(row.ours), y, OURS, 5, f"adumbra: {row.ours:.1f}")
    foot = top + rows * step + 30
    canvas.dot(20, foot - 4, OURS, 5)
    canvas.text(30, foot, "adumbra (95 % interval)", size=11)
    canvas.dot(190, foot - 4, OTHER, 3.5)
    canvas.text(200, foot, f"submitted private files (below {low:.0f}: at the edge)", size=11)
    canvas.line(480, foot - 11, 480, foot + 2, LIMIT, 2)
    canvas.text(488, foot, "floor and ceiling, not private", size=11)
    return canvas.svg()


@dataclass(kw_only=True)
class Series:
    """One method of a line figure; `stops` says in words why it ends."""

    name: str
    points: list[tuple[float, float, float]]  # x, y, half of the interval or nan
    stops: str = ""


@dataclass(kw_only=True)
class Panel:
    """One plot of lines."""

    name: str
    series: list[Series]
    low: float
    high: float
    log_y: bool = False


def _ticks(low: float, high: float, log: bool) -> list[float]:
    if log:
        return [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    step = 10.0 ** math.floor(math.log10((high - low) or 1.0))
    step = step / 2 if (high - low) / step < 4 else step
    first = math.ceil(low / step) * step
    return [first + i * step for i in range(int((high - first) / step + 1e-9) + 1)]


def lines(
    title: str, panels: Sequence[Panel], xs: Sequence[float], x_name: str, per_row: int = 2
) -> str:
    """Lines over a logarithmic x axis, several panels, one legend."""
    names = list(dict.fromkeys(series.name for panel in panels for series in panel.series))
    looks = {name: Look(COLOURS[i % len(COLOURS)], i >= len(COLOURS)) for i, name in enumerate(names)}
    wide, tall, left, top = 330, 190, 60, 60
    down = math.ceil(len(panels) / per_row)
    legend = 20 * math.ceil(len(names) / 3) + 10
    canvas = Canvas(
        width=per_row * (wide + left) + 20, height=top + down * (tall + 60) + legend, title=title
    )
    canvas.text(12, 22, title, size=14)
    for number, panel in enumerate(panels):
        x0 = left + (number % per_row) * (wide + left)
        y0 = top + (number // per_row) * (tall + 60)
        across = scale(min(xs), max(xs), x0, x0 + wide - 10, log=True)
        up = scale(panel.low, panel.high, y0 + tall, y0, log=panel.log_y)
        canvas.text(x0, y0 - 10, panel.name, colour=SOFT)
        for tick in _ticks(panel.low, panel.high, panel.log_y):
            canvas.line(x0, up(tick), x0 + wide - 10, up(tick))
            canvas.text(x0 - 6, up(tick) + 4, f"{tick:g}", anchor="end", size=10)
        labelled = -math.inf
        for x in sorted(xs):
            canvas.line(across(x), y0 + tall, across(x), y0 + tall + 4, SOFT)
            if across(x) - labelled >= LABEL_WIDTH:  # else it would cover the one before
                canvas.text(across(x), y0 + tall + 16, f"{x:,.10g}", anchor="middle", size=10)
                labelled = across(x)
        canvas.text(x0 + wide / 2, y0 + tall + 32, x_name, anchor="middle", size=11, colour=SOFT)
        for series in panel.series:
            _series(canvas, series, looks[series.name], across, up, panel)
    for i, name in enumerate(names):
        x, y = 20 + (i % 3) * 250, top + down * (tall + 60) + 20 * (i // 3) + 8
        looks[name].mark(canvas, x, y - 4, 4)
        canvas.text(x + 10, y, name, size=11)
    return canvas.svg()


@dataclass(frozen=True)
class Look:
    """How a series is drawn: rings and a dashed line where its colour was taken before."""

    colour: str
    is_second: bool

    def mark(self, canvas: Canvas, x: float, y: float, size: float, note: str = "") -> None:
        (canvas.ring if self.is_second else canvas.dot)(x, y, self.colour, size, note)


def _series(canvas: Canvas, series: Series, look: Look, across: Scale, up: Scale, panel: Panel) -> None:
    colour = look.colour

    def held(value: float) -> float:
        return up(min(max(value, panel.low), panel.high))

    canvas.path([(across(x), held(y)) for x, y, _ in series.points], colour, dashed=look.is_second)
    for x, y, half in series.points:
        if not math.isnan(half):
            canvas.line(across(x), held(y - half), across(x), held(y + half), colour, 1.5)
        look.mark(canvas, across(x), held(y), 3, f"{series.name}: {y:.4g} at {x:g}")
    if series.stops and series.points:
        x, y, _ = series.points[-1]
        canvas.text(across(x) + 5, held(y) - 4, "×", size=13, colour=colour)
