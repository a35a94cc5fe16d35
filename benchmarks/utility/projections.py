"""Utility of DPPro and JL + Laplace: the tables of docs/explanation/projections.md, printed.

    python benchmarks/utility/projections.py [--data FOLDER] [--only NAME ...] [--quick]

FOLDER holds public data sets; `retail.parquet` (one list<int> column `items`) is used by `retail`.
Everything here compares with private truth: NOT FOR RELEASE.
"""
# ruff: noqa: E402, I001 - the tests' own draws of (matrix, noise) are used, from the folder put on the path

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.append(str(ROOT / "benchmarks"))

from published import projections as published
from support.distance_draws import distance_draws
from support.projection import SetSource, items, rows_of

from adumbra import workflow
from adumbra.matrices import public_matrix
from adumbra.schema.schema import ItemSpec, Schema
from adumbra.data.opening import open_source
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.mechanisms.projection.config import JLLaplaceConfig
from adumbra.postprocess.matrices import fit_denoiser
from adumbra.postprocess.distances import (
    DistanceModel,
    centroid_distance,
    interval,
    laplace_law,
    pair_distances,
)
from adumbra.postprocess.kmeans import kmeans
from adumbra.privacy.conversion import gaussian_sigma
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.grant import open_grant
from adumbra.relations import Moved, Moves, Neighbours, Unit
from adumbra.release.formats import write_table
from adumbra.statistics.projection_sensitivity import element_sensitivity
from adumbra.workflow import prepare_in_memory

A = np.array([1.2, -0.7, 0.4, 0.9, -0.3, 0.6, 0.2, -0.8])
ELEMENT = (Unit.ELEMENT, Neighbours.ONE_ELEMENT)


def table(title, header, rows):
    print(f"\n## {title}\n\n| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def estimator(arguments):
    rho2, fourth = float(A @ A), float(np.sum(A**4))
    rows = []
    for family in ("gaussian", "sphere", "rademacher", "sparse", "haar", "identity"):
        slow = family == "haar"
        draws = (20_000 if slow else 100_000) if arguments.quick else (200_000 if slow else 1_000_000)
        k = len(A) if family == "identity" else 5
        for noise in ("gaussian", "laplace"):
            values, model = distance_draws(family, noise, A, k, 0.4, draws, seed=21)
            stated = float(model.variance(np.array(rho2), fourth_power=fourth))
            bias = (values.mean() - rho2) / (values.std() / math.sqrt(draws))
            rows.append(
                (
                    family,
                    noise,
                    k,
                    draws,
                    f"{bias:+.2f}",
                    f"{values.var():.4f}",
                    f"{stated:.4f}",
                    f"{values.var() / stated - 1:+.2%}",
                )
            )
    table(
        f"Unbiased squared distances (rho^2 = {rho2:.2f}, d = 8, noise scale 0.4)",
        ("family", "noise", "k", "draws", "bias / s.e.", "variance", "formula", "difference"),
        rows,
    )
    rows = []
    draws = 100_000 if arguments.quick else 1_000_000
    for k, sigma in ((5, 0.5), (20, 1.0)):
        values, model = distance_draws("gaussian", "gaussian", A, k, sigma, draws, seed=22)
        low, high = interval(model, values)
        rows.append((k, sigma, draws, f"{np.mean((low <= rho2) & (high >= rho2)):.4f}"))
    table("Exact chi-square interval at 95 %", ("k", "sigma", "draws", "coverage"), rows)


def noise(_):
    rows = []
    for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0):
        for delta in (1e-3, 1e-5, 1e-6, 1e-9):
            sigma, printed = (
                gaussian_sigma(1.0, mu_of(epsilon, delta)),
                published.theorem_2_sigma(1.0, epsilon, delta),
            )
            rows.append(
                (
                    epsilon,
                    f"{delta:g}",
                    f"{sigma:.4f}",
                    f"{printed:.4f}",
                    f"{printed / sigma:.3f}",
                    f"{published.lemma_4_sigma_not_private(epsilon, delta):.2f}",
                )
            )
    table(
        "Noise for a sensitivity of 1",
        ("epsilon", "delta", "ours (analytic)", "DPPro Theorem 2", "ratio", "DPPro Lemma 4"),
        rows,
    )
    schema = Schema.numeric(100, 0.0, 1.0, unit=ELEMENT[0], neighbours=ELEMENT[1])
    rows = []
    for family in ("sphere", "sparse", "rademacher", "gaussian"):
        config = DPProConfig(n_components=20, epsilon=1.0, delta=1e-5, family=family)
        made = workflow.plan(config, schema).noise[0]
        matrix = public_matrix(family, 100, 20, matrix_seed=0)
        exact = element_sensitivity(matrix).l2
        analytic = gaussian_sigma(made.sensitivity, mu_of(1.0, 1e-5))
        rows.append(
            (
                family,
                f"{exact:.9f}",
                f"{made.sensitivity / exact - 1:.1e}",
                f"{made.scale:.9f}",
                f"{made.scale / analytic - 1:.1e}",
            )
        )
    table(
        "DPPro, element, d=100, k=20, epsilon=1, delta=1e-5: sensitivity of the drawn matrix",
        ("family", "max row norm", "added by the grid", "sigma", "sigma / analytic - 1"),
        rows,
    )


def jl(_):
    rows, rho2 = [], 4.0
    schema = Schema.numeric(100, 0.0, 1.0, unit=ELEMENT[0], neighbours=ELEMENT[1])
    for k in (4, 10, 20, 100):
        planned = workflow.plan(JLLaplaceConfig(n_components=k, epsilon=1.0), schema).noise[0]
        law = laplace_law(planned.scale, planned.grid)
        model = DistanceModel(family="sparse", n_features=100, n_components=k, noise=law)
        scale = published.elementwise_scale_not_private(k, 1.0)
        paper = DistanceModel(
            family="gaussian", n_features=100, n_components=k, noise=laplace_law(scale, 1e-6)
        )
        rows.append(
            (
                k,
                f"{planned.scale:g}",
                f"{float(model.variance(np.array(rho2))):.3g}",
                f"{scale:.3f}",
                f"{float(paper.variance(np.array(rho2))):.3g}",
            )
        )
    table(
        "JL + Laplace, element, pure epsilon = 1, rho^2 = 4: variance of a squared distance",
        ("k", "our scale", "our variance", "published scale", "variance at it"),
        rows,
    )
    rng = np.random.default_rng(5)
    d, k = 10, 3
    matrix = public_matrix("gaussian", d, k, matrix_seed=1).to_float()
    rows = []
    for known in (20, 100, 1000, 10_000):
        x = rng.standard_normal((known, d))
        z = x @ matrix + rng.laplace(
            scale=published.elementwise_scale_not_private(k, 4.0), size=(known, k)
        )
        guess = np.linalg.lstsq(x, z, rcond=None)[0]
        rows.append((known, f"{np.linalg.norm(guess - matrix) / np.linalg.norm(matrix):.3f}"))
    table(
        "A secret matrix is recovered from rows that an attacker knows (d=10, k=3, epsilon=4)",
        ("known rows", "relative error of R"),
        rows,
    )


def accuracy(labels, truth):
    share = float(np.mean(labels == truth))
    return max(share, 1.0 - share)


def clusters(arguments):
    """Table 1 of the JL paper: two unit Gaussians 4 apart, a cell may change by 1, epsilon = 4."""
    rng, rows = np.random.default_rng(7), []
    printed = {
        (3, 2): (0.9441, 0.9477),
        (10, 3): (0.9082, 0.909),
        (50, 10): (0.6954, 0.6796),
        (100, 20): (0.6927, 0.6668),
    }
    runs = 40 if arguments.quick else 200
    for (d, k), (element, row) in printed.items():
        found = {name: [] for name in ("none", "published", "sparse", "haar", "sphere")}
        for run in range(runs):
            u = rng.standard_normal(d)
            truth = rng.integers(2, size=1000)
            x = rng.standard_normal((1000, d)) + np.where(
                truth[:, None] == 1, 1, -1
            ) * u * 2 / np.linalg.norm(u)
            moving = Schema.numeric(d, -8.0, 8.0, unit=Unit.ELEMENT, neighbours=Moves(Moved.CELL, 1.0))
            scale = published.elementwise_scale_not_private(k, 4.0)
            z = published.jl_laplace_as_published_not_private(x, k, scale, seed=run)
            paper = DistanceModel(
                family="gaussian", n_features=d, n_components=k, noise=laplace_law(scale, 1e-6)
            )
            found["published"].append(accuracy(kmeans(paper, z, 2, sample_seed=run).labels, truth))
            if run < 20:
                clear = DistanceModel(
                    family="identity", n_features=d, n_components=d, noise=laplace_law(1e-3, 1e-6)
                )
                found["none"].append(accuracy(kmeans(clear, x, 2).labels, truth))
            for family in ("sparse", "haar", "sphere"):
                config = JLLaplaceConfig(n_components=k, epsilon=4.0, family=family)
                noisy, model = release_of(open_source(x, moving), config)
                found[family].append(accuracy(kmeans(model, noisy, 2, sample_seed=run).labels, truth))
        means = [
            f"{np.mean(found[name]):.3f}" for name in ("none", "published", "sparse", "haar", "sphere")
        ]
        rows.append(
            (
                f"({d}, {k})",
                f"{element:.3f} / {row:.3f}",
                *means,
                f"{np.std(found['sparse']) / math.sqrt(runs):.3f}",
            )
        )
    table(
        f"k-means accuracy, two Gaussians 4 apart, epsilon = 4, {runs} draws (Table 1 of the JL paper)",
        (
            "(d, k)",
            "printed element / row",
            "no privacy",
            "published noise, rerun",
            "ours: count-sketch",
            "ours: haar",
            "ours: sphere",
            "s.e.",
        ),
        rows,
    )


def grant(*purposes):
    return open_grant("benchmark", None, purposes, "benchmark")


def release_of(source, config):
    draft = prepare_in_memory(source, config).draw()
    return rows_of(draft), DistanceModel.from_facts(draft.facts["distances"])


def relative_error(estimate, truth):
    return float(np.sum((estimate - truth) ** 2) / np.sum(truth**2))


def retail(arguments):
    """DPPro's figure 2: the 50 most frequent items (their choice is a private query of its own)."""
    path = None if arguments.data is None else Path(arguments.data) / "retail.parquet"
    if path is None or not path.exists():
        print("\nretail: give --data FOLDER with retail.parquet")
        return
    sets = pq.read_table(path).column("items").combine_chunks()
    values, lengths = sets.values.to_numpy(), np.diff(sets.offsets.to_numpy())
    counts = np.bincount(values)
    top = np.argsort(-counts, kind="stable")[:50]
    place = np.full(len(counts), -1)
    place[top] = np.arange(50)
    dense = np.zeros((len(lengths), 50), dtype=bool)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    kept = place[values] >= 0
    dense[owner[kept], place[values][kept]] = True
    rng = np.random.default_rng(0)
    i, j = rng.integers(len(dense), size=(2, 10_000))
    x = dense.astype(float)
    truth = np.sum((x[i] - x[j]) ** 2, axis=1)
    print(
        f"\nRetail, top 50 items: {len(dense)} rows, "
        f"mean squared distance of 10,000 random pairs {truth.mean():.2f}"
    )
    constant = relative_error(np.full(len(truth), truth.mean()), truth)
    schema, delta, rows = items(50, "element"), 1e-5, []
    for k in (4, 10, 20):
        row = [k]
        for sigma in published.FIGURE_SIGMAS_NOT_PRIVATE:
            errors = []
            for seed in range(5):  # means over five matrices
                p = published.dppro_as_published_not_private(x, k, sigma, seed=seed)
                unbiased = published.published_squared_distances(p[i], p[j], sigma**2)
                errors.append(relative_error(unbiased, truth))
            row.append(f"{np.mean(errors):.3f}")
        for epsilon in (1.0, 8.0):
            rows_out, model = release_of(
                SetSource(dense, schema),
                DPProConfig(n_components=k, epsilon=epsilon, delta=delta),
            )
            row.append(f"{relative_error(pair_distances(model, rows_out[i], rows_out[j]), truth):.3g}")
            shrunk = fit_denoiser(model, rows_out).pair_distances(rows_out[i], rows_out[j])
            row.append(f"{relative_error(shrunk, truth):.3f}")
        rows.append((*row, f"{constant:.3f}"))
    table(
        "Retail: relative L2 error of squared distances (DPPro, figure 2), delta = 1e-5, unit element",
        (
            "k",
            "sigma=0.1 (not private)",
            "sigma=0.2 (not private)",
            "epsilon=1",
            "epsilon=1, denoised",
            "epsilon=8",
            "epsilon=8, denoised",
            "a constant",
        ),
        rows,
    )
    rows = []
    for epsilon in (1.0, 8.0, 33.0, 92.0):
        rows_out, model = release_of(
            SetSource(dense, schema),
            DPProConfig(n_components=50, epsilon=epsilon, delta=delta, family="identity"),
        )
        plain = relative_error(pair_distances(model, rows_out[i], rows_out[j]), truth)
        fitted = fit_denoiser(model, rows_out)
        shrunk = relative_error(fitted.pair_distances(rows_out[i], rows_out[j]), truth)
        pure, pure_model = release_of(
            SetSource(dense, schema),
            JLLaplaceConfig(n_components=50, epsilon=epsilon, family="identity"),
        )
        laplace = relative_error(pair_distances(pure_model, pure[i], pure[j]), truth)
        advice = "yes" if fitted.helps else "no"
        cells = (f"{plain:.3g}", f"{shrunk:.3f}", advice, f"{laplace:.3g}", f"{constant:.3f}")
        rows.append((epsilon, *cells))
    table(
        "Retail without projection (identity, k = d = 50), unit element",
        (
            "epsilon",
            "Gaussian, delta=1e-5",
            "the same, denoised",
            "advised",
            "Laplace, pure",
            "a constant",
        ),
        rows,
    )
    rows_out, model = release_of(
        SetSource(dense, schema), DPProConfig(n_components=20, epsilon=1.0, delta=delta)
    )
    with_top, without = dense[:, 0], ~dense[:, 0]
    estimate, means = centroid_distance(model, rows_out[with_top], rows_out[without])
    exact = float(np.sum((x[with_top].mean(axis=0) - x[without].mean(axis=0)) ** 2))
    error = float(means.standard_error(np.array(estimate)))
    print("\nGroups answer at epsilon=1: rows with and without the top item (grouped by private truth)")
    print(f"squared distance of their means {estimate:.3f} +- {error:.3f}, true {exact:.3f}")


def denoising(arguments):
    """Low-rank tables through the product: error of rows and distances with and without shrinkage."""
    rng, rows = np.random.default_rng(9), []
    n, d = (5000, 60) if arguments.quick else (20_000, 60)
    latent = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    x = np.clip(latent / 12.0, -0.5, 0.5)
    i, j = rng.integers(n, size=(2, 10_000))
    truth = np.sum((x[i] - x[j]) ** 2, axis=1)
    schema = Schema.numeric(d, -0.5, 0.5, unit=ELEMENT[0], neighbours=ELEMENT[1])
    for epsilon in (1.0, 4.0, 16.0):
        rows_out, model = release_of(
            open_source(x, schema), DPProConfig(n_components=20, epsilon=epsilon, delta=1e-6)
        )
        fitted = fit_denoiser(model, rows_out)
        exact = x @ public_matrix("sparse", d, 20, matrix_seed=0).to_float()
        plain, shrunk = (
            pair_distances(model, rows_out[i], rows_out[j]),
            fitted.pair_distances(rows_out[i], rows_out[j]),
        )
        rows.append(
            (
                epsilon,
                f"{np.mean((rows_out - exact) ** 2):.4g}",
                f"{np.mean((fitted.rows(rows_out) - exact) ** 2):.4g}",
                f"{relative_error(plain, truth):.3g}",
                f"{relative_error(shrunk, truth):.3g}",
                f"{relative_error(np.full(len(truth), truth.mean()), truth):.3g}",
            )
        )
    table(
        f"Shrinkage on a rank-3 table ({n} x {d}, element, k=20, delta=1e-6)",
        (
            "epsilon",
            "rows: error",
            "rows: denoised",
            "distances: unbiased",
            "distances: denoised",
            "a constant",
        ),
        rows,
    )


def streaming(arguments):
    """Rows x 1000 sparse item sets from Parquet to a released Parquet, in a process of its own."""
    count = 100_000 if arguments.quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path, rng = Path(folder) / "sets.parquet", np.random.default_rng(0)
        fields = pa.schema([("items", pa.list_(pa.int32()))])
        with pq.ParquetWriter(path, fields) as writer:
            for start in range(0, count, 50_000):
                lengths = np.minimum(rng.geometric(1 / 12, size=min(50_000, count - start)), 200)
                offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
                drawn = (1000 * rng.random(offsets[-1]) ** 3).astype(np.int32)
                writer.write_table(pa.table([pa.ListArray.from_arrays(offsets, drawn)], schema=fields))
        command = [sys.executable, __file__, "--stream", str(path)]
        print("\n## Streaming " + f"{count} x 1000 item sets, k=20 (row unit, row_norm=4)\n")
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def peak_memory():
    """MiB; not `ru_maxrss`, which a child inherits from its parent."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def stream(path):
    """The child of `streaming`: release one file and report peak memory."""
    schema = Schema(items=ItemSpec(upper=999), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    config = DPProConfig(n_components=20, epsilon=1.0, delta=1e-6, row_norm=4.0)
    source = open_source(path, schema)
    prepared = prepare_in_memory(source, config)
    idle = peak_memory()
    start = time.perf_counter()
    draft = prepared.draw()
    out = Path(path).with_name("released.parquet")
    write_table(out, draft.pending["data"])
    seconds, peak = (
        time.perf_counter() - start,
        peak_memory(),
    )
    rows = pq.ParquetFile(out).metadata.num_rows
    print(f"{rows} rows released in {seconds:.1f} s on a shared machine; peak memory {peak:.0f} MiB,")
    print(
        f"of which {idle:.0f} MiB before the first row; the dense table: {rows * 8000 / 2**20:.0f} MiB"
    )


PARTS = {
    "estimator": estimator,
    "noise": noise,
    "jl": jl,
    "clusters": clusters,
    "retail": retail,
    "denoising": denoising,
    "streaming": streaming,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with public data sets")
    parser.add_argument("--only", nargs="*", choices=sorted(PARTS), default=sorted(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--stream", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stream:
        stream(arguments.stream)
        return
    for name, part in PARTS.items():
        if name in arguments.only:
            part(arguments)


if __name__ == "__main__":
    main()
