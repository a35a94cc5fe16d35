"""Exact cells of a small table, and the answers that noise of a known size leaves."""

import math

import numpy as np

from adumbra.answers.reading import assemble, split
from adumbra.data.sources import open_source
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.moments.release import cell_block
from support.methods import settled_on


class ExactCells:
    """The exact histograms of a table, as `moments` counts them, to which a test adds noise."""

    def __init__(self, data, schema, **options):
        source = open_source(data, schema)
        self.settled = settled_on(source, MomentsConfig(epsilon=1.0, **options))
        self.schema, self.design = self.settled.schema, self.settled.parts.design
        label = self.design.label
        lower = self.schema.columns[label].limits[0] if label is not None else 0.0
        (batch,) = list(source.batches(10**6))
        places = cell_block(batch, self.design, lower).places
        self.counts = np.bincount(places, minlength=sum(self.design.cells)).astype(float)

    def answers(self, sigma, rng=None, law="gaussian"):
        """Answers from noisy counts; without a generator the noise is stated but not added."""
        counts = self.counts
        if rng is not None and law == "laplace":
            counts = counts + rng.laplace(0.0, sigma / math.sqrt(2.0), len(counts))
        elif rng is not None:
            counts = counts + rng.normal(0.0, sigma, len(counts))
        columns = list(self.design.columns)
        tables = split(counts, columns, self.design.label, self.design.classes)
        return assemble(self.schema, columns, tables, (sigma, law == "laplace"))
