"""Answers from noisy sums of products of whole rows, which `lda` and `pca` release beside their tables.

No row was shortened: every answer has one truth, the table as encoded by its declared bounds. Means and
shares are regressions on a constant or on one condition, differences between classes on the classes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from adumbra.answers.columns import MISSING, TRUTHS
from adumbra.answers.conditions import IS_MISSING, Clause, Conditions, shown, suggestion
from adumbra.answers.estimate import Asked, Estimate, hidden
from adumbra.answers.histograms import named_in, reference_in, said, share_words
from adumbra.answers.intervals import Question, plain, reported
from adumbra.answers.reported import REPORTED
from adumbra.answers.spreads import correlation_law, spread_law
from adumbra.answers.sums import Fit, Sums, least_squares, spectrum
from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.numerics import Array

CONSTANT = "(constant)"
TRUTH_LEVELS = ("false", "true")
EQUAL_SPREAD = "sampling error as if the spread around the fit were the same everywhere (homoskedastic)"
NO_CELLS = "this release holds sums of products, not counts of values"
SCALED = "numbers are scaled to width 1 between their bounds or caps"
BOUNDED = "conservative: the interval is the largest change that the noise makes, for all directions"
HISTOGRAMS = "an `answers` or `moments` release answers it for one column at a time"
DROWNED = f"noise is over {1 / REPORTED:.2f} of what this column has beside the others; ask with fewer"
QUIET = "it does not stand out of the noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One column of the table among the columns of the sums."""

    name: str
    places: tuple[int, ...]  # of a number, one; of a category, one per level
    levels: tuple[str, ...] = ()
    middle: float = 0.0  # a number is middle + width z
    width: float = 1.0
    encoded: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return not self.levels

    def hits(self, clause: Clause) -> Array:
        """Which levels meet a condition."""
        value = MISSING if clause.operator == IS_MISSING else clause.value
        if self.levels == TRUTH_LEVELS and value.lower() in TRUTHS:
            value = TRUTH_LEVELS[int(TRUTHS[value.lower()])]
        if value not in self.levels or clause.operator not in ("=", "!=", IS_MISSING):
            known = suggestion(clause.value, list(self.levels))
            remedy = f"use = or != and a level of {shown(self.name)}; {known}"
            raise InvalidInput(f"condition {shown(str(clause))}: {remedy}")
        hit = np.array([level == value for level in self.levels])
        return ~hit if clause.operator == "!=" else hit


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentAnswers:
    """Sums of products with their noise, by the names of columns."""

    terms: Mapping[str, Term] = field(repr=False)
    sums: Sums = field(repr=False)
    label: str | None
    is_laplace: bool

    def mean(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """The mean of a number (or of yes and no), for all rows or those of one condition."""
        term = self.term(name)
        require(
            term.is_number or term.levels == TRUTH_LEVELS,
            f"column {shown(name)}: holds categories; ask for a share",
        )
        words = f"mean of {name}" + (f" among rows with {said(where)}" if where else "")
        question = self._question(asked, words, self._range(term), (name,))
        return self._among(self.column_of(term), where, question)

    def share(self, where: Conditions, given: Conditions, asked: Asked) -> Estimate:
        """The share of rows that meet `where` (one or two columns), among those that meet `given`."""
        words = share_words(where, given)
        marks = self._marks((*where, *given))
        if given and len(marks) == 1:
            raise Unsupported(f"{shown(said(given))}: names the same column; leave `given` out")
        if given:
            require(
                len(self._marks(where)) == 1 and len(self._marks(given)) == 1,
                f"share of {shown(said(where))} given {shown(said(given))}: one column on each side",
            )
            (target,) = self._marks(where).values()
            return self._among(target, given, self._question(asked, words, (0.0, 1.0)))
        if len(marks) == 1:
            every = self._question(asked, words, (0.0, 1.0))
            return self._among(next(iter(marks.values())), (), every)
        return self._pair(where, asked, words, self.sums.rows)

    def count(self, where: Conditions, asked: Asked) -> Estimate:
        """How many rows meet the conditions."""
        if not where:
            one = self.sums.constant
            noise = math.sqrt(float(self.sums.form_variance(one, one)))
            question = self._question(asked, "number of rows", (0.0, math.inf))
            return plain(self.sums.rows, noise, 0.0, question)
        return self._pair(where, asked, f"number of rows with {said(where)}", 1.0)

    def variance(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """The variance of a number."""
        self._no_condition("variance", name, where)
        if asked.population:
            raise Unsupported(
                "variance of the population: its sampling error needs fourth moments, which are not "
                "released; ask about the table"
            )
        value, law = spread_law(
            self.sums, self.column_of(self._number(name)), is_laplace=self.is_laplace
        )
        words = f"variance of {name}"
        if not law.is_reported:
            top = max(float(value), 0.0) + asked.reach(is_laplace=self.is_laplace) * float(law.noise)
            return hidden(asked, asked.truth(words), QUIET, (0.0, top))
        return reported(value, law, 0.0, self._question(asked, words, (0.0, math.inf), (name,)))

    def correlation(self, one: str, other: str, asked: Asked) -> Estimate:
        """The correlation of two numbers: a covariance over the root of two variances, each noisy."""
        require(one != other, f"correlation of {shown(one)} with itself: name two columns")
        words = f"correlation of {one} and {other}"
        columns = [self.column_of(self._number(name)) for name in (one, other)]
        value, law = correlation_law(self.sums, *columns, is_laplace=self.is_laplace)
        if not law.is_reported:
            return hidden(asked, asked.truth(words), f"a variance: {QUIET}", (-1.0, 1.0))
        rows = math.sqrt(self.sums.rows)
        sampling = (1 - min(float(value) ** 2, 1.0)) / rows if asked.population else 0.0
        notes = ("sampling error as for normal columns",) if asked.population else ()
        return reported(
            value, law, sampling, self._question(asked, words, (-1.0, 1.0), (one, other), notes)
        )

    def regress(self, target: str, features: tuple[str, ...], asked: Asked) -> dict[str, Estimate]:
        """Least squares on features and a constant; the first level of a category is left out."""
        require(bool(features), "regress: no features; name at least one column")
        twice = [name for place, name in enumerate(features) if name in (target, *features[:place])]
        require(not twice, f"regress: {shown(twice[0]) if twice else ''} stands there twice")
        names, columns, combine = self.design(target, features)
        sums, part = self.sums.only(columns)
        fit = least_squares(sums, part[:, 0], part[:, 1:])
        words = [f"coefficient of {name} for {target}" for name in names]
        found = self._coefficients(fit, combine, words, asked, (target, *features))
        return dict(zip(names, found.values(), strict=True))

    def design(self, target: str, features: tuple[str, ...]) -> tuple[list[str], Array, Array]:
        """Names of coefficients, the columns (the target first) and what each coefficient combines."""
        wanted, names, columns, units = self._target(target), [CONSTANT], [self.sums.constant], [1.0]
        shifts = [0.0]
        for name in features:
            term = self.term(name)
            if term.is_number:
                columns.append(self.unit(term.places[0]))
                names.append(name)
                units.append(1.0 / term.width)
                shifts.append(term.middle / term.width)
                continue
            for place, level in list(zip(term.places, term.levels, strict=True))[1:]:
                columns.append(self.unit(place))
                names.append(f"{name}={level}")
                units.append(1.0)
                shifts.append(0.0)
        combine = np.diag(units)
        combine[0] = [1.0, *(-shift for shift in shifts[1:])]
        return names, np.column_stack([wanted, *columns]), combine

    def compare(self, name: str, by: str, reference: str | None, asked: Asked) -> dict[str, Estimate]:
        """Means (or shares) of each level of `by`, less those of the first or the reference."""
        term, classes = self.term(name), self.term(by)
        require(name != by, f"compare {shown(name)} by itself: name another column")
        require(not classes.is_number, f"by={shown(by)}: holds numbers; name a category or the label")
        base = reference_in(classes.levels, reference, "level")
        kinds = {f"mean of {name}": self.column_of(term)} if term.is_number else {}
        for level, place in zip(term.levels, term.places, strict=False):  # a number has no levels
            kinds[f"share of {name}={level}"] = self.unit(place)
        levels = np.column_stack([self.unit(place) for place in classes.places])
        second = classes.levels.index(base)
        answers: dict[str, Estimate] = {}
        for words, target in kinds.items():
            sums, part = self.sums.only(np.column_stack([target, levels]))
            fit = least_squares(sums, part[:, 0], part[:, 1:])
            others = [place for place in range(len(classes.levels)) if place != second]
            contrasts = np.eye(len(classes.levels))[others]
            contrasts[:, second] = -1.0
            what = [f"{words}, {by}={classes.levels[place]} less {by}={base}" for place in others]
            answers |= self._coefficients(fit, contrasts, what, asked, (name, by))
        return answers

    def crosstab(self, one: str, other: str, asked: Asked) -> dict[str, Estimate]:
        """The share of rows in each pair of levels."""
        require(one != other, f"crosstab of {shown(one)} with itself: name two columns")
        for name in (one, other):
            require(not self.term(name).is_number, f"column {shown(name)}: holds numbers, not levels")
        pairs = [
            (Clause(one, "=", a), Clause(other, "=", b))
            for a in self.term(one).levels
            for b in self.term(other).levels
        ]
        return {
            said(pair): self._pair(pair, asked, f"share of rows with {said(pair)}", self.sums.rows)
            for pair in pairs
        }

    def quantile(self, name: str, q: float, where: Conditions, asked: Asked) -> Estimate:
        """Refused: sums hold no quantiles."""
        del q, where, asked
        self._refuse(f"quantile of {shown(name)}", name)

    def principal_components(self, k: int, asked: Asked) -> dict[str, Estimate]:
        """Variances of numbers (each scaled to width 1) along their k leading directions."""
        numbers = [term for term in self.terms.values() if term.is_number]
        require(1 <= k <= len(numbers), f"k={k}: must lie between 1 and the {len(numbers)} numbers")
        if asked.population:
            raise Unsupported(
                "principal components of the population: their sampling error needs fourth moments; "
                "ask about the table"
            )
        places = [term.places[0] for term in numbers]
        values, reach = spectrum(self.sums, places, asked.level, is_laplace=self.is_laplace)
        return {
            f"direction {place + 1}": self._direction(place + 1, float(value), reach, asked)
            for place, value in enumerate(values[:k])
        }

    def _direction(self, place: int, value: float, reach: float, asked: Asked) -> Estimate:
        """One variance, within what the noise can move it by."""
        question = self._question(asked, f"variance along direction {place}", (0.0, math.inf))
        ends = (max(value - reach, 0.0), value + reach)
        if value <= reach:
            return hidden(asked, question.target, "it does not stand out of the noise", ends)
        error = reach / asked.reach(is_laplace=False)
        return Estimate(
            value=value,
            std_error=error,
            interval=ends,
            level=asked.level,
            privacy=error,
            sampling=0.0,
            target=question.target,
            notes=question.notes(SCALED, BOUNDED),
        )

    def term(self, name: str) -> Term:
        """A column, by its name."""
        return named_in(self.terms, name)

    def _refuse(self, what: str, name: str) -> NoReturn:
        self.term(name)
        raise Unsupported(f"{what}: {NO_CELLS}; {HISTOGRAMS}")

    def _no_condition(self, what: str, name: str, where: Conditions) -> None:
        if where:
            self.term(name)
            raise Unsupported(f"{what} of {shown(name)}, {said(where)}: needs products of three columns")

    def _number(self, name: str) -> Term:
        term = self.term(name)
        require(term.is_number, f"column {shown(name)}: holds categories, not numbers")
        return term

    def unit(self, place: int) -> Array:
        """One encoded column."""
        column = np.zeros(len(self.sums.matrix))
        column[place] = 1.0
        return column

    def column_of(self, term: Term) -> Array:
        """A number in its own unit, or whether a truth is true."""
        if not term.is_number:
            return self.unit(term.places[-1])
        return term.middle * self.sums.constant + term.width * self.unit(term.places[0])

    def _target(self, name: str) -> Array:
        term = self.term(name)
        require(
            term.is_number or len(term.levels) == 2,
            f"regress {shown(name)}: has {len(term.levels)} levels; the target is a number or has two",
        )
        return self.column_of(term)

    @staticmethod
    def _range(term: Term) -> tuple[float, float]:
        half = term.width / 2.0
        return (term.middle - half, term.middle + half) if term.is_number else (0.0, 1.0)

    def _marks(self, conditions: Conditions) -> dict[str, Array]:
        """Rows that meet the conditions, a column of 0 and 1 for each column that they name."""
        found: dict[str, Array] = {}
        for clause in conditions:
            term = self.term(clause.column)
            if term.is_number:
                self._refuse(f"condition {shown(str(clause))}", clause.column)
            hit = term.hits(clause)
            marks = np.zeros(len(self.sums.matrix))
            marks[np.array(term.places)[hit]] = 1.0
            found[term.name] = found.get(term.name, np.ones(len(marks))) * marks
        if len(found) > 2:
            raise Unsupported(f"conditions on {len(found)} columns: sums of products hold two at once")
        return found

    def _among(self, target: Array, where: Conditions, question: Question) -> Estimate:
        """The mean of a column over all rows, or over those of one condition."""
        marks, asked = self._marks(where), question.asked
        if len(marks) > 1:
            raise Unsupported(f"{question.words}: needs products of three columns; give one condition")
        chosen = next(iter(marks.values())) if marks else self.sums.constant
        sums, part = self.sums.only(np.column_stack([target, chosen, self.sums.constant]))
        fit = least_squares(sums, part[:, 0], part[:, 1:2])
        value, law = fit.combined(np.eye(1), is_laplace=self.is_laplace)
        if not law.is_reported[0]:
            return question.no_answer("the rows asked about are too few")
        sampling = 0.0
        if asked.population:
            both = least_squares(sums, part[:, 0], part[:, 1:]) if marks else fit
            sampling = math.sqrt(both.error / max(float(law.size[0]), 1.0))
        if asked.population and marks:
            question = replace(question, more=(*question.more, EQUAL_SPREAD))
        return reported(value, law, sampling, question)

    def _pair(self, where: Conditions, asked: Asked, words: str, over: float) -> Estimate:
        """Rows that meet conditions on one or two columns, over a known or noisy number of rows."""
        marks = [*self._marks(where).values(), self.sums.constant]
        one, other = marks[0], marks[1]
        value = float(self.sums.form(one, other))
        variance = self.sums.form_variance(one, other)
        share = min(max(value / self.sums.rows, 0.0), 1.0)
        if over != 1.0 and not self.sums.rows_are_public:
            every = (self.sums.constant, self.sums.constant)
            part = value / self.sums.rows
            variance = variance - 2.0 * part * self.sums.covariance((one, other), every)
            variance = np.maximum(variance + part**2 * self.sums.form_variance(*every), 0.0)
        sampling = math.sqrt(share * (1 - share) * self.sums.rows) / over if asked.population else 0.0
        top = self.sums.rows / over if self.sums.rows_are_public or over != 1.0 else math.inf
        return plain(
            value / over, math.sqrt(variance) / over, sampling, self._question(asked, words, (0.0, top))
        )

    def _coefficients(
        self, fit: Fit, combine: Array, words: list[str], asked: Asked, names: tuple[str, ...]
    ) -> dict[str, Estimate]:
        """Combinations of coefficients, a row each; hidden where what they have of their own is."""
        values, law = fit.combined(combine, is_laplace=self.is_laplace)
        within = (-math.inf, math.inf)
        notes = (EQUAL_SPREAD,) if asked.population else ()
        sampling = np.sqrt(fit.error / np.where(law.size > 0, law.size, np.inf)) * asked.population
        found = {}
        for place, (is_reported, what) in enumerate(zip(law.is_reported, words, strict=True)):
            if not is_reported:
                found[what] = hidden(asked, asked.truth(what), DROWNED, within)
                continue
            question = self._question(asked, what, within, names, notes)
            found[what] = reported(values[place], law.at(place), float(sampling[place]), question)
        return found

    def _question(
        self,
        asked: Asked,
        words: str,
        within: tuple[float, float],
        names: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Question:
        numbers = [self.terms[name] for name in names if self.terms[name].is_number]
        encoded = "; ".join(f"{term.name}: {term.encoded}" for term in numbers)
        return Question(
            asked=asked,
            words=words,
            within=within,
            encoded=encoded,
            more=notes,
            is_laplace=self.is_laplace,
        )
