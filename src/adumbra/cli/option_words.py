"""What each option of each method means, in a sentence; a test compares it with the configs' fields."""

EPSILON = "the budget of this release (`--epsilon`)"
DELTA = "0 for pure epsilon with Laplace noise, above 0 for Gaussian noise (`--delta`)"
ROW_NORM = "row unit: longer encoded rows are scaled down to it; none: the schema's own bound"
FAMILY = "how the projection is drawn; auto follows a public rule, gaussian is the paper's"
NONZEROS = "entries that are not zero in each row of the sparse family"
CLIP_TAIL = (
    "expected share of rows that the clip after the projection shortens; smaller means more noise"
)
MATRIX_SEED = "public seed of the projection; a reader rebuilds it from this"
SAMPLE_SEED = "public seed with which synthetic rows are drawn from the noisy model"
GUESSED_DISTANCE = "a public guess of a squared distance, for the error that the plan prints alone"
SYNTHETIC = "synthetic rows to draw; none: the public number of rows, or a noisy one"
EXPECTED = "a public guess of the number of rows, for the plan, where the schema declares none"

PURPOSES: dict[str, str] = {
    "dppro": "every row, projected, with Gaussian noise: distances, neighbours and clusters of rows",
    "jl-laplace": "the same with Laplace noise, for a pure guarantee",
    "lda": "synthetic rows that keep class means and spread, to train a classifier",
    "moments": "synthetic rows of a mixed table or of item sets; the default, to be tried first",
    "pca": "the main directions of a table, and each row in them, noisy, or synthetic rows",
    "ron-gauss": "synthetic rows of a Gaussian, of one for each class, or with a numeric target",
    "top-k": "the k most frequent items, with noisy counts",
}
TAKES: dict[str, tuple[str, str]] = {  # data, relations; a test tries every pair
    "dppro": ("tables and item sets", "replace-one or one-element"),
    "jl-laplace": ("tables and item sets", "replace-one or one-element"),
    "lda": ("tables with a label", "replace-one or add-remove"),
    "moments": ("tables and item sets", "replace-one or add-remove"),
    "pca": ("tables", "replace-one; with -o output=sample add-remove as well"),
    "ron-gauss": ("tables", "replace-one or add-remove"),
    "top-k": ("item sets", "replace-one or add-remove"),
}

WORDS: dict[str, dict[str, str]] = {
    "dppro": {
        "n_components": "columns of the projection that is released",
        "epsilon": EPSILON,
        "delta": "must be above 0: the noise is Gaussian (`--delta`)",
        "row_norm": ROW_NORM,
        "family": FAMILY,
        "nonzeros": NONZEROS,
        "clip_tail": CLIP_TAIL,
        "matrix_seed": MATRIX_SEED,
        "distance_guess": GUESSED_DISTANCE,
    },
    "jl-laplace": {
        "n_components": "columns of the projection that is released",
        "epsilon": EPSILON,
        "delta": "must be 0: the guarantee is pure",
        "row_norm": ROW_NORM,
        "family": FAMILY,
        "nonzeros": NONZEROS,
        "clip_tail": CLIP_TAIL,
        "distance_guess": GUESSED_DISTANCE,
    },
    "lda": {
        "epsilon": EPSILON,
        "delta": DELTA,
        "synthetic_rows": SYNTHETIC,
        "loss": "which error the sampler makes small; absolute is the paper's",
        "floor": "least eigenvalue of the released covariance, in edges of the noise's spectrum",
        "expected_rows": EXPECTED,
    },
    "moments": {
        "epsilon": EPSILON,
        "delta": DELTA,
        "sample_rows": "synthetic rows to draw; none: as many as the data has, where that is public",
        "rows_guess": "a public guess of the number of rows, for the public rules, where n is private",
        "marginal_share": "part of the budget for one-way histograms; none: by a public rule",
        "numbers": "how numbers enter the second moments: as bins, or as one scaled column (scores)",
        "sample_seed": SAMPLE_SEED,
    },
    "pca": {
        "n_components": "private directions to keep; 0 publishes the mean alone",
        "epsilon": EPSILON,
        "delta": DELTA,
        "output": "rows: each row, noisy, one to one; sample: synthetic rows from the noisy moments",
        "moments_share": "part of the budget for mean and directions, where noisy rows follow",
        "bound": "how a row's change is bounded: by the basis, by a clip, or by whichever is less noisy",
        "clip_deviations": "clip radius, in root mean squares of the kept noisy variances",
        "shrink": "pull noisy coordinates towards the mean, for the least squared error",
        "synthetic_rows": SYNTHETIC,
        "sample_seed": SAMPLE_SEED,
    },
    "ron-gauss": {
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_components": "dimension of the random projection; auto follows a public rule",
        "mode": "one Gaussian, one with a numeric target (supervised), or one for each class (gmm)",
        "centring": "around a mean that is paid for, or around the middle of the declared bounds",
        "covariance": "of a mixture: for each class, tied, a sphere, or auto by a public rule",
        "rescale": "after centring: clip long rows, or normalise all to length 1 as the paper does",
        "unit_rows": "scale every row to length 1 first, as the paper does; magnitudes are lost",
        "row_norm": ROW_NORM,
        "mean_share": "part of the budget for the mean; none: by a public rule",
        "clip_factor": "centred rows are clipped at this times their noisy root mean square",
        "clip_tail": CLIP_TAIL,
        "expected_rows": EXPECTED,
        "synthetic_rows": SYNTHETIC,
        "output": "columns: rows of the schema's own columns; projected: rows of the random projection",
        "matrix_seed": MATRIX_SEED,
        "sample_seed": SAMPLE_SEED,
    },
    "top-k": {
        "k": "how many of the most frequent columns to find",
        "epsilon": EPSILON,
        "delta": DELTA,
        "method": "the algorithm; auto is the best of them for the guarantee asked for",
        "length": "items counted of one row, if publicly known; none: chosen privately for a share",
        "max_length": "the longest such length that the private choice considers",
        "all_counts": "also release the noisy counts of all columns, where the method makes them",
    },
}
