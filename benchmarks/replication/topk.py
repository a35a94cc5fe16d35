"""Top-k frequent columns: F-scores over epsilon for k = 100, 150, 200 (figures 4 to 9)."""

from functools import partial

import pyarrow as pa
from published import topk as published
from utility.topk import OURS, THEIRS, KeptEngine, our_columns, their_columns

from adumbra.data.opening import open_source
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from adumbra.statistics.counts import ItemCounts, item_rows
from replication.cells import Cell, Experiment, Paper

KS = (100, 150, 200)
EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0)
AUTO = ("auto", 0.0)  # the product's own choice, with a guess of the rows to one digit
SHOWN = ("frefirst", "tps-em", "tps-pfm", "tps-refine", "em", "gaussian")
FIGURES = {"bms_pos": 4, "retail": 5, "pumsb_star": 6, "tafeng": 7, "bms_webview1": 8, "bms_webview2": 9}


def figures(data):
    offsets, codes, universe = data.lists
    table = pa.table({"items": pa.ListArray.from_arrays(offsets, pa.array(codes, pa.int32()))})
    schema = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=ItemSpec(upper=universe - 1))
    source, engine = open_source(table, schema), KeptEngine()
    counts = engine.fold(source, item_rows, ItemCounts(width=source.width), stage="count").units
    guess = float(f"{table.num_rows:.0e}")  # what an owner may declare of a private number of rows
    number = FIGURES.get(data.name)
    for k in KS:
        exact = published.true_columns(counts, k)

        def score(_, draw, exact=exact):
            return published.f_score(exact, draw())

        for epsilon in EPSILONS:
            where = {
                "item": "Figures 4 to 9",
                "data": data.name + (f" (figure {number})" if number else " (not in the paper)"),
                "setting": f"k={k}, epsilon={epsilon:g}",
                "measure": "F-score",
            }
            for name, arm in THEIRS.items():
                draw = partial(their_columns, source, engine, k, epsilon, *arm)
                label = name.replace("paper ", "").replace("literal, ", "") + " as printed (not private)"
                yield Cell(**where, arm=label, kind="as printed", draw=partial(score, draw=draw))
            for name in SHOWN:
                draw = partial(our_columns, source, engine, k, epsilon, *OURS[name])
                yield Cell(**where, arm=f"ours, {name}", kind="ours", draw=partial(score, draw=draw))
            draw = partial(our_columns, source, engine, k, epsilon, *AUTO, guess=int(guess))
            yield Cell(**where, arm="ours, auto", kind="ours", draw=partial(score, draw=draw))
            yield Cell(
                **where,
                arm="k random columns",
                kind="floor",
                draw=lambda _, s=k / universe: s,
                once=True,
            )


PAPER = Paper(
    "top-k",
    "Top-k frequent columns (TPS, PFM)",
    (
        Experiment(
            "Figures 4 to 9",
            "F-score of the k columns, add-remove; `gaussian` is delta = 1e-6, the others pure; "
            "`auto` chooses by a public rule, with a guess of the rows to one digit",
            figures,
            "top-k",
            ("bms_pos", "retail", "pumsb_star", "tafeng", "bms_webview1", "bms_webview2"),
        ),
    ),
    (
        "The text prints no number behind its figures.",
        "BMS-POS, the whole pumsb_star and BMS-WebView-2 are not held here; add the file.",
    ),
)
