"""RON-Gauss against the paper as printed, its rivals and real data: train on synthetic, test on real.

    python benchmarks/utility/ron_gauss.py --out results.jsonl [--seeds 10] [--only gfe_user_a,pol]
    python benchmarks/utility/ron_gauss.py --out results.jsonl --show     # print what is stored

Classification: balanced accuracy of a logistic regression. Regression (pol): R^2 of ridge. Clustering
(gfe_user_a): inertia and silhouette of k-means centres from synthetic rows, judged on real rows.
`noise` needs no data: noise over signal of the covariance at the size of the paper's GFE table.
Ours runs through the product: exact sums and noise, delta = 1e-6 and pure, replace-one, rows scaled to
length 1 as the paper does, dimension by the public rule. Every score is one line of `--out`, so that a
run that was stopped goes on where it was. `--who ours` or `--who rivals` runs one side only.
"""

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, r2_score, silhouette_score
from sklearn.preprocessing import StandardScaler

sys.path.append(str(Path(__file__).resolve().parents[1]))
from published import ron_gauss as baselines

from adumbra.estimators.ron_gauss import RONGauss
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.schema.schema import Schema
from adumbra.workflow import plan

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6
PUBLISHED_COMPONENTS = (2, 4, 10, 20)  # the published method is shown at its best of these
IDENTITY_COMPONENTS = 10
TEST_SHARE = 0.25
TRAINING_ROWS = 4000  # of synthetic (and of real) rows that the classifier sees
CLUSTERS = 9
DATA = ("noise", "gfe_user_a", "mnist_5k", "sylva", "isolet_1560", "pol", "clusters")
PUBLISHED = "as published (not private)"
REAL = "real data"


def load(folder, name):
    """Columns scaled by public bounds to [0, 1], and class codes or a target in [-1, 1]."""
    table = pq.read_table(Path(folder) / f"{name}.parquet").to_pandas()
    if name == "gfe_user_a":  # image coordinates and depth of the sensor: 640 x 480, up to 2 m
        codes = table["expression"].astype("category").cat.codes.to_numpy().astype(int)
        x = table.drop(columns=["user", "expression", "frame", "target", "timestamp"]).to_numpy(float)
        return np.clip(x / np.where(np.arange(x.shape[1]) % 3 == 2, 2000.0, 640.0), 0, 1), codes
    if name == "mnist_5k":
        return table.drop(columns="label").to_numpy(float) / 255.0, table["label"].to_numpy(int)
    if name == "sylva":
        x = table.drop(columns="label").to_numpy(float)
        codes = (table["label"].to_numpy() > 0).astype(int)
        public = np.where(x.max(axis=0) <= 1, 1.0, 1000.0)  # indicators, and integers coded to 1000
        return np.clip(x / public, 0, 1), codes
    if name == "isolet_1560":
        codes = table["label"].astype("category").cat.codes.to_numpy().astype(int)
        return (table.drop(columns="label").to_numpy(float) + 1) / 2, codes
    x = table.drop(columns="target").to_numpy(float)  # pol: centred columns within +-150
    return np.clip((x + 150.0) / 300.0, 0, 1), np.clip(table["target"].to_numpy(float) / 100.0, -1, 1)


def split(x, y, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    cut = int(len(x) * (1 - TEST_SHARE))
    return x[order[:cut]], y[order[:cut]], x[order[cut:]], y[order[cut:]]


def classify(rows, labels, test, truth):
    if len(np.unique(labels)) < 2:
        return 1.0 / len(np.unique(truth))
    keep = np.random.default_rng(0).permutation(len(rows))[:TRAINING_ROWS]
    scaler = StandardScaler().fit(rows[keep])
    model = LogisticRegression(max_iter=100).fit(scaler.transform(rows[keep]), labels[keep])
    return balanced_accuracy_score(truth, model.predict(scaler.transform(test)))


def regress(rows, targets, test, truth):
    scaler = StandardScaler().fit(rows)
    model = Ridge(alpha=1.0).fit(scaler.transform(rows), targets)
    return r2_score(truth, np.clip(model.predict(scaler.transform(test)), -1, 1))


def ours(x, y, classes, epsilon, delta, seed):
    """Synthetic rows in the projected space, and the map of a recipient's rows into it."""
    regression = classes is None
    model = RONGauss(
        epsilon=epsilon,
        delta=delta,
        n_components="auto",
        mode="supervised" if regression else "gmm",
        bounds=(0.0, 1.0),
        classes=None if regression else np.arange(classes),
        y_bound=1.0 if regression else None,
        unit_rows=True,
        matrix_seed=seed,
        reconstruct=False,
    )
    rows, labels = model.fit(x, y).sample(len(x), sample_seed=seed)
    return rows, labels, lambda test: model.transform(test + 0.5)


def contenders(x, y, classes, epsilon, seed, who):
    """(name, function that makes it) for rows centred by the middle of their public bounds."""
    regression, middle = classes is None, x - 0.5
    if who != "rivals":
        yield "ours, delta=1e-6", lambda _: ours(x, y, classes, epsilon, DELTA, seed)
        yield "ours, pure", lambda _: ours(x, y, classes, epsilon, 0.0, seed)
    if who == "ours":
        return
    for p in PUBLISHED_COMPONENTS:
        published = (
            baselines.as_published_supervised_not_private
            if regression
            else baselines.as_published_not_private
        )
        yield f"{PUBLISHED}, p={p}", lambda rng, p=p, f=published: f(middle, y, epsilon, p, rng)
    if regression:
        yield (
            "Gaussian, no projection",
            lambda rng: baselines.gaussian_supervised_without_projection(middle, y, epsilon, rng),
        )
    else:
        yield (
            "Gaussian, no projection",
            lambda rng: baselines.gaussian_without_projection(middle, y, classes, epsilon, rng),
        )

    def bernoulli(rng):
        basis = baselines.bernoulli_basis(x.shape[1], IDENTITY_COMPONENTS, rng)
        return baselines.identity_query(middle, y, epsilon, basis, rng)

    def principal(rng):
        basis = baselines.principal_basis_not_private(middle, IDENTITY_COMPONENTS)
        return baselines.identity_query(middle, y, epsilon, basis, rng)

    yield "Bernoulli + identity", bernoulli
    yield "PCA + identity", principal
    if regression:
        yield (
            "exponential",
            lambda rng: baselines.exponential_choice_supervised(middle, y, epsilon, rng),
        )
    else:
        yield "exponential", lambda rng: baselines.exponential_choice(middle, y, classes, epsilon, rng)


class Results:
    """Scores by (data, who, epsilon, seed), each appended to a file as soon as it is known."""

    def __init__(self, path):
        self.path, self.scores = path, {}
        if path is not None and Path(path).exists():
            for line in Path(path).read_text().splitlines():
                *key, score = json.loads(line)
                self.scores[tuple(key)] = score

    def once(self, key, make):
        if key in self.scores:
            return
        self.scores[key] = make()
        if self.path is not None:
            with Path(self.path).open("a") as file:
                file.write(json.dumps([*key, self.scores[key]]) + "\n")

    def of(self, data, who, epsilon):
        found = [s for (d, w, e, _), s in sorted(self.scores.items(), key=lambda item: item[0][3])
                 if (d, w, e) == (data, who, epsilon)]  # fmt: skip
        return np.array(found)

    def names(self, data):
        return list(dict.fromkeys(w for (d, w, _, _) in self.scores if d == data))


def interval(values):
    """Half the width of a 95 % interval of the mean."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return values.std(axis=0, ddof=1) / np.sqrt(len(values)) * 1.96


def predict(folder, name, seeds, who, results):
    x, y = load(folder, name)
    regression = name == "pol"
    classes = None if regression else int(y.max()) + 1
    judge = regress if regression else classify

    def one(seed):
        train, goal, test, truth = split(x, y, seed)
        if who != "ours":
            results.once((name, REAL, 0.0, seed), lambda: judge(train, goal, test, truth))
        for epsilon in EPSILONS:
            for label, make in contenders(train, goal, classes, epsilon, seed, who):

                def score(make=make):
                    rows, targets, place = make(np.random.default_rng(seed))
                    return judge(rows, targets, place(test - 0.5), truth)

                results.once((name, label, epsilon, seed), score)

    for seed in range(seeds):
        one(seed)


def show(name, results):
    """The table of one data set; the published method at the p whose mean is best at each epsilon."""
    print(f"\n{name}: {'R^2 of ridge' if name == 'pol' else 'balanced accuracy'}, mean +- 95 % interval")
    print(f"  {'':28s}" + "".join(f"{f'eps={e:g}':>16s}" for e in EPSILONS))
    published = [who for who in results.names(name) if who.startswith(PUBLISHED)]
    rest = [w for w in results.names(name) if w not in (*published, REAL)]
    order = [w for w in rest if w.startswith("ours")] + [PUBLISHED] * bool(published)
    for who in order + [w for w in rest if not w.startswith("ours")]:
        cells = []
        for epsilon in EPSILONS:
            found = [results.of(name, w, epsilon) for w in (published if who == PUBLISHED else [who])]
            best = max((v for v in found if len(v)), key=lambda v: v.mean(), default=None)
            cells.append("" if best is None else f"{best.mean():.3f} +-{interval(best):.3f}")
        print(f"  {who:28s}" + "".join(f"{cell:>16s}" for cell in cells))
    real = results.of(name, REAL, 0.0)
    if len(real):
        print(f"  {REAL:28s}{f'{real.mean():.3f} +-{interval(real):.3f}':>16s}   ({len(real)} seeds)")


def clustering(folder, seeds, results):
    """Centres of k-means on synthetic rows, judged on the real rows that the model was fitted to."""
    x, _ = load(folder, "gfe_user_a")
    sample = np.random.default_rng(0).permutation(len(x))[:2000]

    def judged(rows, seed):
        some = rows[np.random.default_rng(seed).permutation(len(rows))[:TRAINING_ROWS]]
        centres = KMeans(CLUSTERS, n_init=3, random_state=seed).fit(some).cluster_centers_
        distance = (x**2).sum(1)[:, None] - 2 * x @ centres.T + (centres**2).sum(1)[None]
        labels = distance[sample].argmin(axis=1)
        width = silhouette_score(x[sample], labels) if len(set(labels)) > 1 else 0.0
        return [float(distance.min(axis=1).sum()), float(width)]

    def private(epsilon, delta, seed):
        model = RONGauss(
            epsilon=epsilon, delta=delta, n_components="auto", bounds=(0.0, 1.0), matrix_seed=seed
        )
        return model.fit(x).sample(len(x), sample_seed=seed)

    def one(seed):
        results.once(("clusters", REAL, 0.0, seed), lambda: judged(x, seed))
        noise = np.random.default_rng(seed).uniform(0, 1, (TRAINING_ROWS, x.shape[1]))
        results.once(("clusters", "pure noise", 0.0, seed), lambda: judged(noise, seed))
        for epsilon in EPSILONS:
            for who, delta in (("ours, delta=1e-6", DELTA), ("ours, pure", 0.0)):
                results.once(
                    ("clusters", who, epsilon, seed),
                    lambda e=epsilon, d=delta: judged(private(e, d, seed), seed),
                )

    for seed in range(seeds):
        one(seed)


def show_clusters(results):
    base = results.of("clusters", REAL, 0.0)[:, 0].mean()
    print(f"\ngfe_user_a: {CLUSTERS} centres from synthetic rows, judged on real rows, mean +- interval")
    print(f"  {'':28s}{'inertia / real':>20s}{'silhouette':>20s}")
    for who in results.names("clusters"):
        for epsilon in (0.0, *EPSILONS):
            found = results.of("clusters", who, epsilon)
            if len(found):
                mean, error = found.mean(axis=0), interval(found)
                name = f"{who}, eps={epsilon:g}" if epsilon else who
                print(f"  {name:28s}{f'{mean[0] / base:.3f} +-{error[0] / base:.3f}':>20s}"
                      f"{f'{mean[1]:.3f} +-{error[1]:.3f}':>20s}")  # fmt: skip


def show_noise(rows=27_936, columns=301, epsilon=0.7):
    """|noise|_F / |signal|_F of a covariance I/m of unit rows, all of epsilon spent on it."""
    print(f"\n{rows:,} x {columns}, evenly spread variance, epsilon={epsilon:g}: noise over signal")
    print(f"  {'p':>4s}{'ours, pure':>14s}{'delta=1e-6':>14s}{'as published (not private)':>30s}")
    schema = Schema.numeric(columns, -1.0, 1.0, rows=rows)
    for p in (2, 4, 10, 20, 50):
        ratios = []
        for delta in (0.0, DELTA):
            config = RONGaussConfig(epsilon=epsilon, delta=delta, n_components=p, mean_share=1e-9)
            ratios.append(plan(config, schema).expected["noise_to_signal"])
        published = p * np.sqrt(2) * 2 * np.sqrt(p) / (rows * epsilon) / (np.sqrt(p) / columns)
        print(f"  {p:4d}{ratios[0]:14.4f}{ratios[1]:14.4f}{published:30.3f}")


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default=",".join(DATA))
    parser.add_argument("--who", choices=("all", "ours", "rivals"), default="all")
    parser.add_argument("--out", help="JSON lines: one score each; read first, so that a run goes on")
    parser.add_argument("--show", action="store_true", help="print the stored scores, run nothing")
    given = parser.parse_args()
    results = Results(given.out)
    for name in given.only.split(","):
        if name == "noise":
            show_noise()
            continue
        if not given.show:
            if name == "clusters":
                clustering(given.data, given.seeds, results)
            else:
                predict(given.data, name, given.seeds, given.who, results)
        if results.names(name):
            if name == "clusters":
                show_clusters(results)
            else:
                show(name, results)


if __name__ == "__main__":
    main()
