"""Do intervals of an `answers` release cover? `python benchmarks/answers_release.py FOLDER [--draws N]`.

FOLDER holds adult.parquet, acs_ma2019.parquet and pol.parquet; two tables are generated. Caps come from
one noisy histogram. The exact sums within these caps are fixed, noise of the release's scale is drawn
again and again, and every question is asked of every draw. Coverage is per answer, among draws that
answer it: mean and least of each kind, and how many answers are below 0.94 by a family-wise test
(binomial, Bonferroni at 5 % over the answers of one table and budget). Width: the noise's half-width
over that of sampling, which an analyst of the table itself would have; the median over answers.

Bounds of numbers are the least and largest of the table: fit for a benchmark, never for a release.
"""

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.stats import binom

import adumbra as ad
from adumbra.answers.capped import CappedAnswers
from adumbra.answers.estimate import Asked, Estimate
from adumbra.answers.reading import assemble, split
from adumbra.answers.reading_moments import capped_answers
from adumbra.data.sources import WatchedSource, open_source
from adumbra.mechanisms.answers import ANSWERS
from adumbra.mechanisms.answers.release import caps_of, cell_block, counting_deviation
from adumbra.numerics import Array
from adumbra.relations import Neighbours, Unit
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.statistics.box_moments import box_rows, complete

ASKED, SAMPLED = Asked(), Asked(population=True)
MOST_LEVELS, MOST_ASKED = 30, 12
Found = dict[tuple[str, str], Estimate]


def generated(columns: int, rows: int) -> tuple[pa.Table, list[str]]:
    """Numbers with three common factors; the first is explained by the next twenty."""
    rng = np.random.default_rng(columns)
    factors = rng.normal(size=(rows, 3))
    values = factors @ rng.normal(size=(3, columns)) * 0.4 + rng.normal(size=(rows, columns))
    values[:, 0] = values[:, 1:21] @ (rng.normal(size=20) * 0.3) + rng.normal(size=rows)
    names = [f"x{place}" for place in range(columns)]
    return pa.table(dict(zip(names, values.T, strict=True))), names


def stored(folder: Path, name: str, most: int) -> tuple[pa.Table, list[str]]:
    """A table of the folder, of its first columns that vary."""
    table = pq.read_table(folder / f"{name}.parquet")
    fit = [n for n in table.column_names if table[n].null_count == 0 and len(table[n].unique()) > 1]
    return table, fit[:most]


def schema_of(table: pa.Table, names: list[str]) -> Schema:
    """Numbers within their own range, few values as categories."""
    columns = []
    for name in names:
        if isinstance(table[name][0].as_py(), str):
            levels = tuple(sorted(table[name].unique().to_pylist()))[:MOST_LEVELS]
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=levels))
        else:
            low, high = (float(end) for end in pc.min_max(table[name]).as_py().values())
            columns.append(Column(name=name, kind=Kind.NUMBER, lower=low, upper=high))
    return Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)


class Fixed:
    """Exact sums within the caps of one release, and answers from them with noise."""

    def __init__(self, table: pa.Table, names: list[str], epsilon: float, outcome: str) -> None:
        source = WatchedSource(open_source(table.select(names), schema_of(table, names)))
        config = ad.AnswersConfig(epsilon=epsilon, outcome=outcome)
        settled = ANSWERS.settle(config, source.schema)
        self.parts = parts = settled.parts
        rng = np.random.default_rng(1)
        counts = np.zeros(parts.histograms.size, np.int64)
        for batch in source.batches(2**14):
            parts.histograms.add(counts, cell_block(batch, parts.features, parts.chosen))
        self.sigma = counting_deviation(parts)
        noisy = counts + np.rint(rng.normal(0.0, self.sigma, len(counts)))
        caps = caps_of(config, parts, noisy)
        encoder, statistic = parts.encoder(caps), parts.noise.statistic
        total, self.rows = statistic.zero(), 0.0
        for batch in source.batches(2**14):
            total = statistic.add(total, box_rows(encoder.encode(batch), statistic.shape))
            self.rows += len(batch)
        self.places = statistic.coordinates(parts.noise.neighbours)
        self.values = total[self.places[0], self.places[1]] * 2.0**statistic.exponent
        self.each = np.array(parts.deviations(self.places))
        self.layout, self.outcome = Layout(parts.asked), outcome
        numbers = [column.name for column in parts.asked.columns if column.is_numeric]
        self.caps = dict(zip(numbers, caps, strict=True))
        tables = split(noisy, list(parts.features), None, 1)
        self.counts = assemble(parts.asked, list(parts.features), tables, (self.sigma, False))
        self.variances = np.zeros((statistic.shape.size,) * 2)
        self.variances[self.places[0], self.places[1]] = self.each**2
        self.variances[self.places[1], self.places[0]] = self.each**2

    def view(self, noise: Array | float, shown: float = 1.0) -> CappedAnswers:
        """Answers of one release; `shown` scales the noise that they are told of."""
        matrix = complete(self.values + noise, self.places, self.parts.noise.statistic.shape)
        size = matrix.shape[0] - 1
        matrix[size, size] = self.rows
        return capped_answers(
            self.layout, self.caps, (matrix, self.variances * shown, self.rows), self.counts,
            is_laplace=False, rows_are_public=True,
        )  # fmt: skip

    def questions(self) -> Iterator[tuple[str, Callable[[CappedAnswers, Asked], object]]]:
        """Each kind of answer, of columns that a public order names."""
        numbers = [n for n in self.caps if n != self.outcome][:MOST_ASKED]
        groups = [c.name for c in self.parts.asked.columns if not c.is_numeric][:3]
        for name in numbers:
            yield "mean", lambda v, a, n=name: {n: v.mean(n, (), a)}
            yield "variance", lambda v, a, n=name: {n: v.variance(n, (), a)}
        for one, other in itertools.pairwise(numbers):
            pair = f"{one}, {other}"
            yield "correlation", lambda v, a, x=one, y=other, p=pair: {p: v.correlation(x, y, a)}
        for group in groups:
            yield "difference", lambda v, a, g=group: v.compare(numbers[0], g, None, a)
        for size in (5, 20):
            if len(self.caps) > size:
                used = tuple([n for n in self.caps if n != self.outcome][:size])
                yield f"regression of {size}", lambda v, a, u=used: v.regress(self.outcome, u, a)
        yield "directions", lambda v, _a: v.principal_components(min(3, len(self.caps)), ASKED)

    def ask(self, view: CappedAnswers, asked: Asked) -> tuple[Found, dict[str, float]]:
        """Every answer, and the seconds that one question of a kind took."""
        found: Found = {}
        seconds: dict[str, float] = {}
        for kind, question in self.questions():
            start = time.perf_counter()
            answers = question(view, asked)
            seconds[kind] = max(seconds.get(kind, 0.0), time.perf_counter() - start)
            found |= {(kind, name): answer for name, answer in answers.items()}
        return found, seconds


def measure(fixed: Fixed, draws: int) -> list[list[str]]:
    """One line per kind of answer."""
    rng = np.random.default_rng(5)
    truths = {key: one.value for key, one in fixed.ask(fixed.view(0.0, 1e-18), ASKED)[0].items()}
    hits, shown = defaultdict(int), defaultdict(int)
    widths, slowest = defaultdict(list), defaultdict(float)
    for _ in range(draws):
        found, seconds = fixed.ask(fixed.view(rng.normal(size=len(fixed.each)) * fixed.each), SAMPLED)
        for kind, second in seconds.items():
            slowest[kind] = max(slowest[kind], second)
        for key, answer in found.items():
            if answer.is_hidden or np.isnan(truths[key]):
                continue
            shown[key] += 1
            low, high = answer.interval
            if answer.sampling:  # asked of the population: its noise alone is what is drawn here
                half = 1.96 * answer.privacy
                low, high = answer.value - half, answer.value + half
                widths[key[0]].append(answer.privacy / answer.sampling)
            hits[key] += low <= truths[key] + 1e-9 and truths[key] <= high + 1e-9
    lines = []
    for kind in dict.fromkeys(kind for kind, _ in truths):
        keys = [key for key in truths if key[0] == kind]
        told = [key for key in keys if shown[key] >= max(draws / 5, 1)]
        cover = [hits[key] / shown[key] for key in told] or [float("nan")]
        alarms = sum(binom.cdf(hits[k], shown[k], 0.94) < 0.05 / len(truths) for k in told)
        part = sum(shown[key] for key in keys) / (draws * len(keys))
        wide = f"{np.median(widths[kind]):.2g}" if widths[kind] else "-"
        lines.append(
            [kind, str(len(keys)), f"{part:.2f}", f"{np.mean(cover):.3f}", f"{min(cover):.3f}",
             str(alarms), wide, f"{1000 * slowest[kind]:.0f}"]
        )  # fmt: skip
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--tables", nargs="+", default=["adult", "acs_ma2019", "pol", "300", "1000"])
    given = parser.parse_args()
    outcomes = {"adult": "hours-per-week", "acs_ma2019": None, "pol": None}
    head = ["table", "epsilon", "answer", "of", "answered", "coverage, mean", "least", "below .94"]
    head += ["noise / sampling", "ms"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for name in given.tables:
        is_made = name.isdigit()
        table, names = generated(int(name), 100_000) if is_made else stored(given.folder, name, 40)
        numbers = [one.name for one in schema_of(table, names).columns if one.is_numeric]
        for epsilon in given.epsilons:
            fixed = Fixed(table, names, epsilon, outcomes.get(name) or numbers[0])
            for line in measure(fixed, given.draws):
                print("| " + " | ".join([name, f"{epsilon:g}", *line]) + " |", flush=True)


if __name__ == "__main__":
    main()
