"""`PCAPublisher` and `LDAPublisher`: arrays and tables in, the same kinds out, budgets that add."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import adumbra as ad
from adumbra.errors import InvalidInput
from support.components import mixed, table


def classes(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes"], n, p=[0.6, 0.4])
    x = rng.normal([2.0, 5.0, 1.0], [0.5, 1.0, 0.3], (n, 3)) + 0.8 * (y == "yes")[:, None]
    return x, y


def test_lda_keeps_what_tells_classes_apart():
    x, y = classes()
    publisher = ad.LDAPublisher(
        epsilon=2.0, delta=1e-6, bounds=([0, 0, 0], [5, 10, 3]), classes=["no", "yes"]
    )
    rows, labels = publisher.fit(x, y).sample(3000)
    assert rows.shape == (3000, 3)
    assert set(labels) == {"no", "yes"}
    ours = LinearDiscriminantAnalysis().fit(rows, labels).score(x, y)
    assert ours > LinearDiscriminantAnalysis().fit(x, y).score(x, y) - 0.03
    assert publisher.class_means_.shape == (2, 3)
    assert publisher.covariance_.shape == (3, 3)
    assert publisher.noise_scale_ > 0
    assert publisher.n_features_in_ == 3
    again = publisher.sample(3000)[0]
    assert np.array_equal(rows, again)


def test_a_mixed_table_goes_in_and_out():
    publisher = ad.LDAPublisher(epsilon=1.0, delta=0.0, schema=mixed()).fit(table(2000))
    out = publisher.sample(100)
    assert isinstance(out, pa.Table)
    assert out.column_names == list(mixed().names)
    rows = ad.PCAPublisher(3, epsilon=1.0, delta=0.0, schema=mixed()).fit_transform(table(2000))
    assert rows.num_rows == 2000
    assert rows.column_names == list(mixed().names)


def test_pca_rows_and_samples_of_arrays():
    x, _ = classes()
    publisher = ad.PCAPublisher(3, epsilon=900.0, delta=0.0, bounds=([0, 0, 0], [5, 10, 3]))
    rows = publisher.fit_transform(x)
    assert rows.shape == x.shape
    assert np.corrcoef(rows[:, 1], x[:, 1])[0, 1] > 0.9
    assert publisher.components_.shape == (3, 3)
    assert set(publisher.noise_scales_) == {"moments", "rows"}
    drawn = publisher.sample(5000, sample_seed=1)
    assert drawn.mean(axis=0) == pytest.approx(x.mean(axis=0), rel=0.1)
    sampler = ad.PCAPublisher(
        2,
        epsilon=1.0,
        delta=0.0,
        bounds=([0, 0, 0], [5, 10, 3]),
        output="sample",
        neighbours="add-remove",
    )
    assert sampler.fit(x).released_ is None
    assert sampler.sample(7).shape == (7, 3)
    with pytest.raises(InvalidInput, match="output='sample'"):
        sampler.fit_transform(x)


def test_budgets_of_fits_add_and_clones_start_anew():
    x, y = classes(200)
    publisher = ad.LDAPublisher(epsilon=0.5, delta=0.0, bounds=(0.0, 10.0), classes=["no", "yes"])
    publisher.fit(x, y).fit(x, y)
    assert publisher.guarantee_.epsilon == 1.0
    assert not hasattr(clone(publisher), "guarantee_")


def test_refusals():
    x, y = classes(50)
    with pytest.raises(InvalidInput, match="bounds=None"):
        ad.PCAPublisher(1, delta=0.0).fit(x)
    with pytest.raises(InvalidInput, match="two-dimensional"):
        ad.PCAPublisher(1, bounds=(0, 1), delta=0.0).fit(x[0])
    with pytest.raises(InvalidInput, match="classes=None"):
        ad.LDAPublisher(bounds=(0, 1), delta=0.0).fit(x, y)
    with pytest.raises(InvalidInput, match="y=None"):
        ad.LDAPublisher(bounds=(0, 1), classes=["no", "yes"], delta=0.0).fit(x)
    with pytest.raises(InvalidInput, match="one label for each row"):
        ad.LDAPublisher(bounds=(0, 1), classes=["no", "yes"], delta=0.0).fit(x, y[:3])
    with pytest.raises(InvalidInput, match="leave y out"):
        ad.LDAPublisher(schema=mixed(), delta=0.0).fit(table(5), y)
    fitted = ad.LDAPublisher(bounds=(0, 10), classes=["no", "yes"], delta=0.0).fit(x, y)
    with pytest.raises(InvalidInput, match="n_samples=0"):
        fitted.sample(0)
    with pytest.raises(InvalidInput, match="n_samples=0"):
        ad.PCAPublisher(1, bounds=(0, 10), delta=0.0).fit(x).sample(0)
