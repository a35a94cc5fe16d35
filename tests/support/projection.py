"""Small tables, item sets and releases for the tests of DPPro and JL + Laplace."""

from dataclasses import dataclass, replace

import numpy as np

from adumbra import workflow
from adumbra.data.opening import open_source
from adumbra.data.sources import SetBatch
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant, replaying_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from support.methods import draw

PAIRS = {"row": (Unit.ROW, Neighbours.REPLACE_ONE), "element": (Unit.ELEMENT, Neighbours.ONE_ELEMENT)}


def numbers(d, unit="row"):
    """d numbers between -1 and 3."""
    kind, relation = PAIRS[unit]
    return Schema.numeric(d, -1.0, 3.0, unit=kind, neighbours=relation)


def mixed(unit="row"):
    """Two numbers, a category of four levels, a boolean."""
    kind, relation = PAIRS[unit]
    columns = (
        Column(name="a", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        Column(name="c", kind=Kind.CATEGORY, categories=("p", "q", "r", "s")),
        Column(name="b", kind=Kind.NUMBER, lower=-1.0, upper=1.0),
        Column(name="t", kind=Kind.BOOLEAN),
    )
    return Schema(columns=columns, unit=kind, neighbours=relation)


def items(width, unit="row"):
    """Sets over `width` items."""
    kind, relation = PAIRS[unit]
    return Schema(items=ItemSpec(upper=width - 1), unit=kind, neighbours=relation)


def set_batch(dense, start=0):
    """A 0/1 matrix as item sets."""
    dense = np.asarray(dense, dtype=bool)
    indptr = np.concatenate([[0], np.cumsum(dense.sum(axis=1))]).astype(np.int64)
    return SetBatch(start, indptr, np.nonzero(dense)[1].astype(np.int64), dense.shape[1])


@dataclass(frozen=True)
class SetSource:
    """Item sets in memory, as the mechanisms see them."""

    dense: np.ndarray
    schema: Schema

    @property
    def width(self):
        return self.dense.shape[1]

    def batches(self, rows, start=0, stop=None):
        for first in range(start, len(self.dense), rows):
            yield set_batch(self.dense[first : first + rows], first)

    def public_rows(self):
        return len(self.dense)

    def pin(self):
        return "memory"


def source_of(table, schema):
    """Arrays are opened as the product opens them; sets by the class above."""
    return (
        SetSource(np.asarray(table), schema) if schema.items is not None else open_source(table, schema)
    )


def draft_of(table, schema, config, *, grant=None, seed=0, engine=None):
    """The draft of a release with known noise."""
    return draw(source_of(table, schema), config, grant=grant, seed=seed, engine=engine)


def rows_of(draft):
    """The released rows as an array."""
    return np.concatenate([np.column_stack(batch.columns) for batch in draft.pending["data"].batches])


def released(table, schema, config, **options):
    draft = draft_of(table, schema, config, **options)
    return rows_of(draft), draft


def replayed_pairs(first, second, schema, config, seed=0):
    """Both exact values of every noise call on two neighbours, and whether the outputs agree."""
    record = NoiseRecord()
    planned = workflow.plan(config, schema)
    options = (seed, planned.guarantee, planned.purposes)
    before = rows_of(draft_of(first, schema, config, grant=recording_grant(record, *options)))
    after = rows_of(draft_of(second, schema, config, grant=replaying_grant(record, *options)))
    return record.pairs, np.array_equal(before, after)


def configs(unit, **options):
    """Every family of both mechanisms that the unit allows."""
    k = options.pop("n_components", 4)
    base = {"n_components": k, "epsilon": 1.0, **options}
    families = ("auto", "gaussian", "sphere", "rademacher", "sparse", "haar")
    made = [DPProConfig(delta=1e-6, family=family, **base) for family in families]
    made += [JLLaplaceConfig(family=family, **base) for family in families]
    return [replace(config, nonzeros=2) if config.family == "sparse" else config for config in made]
