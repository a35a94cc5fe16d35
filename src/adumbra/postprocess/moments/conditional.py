"""Rows of a released model under conditions: drawn, finished by the rules, and kept where they match.

No private row is read, so it costs nothing.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from adumbra.errors import InvalidInput, require
from adumbra.postprocess.moments.model import MomentsModel, synthesize
from adumbra.postprocess.rules import matching
from adumbra.schema.conditions import compile_condition, read_conditions

STEP = 2**15  # rows drawn at once
MOST_DRAWN = 2**22  # rows drawn for one sample


def synthesize_where(
    model: MomentsModel, rows: int, seed: int, where: Mapping[str, object] | None
) -> pa.Table:
    """So many synthetic rows that meet all conditions; raises InvalidInput where hardly any does."""
    if not where:
        return synthesize(model, rows, seed)
    schema = model.schema
    require(schema.items is None, "where: item sets have no columns; leave it out")
    columns = {column.name: column for column in schema.columns}
    conditions = read_conditions(where)
    unknown = [name for name, _ in conditions if name not in columns]
    require(not unknown, f"where: {unknown[:1]} is not a declared column of the release")
    taken = [compile_condition(condition, columns[name]) for name, condition in conditions]
    for one in taken:
        require(not one.is_empty, f"where: no value of {one.column!r} meets the condition")
    kept: list[pa.Table] = []
    found = drawn = 0
    while found < rows and drawn < MOST_DRAWN:
        step = synthesize(model, STEP, int(np.random.SeedSequence([seed, drawn]).generate_state(1)[0]))
        chosen = step.filter(pa.array(matching(schema, step, taken)))
        kept.append(chosen)
        found, drawn = found + chosen.num_rows, drawn + STEP
    if found < rows:
        rule = f"{found} of {drawn:,} rows that were drawn meet the conditions, and {rows} are wanted"
        raise InvalidInput(f"where: {rule}; loosen them or ask for fewer rows")
    return pa.concat_tables(kept).slice(0, rows)
