"""Plain words for what plans and cards name briefly; a name without a phrase is shown as words."""

import re
from collections.abc import Mapping
from typing import TypeVar

ValueT = TypeVar("ValueT")

EXPECTED = {
    "best_n_components": "number of components with the smallest error",
    "class_mean_error": "error of a class mean, classes of equal size (columns scaled to width 1)",
    "class_mean_noise": "noise of an average class's mean, in lengths of a centred row",
    "count_sigma": "noise of a count in a histogram (standard deviation, in rows)",
    "gram_noise_edge": "part of the variance below which a direction drowns in noise",
    "guessed_squared_distance": "squared distance for which errors are stated (encoded rows)",
    "mean_error": "error of a column's mean (columns scaled to width 1)",
    "n_components": "components of the projection",
    "noise_standard_deviation": "noise of a released number (standard deviation, encoded units)",
    "noise_to_signal": "noise over signal of the covariance, if variance is spread evenly",
    "one_way_total_variation": (  # cards of format 1, which did not say that it is a mean
        "error of the shares of values, mean over columns (total variation: 0 exact, 1 worthless)"
    ),
    "one_way_total_variation_if_columns_are_alike": "mean over columns where columns look alike",
    "one_way_total_variation_mean": (
        "error of the shares of values, mean over columns (total variation: 0 exact, 1 worthless)"
    ),
    "one_way_total_variation_mean_if_columns_are_alike": "mean error where columns look alike",
    "one_way_total_variation_worst": "error of the shares of values in the worst column",
    "one_way_total_variation_worst_if_columns_are_alike": "worst error where columns look alike",
    "second_moment_error": "error of a second moment of two columns (columns scaled to width 1)",
    "spectral_edge": "variance below which a direction drowns in noise (columns scaled to width 1)",
    "squared_error_of_mean_at_most": "squared error of a row if only the mean is released, at most",
    "squared_noise_of_rows_at_most": "squared noise of a released row, at most",
    "standard_error_at_best_n_components": "standard error at the best number of components",
    "standard_error_of_a_squared_distance": "standard error of a squared distance",
    "surviving_rank": "directions that can stand out of the noise, at most",
}
FACTS = {
    "clip_radius": "length to which longer centred rows were shortened",
    "components_found": "directions found in the noisy moments",
    "modelled_variance": "variance of the released model",
    "spectral_edge": EXPECTED["spectral_edge"],
    "surviving_rank": "directions that stood out of the noise",
}


def words(name: str) -> str:
    """A field's name as words."""
    return name.replace("_", " ")


def expected_words(name: str) -> str:
    """What an expected error of a plan means."""
    return EXPECTED.get(name) or words(name)


def fact_words(name: str) -> str:
    """What a fact on a card means."""
    return FACTS.get(name) or words(name)


def in_order(named: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """By name, numbers in names by their size: alike for a card just made and one that was read."""
    return dict(sorted(named.items(), key=lambda item: _natural(item[0])))


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"([0-9]{1,18})", name)
    return [(1, int(part), "") if i % 2 else (0, 0, part) for i, part in enumerate(parts)]
