"""Exact statistics of tables for `answers_coverage.py`: sums within caps, and counts by class.

Caps come from one noisy histogram, as in a release. Bounds of numbers of stored tables are the least and
largest of the table: fit for a benchmark, never for a release.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import adumbra as ad
from adumbra.answers.capped import CappedAnswers
from adumbra.answers.histograms import HistogramAnswers
from adumbra.answers.moments import MomentAnswers, Term
from adumbra.answers.reading import assemble, split
from adumbra.answers.reading_moments import capped_answers, weighted_noise
from adumbra.answers.sums import Sums
from adumbra.data.opening import open_source
from adumbra.data.sources import WatchedSource
from adumbra.mechanisms.answers import ANSWERS
from adumbra.mechanisms.answers.release import caps_of, cell_block, counting_deviation
from adumbra.mechanisms.moments import MOMENTS
from adumbra.mechanisms.moments.rows import cell_block as class_block
from adumbra.postprocess.capped import choose_caps
from adumbra.relations import Neighbours, Unit
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.statistics.box_moments import box_rows, complete

ROOT = Path(__file__).resolve().parent.parent
MOST_COLUMNS, MOST_LEVELS, MOST_CODES = 40, 30, 10  # whole numbers of few values are codes
BOUND, BLOCK = 10.0, 100_000  # of generated numbers; rows per block
STORED = {"adult": "hours-per-week", "acs_ma2019": "PINCP", "pol": "target"}
MADE = {"300": (300, 100_000), "1000": (1000, 100_000), "1000 wide": (1000, 1_000_000)}


def schema_of(table: pa.Table, names: list[str]) -> Schema:
    """Numbers within their own range; texts as categories."""
    columns = []
    for name in names:
        if isinstance(table[name][0].as_py(), str):
            levels = tuple(sorted(table[name].unique().to_pylist()))[:MOST_LEVELS]
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=levels))
        else:
            low, high = (float(end) for end in pc.min_max(table[name]).as_py().values())
            columns.append(Column(name=name, kind=Kind.NUMBER, lower=low, upper=high))
    return Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)


def stored(folder: Path, name: str) -> tuple[pa.Table, Schema]:
    """A table of the folder: its first columns that vary and are never missing."""
    table = pq.read_table(folder / f"{name}.parquet")
    table = table.filter(table[STORED[name]].is_valid())  # Massachusetts: people with an income, if 0
    fit = [n for n in table.column_names if table[n].null_count == 0 and len(table[n].unique()) > 1]
    columns = {n: table[n] for n in fit[:MOST_COLUMNS]}
    for n, column in list(columns.items()):
        few = pa.types.is_integer(column.type) and len(column.unique()) <= MOST_CODES
        if pa.types.is_dictionary(column.type) or (few and n != STORED[name]):
            columns[n] = column.cast(pa.string())
    table = pa.table(columns)
    return table, schema_of(table, table.column_names)


@dataclass(frozen=True, kw_only=True)
class Exact:
    """Exact sums within caps with the noise of a release, and which columns are asked."""

    view: MomentAnswers
    outcome: str
    whole: CappedAnswers | None = None

    @property
    def numbers(self) -> list[str]:
        """Numbers beside the outcome."""
        return [n for n, term in self.view.terms.items() if term.is_number and n != self.outcome]

    @property
    def groups(self) -> list[str]:
        """Categories."""
        return [n for n, term in self.view.terms.items() if not term.is_number]


def exact_sums(table: pa.Table, schema: Schema, epsilon: float, outcome: str) -> Exact:
    """Of a stored table: folded as a release folds them."""
    source = WatchedSource(open_source(table, schema))
    config = ad.AnswersConfig(epsilon=epsilon, outcome=outcome)
    parts = ANSWERS.settle(config, source.schema).parts
    counts = np.zeros(parts.histograms.size, np.int64)
    for batch in source.batches(2**14):
        parts.histograms.add(counts, cell_block(batch, parts.features, parts.chosen))
    sigma = counting_deviation(parts)
    noisy = counts + np.rint(np.random.default_rng(1).normal(0.0, sigma, len(counts)))
    caps = caps_of(config, parts, noisy)
    encoder, statistic = parts.encoder(caps), parts.noise.statistic
    total, rows = statistic.zero(), 0
    for batch in source.batches(2**14):
        total = statistic.add(total, box_rows(encoder.encode(batch), statistic.shape))
        rows += len(batch)
    places = statistic.coordinates(parts.noise.neighbours)
    values = total[places[0], places[1]] * 2.0**statistic.exponent
    matrix = complete(values, places, statistic.shape)
    matrix[-1, -1] = rows
    variances = np.zeros(matrix.shape)
    each = np.array(parts.deviations(places)) ** 2
    variances[places[0], places[1]] = variances[places[1], places[0]] = each
    numbers = [column.name for column in parts.asked.columns if column.is_numeric]
    tables = split(noisy, list(parts.features), None, 1)
    whole = capped_answers(
        Layout(parts.asked), dict(zip(numbers, caps, strict=True)), (matrix, variances, float(rows)),
        assemble(parts.asked, list(parts.features), tables, (sigma, False)),
        is_laplace=False, rows_are_public=True,
    )  # fmt: skip
    return Exact(view=whole.sums, outcome=outcome, whole=whole)


def made_rows(columns: int, used: int, rows: int, block: int) -> np.ndarray:
    """A block of numbers with three common factors; the first is explained by the next twenty."""
    law, rng = np.random.default_rng(columns), np.random.default_rng([columns, rows, block])
    loads, slopes = law.normal(size=(3, columns))[:, :used], law.normal(size=20) * 0.3
    size = min(BLOCK, rows)
    values = rng.normal(size=(size, 3)) @ loads * 0.4 + rng.normal(size=(size, used))
    values[:, 0] = values[:, 1:21] @ slopes + rng.normal(size=size)
    return values


def made_sums(columns: int, rows: int, used: int, epsilon: float) -> Exact:
    """Of a generated table of so many declared columns: exact sums of the first ones.

    The others cost noise, which their declaration alone decides; their rows need not exist for that.
    """
    names = [f"x{place}" for place in range(columns)]
    declared = tuple(Column(name=n, kind=Kind.NUMBER, lower=-BOUND, upper=BOUND) for n in names)
    schema = Schema(columns=declared, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, rows=rows)
    config = ad.AnswersConfig(epsilon=epsilon, outcome="x0")
    settled = ANSWERS.settle(config, schema)
    parts, sigma = settled.parts, counting_deviation(settled.parts)
    blocks, rng = rows // BLOCK, np.random.default_rng(1)
    first = made_rows(columns, used, rows, 0)
    counts = []
    for place, feature in enumerate(parts.features[:used]):  # of the first block, times the blocks
        cells = np.searchsorted(feature.edges, first[:, place].clip(-BOUND, BOUND), side="right")
        found = np.bincount(cells, minlength=feature.counted)[: feature.counted] * float(blocks)
        counts.append(found + np.rint(rng.normal(0.0, sigma, feature.counted)))
    caps = np.array(choose_caps(parts.features[:used], counts, sigma, config.cap_share))
    middle, width = caps.mean(axis=1), caps[:, 1] - caps[:, 0]
    matrix = np.zeros((used + 1, used + 1))
    for block in range(blocks):
        values = first if block == 0 else made_rows(columns, used, rows, block)
        scaled = (values.clip(caps[:, 0], caps[:, 1]) - middle) / width
        encoded = np.column_stack([scaled, np.ones(len(scaled))])
        matrix += encoded.T @ encoded
    lines = [{"purpose": line.purpose, "scale": line.scale} for line in settled.plan.noise]
    card = {"mechanisms": lines, "facts": {"outcome": "x0"}}
    noise, _ = weighted_noise(Layout(parts.asked), card, public=True)
    kept = [*range(used), columns]
    sums = Sums(
        matrix=matrix, variances=noise[np.ix_(kept, kept)], dummies=np.zeros(used + 1, bool),
        classes=1, rows=float(rows), rows_are_public=True,
    )  # fmt: skip
    terms = {
        name: Term(name=name, places=(place,), middle=float(middle[place]), width=float(width[place]))
        for place, name in enumerate(names[:used])
    }
    view = MomentAnswers(terms=terms, sums=sums, label=None, is_laplace=False)
    return Exact(view=view, outcome="x0")


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Exact counts as `moments` takes them, and the noise of a cell."""

    schema: Schema
    columns: list
    label: int | None
    classes: int
    counts: np.ndarray
    sigma: float

    def view(self, noise: np.ndarray | float = 0.0) -> HistogramAnswers:
        """Answers of one release."""
        tables = split(self.counts + noise, self.columns, self.label, self.classes)
        return assemble(self.schema, self.columns, tables, (self.sigma, False))


def exact_counts(table: pa.Table, schema: Schema, epsilon: float) -> Counts:
    """Counts of a stored table, by class where it has a label."""
    source = WatchedSource(open_source(table, schema))
    settled = MOMENTS.settle(ad.MomentsConfig(epsilon=epsilon), source.schema)
    design, scales = settled.parts.design, settled.parts.scales
    lower = 0.0 if design.label is None else settled.schema.columns[design.label].limits[0]
    size = sum(design.cells)
    counts = np.zeros(size)
    for batch in source.batches(2**16):
        counts += np.bincount(class_block(batch, design, lower).places, minlength=size)
    return Counts(
        schema=settled.schema, columns=list(design.columns), label=design.label,
        classes=design.classes, counts=counts,
        sigma=float(np.hypot(scales.deviation(scales.marginals), 12**-0.5)),
    )  # fmt: skip


def labelled(schema: Schema, label: str) -> Schema:
    """The same columns with a label, so that counts are by class."""
    return replace(schema, label=label)
