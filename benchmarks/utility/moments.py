"""The moments synthesizer and its rivals: train on synthetic rows, test on real ones, one door for all.

    python benchmarks/utility/moments.py [--data ../shared/data] [--only adult,num50,...]
        [--methods moments,ron-gauss,lda] [--seeds 10] [--out runs.jsonl] [--table]

epsilon = 1 (adult also 0.1 and under add-remove), delta = 1e-6, replace-one unless said. The bounds of
public data sets stand for declared ones. Every run is a release through plan, grant, engine and noise,
with fresh noise, and is judged on the same split by the same judges. With --out each run is appended to
a file and never repeated: start again to go on. Prints the mean over draws, half of a 95 % interval
(Student), the score of real rows, and CPU seconds of a release (plan, passes, model, sampling); with
--table the table of docs/explanation/utility.md, of what the file holds.
"""

import argparse
import json
import math
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import t as student

from adumbra.data.sources import open_source
from adumbra.evaluate import tstr, utility
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.workflow import prepare_in_memory

ADULT = {
    "age": (17, 90), "fnlwgt": (10_000, 1_500_000), "education-num": (1, 16),
    "capital-gain": (0, 100_000), "capital-loss": (0, 5_000), "hours-per-week": (1, 99),
}  # fmt: skip
BINARY = ("plants", "jester", "accidents_111")
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


def schema_of(columns, label, neighbours=REPLACE):
    return Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=neighbours, label=label)


def split(table, seed=0, share=0.2):
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(table.num_rows * (1 - share))
    return table.take(pa.array(order[:cut])), table.take(pa.array(order[cut:]))


def adult(folder, neighbours=REPLACE):
    frame = pq.read_table(folder / "adult.parquet").to_pandas()
    texts = [name for name in frame if name not in ADULT and name != "split"]
    for name in texts:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), "?").astype(str)
    columns = [
        Column(name=name, kind=Kind.INTEGER, lower=ADULT[name][0], upper=ADULT[name][1])
        if name in ADULT
        else Column(name=name, kind=Kind.CATEGORY, categories=tuple(sorted(set(frame[name]))))
        for name in frame
        if name != "split"
    ]
    is_train = frame["split"] == "train"
    tables = [
        pa.Table.from_pandas(part.drop(columns="split"), preserve_index=False)
        for part in (frame[is_train], frame[~is_train])
    ]
    return *tables, schema_of(columns, "income", neighbours)


def numeric(width, rows=20_000, tests=10_000, factors=8, seed=7):
    """The generator of the comparison with peers: factors, tanh, a binary label."""
    rng = np.random.default_rng(seed + width)
    hidden = rng.standard_normal((rows + tests, factors))
    loadings = rng.standard_normal((factors, width - 1)) / math.sqrt(factors)
    x = np.tanh(0.6 * (hidden @ loadings + 0.5 * rng.standard_normal((rows + tests, width - 1))))
    y = hidden @ rng.standard_normal(factors) + 0.5 * rng.standard_normal(rows + tests) > 0
    columns = [Column(name=f"x{i}", kind=Kind.NUMBER, lower=-1.0, upper=1.0) for i in range(width - 1)]
    columns.append(Column(name="y", kind=Kind.BOOLEAN))
    table = pa.table({f"x{i}": x[:, i].round(6) for i in range(width - 1)} | {"y": y})
    return table.slice(0, rows), table.slice(rows), schema_of(columns, "y")


def wide(folder, name):
    frame = pq.read_table(folder / f"{name}.parquet").to_pandas()
    label = "expression" if name == "gfe_user_a" else "label"
    if name == "gfe_user_a":
        frame = frame.drop(columns=["user", "frame", "target", "timestamp"])
    values = frame.drop(columns=label).astype(float)
    classes = frame[label].astype(str)
    bounds = {
        c: (0.0, 255.0) if name == "mnist_5k" else (values[c].min(), values[c].max()) for c in values
    }
    columns = [
        Column(name=c, kind=Kind.NUMBER, lower=low, upper=high if high > low else low + 1.0)
        for c, (low, high) in bounds.items()
    ]
    columns.append(Column(name="class", kind=Kind.CATEGORY, categories=tuple(sorted(set(classes)))))
    table = pa.table({c: values[c].to_numpy() for c in values} | {"class": classes.to_numpy()})
    return *split(table), schema_of(columns, "class")


def binary(folder, name):
    """Binary tables have no label: the column nearest to one half (of public data) plays the class."""
    frame = pq.read_table(folder / f"{name}.parquet").to_pandas().drop(columns="split").astype(bool)
    columns = [Column(name=c, kind=Kind.BOOLEAN) for c in frame]
    label = (frame.mean() - 0.5).abs().idxmin()
    return *split(pa.Table.from_pandas(frame, preserve_index=False)), schema_of(columns, label)


def web(folder):
    """w8a: 300 binary items and the label, as columns."""
    table = pq.read_table(folder / "w8a.parquet")
    rows = np.zeros((table.num_rows, 300), bool)
    for number, items in enumerate(table["items"].to_pylist()):
        rows[number, np.array(items, int) - 1] = True
    data = {f"i{j}": rows[:, j] for j in range(300)} | {"label": table["label"].to_numpy() > 0}
    columns = [Column(name=c, kind=Kind.BOOLEAN) for c in data]
    return *split(pa.table(data)), schema_of(columns, "label")


def census(folder):
    """acs_ma2019: few values make a category (missing one of its own), others are numbers."""
    frame = pq.read_table(folder / "acs_ma2019.parquet").to_pandas()
    columns, data = [], {}
    for name in frame:
        values = frame[name]
        if values.nunique() <= 30:
            text = values.astype(object).where(values.notna(), None)
            data[name] = [None if v is None else str(v) for v in text]
            levels = tuple(sorted({v for v in data[name] if v is not None}))
            own = {"missing": "category"} if None in data[name] else {}
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=levels, **own))
        else:
            data[name] = values.astype(float).to_numpy(na_value=float("nan"))
            low, high = float(values.min()), float(values.max())
            columns.append(Column(name=name, kind=Kind.NUMBER, lower=low, upper=high))
    return *split(pa.table(data)), schema_of(columns, "OWN_RENT")


def regression(folder):
    table = pq.read_table(folder / "pol.parquet")
    columns = [
        Column(name=n, kind=Kind.NUMBER, lower=float(np.min(table[n])), upper=float(np.max(table[n])))
        for n in table.column_names
    ]
    return *split(table), schema_of(columns, "target")


@cache
def load(folder, name):
    if name.startswith("adult"):
        return adult(folder, ADD if "add-remove" in name else REPLACE)
    if name.startswith("num"):
        return numeric(int(name[3:]))
    if name in BINARY:
        return binary(folder, name)
    special = {"w8a": web, "acs_ma2019": census, "pol": regression}
    return special[name](folder) if name in special else wide(folder, name)


def scores(synthetic, test, schema, name):
    """The scores of one synthetic (or real) table on real rows."""
    found = {}
    if name == "pol":
        found["ridge R2"] = tstr.ridge(synthetic, test, schema)
    else:
        logistic = tstr.logistic(synthetic, test, schema)
        found["LR AUC"], found["LR balanced accuracy"] = logistic.auc, logistic.balanced_accuracy
        if schema.width <= 101:
            found["trees AUC"] = tstr.boosted(synthetic, test, schema).auc
    left, right = (utility.table_codes(t, schema) for t in (synthetic, test))
    found["one-way TV"] = utility.one_way(left, right)
    if schema.width <= 101:
        found["two-way TV"] = utility.two_way(left, right)
    return found


def config_of(method, schema, rows, epsilon, seed):
    """Every method at the same budget, with the schema's public numbers."""
    budget = {"epsilon": epsilon, "delta": 1e-6}
    private = schema.neighbours is ADD
    if method == "moments":
        known = {"synthetic_rows": rows, "expected_rows": rows} if private else {}
        return MomentsConfig(**budget, **known)
    if method == "lda":
        known = {"synthetic_rows": rows, "expected_rows": rows} if private else {}
        return LDAConfig(**budget, **known)
    mode = "supervised" if schema.columns[schema.label_index].kind is Kind.NUMBER else "gmm"
    known = {"synthetic_rows": rows} if private else {}
    return RONGaussConfig(**budget, mode=mode, expected_rows=rows, matrix_seed=seed, **known)


def synthesize(method, table, schema, epsilon, seed):
    """One release through plan, grant, engine and noise; fresh noise every time."""
    config = config_of(method, schema, table.num_rows, epsilon, seed)
    return prepare_in_memory(open_source(table, schema), config).draw().table()


NAMES = (
    "adult adult-eps0.1 adult-add-remove num14 num50 num100 num300 num784 gfe_user_a mnist_5k sylva "
    "isolet_1560 acs_ma2019 plants jester accidents_111 w8a pol"
)
METHODS = ("real", "moments", "ron-gauss", "lda")


def run(name, method, seed, folder):
    """One line of the results: the scores of one table, and the CPU seconds of making it."""
    train, test, schema = load(folder, name)
    epsilon = 0.1 if name.endswith("eps0.1") else 1.0
    start = time.process_time()
    table = train if method == "real" else synthesize(method, train, schema, epsilon, seed)
    seconds = time.process_time() - start
    return scores(table, test, schema, name) | {"CPU s": seconds}


def interval(found, score):
    """The mean over draws, half of its 95 % interval, and how many draws."""
    values = np.array([scores[score] for scores in found if score in scores])
    if len(values) < 2:
        return (float(values.mean()) if len(values) else math.nan), 0.0, len(values)
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(half), len(values)


def show(name, runs):
    """One line a score: every method with its interval."""
    methods = [method for method in METHODS if runs.get(method)]
    for score in runs[methods[0]][0]:
        cells = []
        for method in methods:
            mean, half, count = interval(runs[method], score)
            cells.append(f"{method} {mean:.4f} +- {half:.4f} ({count})")
        print(f"{name:17s} {score:21s} " + "   ".join(cells), flush=True)


BY_DATA = {
    "adult": ("LR AUC", "trees AUC", "one-way TV", "two-way TV"),
    "adult-add-remove": ("LR AUC", "trees AUC", "one-way TV"),
    "pol": ("ridge R2", "one-way TV"),
} | dict.fromkeys(
    ("gfe_user_a", "mnist_5k", "sylva", "isolet_1560"), ("LR balanced accuracy", "one-way TV")
)  # fmt: skip


def short(value):
    return f"{value:.3f}".replace("0.", ".", 1)


def table(name, runs):
    """The rows of one data set in Markdown: the scores it is judged by."""
    for number, score in enumerate(BY_DATA.get(name, ("LR AUC", "one-way TV"))):
        cells = [name if number == 0 else "", score.replace("trees", "GB").replace("R2", "R²")]
        for method in ("moments", "ron-gauss", "lda"):
            mean, half, count = interval(runs[method], score)
            cells.append(f"{short(mean)} ± {short(half)} ({count})" if count else "")
        cells.append(short(interval(runs["real"], score)[0]))
        seconds = np.median([scores["CPU s"] for scores in runs["moments"]])
        cells.append(f"{seconds:.1f}" if number == 0 else "")
        print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default=NAMES.replace(" ", ","))
    parser.add_argument("--methods", default="moments,ron-gauss,lda")
    parser.add_argument("--table", action="store_true", help="Markdown; with --out and --seeds 0")
    parser.add_argument("--out", type=Path, help="JSON lines, one per run; runs found there are kept")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)  # slow convergence of the judge's own models
    done = {}
    if arguments.out is not None and arguments.out.exists():
        for line in arguments.out.read_text().splitlines():
            entry = json.loads(line)
            done[entry["data"], entry["method"], entry["seed"]] = entry["scores"]
    for name in arguments.only.split(","):
        wanted = [("real", 0)]
        wanted += [(m, seed) for seed in range(arguments.seeds) for m in arguments.methods.split(",")]
        if name == "pol":  # a number has no classes
            wanted = [(method, seed) for method, seed in wanted if method != "lda"]
        for method, seed in wanted:
            if (name, method, seed) not in done:
                found = done[name, method, seed] = run(name, method, seed, arguments.data)
                if arguments.out is not None:
                    entry = {"data": name, "method": method, "seed": seed, "scores": found}
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(entry) + "\n")
        runs = {m: [v for (n, k, _), v in done.items() if (n, k) == (name, m)] for m in METHODS}
        (table if arguments.table else show)(name, runs)


if __name__ == "__main__":
    main()
