"""`save` and `load`: releases and guarantees come back; changed and foreign files are refused."""

import json

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import load_file, save_file

import adumbra as ad
from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.estimators._saving import KEY
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

RNG = np.random.default_rng(0)
X = RNG.random((120, 3))
Y = np.array(["no", "yes"])[(X[:, 0] > 0.5).astype(int)]
ITEMS = [[int(item) for item in np.unique(RNG.integers(0, 5, 3))] for _ in range(100)]
SCHEMA = Schema(
    columns=(
        Column(name="a", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        Column(name="n", kind=Kind.INTEGER, lower=0, upper=9),
        Column(name="b", kind=Kind.BOOLEAN),
        Column(name="c", kind=Kind.CATEGORY, categories=("p", "q"), missing="category"),
    ),
    unit=Unit.ROW,
    neighbours=Neighbours.REPLACE_ONE,
)
TABLE = pa.table({
    "a": X[:, 0], "n": RNG.integers(0, 9, 120), "b": X[:, 1] > 0.5,
    "c": pa.array(np.array(["p", "q"])[RNG.integers(0, 2, 120)], mask=X[:, 2] > 0.8),
})  # fmt: skip
BOUNDS = {"epsilon": 2.0, "bounds": (0.0, 1.0)}


def fitted():
    """One of each estimator, and what it can do for nothing afterwards."""
    classes = {**BOUNDS, "classes": ["no", "yes"]}
    yield ad.MomentsSynthesizer(**classes).fit(X, Y), lambda one: one.sample(7)
    yield ad.MomentsSynthesizer(epsilon=2.0, schema=SCHEMA).fit(TABLE), lambda one: one.sample(7)
    yield ad.MomentsSynthesizer(**BOUNDS, neighbours="add-remove").fit(X), lambda one: one.sample(7)
    yield ad.RONGauss(**classes, mode="gmm").fit(X, Y), lambda one: one.sample(7)
    yield ad.RONGauss(**BOUNDS).fit(X), lambda one: one.transform(X[:4])
    yield ad.PCAPublisher(2, **BOUNDS).fit(X), lambda one: (one.released_, one.noise_scales_)
    yield ad.PCAPublisher(2, epsilon=2.0, schema=SCHEMA).fit(TABLE), lambda one: one.released_
    yield ad.PCAPublisher(2, **BOUNDS, output="sample").fit(X), lambda one: one.sample(7)
    yield ad.LDAPublisher(**classes).fit(X, Y), lambda one: (*one.sample(7), one.noise_scale_)
    projected = ad.DPPro(2, **BOUNDS)
    projected.fit_transform(X)
    yield projected, lambda one: (one.squared_distances(one.released_[:5]), one.components_)
    secret = ad.JLLaplace(2, epsilon=2.0, unit="element", bounds=([0.0] * 3, [1.0] * 3))
    secret.fit_transform(X)
    yield secret, lambda one: (one.squared_distances(one.released_[:5]), one.noise_scale_)
    counted = ad.TopKColumns(2, epsilon=2.0, delta=0.0, n_columns=5).fit(ITEMS)
    yield counted, lambda one: (one.columns_, one.counts_, one.standard_errors_)


def alike(one, other):
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one.equals(other) if isinstance(one, pa.Table) else one == other


def test_every_estimator_comes_back_with_its_guarantee(tmp_path):
    seen = set()
    for number, (made, use) in enumerate(fitted()):
        path = tmp_path / f"{number}.safetensors"
        made.save(path)
        again = type(made).load(path)
        assert alike(use(made), use(again)), type(made)
        assert again.guarantee_ == made.guarantee_
        assert again.n_features_in_ == made.n_features_in_
        again.save(tmp_path / "again", force=True)
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
        seen.add(type(made).__name__)
    assert seen == set(ad.estimators.__all__)


def test_a_further_fit_of_a_loaded_one_adds_up(tmp_path):
    made = ad.RONGauss(**BOUNDS).fit(X)
    made.save(tmp_path / "one")
    again = ad.RONGauss.load(tmp_path / "one")
    spent = again.guarantee_
    again.fit(X)
    assert again.guarantee_ == spent.compose(spent)


def test_the_parameters_of_the_fit_are_saved(tmp_path):
    made = ad.LDAPublisher(**BOUNDS, classes=["no", "yes"]).fit(X, Y)
    scale = made.noise_scale_
    made.set_params(epsilon=50.0).save(tmp_path / "one")
    again = ad.LDAPublisher.load(tmp_path / "one")
    assert (again.epsilon, again.noise_scale_) == (2.0, scale)


def test_names_of_columns_come_back(tmp_path):
    table = pa.table({name: X[:, at] for at, name in enumerate("abc")}).to_pandas()
    ad.RONGauss(**BOUNDS).fit(table).save(tmp_path / "one")
    again = ad.RONGauss.load(tmp_path / "one")
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(InvalidInput, match="named unlike"):
        again.transform(table.rename(columns={"a": "z"}))


def test_nothing_private_is_in_the_file(tmp_path):
    """The file holds the arrays of a release folder, and no other."""
    made = ad.MomentsSynthesizer(**BOUNDS).fit(X)
    made.save(tmp_path / "one")
    arrays = load_file(tmp_path / "one")
    assert set(arrays) == set(made._kept.arrays)
    config = ad.MomentsConfig(epsilon=2.0, synthetic_rows=1)
    ledger = ad.create_ledger(tmp_path / "l.db")
    ledger.register(ad.Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 9.0, 1e-6))
    schema = Schema.numeric(3, 0.0, 1.0)
    release = ad.release(X, config, schema=schema, ledger=ledger, population="p", out=tmp_path / "r")
    ledger.close()
    assert set(arrays) == set(release.arrays)


@pytest.fixture
def saved(tmp_path):
    ad.RONGauss(**BOUNDS).fit(X).save(tmp_path / "one")
    return tmp_path / "one"


def test_changed_files_are_refused(saved):
    raw = saved.read_bytes()
    for at in range(0, len(raw), 97):
        saved.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises((VerificationFailed, InvalidInput)):
            ad.RONGauss.load(saved)
    for part in (raw[:-1], raw[: len(raw) // 2], b"", raw + b"more", b"\x80\x04pickle"):
        saved.write_bytes(part)
        with pytest.raises(VerificationFailed):
            ad.RONGauss.load(saved)


def test_foreign_files_are_refused(saved, tmp_path):
    with pytest.raises(InvalidInput, match="holds a RONGauss, not a DPPro"):
        ad.DPPro.load(saved)
    with pytest.raises(InvalidInput, match="is not a file"):
        ad.DPPro.load(tmp_path / "absent")
    foreign = tmp_path / "foreign"
    for metadata in (None, {KEY: "3"}, {KEY: "{}"}, {"other": "{}"}, {KEY: json.dumps({"format": "x"})}):
        save_file({"a": X}, foreign, metadata)
        with pytest.raises(VerificationFailed, match="is not a file that `save`"):
            ad.RONGauss.load(foreign)


def test_parts_that_do_not_fit_are_refused(saved):
    """A forger can make the hash right; what is left must still be an estimator."""
    from adumbra.estimators import _saving

    raw = saved.read_bytes()
    header, arrays = _saving._opened(saved, raw)
    del header["sha256"]
    changes = [
        (header, {name: array for name, array in arrays.items() if name != "means"}),
        ({**header, "params": {**header["params"], "epsilon": -1.0}}, arrays),
        ({**header, "params": {"unknown": 1}}, arrays),
        ({**header, "guarantee": {}}, arrays),
        ({**header, "features": 3}, arrays),
    ]
    for words, parts in changes:
        sealed = {**words, "sha256": _saving._digest(words, parts)}
        save_file(parts, saved, {KEY: _saving._canonical(sealed)})
        with pytest.raises(VerificationFailed, match="do not fit together"):
            ad.RONGauss.load(saved)


def test_what_cannot_be_saved_says_so(tmp_path, saved):
    with pytest.raises(InvalidInput, match="has released nothing yet"):
        ad.DPPro(2, **BOUNDS).fit(X).save(tmp_path / "two")
    with pytest.raises(InvalidInput, match="exists already"):
        ad.RONGauss.load(saved).save(saved)
    pairs = [("no", 1), ("yes", 2)]
    made = ad.RONGauss(**BOUNDS).fit(X)
    made._kept.params["classes"] = [object(), *pairs]
    with pytest.raises(InvalidInput, match="classes holds a object"):
        made.save(tmp_path / "two")
    assert not (tmp_path / "two").exists()
