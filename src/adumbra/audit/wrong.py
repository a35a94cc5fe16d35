# ruff: noqa: ANN401, D103 - a wrong version stands in for functions of many types; its name says what
"""Wrong versions of single functions, and neighbours that show them; planted by `mutants` alone."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from adumbra.audit import planted
from adumbra.audit.pairs import REPLACE, ROW, Tables, corners, item_table, numbers, replaced
from adumbra.audit.planted import Patch
from adumbra.mechanisms.methods import method_named
from adumbra.mechanisms.moments import chosen
from adumbra.mechanisms.moments import release as synthesizer
from adumbra.mechanisms.moments.rows import bounded_block, centred, over_classes
from adumbra.mechanisms.projection.plan import MATRIX, secret_projection
from adumbra.mechanisms.projection.rows import row_space
from adumbra.mechanisms.ron_gauss import scales, sums
from adumbra.mechanisms.topk import counting, methods
from adumbra.mechanisms.topk.config import Step
from adumbra.mechanisms.topk.svt import label_columns, sparse
from adumbra.numerics import ROW_BITS, Array, Lattice, coarsen
from adumbra.privacy import grant as grants
from adumbra.privacy.conversion import gumbel_epsilon0, split_mu
from adumbra.relations import Neighbours
from adumbra.statistics import box_moments, class_sums, counts, histograms, moments
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.moments import BlockGram
from adumbra.statistics.projection_sensitivity import element_sensitivity

# Neighbours that some bugs need


def outlier() -> Tables:
    """Small rows with one long row, or with one more small row."""
    small = np.full((50, 4), 0.02)
    tables = np.repeat(small[None], 2, axis=0)
    tables[0, 0] = corners()[0]
    return tables[0], tables[1]


def missing() -> Tables:
    rows = np.repeat(corners()[None, :3], 2, axis=0)
    rows[1, 0] = np.nan
    return rows[0], rows[1]


def long_set() -> Tables:
    return item_table([]), item_table([list(range(40))])


def ordered() -> Tables:
    table = numbers(ROW, REPLACE)
    return replaced(table, 50, corners()[0], corners()[-1])


# Wrong versions


def add_remove_gram(self: moments.Gram, _neighbours: Neighbours) -> Sensitivity:
    return moments.gram_sensitivity(self.width, self.limit, Neighbours.ADD_REMOVE)


def _lemma_4_sensitivity(self: moments.Gram, neighbours: Neighbours) -> Sensitivity:
    right = moments.gram_sensitivity(self.width, self.limit, neighbours)
    return Sensitivity(l1=2.0 * self.width**0.5, l2=right.l2)


def full_matrix(matrix: Any) -> Any:
    return np.ascontiguousarray(matrix.reshape(*matrix.shape[:-2], -1))


def from_full(flat: Array, width: int) -> Array:
    square = flat.reshape(*flat.shape[:-1], width, width)
    return (square + np.swapaxes(square, -1, -2)) / 2.0


def numbers_only(self: box_moments.BoxMoments, neighbours: Neighbours) -> Sensitivity:
    """The paper's bound: a category counts like a number of range one."""
    columns = len(self.shape.numeric) + len(self.shape.groups)
    shape = box_moments.BoxShape(tuple(range(columns)), (), self.shape.classes)
    square = box_moments.joint_l2_square(shape, neighbours)
    return Sensitivity(l1=float(box_moments.joint_l1(shape, neighbours)), l2=float(square) ** 0.5)


def half_mean(width: int, neighbours: Neighbours, *, classes: bool) -> Sensitivity:
    right = _RIGHT_MEAN(width, neighbours, classes=classes)
    return Sensitivity(l1=right.l1 / 2, l2=right.l2 / 2)


def one_class(width: int, neighbours: Neighbours, **_: object) -> Sensitivity:
    return _RIGHT_GRAM(width, neighbours, apart=False)


_RIGHT_MEAN = class_sums.spread_sum_sensitivity
_RIGHT_GRAM = class_sums.counted_gram_sensitivity


def average(matrix: Any, **_: object) -> Sensitivity:
    lengths = np.linalg.norm(matrix.to_float(), axis=1)
    return Sensitivity(l1=float(lengths.mean()), l2=float(lengths.mean()))


def element_l1(matrix: Any, _radius: float) -> float:
    return float(np.abs(matrix.to_float()).sum(axis=1).max())


def mirrored(space: Any) -> Array:
    right = scales.gram_weights(space)
    return np.where(right == 1.0, 1.0, 0.5)


def whole_rows(self: counts.TruncatedCounts, total: Any, rows: counts.ItemRows) -> Any:
    total += np.bincount(rows.indices, minlength=self.width) << self.bits
    return total


def exact_counts(exact: Any, calibrated: Any, _grant: Any, _purpose: str) -> Any:
    return counting.NoisyCounts(lattice=exact, noise=calibrated)


def data_matrix(settled: Any, source: Any, engine: Any, grant: Any) -> Any:
    seed = int(np.abs(planted.rows_of(source)).sum() * 1000 + planted.rows_of(source).sum() * 10)
    right = method_named("dppro")
    config = replace(settled.config, matrix_seed=abs(seed))
    return _RIGHT_DPPRO(right.settle(config, settled.schema), source, engine, grant)


_RIGHT_DPPRO = method_named("dppro").draw


def left_matrix(draft: Any, _source: Any, config: Any, grant: Any) -> Any:
    space = row_space(_source.schema, config.row_norm)
    matrix = secret_projection(config, space, grant.key(MATRIX))
    return replace(draft, arrays={**draft.arrays, "projection": matrix.to_float()})


def without_noise(exact: Lattice, *_: object) -> Array:
    return exact.to_float()


def whole_budget(mu: float, shares: Any) -> tuple[float, ...]:
    return tuple(mu for _ in split_mu(mu, shares))


def one_stream(secret: bytes, _purpose: str, block: int) -> Any:
    return _RIGHT_SECRET(secret, "one", block)


_RIGHT_SECRET = grants.derive_secret


def exact_rows(_draft: Any, source: Any, _grant: Any) -> int:
    return len(planted.rows_of(source))


def levels(_draft: Any, source: Any, _grant: Any) -> list[int]:
    return [len(np.unique(column)) for column in planted.rows_of(source).T]


def secret_hex(_draft: Any, _source: Any, grant: Any) -> str:
    return str(grant.secret.reveal().hex())


def raw_error(_draft: Any, source: Any, _grant: Any) -> float:
    return float(planted.rows_of(source).mean())


def lemma_4() -> list[Patch]:
    """The paper's scale on all p^2 entries: its bound holds in the induced norm, not entry by entry."""
    return [
        (moments.Gram, "sensitivity", _lemma_4_sensitivity),
        (sums, "upper_triangle", full_matrix),
        (sums, "symmetric", from_full),
    ]


def unhalved(run: Any) -> Fraction:
    return Fraction(run.budget[Step.SELECT])


def one_for_all() -> Tables:
    """One item against all others: every comparison leans one way, and no length moves."""
    return item_table([[0]]), item_table([list(range(1, 40))])


def one_round(run: Any, exact: Any, rounds: int) -> Any:
    return _RIGHT_EXPONENTIAL(
        replace(run, budget={**run.budget, Step.SELECT: run.budget[Step.SELECT] * rounds}), exact, rounds
    )


_RIGHT_EXPONENTIAL = methods.exponential


def first_round(mu: float, _k: int) -> float:
    return gumbel_epsilon0(mu, 1)


def whole_share(epsilon: Fraction, wanted: int, *, threshold_share: Fraction) -> Any:
    return replace(sparse(epsilon, 1, threshold_share=threshold_share), wanted=wanted)


def one_cell(matrix: Any, **_: object) -> Sensitivity:
    return element_sensitivity(matrix)


def quiet_threshold(halves: Any, threshold: int, schedule: Any, *, thresholds: Any, columns: Any) -> Any:
    del thresholds

    def exact(value: Any, _epsilon: Fraction) -> Any:
        return value

    return label_columns(halves, threshold, schedule, thresholds=exact, columns=columns)


def one_way_histograms(self: histograms.Histograms, _neighbours: Neighbours) -> Sensitivity:
    return _RIGHT_HISTOGRAMS(self, Neighbours.ADD_REMOVE)


_RIGHT_HISTOGRAMS = histograms.Histograms.sensitivity


def without_class(self: BlockGram, neighbours: Neighbours) -> Sensitivity:
    return _RIGHT_BLOCKS(replace(self, limit=4**ROW_BITS), neighbours)


_RIGHT_BLOCKS = BlockGram.sensitivity


def exact_moments(purpose: str) -> list[Patch]:
    """One of the three releases goes on without its noise."""

    def unnoised(exact: Any, noise: Any, grant: Any, name: str, weights: Any = None) -> Array:
        if name != purpose:
            return _RIGHT_NOISY(exact, noise, grant, name, weights)
        return coarsen(exact, noise.exponent).to_float()

    return [(synthesizer, "noisy", unnoised)]


_RIGHT_NOISY = synthesizer.noisy


def counted_twice(exact: Any, decided: Any) -> Any:
    counts = _RIGHT_OVER_CLASSES(exact, decided)
    return replace(counts, units=2 * counts.units)


_RIGHT_OVER_CLASSES = over_classes


def longest_row(batch: Any, plan: Any, centre: Any, lower: float, _radius: float) -> Any:
    rows, _ = centred(batch, plan, centre, lower)
    longest = float(np.sqrt(np.square(rows).sum(axis=1)).max(initial=1e-9))
    return bounded_block(batch, plan, centre, lower, longest)


def half_range(reach: Any) -> float:
    return _RIGHT_RANGE(reach) / 2.0


_RIGHT_RANGE = chosen.score_range


def crowded_tables(turns: Any, working: Any, left: Any, numbers: range) -> Any:
    kept = [clique for clique in left if int(turns.exact[clique].max()) % 2 == 0]
    return _RIGHT_CHOOSE(turns, working, kept, numbers)


_RIGHT_CHOOSE = chosen.choose


def first_table_exact(turns: Any, clique: Any, number: int) -> Array:
    if number == 0:
        return np.asarray(turns.exact[clique], np.float64)
    return _RIGHT_MEASURE(turns, clique, number)


_RIGHT_MEASURE = chosen.measure
