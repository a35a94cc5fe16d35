"""The papers' experiments: comparators with a known answer, data sets by TOML, cells kept and shown."""

from argparse import Namespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from papers import PAPERS, cells_of, known_items, known_roles, measure
from replication import papers_page
from replication.cells import KINDS, Cell, Experiment, Paper, Store
from replication.comparators import diffgen, huber, private_svm, unit_ball
from replication.peer_comparators import PEER, privbayes
from replication.sets import HERE, all_sets, read_set

from adumbra.errors import InvalidInput

ABOUT = {"source": "tree", "machine": {}}


def separable(rows, rng):
    x = rng.uniform(0, 1, (rows, 3))
    return x, np.where(x[:, 0] > x[:, 1], 1.0, -1.0)


def test_the_slope_of_the_huber_loss_is_its_derivative():
    margin = np.linspace(-1, 3, 4001)
    loss, slope = huber(margin)
    middle = np.diff(loss) / np.diff(margin)
    assert np.abs(middle - (slope[1:] + slope[:-1]) / 2).max() < 1e-3


def test_private_svm_finds_a_plane_and_none_at_a_tiny_epsilon():
    rng = np.random.default_rng(0)
    (x, y), (test, truth) = separable(20_000, rng), separable(4000, rng)

    def right(epsilon):
        weights = private_svm(unit_ball(x), y, epsilon, 1e-3, rng)
        return np.mean(np.sign(unit_ball(test) @ weights) == truth)

    assert right(10.0) > 0.95
    assert right(1e-4) < 0.9  # a random direction: 20,000 rows cannot be seen through that noise


@pytest.mark.parametrize("score", ["max", "infogain"])
def test_diffgen_keeps_the_class_of_the_column_that_decides_it(score):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 8, (20_000, 3))
    y = (codes[:, 1] >= 4).astype(int)
    rows, labels = diffgen(codes, [8, 8, 8], y, 50.0, steps=3, score=score, rng=rng)
    assert abs(len(rows) - len(codes)) < 50
    assert np.mean((rows[:, 1] >= 4) == (labels == 1)) > 0.99
    noisy, _ = diffgen(codes, [8, 8, 8], y, 1e-3, steps=3, score=score, rng=rng)
    assert abs(len(noisy) - len(codes)) > 50


def test_privbayes_without_an_environment_says_what_to_give_and_keeps_what_is_stored(tmp_path):
    with pytest.raises(InvalidInput, match="PrivBayes: give --environments FOLDER"):
        privbayes(np.zeros((4, 2), bool), np.zeros(4, bool), 1.0)
    told = {"item": "i", "data": "d", "setting": "s", "kind": "comparator", "measure": "m"}
    cells = [
        Cell(**told, arm="a peer", draw=lambda _: 0.5, once=True, needs=PEER),
        Cell(**told, arm="ours", draw=lambda _: 0.25),
    ]
    paper = Paper("p", "P", (Experiment("i", "about", lambda: iter(cells)),))
    given = Namespace(only=None, draws=1, keep=False, environments=None)
    store = Store(tmp_path / "lines.jsonl", ABOUT)
    measure(paper, [], store, given)
    assert {line["arm"] for line in store.lines.values()} == {"ours"}
    given.environments = tmp_path
    measure(paper, [], store, given)
    given.environments = None
    measure(paper, [], store, given)
    store.compact()
    assert {line["arm"] for line in store.lines.values()} == {"ours", "a peer"}


def test_a_set_that_nobody_described_is_named_with_what_is_known(tmp_path):
    with pytest.raises(InvalidInput, match=r"no data set 'realdsip': known are .*retail.*--set FILE"):
        read_set(HERE / "realdsip.toml", tmp_path)
    mine = tmp_path / "mine.toml"
    mine.write_text('file = "a.parquet"\nkind = "sets"\nrole = ["top-k"]\n')
    with pytest.raises(InvalidInput, match=r"mine.toml: needs file, kind .* unknown: role"):
        read_set(mine, tmp_path)


def written(folder, name, told, columns):
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    path = folder / f"{name}.toml"
    path.write_text(f'file = "{name}.parquet"\n{told}')
    return path


def test_a_set_that_does_not_fit_its_file_says_what_is_expected(tmp_path):
    columns = {"a": [0.0, 1.0], "b": [1.0, 0.0], "activity": [0, 1]}
    rows = 'kind = "rows"\nroles = ["classes"]\n[rows]\n'
    wrong = read_set(written(tmp_path, "wrong", rows + 'label = "label"', columns), tmp_path)
    with pytest.raises(
        InvalidInput, match=r"wrong.parquet has no column 'label'.*it has a, b, activity"
    ):
        _ = wrong.numbers
    bare = read_set(written(tmp_path, "bare", rows + 'label = "activity"', columns), tmp_path)
    with pytest.raises(InvalidInput, match=r"bare: its TOML file needs bounds = \[lower, upper\]"):
        _ = bare.numbers
    flat = read_set(written(tmp_path, "flat", 'kind = "sets"\nroles = ["top-k"]', columns), tmp_path)
    with pytest.raises(InvalidInput, match="needs a column 'items' of lists"):
        _ = flat.lists
    with pytest.raises(InvalidInput, match=r"but rows are needed"):
        _ = flat.frame()
    (tmp_path / "flat.parquet").unlink()
    with pytest.raises(InvalidInput, match=r"flat.toml: its file 'flat.parquet' is not in --data"):
        all_sets(tmp_path, [tmp_path / "flat.toml"])
    with pytest.raises(InvalidInput, match="there is no such folder"):
        all_sets(tmp_path / "nowhere")


def test_unknown_roles_and_items_are_refused_with_those_there_are(tmp_path):
    path = written(tmp_path, "mine", 'kind = "rows"\nroles = ["clases"]', {"a": [1.0]})
    with pytest.raises(InvalidInput, match=r'takes clases; roles are .*"classes" \(ron-gauss Table 4'):
        known_roles([path], tmp_path)
    with pytest.raises(
        InvalidInput, match=r"--only Table 9: there is none; there are Table 1, Figure 3"
    ):
        known_items([PAPERS["jl"]], "Table 9")
    known_items([PAPERS["jl"]], "Table 1")


def test_a_narrow_set_of_your_own_is_drawn(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    columns = {f"c{j}": rng.normal(size=300) + y for j in range(4)} | {"activity": y}
    told = 'kind = "rows"\nroles = ["classes"]\n[rows]\nlabel = "activity"\nbounds = [-5, 5]'
    mine = read_set(written(tmp_path, "mine", told, columns), tmp_path)
    table = next(one for one in PAPERS["ron-gauss"].experiments if one.item == "Table 4")
    cells = [cell for cell in table.cells(mine) if cell.data == "mine" and "SVM" in cell.measure]
    assert not any("p=20" in cell.arm for cell in cells)
    store = Store(tmp_path / "lines.jsonl", ABOUT)
    assert all(store.add("ron-gauss", cell, 1) for cell in cells)
    assert all(0.0 <= line["values"][0] <= 1.0 for line in store.lines.values())


def test_every_described_set_serves_an_experiment(tmp_path):
    found, absent = all_sets(tmp_path)
    assert found == []
    takes = {experiment.takes for paper in PAPERS.values() for experiment in paper.experiments}
    sets = [read_set(path, tmp_path) for path in HERE.glob("*.toml")]
    assert len(absent) == len(sets) > 10
    assert all(set(one.roles) <= takes for one in sets)
    assert takes - {""} <= {role for one in sets for role in one.roles}


def test_generated_experiments_draw_and_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(papers_page, "PAGE", tmp_path / "papers.md")
    store, paper = Store(tmp_path / "lines.jsonl", ABOUT), PAPERS["jl"]
    for experiment in paper.experiments[1:]:  # figures 3 and 4: cheap
        for cell in cells_of(experiment, []):
            assert cell.kind in KINDS
            assert store.add(paper.name, cell, 2)
    store.compact()
    again = Store(tmp_path / "lines.jsonl", ABOUT)
    assert again.lines == store.lines
    values = {(line["arm"], line["setting"]): line["values"] for line in again.lines.values()}
    assert (
        values["ours, element-wise", "k=50"][0]
        < values["element-wise as printed (not private)", "k=50"][0]
    )
    papers_page.write(PAPERS.values(), again.lines.values())
    page = (tmp_path / "papers.md").read_text()
    assert "| printed | element-wise, printed | 0.006 |" in page
    assert "Nothing has been drawn yet." in page


def test_a_cell_is_drawn_once_for_a_source_and_anew_for_another(tmp_path):
    drawn = []
    told = {"item": "i", "data": "d", "setting": "s", "arm": "a", "kind": "ours", "measure": "m"}
    cell = Cell(**told, draw=lambda seed: drawn.append(seed) or 1.0)
    store = Store(tmp_path / "lines.jsonl", ABOUT)
    assert store.add("p", cell, 2)
    assert not store.add("p", cell, 2)
    assert store.add("p", cell, 3)
    assert drawn == [0, 1, 2]
    other = Store(tmp_path / "lines.jsonl", {**ABOUT, "source": "later"})
    assert other.add("p", cell, 1)
    assert drawn == [0, 1, 2, 0]
