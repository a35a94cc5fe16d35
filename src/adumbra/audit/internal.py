"""Attack a finished release with the private rows in hand. NOT FOR RELEASE.

    members     the rows that the release was made from
    holdout     people of the same kind who were left out

The scores of `empirical`, with a shadow attack on the member who stands out most: the card's own method
and parameters run on tables with and without that member. Evidence, never a guarantee.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from adumbra.audit.empirical import Evidence, evidence, shadow_attack
from adumbra.audit.pairs import table_of
from adumbra.audit.recorder import DirectEngine
from adumbra.data.encode import Encoder
from adumbra.data.opening import open_source
from adumbra.data.sources import Batch
from adumbra.errors import Unsupported, require
from adumbra.mechanisms.base import Config
from adumbra.mechanisms.methods import method_of
from adumbra.numerics import NOISE_BLOCK, Array
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.release.artifact import Release
from adumbra.schema.schema import Schema

MOST_ROWS = 2_000  # of each table that distances are measured between
SHADOW_ROWS = 400


def attack_release(  # noqa: PLR0913 - a release and all that it is attacked with
    release: Release,
    data: object,
    holdout: object,
    schema: Schema,
    *,
    config: Config | None = None,
    shadows: int = 60,
) -> Evidence:
    """Score the attacks on one release; without its config the shadow attack is left out.

    So it is for persons of several rows: a shadow would have to be made by person.
    """
    plain = replace(
        schema.by_row(), label=None, rows=None
    )  # the declared rows are those of the members alone
    released = released_rows(release, plain)
    members, outsiders = _values(data, schema), _values(holdout, replace(schema, rows=None))
    encode = _encoding(plain)
    shadow = None
    if config is not None and shadows and schema.person is None:
        target = members[np.argmax(np.square(_standard(encode(members))).sum(axis=1))]
        population = outsiders[:SHADOW_ROWS]
        made = _shadows(config, schema, encode)
        shadow = (shadow_attack(made, target, population, shadows=shadows), shadows)
    return evidence(
        released[:MOST_ROWS],
        encode(members)[:MOST_ROWS],
        encode(outsiders)[:MOST_ROWS],
        shadow=shadow,
    )


def released_rows(release: Release, schema: Schema) -> Array:
    """The main table in the encoding of the schema; refused where it has other columns."""
    table = release.data
    derived = {one.name for one in schema.derived}
    if set(table.column_names) - derived != set(schema.names):
        raise Unsupported(
            "release: has other columns than the schema; only synthetic tables are attacked here"
        )
    return _encoding(schema)(_values(table, schema))


def facts(found: Evidence, card: Mapping[str, Any]) -> dict[str, object]:
    """What the internal page prints: each score beside what the guarantee allows at most."""
    attacker = card["guarantee"]["attacker"]
    most = 2.0 * float(attacker["success_at_most"]) - 1.0
    return {
        **found.to_dict(),
        "advantage_allowed": most,
        "title": card["about"]["title"],
        "method": card["method"]["name"],
        "sentence": card["guarantee"]["sentence"],
    }


def _values(data: object, schema: Schema) -> Array:
    """Rows as numbers and codes, the way a release reads them."""
    source = open_source(data, schema)
    parts = [block.values for block in source.batches(NOISE_BLOCK) if isinstance(block, Batch)]
    require(bool(parts), "data: holds no rows; give a table")
    return np.concatenate(parts)


def _encoding(schema: Schema) -> Callable[[Array], Array]:
    encoder = Encoder(replace(schema, label=None))
    return lambda values: np.ascontiguousarray(encoder.encode(Batch(0, values)))


def _standard(rows: Array) -> Array:
    return np.asarray((rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9))


def _shadows(
    config: Config, schema: Schema, encode: Callable[[Array], Array]
) -> Callable[[Array, int], Array]:
    """Releases of other tables by the same method; their noise is known, their rows are not kept."""
    plain = replace(schema.by_row(), label=None, rows=None)

    def release(values: Array, number: int) -> Array:
        rows = len(values) if schema.neighbours.rows_are_public else None
        declared = replace(schema, rows=rows)
        source = open_source(_arrow(declared, values), declared)
        method = method_of(config)
        settled = method.settle(config, source.schema)
        grant = fixed_grant(number, settled.plan.guarantee, settled.plan.purposes)
        draft = method.draw(settled, source, DirectEngine(), grant)
        return encode(_values(draft.table(), plain))

    return release


def _arrow(schema: Schema, values: Array) -> object:
    made = table_of(schema, values)
    return (
        made if isinstance(made, pa.Table) else pa.table(dict(zip(schema.names, values.T, strict=True)))
    )
