"""Publish rows that keep what linear discriminant analysis sees: class means and a pooled covariance.

    1  class sums, class counts and the pooled second moment, jointly, with noise (`box_release`)
    2  means = sums / counts; covariance shrunk by its noise, eigenvalues lifted to a part of its edge
    3  synthetic rows whose moments follow these (`postprocess.greedy`), in the schema's own columns

Guarantee   pure epsilon (discrete Laplace, L1) or mu-GDP (rounded normal, L2); unit row, replace-one or
            add-remove; a change of the class is included. Holds for any input.
Reference   Jiang, Ji, Wang, Mohammed, Cheng, Ohno-Machado: Differential-private data publishing through
            component analysis, Trans. Data Privacy 6, 2013. Its sensitivity for categories is too small
            and it divides by exact class sizes: see the proof.
Proof       box_release.proof.md, of the noisy moments; 2 and 3 are post-processing.
Limits      Rows carry two moments and nothing else of the data; one covariance serves all classes.
"""

from dataclasses import dataclass
from typing import get_args

import numpy as np

from adumbra.data.encode import Encoder
from adumbra.data.schema import Schema
from adumbra.data.sources import Source
from adumbra.engine.base import Engine
from adumbra.errors import require
from adumbra.mechanisms.base import Draft, Plan, rows_of
from adumbra.mechanisms.box_release import (
    PURPOSE,
    MomentNoise,
    box_limits,
    calibrate_moments,
    draw_moments,
    require_rows_unit,
)
from adumbra.mechanisms.fields import settle_fields
from adumbra.postprocess.decode import decode_rows
from adumbra.postprocess.greedy import Loss, Targets, greedy_rows
from adumbra.postprocess.spectrum import noise_edge
from adumbra.postprocess.subspace import ClassMoments, class_moments
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import gaussian, require_budget
from adumbra.statistics.box_moments import Kind

METHOD = "lda"


@dataclass(frozen=True, slots=True, kw_only=True)
class LDAConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float
    delta: float = 0.0
    synthetic_rows: int | None = None  # default: the public n, or a noisy one to 10^7
    loss: Loss = "squared"  # of the sampler; absolute is the paper's
    floor: float = 0.25  # least eigenvalue of the covariance, in spectral edges of the noise
    expected_rows: int | None = None  # a public guess of n for the plan, where the schema declares none

    def __post_init__(self) -> None:
        settle_fields(self)
        require_budget(self.epsilon, self.delta)
        known = get_args(Loss)
        require(self.loss in known, f"loss={self.loss!r}: must be one of {', '.join(known)}")
        require(0.0 <= self.floor <= 10.0, f"floor={self.floor}: must lie between 0 and 10")
        for name in ("synthetic_rows", "expected_rows"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name}={value}: must be at least 1")


def settle(config: LDAConfig, schema: Schema) -> tuple[Encoder, MomentNoise]:
    """The public encoding and the noise of the moments; refuses what has no proof."""
    require_rows_unit(schema, "LDA publishing")
    require(schema.label is not None, "label is absent: LDA needs classes; declare one in [table]")
    schema.require_filled("LDA publishing")
    encoder = Encoder(schema)
    pure = config.delta == 0
    amount = config.epsilon if pure else mu_of(config.epsilon, config.delta)
    noise = calibrate_moments(schema, encoder, amount, pure=pure, classes=encoder.label_levels)
    return encoder, noise


def plan(config: LDAConfig, schema: Schema) -> Plan:
    """Cost, noise, and the error of class means and of the covariance, from public numbers only."""
    _, noise = settle(config, schema)
    shape, rows = noise.statistic.shape, schema.rows or config.expected_rows
    notes, expected = [], {}
    if rows is not None:
        total, product = noise.deviation(Kind.TOTAL), noise.deviation(Kind.CROSS)
        edge = noise_edge(product, shape.width) / rows
        expected = {
            "class_mean_error": total * shape.classes / rows,
            "second_moment_error": product / rows,
            "spectral_edge": edge,
        }
        notes.append(
            f"Class means are off by about {expected['class_mean_error']:.2g} in each column if classes "
            "are of equal size, in proportion more in smaller ones; each second moment of two columns "
            f"by {expected['second_moment_error']:.2g} (standard deviations; columns scaled to width 1)."
        )
        if edge > 0.25:  # no column of the box has a larger variance
            notes.append("The covariance would be noise alone: more rows, fewer columns or more budget.")
    return Plan(
        method=METHOD,
        guarantee=gaussian(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=(PURPOSE,),
        noise=(noise.entry(), *noise.other_entries()),
        expected=expected,
        notes=tuple(notes),
        details={"encoded_columns": shape.width, "classes": shape.classes},
    )


def release(source: Source, config: LDAConfig, *, engine: Engine, grant: Grant) -> Draft:
    """Draw the noisy moments and sample rows that follow them; the grant was paid before."""
    encoder, noise = settle(config, source.schema)
    noisy = draw_moments(source, encoder, noise, engine=engine, grant=grant)
    shape = noise.statistic.shape
    sigma = noise.deviation(Kind.CROSS)
    spectrum = noise_edge(sigma, shape.width) / noisy.rows
    edge = config.floor * spectrum
    low, high = box_limits(shape)
    moments = class_moments(noisy.matrix, noisy.rows, low, high, sigma=sigma, edge=edge)
    rows = config.synthetic_rows or rows_of(noisy.rows)
    encoded, labels = greedy_rows(greedy_targets(moments, encoder), rows, loss=config.loss)
    return Draft(
        tables={"data": decode_rows(encoder, encoded, labels=labels)},
        arrays={
            "class_shares": moments.shares,
            "class_means": moments.means,
            "second_moment": moments.second,
            "noisy_sums": noisy.matrix,
            "rows": np.array([noisy.rows]),
        },
        facts={
            "encoded_columns": list(encoder.names),
            "classes": shape.classes,
            "synthetic": "rows follow the released moments; they are not people",
            "spectral_edge": edge,
        },
    )


def greedy_targets(moments: ClassMoments, encoder: Encoder) -> Targets:
    """What the sampler is to reproduce."""
    return Targets(moments.shares, moments.means, moments.second, encoder.numeric, encoder.groups)
