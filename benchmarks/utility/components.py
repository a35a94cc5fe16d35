"""PCA and LDA publishing on Adult: the accuracies of the issue, and figures 2, 3 and 4 of the paper.

    python benchmarks/utility/components.py [DATA_FOLDER] [--trials 10] [--figures docs/figures]
                                            [--parts adult figure2 figure3] [--out FILE.json]

DATA_FOLDER (default ../shared/data) holds adult.parquet. Every private release goes through
`adumbra.release` with a ledger of its own and exact noise; baselines of the paper come from
`benchmarks/published/components.py`. NOT FOR RELEASE: everything here is compared with private rows.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).resolve().parents[1]))
from published import component_metrics as metrics
from published import components as published

import adumbra as ad
from adumbra.data.encode import Encoder
from adumbra.data.opening import open_source
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.postprocess.decode import decode_rows
from adumbra.postprocess.greedy import Targets, greedy_rows
from adumbra.postprocess.subspace import class_moments
from adumbra.relations import Neighbours, Unit

mpl.use("Agg")
import matplotlib.pyplot as plt

mpl.rcParams["svg.hashsalt"] = "adumbra"  # the same figure is the same file

DELTA = 1e-6
EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.25, 1.5)
SCHEMA = Path(__file__).parents[2] / "docs" / "tutorials" / "adult.toml"


def load(folder):
    """The complete rows of Adult in the paper's columns, and their schema."""
    schema = ad.Schema.read(SCHEMA)
    frame = pq.read_table(Path(folder) / "adult.parquet").to_pandas().dropna()
    return pa.Table.from_pandas(frame[list(schema.names)], preserve_index=False), schema


def encoded(table, schema, *, label=True):
    """Encoded rows and class codes of a table."""
    schema = (
        schema
        if label
        else ad.Schema(columns=schema.columns, unit=schema.unit, neighbours=schema.neighbours)
    )
    encoder = Encoder(schema)
    batches = list(open_source(table, schema).batches(4096))
    x = np.concatenate([encoder.encode(batch) for batch in batches])
    y = np.concatenate([encoder.labels(batch) for batch in batches]) if label else None
    return x, y, encoder


def private(table, schema, config):
    """One paid release in a folder of its own; the released table."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = ad.create_ledger(Path(folder) / "ledger.db")
        ledger.register(
            ad.Population("adult", Unit.ROW, Neighbours.REPLACE_ONE, config.epsilon, config.delta)
        )
        done = ad.release(
            table, config, schema=schema, ledger=ledger, population="adult", out=Path(folder) / "out"
        )
        data = done.data
        ledger.close()
    return data


def splits(table, trials):
    """Two thirds for training, one third for testing, as the paper has it."""
    for trial in range(trials):
        order = np.random.default_rng(trial).permutation(table.num_rows)
        cut = 2 * table.num_rows // 3
        yield trial, table.take(order[:cut]), table.take(order[cut:])


def scores(x, y, test):
    lda, tree = metrics.lda_score((x, y), test), metrics.tree_score((x, y), test)
    return {
        "lda_accuracy": lda.accuracy,
        "lda_auc": lda.auc,
        "tree_accuracy": tree.accuracy,
        "tree_auc": tree.auc,
    }


def lda_published_not_private(x, y, encoder, epsilon, seed):
    """The paper's LDA: printed scale, exact class sizes, its own sampler with absolute errors."""
    rng = np.random.default_rng(seed)
    numbers, groups = len(encoder.numeric), len(encoder.groups)
    shift = np.zeros(encoder.width)
    shift[list(encoder.numeric)] = 0.5
    z = np.column_stack([x + shift, y == 0, y == 1]).astype(float)
    scale = published.lda_sensitivity_not_private(numbers, groups) / epsilon
    upper = np.triu(z.T @ z + rng.laplace(scale=scale, size=(z.shape[1],) * 2))
    gram = upper + np.triu(upper, 1).T
    width, n = encoder.width, len(x)
    sizes = np.array([(y == 0).sum(), (y == 1).sum()])
    gram[range(width, width + 2), range(width, width + 2)] = sizes  # exact, as printed
    means = (gram[:width, width:] / sizes).T - shift
    mean = sizes / n @ (means + shift)
    second = (
        gram[:width, :width] / n - np.outer(mean, shift) - np.outer(shift, mean) + np.outer(shift, shift)
    )
    targets = Targets(sizes / n, means, second, encoder.numeric, encoder.groups)
    return greedy_rows(targets, n, loss="absolute")


def measured(name, epsilon, released, context):
    """Every measure of figures 3 and 4 for one release."""
    (found, labels), (encoder, held, truth) = released, context
    features = metrics.marginals(found, encoder.numeric, encoder.groups)
    return {
        "method": name,
        "epsilon": epsilon,
        **scores(found, labels, held),
        "entropy": metrics.entropy(features),
        "divergence": metrics.divergence(features, truth, len(found)),
    }


def run_classification(table, schema, trials):
    """Accuracy, AUC, entropy and KL over epsilon: the Adult table, figures 3 and 4."""
    rows = []
    for trial, train, test in splits(table, trials):
        x, y, encoder = encoded(train, schema)
        truth = metrics.marginals(x, encoder.numeric, encoder.groups)
        context = (encoder, encoded(test, schema)[:2], truth)
        rows.append(measured("private rows", 0.0, (x, y), context))
        for epsilon in EPSILONS:
            for name, delta in (("LDA (eps, delta=1e-6)", DELTA), ("LDA pure eps", 0.0)):
                released = private(train, schema, LDAConfig(epsilon=epsilon, delta=delta))
                rows.append(measured(name, epsilon, encoded(released, schema)[:2], context))
            paper = lda_published_not_private(x, y, encoder, epsilon, trial)
            rows.append(measured("as published (not private)", epsilon, paper, context))
        print(f"  split {trial + 1} of {trials} done", file=sys.stderr, flush=True)
    return rows


def run_rows(table, schema, trials):
    """Squared F-norm a row over k and epsilon: figure 2."""
    x, _, encoder = encoded(table, schema, label=False)
    width = len(encoder.numeric) + 2 * len(encoder.groups)
    rows = []

    def note(name, epsilon, k, released):
        found = encoded(released, schema, label=False)[0]
        rows.append(
            {"method": name, "epsilon": epsilon, "k": k, "error": metrics.squared_error(found, x)}
        )

    for trial in range(trials):
        for epsilon in EPSILONS:
            laplace = published.identity_laplace(x, width, epsilon, seed=trial)
            note("Laplace", epsilon, 0, decode_rows(encoder, laplace))
            chosen = published.identity_exponential(
                x, encoder.numeric, encoder.groups, epsilon, seed=trial
            )
            note("exponential", epsilon, 0, decode_rows(encoder, chosen))
            for k in (0, 1, 2, 3, 5, 7, 10):
                for name, shrink in (("PCA pure", False), ("PCA pure, shrunk", True)):
                    if k or not shrink:
                        config = PCAConfig(n_components=k, epsilon=epsilon, delta=0.0, shrink=shrink)
                        note(name if k else "mean (k=0)", epsilon, k, private(table, schema, config))
        print(f"  rows, run {trial + 1} of {trials} done", file=sys.stderr, flush=True)
    values = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    return rows, (np.cumsum(values) / values.sum()).tolist()


def average(rows, method, epsilon, name, **other):
    """Mean and standard deviation of a measure."""
    found = [
        row[name]
        for row in rows
        if row["method"] == method
        and row["epsilon"] == epsilon
        and all(row[k] == v for k, v in other.items())
    ]
    return float(np.mean(found)), float(np.std(found))


def print_adult(rows):
    """The table of the issue."""
    print("| method | epsilon | LDA accuracy | LDA AUC | tree accuracy | tree AUC | entropy | KL |")
    print("|---|---|---|---|---|---|---|---|")
    keys = sorted({(row["method"], row["epsilon"]) for row in rows})
    names = ("lda_accuracy", "lda_auc", "tree_accuracy", "tree_auc", "entropy", "divergence")
    for method, epsilon in keys:
        cells = [average(rows, method, epsilon, name)[0] for name in names]
        print(f"| {method} | {epsilon or '-'} | " + " | ".join(f"{cell:.4f}" for cell in cells) + " |")


def draw_lines(rows, panels, path, title):
    """One panel a measure: lines over epsilon with bars of one standard deviation."""
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 3.8), constrained_layout=True)
    methods = sorted({row["method"] for row in rows} - {"private rows"})
    for axis, (name, label) in zip(np.atleast_1d(axes), panels, strict=True):
        for method in methods:
            values = [average(rows, method, epsilon, name) for epsilon in EPSILONS]
            centre, spread = zip(*values, strict=True)
            axis.errorbar(EPSILONS, centre, spread, label=method, capsize=2)
        axis.axhline(
            average(rows, "private rows", 0.0, name)[0], color="black", ls=":", label="private rows"
        )
        axis.set_xlabel("epsilon")
        axis.set_ylabel(label)
    np.atleast_1d(axes)[0].legend(fontsize=8)
    figure.suptitle(title)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_figure2(rows, energy, path):
    """Energy of components; error over k at each epsilon, against the baselines and the mean."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), constrained_layout=True)
    axes[0].plot(range(1, len(energy) + 1), energy)
    axes[0].set(xlabel="components", ylabel="share of variance")
    ks = (1, 2, 3, 5, 7, 10)
    for epsilon in EPSILONS:
        values = [average(rows, "PCA pure", epsilon, "error", k=k)[0] for k in ks]
        axes[1].plot(ks, values, marker="o", label=f"PCA, epsilon={epsilon}")
    axes[1].axhline(
        average(rows, "mean (k=0)", 1.0, "error")[0], color="black", ls=":", label="mean (k=0)"
    )
    axes[1].set(xlabel="k", ylabel="squared error a row")
    axes[1].legend(fontsize=7)
    for name, k in (
        ("Laplace", 0),
        ("exponential", 0),
        ("mean (k=0)", 0),
        ("PCA pure", 1),
        ("PCA pure", 10),
        ("PCA pure, shrunk", 5),
    ):
        values = [average(rows, name, epsilon, "error", k=k)[0] for epsilon in EPSILONS]
        axes[2].plot(EPSILONS, values, marker="o", label=name + (f", k={k}" if k else ""))
    axes[2].set(xlabel="epsilon", ylabel="squared error a row")
    axes[2].legend(fontsize=7)
    figure.suptitle("Adult, rows released one to one (decoded): figure 2 of the paper, with valid noise")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def print_rows(rows):
    """Errors of figure 2."""
    print("| method | k | " + " | ".join(f"eps={e}" for e in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    for method, k in sorted({(row["method"], row["k"]) for row in rows}):
        cells = [average(rows, method, epsilon, "error", k=k)[0] for epsilon in EPSILONS]
        print(f"| {method} | {k} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


def exact_sampler(table, schema):
    """The sampler on exact moments: precision at 1,500 rows, time for 30,000."""
    x, y, encoder = encoded(table, schema)
    z = np.column_stack([x, y == 0, y == 1]).astype(float)
    low, high = x.min(axis=0) - 1.0, x.max(axis=0) + 1.0
    moments = class_moments(z.T @ z, float(len(x)), low, high, sigma=0.0, edge=0.0)
    targets = Targets(moments.shares, moments.means, moments.second, encoder.numeric, encoder.groups)
    for loss in ("squared", "absolute"):
        rows, labels = greedy_rows(targets, 1500, loss=loss)
        means = np.array([rows[labels == c].mean(axis=0) for c in (0, 1)])
        score = metrics.lda_score((rows, labels), (x, y))
        off = np.abs(means - moments.means).mean()
        second = np.abs(rows.T @ rows / 1500 - moments.second).mean()
        print(
            f"{loss}: 1,500 rows of exact moments, class means off by {off:.5f}, second by {second:.5f}"
        )
        print(f"  LDA trained on them: accuracy {score.accuracy:.4f}, AUC {score.auc:.4f}")
        for engine in ("numba", "numpy"):
            started = time.process_time()
            greedy_rows(targets, 30_000, loss=loss, engine=engine)
            taken = time.process_time() - started
            print(f"  30,000 rows x {encoder.width} columns, {engine}: {taken:.2f} s of CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default="../shared/data")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--figures", type=Path, default=Path("docs/figures"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", nargs="+", default=["sampler", "adult", "figure2"])
    arguments = parser.parse_args()
    table, schema = load(arguments.folder)
    arguments.figures.mkdir(parents=True, exist_ok=True)
    results = {}
    if "sampler" in arguments.parts:
        exact_sampler(table, schema)
    if "adult" in arguments.parts:
        rows = results["adult"] = run_classification(table, schema, arguments.trials)
        print_adult(rows)
        panels = [
            ("lda_accuracy", "accuracy, LDA"),
            ("lda_auc", "AUC, LDA"),
            ("tree_accuracy", "accuracy, tree"),
        ]
        draw_lines(rows, panels, arguments.figures / "components_figure3.svg", "Adult: classifiers")
        panels = [("entropy", "entropy (bits)"), ("divergence", "KL from private rows (bits)")]
        draw_lines(
            rows,
            panels,
            arguments.figures / "components_figure4.svg",
            "Adult: information in released columns",
        )
    if "figure2" in arguments.parts:
        rows, energy = run_rows(table, schema, max(1, arguments.trials // 5))
        results["figure2"] = rows
        print_rows(rows)
        draw_figure2(rows, energy, arguments.figures / "components_figure2.svg")
    if arguments.out:
        arguments.out.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
