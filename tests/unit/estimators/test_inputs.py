"""What estimators are given: a cell of X or y is read alone, and public faults are said before a row."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import adumbra as ad
from adumbra.errors import InvalidInput
from adumbra.estimators._base import PrivateEstimator
from adumbra.estimators._inputs import as_numbers, class_values, label_codes, label_numbers
from adumbra.relations import Neighbours
from support.cells import HOSTILE, objects

BOX = {"bounds": (0.0, 4.0)}
FACES = {
    "moments": (ad.MomentsSynthesizer(classes=[0, 1], **BOX), [1, 1, 0, 1]),
    "moments-alone": (
        ad.MomentsSynthesizer(neighbours="add-remove", bounds=([0.0] * 2, [4.0] * 2)),
        None,
    ),
    "ron-gauss": (ad.RONGauss(n_components=1, **BOX), None),
    "ron-gauss-gmm": (ad.RONGauss(mode="gmm", classes=["a", "b"], **BOX), ["b", "a", "b", "b"]),
    "ron-gauss-supervised": (ad.RONGauss(mode="supervised", y_bound=2.0, **BOX), [0.5, True, 1, 2]),
    "dppro": (ad.DPPro(1, **BOX), None),
    "jl-laplace": (ad.JLLaplace(1, unit="element", **BOX), None),
    "pca": (ad.PCAPublisher(1, **BOX), None),
    "lda": (ad.LDAPublisher(classes=[True, False], **BOX), [True, False, True, True]),
}
ROWS = [[True, 0.5], [2, 1], [3.25, False], [4, 2]]


class Read(Exception):
    """Carries what an estimator was about to pay for."""


@pytest.fixture
def rows_of(monkeypatch):
    """The rows that a fit would release."""

    def stop(_self, source, _config):
        raise Read([batch.values.tolist() for batch in source.batches(4096)])  # noqa: PD011

    monkeypatch.setattr(PrivateEstimator, "_pay_and_draw", stop)

    def read(face, x, y):
        with pytest.raises(Read) as caught:
            clone(face).fit(x, y).transform(x)  # a projection pays in `transform`, the rest in `fit`
        return caught.value.args[0][0]

    return read


def doors(rows):
    """The same cells as a list of lists, an array of objects and a data frame of inferred types."""
    yield rows
    yield objects([cell for row in rows for cell in row]).reshape(len(rows), -1)
    columns = list(zip(*rows, strict=True))
    yield pd.DataFrame(dict(zip("ab", map(objects, columns), strict=True)), dtype=object)
    try:
        yield pd.DataFrame({"a": pd.Series(columns[0]), "b": pd.Series(columns[1])})
    except Exception:  # noqa: BLE001  (pandas itself refuses such a column)
        return


@pytest.mark.parametrize("name", FACES)
def test_a_hostile_cell_changes_no_other_row(rows_of, name):
    face, y = FACES[name]
    before = rows_of(face, ROWS, y)
    assert [row[:2] for row in before] == [[1, 0.5], [2, 1], [3.25, 0], [4, 2]]
    others = [0, 2, 3]
    for cell in HOSTILE if name == "ron-gauss-gmm" else HOSTILE[::5]:  # one way in for all
        changed = [ROWS[0], [2, cell], *ROWS[2:]]
        for x in doors(changed):
            after = rows_of(face, x, y)
            assert [after[i] for i in others] == [before[i] for i in others], type(cell)
            assert after[1][0] == before[1][0]
        if y is not None:
            for labels in ([y[0], cell, *y[2:]], pd.Series(objects([y[0], cell, *y[2:]]), dtype=object)):
                after = rows_of(face, ROWS, labels)
                assert [after[i] for i in others] == [before[i] for i in others], type(cell)
                assert after[1][:2] == before[1][:2]


def is_listed(x):
    """Whether X holds lists of items rather than columns."""
    return isinstance(x, list | pd.Series)


def test_a_hostile_item_changes_no_other_set(monkeypatch):
    seen = []

    def stop(_self, source, _config):
        batch = next(source.batches(4096))
        ends = zip(batch.indptr, batch.indptr[1:], strict=False)
        seen.append([batch.indices[first:last].tolist() for first, last in ends])
        raise Read

    monkeypatch.setattr(PrivateEstimator, "_pay_and_draw", stop)
    for cell in HOSTILE:
        matrix = [[1, 0, True], [cell, 1, 0], [0, 0, 1]]
        array = objects([item for row in matrix for item in row]).reshape(3, 3)
        lists = [[0, 2], [cell, 1], [2]]
        for x in (array, pd.DataFrame(array), lists, pd.Series(lists)):
            with pytest.raises(Read):
                ad.TopKColumns(1, n_columns=3 if is_listed(x) else None, delta=0.0).fit(x)
            assert (seen[-1][0], seen[-1][2], 1 in seen[-1][1]) == ([0, 2], [2], True), type(cell)
    frame = pd.DataFrame({"a": [1, None], "b": [True, False], "c": [0, 2.5]})
    for x in (
        frame,
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        sp.csr_array([[1, 1, 0], [0, 0, 2.5]]),
    ):
        with pytest.raises(Read):
            ad.TopKColumns(1, delta=0.0).fit(x)
        assert seen[-1] == [[0, 1], [2]]


def test_the_same_numbers_never_mean_two_things_to_top_k():
    dense = [[1, 0, 1], [1, 0, 0], [1, 1, 0]]
    with pytest.raises(InvalidInput, match="a list is read as lists of items"):
        ad.TopKColumns(1, delta=0.0).fit(dense)
    with pytest.raises(InvalidInput, match="n_columns=3: is for lists of items; X has 3 columns"):
        ad.TopKColumns(1, n_columns=3, delta=0.0).fit(np.array(dense))


WRONG = ["x", None, float("nan"), float("inf"), -1, 1.5, [1], {}]


@pytest.mark.parametrize("name", [*FACES, "top-k"])
def test_a_keyword_of_a_wrong_type_is_refused_before_anything_is_paid(monkeypatch, name):
    def stop(*_arguments):
        raise Read

    monkeypatch.setattr(PrivateEstimator, "_pay_and_draw", stop)
    face, y = FACES.get(name, (ad.TopKColumns(1, delta=0.0), None))
    x = np.array([[1, 0.5], [2, 1], [3.25, 0], [4, 2]])
    for keyword in face.get_params():
        for value in WRONG:
            made = clone(face).set_params(**{keyword: value})
            with pytest.raises((InvalidInput, Read)):
                made.fit(x, y).transform(x)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"mode": "x"}, "mode='x': must be one of unsupervised, supervised, gmm"),
        ({"mode": "supervised", "y_bound": "x"}, "y_bound='x': must be a finite number above 0"),
        ({"n_components": 1.5}, "n_components=1.5: must be a whole number or auto"),
        ({"matrix_seed": None}, "matrix_seed=None: must be a whole number"),
        ({"row_norm": "x"}, "row_norm='x': must be a number or None"),
        ({"unit_rows": 1}, "unit_rows=1: must be True or False"),
    ],
)
def test_the_refusal_names_the_keyword(keywords, message):
    with pytest.raises(InvalidInput, match=message):
        ad.RONGauss(**keywords, **BOX).fit(ROWS, [1, 0, 1, 0])


def test_numbers_of_numpy_are_taken_as_python_has_them():
    config = ad.RONGaussConfig(
        epsilon=np.float32(0.5), delta=0.0, n_components=np.int64(2), unit_rows=np.True_
    )
    assert config == ad.RONGaussConfig(epsilon=0.5, delta=0.0, n_components=2, unit_rows=True)
    kinds = [type(value) for value in (config.epsilon, config.n_components, config.unit_rows)]
    assert kinds == [float, int, bool]
    with pytest.raises(InvalidInput, match="family=3: must be a text"):
        ad.DPProConfig(n_components=2, epsilon=1.0, delta=1e-6, family=3)


def test_how_many_rows_to_draw_is_a_whole_number():
    drawn = {
        "n_samples": [
            ad.RONGauss(**BOX).fit(ROWS),
            ad.PCAPublisher(1, **BOX).fit(ROWS),
            ad.MomentsSynthesizer(**BOX).fit(ROWS),
        ],
    }
    for name, faces in drawn.items():
        for face in faces:
            for wrong in ("3", 1.5, True, 0):
                with pytest.raises(InvalidInput, match=f"{name}={wrong!r}: must be a whole number"):
                    face.sample(wrong)
            with pytest.raises(
                InvalidInput, match="sample_seed=-1: must be a whole number of at least 0"
            ):
                face.sample(2, sample_seed=-1)
            assert len(face.sample(np.int64(2))) == 2
    with pytest.raises(InvalidInput, match="X has 3 features: projected rows have 1"):
        drawn["n_samples"][0].inverse_transform(np.ones((1, 3)))


def test_labels_match_as_categories_do():
    for labels in (
        [1, 0, 1, 7, None],
        [1.0, 0.0, True, "x", np.nan],
        np.array([1, 0, 1, 7, 0]),
        np.array(["1", "0", "1.0", "x", ""]),
        pd.Series([1, 0, 1, None, "x"]),
        pd.Series([1, 0, 1, 0, 0], dtype="category"),
        pa.chunked_array([[1, 0], [1, 7, None]]),
        pl.Series([1, 0, 1, 7, None]),
    ):
        assert label_codes(labels, [0, 1], 5).tolist() == [0 if i in (1, 3, 4) else 1 for i in range(5)]
    assert label_codes(["b", "B", b"b"], np.array(["a", "b"]), 3).tolist() == [1, 0, 1]
    assert label_codes([True, 0, "false"], [True, False], 3).tolist() == [0, 1, 1]
    assert label_numbers(["1.5", True, None, 10**400], 4)[:2].tolist() == [1.5, 1]
    assert np.isnan(label_numbers(["1.5", True, None, 10**400], 4)[2:]).all()
    assert class_values([1, "a"]).tolist() == [1, "a"]
    assert class_values(np.array([1, 2])).dtype.kind == "i"
    for classes, text in (
        ([None, 1], "classes: each must be a number, a truth or a text"),
        (3, "classes=3: give the public list"),
        ([1, "1"], "categories: '1' more than once"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(text)):
            label_codes([1], classes, 1)
    for labels in (pd.DataFrame({"y": [1]}), np.array([[1]]), pa.table({"y": [1]})):
        with pytest.raises(InvalidInput, match="y: need one label for each row of X, in one dimension"):
            label_codes(labels, [0, 1], 1)


def test_every_array_like_gives_its_numbers():
    expected = [[1.0, 2.0], [0.0, 3.5]]
    frame = pd.DataFrame({"a": [True, False], "b": ["2", 3.5]})
    typed = pd.DataFrame({"a": [True, False], "b": [2, 3.5]})
    for x in (
        expected,
        tuple(map(tuple, expected)),
        [np.array([1, 2]), np.array([0, 3.5])],
        np.array(expected),
        np.array(expected) + 0j,
        np.array(expected).astype(str),
        frame,
        typed,
        pl.from_pandas(typed),
        pa.Table.from_pandas(typed),
    ):
        assert as_numbers(x).tolist() == expected
    for x, text in (
        (sp.csr_array(expected), "X of type csr_array: is sparse; give X.toarray()"),
        ([1.0, 2.0], "X with 1 dimensions: must be two-dimensional"),
        ("text", "X with 0 dimensions: must be two-dimensional"),
        ([[1.0], None], "X: every row must have the same number of cells"),
        ([[], object()], "X: every row must have the same number of cells"),
        ([], "X without a column"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(text)):
            as_numbers(x)


@pytest.mark.parametrize("name", FACES)
def test_public_faults_are_refused(name):
    face, y = FACES[name]
    for bounds in (3, (0,), (0, 1, 2), ("a", "b"), (None, 1), ([0, [1]], [1, 2])):
        with pytest.raises(InvalidInput, match="bounds=.*give \\(lower, upper\\)"):
            clone(face).set_params(bounds=bounds).fit(ROWS, y)
    if "neighbours" in face.get_params():
        for relation in ("addremove", "one-element", 3):
            with pytest.raises(
                InvalidInput, match="neighbours=.*must be one of add-remove, replace-one"
            ):
                clone(face).set_params(neighbours=relation).fit(ROWS, y)
        empty = clone(face).set_params(neighbours="add-remove")
        if name != "pca":  # which releases rows, so that n is public
            options = {"expected_rows": 9} if name.startswith("ron") else {}
            empty.set_params(**options).fit(np.empty((0, 2)), None if y is None else [])
            assert empty.guarantee_.neighbours is Neighbours.ADD_REMOVE  # n = 0 is private there
        face = clone(face).set_params(neighbours="replace-one")
    with pytest.raises(InvalidInput, match="X with 0 rows: nothing to release"):
        clone(face).fit(np.empty((0, 2)), None if y is None else [])
    with pytest.raises(InvalidInput, match="X without a column"):
        clone(face).fit(np.empty((4, 0)), y)


SCHEMA = ad.Schema.numeric(2, 0, 4, names=["a", "b"])


@pytest.mark.parametrize("make", [ad.MomentsSynthesizer, ad.PCAPublisher, ad.LDAPublisher])
def test_a_schema_is_not_contradicted(make):
    table = pd.DataFrame({"a": [1, 2], "b": [0, 3]})
    for keywords, text in (
        ({"neighbours": "add-remove"}, "neighbours='add-remove': the schema declares 'replace-one'"),
        ({"neighbours": "nobody"}, "neighbours='nobody': must be one of"),
        ({"bounds": (0, 1)}, "bounds: the schema declares them"),
        ({"schema": "patients.toml"}, "schema of type str: give adumbra.Schema.read(path)"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(text)):
            make(**{"schema": SCHEMA, **keywords}).fit(table)
    if make is not ad.PCAPublisher:
        with pytest.raises(InvalidInput, match="classes: the schema declares them"):
            make(schema=SCHEMA, classes=[0, 1]).fit(table)


def test_a_schema_says_its_own_relation():
    face = ad.MomentsSynthesizer(schema=SCHEMA, neighbours="replace-one")
    assert face.fit(pd.DataFrame({"a": [1, 2], "b": [0, 3]})).guarantee_.neighbours == "replace-one"


@pytest.mark.parametrize("name", FACES)
def test_nothing_is_read_off_before_a_fit(name):
    face = clone(FACES[name][0])
    for method, arguments in (
        ("sample", (3,)),
        ("transform", (ROWS,)),
        ("inverse_transform", (ROWS,)),
        ("squared_distances", (np.zeros((2, 1)),)),
        ("get_feature_names_out", ()),
    ):
        if hasattr(face, method) and not (method == "get_feature_names_out" and name == "pca"):
            with pytest.raises(NotFittedError):
                getattr(face, method)(*arguments)


@pytest.mark.parametrize("name", ["dppro", "jl-laplace", "ron-gauss"])
def test_tables_keep_their_names(name):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [0.5, 1, 0, 2]}, index=[7, 8, 9, 10])
    face = clone(FACES[name][0]).set_output(transform="pandas").fit(frame)
    assert face.feature_names_in_.tolist() == ["a", "b"]
    assert face.n_features_in_ == 2
    assert face.get_feature_names_out().tolist() == [type(face).__name__.lower() + "0"]
    out = face.transform(frame)
    assert out.columns.tolist() == face.get_feature_names_out().tolist()
    assert out.index.tolist() == [7, 8, 9, 10]
    with pytest.raises(InvalidInput, match="named unlike those of the fit"):
        face.transform(frame[["b", "a"]])
    with pytest.raises(InvalidInput, match="X has 1 features, but .* is expecting 2"):
        face.transform(frame[["a"]])
    face.fit(frame.to_numpy())
    assert not hasattr(face, "feature_names_in_")


LISTS = {"bounds": ([0.0, 0.0], [4.0, 4.0]), "neighbours": "add-remove"}
PRIVATE_N = {
    "moments": (ad.MomentsSynthesizer, {}, None),
    "moments-classes": (ad.MomentsSynthesizer, {"classes": [0, 1]}, [1]),
    "ron-gauss": (ad.RONGauss, {"n_components": 1}, None),
    "ron-gauss-gmm": (ad.RONGauss, {"n_components": 1, "mode": "gmm", "classes": [0, 1]}, [1]),
    "ron-gauss-supervised": (
        ad.RONGauss,
        {"n_components": 1, "mode": "supervised", "y_bound": 2.0},
        [1],
    ),
    "pca": (ad.PCAPublisher, {"n_components": 1, "output": "sample"}, None),
    "lda": (ad.LDAPublisher, {"classes": [0, 1]}, [1]),
}


def outcome(face, x, y):
    """What a fit shows: its own kind, or the words of its refusal."""
    try:
        return type(face.fit(x, y)).__name__
    except InvalidInput as refused:
        return str(refused)


@pytest.mark.parametrize("name", PRIVATE_N)
def test_no_row_is_like_a_row_where_n_is_private(name):
    kind, words, y = PRIVATE_N[name]
    none = None if y is None else []
    doors = [
        ([], [[1.0, 2.0]]),
        (np.array([]), np.array([[1.0, 2.0]])),
        (np.empty((0, 2)), np.ones((1, 2))),
        (pd.DataFrame({"a": [], "b": []}), pd.DataFrame({"a": [1.0], "b": [2.0]})),
    ]
    for empty, full in doors:
        assert outcome(kind(**words, **LISTS), empty, none) == kind.__name__
        assert outcome(kind(**words, **LISTS), full, y) == kind.__name__
    scalar = {"bounds": (0.0, 4.0), "neighbours": "add-remove"}
    refused = outcome(kind(**words, **scalar), [], none)
    assert "an empty list has no width" in refused
    assert outcome(kind(**words, **scalar), [[1.0, 2.0]], y) == refused
    public = {"bounds": ([0.0, 0.0], [4.0, 4.0]), "neighbours": "replace-one"}
    assert "X with" in outcome(kind(**words, **public), np.empty((0, 2)), none)
