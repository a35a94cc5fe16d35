"""Release what answers need: one-way histograms, then sums of products of whole rows within caps.

    1  one-way histograms of the declared columns                               a share of the budget
    2  caps of each number, from the noisy histograms: post-processing
    3  sums of products of (numbers within caps, one-hot levels, a constant)    the rest

No row is shortened: a number beyond a cap is moved to it, by itself. So all that is released is about
one table, the one with capped numbers, and every answer has one truth.

Guarantee   pure epsilon (discrete Laplace) or mu-GDP (rounded normal); unit row or person, replace-one
            or add-remove. Holds for any input.
Reference   Dwork, Talwar, Thakurta, Zhang: Analyze Gauss, STOC 2014; Covington, He, Honaker, Kamath:
            Unbiased statistical estimation and valid confidence intervals under DP, 2021.
Proof       release.proof.md, of `draw` and `cell_block`; box_release.proof.md, of the sums.
Limits      Two columns at a time. What lies beyond a cap counts as the cap.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from adumbra.data.sources import Batch, KeptSource, Source
from adumbra.engine.local import Engine
from adumbra.mechanisms.answers.config import AnswersConfig
from adumbra.mechanisms.answers.plan import Parts, counting_noise
from adumbra.mechanisms.base import Draft, Published, Settled
from adumbra.mechanisms.box_pictures import bars_of, moment_pictures
from adumbra.mechanisms.box_release import MomentParts, NoisyMoments, draw_moments
from adumbra.mechanisms.moments.plan import MARGINALS
from adumbra.mechanisms.moments.release import noisy
from adumbra.mechanisms.sizes import HELD
from adumbra.numerics import Array
from adumbra.postprocess.capped import CELLS, Cap, choose_caps, shares_beyond
from adumbra.postprocess.moments.design import BINS, NUMBER_CELLS, NUMBERS, Feature
from adumbra.postprocess.pictures import Pictures
from adumbra.privacy.grant import Grant
from adumbra.statistics.histograms import CellRows, cell_rows, cut

MEANS = "Means, in parts of the range between the caps"
BAR = (
    "A bar with its ± is an interval: it covers the value of the table (numbers within caps) in 95 "
    'of 100 releases that could have been made. Ask for more: adumbra ask FOLDER "mean COLUMN".'
)
CAPS, COLUMNS, OUTCOME = "caps", "columns", "outcome"  # facts of the card


def cell_block(batch: Batch, features: Sequence[Feature], chosen: Sequence[int]) -> CellRows:
    """The cell of each row in every declared column."""
    codes = np.empty((len(batch), len(features)), np.int64, order="F")
    for place, (feature, index) in enumerate(zip(features, chosen, strict=True)):
        column = batch.values[:, index]
        codes[:, place] = (
            column.astype(np.int64) if feature.edges is None else cut(column, feature.edges)
        )
    return cell_rows(codes, tuple(feature.counted for feature in features))


def draw(settled: Settled[AnswersConfig, Parts], source: Source, engine: Engine, grant: Grant) -> Draft:
    """Two paid passes: histograms, then sums within the caps that they give."""
    config, parts = settled.config, settled.parts
    source = KeptSource(source, HELD)  # two passes; smaller tables are read once

    def count(batch: Batch) -> CellRows:
        return cell_block(batch, parts.features, parts.chosen)

    exact = engine.fold(source, count, parts.histograms, stage=MARGINALS)
    counts = noisy(exact, parts.counting, grant, MARGINALS)
    caps = caps_of(config, parts, counts)
    encoder = parts.encoder(caps)
    sums = draw_moments(source, encoder, parts.noise, engine=engine, grant=grant)
    beyond = shares_beyond(parts.features, parts.histograms.split(counts), caps)
    numbers = [column.name for column in parts.asked.columns if column.is_numeric]
    return Draft(
        tables={"data": summary(parts, caps, beyond, sums)},
        arrays={MARGINALS: counts, "noisy_sums": sums.matrix, "rows": np.array([sums.rows])},
        noise=(counting_noise(parts), parts.noise.entry()),
        facts={
            COLUMNS: list(parts.asked.names),
            OUTCOME: parts.outcome,
            "encoded_columns": list(encoder.names),
            CAPS: {name: list(cap) for name, cap in zip(numbers, caps, strict=True)},
            NUMBERS: BINS,
            NUMBER_CELLS: CELLS,
        },
    )


def caps_of(config: AnswersConfig, parts: Parts, counts: Array) -> tuple[Cap, ...]:
    """The caps of each number: from noisy counts, or its bounds."""
    if config.cap_share == 0:
        return tuple(column.limits for column in parts.asked.columns if column.is_numeric)
    sigma = counting_deviation(parts)
    return choose_caps(parts.features, parts.histograms.split(counts), sigma, config.cap_share)


def counting_deviation(parts: Parts) -> float:
    """The standard deviation of the noise of a count."""
    return parts.counting.scale * (2.0**0.5 if parts.noise.is_pure else 1.0)


def summary(parts: Parts, caps: Sequence[Cap], beyond: Sequence[float], sums: NoisyMoments) -> pa.Table:
    """For people: the mean of each number and the share of each level, with its standard error."""
    mean, deviation = means_of(parts, sums.matrix, sums.rows)
    lines: list[dict[str, object]] = []
    numbers = zip(caps, beyond, strict=True)
    for column in parts.asked.columns:
        (low, high), outside = next(numbers) if column.is_numeric else ((None, None), None)
        for level in [None] if column.is_numeric else column.level_names:
            place = len(lines)
            value, error = float(mean[place]), float(deviation[place])
            if low is not None and high is not None:
                value, error = (low + high) / 2.0 + (high - low) * value, (high - low) * error
            lines.append(
                {
                    "column": column.name,
                    "level": level,
                    "cap_low": low,
                    "cap_high": high,
                    "share_beyond_caps": outside,
                    "mean_or_share": value,
                    "standard_error": error,
                }
            )
    kinds = {"column": pa.string(), "level": pa.string()}
    names = ("cap_low", "cap_high", "share_beyond_caps", "mean_or_share", "standard_error")
    return pa.Table.from_pylist(lines, pa.schema([*kinds.items(), *((n, pa.float64()) for n in names)]))


def pictures(settled: Settled[AnswersConfig, Parts], published: Published) -> Pictures:
    """Means and shares with error bars, correlations and spectrum: all from the released sums."""
    parts = settled.parts
    shown = MomentParts(encoder=parts.encoder(()), noise=parts.noise)
    heat, spectrum = moment_pictures(shown, published)
    sums, rows = (np.asarray(published.arrays[name], np.float64) for name in ("noisy_sums", "rows"))
    value, deviation = means_of(parts, sums, float(rows[0]))
    bars = bars_of(shown, value, deviation, means=MEANS, caption=BAR)
    return Pictures(bars=bars, heat=heat, spectrum=spectrum)


def means_of(parts: Parts, sums: Array, rows: float) -> tuple[Array, Array]:
    """The mean of every encoded column, and the standard deviation of its noise."""
    width = parts.noise.statistic.shape.width
    ends, last = np.arange(width), np.full(width, width)
    deviation = np.array(parts.deviations((ends, last, ends)))
    mean = np.asarray(sums[:width, width] / rows)
    if not parts.noise.neighbours.rows_are_public:
        count = parts.deviations((last[:1], last[:1], last[:1]))[0]
        deviation = np.hypot(deviation, mean * count)
    return mean, deviation / rows


def words(_: Settled[AnswersConfig, Parts], __: Published) -> dict[str, str]:
    """What each part is."""
    return {
        "data": "One row per number or level: its noisy mean or share, with its standard error. No row "
        "belongs to a person.",
        MARGINALS: "Noisy counts of rows per cell of each column, one column after the other.",
        "noisy_sums": "The noisy sums of products of two encoded columns, within the caps.",
        "rows": "The number of rows: noisy, or public.",
    }
