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
Proof       dppro.proof.md, of `draw_dppro`; jl_laplace.proof.md, of `draw_jl_laplace`; rows.proof.md, of
            `exact_rows`.
Limits      One row is released with noise for one row: at small epsilon single distances are drowned
            (`plan` says so). A label is left out unless the config says how it leaves (labels.py).
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa

from adumbra.data.bounds import clip_projected
from adumbra.data.sources import Batch, Source
from adumbra.engine.local import Engine
from adumbra.matrices import ProjectionMatrix
from adumbra.mechanisms.base import Draft, Published, Settled
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
    EXACT_EXPONENT,
    PURPOSE,
    AnyBatch,
    RowSpace,
    column_names,
    distance_model,
)
from adumbra.numerics import Array, Ints, Lattice, coarsen
from adumbra.postprocess.decode import plain_array
from adumbra.postprocess.pictures import Curve, Pictures
from adumbra.privacy.grant import Grant, KeyedRows, Keys
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.release.formats import TableStream


def arrow_schema(n_components: int, label: pa.Field | None = None) -> pa.Schema:
    """Released rows: one float64 column per component, then the label where it leaves."""
    fields = [pa.field(name, pa.float64(), nullable=False) for name in column_names(n_components)]
    return pa.schema(fields if label is None else [*fields, label])


def released_rows(
    source: Source,
    noisy_rows: KeyedRows[AnyBatch, pa.RecordBatch],
    schema: pa.Schema,
    *,
    engine: Engine,
) -> TableStream:
    """Noisy rows, drawn block by block while they are written."""
    function: Callable[[Batch], pa.RecordBatch] = noisy_rows
    return TableStream(schema=schema, batches=engine.map_blocks(source, function, stage="noisy rows"))


def record_batch(noisy: Lattice, label: pa.Array | None, schema: pa.Schema) -> pa.RecordBatch:
    """A noisy block as it is written, and its label where that leaves."""
    values = noisy.to_float(order="F")  # column by column, as it is written
    rows = len(values)
    whole = plain_array(values.reshape(-1, order="F"))  # Arrow checks it once, not once per column
    columns = [whole.slice(j * rows, rows) for j in range(values.shape[1])]
    return pa.RecordBatch.from_arrays(columns if label is None else [*columns, label], schema=schema)


def exact_lattice(exact: Array, exponent: int) -> Lattice:
    """The exact product, rounded to 2**exponent where that is coarser than its own grid."""
    units: Ints = exact.astype(np.int64, order="C")  # row by row, as noise goes through it
    return coarsen(Lattice(units, EXACT_EXPONENT), exponent)


def exact_rows(
    batch: AnyBatch, space: RowSpace, matrix: ProjectionMatrix, *, radius: float | None, exponent: int
) -> Lattice:
    """The private value of one block, on the grid of its noise; clipped to a radius if there is one."""
    product = space.exact(batch, matrix)
    if radius is None:
        return exact_lattice(product, exponent)
    return coarsen(clip_projected(product, EXACT_EXPONENT, radius), exponent)


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
        noise=(calibrated.entry(PURPOSE, is_pure=True), *label.entries),
        facts={
            "projection": "secret: drawn once, never written; the guarantee holds as if it were public",
            "distances": distance_model(space, matrix, noise.law, config.nonzeros).to_facts(),
            **label.facts,
        },
    )


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
