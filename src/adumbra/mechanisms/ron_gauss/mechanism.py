"""Gaussian models of randomly projected rows: RON-Gauss, with the calibration that is right.

    mean      sum of unit-ball rows, half their spread |clip(W^T x, r)|^2 / r^2, their count
    Gram      v = clip(W^T x - W^T mean, c) / c;   sum v v^T, beside class sums and class counts (`gmm`)
              or beside a target and an intercept (`supervised`)

W is a public Haar matrix (m x p), r its public Beta radius, c a multiple of the noisy spread. With
`centring="public"` the first is not bought: rows are centred by the middle of their declared bounds and
clipped at r. `rescale="normalise"` scales centred rows to length 1 before they are projected, as the
paper does, and buys no spread; else the clip after centring and the clip after projection are one.

Guarantee   pure epsilon (discrete Laplace, L1) or mu-GDP (rounded normal, L2); unit row, replace-one or
            add-remove; label changes included. Holds for any input.
Reference   Chanyaswad, Liu, Mittal: RON-Gauss, PoPETs 2019(1). Its Lemma 4 is false from p = 3 on
            and its mixture leaks labels: see the proof.
Proof       mechanism.proof.md, of `scales`, `draw_moments` and `release`.
Limits      What lies outside the p random directions is not modelled; `moments` keeps all columns.
"""

import math
from dataclasses import dataclass
from typing import Literal

from adumbra.data.schema import Schema
from adumbra.data.sources import Source
from adumbra.engine.base import Engine
from adumbra.errors import Unsupported, require
from adumbra.mechanisms.base import Draft, Plan, rows_of
from adumbra.mechanisms.fields import settle_fields
from adumbra.mechanisms.ron_gauss.choice import (
    best_components,
    best_covariance,
    mean_noise,
    noise_to_signal,
)
from adumbra.mechanisms.ron_gauss.draw import draw_moments
from adumbra.mechanisms.ron_gauss.model import facts, fit_model, model_arrays, synthesise
from adumbra.mechanisms.ron_gauss.scales import Budget, Scales, scales
from adumbra.mechanisms.ron_gauss.space import Space, space_of
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import gaussian, require_budget
from adumbra.relations import Unit

METHOD = "ron-gauss"
COLUMNS_SHARE = 0.3  # of the budget for the mean of all columns, as in the paper ...
DIRECTIONS_SHARE = 0.05  # ... or of the p directions alone, whose noise is smaller by about sqrt(p/m)

CHOICES = {
    "mode": ("unsupervised", "supervised", "gmm"),
    "centring": ("private", "public"),
    "covariance": ("auto", "class", "tied", "sphere"),
    "rescale": ("clip", "normalise"),
    "output": ("columns", "projected"),
}
COVARIANCES = {
    "class": "Each class has a covariance of its own.",
    "tied": "All classes share one covariance: their own would be mostly noise.",
    "sphere": "All classes share one variance in every direction: a covariance would be mostly noise.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RONGaussConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float
    delta: float = 0.0
    n_components: int | Literal["auto"] = "auto"  # p; auto follows the public rule of `best_components`
    mode: Literal["unsupervised", "supervised", "gmm"] = "unsupervised"
    centring: Literal["private", "public"] = "private"
    covariance: Literal["auto", "class", "tied", "sphere"] = (
        "auto"  # of a mixture: see `best_covariance`
    )
    rescale: Literal["clip", "normalise"] = "clip"  # after centring; normalise is the paper's step
    unit_rows: bool = False  # scale every row to length 1 first, as the paper does; loses magnitudes
    row_norm: float | None = (
        None  # longer encoded rows are scaled down to it; default: the schema's bound
    )
    mean_share: float | None = None  # of the budget (mu^2 or epsilon); default 0.3, projected 0.05
    clip_factor: float = 1.0  # centred rows are clipped at this times their noisy root mean square
    clip_tail: float = 1e-3  # expected share of rows that the projected radius shortens
    expected_rows: int | None = None  # a public guess of n for the plan, where the schema declares none
    synthetic_rows: int | None = None  # default: the public n, or a noisy one to 10^7
    output: Literal["columns", "projected"] = "columns"
    matrix_seed: int = 0
    sample_seed: int = 0

    def __post_init__(self) -> None:
        settle_fields(self)
        require_budget(self.epsilon, self.delta)
        require(
            self.n_components == "auto" or self.n_components >= 1,
            f"n_components={self.n_components}: must be auto or at least 1",
        )
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            require(value in choices, f"{name}={value}: must be one of {', '.join(choices)}")
        for name, value in (("mean_share", self.mean_share), ("clip_tail", self.clip_tail)):
            require(value is None or 0.0 < value < 1.0, f"{name}={value}: must lie between 0 and 1")
        require(
            0.0 < self.clip_factor <= 16.0,
            f"clip_factor={self.clip_factor}: must be above 0 and at most 16",
        )
        require(
            self.covariance != "sphere" or self.centring == "private",
            "covariance=sphere: needs the spread that centring=private buys",
        )
        for name in ("expected_rows", "synthetic_rows"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name}={value}: must be at least 1")
        require(self.matrix_seed >= 0, f"matrix_seed={self.matrix_seed}: must be 0 or above")
        require(self.sample_seed >= 0, f"sample_seed={self.sample_seed}: must be 0 or above")


def settle(config: RONGaussConfig, schema: Schema) -> tuple[Space, Scales]:
    """The public shape of the model and every noise scale, before anything is read."""
    if schema.unit is not Unit.ROW:
        raise Unsupported(f"unit={schema.unit}: RON-Gauss clips whole rows; declare unit='row'")
    space = space_of(
        schema,
        mode=config.mode,
        row_norm=config.row_norm,
        matrix_seed=config.matrix_seed,
        clip_tail=config.clip_tail,
        private_centring=config.centring == "private",
        unit_rows=config.unit_rows,
        normalise=config.rescale == "normalise",
        columns=config.output == "columns",
        clip_factor=config.clip_factor,
    )
    rows, budget = schema.rows or config.expected_rows, _budget(config, space)
    asked = None if config.n_components == "auto" else config.n_components
    if asked is None:
        require(
            rows is not None,
            "n_components=auto: needs the number of rows; declare rows, or give expected_rows",
        )
    if config.covariance != "auto":
        space = space.with_covariance(config.covariance)
    elif space.classes is not None:
        space = space.with_covariance(best_covariance(space, budget, rows, asked))
    space = space.with_components(asked or best_components(space, budget, rows or 1))
    return space, scales(space, budget)


def plan(config: RONGaussConfig, schema: Schema) -> Plan:
    """Cost, noise, and noise-to-signal over the dimension, from public numbers only."""
    space, settled = settle(config, schema)
    rows = schema.rows or config.expected_rows
    table: list[dict[str, float]] = []
    notes: list[str] = []
    expected: dict[str, float] = {"n_components": float(space.components)}
    if rows is not None:
        budget = _budget(config, space)
        gram = space.with_covariance("tied") if space.covariance == "sphere" else space
        for p in sorted({2, 4, 8, 16, 32, 64, 128, space.components}):
            if p < space.width:
                ratio = noise_to_signal(gram.with_components(p), budget, rows)
                table.append({"n_components": float(p), "noise_to_signal": ratio})
        expected["noise_to_signal"] = worst = noise_to_signal(gram, budget, rows)
        if space.classes is None:
            notes.append(
                f"Noise is {worst:.2g} of the signal (Frobenius norm, p={space.components}) "
                "if variance is spread evenly; real tables concentrate it."
            )
        else:
            worst = math.sqrt(space.components) * mean_noise(space, budget, rows)
            expected["class_mean_noise"] = worst
            notes.append(f"Noise moves the mean of an average class by {worst:.2g} of a centred row.")
        if worst > 1.0:
            notes.append("Noise would dominate: use fewer components, more rows or more budget.")
    if space.classes is not None:
        notes.append(COVARIANCES[space.covariance])
    if settled.isometric and not settled.pure:
        notes.append(
            "The Gram's noise is as stated on the diagonal and 1/sqrt(2) of it off the diagonal."
        )
    return Plan(
        method=METHOD,
        guarantee=gaussian(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=settled.purposes,
        noise=settled.noise,
        expected=expected,
        notes=tuple(notes),
        details={"components": space.components, "noise_to_signal_by_n_components": table},
    )


def release(source: Source, config: RONGaussConfig, *, engine: Engine, grant: Grant) -> Draft:
    """Draw the noisy moments, fit the model, sample synthetic rows; the grant was paid before."""
    space, settled = settle(config, source.schema)
    moments = draw_moments(source, space, settled, engine=engine, grant=grant)
    model = fit_model(space, settled, moments)
    rows = config.synthetic_rows or source.public_rows() or rows_of(model.count)
    table = synthesise(
        space, model, rows, seed=config.sample_seed, projected=config.output == "projected"
    )
    return Draft(tables={"data": table}, arrays=model_arrays(space, model), facts=facts(space, model))


def _budget(config: RONGaussConfig, space: Space) -> Budget:
    share = config.mean_share or (COLUMNS_SHARE if space.columns else DIRECTIONS_SHARE)
    return Budget(
        epsilon=config.epsilon,
        delta=config.delta,
        mean_share=share if space.private_centring else 0.0,
    )
