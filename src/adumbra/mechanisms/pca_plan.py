"""The public parameters of PCA publishing, and what its rows cost in error before anything is read.

Publishing k components adds noise to each row and saves the variance that they explain. Along any
direction the variance of box rows is at most a quarter of the squared range, and the range is what the
noise must hide. Hence k = 0 (the mean) has the smaller expected squared error, whatever the data:

    basis   Laplace: epsilon_rows < 2 sqrt2;   Gaussian: mu_rows < 2
    clip    Laplace: epsilon_rows < 2 sqrt2 c k;   Gaussian: mu_rows < 2 c sqrt(k);   c clip_deviations

Proof       pca.proof.md, section "The mean against rows".
"""

import math
from dataclasses import dataclass
from typing import Literal

from adumbra.data.encode import Encoder
from adumbra.errors import require
from adumbra.mechanisms.base import Noise
from adumbra.mechanisms.box_release import MomentNoise
from adumbra.mechanisms.fields import settle_fields
from adumbra.numerics import figure_upper, sqrt_upper
from adumbra.postprocess.spectrum import noise_edge
from adumbra.privacy.calibration import split_epsilon, split_mu
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.guarantee import require_budget
from adumbra.statistics.box_moments import Kind

ROOT8 = 2.0 * math.sqrt(2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PCAConfig:
    """Public parameters, all of them; the release's card prints each."""

    n_components: int  # k; 0 publishes the mean
    epsilon: float
    delta: float = 0.0
    output: Literal["rows", "sample"] = "rows"
    moments_share: float = 0.5  # of the budget (of mu^2, or of epsilon), where rows follow
    bound: Literal["auto", "basis", "clip"] = "auto"  # how a row's change is bounded; auto: less noise
    clip_deviations: float = 3.0  # clip radius in root mean squares of the k noisy variances
    shrink: bool = False  # pull noisy coordinates to the mean for the least squared error
    synthetic_rows: int | None = None  # output=sample; default: the public n, or a noisy one to 10^7
    sample_seed: int = 0

    def __post_init__(self) -> None:
        settle_fields(self)
        require(self.n_components >= 0, f"n_components={self.n_components}: must be 0 or above")
        require_budget(self.epsilon, self.delta)
        share = self.moments_share
        require(0.0 < share < 1.0, f"moments_share={share}: must lie between 0 and 1")
        wide = math.isfinite(self.clip_deviations) and self.clip_deviations > 0
        require(wide, f"clip_deviations={self.clip_deviations}: must be finite and above 0")
        rows = self.synthetic_rows
        require(rows is None or rows >= 1, f"synthetic_rows={rows}: must be at least 1")
        require(self.sample_seed >= 0, f"sample_seed={self.sample_seed}: must be 0 or above")

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace."""
        return self.delta == 0

    @property
    def noisy_rows(self) -> bool:
        """Whether any budget goes to rows."""
        return self.output == "rows" and self.n_components > 0


def budget_parts(config: PCAConfig) -> tuple[float, float]:
    """Epsilon (pure) or mu of the moments and of the rows; 0 for rows that carry nothing."""
    whole = config.epsilon if config.pure else mu_of(config.epsilon, config.delta)
    if not config.noisy_rows:
        return whole, 0.0
    shares = (config.moments_share, 1.0 - config.moments_share)
    moments, rows = (split_epsilon if config.pure else split_mu)(whole, shares)
    return moments, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentExpectations:
    """Errors of the mean and of the directions, and sentences about them."""

    expected: dict[str, float]
    notes: tuple[str, ...]


def moment_expectations(
    config: PCAConfig, encoder: Encoder, noise: MomentNoise, rows: int | None
) -> MomentExpectations:
    """How wrong mean, second moments and directions will be, for a public number of rows."""
    if rows is None:
        known = "declare rows in the schema, or plan with --data, to see them"
        remedy = known if noise.neighbours.rows_are_public else "how many there are is private here"
        return MomentExpectations(expected={}, notes=(f"Errors fall as 1 / rows; {remedy}.",))
    mean, product = noise.deviation(Kind.TOTAL) / rows, noise.deviation(Kind.CROSS) / rows
    edge, limit, k = noise_edge(product, encoder.width), variance_limit(encoder), config.n_components
    off = f"The mean of each column is off by about {mean:.2g}, each second moment of two columns by "
    notes = [f"{off}{product:.2g} (standard deviations; columns scaled to width 1)."]
    if k > 0:
        clear = min(k, int(limit / edge))
        notes.append(
            f"Directions with less variance than {edge:.2g} drown in noise; all columns together have "
            f"{figure_upper(limit, 3)} at most, so that {clear} of {k} can stand out."
        )
    if k > 0 and clear == 0:
        notes.append("Directions would be noise alone: more rows, fewer columns or more budget.")
    expected = {"mean_error": mean, "second_moment_error": product, "spectral_edge": edge}
    return MomentExpectations(expected=expected, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowExpectations:
    """Errors of rows over k, and sentences about them."""

    worst: Noise
    expected: dict[str, float]
    notes: tuple[str, ...]
    table: list[dict[str, float]]


def variance_limit(encoder: Encoder) -> float:
    """The largest total variance of encoded rows: 1/4 a number, 1 - 1/levels a category."""
    levels = (group.stop - group.start for group in encoder.groups)
    return float(len(encoder.numeric) / 4.0 + sum(1.0 - 1.0 / level for level in levels))


def noise_of_rows(
    encoder: Encoder, components: int, amount: float, *, pure: bool
) -> tuple[float, float]:
    """Scale and squared error a row at the worst basis: a row moves by sqrt(p1 + 2 p2) in L2 at most."""
    # the basis is orthonormal up to its rounding to 2^-20
    longest = sqrt_upper(len(encoder.numeric) + 2.0 * len(encoder.groups)) * (1.0 + 2.0**-12)
    scale = longest * (math.sqrt(components) if pure else 1.0) / amount
    return scale, components * scale**2 * (2.0 if pure else 1.0)


def mean_is_better(config: PCAConfig) -> bool:
    """Whether k = 0 has a smaller expected squared error than the config's k, whatever the data."""
    amount, k = budget_parts(config)[1], config.n_components
    by_basis = amount < (ROOT8 if config.pure else 2.0)
    clip = config.clip_deviations
    by_clip = amount < (ROOT8 * clip * k if config.pure else 2.0 * clip * math.sqrt(k))
    return {"basis": by_basis, "clip": by_clip, "auto": by_basis and by_clip}[config.bound]


def row_expectations(config: PCAConfig, encoder: Encoder) -> RowExpectations:
    """Errors of rows at the worst basis, beside those of the mean."""
    amount, limit, k = budget_parts(config)[1], variance_limit(encoder), config.n_components
    scale, error = noise_of_rows(encoder, k, amount, pure=config.pure)
    spent = f"{'epsilon' if config.pure else 'mu'}={figure_upper(amount, 3)}"
    most, added = figure_upper(limit, 3), figure_upper(error, 3)
    mean = f"The mean (k=0) has a squared error of at most {most} per row, averaged over rows;"
    notes = [f"{mean} k={k} adds noise with an expected squared length of at most {added} per row."]
    if config.shrink:
        notes.append("Rows are shrunk towards the mean, which bounds their error by the variance.")
    elif mean_is_better(config):
        threshold = f"epsilon={ROOT8:.3g}" if config.pure else "mu=2"
        notes += [
            f"At {spent} for rows k=0 has the smaller expected error, whatever the data.",
            f"So it is for every k below {threshold}; shrink, sample or LDA keep more.",
        ]
    else:
        notes.append(f"At {spent} for rows it depends on the data whether k=0 is better.")
    ladder = sorted({1, 2, 5, 10, k} & set(range(1, encoder.width + 1)))
    table = [
        {
            "n_components": float(one),
            "squared_noise": noise_of_rows(encoder, one, amount, pure=config.pure)[1],
        }
        for one in ladder
    ]
    worst = Noise(
        purpose="rows",
        distribution="laplace" if config.pure else "gaussian",
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
