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
