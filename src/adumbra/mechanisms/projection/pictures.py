"""The picture of a projected release: the error of distances by the number of components."""

from typing import Any, cast

from adumbra.mechanisms.base import Published, Settled
from adumbra.postprocess.pictures import Curve, Pictures


def pictures(settled: Settled[Any, Any], _: Published) -> Pictures:
    """From the plan: public numbers only."""
    plan = settled.plan
    table = cast("list[dict[str, float]]", plan.details["standard_error_by_n_components"])
    curve = Curve(
        at=tuple(line["n_components"] for line in table),
        errors=tuple(line["standard_error"] for line in table),
        chosen=(
            float(settled.config.n_components),
            plan.expected["standard_error_of_a_squared_distance"],
        ),
        distance=plan.expected["guessed_squared_distance"],
    )
    return Pictures(curve=curve)


def words(settled: Settled[Any, Any], _: Published) -> dict[str, str]:
    """What each part is, with what happened to the label."""
    rows = "One row per private row, in the same order: encoded, projected and with noise."
    label = settled.parts.label.label
    if label is not None and label.noise is None:
        rows += f" The column {label.column.name} is that of the private row, without noise: it was "
        rows += "declared public."
    elif label is not None:
        rows += f" The column {label.column.name} is randomised: true with chance {label.kept:.3g}."
    return {"data": rows, "projection": "The projection: encoded columns by components. Public."}
