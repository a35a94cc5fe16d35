"""Releases that hide a whole person: every summing method, one account, nothing that shows a count."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra
from adumbra.errors import Unsupported
from adumbra.mechanisms.answers import AnswersConfig
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.pca import PCAConfig
from adumbra.mechanisms.projection import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.mechanisms.topk import TopKConfig
from adumbra.privacy.ledger import Population, create_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from adumbra.schema.table import PersonSpec

SECRET_IDS = [f"Zebedee-{number}" for number in range(40)]


def schema_of(relation=Neighbours.REPLACE_PERSON, most=2):
    return Schema(
        columns=(
            Column(name="price", kind=Kind.NUMBER, lower=0.0, upper=10.0),
            Column(name="units", kind=Kind.INTEGER, lower=0, upper=20),
            Column(name="night", kind=Kind.BOOLEAN),
        ),
        label="night",
        unit=Unit.PERSON,
        neighbours=relation,
        person=PersonSpec(column="customer", max_rows=most),
    )


def set_schema():
    spec = PersonSpec(column="customer", max_rows=2)
    return replace(schema_of(), columns=(), label=None, items=ItemSpec(upper=9), person=spec)


def lines(rows=211, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({
        "customer": rng.choice(SECRET_IDS, rows), "price": rng.uniform(0, 10, rows),
        "units": rng.integers(0, 21, rows), "night": rng.random(rows) < 0.5,
    })  # fmt: skip


def baskets(rows=113):
    rng = np.random.default_rng(1)
    items = [np.flatnonzero(rng.random(10) < 0.3).tolist() for _ in range(rows)]
    return pa.table(
        {"items": pa.array(items, pa.list_(pa.int64())), "customer": rng.choice(SECRET_IDS, rows)}
    )


@pytest.fixture
def book(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as ledger:
        ledger.register(Population("shop", Unit.PERSON, Neighbours.REPLACE_PERSON, 20.0, 1e-5))
        yield ledger


CONFIGS = {
    "answers": AnswersConfig(epsilon=1.0),
    "moments": MomentsConfig(epsilon=1.0, synthetic_rows=20),
    "ron-gauss": RONGaussConfig(epsilon=1.0, n_components=2, expected_rows=100),
    "lda": LDAConfig(epsilon=1.0, delta=0.0),
    "pca": PCAConfig(n_components=1, epsilon=1.0, output="sample"),
    "top-k": TopKConfig(k=3, epsilon=1.0, delta=0.0),
}


@pytest.mark.parametrize("method", CONFIGS)
def test_every_summing_method_releases(method, book, tmp_path):
    data, schema = (baskets(), set_schema()) if method == "top-k" else (lines(), schema_of())
    out = tmp_path / "out"
    release = adumbra.release(
        data, CONFIGS[method], schema=schema, ledger=book, population="shop", out=out
    )
    assert "One whole person is protected" in release.card["unit"]["sentence"]
    assert release.card["public_inputs"]["schema"]["max_rows_per_person"] == 2
    assert "rows" not in release.card["public_inputs"]["schema"]
    assert not any("number of rows" in text for text in release.card["public_inputs"]["unprotected"])
    adumbra.verify(out)  # raises where the card does not say what its guarantee does
    for file in out.rglob("*"):
        if file.is_file():
            assert b"Zebedee" not in file.read_bytes()
    row = (
        schema.by_row()
        if method == "top-k"
        else replace(schema.by_row(), neighbours=Neighbours.REPLACE_ONE)
    )
    scales = [
        [noise.scale for noise in adumbra.plan(CONFIGS[method], declared).noise]
        for declared in (schema, row)
    ]
    assert all(person >= 1.9 * single for person, single in zip(*scales, strict=False))


@pytest.mark.parametrize("method", CONFIGS)
def test_all_rows_at_a_part_of_their_weight(method, book, tmp_path):
    """Every summing method releases them at the noise of `keep`; top-k refuses, before the charge."""
    plain = set_schema() if method == "top-k" else schema_of()
    schema = replace(plain, person=replace(plain.person, bound="scale"))
    assert Schema.parse(schema.to_toml()) == schema
    config, data = CONFIGS[method], baskets() if method == "top-k" else lines()
    place = {"ledger": book, "population": "shop", "out": tmp_path / "out"}
    if method == "top-k":
        with pytest.raises(Unsupported, match="bound=scale: top-k has no proof for it"):
            adumbra.release(data, config, schema=schema, **place)
        assert not book.show("shop")[0].entries
        return
    release = adumbra.release(data, config, schema=schema, **place)
    adumbra.verify(tmp_path / "out")
    assert release.card["public_inputs"]["schema"]["bound"] == "scale"
    planned = adumbra.plan(config, schema)
    scales = [[noise.scale for noise in adumbra.plan(config, one).noise] for one in (schema, plain)]
    assert scales[0] == pytest.approx(scales[1], rel=0.05)
    assert "weigh at most 2 together" in " ".join(planned.notes)
    assert "at most 128 are used" in " ".join(planned.notes)


def test_weighted_counts_are_those_of_the_rows(book, tmp_path):
    """At a vast epsilon the released histogram is the sum of weights: 2 for whoever has more rows."""
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 9, 60)
    ids = np.repeat([f"p{number}" for number in range(60)], counts)
    nights = rng.random(len(ids)) < 0.3
    table = pa.table({
        "customer": ids, "price": rng.uniform(0, 10, len(ids)), "units": [3] * len(ids), "night": nights,
    })  # fmt: skip
    schema = schema_of(Neighbours.ADD_REMOVE_PERSON)
    schema = replace(schema, person=replace(schema.person, bound="scale"))
    with create_ledger(tmp_path / "other.db") as ledger:
        ledger.register(Population("all", Unit.PERSON, schema.neighbours, 1000.0, 1e-5))
        release = adumbra.release(
            table, MomentsConfig(epsilon=900.0, synthetic_rows=20), schema=schema, ledger=ledger,
            population="all", out=tmp_path / "out",
        )  # fmt: skip
    shown = release.arrays["marginals"][-2:]  # the label's histogram
    total = np.minimum(counts, 2).sum()
    assert shown.sum() == pytest.approx(total, abs=2)
    shares = [min(2 / count, 1.0) for count in counts]
    expected = sum(share * night for share, night in zip(np.repeat(shares, counts), nights, strict=True))
    # Two levels per person: a row's weight is within a factor of two of its share.
    assert expected / 2 < shown[1] < 2 * expected
    assert shown[1] == pytest.approx(expected, abs=0.15 * total)


@pytest.mark.parametrize(
    "config",
    [
        DPProConfig(n_components=1, epsilon=1.0),
        JLLaplaceConfig(n_components=1, epsilon=1.0),
        PCAConfig(n_components=1, epsilon=1.0),
    ],
)
def test_row_by_row_methods_are_refused_before_the_charge(config, book, tmp_path):
    with pytest.raises(Unsupported, match="shows"):
        adumbra.release(
            lines(), config, schema=schema_of(), ledger=book, population="shop", out=tmp_path / "o"
        )
    assert not book.show("shop")[0].entries


def test_releases_with_different_bounds_add_up_and_rows_are_refused(book, tmp_path):
    config = CONFIGS["lda"]
    for number, most in enumerate((1, 4)):
        schema = schema_of(most=most)
        adumbra.release(
            lines(), config, schema=schema, ledger=book, population="shop", out=tmp_path / f"{number}"
        )
    entries = len(book.show("shop")[0].entries)
    assert entries == 2
    with pytest.raises(Unsupported, match="a person may have any number of rows"):
        adumbra.release(
            lines(),
            config,
            schema=replace(schema_of().by_row(), neighbours=Neighbours.REPLACE_ONE),
            ledger=book,
            population="shop",
            out=tmp_path / "rows",
        )
    book.register(Population("visits", Unit.ROW, Neighbours.REPLACE_ONE, 9.0, 1e-6))
    with pytest.raises(Unsupported, match="a person may have any number of rows"):
        adumbra.release(
            lines(), config, schema=schema_of(), ledger=book, population="visits", out=tmp_path / "v"
        )
    assert not book.show("visits")[0].entries
    child = Population("night", Unit.ROW, Neighbours.REPLACE_ONE, 1.0, 1e-6, parent="shop")
    with pytest.raises(Unsupported, match="a person may have any number of rows"):
        book.register(child)
    assert len(book.show("shop")[0].entries) == entries


def test_nothing_shows_how_many_rows_there_are(book, tmp_path):
    """Three times the rows of the same persons, beyond the bound: the same words and files."""
    table = lines()
    many = pa.concat_tables([table, table, table])
    sizes, cards = [], []
    for number, data in enumerate((table, many)):
        pq.write_table(data, tmp_path / f"{number}.parquet")
        seen = []
        engine = adumbra.LocalEngine(progress=lambda *shown, seen=seen: seen.append(shown))
        out = tmp_path / f"out{number}"
        config = MomentsConfig(epsilon=1.0, synthetic_rows=20)
        adumbra.release(
            tmp_path / f"{number}.parquet", config, schema=schema_of(), ledger=book, population="shop",
            out=out, engine=engine,
        )  # fmt: skip
        assert {shown[1:] for shown in seen} == {(0, None)}
        card = json.loads((out / "card.json").read_text())
        cards.append({key: card[key] for key in ("public_inputs", "mechanisms", "accuracy", "notes")})
        sizes.append(sorted(path.name for path in out.rglob("*")))
    assert cards[0] == cards[1]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("method", CONFIGS)
def test_the_plan_says_what_the_bound_costs(method):
    schema = set_schema() if method == "top-k" else schema_of()
    notes = " ".join(adumbra.plan(CONFIGS[method], schema).notes)
    assert "At most 2 rows of each person are used" in notes
    assert "1 rows 0.5 times, 4 rows 2 times this noise" in notes
    assert "Rows without an id are dropped" in notes
    curve = adumbra.plan(CONFIGS[method], schema).details["noise_by_rows_per_person"]
    assert [point["max_rows_per_person"] for point in curve] == [1, 2, 4, 8, 16, 32, 64]
    for point in curve:
        person = replace(schema.person, max_rows=point["max_rows_per_person"])
        noise = adumbra.plan(CONFIGS[method], replace(schema, person=person)).noise
        assert point["noise"] == {one.purpose: one.scale for one in noise}
    kept = replace(schema.person, no_person="one-person")
    notes = " ".join(adumbra.plan(CONFIGS[method], replace(schema, person=kept)).notes)
    assert "Rows without an id are those of one person" in notes
    if method != "top-k":  # which says itself what is too little
        many = replace(schema, person=replace(schema.person, max_rows=2**20))
        least = replace(CONFIGS[method], epsilon=1e-9)
        assert adumbra.plan(least, many).method == method  # whatever one row's part of epsilon is
    rows = replace(schema.by_row(), neighbours=Neighbours.REPLACE_ONE)
    assert "person" not in " ".join(adumbra.plan(CONFIGS[method], rows).notes)
