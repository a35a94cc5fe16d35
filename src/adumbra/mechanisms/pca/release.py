"""Publish every row through its leading private directions, in the input's order and columns.

    1  sums and second moments, jointly, with noise (`box_release`)             a share of the budget
    2  mean, top-k directions U of the noisy covariance: post-processing
    3  (x - mean) U + noise for each row, at the exact sensitivity of U or clipped at a radius: the rest
    4  mean + noisy U^T, categories by the largest value of their group, numbers within their bounds

With `output="sample"` all goes to 1 and rows are drawn from the synopsis N(mean, U V U^T).

Guarantee   pure epsilon (discrete Laplace) or mu-GDP (rounded normal); unit row; replace-one, and for a
            sample add-remove too. Holds for any input.
Reference   Jiang, Ji, Wang, Mohammed, Cheng, Ohno-Machado: Differential-private data publishing through
            component analysis, Trans. Data Privacy 6, 2013. Its sensitivity for categories is too small.
Proof       release.proof.md, of `calibrate_rows` and `draw`; box_release.proof.md, of the moments.
Limits      One row is released with noise for one row: below an epsilon that `plan` prints, publishing
            the mean alone (n_components=0) has the smaller error.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from adumbra.data.sources import Source
from adumbra.engine.local import Engine
from adumbra.mechanisms.base import Draft, Noise, Settled, rows_of
from adumbra.mechanisms.box_release import MomentParts, NoisyMoments, box_limits, draw_moments
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.mechanisms.pca.rows import calibrate_rows, row_function
from adumbra.postprocess.decode import block_sizes, decode_rows, table_schema
from adumbra.postprocess.subspace import Subspace, leading_subspace, sample_subspace
from adumbra.privacy.grant import Grant
from adumbra.release.formats import TableStream
from adumbra.schema.layout import Layout
from adumbra.statistics.box_moments import BoxShape


def find_subspace(config: PCAConfig, shape: BoxShape, noisy: NoisyMoments) -> Subspace:
    """The mean inside its box and the leading directions: post-processing."""
    width, (low, high) = shape.width, box_limits(shape)
    mean = np.clip(noisy.matrix[:width, width] / noisy.rows, low, high)
    return leading_subspace(mean, noisy.matrix[:width, :width] / noisy.rows, config.n_components)


def draw(
    settled: Settled[PCAConfig, MomentParts], source: Source, engine: Engine, grant: Grant
) -> Draft:
    """Draw the moments, then stream the rows (or sample them); the grant was paid before."""
    config, encoder, noise = settled.config, settled.parts.encoder, settled.parts.noise
    noisy = draw_moments(source, encoder, noise, engine=engine, grant=grant)
    shape = noise.statistic.shape
    found = find_subspace(config, shape, noisy)
    entries: tuple[Noise, ...] = (noise.entry(),)
    blocks: Iterator[pa.Table] | None = None
    pending: dict[str, TableStream] = {}
    rows = round(noisy.rows)
    if config.output == "sample":
        rows = config.synthetic_rows or rows_of(noisy.rows)
        blocks = _synthetic(encoder, found, rows, config.sample_seed)
    elif len(found.variances) == 0:  # every row is the mean
        blocks = _synthetic(encoder, found, rows, config.sample_seed)
    else:
        rows_noise = calibrate_rows(config, shape, found)
        found = Subspace(found.mean, rows_noise.basis.to_float(), found.variances)
        function = row_function(config, encoder, shape, found, rows_noise, grant)
        made: Iterator[pa.RecordBatch] = engine.map_blocks(source, function, stage="noisy rows")
        entries = (*entries, rows_noise.entry())
        pending["data"] = TableStream(schema=table_schema(encoder), batches=made)
    draft = Draft(
        pending=pending,
        arrays={
            "mean": found.mean,
            "components": np.ascontiguousarray(found.directions.T),
            "variances": found.variances,
            "noisy_sums": noisy.matrix,
            "rows": np.array([noisy.rows]),
        },
        noise=(*entries, *noise.other_entries()),
        facts={
            "encoded_columns": list(encoder.names),
            "components_found": len(found.variances),
            "rows": _row_fact(config, found),
        },
    )
    return draft if blocks is None else draft.with_rows(blocks, rows)


def _row_fact(config: PCAConfig, found: Subspace) -> str:
    """What a row is; where no direction has variance, there is nothing in it but the mean."""
    if config.output == "sample":
        return "synthetic"
    return "one for each input row, in its order" if len(found.variances) else "each is the noisy mean"


def _synthetic(layout: Layout, found: Subspace, rows: int, seed: int) -> Iterator[pa.Table]:
    """Rows of the synopsis, block by block from one public generator."""
    rng = np.random.default_rng(seed)
    for size in block_sizes(rows, layout.width):
        yield decode_rows(layout, sample_subspace(found, size, rng))
