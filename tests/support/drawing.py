"""The one adapter between the digests of releases and the insides of the package.

When internals move, this file changes and `tests/e2e/digests.json` does not.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from adumbra import workflow
from adumbra.audit.replay_kinds import kinds as replay_kinds
from adumbra.data.opening import open_source
from adumbra.data.sources import WatchedSource
from adumbra.matrices import FAMILIES
from adumbra.mechanisms.methods import METHODS
from adumbra.mechanisms.topk.config import Algorithm
from adumbra.numerics import Lattice
from adumbra.privacy import grant as grants
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant
from support.methods import draw, released

SEED = 20260  # of the known secret; every noise key derives from it
CONFIGS = tuple(method.config for method in METHODS)
# Options that are texts by type and one of a few words by rule.
WORDS = {
    "family": ("auto", *FAMILIES),
    "algorithm": tuple(map(str, Algorithm)),
    "numbers": ("auto", "bins", "scores"),
}
KEY_STRING = (grants, "_LABEL")  # where the string stands from which all noise keys derive


@dataclass(frozen=True)
class Drawn:
    """What left under one grant, and what its noise calls returned."""

    tables: dict[str, pa.Table]
    arrays: dict[str, np.ndarray]
    noise: dict[str, list[np.ndarray]]  # by purpose, in the order of blocks


def audited_kinds():
    """Name, schema and config of every kind of release that the audit replays."""
    return [(kind.name, kind.schema, kind.config()) for kind in replay_kinds()]


def draw_release(source, config, grant):
    """Every table and array of one release, drawn under a grant with a known secret."""
    draft = draw(source, config, grant=grant)
    tables = {name: released(draft, name) for name in (*draft.tables, *draft.pending)}
    noise: dict[str, list[np.ndarray]] = {}
    for (purpose, _), (_, output) in sorted(grant.record.calls.items()):
        noise.setdefault(purpose, []).append(_plain(output))
    return Drawn(tables, {name: np.asarray(one) for name, one in draft.arrays.items()}, noise)


def fixed_grant_for(schema, config):
    """A grant whose secret is a constant of these tests; NOT PRIVATE."""
    planned = workflow.plan(config, schema)
    return recording_grant(NoiseRecord(), SEED, planned.guarantee, planned.purposes)


def draw_file(path: Path, schema, config):
    """Open the rows of a file and release them under the fixed grant."""
    source = open_source(path, schema)
    closed = WatchedSource(source).schema  # as a release closes it
    return draw_release(source, config, fixed_grant_for(closed, config))


def _plain(output):
    """What a noise call returned, as one array: steps and exponent of a lattice, or chosen places."""
    if isinstance(output, Lattice):
        return np.append(np.asarray(output.units, np.int64).ravel(), output.exponent)
    return np.asarray(output)
