"""The planted bugs, each with the case that must show it.

Most were found in published code or papers: docs/theory.md lists the errata of those that we rebuilt,
docs/explanation/pitfalls.md what went wrong elsewhere.
"""

import os
from types import SimpleNamespace

from adumbra.audit import planted, wrong
from adumbra.audit.answers_mutants import ANSWERS_MUTANTS
from adumbra.audit.bounds_mutants import BOUNDS_MUTANTS
from adumbra.audit.move_cases import MOVE_MUTANTS
from adumbra.audit.mutant import SMALL_EPSILON, Mutant, attack_mutant, replay_mutant, sensitivity_mutant
from adumbra.audit.person_mutants import PERSON_MUTANTS
from adumbra.audit.planted import altered_draw, with_fact
from adumbra.audit.reassuring import REASSURING
from adumbra.data.bounds import bound_rows
from adumbra.data.encode import Encoder
from adumbra.mechanisms import box_release
from adumbra.mechanisms.moments import chosen
from adumbra.mechanisms.moments import plan as moments_plan
from adumbra.mechanisms.moments import release as synthesizer
from adumbra.mechanisms.projection import plan as projections
from adumbra.mechanisms.projection import release as projected_rows
from adumbra.mechanisms.projection import rows as projected
from adumbra.mechanisms.ron_gauss import scales, sums
from adumbra.mechanisms.topk import methods, phases, svt
from adumbra.privacy import grant as grants
from adumbra.privacy import recorded_noise
from adumbra.statistics import box_moments, class_sums, counts, histograms, moments
from adumbra.statistics.moments import BlockGram

PRIVATE, GROWING = "ron-gauss/private/replace-one", "ron-gauss/private/add-remove"
MUTANTS: tuple[Mutant, ...] = (
    attack_mutant(
        name="noise of half the width",
        case="dppro/element",
        patches=lambda: planted.weaker_noise(0.5),
    ),
    attack_mutant(
        name="noise of 0.9 of its width",
        case="dppro/row",
        patches=lambda: planted.weaker_noise(0.9),
    ),
    attack_mutant(
        name="noise of 0.95 of its width",
        case="ron-gauss/public/replace-one",
        patches=lambda: planted.weaker_noise(0.95),
    ),
    attack_mutant(
        name="Laplace noise of half the width",
        case="topk/frefirst/replace-one",
        patches=lambda: planted.weaker_noise(0.5),
    ),
    attack_mutant(
        name="Gumbel noise of half the width",
        case="topk/em/replace-one",
        patches=planted.weaker_selection,
        config=SMALL_EPSILON,
    ),
    attack_mutant(
        name="noise of comparisons of half the width",
        case="topk/svt/replace-one",
        patches=lambda: planted.weaker_noise(0.5),
        config=SMALL_EPSILON,
    ),
    sensitivity_mutant(
        name="add-remove sensitivity under replace-one",
        case=PRIVATE,
        patches=lambda: planted.sensitivity(moments.Gram, wrong.add_remove_gram),
    ),
    sensitivity_mutant(
        name="selection under replace-one with constants of add-remove",
        case="topk/em/replace-one",
        patches=lambda: [(methods, "score_range", lambda _neighbours: 1)],
    ),
    sensitivity_mutant(
        name="clip after aggregation",
        case=PRIVATE,
        patches=lambda: [(sums, "bound_rows", planted.unclipped)],
    ),
    sensitivity_mutant(
        name="clip norm computed from the data",
        case="dppro/row",
        patches=lambda: [(projected, "bound_rows", planted.data_norm(bound_rows))],
        tables=wrong.outlier,
    ),
    sensitivity_mutant(
        name="bounds are the least and largest value",
        case="dppro/row",
        patches=lambda: [(Encoder, "encode", planted.data_bounds(Encoder.encode))],
        tables=wrong.outlier,
    ),
    replay_mutant(
        name="category list from the data",
        case="pca/sample/replace-one",
        patches=lambda: altered_draw("pca", with_fact("categories", wrong.levels)),
    ),
    replay_mutant(
        name="number of rows released exactly",
        case=GROWING,
        patches=lambda: altered_draw("ron-gauss", with_fact("rows", wrong.exact_rows)),
    ),
    Mutant(
        name="one noise for two statistics",
        check="freshness",
        case="moments/replace-one",
        patches=lambda: [(recorded_noise, "derive_secret", wrong.one_stream)],
    ),
    Mutant(
        name="noise seed fixed",
        check="freshness",
        case="dppro/row",
        patches=lambda: [(grants, "os", SimpleNamespace(urandom=bytes, getpid=os.getpid))],
    ),
    Mutant(
        name="noise seed written to the card",
        check="secrets",
        case="dppro/row",
        patches=lambda: altered_draw("dppro", with_fact("seed", wrong.secret_hex)),
    ),
    replay_mutant(
        name="projection drawn after looking at the data",
        case="dppro/row",
        patches=lambda: planted.replaced_draw("dppro", wrong.data_matrix),
        tables=wrong.outlier,
    ),
    Mutant(
        name="secret projection left in the release",
        check="secrets",
        case="jl-laplace/row",
        patches=lambda: altered_draw("jl-laplace", wrong.left_matrix),
    ),
    sensitivity_mutant(
        name="symmetric noise averaged with its mirror image",
        case=PRIVATE,
        patches=lambda: [(sums, "gram_weights", wrong.mirrored)],
    ),
    replay_mutant(
        name="eigenvectors of the Gram before its noise",
        case=PRIVATE,
        patches=lambda: planted.exact_purpose("gram"),
    ),
    replay_mutant(
        name="top-k of exact counts",
        case="topk/frefirst/replace-one",
        patches=lambda: [(phases, "noisy_counts", wrong.exact_counts)],
    ),
    sensitivity_mutant(
        name="rows of any length counted whole",
        case="topk/frefirst/add-remove",
        patches=lambda: [(counts.TruncatedCounts, "add", wrong.whole_rows)],
        tables=wrong.long_set,
    ),
    Mutant(
        name="float noise instead of the lattice",
        check="grid",
        case="dppro/row",
        patches=lambda: [(projected_rows, "add_gaussian", planted.float_noise)],
    ),
    replay_mutant(
        name="rows of missing values skipped",
        case="dppro/row",
        patches=lambda: [(Encoder, "encode", planted.skipping_missing(Encoder.encode))],
        tables=wrong.missing,
    ),
    sensitivity_mutant(
        name="one charge for several releases",
        case=PRIVATE,
        patches=lambda: [(scales, "split_mu", wrong.whole_budget)],
    ),
    replay_mutant(
        name="mixture started from raw class means",
        case="ron-gauss/mixture/replace-one",
        patches=lambda: planted.exact_purpose("mean"),
    ),
    replay_mutant(
        name="order of private rows kept in synthetic ones",
        case="ron-gauss/public/replace-one",
        patches=lambda: altered_draw("ron-gauss", planted.in_private_order),
        tables=wrong.ordered,
    ),
    sensitivity_mutant(
        name="redrawn until positive definite",
        case=PRIVATE,
        patches=planted.redrawn_until_positive,
    ),
    replay_mutant(
        name="utility on raw data in the card",
        case="lda/replace-one",
        patches=lambda: altered_draw("lda", with_fact("error", wrong.raw_error)),
    ),
    sensitivity_mutant(
        name="mean noise of the reference implementation (half)",
        case=PRIVATE,
        patches=lambda: [(class_sums, "spread_sum_sensitivity", wrong.half_mean)],
    ),
    sensitivity_mutant(
        name="RON-Gauss Lemma 4: 2 sqrt(p) for the whole Gram",
        case="ron-gauss/pure/private/replace-one",
        patches=wrong.lemma_4,
    ),
    sensitivity_mutant(
        name="mixture that forgets a change of class",
        case="ron-gauss/pure/mixture/replace-one",
        patches=lambda: [(class_sums, "counted_gram_sensitivity", wrong.one_class)],
        config={"covariance": "class"},  # a mixture with one Gram per class
    ),
    sensitivity_mutant(
        name="categories counted like numbers (PCA, LDA paper)",
        case="pca/sample/replace-one",
        patches=lambda: planted.sensitivity(box_moments.BoxMoments, wrong.numbers_only),
    ),
    sensitivity_mutant(
        name="average row of R instead of the longest",
        case="dppro/element",
        patches=lambda: [(projected, "element_sensitivity", wrong.average)],
        config={"family": "gaussian"},  # a matrix whose rows differ in length
    ),
    sensitivity_mutant(
        name="JL rows at the element scale (Theorem 5, t at its minimum)",
        case="jl-laplace/row",
        patches=lambda: [(projections, "smallest_l2_ball_l1", wrong.element_l1)],
    ),
    sensitivity_mutant(
        name="PFM under replace-one with the budget of add-remove",
        case="topk/tps-pfm/replace-one",
        patches=lambda: [(methods, "_comparing", wrong.unhalved)],
        tables=wrong.one_for_all,
    ),
    sensitivity_mutant(
        name="SVT under replace-one with the budget of add-remove",
        case="topk/svt/replace-one",
        patches=lambda: [(methods, "_comparing", wrong.unhalved)],
        config=SMALL_EPSILON,
    ),
    replay_mutant(
        name="thresholds of SVT without noise",
        case="topk/svt/add-remove",
        patches=lambda: [(svt, "label_columns", wrong.quiet_threshold)],
    ),
    sensitivity_mutant(
        name="moments: histograms by sqrt(m) where a row leaves and another comes",
        case="moments/replace-one",
        patches=lambda: planted.sensitivity(histograms.Histograms, wrong.one_way_histograms),
    ),
    replay_mutant(
        name="moments: centre from exact histograms",
        case="moments/replace-one",
        patches=lambda: wrong.exact_moments("marginals"),
    ),
    replay_mutant(
        name="moments: histograms over all classes without noise",
        case="moments/tables/replace-one",
        patches=lambda: wrong.exact_moments("one_way"),
    ),
    sensitivity_mutant(
        name="moments: a row counts twice over all classes",
        case="moments/tables/add-remove",
        patches=lambda: [(synthesizer, "over_classes", wrong.counted_twice)],
    ),
    sensitivity_mutant(
        name="moments: clip radius is the longest row",
        case="moments/replace-one",
        patches=lambda: [(synthesizer, "bounded_block", wrong.longest_row)],
    ),
    replay_mutant(
        name="moments: clip radius from exact lengths",
        case="moments/add-remove",
        patches=lambda: wrong.exact_moments("radius"),
    ),
    sensitivity_mutant(
        name="moments: Gram that forgets its class part",
        case="moments/replace-one",
        patches=lambda: planted.sensitivity(BlockGram, wrong.without_class),
    ),
    sensitivity_mutant(
        name="moments: one charge for three releases",
        case="moments/add-remove",
        patches=lambda: [(moments_plan, "split_mu", wrong.whole_budget)],
    ),
    sensitivity_mutant(
        name="moments: scores of tables that move half as far",
        case="moments/tables/replace-one",
        patches=lambda: [(chosen, "score_range", wrong.half_range)],
    ),
    replay_mutant(
        name="moments: candidates are tables that hold many rows",
        case="moments/tables/add-remove",
        patches=lambda: [(chosen, "choose", wrong.crowded_tables)],
    ),
    replay_mutant(
        name="moments: one table without noise",
        case="moments/tables/replace-one",
        patches=lambda: [(chosen, "measure", wrong.first_table_exact)],
    ),
    sensitivity_mutant(
        name="moments: every chosen table at the price of all",
        case="moments/tables/add-remove",
        patches=lambda: [(chosen, "split_mu", wrong.whole_budget)],
    ),
    replay_mutant(
        name="noise whose width follows the exact sums",
        case="lda/replace-one",
        patches=lambda: planted.scale_from_rows(box_release, "add_gaussian"),
    ),
    sensitivity_mutant(
        name="k selections at the price of one",
        case="topk/em-two/replace-one",
        patches=lambda: [(methods, "exponential", wrong.one_round)],
    ),
    sensitivity_mutant(
        name="k Gumbel rounds at the price of one",
        case="topk/gumbel-gaussian/add-remove",
        patches=lambda: [(methods, "gumbel_epsilon0", wrong.first_round)],
        config={"k": 2},  # two rounds, where one would hide a missing factor k
    ),
    sensitivity_mutant(
        name="SVT whose every acceptance takes the whole share",
        case="topk/svt-two/add-remove",
        patches=lambda: [(methods, "sparse", wrong.whole_share)],
        config=SMALL_EPSILON,
    ),
    sensitivity_mutant(
        name="a change of category counted as one cell",
        case="dppro/element/categories",
        patches=lambda: [(projected, "element_sensitivity", wrong.one_cell)],
    ),
    Mutant(
        name="rows summed twice by the engine of production",
        check="engine",
        case="lda/add-remove",
        patches=planted.rows_counted_again,
    ),
    *ANSWERS_MUTANTS,
    *MOVE_MUTANTS,
    *BOUNDS_MUTANTS,
    *REASSURING,
    *PERSON_MUTANTS,
)
