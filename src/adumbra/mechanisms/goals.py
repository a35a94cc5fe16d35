"""What a release is for, and which method serves it: one public rule, each choice with its reason.

The rule reads the schema, the goal and delta, never a row. A person made it by looking at our measured
tables (docs/explanation/utility.md, ron-gauss.md, projections.md), which are of public data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from adumbra.errors import InvalidInput, require
from adumbra.mechanisms.methods import method_named
from adumbra.mechanisms.projection.rows import row_space
from adumbra.mechanisms.topk.config import is_truth
from adumbra.relations import Unit
from adumbra.schema.schema import Column, Schema

PROBED_COMPONENTS = 16  # any number will do: the forecast names the best one


class Goal(StrEnum):
    """What the reader of a release wants to do with it; these names hold everywhere."""

    DISTANCES = "distances"  # between rows, neighbours
    CLUSTERS = "clusters"  # groups of like rows
    CLASSIFY = "classify"  # learn a label of classes
    REGRESS = "regress"  # learn a number
    ANSWERS = "answers"  # counts, shares, means with error bars
    TOP_K = "top-k"  # the most frequent items


SERVED_BY: dict[Goal, tuple[str, ...]] = {  # the methods that can serve a goal at all
    Goal.DISTANCES: ("dppro", "jl-laplace"),
    Goal.CLUSTERS: ("ron-gauss", "moments", "pca", "dppro", "jl-laplace"),
    Goal.CLASSIFY: ("moments", "lda", "ron-gauss", "jl-laplace", "dppro"),
    Goal.REGRESS: ("ron-gauss", "moments", "pca"),
    Goal.ANSWERS: ("answers", "moments", "lda", "pca"),
    Goal.TOP_K: ("top-k",),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A method and why it was chosen, in a sentence."""

    method: str
    reason: str


def goal_named(name: str) -> Goal:
    """The goal of a name."""
    try:
        return Goal(name)
    except ValueError:
        raise InvalidInput(f"goal={name}: unknown; choose one of {', '.join(Goal)}") from None


def choose(schema: Schema, goal: Goal | None, delta: float | None) -> Choice:
    """The method for a goal by the public rule; raises InvalidInput where the schema cannot serve it."""
    if goal is None:
        return _without_goal(schema)
    rules: dict[Goal, Callable[[Schema, float | None], Choice]] = {
        Goal.DISTANCES: _distances,
        Goal.CLUSTERS: _clusters,
        Goal.CLASSIFY: _classify,
        Goal.REGRESS: _regress,
        Goal.ANSWERS: _answers,
        Goal.TOP_K: _top_k,
    }
    return rules[goal](schema, delta)


def require_serves(method: str, goal: Goal) -> None:
    """Refuse a method that cannot serve the goal."""
    served = SERVED_BY[goal]
    require(
        method in served or method_named(method).name in served,
        f"method={method}: does not serve goal={goal}; use {' or '.join(served)}, or --method auto",
    )


def best_components(method: str, epsilon: float, delta: float | None, schema: Schema) -> int | None:
    """The public number of components with the smallest expected error; None where nothing says it."""
    kind = method_named(method)
    given = {"epsilon": epsilon, "n_components": min(PROBED_COMPONENTS, schema.width)}
    config = kind.config(**given, **({} if delta is None else {"delta": delta}))
    best = kind.settle(config, schema).plan.expected.get("best_n_components")
    return None if best is None else int(best)


def learning_options(schema: Schema) -> dict[str, str]:
    """What a projection needs so that classes can be learned from its rows.

    Rows stay unprojected: a recipient places own rows without the matrix, and no column is mixed with
    another. The label leaves randomised: whoever declares it public says so.
    """
    width = row_space(schema, None).width
    return {"n_components": str(width), "family": "identity", "label": "randomised"}


def _without_goal(schema: Schema) -> Choice:
    if schema.items is not None:
        return Choice("top-k", "rows are item sets, and no goal is given")
    return Choice("moments", "of tables it keeps most, and no goal is given")


def _distances(schema: Schema, delta: float | None) -> Choice:
    if delta == 0:
        return Choice("jl-laplace", "distances need every row, and delta=0 needs Laplace noise")
    if schema.unit is not Unit.ELEMENT:
        return Choice("dppro", "distances need every row, and Gaussian noise is the smaller one")
    return _of_cells(delta, "distances need every row")


def _of_cells(delta: float | None, need: str) -> Choice:
    """One cell is protected: its change has one length in L1 and in L2, so Laplace noise is smaller."""
    if delta:
        return Choice("dppro", f"{need}, and a delta is given; for one cell jl-laplace has less noise")
    return Choice("jl-laplace", f"{need}, and for one cell Laplace noise is the smaller one")


def _clusters(schema: Schema, delta: float | None) -> Choice:
    if schema.items is not None or schema.unit is Unit.ELEMENT:
        return _distances(schema, delta)
    if all(column.is_numeric for column in _columns(schema)):
        return Choice("ron-gauss", "all columns are numbers, and its paper is about groups of such rows")
    return Choice("moments", "the table has categories, which ron-gauss reads as numbers")


def _classify(schema: Schema, delta: float | None) -> Choice:
    label = _label(schema)
    remedy = "declare a label of classes in [table], or choose another goal"
    require(label is not None and not label.kind.has_bounds, f"goal=classify: there is none; {remedy}")
    if schema.unit is Unit.ELEMENT:
        return _of_cells(delta, "learners that know the noise learn from noisy rows")
    return Choice(
        "moments", "of the methods with classes none learned better on a table that we measured"
    )


def _regress(schema: Schema, _delta: float | None) -> Choice:
    label, columns = _label(schema), _columns(schema)
    require(
        any(column.is_numeric for column in columns),
        "goal=regress: no column is a number; declare one, or choose another goal",
    )
    if label is not None and label.kind.has_bounds and all(column.is_numeric for column in columns):
        return Choice("ron-gauss", "the label is a number, and it models the slopes towards it")
    return Choice("moments", "it keeps the covariance of all columns, so any number can be learned")


def _answers(schema: Schema, _delta: float | None) -> Choice:
    require(schema.items is None, "goal=answers: rows are item sets; choose goal top-k")
    if any(column.keeps_null for column in _columns(schema)):
        return Choice("moments", "it counts missing numbers apart, with the counts of every column")
    return Choice("answers", "its sums answer means, correlations and regressions, its counts quantiles")


def _top_k(schema: Schema, _delta: float | None) -> Choice:
    if schema.items is not None:
        return Choice("top-k", "it is the method for item sets")
    require(
        all(is_truth(column) for column in _columns(schema)),
        "goal=top-k: rows are not item sets; declare [items] in the schema, or boolean columns alone",
    )
    return Choice("top-k", "all columns are true or false: each is an item")


def _columns(schema: Schema) -> list[Column]:
    """The declared columns, those of open patterns too."""
    return [*schema.columns, *(pattern.template for pattern in schema.patterns)]


def _label(schema: Schema) -> Column | None:
    found = [column for column in schema.columns if column.name == schema.label]
    return found[0] if found else None
