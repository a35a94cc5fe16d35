"""Exact cells of a small table, and the answers that noise of a known size leaves."""

import math

import numpy as np

from adumbra.answers.reading import Pooled, assemble, split
from adumbra.answers.reading_moments import COUNTS, PRODUCTS, SQUARES, TOTALS, assemble_moments
from adumbra.data.opening import open_source
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.moments.rows import cell_block
from adumbra.statistics.box_moments import box_rows, complete, sigma_factors
from support.methods import settled_on


class ExactCells:
    """The exact histograms of a table, as `moments` counts them, to which a test adds noise."""

    def __init__(self, data, schema, **options):
        source = open_source(data, schema)
        self.settled = settled_on(source, MomentsConfig(epsilon=8.0, **options))
        self.schema, self.design = self.settled.schema, self.settled.parts.design
        label = self.design.label
        lower = self.schema.columns[label].limits[0] if label is not None else 0.0
        (batch,) = list(source.batches(10**6))
        places = cell_block(batch, self.design, lower).places
        self.counts = np.bincount(places, minlength=sum(self.design.cells)).astype(float)

    def answers(self, sigma, rng=None, law="gaussian", second=None):
        """Answers from noisy counts; without a generator the noise is stated but not added.

        With `second`, there are counts over all classes of that noise, too.
        """
        columns = list(self.design.columns)
        exact = split(self.counts, columns, self.design.label, self.design.classes)
        tables = [noisy(table, sigma, rng, law) for table in exact]
        pooled = Pooled()
        if second is not None:
            sums = [t.sum(axis=0) for t in exact[:-1]] + [exact[-1].ravel()]
            pooled = Pooled([noisy(one, second, rng, law) for one in sums], second)
        return assemble(self.schema, columns, tables, (sigma, law == "laplace"), pooled)


def noisy(counts, sigma, rng, law):
    """Counts with noise of this law and standard deviation; without a generator, as they are."""
    if rng is None:
        return counts
    if law == "laplace":
        return counts + rng.laplace(0.0, sigma / math.sqrt(2.0), counts.shape)
    return counts + rng.normal(0.0, sigma, counts.shape)


class ExactSums:
    """The exact sums of products of a table, as `lda` takes them, to which a test adds noise."""

    def __init__(self, data, schema):
        source = open_source(data, schema)
        self.settled = settled_on(source, LDAConfig(epsilon=1.0))
        self.schema, parts = self.settled.schema, self.settled.parts
        self.encoder, self.statistic = parts.encoder, parts.noise.statistic
        (batch,) = list(source.batches(10**6))
        shape = self.statistic.shape
        rows = box_rows(self.encoder.encode(batch), shape, self.encoder.labels(batch))
        exact = self.statistic.add(self.statistic.zero(), rows)
        self.places = self.statistic.coordinates(self.schema.neighbours)
        self.values = exact[self.places[0], self.places[1]] * 2.0**self.statistic.exponent
        self.rows = len(batch)

    def deviations(self, sigma):
        """The noise of each kind of entry, in the order of `Kind`."""
        return sigma * sigma_factors(self.statistic.shape)

    def entries(self, sigma):
        """Each independent entry as a matrix of its effects, with its noise; counts of classes last."""
        size, kinds = len(self.values), self.places[2]
        for place in [*np.flatnonzero(kinds != 3), *np.flatnonzero(kinds == 3)]:
            change = np.zeros(size)
            change[place] = 1.0
            matrix = complete(change, self.places, self.statistic.shape)
            yield matrix, self.deviations(sigma)[kinds[place]]

    def answers(self, sigma, rng=None):
        """Answers from noisy sums; without a generator the noise is stated but not added."""
        values, each = self.values, self.deviations(sigma)
        if rng is not None:
            values = values + rng.normal(size=len(values)) * each[self.places[2]]
        matrix = complete(values, self.places, self.statistic.shape)
        public = self.schema.neighbours.rows_are_public
        counts = np.diagonal(matrix)[self.statistic.shape.width :]
        rows = float(self.rows if public else counts.sum())
        named = dict(zip((SQUARES, PRODUCTS, TOTALS, COUNTS), each, strict=True))
        return assemble_moments(self.encoder, matrix, rows, (named, False), rows_are_public=public)
