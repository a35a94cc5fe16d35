"""Do intervals cover? `python benchmarks/answers_coverage.py FOLDER [--tables ...]`, then `--page`.

FOLDER holds adult.parquet, acs_ma2019.parquet (NIST's Massachusetts target) and pol.parquet; tables of
300 and 1,000 columns are generated. Exact statistics are fixed (sums within the caps of one `answers`
release, counts of a `moments` release), noise of the release's law is drawn again and again, and every
question is asked of all draws at once, by the functions that answer one release. The first draw is asked
through the public interface too, and must agree.

Coverage is per answer: over all draws (hidden answers, whose interval is all that is possible, cover)
and among those that tell it. What the columns mean is said on the page. --releases whole releases
through a ledger check the same; rows of `moments` releases, taken for data, stand beside it. Lines go to
benchmarks/results/answers.jsonl.
"""

import argparse
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import answers_page
import numpy as np
import pyarrow as pa
from answers_tables import (
    MADE,
    ROOT,
    STORED,
    Counts,
    Exact,
    exact_counts,
    exact_sums,
    labelled,
    made_sums,
    stored,
)
from answers_whole import naive, whole_releases
from scipy.stats import binom

from adumbra.answers.estimate import Asked
from adumbra.answers.reported import Law
from adumbra.answers.rows import CellRow
from adumbra.answers.spreads import correlation_law, spread_law
from adumbra.answers.sums import Sums, least_squares

RESULTS = ROOT / "benchmarks/results/answers.jsonl"
LEVEL, CHUNK, MOST_ASKED, MOST_GROUPS = 0.95, 1000, 12, 3
LABELS = {"adult": "income", "acs_ma2019": "SEX"}
Sides = tuple[np.ndarray, np.ndarray, np.ndarray]  # value, below, above


@dataclass
class Tally:
    """One answer over the draws."""

    truth: float
    sampling: float = float("nan")  # standard error of an analyst of the table itself
    draws: int = 0
    told: int = 0
    hits: int = 0
    marked: int = 0
    noise: list[float] = field(default_factory=list)

    def add(self, sides: Sides, told: np.ndarray, marked: np.ndarray, noise: np.ndarray) -> None:
        """More draws."""
        value, below, above = sides
        with np.errstate(invalid="ignore"):
            hit = (value - below <= self.truth + 1e-9) & (self.truth - 1e-9 <= value + above) & told
        self.draws += len(told)
        self.told += int(told.sum())
        self.hits += int(hit.sum())
        self.marked += int((marked & told).sum())
        if told.any():
            self.noise.append(float(np.median(noise[told])))


Tallies = dict[tuple[str, str], Tally]


def drawn(sums: Sums, rng: np.random.Generator, size: int) -> Sums:
    """The sums with noise, so many times: a dummy's square is its sum."""
    noise = np.triu(rng.normal(size=(size, *sums.variances.shape)) * np.sqrt(sums.variances))
    noise += np.swapaxes(np.triu(noise, 1), 1, 2)
    places = np.flatnonzero(sums.dummies)
    noise[:, places, places] = noise[:, places, -1]
    return replace(sums, matrix=sums.matrix + noise)


class SumQuestions:
    """Questions to sums of products, over many draws."""

    def __init__(self, exact: Exact, draws: int, rng: np.random.Generator) -> None:
        self.exact, self.draws, self.rng = exact, draws, rng
        self.view, self.found = exact.view, {}

    def ask(self, sizes: tuple[int, ...]) -> Tallies:
        """Every kind of answer, of columns in the table's order."""
        numbers, outcome = self.exact.numbers, self.exact.outcome
        view, one = self.view, self.view.sums.constant[:, None]
        for name in numbers[:MOST_ASKED]:
            value = view.column_of(view.term(name))
            self._fit("mean", [name], np.column_stack([value, one]), np.eye(1))
            self._spread("variance", name, value)
        for name, other in itertools.pairwise(numbers[:MOST_ASKED]):
            self._pair(f"{name}, {other}", *(view.column_of(view.term(n)) for n in (name, other)))
        for group in self.exact.groups[:MOST_GROUPS]:
            self._group(group, view.term(group), outcome)
        for size in sizes:
            if len(numbers) >= size:
                names, columns, combine = view.design(outcome, tuple(numbers[:size]))
                self._fit(f"regression on {size}", names, columns, combine)
        return self.found

    def _group(self, group: str, term: object, outcome: str) -> None:
        view = self.view
        levels = np.column_stack([view.unit(place) for place in term.places])
        for place, level in zip(term.places, term.levels, strict=True):
            columns = np.column_stack([view.unit(place), view.sums.constant])
            self._fit("share", [f"{group}={level}"], columns, np.eye(1))
        contrasts = np.eye(len(term.levels))[1:]
        contrasts[:, 0] = -1.0
        words = [f"{outcome}, {group}={level}" for level in term.levels[1:]]
        columns = np.column_stack([view.column_of(view.term(outcome)), levels])
        self._fit("difference", words, columns, contrasts)

    def _fit(self, kind: str, names: list[str], columns: np.ndarray, combine: np.ndarray) -> None:
        sums, part = self.view.sums.only(columns)
        exact = least_squares(sums, part[:, 0], part[:, 1:])
        solved = np.einsum("ci,ij,cj->c", combine, exact.inverse, combine)
        truths, sampling = combine @ exact.beta, np.sqrt(float(exact.error) * np.maximum(solved, 0.0))
        tallies = [
            self.found.setdefault((kind, n), Tally(float(t), float(s)))
            for n, t, s in zip(names, truths, sampling, strict=True)
        ]
        for size in self._chunks(columns.shape[1]):
            fit = least_squares(drawn(sums, self.rng, size), part[:, 0], part[:, 1:])
            value, law = fit.combined(combine)
            sides = (value, *law.sides(LEVEL))
            marked = np.broadcast_to(law.is_conservative, value.shape)
            for place, tally in enumerate(tallies):
                at = [side[:, place] for side in sides]
                tally.add(at, law.is_reported[:, place], marked[:, place], law.noise[:, place])

    def _chunks(self, columns: int) -> Iterator[int]:
        most = max(50, CHUNK * 20 // columns)
        for start in range(0, self.draws, most):
            yield min(most, self.draws - start)

    def _spread(self, kind: str, name: str, column: np.ndarray) -> None:
        sums, part = self.view.sums.only(np.column_stack([column, self.view.sums.constant]))
        tally = Tally(float(spread_law(sums, part[:, 0], is_laplace=False)[0]))
        self.found[kind, name] = tally
        for size in self._chunks(2):
            add_law(tally, *spread_law(drawn(sums, self.rng, size), part[:, 0], is_laplace=False))

    def _pair(self, name: str, x: np.ndarray, y: np.ndarray) -> None:
        sums, part = self.view.sums.only(np.column_stack([x, y, self.view.sums.constant]))
        columns = part[:, 0], part[:, 1]
        truth = float(correlation_law(sums, *columns, is_laplace=False)[0])
        tally = Tally(truth, (1 - truth**2) / sums.rows**0.5)
        self.found["correlation", name] = tally
        for size in self._chunks(3):
            noisy = drawn(sums, self.rng, size)
            add_law(tally, *correlation_law(noisy, *columns, is_laplace=False))


def add_law(tally: Tally, value: np.ndarray, law: Law) -> None:
    """Draws of one value with its law."""
    marked = np.broadcast_to(law.is_conservative, value.shape)
    tally.add((value, *law.sides(LEVEL)), law.is_reported, marked, law.noise)


def count_tallies(exact: Counts, table: pa.Table, draws: int, rng: np.random.Generator) -> Tallies:
    """Shares, means and class differences of shares from counts, over many draws."""
    frame, found = table.to_pandas(), {}
    quiet, size = exact.view(), CHUNK
    for start in range(0, draws, size):
        noise = np.rint(rng.normal(0.0, exact.sigma, (min(size, draws - start), len(exact.counts))))
        at = 0
        cells = {name: quiet.tables[name].shape for name in quiet.tables}
        rows: dict[str, np.ndarray] = {}
        for name, shape in cells.items():
            part = slice(at, at + shape[0] * shape[1])
            rows[name] = (exact.counts[part] + noise[:, part]).reshape(-1, *shape)
            at = part.stop
        label_row = None if quiet.label is None else exact.counts[at:] + noise[:, at:]
        classes = None if label_row is None else _classes(quiet, rows, label_row)
        for name, shape in cells.items():
            whole = CellRow(
                counts=rows[name].sum(axis=1), sigma=quiet.sigma * shape[0] ** 0.5, size=quiet.size,
                size_variance=quiet.size_variance, is_laplace=False,
            )  # fmt: skip
            column = quiet.columns[name]
            _one_way(found, quiet, whole, column, frame)
            if classes is not None and column.by_class:
                _by_class(found, quiet, rows[name], classes, column)
    return found


def _classes(quiet: object, rows: dict[str, np.ndarray], label_row: np.ndarray) -> CellRow:
    """The rows of each class, as `assemble` joins them."""
    tables = [rows[name] for name in rows if quiet.columns[name].by_class] + [label_row[:, :, None]]
    weights = np.array([1.0 / table.shape[2] for table in tables])
    sums = sum(w * table.sum(axis=2) for w, table in zip(weights, tables, strict=True))
    return replace(quiet.classes, counts=sums / weights.sum())


def _one_way(found: Tallies, quiet: object, row: CellRow, column: object, frame: object) -> None:
    exact = replace(row, counts=quiet.tables[column.name].sum(axis=0))
    every = np.ones(exact.counts.shape[-1])
    for place, level in enumerate(column.levels):
        marks = (np.arange(len(every)) == place) * 1.0
        share = float(exact.moved @ marks) / quiet.size
        key, sampling = (
            ("share (counts)", f"{column.name}={level}"),
            (share * (1 - share) / quiet.size) ** 0.5,
        )
        tally = found.setdefault(key, Tally(share, sampling))
        value, _, law = row.law(marks, every)
        add_law(tally, value, law)
    if column.low is not None:
        _mean(found, row, column, frame)


def _mean(found: Tallies, row: CellRow, column: object, frame: object) -> None:
    values = frame[column.name].astype(float)
    key = ("mean (counts)", column.name)
    tally = found.setdefault(key, Tally(float(values.mean()), float(values.std()) / len(values) ** 0.5))
    low, middle, high = (
        row.law(part * column.present, column.present) for part in column.values().parts
    )
    below = middle[0] - low[0] + low[2].sides(LEVEL)[0]
    above = high[0] - middle[0] + high[2].sides(LEVEL)[1]
    is_open = np.full(middle[0].shape, bool(np.any(column.values().outer > column.values().inner)))
    tally.add(
        (middle[0], below, above), middle[2].is_reported, middle[2].is_near | is_open, middle[2].noise
    )


def _by_class(
    found: Tallies, quiet: object, cells: np.ndarray, classes: CellRow, column: object
) -> None:
    """Differences of shares between the second class and the first."""
    count = classes.counts.shape[-1]
    shared = (classes.size_variance / count - classes.sigma**2) / count
    table = quiet.tables[column.name]
    for place, level in enumerate(column.levels):
        marks = (np.arange(table.shape[1]) == place) * 1.0
        truth = table[1, place] / table[1].sum() - table[0, place] / table[0].sum()
        spread = [
            table[c, place] / table[c].sum() * (1 - table[c, place] / table[c].sum()) / table[c].sum()
            for c in (0, 1)
        ]
        key = ("difference of shares (counts)", f"{column.name}={level}")
        tally = found.setdefault(key, Tally(float(truth), float(sum(spread)) ** 0.5))
        laws = []
        for code in (1, 0):
            one = np.eye(count)[code]
            row = CellRow(
                counts=cells[:, code], sigma=quiet.sigma, size=classes.moved @ one,
                size_variance=quiet.classes.total(one)[1] ** 2, is_laplace=False,
            )  # fmt: skip
            laws.append(row.law(marks, np.ones(len(marks))))
        (first, slope, law), (second, other, base) = laws
        sides, others = law.sides(LEVEL), base.sides(LEVEL)
        plain = np.hypot(law.noise, base.noise)
        noise = np.sqrt(np.maximum(plain**2 - 2.0 * slope * other * shared, 0.0))
        more = noise / np.maximum(plain, 1e-300)
        told, near = law.is_reported & base.is_reported, law.is_near | base.is_near
        reach = (more * np.hypot(sides[0], others[1]), more * np.hypot(sides[1], others[0]))
        tally.add((first - second, *reach), told, near, noise)


def lines_of(tallies: Tallies) -> list[dict[str, object]]:
    """A line per kind of answer."""
    alarm, lines = 0.05 / (2 * max(len(tallies), 1)), []
    kinds: dict[str, list[Tally]] = defaultdict(list)
    for (kind, _), tally in tallies.items():
        kinds[kind].append(tally)
    for kind, found in kinds.items():
        told = [tally for tally in found if tally.told]
        below = [
            t for t in told
            if binom.cdf(t.hits, t.told, 0.94) < alarm
            or binom.cdf(t.draws - t.told + t.hits, t.draws, 0.94) < alarm
        ]  # fmt: skip
        above = [
            t for t in told
            if binom.sf(t.hits - 1, t.told, 0.97) < alarm and t.marked < t.told / 2
        ]  # fmt: skip
        often = [t for t in told if t.told >= t.draws / 100]
        cover = [t.hits / t.told for t in often] or [float("nan")]
        every = [(t.draws - t.told + t.hits) / t.draws for t in found]
        ratios = [np.median(t.noise) / t.sampling for t in told if t.sampling > 0]
        lines.append({
            "answer": kind, "of": len(found),
            "answered": sum(t.told for t in found) / sum(t.draws for t in found),
            "refused": sum(t.told == 0 for t in found),
            "mean": float(np.mean(cover)), "least": min(cover), "least_all": min(every),
            "below": len(below), "above": len(above),
            "marked": sum(t.marked for t in found) / max(sum(t.told for t in found), 1),
            "ratio": float(np.median(ratios)) if ratios else None,
        })  # fmt: skip
    return lines


def timings(exact: Exact, size: int) -> dict[str, float]:
    """Seconds of one mean and of one regression, the middle of five."""
    view, numbers = exact.view, exact.numbers
    asked, found = Asked(), {}
    for name, ask in {
        "mean": lambda: view.mean(numbers[0], (), asked),
        f"regression on {size}": lambda: view.regress(exact.outcome, tuple(numbers[:size]), asked),
    }.items():
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            ask()
            seconds.append(time.perf_counter() - start)
        found[name] = sorted(seconds)[2]
    return found


def must_agree(exact: Exact, sizes: tuple[int, ...], rng: np.random.Generator) -> None:
    """One draw, asked as a release is: the same intervals as those of the batch."""
    view = exact.view
    noisy = drawn(view.sums, rng, 1)
    asked = replace(view, sums=replace(noisy, matrix=noisy.matrix[0]))
    names = tuple(exact.numbers[: max(size for size in sizes if size <= len(exact.numbers))])
    _, columns, combine = view.design(exact.outcome, names)
    sums, part = noisy.only(columns)
    value, law = least_squares(sums, part[:, 0], part[:, 1:]).combined(combine)
    below, above = law.sides(LEVEL)
    for place, one in enumerate(asked.regress(exact.outcome, names, Asked()).values()):
        ends = value[0, place] - below[0, place], value[0, place] + above[0, place]
        if one.is_hidden == law.is_reported[0, place] or not (
            one.is_hidden or np.allclose(one.interval, ends, rtol=1e-6, atol=1e-6 * one.privacy)
        ):
            raise SystemExit(f"{names[max(place - 1, 0)]}: the batch and the release differ")


def write(**line: object) -> None:
    """One line of results, on the screen too."""
    text = json.dumps(line)
    print(text, flush=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def run_stored(given: argparse.Namespace, name: str, epsilon: float) -> None:
    """A stored table at one epsilon."""
    table, schema = stored(given.folder, name)
    rng = np.random.default_rng(5)
    common = {"table": name, "epsilon": epsilon, "rows": table.num_rows, "draws": given.draws}
    if given.draws:
        exact = exact_sums(table, schema, epsilon, STORED[name])
        must_agree(exact, (5, 20), rng)
        tallies = SumQuestions(exact, given.draws, rng).ask((5, 20))
        counted = labelled(schema, LABELS[name]) if name in LABELS else schema
        tallies |= count_tallies(exact_counts(table, counted, epsilon), table, given.draws, rng)
        for line in lines_of(tallies):
            write(part="draws", **common, **line)
    if given.releases:
        done = whole_releases(table, schema, name, epsilon, given.releases)
        write(part="releases", **common, **done)
        write(part="naive", **common, **naive(table, schema, name, epsilon, given.releases))


def run_made(given: argparse.Namespace, name: str, epsilon: float) -> None:
    """A generated table at one epsilon."""
    columns, rows = MADE[name]
    sizes = {1.0: (20,), 4.0: (100,)}.get(epsilon, ()) if rows > 100_000 else (5, 20)
    if not sizes or not given.draws:
        return
    exact = made_sums(columns, rows, max(sizes) + 1, epsilon)
    rng = np.random.default_rng(5)
    must_agree(exact, sizes, rng)
    common = {"table": name, "epsilon": epsilon, "rows": rows, "draws": given.draws}
    for line in lines_of(SumQuestions(exact, given.draws, rng).ask(sizes)):
        write(part="draws", **common, **line)
    if max(sizes) == 100:
        write(part="seconds", **common, **timings(exact, 100))


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=10_000, help="0: whole releases alone")
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--tables", nargs="+", default=[*STORED, *MADE])
    parser.add_argument("--page", action="store_true", help="write docs/benchmarks/answers.md")
    given = parser.parse_args()
    if given.page:
        answers_page.write(RESULTS)
        return
    for name in given.tables:
        for epsilon in given.epsilons:
            (run_stored if name in STORED else run_made)(given, name, epsilon)


if __name__ == "__main__":
    main()
