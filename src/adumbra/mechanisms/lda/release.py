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

import numpy as np

from adumbra.data.sources import Source
from adumbra.engine.local import Engine
from adumbra.mechanisms.base import Draft, Settled, rows_of
from adumbra.mechanisms.box_release import MomentParts, box_limits, draw_moments
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.postprocess.decode import decode_rows
from adumbra.postprocess.greedy import Targets, greedy_blocks, most_rows
from adumbra.postprocess.matrices import noise_edge
from adumbra.postprocess.subspace import ClassMoments, class_moments
from adumbra.privacy.grant import Grant
from adumbra.schema.layout import Layout
from adumbra.statistics.box_moments import Kind


def draw(
    settled: Settled[LDAConfig, MomentParts], source: Source, engine: Engine, grant: Grant
) -> Draft:
    """Draw the noisy moments and sample rows that follow them; the grant was paid before."""
    config, encoder, noise = settled.config, settled.parts.encoder, settled.parts.noise
    noisy = draw_moments(source, encoder, noise, engine=engine, grant=grant)
    shape = noise.statistic.shape
    sigma = noise.deviation(Kind.CROSS)
    spectrum = noise_edge(sigma, shape.width) / noisy.rows
    edge = config.floor * spectrum
    low, high = box_limits(shape)
    moments = class_moments(noisy.matrix, noisy.rows, low, high, sigma=sigma, edge=edge)
    rows = config.synthetic_rows or min(rows_of(noisy.rows), most_rows(shape.width))
    blocks = greedy_blocks(greedy_targets(moments, encoder), rows, loss=config.loss)
    draft = Draft(
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
    return draft.with_rows((decode_rows(encoder, y, labels=codes) for y, codes in blocks), rows)


def greedy_targets(moments: ClassMoments, layout: Layout) -> Targets:
    """What the sampler is to reproduce."""
    return Targets(moments.shares, moments.means, moments.second, layout.numeric, layout.groups)
