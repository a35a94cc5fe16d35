"""Whole releases for `answers_coverage.py`: asked as a recipient asks, and rows taken for data."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from answers_tables import STORED

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.workflow import prepare_in_memory


def whole_releases(table: pa.Table, schema: ad.Schema, name: str, epsilon: float, count: int) -> dict:
    """Releases through a ledger and `load`: hits of all answers, about the capped table of each."""
    outcome, frame = STORED[name], table.to_pandas()
    numbers = [c.name for c in schema.columns if c.is_numeric and c.name != outcome][:5]
    hits, told = 0, 0
    with tempfile.TemporaryDirectory() as place, ad.create_ledger(Path(place) / "l.db") as ledger:
        top = epsilon * count
        ledger.register(ad.Population("all", schema.unit, schema.neighbours, epsilon=top, delta=1e-3))
        for turn in range(count):
            out = Path(place) / f"r{turn}"
            config = ad.AnswersConfig(epsilon=epsilon, outcome=outcome)
            ad.release(table, config, schema=schema, ledger=ledger, population="all", out=out)
            release = ad.load(out)
            capped = frame.copy()
            for column, (low, high) in release.card["facts"]["caps"].items():
                capped[column] = capped[column].clip(low, high)
            design = np.column_stack([np.ones(len(capped)), capped[numbers]])
            truth = np.linalg.lstsq(design, capped[outcome].to_numpy(float), rcond=None)[0]
            pairs = [(release.mean(n), float(capped[n].mean())) for n in numbers]
            pairs += list(zip(release.regress(outcome, numbers).values(), truth, strict=True))
            for answer, value in pairs:
                wide = 1e-4 * abs(value) + 1e-9  # rows are rounded to 2^-15
                low, high = answer.interval
                told += not answer.is_hidden
                hits += (not answer.is_hidden) and low - wide <= value <= high + wide
    return {"releases": count, "told": told, "hits": int(hits), "asked": count * (2 * len(numbers) + 1)}


def naive(table: pa.Table, schema: ad.Schema, name: str, epsilon: float, count: int) -> dict:
    """Means and coefficients of the rows of `moments` releases, with the intervals of data."""
    outcome, frame = STORED[name], table.to_pandas()
    numbers = [c.name for c in schema.columns if c.is_numeric and c.name != outcome][:5]
    truth = _ols(frame, outcome, numbers)[0]
    means, slopes = np.zeros(len(numbers)), np.zeros(len(numbers) + 1)
    for _ in range(count):
        config = ad.MomentsConfig(epsilon=epsilon, synthetic_rows=len(frame), expected_rows=len(frame))
        rows = prepare_in_memory(open_source(table, schema), config).draw().table().to_pandas()
        for place, number in enumerate(numbers):
            half = 1.96 * rows[number].std() / len(rows) ** 0.5
            means[place] += abs(rows[number].mean() - frame[number].mean()) <= half
        beta, error = _ols(rows, outcome, numbers)
        slopes += np.abs(beta - truth) <= 1.96 * error
    found = {"means": means / count, "coefficients": slopes / count}
    return {"releases": count} | {
        key: [float(one.mean()), float(one.min())] for key, one in found.items()
    }


def _ols(frame: object, outcome: str, numbers: list[str]) -> tuple[np.ndarray, np.ndarray]:
    design = np.column_stack([np.ones(len(frame)), frame[numbers].to_numpy(float)])
    target = frame[outcome].to_numpy(float)
    beta = np.linalg.lstsq(design, target, rcond=None)[0]
    rest = target - design @ beta
    inverse = np.linalg.pinv(design.T @ design)
    return beta, np.sqrt(rest @ rest / len(rest) * np.diagonal(inverse))
