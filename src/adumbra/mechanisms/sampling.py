"""More rows from a published release of moments, for whoever holds it: no ledger, no charge."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from adumbra.errors import Unsupported, require
from adumbra.mechanisms.base import Noise
from adumbra.mechanisms.methods import config_of
from adumbra.mechanisms.moments.chosen import CHOICES, TABLES
from adumbra.mechanisms.moments.config import METHOD
from adumbra.mechanisms.moments.plan import MARGINALS, ONE_WAY, RADIUS, settle
from adumbra.mechanisms.moments.release import model_of
from adumbra.postprocess.moments.design import READING, RULES
from adumbra.postprocess.moments.sampling import synthesize_where
from adumbra.release.artifact import Release
from adumbra.release.formats import stored_schema

FIXED = (MARGINALS, RADIUS, ONE_WAY, CHOICES, TABLES)  # noise that is settled before a row is read


def sample(
    release: Release, n: int, *, where: Mapping[str, object] | None = None, sample_seed: int = 0
) -> pa.Table:
    """Draw synthetic rows from the noisy arrays of a release; it costs no budget.

    Parameters
    ----------
    release : a release of `moments`, as `load` gives it
    n : rows to draw
    where : conditions on declared columns, in the words of a schema's rules: `{"age": "<15"}`
    sample_seed : public seed; the same seed gives the same rows

    Returns
    -------
    Table of the release's own columns. Its rows meet all conditions.

    Raises
    ------
    InvalidInput, if a condition does not fit or hardly any row meets it; Unsupported for other methods,
    and for a release that was made by other rules than those of this version.
    """
    require(n >= 1, f"n={n}: must be at least 1")
    require(sample_seed >= 0, f"sample_seed={sample_seed}: must be 0 or above")
    method = release.card["method"]
    if method["name"] != METHOD:
        remedy = "use a release of moments"
        raise Unsupported(f"method={method['name']}: has no model to draw from; {remedy}")
    config = config_of(METHOD, method["config"])
    arrays = {name: np.asarray(value, np.float64) for name, value in release.arrays.items()}
    settled = settle(config, release.schema)
    _require_own_rules(release, settled.plan.noise)
    model = model_of(settled, arrays)
    made = synthesize_where(model, n, sample_seed, where)
    return made.cast(stored_schema(made.schema))


def _require_own_rules(release: Release, planned: Sequence[Noise]) -> None:
    """Refuse a release of other rules: its numbers would be read with noise that they do not have.

    The Gram's noise is not asked: it follows from the released histograms. But its rows were centred at
    the laws that were read from these, so the card names the rules of that reading.
    """
    drawn = {one["purpose"]: one["scale"] for one in release.card["mechanisms"]}
    own = {one.purpose: one.scale for one in planned if one.purpose in FIXED}
    is_own = own == {purpose: scale for purpose, scale in drawn.items() if purpose in FIXED}
    if not is_own or release.card["facts"].get(RULES) != READING:
        remedy = "use the version that its card names, or the rows of the release"
        raise Unsupported(f"release: was made by other rules than those of this version; {remedy}")
