"""JL + Laplace: two Gaussian clusters 4 apart, epsilon = 4; one cell, or one row in L2, moves by 1.

Ours are releases of the product under the paper's own relations, `cell-moves 1.0` and `row-moves 1.0`.
All columns have the same public bounds, so distances are those of the paper times a constant.
"""

import itertools
import math

import numpy as np
from published import projections as published

from adumbra.mechanisms.projection.config import JLLaplaceConfig
from adumbra.postprocess.distances import DistanceModel, laplace_law, pair_distances
from adumbra.postprocess.kmeans import kmeans
from adumbra.relations import Moved, Moves, Unit
from adumbra.schema.schema import Schema
from adumbra.workflow import plan
from replication.cells import Cell, Experiment, Paper
from replication.dppro import released

EPSILON, ROWS, AMOUNT = 4.0, 1000, 1.0
BOUND = 8.0  # public: cells of unit Gaussians about +-2 hardly ever lie beyond
RELATIONS = {"element-wise": Moved.CELL, "row-wise": Moved.ROW}
PRINTED = {
    (3, 2): (0.9783, 0.9441, 0.9477),
    (10, 3): (0.9772, 0.9082, 0.9090),
    (50, 10): (0.9771, 0.6954, 0.6796),
    (100, 20): (0.9797, 0.6927, 0.6668),
}
FAMILIES = ("sparse", "haar", "sphere")


def clusters(d, seed):
    """Rows and the cluster of each."""
    rng = np.random.default_rng([7, d, seed])
    u = rng.standard_normal(d)
    truth = rng.integers(2, size=ROWS)
    side = np.where(truth[:, None] == 1, 1.0, -1.0)
    return rng.standard_normal((ROWS, d)) + side * u * 2 / np.linalg.norm(u), truth


def accuracy(labels, truth):
    share = float(np.mean(labels == truth))
    return max(share, 1.0 - share)


def clear(d):
    return DistanceModel(family="identity", n_features=d, n_components=d, noise=laplace_law(1e-3, 1e-6))


def as_printed(x, k, scale, seed):
    d = x.shape[1]
    z = published.jl_laplace_as_published_not_private(x, k, scale, seed=seed)
    law = laplace_law(scale, 1e-6)
    return z, DistanceModel(family="gaussian", n_features=d, n_components=k, noise=law)


def schema_of(d, what):
    """d numbers of equal bounds, under one of the paper's relations."""
    unit = Unit.ELEMENT if what is Moved.CELL else Unit.ROW
    return Schema.numeric(d, -BOUND, BOUND, unit=unit, neighbours=Moves(what, AMOUNT))


def ours(x, k, family, what):
    """Released rows and their model, in units of the bounds' width; matrix and noise are fresh."""
    config = JLLaplaceConfig(n_components=k, epsilon=EPSILON, family=family)
    rows, _, model = released(x, schema_of(x.shape[1], what), config)
    return rows, model


def table_1():
    for (d, k), (real, element, row) in PRINTED.items():
        where = {
            "item": "Table 1",
            "data": "two Gaussians",
            "setting": f"d={d}, k={k}",
            "measure": "accuracy of k-means",
        }
        yield Cell(**where, arm="none, printed", kind="printed", printed=real)
        yield Cell(**where, arm="element-wise, printed", kind="printed", printed=element)
        yield Cell(**where, arm="row-wise, printed", kind="printed", printed=row)

        def real_draw(seed, d=d):
            x, truth = clusters(d, seed)
            return accuracy(kmeans(clear(d), x, 2).labels, truth)

        yield Cell(**where, arm="no privacy", kind="ceiling", draw=real_draw)
        scales = {
            "element-wise": published.elementwise_scale_not_private(k, EPSILON),
            "row-wise": published.rowwise_minimal_scale_not_private(k, EPSILON),
        }
        for name, scale in scales.items():

            def printed_draw(seed, d=d, k=k, scale=scale):
                x, truth = clusters(d, seed)
                z, model = as_printed(x, k, scale, seed)
                return accuracy(kmeans(model, z, 2, sample_seed=seed).labels, truth)

            yield Cell(
                **where, arm=f"{name} as printed (not private)", kind="as printed", draw=printed_draw
            )
        for (name, what), family in itertools.product(RELATIONS.items(), FAMILIES):

            def our_draw(seed, d=d, k=k, family=family, what=what):
                x, truth = clusters(d, seed)
                z, model = ours(x, k, family, what)
                return accuracy(kmeans(model, z, 2, sample_seed=seed).labels, truth)

            yield Cell(**where, arm=f"ours, {name}, {family}", kind="ours", draw=our_draw)
        yield Cell(**where, arm="a guess", kind="floor", printed=0.5)


def figure_3():
    """Recovered minus true squared distance of 1,000 pairs: mean, and root mean square."""
    where = {"item": "Figure 3", "data": "two Gaussians", "setting": "d=3, k=2"}
    mean, spread = "mean difference", "root mean square difference"
    yield Cell(**where, measure=mean, arm="element-wise, printed", kind="printed", printed=0.006)
    yield Cell(**where, measure=mean, arm="row-wise, printed", kind="printed", printed=-0.011)

    def differences(seed, make):
        x, _ = clusters(3, 0)
        i, j = np.random.default_rng(1).integers(ROWS, size=(2, 1000))
        z, model, unit = make(x, seed)
        return unit * pair_distances(model, z[i], z[j]) - np.sum((x[i] - x[j]) ** 2, axis=1)

    def printed(x, seed):
        return *as_printed(x, 2, published.elementwise_scale_not_private(2, EPSILON), seed), 1.0

    def cell(x, _):
        return *ours(x, 2, "sparse", Moved.CELL), (2 * BOUND) ** 2

    def row(x, _):
        return *ours(x, 2, "haar", Moved.ROW), (2 * BOUND) ** 2

    for arm, kind, make in (
        ("element-wise as printed (not private)", "as printed", printed),
        ("ours, element-wise, sparse", "ours", cell),
        ("ours, row-wise, haar", "ours", row),
    ):
        yield Cell(
            **where, measure=mean, arm=arm, kind=kind, draw=lambda s, m=make: np.mean(differences(s, m))
        )
        yield Cell(
            **where,
            measure=spread,
            arm=arm,
            kind=kind,
            draw=lambda s, m=make: math.sqrt(np.mean(differences(s, m) ** 2)),
        )


def figure_4():
    """sqrt(1 + 2 b^2) over k: unit data after the noise."""
    for k in (2, 4, 10, 20, 50):
        where = {
            "item": "Figure 4",
            "data": "formula",
            "setting": f"k={k}",
            "measure": "standard deviation of a released value",
        }
        for name, scale in (
            (
                "element-wise as printed (not private)",
                published.elementwise_scale_not_private(k, EPSILON),
            ),
            (
                "row-wise as printed (not private)",
                published.rowwise_minimal_scale_not_private(k, EPSILON),
            ),
        ):
            yield Cell(
                **where,
                arm=name,
                kind="as printed",
                draw=lambda _, b=scale: math.sqrt(1 + 2 * b * b),
                once=True,
            )

        for name, what in RELATIONS.items():

            def own(_, k=k, what=what):
                config = JLLaplaceConfig(n_components=k, epsilon=EPSILON)
                b = 2 * BOUND * plan(config, schema_of(100, what)).noise[0].scale
                return math.sqrt(1 + 2 * b * b)

            yield Cell(**where, arm=f"ours, {name}", kind="ours", draw=own, once=True)


PAPER = Paper(
    "jl",
    "JL + Laplace (Utility Preserving Secure Private Data Release)",
    (
        Experiment(
            "Table 1",
            "k-means on released rows; epsilon = 4; one cell or row moves by at most 1",
            table_1,
        ),
        Experiment("Figure 3", "recovered squared distances against the true ones", figure_3),
        Experiment("Figure 4", "spread of a released value over k", figure_4),
    ),
    (
        "Figures 1 and 2 are scatter plots of one draw; they are not redrawn.",
        "Ours are releases under `cell-moves 1.0` and `row-moves 1.0`.",
        "They hide a change of at most 1 in one cell, or of one row by at most 1 in L2, not any change.",
    ),
)
