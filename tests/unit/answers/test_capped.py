"""Answers of a release made for them, where it is hard: one value, copies, few rows, wide bounds."""

import math

import numpy as np
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.errors import InvalidInput, Unsupported
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

ROWS = 30_000
rng = np.random.default_rng(0)
X = rng.normal(size=ROWS)
TABLE = pa.table(
    {
        "x": X,
        "copy": X,
        "constant": np.full(ROWS, 3.0),
        "near": 0.99 * X + 0.14 * rng.normal(size=ROWS),
        "big": rng.normal(size=ROWS),
        "half": np.where(rng.random(ROWS) < 0.5, "a", "b"),
        "only": ["a"] * ROWS,
    }
)


def schema(neighbours=Neighbours.REPLACE_ONE):
    numbers = [Column(name=n, kind=Kind.NUMBER, lower=-10.0, upper=10.0) for n in TABLE.column_names[:4]]
    numbers.append(Column(name="big", kind=Kind.NUMBER, lower=-1e9, upper=1e9))
    groups = [Column(name=n, kind=Kind.CATEGORY, categories=("a", "b")) for n in ("half", "only")]
    return Schema(columns=(*numbers, *groups), unit=Unit.ROW, neighbours=neighbours)


def released(folder, rows=ROWS, declared=None, **options):
    declared = declared or schema()
    ledger = memory_ledger()
    ledger.register(Population("p", declared.unit, declared.neighbours, epsilon=9.0, delta=1e-5))
    config = ad.AnswersConfig(**{"epsilon": 4.0, **options})
    pay = {"schema": declared, "ledger": ledger, "population": "p", "out": folder / "r"}
    return ad.release(TABLE.slice(0, rows), config, **pay)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return released(tmp_path_factory.mktemp("capped"))


def covers(answer, truth):
    return answer.interval[0] - 1e-4 <= truth <= answer.interval[1] + 1e-4


def test_columns_in_any_order_are_read(release):
    """A card sorts the names of caps; before, such a folder was called damaged."""
    assert list(release.card["facts"]["caps"]) != release.card["facts"]["columns"][:5]
    low, high = release.card["facts"]["caps"]["x"]
    answer = release.mean("x", level=1 - 1e-9)
    assert covers(answer, X.clip(low, high).mean())


def test_a_constant_has_a_mean_and_no_spread(release):
    assert covers(release.mean("constant", level=1 - 1e-9), 3.0)
    spread = release.variance("constant")
    assert spread.is_hidden
    assert spread.interval[0] == 0.0
    assert release.correlation("x", "constant").is_hidden
    assert release.regress("x", ["constant"])["constant"].is_hidden
    flat = release.regress("constant", ["x"], level=1 - 1e-9)["x"]
    assert covers(flat, 0.0)


def test_a_copy_is_explained_by_its_source_and_two_copies_are_hidden(release):
    caps = release.card["facts"]["caps"]
    x, copy = X.clip(*caps["x"]), X.clip(*caps["copy"])
    slope = release.regress("copy", ["x"], level=1 - 1e-9)["x"]
    assert covers(slope, np.polyfit(x, copy, 1)[0])
    one = release.correlation("copy", "x", level=1 - 1e-9)
    assert covers(one, np.corrcoef(x, copy)[0, 1])
    assert one.interval[1] <= 1.0
    both = release.regress("near", ["x", "copy"])
    assert both["x"].is_hidden
    assert both["copy"].is_hidden
    with pytest.raises(InvalidInput, match="twice"):
        release.regress("x", ["x"])


def test_a_level_that_nobody_has_is_hidden(release):
    assert release.mean("x", "only=b").is_hidden
    assert next(iter(release.compare("x", by="only").values())).is_hidden
    assert release.regress("x", ["only"])["only=b"].is_hidden
    assert covers(release.share("only=b", level=1 - 1e-9), 0.0)
    assert not next(iter(release.compare("x", by="half").values())).is_hidden


def test_bounds_a_billion_wide_hide_and_do_not_lie(release):
    low, high = release.card["facts"]["caps"]["big"]
    assert high - low >= 1e7  # one cell is that wide
    assert release.variance("big").is_hidden
    assert release.regress("x", ["big"])["big"].is_hidden
    answer = release.mean("big", level=1 - 1e-9)
    assert covers(answer, 0.0)
    assert answer.std_error > 1.0


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE])
def test_few_rows_are_hidden(tmp_path, neighbours):
    release = released(tmp_path, rows=8, declared=schema(neighbours), epsilon=0.5)
    hidden = [
        release.variance("x"),
        release.correlation("x", "near"),
        *release.regress("x", ["near", "half"]).values(),
        *release.principal_components(2).values(),
    ]
    assert sum(answer.is_hidden for answer in hidden) >= len(hidden) - 1  # the constant may be told
    for answer in hidden:
        assert answer.interval[0] <= answer.interval[1]
    mean = release.mean("x", level=1 - 1e-9)
    assert mean.is_hidden or mean.interval[1] - mean.interval[0] > 1.0


def test_directions_cover_the_spectrum_of_the_capped_numbers(release):
    """Weyl's bound is of all directions at once; twice as far as 0.999 is passed below 1e-9."""
    frame = TABLE.to_pandas()
    scaled = []
    for name in frame.columns[:5]:
        low, high = release.card["facts"]["caps"][name]
        scaled.append((frame[name].clip(low, high) - (low + high) / 2) / (high - low))
    truth = np.sort(np.linalg.eigvalsh(np.cov(scaled, bias=True)))[::-1]
    found = release.principal_components(5, level=0.999)
    assert list(found) == [f"direction {place}" for place in range(1, 6)]
    for value, answer in zip(truth, found.values(), strict=True):
        half = (answer.interval[1] - answer.interval[0]) / 2
        assert answer.interval[0] - half <= value <= answer.interval[1] + half
    assert not found["direction 1"].is_hidden
    assert found["direction 5"].is_hidden
    assert math.isfinite(found["direction 5"].interval[1])
    with pytest.raises(InvalidInput, match="between 1 and the 5 numbers"):
        release.principal_components(6)
    with pytest.raises(Unsupported, match="three columns"):
        release.mean("x", "half=a and only=a")


@pytest.mark.parametrize(
    "question",
    [
        "median x where half=a",
        "quantile 0.9 of x where big>0",
        "mean x where big>0",
        "variance x where big>0",
        "share x>0 and half=a",
        "share half=a given x>0",
        "count x>0 and half=a",
    ],
)
def test_cells_of_two_columns_are_refused_with_what_would_answer(release, question):
    with pytest.raises(Unsupported, match=r"counts one column at a time; a .moments. release"):
        release.ask(question)
    with pytest.raises(InvalidInput, match="did you mean 'half'"):
        release.ask("median x where hal=a")
