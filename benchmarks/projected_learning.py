"""DPPro's Figure 5 task: a class from 15 binary columns, learned from released rows.

    python benchmarks/projected_learning.py --data FOLDER [--table plants.parquet] [--seeds N]

The 16 most frequent columns of a table of 0 and 1; each of the first `--targets` is the class once. Rows
are released with a public label, as in the paper; four fifths train, the rest are clean rows of the
recipient's own. Misclassification, mean over targets and seeds:

    real            linear SVM on the private rows
    majority        always the more frequent class
    naive           linear SVM on the released rows
    corrected       `postprocess.projected_learning.fit_two_level_lda`
    plain           `fit_lda`, which does not know that columns are true or false
    hindsight       the corrected one with the best of 30 settings of its two constants, chosen on the
                    test rows: what no choice of them can pass
    known           LDA with the class means of released rows and the private covariance within classes:
                    what an estimate of that covariance can hope for
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.svm import LinearSVC

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput
from adumbra.postprocess import two_level
from adumbra.postprocess.distances import DistanceModel
from adumbra.postprocess.projected_learning import fit_lda, fit_two_level_lda
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.workflow import prepare_in_memory

WIDTH = 16
EPSILONS = (0.2, 0.5, 1.0, 4.0)
FLOORS, STEPS = (0.05, 0.1, 0.15, 0.25, 0.4), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
PAIRS = {"element": Neighbours.ONE_ELEMENT, "row": Neighbours.REPLACE_ONE}


def read(path):
    """The 16 most frequent columns of 0 and 1."""
    frame = pq.read_table(path).to_pandas()
    numbers = frame.select_dtypes(["number", "bool"]).astype(float)
    binary = numbers[[name for name in numbers if numbers[name].isin([0.0, 1.0]).all()]]
    if binary.shape[1] < WIDTH:
        raise InvalidInput(f"{path.name}: needs {WIDTH} columns of 0 and 1, has {binary.shape[1]}")
    chosen = binary.mean().sort_values(ascending=False).index[:WIDTH]
    return binary[list(chosen)]


def released(train, target, unit, config):
    """Rows, labels and the model of one release of the training rows."""
    names = [name for name in train if name != target]
    columns = tuple(Column(name=name, kind=Kind.BOOLEAN) for name in (*names, target))
    schema = Schema(columns=columns, unit=Unit(unit), neighbours=PAIRS[unit], label=target)
    table = pa.table({name: train[name].to_numpy() > 0.5 for name in (*names, target)})
    draft = prepare_in_memory(open_source(table, schema), config).draw()
    stream = draft.pending["data"]
    out = pa.Table.from_batches(stream.batches, stream.schema)
    rows = np.column_stack([out[name] for name in out.column_names[:-1]])
    return rows, out[target].to_pylist(), DistanceModel.from_facts(draft.facts["distances"])


def noise_of(frame, unit, config):
    """The standard deviation of the noise of one cell, where a cell is 0 or 1."""
    model = released(frame.iloc[:2], frame.columns[0], unit, config)[2]
    return model.unit * model.noise.variance**0.5


def errors(frame, target, unit, config, rng):
    """Misclassification of naive and corrected learning on one draw, on clean rows."""
    order = rng.permutation(len(frame))
    cut = len(frame) * 4 // 5
    train, test = frame.iloc[order[:cut]], frame.iloc[order[cut:]]
    rows, labels, model = released(train, target, unit, config)
    own = (test.drop(columns=target).to_numpy() - 0.5) / model.unit  # family=identity: no matrix
    truth = test[target].to_numpy() > 0.5
    naive = LinearSVC(dual=False).fit(rows, labels).predict(own)
    corrected = np.array(fit_two_level_lda(rows, labels, model).predict(own))
    plain = np.array(fit_lda(rows, labels, model).predict(own))
    best = LinearSVC(dual=False).fit(train.drop(columns=target), train[target] > 0.5)
    real = best.predict(test.drop(columns=target))
    common = train[target].mean() > 0.5
    known = knowing_covariance(train, target, rows, np.array(labels, bool), own, model.unit)
    told = [np.mean(found != truth) for found in (real, common, naive, plain, corrected, known)]
    return told + [np.mean(found != truth) for found in by_settings(rows, labels, model, own)]


def by_settings(rows, labels, model, own):
    """Predictions of the corrected learner under other constants."""
    kept = two_level.LARGEST_FLOOR, two_level.LARGEST_STEP
    try:
        for two_level.LARGEST_FLOOR in FLOORS:
            for two_level.LARGEST_STEP in STEPS:
                yield np.array(fit_two_level_lda(rows, labels, model).predict(own))
    finally:
        two_level.LARGEST_FLOOR, two_level.LARGEST_STEP = kept


def knowing_covariance(train, target, rows, labels, own, unit):
    """LDA of the recipient's rows by noisy means and the exact covariance within classes."""
    exact = (train.drop(columns=target).to_numpy() - 0.5) / unit
    truth = train[target].to_numpy() > 0.5
    parts = [exact[truth == c] - exact[truth == c].mean(axis=0) for c in (False, True)]
    within = sum(part.T @ part for part in parts) / len(exact)
    means = np.stack([rows[labels == c].mean(axis=0) for c in (False, True)])
    weights = np.linalg.solve(within + 1e-6 * np.eye(len(within)), means[1] - means[0])
    share = labels.mean()
    return (own - means.mean(axis=0)) @ weights + np.log(share / (1 - share)) > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--table", default="plants.parquet")
    parser.add_argument("--targets", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    frame = read(given.data / given.table)
    heads = ("method", "unit", "epsilon", "sd", "real", "majority", "naive SVM", "plain LDA")
    print("|", " | ".join((*heads, "corrected LDA", "best constants", "covariance known")), "|")
    print("|", " | ".join(["---"] * 11), "|")
    for method, unit in (("jl-laplace", "element"), ("dppro", "element"), ("dppro", "row")):
        for epsilon in EPSILONS:
            options = {"n_components": WIDTH - 1, "epsilon": epsilon, "family": "identity"}
            options["label"] = "public"
            config = (
                ad.JLLaplaceConfig(**options)
                if method == "jl-laplace"
                else ad.DPProConfig(**options, delta=1e-5)
            )
            rng = np.random.default_rng(1)
            found = [
                errors(frame, target, unit, config, rng)
                for target in frame.columns[: given.targets]
                for _ in range(given.seeds)
            ]
            means = np.mean(found, axis=0)
            shown = [*means[:5], means[6:].min(), means[5]]
            cells = " | ".join(f"{mean:.3f}" for mean in shown)
            spread = noise_of(frame, unit, config)
            print(f"| {method} | {unit} | {epsilon:g} | {spread:.3g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
