"""`adumbra plan` for several budgets or all methods: one line each, from public numbers only."""

import dataclasses
import json as json_module
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from adumbra.errors import InvalidInput

if TYPE_CHECKING:
    from adumbra.mechanisms.base import Plan
    from adumbra.schema.schema import Schema

# What a plan's line says of its error: the first of these groups that the plan has.
HEADLINES = (
    ("one_way_total_variation_mean", "one_way_total_variation_worst"),
    ("standard_error_of_a_squared_distance",),
    ("class_mean_error",),
    ("noise_to_signal",),
    ("class_mean_noise",),
    ("squared_noise_of_rows_at_most",),
    ("mean_error",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One method at one budget: its plan, or why it has none."""

    method: str
    epsilon: float
    plan: "Plan | None"
    refusal: str = ""

    @property
    def success(self) -> float:
        """How often the best attacker is right at most, at even odds."""
        from adumbra.release.promise import attacker_gain, words_for

        assert self.plan is not None  # noqa: S101 - for mypy; callers ask only where there is a plan
        guarantee = self.plan.guarantee
        gain = attacker_gain(guarantee, words_for(guarantee.neighbours, item_sets=False))
        return float(str(gain["success_at_most"]))

    def facts(self) -> dict[str, object]:
        """Plain values for scripts."""
        if self.plan is None:
            return {"method": self.method, "epsilon": self.epsilon, "refused": self.refusal}
        return {
            "method": self.method,
            "epsilon": self.epsilon,
            "delta": self.plan.guarantee.delta,
            "attacker_success_at_most": self.success,
            "expected": dict(self.plan.expected),
        }


def epsilons_of(text: str) -> list[float]:
    """The budgets of `--epsilon 0.1,0.3,1`."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"epsilon={text}: must be a number, or several with commas: 0.1,0.3,1"
        ) from None


def compare(
    schema: "Schema", epsilons: list[float], methods: list[str], delta: float | None, options: list[str]
) -> list[Compared]:
    """Every method at every budget; an option goes to the methods that have it."""
    from adumbra import workflow
    from adumbra.cli.options import make_config
    from adumbra.mechanisms.methods import method_named

    known = {
        name: {field.name for field in dataclasses.fields(method_named(name).config)} for name in methods
    }
    for option in options:
        field = option.partition("=")[0].strip().replace("-", "_")
        if not any(field in fields for fields in known.values()):
            raise InvalidInput(f"option {field}: none of {', '.join(methods)} has it; leave it out")
    found = []
    for name in methods:
        own = [o for o in options if o.partition("=")[0].strip().replace("-", "_") in known[name]]
        for epsilon in epsilons:
            try:
                planned = workflow.plan(make_config(name, epsilon, delta, own), schema)
                found.append(Compared(method=name, epsilon=epsilon, plan=planned))
            except InvalidInput as error:  # Unsupported too
                reason = str(error).splitlines()[0]
                found.append(Compared(method=name, epsilon=epsilon, plan=None, refusal=reason))
    return found


def show(found: list[Compared], *, json: bool) -> None:
    """A table for people, or a list for scripts; methods that refuse say why."""
    if json:
        typer.echo(json_module.dumps([one.facts() for one in found], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    from adumbra.numerics import figure_upper
    from adumbra.release.promise import percent

    console = Console(highlight=False)
    table = Table(
        "method", "epsilon", "attacker is right", "expected error", box=None, padding=(0, 3, 0, 0)
    )
    for one in found:
        if one.plan is not None:
            rate = f"at most {percent(one.success)} %"
            table.add_row(one.method, figure_upper(one.epsilon), rate, headline(one.plan))
    console.print(table)
    refused = {one.method: one.refusal for one in found if one.plan is None}
    for name, reason in refused.items():
        console.print(f"not compared: {name}: {reason}", markup=False, soft_wrap=True)
    console.print(
        "A blind guess is right 50 %. Errors of different methods are of different things: compare down "
        "one method, and choose the method by what you need (`adumbra methods`).",
        soft_wrap=True,
    )


def headline(planned: "Plan") -> str:
    """The error that decides, in words."""
    from adumbra.report.page import expected_words

    for group in HEADLINES:
        shown = [name for name in group if name in planned.expected]
        if len(shown) == 2:
            mean, worst = (planned.expected[name] for name in shown)
            return f"shares of values: {mean:.2g} mean, {worst:.2g} worst column (1 is worthless)"
        if shown:
            return f"{expected_words(shown[0])}: {planned.expected[shown[0]]:.3g}"
    name, value = next(iter(planned.expected.items()), ("none stated", 0.0))
    return f"{expected_words(name)}: {value:.3g}"
