"""Branches of noise-making code that no recorded transcript takes, each with the reason why.

A branch that is neither taken nor listed fails the audit, and so does a line here that is taken after
all or that has no branch any more. `branches` names them.
"""

LISTED: dict[str, tuple[str, ...]] = {
    # -- released numbers only
    "reads a release; no private row is at hand": (
        "mechanisms.bounds.release:pictures: edges is not None [no]",
        "mechanisms.bounds.release:pictures: edges is not None [yes]",
        "mechanisms.bounds.release:pictures: parts.is_pure [no]",
        "mechanisms.bounds.release:pictures: parts.is_pure [yes]",
        "mechanisms.base:Plan._repr_html_: self.size is None [no]",
        "mechanisms.base:Plan._repr_html_: self.size is None [yes]",
        "mechanisms.moments.chosen:read_released: j >= 0 [no]",
        "mechanisms.moments.chosen:read_released: j >= 0 [yes]",
        "mechanisms.moments.chosen:read_released: len(batches) <= number [no]",
        "mechanisms.moments.chosen:read_released: len(batches) <= number [yes]",
        "mechanisms.moments.release:model_of: model.goal is None or scales.chosen is None ... [no]",
        "mechanisms.moments.release:model_of: model.goal is None or scales.chosen is None ... [yes]",
        "mechanisms.projection.release:words: label is not None [no]",
        "mechanisms.projection.release:words: label is not None [yes]",
        "mechanisms.projection.release:words: label is not None and label.noise is None [no]",
        "mechanisms.projection.release:words: label is not None and label.noise is None [yes]",
    ),
    "after the noise, from a public seed (tests/unit/mechanisms/test_synthetic_rows.py)": (
        "mechanisms.base:Draft.with_rows: first.num_rows == rows [no]",
        "mechanisms.moments.release:_with_rows: model.schema.rules [yes]",
    ),
    "after the noise: bounds as text (tests/unit/mechanisms/bounds/test_bounds_release.py)": (
        "mechanisms.bounds.release:find: column.kind.is_time [yes]",
    ),
    "a public rule about declared columns (tests/unit/mechanisms/moments/test_pairs_by_class.py)": (
        "mechanisms.moments.design:_varied: feature.cells > 1 [no]",
    ),
    "words of a plan; nothing is drawn": (
        "mechanisms.answers.plan:_words: columns > SHARP [yes]",
        "mechanisms.base:plan_of: schema.person is None [no]",
        "mechanisms.base:plan_of: schema.person is None [yes]",
        "mechanisms.topk.config:idle_options: config.wants_counts [yes]",
    ),
    "the public ids of columns that were chosen (tests/e2e/test_listed_items.py)": (
        "mechanisms.topk.release:_numbers: ids is None [no]",
    ),
    "what noise is expected, for plans and pages; the drawn scale is another function": (
        "mechanisms.box_release:MomentNoise.deviation: kind in (Kind.SQUARE, Kind.COUNT) [no]",
        "mechanisms.box_release:MomentNoise.deviation: kind in (Kind.SQUARE, Kind.COUNT) [yes]",
        "mechanisms.box_release:MomentNoise.deviation: self.statistic.weights [yes]",
    ),
    # -- sizes that no recorded table has; the noise is the same call
    "public numbers: more than 32 or 64 columns, 4 million cells or 1,500 candidate tables": (
        "mechanisms.moments.chosen:candidates: room < 0 or len(found) == MOST_CANDIDATES [yes]",
        "mechanisms.moments.design:_histogram_share: f.edges is not None [no]",
        "mechanisms.moments.design:_histogram_share: f.edges is not None [yes]",
        "mechanisms.moments.design:_histogram_share: len(features) <= MOST_CHOSEN [no]",
        "mechanisms.moments.design:_histogram_share: len(features) <= MOST_CHOSEN [yes]",
    ),
    "large tables are read twice (tests/unit/mechanisms/ron_gauss/test_ron_gauss.py)": (
        "mechanisms.ron_gauss.sums:_first_pass: kept is not None [no]",
        "mechanisms.ron_gauss.sums:_first_pass: size > KEPT_BYTES [yes]",
    ),
    "slices of wide tables, before the sums (tests/unit/mechanisms/ron_gauss/test_ron_gauss.py)": (
        "mechanisms.ron_gauss.sums:_joined: labels [no]",
        "mechanisms.ron_gauss.sums:_joined: labels [yes]",
        "mechanisms.ron_gauss.sums:_joined: len(found) == 1 [no]",
        "mechanisms.ron_gauss.sums:_joined: one.labels is not None [no]",
        "mechanisms.ron_gauss.sums:_joined: one.labels is not None [yes]",
        "mechanisms.ron_gauss.sums:_joined: one.targets is not None [no]",
        "mechanisms.ron_gauss.sums:_joined: one.targets is not None [yes]",
        "mechanisms.ron_gauss.sums:_joined: targets [no]",
        "mechanisms.ron_gauss.sums:_joined: targets [yes]",
    ),
    "keys of a worker's own blocks, the same noise (tests/unit/privacy/test_handover.py)": (
        "privacy.grant:HandedKeys.key: found is None [no]",
        "privacy.grant:KeyedRows.accept: not own [no]",
    ),
    # -- tiers of the sampler: each gives the same number for the same bits
    "public scales, the same list either way (tests/unit/privacy/test_noise.py)": (
        "privacy.noise:_distinct: guess.size and bool((guess[np.minimum(places... [no]",
    ),
    "compiled code, the same bits as numpy's (tests/unit/privacy/test_noise.py)": (
        "privacy.noise:Sampler.__init__: noise_engine() == 'numba' and (forced or Sam... [yes]",
        "privacy.noise:Sampler.coarse: self._kernel is None [no]",
        "privacy.noise:coarse_kernel: not abs(value - (rounded - magic)) < limit [no]",
        "privacy.noise:coarse_kernel: not abs(value - (rounded - magic)) < limit [yes]",
        "privacy.noise:coarse_kernel: offset > 0 [no]",
        "privacy.noise:coarse_kernel: offset > 0 [yes]",
        "privacy.noise:loaded_kernel: except Exception [taken]",
        "privacy.noise:noise_engine: _has_numba() [no]",
        "privacy.noise:require_kernel: noise_engine() == 'numba' and os.environ.get... [no]",
        "privacy.noise:require_kernel: noise_engine() == 'numba' and os.environ.get... [yes]",
    ),
    "the exact tier, where faster ones leave doubt (tests/unit/privacy/test_noise_exact.py)": (
        "privacy._laws:_compare: low > edge * (1 + slack) [no]",
        "privacy._laws:_compare: m <= 0 [yes]",
        "privacy._laws:_estimate: law.kind == 'gaussian' [yes]",
        "privacy._laws:_settle: above < 0 [yes]",
        "privacy._laws:_settle: above > 0 and below < 0 [no]",
        "privacy._laws:_settle: below > 0 [yes]",
        "privacy._laws:decide: magnitude is not None [no]",
        "privacy._laws:decide: numerator [no]",
        "privacy._laws:normal_quantile: abs(step) < tolerance [no]",
        "privacy._laws:normal_quantile: abs(step) < tolerance [yes]",
        "privacy._laws:threshold: law.kind == 'gaussian' [yes]",
        "privacy.noise:_Doubts.settle: word & 1 [no]",
    ),
    "more noise than recorded tables need (tests/unit/privacy/test_noise.py, test_keys.py)": (
        "privacy.grant:WordStream.__init__: start % 2 [yes]",
        "privacy.noise:_Doubts.add: self._size >= CHUNK [yes]",
    ),
    "ties of a selection, which more bits part (tests/unit/privacy/test_selection.py)": (
        "privacy.selection:_Contender._at: self.word & 1 [no]",
        "privacy.selection:_Contender._at: self.word & 1 [yes]",
        "privacy.selection:_Contender.enclose: not numerator [no]",
        "privacy.selection:_Contender.enclose: not numerator [yes]",
        "privacy.selection:_compare: low > other_high [no]",
        "privacy.selection:_compare: low > other_high [yes]",
        "privacy.selection:_compare: other_low > high [no]",
        "privacy.selection:_compare: other_low > high [yes]",
        "privacy.selection:_order: len(members) > 1 [yes]",
    ),
    "what it finds is refused in the next lines": (
        "mechanisms.topk.config:_require_truths: not is_truth(column) [yes]",
        "privacy.selection:gumbel_top_k: scale > 0 [no]",
    ),
}
