"""Private rows in their public layout: numbers scaled by their bounds, categories one-hot."""

from dataclasses import dataclass

import numpy as np

from adumbra.data.sources import Batch
from adumbra.errors import require
from adumbra.numerics import Array, Ints
from adumbra.schema.layout import Layout, scale_number


@dataclass(frozen=True, slots=True)
class Encoder(Layout):
    """A layout that encodes private rows; what follows the noise takes the layout alone."""

    def encode(self, batch: Batch) -> Array:
        """Rows x width, column by column in memory: each column is scaled in the cache."""
        values = batch.values
        if values.strides[0] > values.strides[1]:
            values = np.asfortranarray(values)
        encoded: Array = np.empty((len(values), self.width), order="F")
        for run in self.runs:
            run.scale(values[:, run.places], encoded[:, run.starts])
        for column, place, start in zip(self.features, self.places, self.starts, strict=True):
            if not column.is_numeric:
                for level in range(column.levels):
                    np.equal(values[:, place], level, out=encoded[:, start + level], casting="unsafe")
        return encoded

    def labels(self, batch: Batch) -> Ints:
        """Class codes 0 ... label_levels - 1 of each row."""
        column = self.required_label()
        require(self.label_levels >= 1, "label: has no classes")
        codes = self._label_values(batch) - column.limits[0]
        return codes.astype(np.int64)

    def targets(self, batch: Batch) -> Array:
        """The label scaled to [-1, 1] by its bounds or codes."""
        column = self.required_label()
        scaled = np.empty(len(batch))
        scale_number(column, self._label_values(batch), scaled, centred=True)
        scaled *= 2.0
        return scaled

    def _label_values(self, batch: Batch) -> Array:
        index = self.schema.label_index
        values: Array = batch.values[:, index or 0]
        return values


@dataclass(frozen=True, slots=True)
class CappedEncoder(Encoder):
    """An encoder of chosen columns of the table, whose numbers are scaled by narrower bounds (caps).

    What lies beyond a cap is encoded beyond +-1/2; whoever bounds the rows moves it to the cap.
    """

    chosen: tuple[int, ...] = ()  # where the columns of `schema` stand in a batch
    caps: tuple[tuple[float, float], ...] = ()  # of each number, within its bounds

    def encode(self, batch: Batch) -> Array:
        """As `Encoder.encode`, of the chosen columns, with numbers scaled to their caps."""
        encoded = Encoder.encode(self, Batch(batch.start, batch.values[:, list(self.chosen)]))
        numbers = [column for column in self.features if column.is_numeric]
        for column, place, (low, high) in zip(numbers, self.numeric, self.caps, strict=True):
            ends = np.empty(2)
            scale_number(column, np.array([low, high]), ends, centred=self.centred)
            encoded[:, place] -= (ends[0] + ends[1]) / 2.0
            encoded[:, place] /= ends[1] - ends[0]
        return encoded
