"""What the rows of PCA publishing cost in error, before anything is read.

Publishing k components adds noise to each row and saves the variance that they explain. Along any
direction the variance of box rows is at most a quarter of the squared range, and the range is what the
noise must hide. Hence k = 0 (the mean) has the smaller expected squared error, with a basis whatever the
data, with a clip if the released variances are those of the data:

    basis   Laplace: epsilon_rows < 2 sqrt2;   Gaussian: mu_rows < 2
    clip    Laplace: epsilon_rows < 2 sqrt2 c k;   Gaussian: mu_rows < 2 c sqrt(k);   c clip_deviations

Proof       release.proof.md, section "The mean against rows".
"""

import math
from dataclasses import dataclass

from adumbra.mechanisms.base import Noise
from adumbra.mechanisms.box_release import MomentNoise
from adumbra.mechanisms.pca.config import PCAConfig, budget_parts
from adumbra.mechanisms.pca.rows import require_rows_drawn, rounded_to_noise
from adumbra.mechanisms.projection.rows import EXACT_EXPONENT, ROUNDED_BITS
from adumbra.numerics import figure_lower, figure_upper, sqrt_upper
from adumbra.postprocess.matrices import noise_edge
from adumbra.schema.layout import Layout
from adumbra.statistics.box_moments import Kind

ROOT8 = 2.0 * math.sqrt(2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentExpectations:
    """Errors of the mean and of the directions, and sentences about them."""

    expected: dict[str, float]
    notes: tuple[str, ...]


def moment_expectations(
    config: PCAConfig, layout: Layout, noise: MomentNoise, rows: int | None
) -> MomentExpectations:
    """How wrong mean, second moments and directions will be, for a public number of rows."""
    if rows is None:
        known = "declare rows in the schema, or plan with --data, to see them"
        remedy = known if noise.neighbours.rows_are_public else "how many there are is private here"
        return MomentExpectations(expected={}, notes=(f"Errors fall as 1 / rows; {remedy}.",))
    mean, product = noise.deviation(Kind.TOTAL) / rows, noise.deviation(Kind.CROSS) / rows
    edge, limit, k = noise_edge(product, layout.width), variance_limit(layout), config.n_components
    off = f"The mean of each column is off by about {mean:.2g}, each second moment of two columns by "
    notes = [f"{off}{product:.2g} (standard deviations; columns scaled to width 1)."]
    if k > 0:
        clear = min(k, int(limit / edge))
        notes.append(
            f"Directions with less variance than {edge:.2g} are lost in noise; all columns have "
            f"{figure_upper(limit, 3)} at most, so that at most {clear} of {k} can be found."
        )
    if k > 0 and clear == 0:
        notes.append("Directions would be noise alone: use more rows, fewer columns or more budget.")
    expected = {"mean_error": mean, "second_moment_error": product, "spectral_edge": edge}
    return MomentExpectations(expected=expected, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowExpectations:
    """Errors of rows over k, and sentences about them."""

    worst: Noise
    expected: dict[str, float]
    notes: tuple[str, ...]
    table: list[dict[str, float]]


def variance_limit(layout: Layout) -> float:
    """The largest total variance of encoded rows: 1/4 a number, 1 - 1/levels a category."""
    levels = (group.stop - group.start for group in layout.groups)
    return float(len(layout.numeric) / 4.0 + sum(1.0 - 1.0 / level for level in levels))


def noise_of_rows(
    layout: Layout, components: int, amount: float, *, is_pure: bool
) -> tuple[float, float]:
    """Scale and squared error of a row at the worst basis: it moves by sqrt(p1 + 2 p2) in L2 at most."""
    # the basis is orthonormal up to its rounding to 2^-20
    longest = sqrt_upper(len(layout.numeric) + 2.0 * len(layout.groups)) * (1.0 + 2.0**-12)
    change = longest * (math.sqrt(components) if is_pure else 1.0)
    calibrate, rounding = rounded_to_noise(components, is_pure=is_pure)
    scale = calibrate(
        change, amount, exponent=EXACT_EXPONENT, rounding=rounding, bits=ROUNDED_BITS
    ).scale
    return scale, components * scale**2 * (2.0 if is_pure else 1.0)


def mean_is_better(config: PCAConfig) -> bool:
    """Whether k = 0 has a smaller expected squared error than the config's k, without `shrink`.

    With a basis whatever the data; with a clip if the released variances are those of the data.
    """
    amount, k = budget_parts(config)[1], config.n_components
    by_basis = amount < (ROOT8 if config.is_pure else 2.0)
    clip = config.clip_deviations
    by_clip = amount < (ROOT8 * clip * k if config.is_pure else 2.0 * clip * math.sqrt(k))
    return {"basis": by_basis, "clip": by_clip, "auto": by_basis and by_clip}[config.bound]


def _proviso(config: PCAConfig) -> str:
    """Of which data the note on the mean is true."""
    return (
        "whatever the data" if config.bound == "basis" else "if the released variances are about right"
    )


def _threshold(config: PCAConfig) -> str:
    """The budget of rows below which the mean is better for every k from 1 on, rounded down."""
    name, basis = ("epsilon", ROOT8) if config.is_pure else ("mu", 2.0)
    clip = basis * config.clip_deviations
    least = {"basis": basis, "clip": clip, "auto": min(basis, clip)}[config.bound]
    return f"{name}={figure_lower(least, 3)}"


def row_expectations(config: PCAConfig, layout: Layout) -> RowExpectations:
    """Errors of rows at the worst basis, beside those of the mean; refuses too small a budget."""
    amount, limit, k = budget_parts(config)[1], variance_limit(layout), config.n_components
    require_rows_drawn(config)
    scale, error = noise_of_rows(layout, k, amount, is_pure=config.is_pure)
    spent = f"{'epsilon' if config.is_pure else 'mu'}={figure_upper(amount, 3)}"
    most, added = figure_upper(limit, 3), figure_upper(error, 3)
    mean = f"The mean (k=0) has a squared error of at most {most} per row, averaged over rows;"
    notes = [f"{mean} k={k} adds noise with an expected squared length of at most {added} per row."]
    if config.shrink:
        notes.append("Rows are shrunk towards the mean, which bounds their error by the variance.")
    elif mean_is_better(config):
        notes += [
            f"At {spent} for rows k=0 has the smaller expected error, {_proviso(config)}.",
            f"The same holds for every k below {_threshold(config)}; shrink, sample or LDA keep more.",
        ]
    else:
        notes.append(f"At {spent} for rows it depends on the data whether k=0 is better.")
    ladder = sorted({1, 2, 5, 10, k} & set(range(1, layout.width + 1)))
    table = [
        {
            "n_components": float(one),
            "squared_noise": noise_of_rows(layout, one, amount, is_pure=config.is_pure)[1],
        }
        for one in ladder
    ]
    worst = Noise(
        purpose="rows",
        distribution="laplace" if config.is_pure else "gaussian",
        scale=scale,
        sensitivity=scale * amount,
        grid=0.0,
    )
    return RowExpectations(
        worst=worst,
        expected={"squared_error_of_mean_at_most": limit, "squared_noise_of_rows_at_most": error},
        notes=tuple(notes),
        table=table,
    )
