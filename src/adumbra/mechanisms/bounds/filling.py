"""Bought bounds and levels, written into a schema that cites the release they come from."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from adumbra.data.person_sizes import ROWS, STEPS, level_names
from adumbra.errors import InvalidInput, require
from adumbra.mechanisms.bounds.config import METHOD
from adumbra.mechanisms.bounds.plan import COUNTS
from adumbra.mechanisms.bounds.release import FOUND
from adumbra.relations import Unit
from adumbra.release.artifact import Release
from adumbra.release.card import canonical
from adumbra.schema.column import NULL, OWN_CATEGORY
from adumbra.schema.schema import Column, Kind, Schema

NAMED = 12  # letters of the digest of the cited release, which `adumbra verify` prints


def fill_schema(schema: Schema, release: Release) -> Schema:
    """The schema with what a release of the method bounds found, each column with its source.

    A column for which nothing was found stays private, as does one that was not bought.

    Parameters
    ----------
    schema : the schema whose private columns are to be filled in
    release : what `load` gives of a release by bounds

    Returns
    -------
    Schema, whose columns say in `source` which release they cite, and at which price.

    Raises
    ------
    InvalidInput, if the release is of another method, fits no private column, or hides rows where the
    schema's unit is the person.
    """
    card = release.card
    method = card["method"]["name"]
    require(method == METHOD, f"release by {method}: bounds are bought by the method {METHOD}")
    fits = schema.unit is not Unit.PERSON or release.guarantee.unit is Unit.PERSON
    rule = "what hides one row shows a person of many rows, and the schema promises to hide persons"
    require(fits, f"release per {release.guarantee.unit}: {rule}; buy it again with unit='person'")
    found: Mapping[str, Any] = card["facts"][FOUND]
    expanded = schema.expand(release.schema.names)
    waiting = [column.name for column in expanded.columns if column.private]
    if not set(waiting) & set(found):
        raise InvalidInput("private: the release has none of the schema's private columns; check both")
    kinds = {column.name: column.kind for column in release.schema.columns}
    other = [one.name for one in expanded.columns
             if one.private and one.name in found and one.kind is not kinds[one.name]]  # fmt: skip
    require(not other, f"column {''.join(other[:1])!r}: is of another kind in the release; buy it again")
    digest = sha256(canonical(card)).hexdigest()[:NAMED]
    source = f"bought: release {digest}, {card['guarantee']['sentence']}"
    return filled(expanded, found, source)


def persons_within(release: Release) -> dict[int, float]:
    """The part of persons with at most m rows, by m, from a release of `rows_per_person`.

    Parameters
    ----------
    release : what `load` gives of a release of that table by the method bounds

    Returns
    -------
    For each step m of the public grid the noisy part, which never falls; the card has the noise.

    Raises
    ------
    InvalidInput, if the release is of anything else.
    """
    counted = [(column.name, column.categories) for column in release.schema.columns]
    fits = release.card["method"]["name"] == METHOD and counted == [(ROWS, level_names())]
    require(fits, "release: holds no rows per person; release what `rows_per_person` gives by bounds")
    counts = np.asarray(release.arrays[COUNTS])
    # Cells are not cut at 0 before they are summed: empty ones would add up to persons that nobody is.
    shares = np.cumsum(counts)[:-1] / max(float(counts.sum()), 1.0)
    shares = np.clip(np.maximum.accumulate(shares), 0.0, 1.0)
    return dict(zip(STEPS, shares.tolist(), strict=True))


def filled(schema: Schema, found: Mapping[str, Any], source: str) -> Schema:
    """The schema with the facts of these private columns, as the card of a release holds them."""
    columns = (
        _filled(column, found.get(column.name), source) if column.private else column
        for column in schema.columns
    )
    return replace(schema, columns=tuple(columns))


def _filled(column: Column, fact: Mapping[str, Any] | None, source: str) -> Column:
    """The column with its facts, or as it is where nothing was found that makes a column."""
    if fact is None:
        return column
    if column.kind.lists_levels:
        levels = tuple(fact["categories"])
        if column.kind is Kind.ORDINAL and len(levels) < 2:
            return column
        return replace(column, categories=levels, missing=_missing(column, levels), private=False,
                       source=source)  # fmt: skip
    bought = Column(name=column.name, kind=column.kind, lower=fact["lower"], upper=fact["upper"])
    declared = [*column.atoms] + ([] if _is_word(column.missing) else [column.missing])
    ends = [*bought.limits, *(float(value) for value in declared if value is not None)]
    whole = column.is_whole
    lower, upper = (round(end) if whole else end for end in (min(ends), max(ends)))
    return replace(column, lower=lower, upper=upper, private=False, source=source)


def _missing(column: Column, levels: tuple[str, ...]) -> Any:  # noqa: ANN401  (a word or nothing)
    """What stands for all other levels: the declared one, or (if it was not found) one of its own."""
    own = NULL if column.kind is Kind.ORDINAL else OWN_CATEGORY
    if column.missing in levels or column.missing == own:
        return column.missing
    return None if own in levels else own


def _is_word(value: object) -> bool:
    return isinstance(value, str)
