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
Proof       release.proof.md, of `scales`, `draw_moments` and `draw`.
Limits      What lies outside the p random directions is not modelled; `moments` keeps all columns.
"""

from adumbra.data.sources import Source
from adumbra.engine.local import Engine
from adumbra.mechanisms.base import Draft, Settled, rows_of
from adumbra.mechanisms.ron_gauss.config import RONGaussConfig
from adumbra.mechanisms.ron_gauss.plan import Parts
from adumbra.mechanisms.ron_gauss.sums import draw_moments
from adumbra.postprocess.ron_gauss.model import facts, fit_model, model_arrays, row_blocks
from adumbra.privacy.grant import Grant


def draw(settled: Settled[RONGaussConfig, Parts], source: Source, engine: Engine, grant: Grant) -> Draft:
    """Draw the noisy moments, fit the model, sample synthetic rows; the grant was paid before."""
    config, space, scales = settled.config, settled.parts.space, settled.parts.scales
    moments = draw_moments(source, space, scales, engine=engine, grant=grant)
    model = fit_model(space, scales.deviations(), moments)
    rows = config.synthetic_rows or settled.schema.rows or rows_of(model.count)
    blocks = row_blocks(
        space, model, rows, seed=config.sample_seed, projected=config.output == "projected"
    )
    draft = Draft(arrays=model_arrays(space, model), facts=facts(space, model))
    return draft.with_rows(blocks, rows)
