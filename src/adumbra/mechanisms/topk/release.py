"""Release the k most frequent columns of item sets, or of a table of truths.

Guarantee   pure epsilon (delta=0), or mu; unit row; add-remove, or replace-one with its own constants.
            Holds for any input: items outside the universe, repeats and empty rows are defined away.
Reference   Wang, Wang, Gu, Xu, Wei, Yu, IEEE Access 7, 2019; see methods.py and joint.py.
Proof       methods.proof.md, joint.proof.md, counting.proof.md, svt.proof.md.
Limits      counts of rows longer than the truncation length are too low; noise does not correct that.
"""

import numpy as np
import pyarrow as pa

from adumbra.data.sources import KeptSource, Source
from adumbra.engine.local import Engine
from adumbra.mechanisms.base import Draft, Settled
from adumbra.mechanisms.topk import methods
from adumbra.mechanisms.topk.config import Algorithm, Step, TopKConfig
from adumbra.mechanisms.topk.joint import joint
from adumbra.mechanisms.topk.methods import Chosen
from adumbra.mechanisms.topk.phases import Run
from adumbra.mechanisms.topk.plan import Parts, settled_noise
from adumbra.mechanisms.topk.zone import as_sets
from adumbra.numerics import Ints
from adumbra.privacy.grant import Grant
from adumbra.schema.schema import Schema

ALGORITHMS = {
    Algorithm.FREFIRST: methods.frefirst,
    Algorithm.EM: methods.em,
    Algorithm.GUMBEL: methods.gumbel,
    Algorithm.SVT: methods.svt,
    Algorithm.TPS_EM: methods.tps_em,
    Algorithm.TPS_PFM: methods.tps_pfm,
    Algorithm.TPS_REFINE: methods.tps_refine,
    Algorithm.JOINT: joint,
}


def draw(settled: Settled[TopKConfig, Parts], source: Source, engine: Engine, grant: Grant) -> Draft:
    """The table of the k columns in rank order; the grant was paid before this is called."""
    config, schema, names = settled.config, settled.schema, settled.parts.names
    items = _numbers(schema)
    chosen = ALGORITHMS[config.chosen](prepare_run(settled, source, engine, grant))
    tables = {"data": _table(chosen, chosen.columns, items, names)}
    if config.all_counts and chosen.counts is not None:
        tables["counts"] = _table(chosen, (-chosen.counts).argsort(kind="stable"), items, names)
    return Draft(
        tables=tables,
        noise=settled_noise(config, schema, chosen.counted, chosen.rounds),
        facts={"algorithm": config.chosen.value, **chosen.facts},
    )


def prepare_run(
    settled: Settled[TopKConfig, Parts], source: Source, engine: Engine, grant: Grant
) -> Run:
    """The settled steps on this source; small data are read once, whatever the passes."""
    config, budget = settled.config, settled.parts.budget
    source = as_sets(source)
    is_one_pass = Step.COUNTS not in budget or list(budget) == [Step.COUNTS]
    return Run(
        source=source if is_one_pass else KeptSource(source),
        engine=engine,
        grant=grant,
        reach=settled.schema.reach,
        width=source.width,
        k=config.k,
        length=config.length,
        longest=config.max_length,
        is_pure=config.is_pure,
        budget=budget,
    )


def _numbers(schema: Schema) -> Ints:
    """The public number of each column: listed ids, a range, or places in a table."""
    spec = schema.items
    ids = None if spec is None else spec.numbers()
    return np.arange(schema.width) + (0 if spec is None else spec.lower) if ids is None else ids


def _table(chosen: Chosen, columns: Ints, numbers: Ints, names: dict[int, str] | None) -> pa.Table:
    """Rank, item, its name if there is a dictionary, and its noisy count if there is one."""
    items = numbers[columns]
    fields: dict[str, pa.Array] = {
        "rank": pa.array(range(1, len(columns) + 1), pa.int64()),
        "item": pa.array(items, pa.int64()),
    }
    if names is not None:
        fields["name"] = pa.array([names.get(int(item)) for item in items], pa.string())
    if chosen.counts is not None and chosen.deviations is not None:
        fields["count"] = pa.array(chosen.counts[columns], pa.float64())
        fields["standard_error"] = pa.array(chosen.deviations[columns], pa.float64())
    return pa.table(fields)
