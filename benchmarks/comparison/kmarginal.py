"""NIST's K-marginal score, in numpy: a second implementation beside the judge of the data folder.

    score = 500 (2 - mean over pairs of  sum over cells |share in target - share in file|)

Every pair of columns is taken together with the grouping column (PUMA). Codes stay codes. Wide numbers
are cut at 20 equal shares of the target's values; one of the 20 is spent on missing values, and one on
each side where the file passes the target. DENSITY has fixed cuts on a log scale. `outside.py` computes
each score by the folder's own `judge.py` too and stops if the two differ, so this copy can run in CI,
where no data folder is at hand.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

GROUP, NULL, BINS = "PUMA", "N", 20
# The ranges of NIST's data dictionary: they decide which columns are numbers, and which of them are cut.
RANGES = {
    "AGEP": (0, 99), "NOC": (1, 19), "NPF": (2, 20), "DENSITY": (16.3, 52864.7),
    "PINCP": (-9000, 1341000), "POVPIP": (0, 500), "WGTP": (1, 9999), "PWGTP": (1, 9999),
}  # fmt: skip
EXTRA_CODES = {"RAC1P": {"4"}}

Text = Sequence[str]


def texts(table: pa.Table) -> dict[str, list[str]]:
    """Every column as text, missing values as NIST's code for them."""
    return {
        name: [NULL if cell is None else str(cell) for cell in table[name].to_pylist()]
        for name in table.column_names
    }


def code_of(cell: str) -> str:
    """A category's code: `3.0` is `3`, words stay."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return str(int(np.round(number))) if math.isfinite(number) else cell


def numbers(cells: Text) -> np.ndarray:
    def number(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            return math.nan

    return np.array([number(cell) for cell in cells], float)


def is_refused(name: str, cells: Text, schema: Mapping[str, dict]) -> bool:
    """Does the column hold a value outside NIST's dictionary? Then it is left out and reported."""
    facts = schema[name]
    nullable = bool(facts.get("has_null"))
    if name in RANGES:
        strange = {cell for cell, value in zip(cells, numbers(cells), strict=True) if math.isnan(value)}
        return bool(strange - ({NULL} if nullable else set()))
    known = {str(value) for value in facts.get("values", [])} | EXTRA_CODES.get(name, set())
    known |= {str(facts.get("null_value", NULL))} if nullable else set()
    return bool({cell if name == GROUP else code_of(cell) for cell in set(cells)} - known)


def density_edges() -> np.ndarray:
    top = RANGES["DENSITY"][1] + 500
    return np.array([0.0, 150.0, *np.logspace(1.0, math.log10(top), 21)[8:]])


def share_edges(true: np.ndarray, file: np.ndarray, nullable: bool) -> np.ndarray:
    """Edges at equal shares of the target's values."""
    beyond = [file.max()] if len(file) and file.max() > true.max() else []
    beyond += [file.min()] if len(file) and file.min() < true.min() else []
    count = BINS - int(nullable) - len(beyond)
    edges = np.percentile(true, [100 * i / count for i in range(count)], method="higher")
    return np.unique([*edges, true.max(), *beyond])


def codes(name: str, true: Text, file: Text, schema: Mapping[str, dict]) -> list[np.ndarray]:
    """Both columns as whole-number codes from 0 on one scale."""
    if name not in RANGES:
        words = [[cell if name == GROUP else code_of(cell) for cell in side] for side in (true, file)]
        scale = {word: i for i, word in enumerate(dict.fromkeys(words[0] + words[1]))}
        return [np.array([scale[word] for word in side], np.int64) for side in words]
    low, high = RANGES[name]
    sides = [numbers(side) for side in (true, file)]
    if float(low).is_integer() and float(high).is_integer():
        sides = [np.round(side) for side in sides]
    known = [side[~np.isnan(side)] for side in sides]
    if name == "DENSITY":
        edges = density_edges()
        sides = [np.clip(np.where(side > edges[-1], high + 400, side), 0.0, None) for side in sides]
    elif high - low <= BINS:
        edges = np.unique(np.concatenate(known)) - 0.5  # a bin of its own for every whole number
    else:
        edges = share_edges(*known, bool(schema[name].get("has_null")))
    found = []
    for side in sides:
        place = np.searchsorted(edges, side, side="left")
        place[side == edges[0]] = 1
        found.append(np.where(np.isnan(side), 0, place).astype(np.int64))
    return found


def distance(columns: Sequence[Sequence[np.ndarray]]) -> float:
    """The sum over cells of |share in target - share in file|, of the columns together."""
    sizes = [len(side) for side in columns[0]]
    keys = [np.zeros(size, np.int64) for size in sizes]
    for pair in columns:
        levels = 1 + max(int(side.max(initial=0)) for side in pair)
        keys = [key * levels + side for key, side in zip(keys, pair, strict=True)]
    cells, place = np.unique(np.concatenate(keys), return_inverse=True)
    shares = [
        np.bincount(part, minlength=len(cells)) / size
        for part, size in zip((place[: sizes[0]], place[sizes[0] :]), sizes, strict=True)
    ]
    return float(np.abs(shares[0] - shares[1]).sum())


def score(
    target: Mapping[str, Text], file: Mapping[str, Text], schema: Mapping[str, dict]
) -> tuple[float, list[str]]:
    """The score of a file, 0 to 1000, and the columns that were left out."""
    shared = [name for name in schema if name in file and name in target]
    dropped = [name for name in shared if is_refused(name, file[name], schema)]
    columns = {n: codes(n, target[n], file[n], schema) for n in shared if n not in dropped}
    head = [columns.pop(GROUP)] if GROUP in columns else []
    pairs = list(combinations(columns.values(), 2)) or [tuple(columns.values())]
    mean = sum(distance([*head, *pair]) for pair in pairs) / len(pairs)
    return 500.0 * (2.0 - mean), dropped
