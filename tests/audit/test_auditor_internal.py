"""Attacks on a finished release: worded as evidence, never as a guarantee."""

import numpy as np
import pytest

from adumbra import workflow
from adumbra.audit.internal import attack_release, facts
from adumbra.audit.pairs import table_of
from adumbra.errors import Unsupported
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import Population, create_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.report.internal import scores
from adumbra.schema.schema import Column, Kind, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0.0, upper=99.0),
        Column(name="amount", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        Column(name="<b>ill</b>", kind=Kind.CATEGORY, categories=("no", "yes")),
    ),
    unit=Unit.ROW,
    neighbours=Neighbours.REPLACE_ONE,
    label="<b>ill</b>",
)


def write(path, rows, seed):
    rng = np.random.default_rng(seed)
    lines = [f"{a},{x:.3f},{y}" for a, x, y in zip(
        rng.integers(0, 99, rows), rng.random(rows), rng.choice(["no", "yes"], rows), strict=True
    )]  # fmt: skip
    path.write_text("\n".join(["age,amount,<b>ill</b>", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Members, people left out, and two releases of the members."""
    place = tmp_path_factory.mktemp("internal")
    members = write(place / "members.csv", 300, 0)
    write(place / "holdout.csv", 300, 1)
    (place / "schema.toml").write_text(SCHEMA.to_toml())
    with create_ledger(place / "ledger.db") as ledger:
        ledger.register(
            Population(
                name="p", unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, epsilon=50.0, delta=1e-6
            )
        )
    configs = {
        "lda": LDAConfig(epsilon=1.0, delta=1e-6, synthetic_rows=100),
        "dppro": DPProConfig(n_components=2, epsilon=1.0, delta=1e-6),
    }
    for name, config in configs.items():
        workflow.release(
            members,
            config,
            schema=SCHEMA,
            ledger=place / "ledger.db",
            population="p",
            out=place / name,
            about={"title": "<script>alert(1)</script>"},
        )
    return place


def test_a_copied_table_is_found_and_says_so(folder):
    from adumbra.release.artifact import load

    release = load(folder / "lda")
    found = attack_release(release, folder / "members.csv", folder / "holdout.csv", SCHEMA)
    assert found.shadow_advantage is None
    assert abs(found.density_advantage) < 6.5 * found.standard_error
    shown = facts(found, release.card)
    assert 0 < shown["advantage_allowed"] < 1
    assert "not a guarantee" in shown["words"]
    readings = " ".join(one.reading for one in scores(shown))
    assert readings.count("no better than chance") == 2
    assert "not run" in readings
    loud = scores({**shown, "density_advantage": 0.9, "distance_ratio": 0.1})
    assert sum("look closer" in one.reading for one in loud) == 2


def test_rows_in_other_columns_are_refused(folder):
    from adumbra.release.artifact import load

    with pytest.raises(Unsupported, match="other columns"):
        attack_release(load(folder / "dppro"), folder / "members.csv", folder / "holdout.csv", SCHEMA)


def test_missing_cells_and_a_holdout_of_another_size(tmp_path):
    """A category of its own, numbers that stay missing, and `rows` that are those of the members."""
    schema = Schema(
        columns=(
            Column(name="amount", kind=Kind.NUMBER, lower=0.0, upper=1.0, missing="null"),
            Column(name="ill", kind=Kind.CATEGORY, categories=("no", "yes"), missing="category"),
        ),
        unit=Unit.ROW,
        neighbours=Neighbours.REPLACE_ONE,
        rows=80,
    )
    for name, rows in (("members", 80), ("holdout", 60)):
        lines = ["amount,ill"] + [
            f"{i / 100 if i % 3 else ''},{['no', 'yes', ''][i % 3]}" for i in range(rows)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    with create_ledger(tmp_path / "ledger.db") as ledger:
        ledger.register(Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 5.0, 1e-6))
    config = MomentsConfig(epsilon=1.0, delta=1e-6, synthetic_rows=70)
    release = workflow.release(
        tmp_path / "members.csv", config, schema=schema, ledger=tmp_path / "ledger.db", population="p",
        out=tmp_path / "out",
    )  # fmt: skip
    found = attack_release(
        release, tmp_path / "members.csv", tmp_path / "holdout.csv", schema, config=config, shadows=4
    )
    assert found.shadow_advantage is not None
    values = np.array([[0.25, 1.0], [schema.columns[0].fill, 2.0]])
    assert table_of(schema, values).to_pydict() == {"amount": [0.25, None], "ill": ["yes", None]}
