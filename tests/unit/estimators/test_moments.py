"""The face of the moments synthesizer."""

import numpy as np
import pytest
from sklearn.base import clone

import adumbra
from adumbra.errors import InvalidInput
from support.moments import ADD, mixed_schema, mixed_table

KEYS = {"epsilon": 50.0, "delta": 1e-6}


def test_a_table_in_a_table_out():
    face = adumbra.MomentsSynthesizer(schema=mixed_schema(), **KEYS).fit(mixed_table(800))
    table = face.sample()
    assert table.num_rows == 800
    assert table.column_names == list(mixed_schema().names)
    assert face.sample(5).num_rows == 5
    assert not face.sample(800, sample_seed=9).equals(table)
    assert face.guarantee_.mu is not None
    clone(face)


def test_arrays_with_and_without_labels():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1500) < 0.4, "b", "a")
    x = np.clip(0.2 * rng.normal(size=(1500, 3)) + 0.3 * (y == "b")[:, None], -1, 1)
    face = adumbra.MomentsSynthesizer(bounds=(-1.0, 1.0), classes=["a", "b"], **KEYS).fit(x, y)
    fake, labels = face.sample(2000)
    assert fake.shape == (2000, 3)
    assert abs(np.mean(labels == "b") - 0.4) < 0.05
    assert fake[labels == "b"].mean() > fake[labels == "a"].mean() + 0.2
    assert face.n_features_in_ == 3
    assert face.rank_ >= 1
    alone = adumbra.MomentsSynthesizer(bounds=(-1.0, 1.0), **KEYS).fit(x)
    assert alone.sample(7).shape == (7, 3)


def test_budgets_of_fits_add():
    face = adumbra.MomentsSynthesizer(bounds=(0.0, 1.0), epsilon=1.0)
    x = np.random.default_rng(0).random((100, 2))
    once = face.fit(x).guarantee_.mu
    assert face.fit(x).guarantee_.mu == pytest.approx(once * np.sqrt(2), rel=1e-6)


def test_what_is_missing_is_asked_for():
    x = np.zeros((4, 2))
    with pytest.raises(InvalidInput, match="schema=None, bounds=None"):
        adumbra.MomentsSynthesizer().fit(x)
    with pytest.raises(InvalidInput, match="classes=None"):
        adumbra.MomentsSynthesizer(bounds=(0.0, 1.0)).fit(x, [0, 1, 0, 1])
    with pytest.raises(InvalidInput, match="one label for each row"):
        adumbra.MomentsSynthesizer(bounds=(0.0, 1.0), classes=[0, 1]).fit(x, [0])
    with pytest.raises(InvalidInput, match="leave y out"):
        adumbra.MomentsSynthesizer(schema=mixed_schema()).fit(mixed_table(5), [0])
    private = adumbra.MomentsSynthesizer(schema=mixed_schema(ADD), neighbours="add-remove")
    with pytest.raises(InvalidInput, match="n_samples=None"):
        private.fit(mixed_table(50)).sample()
    with pytest.raises(InvalidInput, match="n_samples=0"):
        private.sample(0)
