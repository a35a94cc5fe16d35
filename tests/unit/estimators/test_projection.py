"""The scikit-learn faces: keywords, clones, pipelines, charges, distances."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from adumbra.errors import InvalidInput, PrivacyCostWarning, Unsupported
from adumbra.estimators import DPPro, JLLaplace

X = np.random.default_rng(0).uniform(0, 2, size=(300, 12))
FACES = [
    DPPro(n_components=5, bounds=(0.0, 2.0), epsilon=50.0, matrix_seed=3),
    DPPro(n_components=5, bounds=(0.0, 2.0), epsilon=50.0, unit="element"),
    JLLaplace(n_components=5, bounds=(0.0, 2.0), epsilon=50.0),
    JLLaplace(n_components=5, bounds=([0.0] * 12, [2.0] * 12), epsilon=50.0, unit="element"),
]


@pytest.mark.parametrize("face", FACES, ids=lambda face: f"{type(face).__name__}-{face.unit}")
def test_rows_and_distances_are_those_of_the_encoded_table(face):
    fitted = clone(face)
    released = fitted.fit_transform(X)
    assert released.shape == (300, 5)
    assert fitted.n_features_in_ == 12
    distances, errors = fitted.squared_distances(released, return_std=True)
    assert np.array_equal(
        fitted.squared_distances(released, released[:7]), fitted.squared_distances(released)[:, :7]
    )
    encoded = X / 2.0
    exact = np.sum((encoded[:, None] - encoded[None]) ** 2, axis=2)
    apart = ~np.eye(300, dtype=bool)
    assert abs(np.mean((distances - exact)[apart])) < np.mean(errors)
    assert np.std((distances - exact)[apart]) < 2.0 * np.mean(errors)
    assert fitted.noise_scale_ > 0
    assert fitted.distance_model_.unit == 1.0


def test_the_public_matrix_is_there_and_the_secret_one_is_not():
    public, secret = clone(FACES[1]).fit(X), clone(FACES[2]).fit(X)
    public.transform(X)
    assert public.components_.shape == (12, 5)
    residual = public.released_ - (X / 2.0 - 0.5) @ public.components_
    assert np.abs(residual).max() < 7 * public.noise_scale_
    assert not hasattr(secret, "components_")


@pytest.mark.parametrize("face", FACES, ids=lambda face: f"{type(face).__name__}-{face.unit}")
def test_fit_and_transform_of_the_same_rows_pay_once(face):
    apart, at_once = clone(face).fit(X), clone(face)
    assert not hasattr(apart, "guarantee_")
    assert not hasattr(apart, "released_")
    with pytest.raises(NotFittedError):
        apart.squared_distances(X[:, :5])
    released = apart.transform(X)
    assert released is apart.released_
    at_once.fit_transform(X)
    assert apart.guarantee_ == at_once.guarantee_
    names = [f"{type(face).__name__.lower()}{j}" for j in range(5)]
    assert list(apart.get_feature_names_out()) == names


def test_what_fit_learns_depends_on_no_cell():
    one, other = clone(FACES[0]).fit(X), clone(FACES[0]).fit(np.zeros_like(X))
    assert np.array_equal(one.components_, other.components_)
    unlike = {name for name, value in vars(one).items() if not np.array_equal(value, vars(other)[name])}
    assert unlike == set()


def test_every_release_is_charged_and_clones_start_anew():
    face = clone(FACES[2]).fit(X)
    face.transform(X)
    once = face.guarantee_.epsilon
    with pytest.warns(
        PrivacyCostWarning, match="this JLLaplace has released rows before .*further release"
    ):
        face.transform(X)
    assert face.guarantee_.epsilon == 2 * once
    with pytest.warns(PrivacyCostWarning):
        face.fit_transform(X)
    assert face.guarantee_.epsilon == 3 * once
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyCostWarning):  # an error here comes before the payment
            face.transform(X)
    assert face.guarantee_.epsilon == 3 * once
    assert not hasattr(clone(face), "guarantee_")
    gaussian = clone(FACES[0])
    gaussian.fit_transform(X)
    mu = gaussian.guarantee_.mu
    with pytest.warns(PrivacyCostWarning):
        gaussian.fit_transform(X)
    assert gaussian.guarantee_.mu == pytest.approx(mu * np.sqrt(2))


def test_a_pipeline_takes_them():
    pipeline = Pipeline([("rows", clone(FACES[1])), ("clusters", KMeans(2, n_init=2))])
    assert len(pipeline.fit(X).named_steps["clusters"].labels_) == 300
    with pytest.warns(PrivacyCostWarning, match="further release"):
        pipeline.predict(X)


def test_public_faults_are_refused():
    with pytest.raises(InvalidInput, match="bounds=None: declare"):
        DPPro().fit(X)
    with pytest.raises(InvalidInput, match="unit=person: must be 'row' or 'element'"):
        DPPro(unit="person", bounds=(0, 1)).fit(X)
    with pytest.raises(Unsupported, match="with neighbours=one-element"):
        JLLaplace(unit="element", row_norm=1.0, bounds=(0.0, 1.0), n_components=2).fit(X)
    with pytest.raises(InvalidInput, match="the guarantee is pure"):
        JLLaplace(delta=1e-6, bounds=(0.0, 1.0)).fit(X)
