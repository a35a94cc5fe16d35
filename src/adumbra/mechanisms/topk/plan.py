"""What a top-k release costs and how noisy it is, from public numbers; and which noise keys it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from adumbra.mechanisms import sizes
from adumbra.mechanisms.base import Noise, Plan, Settled, person_notes
from adumbra.mechanisms.fields import refuse_idle, unused_guess
from adumbra.mechanisms.sizes import Size, Work
from adumbra.mechanisms.topk.choice import choice_notes, settled_config
from adumbra.mechanisms.topk.config import (
    METHOD,
    Algorithm,
    Step,
    TopKConfig,
    budget_of,
    guarantee_of,
    idle_options,
    score_range,
)
from adumbra.mechanisms.topk.counting import CountNoise, count_noise
from adumbra.mechanisms.topk.joint import COLUMN, DEPTH, RANK, plan_lattice
from adumbra.mechanisms.topk.methods import SVT_THRESHOLD
from adumbra.mechanisms.topk.names import read_names
from adumbra.mechanisms.topk.svt import HALVES, blocks, marker, sparse
from adumbra.numerics import fraction_upper
from adumbra.privacy.conversion import gumbel_epsilon0, gumbel_scale
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.schema.schema import Schema
from adumbra.statistics.counts import Norm

LENGTHS = (1, 2, 5, 10, 20, 50, 100)  # for which the table of errors is shown

SENTENCES = {
    Algorithm.FREFIRST: "The k largest noisy counts are released, with their standard errors.",
    Algorithm.EM: "k columns are drawn by the exponential mechanism; no counts are released.",
    Algorithm.GUMBEL: "k columns are drawn in one shot of Gumbel noise; no counts are released.",
    Algorithm.SVT: "Columns are compared in order with the k-th count; no counts are released.",
    Algorithm.TPS_EM: "Noisy counts decide the clear columns, the exponential mechanism the near ones.",
    Algorithm.TPS_PFM: "Noisy counts decide the clear columns, block comparisons (PFM) the near ones.",
    Algorithm.TPS_REFINE: "Noisy counts decide the clear columns, a second count the near ones.",
    Algorithm.JOINT: "One exponential mechanism over sequences of k columns; no counts are released.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What each step may spend, and the public names of items."""

    budget: Mapping[Step, float]
    names: dict[int, str] | None  # None: the schema declares no dictionary


def settle(config: TopKConfig, schema: Schema) -> Settled[TopKConfig, Parts]:
    """The budget of each step; touches no data, and reads the public dictionary of items."""
    refuse_idle(config, idle_options(config))
    asked, guarantee = config, guarantee_of(config, schema)
    config = settled_config(config, schema)
    names = read_names(schema)  # a fault in it is said before anything is paid
    budget = budget_of(config)
    planned = _plan(config, schema, guarantee, budget)
    notes = (*unused_guess(config, schema.rows), *choice_notes(asked, config, schema))
    planned = replace(planned, notes=(*notes, *planned.notes))
    parts = Parts(budget=budget, names=names)
    return Settled(config=config, schema=schema, plan=planned, parts=parts)


def _plan(
    config: TopKConfig, schema: Schema, guarantee: PrivacyGuarantee, budget: dict[Step, float]
) -> Plan:
    """Cost, noise and expected error."""
    noise: list[Noise] = []
    for step, amount in budget.items():
        noise += _noise_of(step, config, schema, amount)
    errors = _count_errors(config, schema, budget)
    notes = [SENTENCES[config.chosen]]
    if errors and config.length is None:
        notes.append(
            "The scale of counts is given for rows cut to one item; the length is chosen privately."
        )
    if errors:
        notes.append(
            "Rows longer than the truncation length count for less, so counts are too low by that."
        )
    if schema.items is not None:
        notes.append("How long it takes follows from how many items rows have, which is private.")
    return Plan(
        method=f"{METHOD} {config.chosen}",
        guarantee=guarantee,
        purposes=tuple(part.purpose for part in noise),
        noise=tuple(noise),
        expected={f"standard error of a count, length {m}": error for m, error in errors.items()},
        notes=(*notes, *person_notes(schema)),
        details={"budget": {step.value: amount for step, amount in budget.items()}},
        size=_size(config, schema),
    )


def _size(config: TopKConfig, schema: Schema) -> Size:
    """Memory and disk: counts of all items, sets that are held for a second pass, a short table."""
    listed = schema.width if config.all_counts else 0
    rows = config.k + listed
    read = sizes.reading_sets(schema.width, sizes.rows_read(schema))
    return Size(
        memory=sizes.PROCESS + sizes.KEPT + read + sizes.totals(schema.width) + 64 * rows,
        output=48 * rows + sizes.folder_words(schema),
        card=sizes.card_bytes(()),
        rows=config.k,
        seconds=Work(passes=len(budget_of(config))).seconds(schema, config.expected_rows),
    )


def _count_errors(config: TopKConfig, schema: Schema, budget: dict[Step, float]) -> dict[int, float]:
    """The standard error of a count for some truncation lengths, or for the public one."""
    if Step.COUNTS not in budget:
        return {}
    longest = min(config.max_length, schema.width)
    lengths = [m for m in LENGTHS if m <= longest] if config.length is None else [config.length]
    return {m: _counting(config, schema, budget[Step.COUNTS], m).deviation for m in lengths}


def _counting(config: TopKConfig, schema: Schema, amount: float, length: int) -> CountNoise:
    norm = Norm.L1 if config.is_pure else Norm.L2
    return count_noise(min(length, schema.width), amount, schema.reach, norm=norm)


def _noise_of(step: Step, config: TopKConfig, schema: Schema, amount: float) -> list[Noise]:
    """What a step draws."""
    if step in (Step.LENGTH, Step.ZONE_LENGTH):
        return _scan_noise(step, amount, schema)
    if step is Step.SELECT:
        return _select_noise(config, schema, amount, None)
    return [_count_noise(step, config, schema, amount)]


def _count_noise(step: Step, config: TopKConfig, schema: Schema, amount: float) -> Noise:
    """The counts' noise: of the public length, else of length 1."""
    return _printed(step, _counting(config, schema, amount, config.length or 1))


def _printed(purpose: str, calibrated: CountNoise) -> Noise:
    """Calibrated noise of counts as the card prints it."""
    return Noise(
        purpose=purpose,
        distribution="laplace" if calibrated.norm is Norm.L1 else "gaussian",
        scale=calibrated.scale,
        sensitivity=calibrated.sensitivity,
        grid=calibrated.grid,
    )


def settled_noise(
    config: TopKConfig, schema: Schema, counted: Mapping[str, CountNoise], rounds: int | None
) -> tuple[Noise, ...]:
    """The noise that was drawn: counts at the chosen length, a selection for so many columns."""
    noise: list[Noise] = []
    for step, amount in budget_of(config).items():
        if step in counted:
            noise.append(_printed(step, counted[step]))
        elif step is Step.SELECT:
            noise += _select_noise(config, schema, amount, rounds)
        elif step is Step.LENGTH or Step.ZONE_COUNTS in counted:
            noise += _scan_noise(step, amount, schema)
    return tuple(noise)


def _scan_noise(step: Step, amount: float, schema: Schema) -> list[Noise]:
    """The length scan: half for the threshold, half for the stop; the same for either relation."""
    schedule = sparse(Fraction(amount) / schema.reach.rows, 1, threshold_share=Fraction(1, 2))
    return _comparisons(step, schedule.threshold, schedule.column, schema)


def _select_noise(config: TopKConfig, schema: Schema, amount: float, rounds: int | None) -> list[Noise]:
    """The noise of a selection of k or fewer; where it follows labels, that of the first comparison."""
    k = config.k if rounds is None else rounds
    spread = score_range(schema.reach)
    if k == 0:
        return []
    if config.chosen is Algorithm.JOINT:
        scale = 1 / plan_lattice(amount, k, schema.width, spread).slope
        return [_gumbel(DEPTH, scale, 2 * spread), _gumbel(RANK, 1.0, 0), _gumbel(COLUMN, 1.0, 0)]
    if config.chosen is Algorithm.SVT:
        plain = sparse(Fraction(amount) / spread, k, threshold_share=SVT_THRESHOLD)
        return _comparisons(Step.SELECT, plain.threshold, plain.column, schema)
    if config.chosen is Algorithm.TPS_PFM:
        opening = blocks(Fraction(amount) / spread, k)
        return _comparisons(Step.SELECT, opening.threshold, opening.column, schema)
    if config.is_pure:
        return [_gumbel(Step.SELECT, fraction_upper(spread * k / Fraction(amount)), spread)]
    return [_gumbel(Step.SELECT, gumbel_scale(spread, gumbel_epsilon0(amount, k)), spread)]


def _comparisons(step: Step, threshold: Fraction, column: Fraction, schema: Schema) -> list[Noise]:
    return [
        Noise(
            purpose=purpose,
            distribution="laplace",
            scale=fraction_upper(1 / epsilon),
            sensitivity=float(schema.reach.rows),
            grid=2.0**HALVES,
        )
        for purpose, epsilon in ((marker(step), threshold), (step, column))
    ]


def _gumbel(purpose: str, scale: float, spread: float) -> Noise:
    return Noise(purpose=purpose, distribution="gumbel", scale=scale, sensitivity=spread, grid=0.0)
