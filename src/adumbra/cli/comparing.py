"""`adumbra plan` for several budgets or all methods: one line each, from public numbers only."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from adumbra.cli.options import print_json
from adumbra.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from adumbra.engine.local import Progress
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


AUTO, DEFAULT = "auto", "moments"  # --method


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


def compare(  # noqa: PLR0913, PLR0917 - a schema, what is compared on it, and where progress goes
    schema: "Schema",
    epsilons: list[float],
    methods: list[str],
    delta: float | None,
    options: list[str],
    report: "Progress | None" = None,
) -> list[Compared]:
    """Every method at every budget; an option goes to the methods that have it."""
    from adumbra.mechanisms.methods import method_named

    known = {
        name: {field.name for field in dataclasses.fields(method_named(name).config)} for name in methods
    }
    for option in options:
        field = _field(option)
        if not any(field in fields for fields in known.values()):
            raise InvalidInput(f"option {field}: none of {', '.join(methods)} has it; leave it out")
    found = []
    for name in methods:
        own = [option for option in options if _field(option) in known[name]]
        for epsilon in epsilons:
            try:
                planned = _planned(name, epsilon, delta, own, schema)
                found.append(Compared(method=name, epsilon=epsilon, plan=planned))
            except InvalidInput as error:  # Unsupported too
                reason = str(error).splitlines()[0]
                found.append(Compared(method=name, epsilon=epsilon, plan=None, refusal=reason))
            if report is not None:
                report("plan", len(found), len(methods) * len(epsilons))
    return found


def _field(option: str) -> str:
    return option.partition("=")[0].strip().replace("-", "_")


def _planned(
    name: str, epsilon: float, delta: float | None, options: list[str], schema: "Schema"
) -> "Plan":
    """One plan; whether the method takes such rows at all comes before its options."""
    from adumbra.cli.options import make_config
    from adumbra.mechanisms.methods import method_named, plan
    from adumbra.mechanisms.topk.config import is_truth

    takes, are_sets = method_named(name).data, schema.items is not None
    are_truths = all(is_truth(column) for column in schema.columns)
    fitting = ["item sets"] if are_sets else ["tables", *(["booleans"] if are_truths else [])]
    if not any(word in takes for word in fitting):
        raise InvalidInput(
            f"takes {takes}; the schema declares {'item sets' if are_sets else 'a table'}"
        )
    fitted = with_components(name, epsilon, delta, options, schema, why="compared at its best")
    return plan(make_config(name, epsilon, delta, fitted), schema)


def with_components(  # noqa: PLR0913 - a method and its budget, options and schema
    name: str,
    epsilon: float,
    delta: float | None,
    options: list[str],
    schema: "Schema",
    *,
    why: str,
    goal: str | None = None,
) -> list[str]:
    """The options, and the best number of components where a rule chose (`why`) and none is given."""
    if goal == "clusters" and name == "ron-gauss":
        own = {"goal", "n_components", "mode"}
        return options if own & {_field(one) for one in options} else [*options, "goal=clusters"]
    if not why or schema.patterns:
        return options
    if goal == "classify" and name in ("dppro", "jl-laplace"):
        from adumbra.mechanisms.goals import learning_options

        given = {_field(one) for one in options}
        added = learning_options(schema)
        return [*options, *(f"{key}={value}" for key, value in added.items() if key not in given)]
    from adumbra.mechanisms.goals import best_components
    from adumbra.mechanisms.methods import method_named

    fields = dataclasses.fields(method_named(name).config)
    needed = {one.name for one in fields if one.default is dataclasses.MISSING}
    if "n_components" not in needed or any(_field(one) == "n_components" for one in options):
        return options
    best = best_components(name, epsilon, delta, schema)
    return options if best is None else [*options, f"n_components={best}"]


def chosen_method(
    method: str | None, goal: str | None, schema: "Schema", delta: float | None
) -> tuple[str, str]:
    """The method to use, and why where a rule chose it."""
    from adumbra.mechanisms.goals import choose, goal_named, require_serves

    wanted = None if goal is None else goal_named(goal)
    if method == AUTO or (method is None and wanted is not None):
        choice = choose(schema, wanted, delta)
        return choice.method, f"{choice.method}: {choice.reason}"
    if wanted is not None and method is not None:
        require_serves(method, wanted)
    return method or DEFAULT, ""


def compared_names(goal: str | None) -> list[str]:
    """All methods, or those that serve a goal."""
    from adumbra.mechanisms.goals import SERVED_BY, goal_named
    from adumbra.mechanisms.methods import METHODS

    return [one.name for one in METHODS] if goal is None else list(SERVED_BY[goal_named(goal)])


def draw(found: list[Compared], path: "Path", *, json: bool) -> None:
    """Write the figure: one panel per method, and one of the attacker's chance."""
    from adumbra.report.choices import Curve, choices_figure

    curves = []
    for name in dict.fromkeys(one.method for one in found if one.plan is not None):
        own = [one for one in found if one.method == name and one.plan is not None]
        words, errors = zip(*(headline_error(one.plan) for one in own if one.plan), strict=True)
        at = tuple(one.epsilon for one in own)
        chances = tuple(one.success for one in own)
        curves.append(Curve(method=name, words=words[0], at=at, errors=errors, chances=chances))
    path.write_text(choices_figure(curves), encoding="utf-8")
    if not json:
        typer.echo(f"figure    {path}")


def show(found: list[Compared], *, json: bool, why: str = "") -> None:
    """A table for people, or a list for scripts; methods that refuse say why."""
    if why and not json:
        typer.echo(f"chosen    {why}")
    if json:
        print_json([one.facts() for one in found])
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


def headline_error(planned: "Plan") -> tuple[str, float]:
    """The first error of the headline: what it is, and how large."""
    from adumbra.report.page import expected_words

    names = [name for group in HEADLINES for name in group if name in planned.expected]
    name = (names or list(planned.expected) or [""])[0]
    return expected_words(name), planned.expected.get(name, 0.0)
