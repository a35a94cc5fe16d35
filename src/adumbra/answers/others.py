"""What releases without histograms or sums can be asked, and which method would answer the rest.

`top-k` with all counts answers counts of items, projected rows answer distances; a model of projected
rows (`ron-gauss`) answers nothing about a column.
"""
# ruff: noqa: ARG002 - all kinds of answers take the same questions; these refuse most of them unread

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from adumbra.answers.conditions import Conditions, shown, suggestion
from adumbra.answers.estimate import Asked, Estimate
from adumbra.answers.intervals import Question, plain
from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.numerics import Array
from adumbra.postprocess.distances import DistanceModel, interval, pair_distances
from adumbra.release.artifact import Release

METHODS = ("answers", "moments", "lda")
WOULD = f"a release of the table by {' or '.join(METHODS)} would answer"
DISTANCES = "distances"  # a fact of the card
ITEM, COUNTED = "item", "counts"
SAME_NOISE = (
    "the items of this list were picked by the noise of their counts, which leans upwards; a release "
    "with all_counts=true (and not tps-refine) counts every item and would answer"
)
REASONS = {
    "ron-gauss": "its sums are of rows that were centred, scaled and projected to a few directions, so "
    "that no answer about a column has one truth",
    "dppro": "it holds projected rows, which answer `distance ROW and ROW` alone",
    "jl-laplace": "it holds projected rows, which answer `distance ROW and ROW` alone",
    "top-k": f"it holds counts of items, which answer `count {ITEM}=ITEM` alone",
}
OTHER = "its release holds neither histograms nor sums of products, so that no answer has an interval"
OF_DRAWS = "the level is over draws of the projection and of the noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class FewAnswers:
    """A release that answers nothing, or one kind of question."""

    method: str
    rows: int | None  # if public

    def _refuse(self, what: str) -> NoReturn:
        raise Unsupported(f"{what}: method={self.method}: {REASONS.get(self.method, OTHER)}; {WOULD}")

    def mean(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """Refused."""
        self._refuse(f"mean of {shown(name)}")

    def variance(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """Refused."""
        self._refuse(f"variance of {shown(name)}")

    def quantile(self, name: str, q: float, where: Conditions, asked: Asked) -> Estimate:
        """Refused."""
        self._refuse(f"quantile of {shown(name)}")

    def share(self, where: Conditions, given: Conditions, asked: Asked) -> Estimate:
        """Refused, unless rows can be counted."""
        self._refuse("share of rows" if not where else f"share of {shown(str(where[0]))}")

    def count(self, where: Conditions, asked: Asked) -> Estimate:
        """The number of rows, where it is public."""
        if where or self.rows is None:
            self._refuse("count of rows")
        question = Question(asked=asked, words="number of rows", within=(0.0, math.inf))
        return plain(float(self.rows), 0.0, 0.0, question)

    def crosstab(self, one: str, other: str, asked: Asked) -> Mapping[str, Estimate]:
        """Refused."""
        self._refuse(f"crosstab of {shown(one)} and {shown(other)}")

    def compare(self, name: str, by: str, reference: str | None, asked: Asked) -> Mapping[str, Estimate]:
        """Refused."""
        self._refuse(f"comparison of {shown(name)}")

    def correlation(self, one: str, other: str, asked: Asked) -> Estimate:
        """Refused."""
        self._refuse(f"correlation of {shown(one)} and {shown(other)}")

    def regress(self, target: str, features: tuple[str, ...], asked: Asked) -> Mapping[str, Estimate]:
        """Refused."""
        self._refuse(f"regression of {shown(target)}")

    def principal_components(self, k: int, asked: Asked) -> Mapping[str, Estimate]:
        """Refused."""
        self._refuse(f"{k} principal components")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnswers(FewAnswers):
    """Counts of every item of a top-k release."""

    counts: Mapping[str, tuple[float, float]] = field(repr=False)  # by id and by name: count, deviation
    is_laplace: bool
    length: int  # items of a row that count

    def count(self, where: Conditions, asked: Asked) -> Estimate:
        """How many rows hold an item; without a condition, the number of rows where it is public."""
        if not where:
            return FewAnswers.count(self, where, asked)
        value, noise = self._item(where)
        sampling = math.sqrt(max(value, 0.0)) if asked.population else 0.0
        return plain(value, noise, sampling, self._question(asked, "number", where, math.inf))

    def share(self, where: Conditions, given: Conditions, asked: Asked) -> Estimate:
        """The share of rows that hold an item, where the number of rows is public."""
        if given or self.rows is None:
            raise Unsupported(f"share of {ITEM}s: the number of rows is not public; ask for a count")
        value, noise = self._item(where)
        share = min(max(value / self.rows, 0.0), 1.0)
        sampling = math.sqrt(share * (1.0 - share) / self.rows) if asked.population else 0.0
        question = self._question(asked, "share", where, 1.0)
        return plain(value / self.rows, noise / self.rows, sampling, question)

    def _item(self, where: Conditions) -> tuple[float, float]:
        require(
            len(where) == 1 and where[0].column == ITEM and where[0].operator == "=",
            f"conditions of a top-k release: write {ITEM}=ITEM, one at a time",
        )
        wanted = where[0].value
        if wanted not in self.counts:
            known = suggestion(wanted, list(self.counts))
            raise InvalidInput(f"{ITEM} {shown(wanted)}: is not in this release; {known}")
        return self.counts[wanted]

    def _question(self, asked: Asked, what: str, where: Conditions, most: float) -> Question:
        note = f"a row counts for at most {self.length} of its items: of longer rows the truth is higher"
        return Question(
            asked=asked, words=f"{what} of rows with {where[0]}", within=(0.0, most), encoded=note,
            is_laplace=self.is_laplace,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedAnswers(FewAnswers):
    """Distances between rows of a projected release."""

    model: DistanceModel
    released: Array = field(repr=False)

    def distance(self, left: int, right: int, asked: Asked) -> Estimate:
        """The squared distance of two rows as encoded, by their numbers from 0."""
        for row in (left, right):
            last = len(self.released) - 1
            require(0 <= row <= last, f"row {row}: the release has rows 0 to {last}")
        require(left != right, f"row {left} and itself: name two rows")
        found = pair_distances(self.model, self.released[[left]], self.released[[right]])
        low, high = interval(self.model, found, level=asked.level)
        error = float(self.model.standard_error(found)[0])
        words = f"squared distance of rows {left} and {right} as encoded"
        question = Question(asked=asked, words=words, within=(0.0, math.inf), more=(OF_DRAWS,))
        return Estimate(
            value=max(float(found[0]), 0.0), std_error=error, interval=(float(low[0]), float(high[0])),
            level=asked.level, privacy=error, sampling=0.0, target=question.target,
            notes=question.notes(),
        )  # fmt: skip


def distance(answers: object, left: int, right: int, asked: Asked) -> Estimate:
    """A distance, of releases that hold rows."""
    if not isinstance(answers, ProjectedAnswers):
        raise Unsupported(
            "distance: this release holds no projected rows; a release of the table by dppro or "
            "jl-laplace would answer"
        )
    if asked.population:
        raise Unsupported("distance of the population: two rows are not a sample; ask about the table")
    return answers.distance(left, right, asked)


def read_others(*releases: Release) -> FewAnswers:
    """What a release without histograms and sums can be asked."""
    release = releases[0]
    method = str(release.card["method"]["name"]).split(" ", maxsplit=1)[
        0
    ]  # "top-k em" names its variant
    require(len(releases) == 1, f"combine: releases of {method} hold nothing that can be averaged")
    rows = release.schema.rows if release.schema.neighbours.rows_are_public else None
    facts = release.card["facts"]
    if DISTANCES in facts:
        model = DistanceModel.from_facts(facts[DISTANCES])
        names = release.data.column_names[: model.n_components]
        released = np.column_stack([release.data[name].to_numpy() for name in names])
        return ProjectedAnswers(method=method, rows=rows, model=model, released=released.astype(float))
    if method == "top-k":
        return _read_items(release, rows)
    return FewAnswers(method=method, rows=rows)


def _read_items(release: Release, rows: int | None) -> ItemAnswers:
    facts = release.card["facts"]
    if COUNTED not in release.tables or "zone_length" in facts:
        raise Unsupported(f"method=top-k: {SAME_NOISE}")
    table = release.tables[COUNTED].to_pydict()
    figures = list(zip(table["count"], table["standard_error"], strict=True))
    names = [name for name in table.get("name", []) if name is not None]
    counts = {str(item): pair for item, pair in zip(table[ITEM], figures, strict=True)}
    if len(names) == len(figures):
        counts |= dict(zip(names, figures, strict=True))
    laws = {line["distribution"] for line in release.card["mechanisms"] if "count" in line["purpose"]}
    return ItemAnswers(
        method="top-k", rows=rows, counts=counts, is_laplace="gaussian" not in laws,
        length=int(facts["length"]),
    )  # fmt: skip
