"""The card as one self-contained page: no script, nothing fetched, every word from outside escaped.

`render` takes the card as a plain mapping, so this module cannot reach data; it only chooses words and
rounds numbers for people. Whatever it shows is in card.json exactly.
"""

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from typing import Any, TypeVar

from adumbra.errors import TURNING, visible
from adumbra.postprocess.pictures import NOTHING, Pictures
from adumbra.release.promise import at_most, page_words, raised
from adumbra.report import drawing, figures

# Plain words for what plans and cards name briefly; a name without a phrase is shown as words.
ValueT = TypeVar("ValueT")

EXPECTED = {
    "best_n_components": "number of components with the smallest error",
    "chosen_table_sigma": "noise of a count in a chosen joint table (standard deviation, in rows)",
    "chosen_table_total_variation": "error of a chosen joint table of 64 cells, at most",
    "coefficient_half_width": "half-width of a standardised regression coefficient of the outcome",
    "correlation_half_width": "half-width of a correlation",
    "class_mean_error": "error of a class mean, classes of equal size (columns scaled to width 1)",
    "class_mean_noise": "noise of an average class's mean, in lengths of a centred row",
    "count_sigma": "noise of a count in a histogram (standard deviation, in rows)",
    "gram_noise_edge": "share of the variance below which a direction is lost in noise",
    "guessed_squared_distance": "squared distance for which errors are stated (encoded rows)",
    "mean_half_width": "half-width of a mean, in parts of the range between the caps",
    "mean_error": "error of a column's mean (columns scaled to width 1)",
    "n_components": "components of the projection",
    "noise_standard_deviation": "noise of a released number (standard deviation, encoded units)",
    "noise_to_signal": "noise over signal of the covariance, if variance is spread evenly",
    "one_way_total_variation": (  # cards of format 1, which did not say that it is a mean
        "error of the shares of values, mean over columns (total variation: 0 exact, 1 worthless)"
    ),
    "one_way_total_variation_if_columns_are_alike": "mean over columns where columns look alike",
    "one_way_total_variation_mean": (
        "error of the shares of values, mean over columns (total variation: 0 exact, 1 worthless)"
    ),
    "one_way_total_variation_mean_if_columns_are_alike": "mean error where columns look alike",
    "one_way_total_variation_worst": "error of the shares of values in the worst column",
    "one_way_total_variation_worst_if_columns_are_alike": "worst error where columns look alike",
    "pair_sigma": "noise of a count of two columns, from the correlations (in rows, at most)",
    "rows_to_be_found": "rows in one cell for a bound or level to be found",
    "rows_for_a_coefficient": "rows for a standardised coefficient within 0.1",
    "share_half_width": "half-width of a share of rows",
    "share_to_be_found": "the same as a share of all rows",
    "second_moment_error": "error of a second moment of two columns (columns scaled to width 1)",
    "spectral_edge": "variance below which a direction is lost in noise (columns scaled to width 1)",
    "squared_error_of_mean_at_most": "squared error of a row if only the mean is released, at most",
    "squared_noise_of_rows_at_most": "squared noise of a released row, at most",
    "standard_error_at_best_n_components": "standard error at the best number of components",
    "standard_error_of_a_squared_distance": "standard error of a squared distance",
    "finer_cell_sigma": "standard deviation of the count of a finer cell in one class",
    "surviving_rank": "principal directions detectable above the noise, at most",
}
FACTS = {
    "found": "what was found, by column",
    "rows_to_be_found": EXPECTED["rows_to_be_found"],
    "caps": "caps of numbers: what lies beyond counts as the cap",
    "columns": "columns that can be asked about",
    "outcome": "column whose sums have less noise",
    "clip_radius": "length to which longer centred rows were shortened",
    "number_cells": "equal cells of a number (its two bounds apart)",
    "finer_cells": "finer cells of whole numbers for each doubling of the value, counted by class",
    "numbers": "how numbers were counted",
    "pairs_by_class": "whether columns of two levels were counted by class, as categories are",
    "reading_rules": "version of the rules that turn noisy counts into the model",
    "components_found": "directions found in the noisy moments",
    "measured_tables": "joint tables that were chosen and measured",
    "modelled_variance": "variance of the released model",
    "spectral_edge": EXPECTED["spectral_edge"],
    "surviving_rank": "directions that stood out of the noise",
}


def words(name: str) -> str:
    """A field's name as words."""
    return name.replace("_", " ")


def expected_words(name: str) -> str:
    """What an expected error of a plan means."""
    return EXPECTED.get(name) or words(name)


def fact_words(name: str) -> str:
    """What a fact on a card means."""
    return FACTS.get(name) or words(name)


def in_order(named: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """By name, numbers in names by their size: alike for a card just made and one that was read."""
    return dict(sorted(named.items(), key=lambda item: _natural(item[0])))


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"([0-9]{1,18})", name)
    return [(1, int(part), "") if i % 2 else (0, 0, part) for i, part in enumerate(parts)]


CARD = "card.html.j2"
CARD_PARTS = ("card.css", "pictures.css", "pictures.html.j2")
_COMPILING = Lock()
SHOWN_GROUPS = 40  # declarations listed before the page refers to card.json
SHOWN_CATEGORIES = 8

LAWS = {
    "gaussian": ("rounded normal", "standard deviation", "L2", 0.6745, 1.96),
    "laplace": ("discrete Laplace", "scale", "L1", math.log(2), math.log(20)),
    "gumbel": ("Gumbel, for a choice", "scale", "range", None, None),
}
MISSING = {
    "number": "the middle of its bounds",
    "integer": "the middle of its bounds",
    "date": "the middle of its bounds",
    "datetime": "the middle of its bounds",
    "category": "the first category",
    "ordinal": "the middle level",
    "boolean": "no",
}
TYPES = {
    "double": "decimal numbers",
    "float": "decimal numbers",
    "string": "text",
    "bool": "yes or no",
    "date32[day]": "dates",
    "timestamp[us]": "dates with times",
    "list<int32>": "sets of items",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Neighbouring columns that were declared alike."""

    name: str
    count: int
    kind: str
    bounds: str
    missing: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRow:
    """One use of noise, in words."""

    purpose: str
    law: str
    scale: str
    half: str
    most: str
    sensitivity: str
    grid: int | None


def render(card: Mapping[str, Any], pictures: Pictures = NOTHING) -> str:
    """The page of a card, with pictures of what was released."""
    said, amount = page_words(card), card["guarantee"]["value"]
    page: str = template(CARD).render(
        card=card,
        success=said.rate,
        delta=said.delta,
        promised=said.words,
        figures=_pictures(amount["mu"], amount["epsilon"], tuple(said.captions)),
        tables=[_table_words(name, table) for name, table in card["contents"]["tables"].items()],
        noise=[_noise_words(use) for use in card["mechanisms"]],
        declared=(lines := _declared(card["public_inputs"]["schema"])),
        sourced=any(line.source for line in lines),
        shown=SHOWN_GROUPS,
        drawn=drawing.drawn_or_nothing(pictures),
        words=pictures.words,
        rule=said.rule,
    )
    return page


def template(name: str) -> Any:  # noqa: ANN401 - Jinja is loaded with the first page only
    """A template with our filters; whatever others wrote is escaped. It is compiled by one caller."""
    with _COMPILING:
        return _compiled(name)


def compile_card() -> None:
    """Compile the card's template and its parts, which takes longer than to fill them in."""
    environment = template(CARD).environment
    with _COMPILING:
        for part in CARD_PARTS:
            environment.get_template(part)


@cache
def _compiled(name: str) -> Any:  # noqa: ANN401
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        loader=PackageLoader("adumbra.report"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "at_most": at_most, "value": _value}
    environment.filters |= {"bytes": _bytes, "words": words, "rounded": _rounded, "in_order": in_order}
    environment.filters |= {"expected_words": expected_words, "fact_words": fact_words}
    return environment.get_template(name)


def _visible(value: object) -> object:
    """Words from outside, which cannot turn round what stands beside them; our own markup stays."""
    return TURNING.sub(lambda found: visible(found[0]), value) if type(value) is str else value


@lru_cache(maxsize=32)  # most of a small release's time: drawn once per guarantee
def _pictures(
    mu: float | None, epsilon: float | None, said: tuple[tuple[str, str], ...]
) -> tuple[dict[str, str], ...]:
    """The pictures that are true of a guarantee, each with its caption; the last one is the attack's."""
    if mu is not None:
        overlap, shift, power = figures.normal_density, mu, figures.gaussian_power(mu)
        miss = 0.5 * math.erfc(mu / math.sqrt(8.0))
    else:
        shift = float(epsilon or 0.0)
        overlap, power = figures.laplace_density, figures.pure_power(shift)
        miss = 1.0 / (1.0 + math.exp(shift))
    drawn = [figures.overlap_figure(overlap, shift, alt) for alt, _ in said[:-1]]
    drawn.append(figures.attack_figure(power, (miss, 1.0 - miss), said[-1][0]))
    return tuple({"svg": svg, "caption": caption} for svg, (_, caption) in zip(drawn, said, strict=True))


def _table_words(name: str, table: Mapping[str, Any]) -> dict[str, object]:
    """A released table in words: its columns counted by type."""
    kinds = [TYPES.get(kind, "whole numbers") for _, kind in table["columns"]]
    counted = [f"{kinds.count(kind)} of {kind}" for kind in dict.fromkeys(kinds)]
    names = [column for column, _ in table["columns"]]
    return {"name": name, "rows": table["rows"], "columns": len(names), "kinds": counted, "names": names}


def _noise_words(use: Mapping[str, Any]) -> NoiseRow:
    """One use of noise: its law, and how far it mostly reaches."""
    law, measure, norm, half, most = LAWS[use["distribution"]]
    scales = use["scale"] if isinstance(use["scale"], list) else [use["scale"]]
    sensitivity, grid = use.get("sensitivity"), use.get("grid")

    def reach(factor: float | None) -> str:
        return " to ".join(f"± {number(factor * end)}" for end in _ends(scales)) if factor else "–"

    return NoiseRow(
        purpose=str(use["purpose"]),
        law=law,
        scale=f"{measure} {' to '.join(map(number, _ends(scales)))}",
        half=reach(half),
        most=reach(most),
        sensitivity="–" if sensitivity is None else f"{number(sensitivity)} ({use.get('norm', norm)})",
        grid=math.frexp(grid)[1] - 1 if grid and math.frexp(grid)[0] == 0.5 else None,
    )


def _ends(scales: Sequence[float]) -> list[float]:
    """Smallest and largest, or the only one."""
    return sorted({min(scales), max(scales)})


def _declared(schema: Mapping[str, Any]) -> list[Declared]:
    """The declared columns, neighbours of one kind and range in one line."""
    columns = [column for column in schema.get("columns", []) if isinstance(column, Mapping)]
    lines = []
    for _, run in itertools.groupby(columns, key=lambda column: {**column, "name": None}):
        alike = list(run)
        first, last = str(alike[0].get("name", "")), str(alike[-1].get("name", ""))
        lines.append(
            Declared(
                name=first if len(alike) == 1 else f"{first} … {last}",
                count=len(alike),
                kind=str(alike[0].get("kind", "")),
                bounds=_bounds(alike[0]),
                missing=_missing(alike[0]),
                source=str(alike[0].get("source", "")),
            )
        )
    return lines


def _bounds(column: Mapping[str, Any]) -> str:
    """The values a column may take, in words."""
    if column.get("private") is True:
        return f"bought within {_bounds({**column, 'private': False})}"
    if column.get("lower") is not None and column.get("upper") is not None:
        atoms = ", ".join(map(_value, column.get("atoms", [])))
        apart = f"; counted apart: {atoms}" if atoms else ""
        return f"{_end(column['lower'])} to {_end(column['upper'])}{apart}"
    levels = column.get("categories", [])
    if isinstance(levels, list) and levels:
        rest = f" and {len(levels) - SHOWN_CATEGORIES} more" if len(levels) > SHOWN_CATEGORIES else ""
        return ", ".join(map(str, levels[:SHOWN_CATEGORIES])) + rest
    return "yes or no" if column.get("kind") == "boolean" else "–"


def _end(value: object) -> str:
    """A bound with all its digits; whole numbers without the point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return number(value) if isinstance(value, int) else _value(value)


def _missing(column: Mapping[str, Any]) -> str:
    """What an unreadable value becomes; the schema's own defaults are spelt out."""
    if column.get("missing") is None:
        return MISSING.get(str(column.get("kind")), "–")
    if column["missing"] == "null" and column.get("kind") not in ("category", "boolean"):
        return "stays missing"
    own = column["missing"] == "category" and column.get("kind") == "category"
    return "a category of its own" if own else _value(column["missing"])


def number(value: object) -> str:
    """A number for people: four digits, a true minus, thousands apart, powers raised."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f").replace("-", "−")
    return raised(f"{value:.4g}")


def _value(value: object, digits: Callable[[float], str] = repr) -> str:
    """Any value of the card, on one line; parameters with all their digits."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return raised(digits(value) if isinstance(value, float) else repr(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_value(inner, digits)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_value(inner, digits) for inner in value)
    return str(value)


def _rounded(value: object) -> str:
    """The same for what was found, to four digits; card.json has all of them."""
    return _value(value, lambda number: f"{number:.4g}")


def _bytes(size: int) -> str:
    """A size for people."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size} bytes"
