"""One small page of every kind, from generated tables with long names, gaps and a rare class."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

import adumbra as ad
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Order, Schema
from support.cli import in_process

LONG = "measurement_without_any_break_" * 3 + "end"
ROWS = 400
NUMBERS = 20
LEVELS = ("an unusually long name of a category", "b", "c", "rare")
BOTH = {"epsilon": 2.0, "delta": 1e-6}
KINDS = {  # every method, and every mode with pictures of its own
    "moments": (ad.MomentsConfig(**BOTH, synthetic_rows=300), "table"),
    "moments-items": (ad.MomentsConfig(**BOTH, synthetic_rows=300), "items"),
    "ron-gauss": (ad.RONGaussConfig(**BOTH, n_components=4, mode="unsupervised"), "numbers"),
    "ron-gauss-gmm": (ad.RONGaussConfig(**BOTH, n_components=4, mode="gmm"), "filled"),
    "pca": (ad.PCAConfig(**BOTH, n_components=3), "numbers"),
    "pca-sample": (ad.PCAConfig(**BOTH, n_components=3, output="sample"), "numbers"),
    "lda": (ad.LDAConfig(epsilon=2.0, delta=0.0, synthetic_rows=300), "filled"),
    "dppro": (ad.DPProConfig(**BOTH, n_components=4), "numbers"),
    "jl-laplace": (ad.JLLaplaceConfig(epsilon=2.0, delta=0.0, n_components=4), "numbers"),
    "answers": (ad.AnswersConfig(**BOTH), "filled"),
    "bounds": (ad.BoundsConfig(**BOTH), "private"),
    "top-k": (ad.TopKConfig(epsilon=2.0, delta=0.0, k=10), "items"),
}


def columns(missing="null"):
    """Numbers in two groups, one with gaps, a count that is mostly 0, a long category, a label."""
    named = [f"value_{at:02d}" for at in range(NUMBERS - 3)] + [LONG, "lowest", "highest"]
    numbers = [Column(name=name, kind=Kind.NUMBER, lower=-5.0, upper=5.0) for name in named]
    numbers.append(Column(name="with gaps", kind=Kind.NUMBER, lower=0.0, upper=1e6, missing=missing))
    numbers.append(Column(name="visits", kind=Kind.INTEGER, lower=0, upper=30))
    kinds = [Column(name="site", kind=Kind.CATEGORY, categories=LEVELS)]
    return (*numbers, *kinds, Column(name="ill", kind=Kind.BOOLEAN))


def schema_of(what, rows=ROWS):
    """The declarations of one of the tables."""
    if what == "items":
        return Schema(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, items=ItemSpec(upper=39))
    used = columns() if what == "table" else columns(missing=0.0)
    used = used[:NUMBERS] if what == "numbers" else used
    if what == "private":
        used = tuple(replace(one, private=one.kind is not Kind.BOOLEAN) for one in used)
    facts = {"label": "ill", "constraints": (Order(lower="lowest", upper="highest"),)}
    return Schema(
        columns=used, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, rows=rows,
        declared_by="a custodian", **({} if what == "numbers" else facts),
    )  # fmt: skip


def rows_of(what, seed=0, rows=ROWS):
    """The generated rows."""
    rng = np.random.default_rng(seed)
    if what == "items":
        return [
            sorted({int(item) for item in rng.geometric(0.1, 6) - 1 if item <= 40}) for _ in range(rows)
        ]
    ill = rng.random(rows) < 0.3
    groups = rng.standard_normal((rows, 2)) + 1.5 * ill[:, None]
    made = {
        column.name: np.clip(groups[:, at % 2] + 0.6 * rng.standard_normal(rows), -5, 5)
        for at, column in enumerate(columns()[:NUMBERS])
    }
    made["highest"] = np.clip(made["lowest"] + rng.exponential(1.0, rows), -5, 5)
    if what != "numbers":
        gaps = rng.random(rows) < 0.3
        made["with gaps"] = pa.array(np.exp(rng.normal(9, 1, rows)), mask=gaps)
        made["visits"] = np.minimum(rng.poisson(0.4, rows), 30)
        made["site"] = np.array(LEVELS)[rng.choice(4, rows, p=[0.5, 0.3, 0.19, 0.01])]
        made["ill"] = ill
    return pa.table(made)


def release_of(name, out, rows=ROWS):
    """A release of one kind into a folder."""
    config, what = KINDS[name]
    schema = schema_of(what, rows)
    ledger = memory_ledger()
    ledger.register(Population("people", schema.unit, schema.neighbours, 9.0, config.delta))
    data = rows_of(what, rows=rows)
    if what == "items":
        (out.parent / f"{out.name}.dat").write_text("\n".join(" ".join(map(str, row)) for row in data))
        data = out.parent / f"{out.name}.dat"
    about = {"title": f"A page of {name}", "curator": "the curator"}
    return ad.release(
        data, config, schema=schema, ledger=ledger, population="people", out=out, about=about
    )


def evaluation_of(releases, rows=ROWS, models=100):
    """Releases of the table beside its rows, with attacks."""
    data, others = rows_of("table", rows=rows), rows_of("table", seed=1, rows=rows)
    return ad.evaluate(data, releases, holdout=others, shadows=0, rows=models)


def figure_of(folder):
    """The drawing of all methods over budgets, as the command line writes it."""
    (folder / "table.toml").write_text(schema_of("filled").to_toml(), encoding="utf-8")
    done = in_process(
        "plan", "--schema", folder / "table.toml", "--epsilon", "0.1,0.5,2", "--compare",
        "--figure", folder / "plan.svg",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "plan.svg"


def notebook_of(release):
    """What a notebook shows of everything, on one page of its own as plain as a notebook's."""
    shown = [
        schema_of("table"),
        ad.plan(KINDS["moments"][0], schema_of("table")),
        release.guarantee,
        release,
    ]
    body = "".join(f"<div>{one._repr_html_()}</div>" for one in shown)
    head = '<!doctype html><meta name="viewport" content="width=device-width"><title>Notebook</title>'
    return f"{head}<style>div {{ overflow-x: auto }}</style><h1>Notebook</h1><h2>Views</h2>{body}"
