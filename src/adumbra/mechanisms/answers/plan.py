"""What a release made for answers costs, and how wide its intervals will be.

Proof       release.proof.md, of `settle`.
"""

import math
from dataclasses import dataclass

from adumbra.data.encode import CappedEncoder
from adumbra.errors import require
from adumbra.mechanisms import sizes
from adumbra.mechanisms.answers.config import METHOD, AnswersConfig
from adumbra.mechanisms.base import Calibrated, Noise, Plan, Settled, person_notes, require_magnitudes
from adumbra.mechanisms.box_release import (
    PURPOSE,
    MomentNoise,
    box_memory,
    calibrate_moments,
    require_rows_unit,
)
from adumbra.mechanisms.fields import refuse_idle, unused_guess
from adumbra.mechanisms.moments.plan import MARGINALS, calibrate_first
from adumbra.mechanisms.sizes import Size, Work
from adumbra.numerics import Ints
from adumbra.postprocess.capped import Cap, asked_schema, column_squares, counted_features
from adumbra.postprocess.moments.design import Feature
from adumbra.privacy.conversion import mu_of, split_epsilon, split_mu
from adumbra.privacy.guarantee import promise
from adumbra.schema.schema import Schema
from adumbra.statistics.histograms import Histograms

SPREAD = 0.2  # standard deviation of a typical number, in parts of the range between its caps
NORMAL = 1.96  # standard deviations of a 95 % interval
WANTED = 0.1  # half-width of a standardised coefficient for which rows are named
MOST_COLUMNS = 10_000  # of whose products sums are held
SHARP = 20  # columns up to which widths are usually small


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The statistics of a release and the noise of each; caps are not known yet."""

    asked: Schema  # the declared columns alone
    chosen: tuple[int, ...]  # where they stand in the table
    outcome: str | None
    features: tuple[Feature, ...]
    histograms: Histograms
    counting: Calibrated
    noise: MomentNoise

    def encoder(self, caps: tuple[Cap, ...]) -> CappedEncoder:
        """The encoding of rows within caps."""
        return CappedEncoder(self.asked, chosen=self.chosen, caps=caps)

    def deviations(self, places: tuple[Ints, Ints, Ints]) -> list[float]:
        """The standard deviation of the noise of entries of the sums."""
        if self.noise.is_pure:
            return [self.noise.scale.scale * math.sqrt(2.0)] * len(places[0])
        each: list[float] = (self.noise.scale.scale * self.noise.statistic.factors(places)).tolist()
        return each


def settle(config: AnswersConfig, schema: Schema) -> Settled[AnswersConfig, Parts]:
    """Every public decision: columns, cells, weights, shares of the budget, noise."""
    require_rows_unit(schema, METHOD)
    schema.require_closed()
    asked = asked_schema(schema, config.columns)
    require(
        asked.width <= MOST_COLUMNS,
        f"columns: {asked.width} have too many products; name at most {MOST_COLUMNS}",
    )
    asked.require_filled(METHOD)
    require_magnitudes(asked)
    features, is_pure = counted_features(asked), config.delta == 0
    _refuse_idle(config, asked, is_pure=is_pure)
    outcome = None if is_pure else _outcome(config, schema, asked)
    histograms = Histograms(cells=tuple(feature.counted for feature in features))
    shares = (config.histogram_share, 1.0 - config.histogram_share)
    if is_pure:
        amounts = split_epsilon(config.epsilon, shares)
    else:
        amounts = split_mu(mu_of(config.epsilon, config.delta), shares)
    encoder = CappedEncoder(asked)
    places = {name: place for place, name in enumerate(schema.names)}
    parts = Parts(
        asked=asked,
        chosen=tuple(places[name] for name in asked.names),
        outcome=outcome,
        features=features,
        histograms=histograms,
        counting=calibrate_first(histograms, schema, amounts[0], is_pure=is_pure),
        noise=calibrate_moments(
            schema,
            encoder,
            amounts[1],
            is_pure=is_pure,
            classes=0,
            weights=column_squares(encoder, outcome),
        ),
    )
    return Settled(config=config, schema=schema, plan=_plan(config, schema, parts), parts=parts)


def _refuse_idle(config: AnswersConfig, asked: Schema, *, is_pure: bool) -> None:
    """Refuse an outcome or caps where they change nothing."""
    idle = {"outcome": "with delta=0: Laplace noise is the same for all columns"} if is_pure else {}
    if not any(column.is_numeric for column in asked.columns):
        idle["cap_share"] = "without columns of numbers"
    refuse_idle(config, idle)


def _outcome(config: AnswersConfig, schema: Schema, asked: Schema) -> str | None:
    """The declared outcome, or the label where it is one of the columns."""
    if config.outcome is None:
        return schema.label if schema.label in asked.names else None
    require(
        config.outcome in asked.names,
        f"outcome={config.outcome}: is not one of the columns; name it in columns, too",
    )
    return config.outcome


def counting_noise(parts: Parts) -> Noise:
    """The noise of the histograms as the card prints it."""
    return parts.counting.entry(MARGINALS, is_pure=parts.noise.is_pure)


def _plan(config: AnswersConfig, schema: Schema, parts: Parts) -> Plan:
    """Cost, noise, and the half-widths of typical answers, from public numbers only."""
    rows = schema.rows or config.expected_rows
    notes = [*unused_guess(config, schema.rows)]
    expected = {} if rows is None else _half_widths(parts, rows)
    if rows is not None:
        notes += _words(parts, expected, rows)
    else:
        notes.append("Give expected_rows to see how wide intervals will be.")
    return Plan(
        method=METHOD,
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=(MARGINALS, PURPOSE),
        noise=(counting_noise(parts), parts.noise.entry()),
        expected=expected,
        notes=(*notes, *person_notes(schema)),
        details={
            "columns": len(parts.asked.columns),
            "encoded_columns": parts.noise.statistic.shape.width,
            "outcome": parts.outcome,
        },
        size=_size(config, schema, parts),
    )


def _half_widths(parts: Parts, rows: int) -> dict[str, float]:
    """Half-widths of 95 % intervals: of the table, by noise alone."""
    shape = parts.noise.statistic.shape
    counting = parts.counting.scale * (math.sqrt(2.0) if parts.noise.is_pure else 1.0)
    found = {"share_half_width": NORMAL * counting / rows}
    if not shape.numeric:
        return found
    squares = parts.noise.statistic.weights or (1,) * shape.size
    places = parts.noise.statistic.coordinates(parts.noise.neighbours)
    at = {
        (i, j): each
        for i, j, each in zip(*(p.tolist() for p in places[:2]), parts.deviations(places), strict=True)
    }
    first = shape.numeric[0]
    found["mean_half_width"] = NORMAL * at[first, shape.width] / rows
    if len(shape.numeric) > 1:
        plain = sorted(shape.numeric, key=lambda place: squares[place])[:2]
        pair = at[min(plain), max(plain)]
        found["correlation_half_width"] = NORMAL * pair / rows / SPREAD**2
        loud = max(shape.numeric, key=lambda place: squares[place])
        other = next(place for place in shape.numeric if place != loud)
        one = at[min(loud, other), max(loud, other)]
        found["coefficient_half_width"] = NORMAL * one / rows / SPREAD**2
        found["rows_for_a_coefficient"] = math.ceil(NORMAL * one / WANTED / SPREAD**2)
    return found


def _words(parts: Parts, expected: dict[str, float], rows: int) -> list[str]:
    """The widths in a sentence, and what would make them smaller."""
    said = f"95 % intervals, noise alone: a share ±{expected['share_half_width']:.2g}"
    if "mean_half_width" in expected:
        said += f", a mean ±{expected['mean_half_width']:.2g} of the range between its caps"
    if "coefficient_half_width" in expected:
        said += (
            f", a correlation ±{expected['correlation_half_width']:.2g}, a standardised coefficient "
            f"±{expected['coefficient_half_width']:.2g}; two to three times that where columns are "
            "skewed or strongly correlated"
        )
    notes = [f"{said}."]
    columns = len(parts.asked.columns)
    if expected.get("coefficient_half_width", 0.0) > WANTED:
        remedy = f"declare fewer than these {columns} columns" if columns > SHARP else "spend more"
        notes.append(
            f"A standardised coefficient within ±{WANTED:g} needs about "
            f"{expected['rows_for_a_coefficient']:,.0f} rows, and there are {rows:,}: {remedy}, or "
            "regressions will mostly be hidden by noise."
        )
    return notes


LAWS = 128 * 2**20  # libraries that only the half-widths load


def _size(config: AnswersConfig, schema: Schema, parts: Parts) -> Size:
    """Memory and disk: the sums and their noise; no rows are released."""
    encoder, width = CappedEncoder(parts.asked), parts.noise.statistic.shape.size
    read = sizes.rows_read(schema, config.expected_rows)
    cells = parts.histograms.size
    return Size(
        memory=LAWS
        + box_memory(schema, encoder, 0, read)
        + sizes.kept(schema, read)
        + sizes.totals(cells),
        output=sizes.FLOAT * (width * width + cells + 8 * width) + sizes.folder_words(schema),
        card=sizes.card_bytes(parts.asked.names, (*encoder.names, *parts.asked.names)),
        rows=None,
        seconds=Work(passes=2, products=width * width).seconds(schema, config.expected_rows),
    )
