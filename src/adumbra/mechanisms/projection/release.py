"""Release every row through a random projection, with noise: DPPro (Gaussian) and JL + Laplace.

DPPro       R (d x k) is drawn from a public seed, on the lattice 2^-20, and released.
JL          R is drawn from the grant's secret stream, used once and forgotten: it has no seed and is
            never written. That makes reconstruction harder and is not counted: the proof holds for
            every fixed R, as if it were public. (An attacker who knows some rows recovers R from a
            release; benchmarks/utility/projections.py.)

Guarantee   DPPro mu-GDP, JL pure epsilon; unit row with replace-one, or unit element with one-element
            (the number of rows is public in both). Holds for any input: rows and cells are bounded
            here, never assumed bounded.
Reference   Xu, Ren, Zhang, Qin, Ren: DPPro, IEEE TIFS 12(12), 2017; Kenthapadi, Korolova, Mironov,
            Mishra: Privacy via the Johnson-Lindenstrauss transform, J. Priv. Confidentiality 5(1), 2013.
            Dhaliwal, So, Parker-Wood, Beck: Utility preserving secure private data release, 2019; count-
            sketch rows instead of its Gaussian ones, so that the noise does not grow with k.
Proof       dppro.proof.md, of `draw_dppro`; jl_laplace.proof.md, of `draw_jl_laplace`.
Limits      One row is released with noise for one row: at small epsilon single distances are drowned
            (`plan` says so). A label is left out unless the config says how it leaves (labels.py).
"""

import pyarrow as pa

from adumbra.data.sources import Source
from adumbra.engine.base import Engine
from adumbra.mechanisms.base import Draft, Settled
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection.labels import released_label
from adumbra.mechanisms.projection.plan import (
    MATRIX,
    DPProParts,
    JLParts,
    calibrate_laplace_rows,
    secret_projection,
)
from adumbra.mechanisms.projection.rows import (
    PURPOSE,
    AnyBatch,
    arrow_schema,
    distance_model,
    exact_rows,
    noise_entry,
    record_batch,
    released_rows,
)
from adumbra.privacy.grant import Grant
from adumbra.privacy.handover import KeyedRows, Keys
from adumbra.privacy.noise import add_gaussian, add_laplace


def draw_dppro(
    settled: Settled[DPProConfig, DPProParts], source: Source, engine: Engine, grant: Grant
) -> Draft:
    """The noisy projected rows, drawn as they are written; the grant was paid before this is called."""
    config, parts = settled.config, settled.parts
    space, matrix, noise = parts.space, parts.matrix, parts.noise

    schema = arrow_schema(config.n_components, parts.label.field)

    def noisy_rows(batch: AnyBatch, keys: Keys) -> pa.RecordBatch:
        exact = exact_rows(batch, space, matrix, radius=parts.radius, exponent=noise.exponent)
        noisy = add_gaussian(exact, noise.scale, keys.key(PURPOSE, batch.noise_block))
        return record_batch(noisy, released_label(parts.label.label, space, batch, keys), schema)

    rows = KeyedRows(noisy_rows, grant, (PURPOSE, *parts.label.purposes))
    return Draft(
        pending={"data": released_rows(source, rows, schema, engine=engine)},
        arrays={"projection": matrix.to_float()},
        facts={
            "projection": "released as `projection` (d x k); the rows are encoded rows times it",
            "matrix_seed": config.matrix_seed,
            "encoded_columns": space.names,
            "distances": parts.model.to_facts(),
            **parts.label.facts,
        },
    )


def draw_jl_laplace(
    settled: Settled[JLLaplaceConfig, JLParts], source: Source, engine: Engine, grant: Grant
) -> Draft:
    """The noisy projected rows; the matrix is forgotten when the last row is written."""
    config, space, label = settled.config, settled.parts.space, settled.parts.label
    matrix = secret_projection(config, space, grant.key(MATRIX))
    noise = calibrate_laplace_rows(config, space, matrix)
    calibrated = noise.calibrated

    schema = arrow_schema(config.n_components, label.field)

    def noisy_rows(batch: AnyBatch, keys: Keys) -> pa.RecordBatch:
        exact = exact_rows(batch, space, matrix, radius=noise.radius, exponent=calibrated.exponent)
        noisy = add_laplace(exact, calibrated.scale, keys.key(PURPOSE, batch.noise_block))
        return record_batch(noisy, released_label(label.label, space, batch, keys), schema)

    rows = KeyedRows(noisy_rows, grant, (PURPOSE, *label.purposes))
    return Draft(
        pending={"data": released_rows(source, rows, schema, engine=engine)},
        noise=(noise_entry(calibrated, "laplace"), *label.entries),
        facts={
            "projection": "secret: drawn once, never written; the guarantee holds as if it were public",
            "distances": distance_model(space, matrix, noise.law, config.nonzeros).to_facts(),
            **label.facts,
        },
    )
