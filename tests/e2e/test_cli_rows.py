"""`nearest` and `clusters` on a projected release, as a person types them."""

import json

import numpy as np
import pytest

import adumbra as ad
from adumbra.postprocess.distances import DistanceModel, nearest
from adumbra.postprocess.kmeans import kmeans
from adumbra.relations import Neighbours, Unit
from support.cli import in_process

TRUTH = np.arange(200) % 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two groups of rows far apart, little noise."""
    place = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    rows = np.clip(0.3 + 0.4 * TRUTH[:, None] + 0.02 * rng.standard_normal((200, 6)), 0, 1)
    schema = ad.Schema.numeric(6, 0.0, 1.0, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    config = ad.JLLaplaceConfig(n_components=6, epsilon=100.0, family="identity")
    with ad.create_ledger(place / "l.db") as ledger:
        relation = (Unit.ELEMENT, Neighbours.ONE_ELEMENT)
        ledger.register(ad.Population("people", *relation, 200.0, 0.0))
        ad.release(rows, config, schema=schema, ledger=ledger, population="people", out=place / "out")
    return place / "out"


def test_clusters_are_those_of_python_and_are_written(folder, tmp_path):
    out = tmp_path / "labels.csv"
    done = in_process("clusters", folder, "--count", 2, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    release = ad.load(folder)
    model = DistanceModel.from_facts(release.card["facts"]["distances"])
    found = kmeans(model, release.to_numpy(), 2)
    assert json.loads(done.stdout)["sizes"] == found.sizes.tolist() == [100, 100]
    labels = np.loadtxt(out, delimiter=",", skiprows=1, dtype=int)
    assert labels[:, 1].tolist() == found.labels.tolist()
    assert max(np.mean(labels[:, 1] == TRUTH), np.mean(labels[:, 1] != TRUTH)) == 1.0
    assert "100 rows" in in_process("clusters", folder, "--count", 2).stdout
    again = in_process("clusters", folder, "--count", 2, "--out", out)
    assert (again.returncode, "exists" in again.stderr) == (2, True)
    inside = in_process("clusters", folder, "--count", 2, "--out", folder / "labels.csv")
    assert (inside.returncode, "inside the release" in inside.stderr) == (2, True)


def test_nearest_rows_are_those_of_python(folder):
    done = in_process("nearest", folder, 0, 7, "--count", 3, "--json")
    assert done.returncode == 0, done.stderr
    release = ad.load(folder)
    model, rows = DistanceModel.from_facts(release.card["facts"]["distances"]), release.to_numpy()
    found = nearest(model, rows[[0, 7]], rows, 3, own=np.array([0, 7]))
    told = json.loads(done.stdout)
    assert [[one["row"] for one in each["neighbours"]] for each in told] == found.rows.tolist()
    assert told[0]["neighbours"][0]["squared_distance"] == pytest.approx(found.distances[0, 0])
    assert all(TRUTH[one["row"]] == TRUTH[0] for one in told[0]["neighbours"])
    assert "looks nearer than it is" in in_process("nearest", folder, 0).stdout
    wrong = in_process("nearest", folder, 200)
    assert (wrong.returncode, "must lie between 0 and 199" in wrong.stderr) == (2, True)


def test_other_releases_have_no_projected_rows(tmp_path):
    rows = np.random.default_rng(0).random((50, 3))
    schema = ad.Schema.numeric(3, 0.0, 1.0)
    with ad.create_ledger(tmp_path / "l.db") as ledger:
        ledger.register(ad.Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 9.0, 1e-6))
        config = ad.MomentsConfig(epsilon=1.0)
        ad.release(rows, config, schema=schema, ledger=ledger, population="people", out=tmp_path / "out")
    done = in_process("clusters", tmp_path / "out", "--count", 2)
    assert (done.returncode, "use a release of dppro or jl-laplace" in done.stderr) == (2, True)
