"""Answers from a release made for them: sums of products within caps, and counts of every column.

Sums answer means, shares, differences, correlations and regressions of one table, the one whose numbers
are moved to their caps. Counts answer what needs cells: quantiles, and conditions on numbers.
"""

import math
from dataclasses import dataclass, field, replace

from adumbra.answers.conditions import Conditions, shown
from adumbra.answers.estimate import Asked, Estimate
from adumbra.answers.histograms import HistogramAnswers
from adumbra.answers.moments import MomentAnswers
from adumbra.errors import Unsupported

FOURTH = "sampling error with fourth moments from cell middles"


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedAnswers(MomentAnswers):
    """What an answers release can be asked: what its sums answer, and what its counts do."""

    counts: HistogramAnswers = field(repr=False)

    def mean(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """The mean of a number within its caps, for all rows or those of one condition."""
        if self._needs_cells(where):
            _one_column(f"mean of {shown(name)}", (name,), where)
            return self.counts.mean(name, where, asked)
        return MomentAnswers.mean(self, name, where, asked)

    def share(self, where: Conditions, given: Conditions, asked: Asked) -> Estimate:
        """The share of rows that meet conditions on one or two columns."""
        if self._needs_cells((*where, *given)):
            _one_column("share", (), (*where, *given))
            return self.counts.share(where, given, asked)
        return MomentAnswers.share(self, where, given, asked)

    def count(self, where: Conditions, asked: Asked) -> Estimate:
        """How many rows meet the conditions."""
        if self._needs_cells(where):
            _one_column("count", (), where)
            return self.counts.count(where, asked)
        return MomentAnswers.count(self, where, asked)

    def quantile(self, name: str, q: float, where: Conditions, asked: Asked) -> Estimate:
        """The smallest value that at least a share q of rows do not exceed; no cap is in it."""
        self._needs_cells(where)  # refuses unknown columns
        _one_column(f"quantile of {shown(name)}", (name,), where)
        return self.counts.quantile(name, q, where, asked)

    def variance(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """The variance of a number within its caps."""
        if self._needs_cells(where):
            _one_column(f"variance of {shown(name)}", (name,), where)
            return self.counts.variance(name, where, asked)
        found = MomentAnswers.variance(self, name, where, replace(asked, population=False))
        if not asked.population or found.is_hidden:
            return found
        sampling = self._variance_sampling(name, found.value)
        reach = asked.reach(is_laplace=self.is_laplace) * sampling
        below, above = found.value - found.interval[0], found.interval[1] - found.value
        return replace(
            found,
            std_error=math.hypot(found.privacy, sampling),
            interval=(
                max(found.value - math.hypot(below, reach), 0.0),
                found.value + math.hypot(above, reach),
            ),
            sampling=sampling,
            target=asked.truth(f"variance of {name}"),
            notes=(*found.notes, FOURTH),
        )

    def _needs_cells(self, conditions: Conditions) -> bool:
        """Whether a condition is on a number: sums hold no cells."""
        return any(self.term(clause.column).is_number for clause in conditions)

    def _variance_sampling(self, name: str, variance: float) -> float:
        """The sampling error of a variance: fourth moment of cell middles and its noise."""
        cells, term = self.counts.column(name), self.term(name)
        low, high = term.middle - term.width / 2.0, term.middle + term.width / 2.0
        middles = cells.values().middle.clip(low, high)
        counts, rows = self.counts.tables[name].sum(axis=0), max(self.sums.rows, 1.0)
        centred = (middles - float(counts @ middles) / rows) ** 4
        noise = self.counts.sigma * math.sqrt(float(centred @ centred))
        fourth = (float(counts @ centred) + noise) / rows
        return math.sqrt(max(fourth - variance**2, 0.0) / rows)


def _one_column(what: str, names: tuple[str, ...], where: Conditions) -> None:
    """Refuse what cells of two columns at once would answer: cells are of one column each."""
    others = dict.fromkeys((*names, *(clause.column for clause in where)))
    if len(others) > 1:
        both = " and ".join(map(shown, others))
        raise Unsupported(
            f"{what}: needs cells of {both} together, and this release counts one column at a time; a "
            "`moments` release with numbers='bins' answers it where the other column is the label"
        )
