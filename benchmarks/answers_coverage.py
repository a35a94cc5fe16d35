"""Do intervals cover? `python benchmarks/answers_coverage.py FOLDER` (adult.parquet; `--write`: page).

Exact counts (as `moments` takes them) and exact sums of products (as `lda` takes them) of one table are
fixed. Noise of the scale that a release has is drawn again and again; every answer of every column is
asked. Coverage is per answer, among releases that answer it: the least of each kind, and how many are
below 0.94 by a family-wise test (binomial, Bonferroni at 5 % over all answers of one table and kind of
release). Beside it: the interval that the rows of whole releases would give, taken for data.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import binom

import adumbra as ad
from adumbra.answers.conditions import Clause
from adumbra.answers.estimate import Asked, Estimate
from adumbra.answers.reading import assemble, split
from adumbra.answers.reading_moments import COUNTS, PRODUCTS, SQUARES, TOTALS, assemble_moments
from adumbra.data.sources import WatchedSource, open_source
from adumbra.mechanisms import lda, moments
from adumbra.mechanisms.box_release import complete
from adumbra.mechanisms.moments.release import cell_block
from adumbra.numerics import Array
from adumbra.statistics.box_moments import Kind, box_rows

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/answers.md"
MARK = re.compile(r"(<!-- coverage -->\n).*?(<!-- end -->)", re.DOTALL)
ASKED = Asked()
COVARIATES = ("age", "education-num", "hours-per-week", "sex", "income")
Answers = dict[tuple[str, str], Estimate]


class Counted:
    """Exact counts of a table, and answers from them with noise."""

    def __init__(self, data: object, schema: ad.Schema, epsilon: float) -> None:
        source = WatchedSource(open_source(data, schema))
        settled = moments.MOMENTS.settle(ad.MomentsConfig(epsilon=epsilon), source.schema)
        self.schema, self.design, scales = settled.schema, settled.parts.design, settled.parts.scales
        self.sigma = float(np.hypot(scales.deviation(scales.marginals), 12**-0.5))
        places = [cell_block(batch, self.design, 0.0).places for batch in source.batches(2**16)]
        size = sum(self.design.cells)
        self.counts = sum(np.bincount(p, minlength=size) for p in places).astype(float)

    def ask(self, noise: Array | float) -> Answers:
        """Every share, mean, share in a class and difference between classes."""
        columns = list(self.design.columns)
        tables = split(self.counts + noise, columns, self.design.label, self.design.classes)
        view = assemble(self.schema, columns, tables, (self.sigma, False))
        found: Answers = {}
        for name, cells in view.columns.items():
            if cells.low is not None and name != view.label:
                found["mean", name] = view.mean(name, (), ASKED)
            for level in cells.levels:
                where = (Clause(name, "=", level),)
                found["share", f"{name}={level}"] = view.share(where, (), ASKED)
            if cells.by_class:
                for words, answer in view.compare(name, str(view.label), None, ASKED).items():
                    kind = "difference of means" if cells.low is not None else "difference of shares"
                    found[f"{kind} (counts)", words] = answer
        return found

    def draw(self, rng: np.random.Generator) -> Answers:
        """Answers of one release."""
        return self.ask(np.rint(rng.normal(0.0, self.sigma, len(self.counts))))


class Summed:
    """Exact sums of products of a table, and answers from them with noise."""

    def __init__(self, data: object, schema: ad.Schema, epsilon: float) -> None:
        source = WatchedSource(open_source(data, schema))
        settled = lda.LDA.settle(ad.LDAConfig(epsilon=epsilon), source.schema)
        self.encoder, noise = settled.parts.encoder, settled.parts.noise
        self.statistic = noise.statistic
        total = self.statistic.zero()
        self.rows = 0.0
        for batch in source.batches(2**16):
            rows = box_rows(self.encoder.encode(batch), self.statistic.shape, self.encoder.labels(batch))
            total = self.statistic.add(total, rows)
            self.rows += len(batch)
        self.places = self.statistic.coordinates(settled.schema.neighbours)
        self.values = total[self.places[0], self.places[1]] * 2.0**self.statistic.exponent
        self.each = np.array([noise.deviation(kind) for kind in Kind])

    def ask(self, noise: Array | float) -> Answers:
        """Every mean and class difference of a number, and one regression."""
        matrix = complete(self.values + noise, self.places, self.statistic.shape)
        named = dict(zip((SQUARES, PRODUCTS, TOTALS, COUNTS), self.each.tolist(), strict=True))
        view = assemble_moments(self.encoder, matrix, self.rows, (named, False), rows_are_public=True)
        found: Answers = {}
        for name, term in view.terms.items():
            if term.is_number:
                found["mean (sums)", name] = view.mean(name, (), ASKED)
                for words, answer in view.compare(name, str(view.label), None, ASKED).items():
                    found["difference of means (sums)", words] = answer
        fit = view.regress(COVARIATES[2], (*COVARIATES[:2], *COVARIATES[3:]), ASKED)
        return found | {("regression (sums)", name): answer for name, answer in fit.items()}

    def draw(self, rng: np.random.Generator) -> Answers:
        """Answers of one release."""
        return self.ask(rng.normal(size=len(self.values)) * self.each[self.places[2]])


def measure(ask: Counted | Summed, truths: dict[tuple[str, str], float], draws: int) -> list[list[str]]:
    """Coverage of every answer over the draws, a line per kind."""
    rng = np.random.default_rng(5)
    hits: Counter[tuple[str, str]] = Counter()
    shown: Counter[tuple[str, str]] = Counter()
    for _ in range(draws):
        for key, answer in ask.draw(rng).items():
            if not answer.is_hidden:
                low, high = answer.interval
                shown[key] += 1
                hits[key] += low - 1e-9 <= truths[key] <= high + 1e-9
    lines = []
    for kind in dict.fromkeys(kind for kind, _ in truths):
        keys = [key for key in truths if key[0] == kind]
        told = [key for key in keys if shown[key] >= draws / 5]
        cover = {key: hits[key] / shown[key] for key in told}
        alarms = sum(binom.cdf(hits[k], shown[k], 0.94) < 0.05 / len(truths) for k in told)
        answered = sum(shown[key] for key in keys) / (draws * len(keys))
        worst = min(cover.values(), default=float("nan"))
        middle = float(np.mean(list(cover.values()))) if cover else float("nan")
        lines.append(
            [kind, str(len(keys)), f"{answered:.2f}", f"{middle:.3f}", f"{worst:.3f}", str(alarms)]
        )
    return lines


def exact_truths(ask: Counted | Summed, frame: pd.DataFrame, label: str) -> dict[tuple[str, str], float]:
    """What intervals are about: means of the table itself; all else from exact counts and sums."""
    truths = {key: answer.value for key, answer in ask.ask(0.0).items() if not answer.is_hidden}
    for (kind, name), _ in list(truths.items()):
        if kind in ("mean", "mean (sums)"):
            truths[kind, name] = float(frame[name].astype(float).mean())
        elif kind.startswith("difference of means"):
            column, _, rest = name.removeprefix("mean of ").partition(", ")
            one, other = (part.split("=", 1)[1] for part in rest.split(" less "))
            groups = frame[column].astype(float).groupby(frame[label])
            truths[kind, name] = float(groups.mean()[one] - groups.mean()[other])
    return truths


def naive(data: pa.Table, schema: ad.Schema, epsilon: float, releases: int) -> str:
    """How often the mean of synthetic rows, +- 1.96 sd / sqrt(n), covers that of the table."""
    numbers = [column.name for column in schema.columns if column.is_numeric]
    frame = data.to_pandas()
    hits = dict.fromkeys(numbers, 0)
    for _ in range(releases):
        rows = ad.MomentsSynthesizer(schema=schema, epsilon=epsilon).fit(data).sample()
        for name in numbers:
            values = rows[name].to_numpy().astype(float)
            half = 1.96 * values.std() / len(values) ** 0.5
            hits[name] += abs(values.mean() - frame[name].astype(float).mean()) <= half
    cover = [count / releases for count in hits.values()]
    return f"{np.mean(cover):.2f}, least {min(cover):.2f}"


def main() -> None:
    """Print the tables; with --write, into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    table = pq.read_table(asked.folder / "adult.parquet")
    schema = ad.Schema.read(ROOT / "docs/tutorials/adult.toml")
    table = table.select([name for name in schema.names if name in table.column_names])
    frame, label = table.to_pandas(), str(schema.label)
    head = ["epsilon", "answer", "of", "answered", "coverage, mean", "least", "below .94"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    notes = []
    kinds: tuple[Callable[..., Counted | Summed], ...] = (Counted, Summed)
    for epsilon in asked.epsilons:
        for kind in kinds:
            ask = kind(table, schema, epsilon)
            found = measure(ask, exact_truths(ask, frame, label), asked.draws)
            lines += ["| " + " | ".join([f"{epsilon:g}", *line]) + " |" for line in found]
        if asked.releases:
            shown = naive(table, schema, epsilon, asked.releases)
            notes.append(f"epsilon {epsilon:g}: {shown}")
    text = "\n".join(lines) + f"\n\nadult, {len(frame):,} rows; {asked.draws:,} draws of noise. "
    if notes:
        text += (
            f"Synthetic rows taken for data (mean ± 1.96 sd/√n, {asked.releases} whole releases) cover "
            f"the means of numbers in: {'; '.join(notes)}.\n"
        )
    print(text)
    if asked.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(MARK.sub(lambda m: f"{m[1]}\n{text}\n{m[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
