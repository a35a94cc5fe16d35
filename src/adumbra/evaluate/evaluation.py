"""NOT FOR RELEASE: `evaluate`, which holds releases against the private rows that they were made from.

Every figure is computed from private rows and no budget pays for it: the page is for the custodian's
desk. Whoever chooses among releases after reading it makes a choice on private data. With a ledger the
evaluation is written there first, and later releases of the population say so on their cards.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from adumbra.answers.askable import load
from adumbra.audit.internal import attack_release, facts
from adumbra.errors import InvalidInput, require
from adumbra.evaluate import learning, shape
from adumbra.evaluate.beside import sdmetrics_quality
from adumbra.evaluate.tables import Rows, Split, independent_rows, read_rows, released_table, split_rows
from adumbra.evaluate.utility import STAMP
from adumbra.mechanisms.methods import config_of
from adumbra.numerics import Array
from adumbra.privacy.ledger import Ledger, open_ledger
from adumbra.release.artifact import Release
from adumbra.report.evaluation import render_evaluation
from adumbra.schema.schema import Schema
from adumbra.version import __version__
from adumbra.workflow import COMPARED

FORMAT = "adumbra-evaluation/1"
WARNING = (
    "Choosing among releases after reading this page is a choice made on private data, and no budget "
    "covers it."
)
MOST_HEAT = 24
MODEL_ROWS = 10_000
LEAST_MODEL_ROWS = 100
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation:
    """Figures of releases against private rows; NOT FOR RELEASE."""

    facts: Mapping[str, Any]
    folders: tuple[Path, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        return dict(self.facts)

    def to_html(self) -> str:
        """One page without script or network, stamped."""
        return render_evaluation(self.facts)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the page for its owner alone; never inside a release."""
        target = Path(path)
        require_outside(target, self.folders)
        require(force or not os.path.lexists(target), f"path={target}: exists already; give force=True")
        page = self.to_html()
        target.unlink(missing_ok=True)
        target.touch(mode=0o600)  # made from private rows: nobody else's from its first byte on
        target.write_text(page, encoding="utf-8")

    def __repr__(self) -> str:
        names = ", ".join(one["name"] for one in self.facts["releases"])
        return f"Evaluation({names}: {STAMP})"

    def _repr_html_(self) -> str:
        """For notebooks: the first table of the page, stamped."""
        return render_evaluation(self.facts, is_whole=False)


def require_outside(target: Path, folders: Sequence[Path]) -> None:
    """Refuse a page that would be published with a release."""
    for folder in folders:
        require(
            not target.resolve().is_relative_to(folder.resolve()),
            f"out={target}: lies in the release {folder}; this page may never be published; "
            "choose another place",
        )


def evaluate(  # noqa: PLR0913 - the rows, the releases, and what they are judged with
    data: object,
    releases: str | Path | Release | Sequence[str | Path | Release],
    *,
    holdout: object = None,
    schema: Schema | None = None,
    shadows: int = 60,
    rows: int = MODEL_ROWS,
    ledger: str | Path | Ledger | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Hold releases against the private rows that they were made from. NOT FOR RELEASE.

    Parameters
    ----------
    data : the rows that were released, in any form that `release` takes
    releases : one release or several, as folders or as loaded; each is verified when it is loaded
    holdout : rows of the same kind that were in no release; models are tested on them, and attacks
        compare them with the members. Without them there are no attacks.
    schema : how the rows are read; by default the schema on the first card
    shadows : shadow releases for the membership attack; 0 leaves that attack out
    rows : how many rows each model learns from; pairs are counted on twice as many
    ledger : where to write that these releases were evaluated; later releases of the same population
        then say so on their cards unless `before_dp` says something else
    progress : called with the name of a step, how many are done, and None

    Returns
    -------
    Evaluation: figures by `to_dict()`, a page by `save(path)`.

    Raises
    ------
    InvalidInput for releases of different columns or without rows of the declared columns.
    """
    many = [releases] if isinstance(releases, str | Path | Release) else list(releases)
    require(bool(many), "releases: none given; name at least one release folder")
    require(rows >= LEAST_MODEL_ROWS, f"rows={rows}: must be at least {LEAST_MODEL_ROWS}")
    require(shadows == 0 or shadows >= 4, f"shadows={shadows}: must be 0, or at least 4")
    loaded = [one if isinstance(one, Release) else load(one) for one in many]
    names = _names(loaded)
    declared = (schema or loaded[0].schema).require_closed(bought=False)
    own = [_columns_of(one, declared, name) for one, name in zip(loaded, names, strict=True)]
    recorded = _record(ledger, loaded)
    steps = _Steps(progress)
    steps.say("reading rows")
    real = read_rows("data", data, declared)
    left_out = None if holdout is None else read_rows("holdout", holdout, declared)
    tables = [
        read_rows(name, released_table(one, used, name), used)
        for one, used, name in zip(loaded, own, names, strict=True)
    ]
    found: dict[str, Any] = {
        "format": FORMAT,
        "stamp": STAMP,
        "warning": WARNING,
        "before_dp": before_words(loaded),
        "recorded": recorded,
        "adumbra_version": __version__,
        "rows": real.counted,
        "sampled_rows": len(real.values),
        "columns": declared.width,
        "releases": [_about(*one) for one in zip(loaded, names, tables, strict=True)],
    }
    found |= _shapes(declared, real, tables, 2 * rows, steps)
    found |= _tasks(declared, split_rows(real, left_out), tables, rows, steps)
    found["attacks"] = None
    if holdout is not None:
        found["attacks"] = [_attacked(one, data, holdout, declared, shadows, steps) for one in loaded]
    steps.say("SDMetrics")
    found["sdmetrics"] = sdmetrics_quality(declared, real.values, [one.values for one in tables])
    folders = tuple(one.path for one in loaded if one.path is not None)
    return Evaluation(facts=found, folders=folders)


class _Steps:
    """Counts steps for a progress bar; the number of steps says nothing of the rows."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._done = progress, 0

    def say(self, step: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(f"evaluate: {step}", self._done, None)


def _names(loaded: Sequence[Release]) -> list[str]:
    """The folder's name, else the title; a number after it where two are alike."""
    names: list[str] = []
    for one in loaded:
        name = one.path.resolve().name if one.path is not None else str(one.card["about"]["title"])
        taken = names.count(name) or sum(other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({taken + 1})" if taken else name)
    return names


def _columns_of(release: Release, declared: Schema, name: str) -> Schema:
    """The declared columns, which the release must have; its order of columns does not matter."""
    released_table(release, declared, name)
    own = {column.name: column for column in release.schema.columns}
    for column in declared.columns:
        if own.get(column.name) != column:
            raise InvalidInput(
                f"{name}: column {column.name!r} is declared unlike the first release; "
                "evaluate releases of one schema, or give --schema"
            )
    return declared


def _record(ledger: str | Path | Ledger | None, loaded: Sequence[Release]) -> bool:
    """Write the evaluation to the ledger, before a row is read."""
    if ledger is None:
        return False
    entries = [str(one.card["ledger"]["entry"]) for one in loaded]
    if isinstance(ledger, Ledger):
        ledger.note_evaluation(entries)
    else:
        with open_ledger(ledger) as book:
            book.note_evaluation(entries)
    return True


def before_words(loaded: Sequence[Release]) -> str:
    """What a later release says of this evaluation."""
    entries = ", ".join(str(one.card["ledger"]["entry"]) for one in loaded)
    return f"{COMPARED} ({entries})"


def _about(release: Release, name: str, rows: Rows) -> dict[str, Any]:
    card = release.card
    return {
        "name": name,
        "title": card["about"]["title"],
        "method": card["method"]["name"],
        "epsilon": card["guarantee"]["quoted"]["epsilon"],
        "sentence": card["guarantee"]["sentence"],
        "entry": card["ledger"]["entry"],
        "rows": rows.counted,
    }


def _shapes(
    schema: Schema, real: Rows, tables: Sequence[Rows], most: int, steps: _Steps
) -> dict[str, Any]:
    """One-way and pair errors, rare levels, spikes, impossible rows."""
    steps.say("columns")
    half = len(real.values) // 2
    halves = [shape.histograms(schema, real.values[:half]), shape.histograms(schema, real.values[half:])]
    truth = shape.histograms(schema, real.values)
    shown = [shape.histograms(schema, one.values) for one in tables]
    errors = [shape.distances(truth, one) for one in shown]
    by_chance = shape.distances(halves[0], halves[1])
    return {
        "one_way": {
            "chance": _mean_and_worst(by_chance, schema),
            "releases": [_mean_and_worst(one, schema) for one in errors],
        },
        "histograms": _histograms(schema, truth, shown, errors),
        "pairs": _pairs(schema, real, tables, most, steps),
        "rare": shape.rare_levels(schema, truth, shown),
        "spikes": shape.spikes(schema, real.values, [one.values for one in tables]),
        "impossible": {
            "real": shape.impossible_share(schema, real.values),
            "releases": [shape.impossible_share(schema, one.values) for one in tables],
        },
    }


def _mean_and_worst(errors: Array, schema: Schema) -> dict[str, Any]:
    at = int(np.argmax(errors))
    return {"mean": float(errors.mean()), "worst": float(errors[at]), "column": schema.names[at]}


def _histograms(
    schema: Schema, truth: list[Array], shown: list[list[Array]], errors: list[Array]
) -> list[dict[str, Any]]:
    """Every column, the worst of any release first."""
    order = np.argsort(-np.max(errors, axis=0), kind="stable")
    found = []
    for at in order:
        column = schema.columns[int(at)]
        found.append(
            {
                "column": column.name,
                "limits": list(column.limits) if column.is_numeric else None,
                "levels": [shape.level_name(column, code) for code in range(column.levels)],
                "real": truth[at].tolist(),
                "released": [one[at].tolist() for one in shown],
                "errors": [float(one[at]) for one in errors],
            }
        )
    return found


def _pairs(
    schema: Schema, real: Rows, tables: Sequence[Rows], most: int, steps: _Steps
) -> dict[str, Any] | None:
    """Errors of all pairs, a map of the worst columns and the worst pairs of each release."""
    if schema.width < 2:
        return None
    steps.say("pairs")
    cells = shape.PairCells.of(schema, real.values)
    sample = real.values[:most]
    half = len(sample) // 2
    first, second = cells.joint(sample[:half]), cells.joint(sample[half:])
    truth = first * (half / len(sample)) + second * (1.0 - half / len(sample))
    names = [schema.names[at] for at in cells.columns]
    upper = np.triu_indices(len(names), 1)

    def summary(errors: Array) -> dict[str, float]:
        return {"mean": float(errors[upper].mean()), "worst": float(errors[upper].max())}

    found = []
    for one in tables:
        errors = cells.distances(truth, cells.joint(one.values[:most]))
        order = np.argsort(-np.nanmean(errors, axis=1), kind="stable")[:MOST_HEAT]
        found.append(
            {
                **summary(errors),
                "names": [names[at] for at in order],
                "map": np.nan_to_num(errors[np.ix_(order, order)]).tolist(),
                "worst_pairs": shape.worst_pairs(errors, names),
            }
        )
    return {
        "columns": len(names),
        "chance": summary(cells.distances(first, second)),
        "independent": summary(cells.distances(truth, shape.independent_joint(truth))),
        "releases": found,
    }


def _tasks(
    schema: Schema, split: Split, tables: Sequence[Rows], most: int, steps: _Steps
) -> dict[str, Any]:
    """What models learn from real rows, from each release and from independent columns."""
    trained = [split.train, *(one.values for one in tables), independent_rows(split.train)]
    return {
        "tested_on": "rows that were left out" if split.is_held_out else "a part of the released rows",
        "is_held_out": split.is_held_out,
        "classify": learning.classify(schema, trained, split.test, most, steps.say),
        "regress": learning.regress(schema, trained, split.test, most, steps.say),
        "clusters": learning.clusters(schema, trained, split.test, most, steps.say),
    }


def _attacked(  # noqa: PLR0913, PLR0917 - a release and all that it is attacked with
    release: Release, data: object, holdout: object, schema: Schema, shadows: int, steps: _Steps
) -> dict[str, object]:
    steps.say("attacks")
    config = config_of(release.card["method"]["name"], release.card["method"]["config"])
    members = replace(schema.by_row(), rows=None)
    tried = shadows if schema.person is None else 0  # shadows hide one row, and the release hides more
    found = attack_release(release, data, holdout, members, config=config, shadows=tried)
    return facts(found, release.card)
