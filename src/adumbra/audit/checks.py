"""The checks of an audit: each looks at one case and says what it found, in words; nothing found is [].

replay         everything a release hands over is the same on both tables once the noise is the same;
               on the worst pair, and on small tables with a neighbour for each strange value
sensitivity    no noise call moves more than declared, and all together not more than the claim
steps          every step that hides its noise was seen and did what it described, and the worst pair
               shows a plausible share of the claim
attack         the lower bound stays below the claim
grid           released numbers are multiples of the grid on the card
freshness      two grants share no noise, and neither do two purposes of one
secrets        neither the grant's secret nor a secret matrix is in the release
engine         the production engine releases the same bytes as the plain loop that is attacked
guard          the product itself refused to go on

`replay`, `sensitivity` and `steps` look at several transcripts: code may branch on what was released,
and must be right in every branch. Most of them have wide noise, so that rare branches are reached.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import stdtr

from adumbra.audit.attack import attack, is_blind, worst
from adumbra.audit.hostile import check_hostile
from adumbra.audit.pairs import Case
from adumbra.audit.recorder import (
    DirectEngine,
    Recorded,
    Transcript,
    exceedances,
    parts_of,
    plan_of,
    record_pair,
    run_draft,
    share_of_claim,
)
from adumbra.audit.steps import check_steps
from adumbra.engine.local import LocalEngine
from adumbra.errors import AdumbraError
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection.plan import MATRIX, secret_projection
from adumbra.mechanisms.projection.rows import column_names, row_space
from adumbra.numerics import Array, Lattice, figure_lower, figure_upper
from adumbra.privacy import grant as grants
from adumbra.privacy.noise import add_gaussian
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.release.artifact import off_grid

ATTACK_RUNS = 200_000
STRETCHES = (1, 1, 4, 16, 64, 1024)  # of the noise, one transcript each
FEWEST = 10  # noise values that two calls must have in common to be compared
CHANCE = 1e-10  # of taking independent noise for the same


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault that a check saw."""

    check: str
    detail: str


def transcripts(seed: int = 0) -> tuple[Transcript, ...]:
    """The noise that a claim is looked at under."""
    return tuple(
        Transcript(seed * len(STRETCHES) + number, stretch) for number, stretch in enumerate(STRETCHES)
    )


def examine(
    case: Case, runs: int = ATTACK_RUNS, only: str | None = None, *, seed: int = 0
) -> list[Finding]:
    """Run every check, or one, on a case and its pair of tables."""
    found: list[Finding] = []
    chosen = transcripts(seed)
    try:
        recorded = record_pair(case, chosen[0])
    except AdumbraError as error:
        return [Finding("guard", f"{type(error).__name__}: {error}")]

    @cache
    def recordings() -> tuple[Recorded, ...]:
        return (recorded, *(record_pair(case, one) for one in chosen[1:]))

    def recorded_as_made() -> Recorded:
        """Under the secret that the worst pair was found for: a secret matrix follows from it."""
        return recorded if seed == 0 else record_pair(case)

    checks: dict[str, Callable[[], list[str]]] = {
        "replay": lambda: [*_each(recordings(), check_replay), *check_hostile(case)],
        "sensitivity": lambda: _each(recordings(), exceedances),
        "steps": lambda: [*_each(recordings(), check_steps), *check_share(case, recorded_as_made())],
        "grid": lambda: check_grid(case),
        "freshness": lambda: check_freshness(recorded),
        "secrets": lambda: check_secrets(case),
        "engine": lambda: check_engine(case),
        "attack": lambda: check_attack(case, runs, seed),
    }
    for name, check in checks.items():
        if only not in (None, name):
            continue
        try:
            found += [Finding(name, detail) for detail in check()]
        except AdumbraError as error:
            found.append(Finding("guard", f"{name}: {type(error).__name__}: {error}"))
    return found


def check_replay(recorded: Recorded) -> list[str]:
    """What differs although all noise was the same."""
    if recorded.fault is not None:
        return [recorded.fault]
    return [f"{name} differs" for name in recorded.differences()]


def check_share(case: Case, recorded: Recorded) -> list[str]:
    """A pair that was made to show the claim, and shows next to nothing."""
    share = share_of_claim(recorded)
    if recorded.fault is not None or not case.is_worst or not is_blind(case.config.epsilon, share):
        return []
    return [f"all steps together show only {share:.3g} of the claim: one must have been missed"]


def _each(recordings: Sequence[Recorded], check: Callable[[Recorded], list[str]]) -> list[str]:
    """What a check finds in each transcript, once."""
    found: dict[str, Transcript] = {}
    for one in recordings:
        for detail in check(one):
            found.setdefault(detail, one.transcript)
    return [f"{detail} ({transcript})" for detail, transcript in found.items()]


def check_attack(case: Case, runs: int, seed: int = 0) -> list[str]:
    """A claim that is refuted."""
    result = attack(case, runs, seed=seed)
    if not result.violated:
        return []
    found, claimed = figure_lower(result.epsilon_lower, 4), figure_upper(result.epsilon_claimed)
    return [f"epsilon is at least {found}, claimed {claimed}"]


def check_grid(case: Case) -> list[str]:
    """Off-grid numbers of the mechanisms that release noisy rows as they are."""
    if not isinstance(case.config, DPProConfig | JLLaplaceConfig):
        return []
    planned = plan_of(case)
    draft = run_draft(case, case.before, fixed_grant(0, planned.guarantee, planned.purposes))
    whole = draft.table()
    if not whole.num_rows:
        return ["no row was drawn: nothing was checked"]
    grid = (draft.noise or planned.noise)[0].grid
    names = column_names(case.config.n_components)  # a label beside them is no number of the grid
    values = np.column_stack([whole[name].to_numpy() for name in names])
    count = off_grid(values, grid)
    return [f"{count} of {values.size} numbers are off the grid"] if count else []


def check_freshness(recorded: Recorded) -> list[str]:
    """Noise that comes twice: in two grants, or for two purposes of one."""
    planned, found = recorded.planned, []
    value = Lattice(np.zeros(16, np.int64), -24)
    purpose = planned.purposes[0]
    draws = [
        add_gaussian(
            value,
            1.0,
            grants.open_grant(name, planned.guarantee, planned.purposes, "audit").key(purpose),
        )
        for name in ("first", "second")
    ]
    if np.array_equal(draws[0].units, draws[1].units):
        found.append("two grants drew the same noise")
    noises = _noises(recorded)
    for index, (name, noise) in enumerate(noises):
        for other, more in noises[:index]:
            size = min(len(noise), len(more))
            if size >= FEWEST and chance_alike(noise[:size], more[:size]) < CHANCE:
                found.append(f"{other} and {name} share their noise")
    return found


def chance_alike(one: Array, other: Array) -> float:
    """The chance that independent normal numbers correlate so much (Student's t); 1 of constants."""
    first, second = one - one.mean(), other - other.mean()
    lengths = math.sqrt(float(first @ first) * float(second @ second))
    if lengths == 0.0:
        return 1.0
    along = min(abs(float(first @ second)) / lengths, 1.0)
    freedom = len(one) - 2
    apart = math.sqrt((1.0 - along) * (1.0 + along))
    return 2.0 * float(stdtr(freedom, -along * math.sqrt(freedom) / apart)) if apart else 0.0


def _noises(recorded: Recorded) -> list[tuple[str, Array]]:
    """The noise of every recorded call, in standard units."""
    found = []
    for (purpose, block), (call, output) in recorded.record.calls.items():
        if isinstance(output, Lattice) and call.value.units.size:
            noise = (output.units - call.value.units) * (call.value.grid / call.scale)
            found.append((f"{purpose} {block}", noise.reshape(-1)))
    return found


def check_secrets(case: Case) -> list[str]:
    """A secret that left: the grant's own, or the matrix that JL + Laplace never writes."""
    planned = plan_of(case)
    grant = fixed_grant(7, planned.guarantee, planned.purposes)
    secrets = {"the grant's secret": grant.secret.reveal()}
    if isinstance(case.config, JLLaplaceConfig):
        space = row_space(case.schema, case.config.row_norm)
        matrix = secret_projection(case.config, space, grant.key(MATRIX))
        secrets["the secret matrix"] = matrix.to_float().tobytes()
        secrets["the secret matrix (transposed)"] = matrix.to_float().T.tobytes()
    parts = parts_of(run_draft(case, case.before, grant))
    return [
        f"{secret} is in {name}"
        for name, content in parts.items()
        for secret, needle in secrets.items()
        if needle in content or needle.hex().encode() in content
    ]


def check_engine(case: Case) -> list[str]:
    """What differs between the engine of production and `DirectEngine`, which all others run on."""
    planned = plan_of(case)
    parts = [
        parts_of(run_draft(case, case.before, fixed_grant(0, planned.guarantee, planned.purposes), on))
        for on in (DirectEngine(), LocalEngine())
    ]
    names = sorted(parts[0].keys() | parts[1].keys())
    return [f"{name} differs" for name in names if parts[0].get(name) != parts[1].get(name)]


def settle(case: Case) -> Case:
    """The case with the worst of its pairs, found while nothing is planted."""
    return case if len(case.tables) == 1 else worst(case)[0]
