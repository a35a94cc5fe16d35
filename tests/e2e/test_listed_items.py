"""Item ids that a public file lists, from the schema to the release."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours, Unit
from adumbra.schema.facts import schema_of
from adumbra.workflow import prepare_in_memory
from support.cli import in_process

IDS = (7, 40, 1_000_003, 2_000_000_011)
SETS = [[7, 40], [40], [40, 1_000_003], [40, 7, 8, 7], [], [2_000_000_012, -1, 40]] * 40


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("item,name\n40,tea\n7,milk\n\n2000000011,ink\n1000003,rope\n")
    return path


def schema_with(path, relation=Neighbours.REPLACE_ONE):
    return ad.Schema(unit=Unit.ROW, neighbours=relation, items=ad.ItemSpec.of_file(str(path)))


def test_items_are_their_places_in_the_list_and_others_are_dropped(listed):
    schema = schema_with(listed)
    assert schema.width == 4
    table = pa.table({"items": pa.array(SETS, pa.list_(pa.int64()))})
    (batch,) = open_source(table, schema).batches(len(SETS))
    assert batch.width == 4
    sets = [batch.indices[a:b].tolist() for a, b in zip(batch.indptr, batch.indptr[1:], strict=False)]
    assert sets[:6] == [[0, 1], [1], [1, 2], [0, 1], [], [1]]


def test_every_reader_gives_the_same_sets(listed, tmp_path):
    schema, table = schema_with(listed), pa.table({"items": pa.array(SETS, pa.list_(pa.int64()))})
    (tmp_path / "rows.dat").write_text("\n".join(" ".join(map(str, row)) for row in SETS) + "\n")
    pq.write_table(table, tmp_path / "rows.parquet")
    dense = np.array([[int(one in row) for one in IDS] for row in SETS])
    found = []
    for data in (table, tmp_path / "rows.dat", tmp_path / "rows.parquet", csr_array(dense)):
        (batch,) = open_source(data, schema).batches(len(SETS))
        found.append((batch.indptr.tolist(), batch.indices.tolist()))
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("algorithm", ["frefirst", "em", "tps-refine"])
def test_released_items_are_the_listed_ids(listed, algorithm):
    table = pa.table({"items": pa.array(SETS, pa.list_(pa.int64()))})
    config = ad.TopKConfig(k=2, epsilon=50.0, delta=0.0, algorithm=algorithm)
    draft = prepare_in_memory(open_source(table, schema_with(listed)), config).draw()
    assert draft.table()["item"].to_pylist() == [40, 7]


def test_a_schema_file_names_the_list_and_a_card_its_digest(listed, tmp_path):
    text = 'format = "adumbra-schema/2"\n[table]\nunit = "row"\nneighbours = "add-remove"\n[items]\n'
    (tmp_path / "s.toml").write_text(f"{text}ids = {json.dumps(str(listed))}\n")
    schema = ad.Schema.read(tmp_path / "s.toml")
    assert (schema.width, schema.items.lower, schema.items.upper) == (4, IDS[0], IDS[-1])
    assert ad.Schema.parse(schema.to_toml()) == schema
    assert schema_of(schema.facts()) == schema
    flags = ["--epsilon", "1", "--delta", "0", "--method", "top-k", "-o", "k=2"]
    done = in_process("plan", "--schema", tmp_path / "s.toml", *flags)
    assert done.returncode == 0, done.stderr
    listed.write_text("40\n7\n")
    with pytest.raises(InvalidInput, match="holds other ids than when the schema was read"):
        schema_of(schema.facts() | {"declared_by": "x"}).items.numbers()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "lists no item"),
        ("7\nmilk\n", "line 2: must start with a whole number"),
        ("7\n7\n", "line 2: 7 is listed twice"),
        ("2147483648\n", "line 1: must start with a whole number below"),
        ("-1\n", "line 1: must start with a whole number"),
    ],
)
def test_faults_of_a_list(tmp_path, text, fault):
    (tmp_path / "ids.txt").write_text(text)
    with pytest.raises(InvalidInput, match=fault):
        ad.ItemSpec.of_file(str(tmp_path / "ids.txt"))


def test_what_cannot_be_listed_is_refused(listed, tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        ad.ItemSpec.of_file(str(tmp_path / "none"))
    with pytest.raises(InvalidInput, match="moments takes items of a range"):
        ad.plan(ad.MomentsConfig(epsilon=1.0), schema_with(listed))
    with pytest.raises(InvalidInput, match="use ItemSpec.of_file"):
        ad.ItemSpec(upper=9, ids="x", listed=0)
    with pytest.raises(InvalidInput, match="use ItemSpec.of_file"):
        ad.ItemSpec(upper=9, listed=3)
    head = 'format = "adumbra-schema/2"\n[table]\nunit = "row"\nneighbours = "add-remove"\n'
    with pytest.raises(InvalidInput, match="the file of ids says what is possible"):
        ad.Schema.parse(f"{head}[items]\nids = {json.dumps(str(listed))}\nupper = 9\n")
