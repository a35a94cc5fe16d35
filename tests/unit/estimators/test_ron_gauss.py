from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from adumbra.errors import InvalidInput
from adumbra.estimators.ron_gauss import RONGauss
from adumbra.mechanisms.ron_gauss import RONGaussConfig

RNG = np.random.default_rng(0)
HIDDEN = RNG.standard_normal(2000)
X = np.clip(0.4 * HIDDEN[:, None] + 0.3 * RNG.standard_normal((2000, 8)), -2, 2)
Y = np.where(HIDDEN > 0, "up", "down")


def test_a_mixture_is_fitted_sampled_and_mapped():
    model = RONGauss(
        epsilon=50.0, delta=1e-3, n_components=7, mode="gmm", bounds=(-2, 2), classes=["down", "up"]
    )
    model.fit(X, Y)
    rows, labels = model.sample(3000)
    assert rows.shape == (3000, 8)
    assert set(labels) == {"down", "up"}
    assert abs(rows).max() <= 2.0
    assert rows[labels == "up"].mean() == pytest.approx(X[Y == "up"].mean(), abs=0.15)
    projected = model.transform(X)
    assert projected.shape == (2000, 7)
    back = model.inverse_transform(projected)
    assert np.abs(back - X).mean() < 0.35  # seven of eight directions are kept
    assert model.guarantee_.sentence().startswith("epsilon=")
    first = model.guarantee_.mu
    assert model.fit(X, Y).guarantee_.mu > first  # every fit of one object adds up


def test_a_regression_and_a_plain_model():
    model = RONGauss(
        epsilon=50.0,
        delta=1e-3,
        n_components=7,
        mode="supervised",
        bounds=(-2, 2),
        y_bound=4.0,
        reconstruct=False,
    )
    rows, targets = model.fit(X, HIDDEN).sample(4000)
    weights, *_ = np.linalg.lstsq(np.c_[rows, np.ones(4000)], targets, rcond=None)
    error = np.c_[model.transform(X), np.ones(2000)] @ weights - HIDDEN
    assert np.std(error) < 0.7 * np.std(HIDDEN)
    plain = RONGauss(
        epsilon=5.0,
        delta=0.0,
        n_components=3,
        bounds=(-2, 2),
        neighbours="add-remove",
        reconstruct=False,
    ).fit(X)
    assert plain.sample(10).shape == (10, 3)
    assert plain.guarantee_.is_pure


def test_the_dimension_follows_the_public_rule_and_unit_rows_are_mapped_as_fitted():
    model = RONGauss(
        epsilon=50.0,
        delta=1e-3,
        mode="gmm",
        bounds=(-2, 2),
        classes=["down", "up"],
        unit_rows=True,
        reconstruct=False,
    ).fit(X, Y)
    assert model.components_.shape == (8, 7)
    mapped = model.transform(X)
    assert np.linalg.norm(mapped, axis=1).max() <= 1 + 1e-6
    rows, labels = model.sample(4000)
    for code in ("down", "up"):
        assert rows[labels == code].mean(axis=0) == pytest.approx(
            mapped[code == Y].mean(axis=0), abs=0.1
        )
    assert not model.transform(np.zeros((1, 8))).any()  # the middle of the bounds has no direction
    growing = RONGauss(
        epsilon=5.0, delta=0.0, bounds=(-2, 2), neighbours="add-remove", expected_rows=2000
    )
    assert growing.fit(X).sample(3).shape == (3, 8)


def test_it_clones_like_an_estimator():
    model = RONGauss(epsilon=2.0, delta=0.0, bounds=(0, 1), n_components=2)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("keywords", "labels", "text"),
    [
        ({}, None, "bounds=None: declare"),
        ({"bounds": (0, 1), "mode": "gmm"}, Y, "classes=None: mode=gmm needs"),
        ({"bounds": (0, 1), "mode": "gmm", "classes": ["up"]}, None, "y=None: mode=gmm needs labels"),
        ({"bounds": (0, 1), "mode": "gmm", "classes": ["up"]}, Y[:3], "need one label for each row"),
        ({"bounds": (0, 1), "mode": "supervised"}, HIDDEN, "y_bound=None"),
    ],
)
def test_what_is_missing_is_named(keywords, labels, text):
    with pytest.raises(InvalidInput, match=text):
        RONGauss(n_components=2, **keywords).fit(X, labels)


def test_calls_are_checked():
    with pytest.raises(InvalidInput, match="two-dimensional"):
        RONGauss(bounds=(0, 1), delta=0.0).fit(X[0])
    with pytest.raises(NotFittedError):
        RONGauss(delta=0.0).transform(X)
    with pytest.raises(InvalidInput, match="fit_transform: X is private"):
        RONGauss(bounds=(-2, 2), delta=0.0).fit_transform(X)
    with pytest.raises(InvalidInput, match="n_samples=0"):
        RONGauss(bounds=(-2, 2), n_components=2, delta=0.0).fit(X).sample(0)


def test_every_option_of_the_config_is_one_of_the_estimator_and_reaches_it():
    """Rows are drawn by `sample`, whose are their number and seed; `reconstruct` is `output`."""
    own = {"synthetic_rows", "sample_seed", "output"}
    names = {field.name for field in fields(RONGaussConfig)} - own
    assert names <= set(RONGauss().get_params())
    other = {"rescale": "normalise", "mean_share": 0.4, "clip_factor": 2.0, "clip_tail": 0.01}
    for name, value in other.items():
        config = RONGauss(bounds=(-2, 2), **{name: value})._config()
        assert getattr(config, name) == value != getattr(RONGaussConfig(epsilon=1.0), name)
    plain, shared = (
        RONGauss(epsilon=5.0, n_components=3, bounds=(-2, 2), mean_share=share).fit(X)
        for share in (0.05, 0.9)
    )
    assert plain.covariance_.shape == shared.covariance_.shape
    long = RONGauss(epsilon=50.0, n_components=3, bounds=(-2, 2), rescale="normalise").fit(X)
    # Rows of length 1 before a projection onto 3 of 8 directions have a variance of at most 1 in all.
    assert np.trace(long.covariance_.reshape(3, 3)) < 1.2


class Strict(RONGauss):
    """A house's own settings, which are no keywords of its own."""

    def __init__(self, epsilon=1.0, bounds=(0.0, 1.0)):
        super().__init__(epsilon=epsilon, bounds=bounds, delta=1e-9, unit_rows=True)


def test_what_a_subclass_sets_itself_is_released():
    """`get_params` does not know it: the defaults would be taken, and delta would be 1e-6."""
    made = Strict().fit(np.random.default_rng(0).random((200, 3)))
    assert made.guarantee_.delta == 1e-9
