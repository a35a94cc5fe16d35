"""Codebooks: what they declare is taken, what is a statistic is not, and nothing else is read."""

import json

import pyarrow as pa
import pytest

from adumbra.data.drafting import draft_schema
from adumbra.data.suspects import FREE_TEXT, IDENTIFIER, suspect, wide_patterns
from adumbra.errors import InvalidInput
from adumbra.schema.builtin import BUILTIN
from adumbra.schema.codebook import read_codebook
from adumbra.schema.facts import schema_of
from adumbra.schema.schema import FORMAT, Schema

WANTED = {
    "age": {"kind": "integer", "lower": 0, "upper": 120},
    "dose": {"kind": "number", "lower": 0.5, "upper": 80.0},
    "ward": {"kind": "category", "categories": ["a", "b"]},
    "dead": {"kind": "boolean"},
}
CSV = """Variable,Description,Type,Lower,Upper,Values,Missing,min,mean
age,"in years, whole",integer,0,120,,,17,41.7
dose,,float,0.5,80,,,0.7,3
ward,,,,,a | b,,,
dead,,bool,0,1,,,0,0.1
"""
FIELDS = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
    {"name": "dose", "type": "number", "constraints": {"minimum": 0.5, "maximum": 80}},
    {"name": "ward", "type": "string", "constraints": {"enum": ["a", "b"]}},
    {"name": "dead", "type": "boolean"},
]
PROPERTIES = {
    "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 120},
    "dose": {"type": "number", "minimum": 0.5, "maximum": 80},
    "ward": {"type": "string", "enum": ["a", "b", None]},
    "dead": {"type": "boolean"},
}
DDI = """<?xml version="1.0"?><codeBook xmlns="ddi:codebook:2_5"><dataDscr>
<var name="age" dcml="0"><valrng><range min="0" max="120"/></valrng>
<sumStat type="min">17</sumStat><sumStat type="max">90</sumStat><varFormat type="numeric"/></var>
<var name="dose"><valrng><range min="0.5" max="80"/></valrng><varFormat type="numeric"/></var>
<var name="ward"><catgry><catValu>a</catValu><catStat type="freq">987654</catStat></catgry>
<catgry><catValu>b</catValu></catgry><catgry missing="Y"><catValu>-9</catValu></catgry>
<varFormat type="character"/></var>
<var name="dead"><varFormat type="numeric"/><sumStat type="max">1</sumStat></var>
</dataDscr></codeBook>"""
TEXTS = {
    "book.csv": CSV,
    "package.json": json.dumps({"resources": [{"schema": {"fields": FIELDS}}]}),
    "table.json": json.dumps({"fields": FIELDS}),
    "schema.json": json.dumps({"type": "object", "properties": PROPERTIES}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_format_declares_the_same(tmp_path, name):
    (tmp_path / name).write_text(TEXTS[name], encoding="utf-8-sig" if name == "book.csv" else "utf-8")
    assert read_codebook(tmp_path / name) == WANTED


def test_ddi_gives_ranges_and_categories_and_no_statistic(tmp_path):
    (tmp_path / "book.xml").write_text(DDI)
    found = read_codebook(tmp_path / "book.xml")
    assert found == {**WANTED, "dead": {"kind": "number"}}  # its sumStat would have said 1
    text = draft_schema([(name, None) for name in found], codebook=found, source="codebook book.xml")
    assert "987654" not in text
    assert "17" not in text


def test_built_in_lists(tmp_path):
    rows = "".join(f"{name.replace('-', '_')},@{name}\n" for name in BUILTIN)
    (tmp_path / "b.csv").write_text("name,values\n" + rows)
    found = read_codebook(tmp_path / "b.csv")
    assert found["ages"] == {"kind": "integer", "lower": 0, "upper": 120}
    sizes = {name: len(entry.get("categories", ())) for name, entry in found.items()}
    assert sizes == {
        "ages": 0, "countries": 249, "icd10_chapters": 22, "months": 12, "us_states": 51, "yes_no": 0
    }  # fmt: skip
    columns = [{"name": name, **entry} for name, entry in found.items()]
    facts = {"columns": columns, "unit": "row", "neighbours": "add-remove"}
    assert schema_of(facts).width == len(BUILTIN)  # legal declarations: no level is listed twice


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b.csv", "kind,lower\ninteger,3\n"),
        ("b.csv", "name,values\nx,@nowhere\n"),
        ("b.csv", ""),
        ("b.json", "{"),
        ("b.json", "[1]"),
        ("b.json", '{"fields": [{"type": "integer"}]}'),
        ("b.xml", "<var name='x'>"),
        ("b.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a><var name='x'/></a>"),
        ("b.xlsx", "name"),
    ],
)
def test_what_is_no_codebook_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=r"^codebook='b\."):
        read_codebook(tmp_path / name)
    with pytest.raises(InvalidInput, match="is not a UTF-8 file"):
        read_codebook(tmp_path / "absent.csv")


def test_bounds_that_are_none_are_left_to_declare(tmp_path):
    (tmp_path / "b.csv").write_text("name,kind,lower,upper\na,integer,low,inf\nb,date,1,2\n")
    found = read_codebook(tmp_path / "b.csv")
    assert found == {"a": {"kind": "integer"}, "b": {"kind": "date"}}
    text = draft_schema([("a", None)], codebook=found, source="codebook b.csv")
    assert text.count('"TODO"') == 3 + 2


def test_a_draft_names_the_source_and_the_card_can_hold_it():
    text = draft_schema([(name, None) for name in WANTED], codebook=WANTED, source="codebook b.csv")
    for field, value in (("unit", "row"), ("neighbours", "add-remove"), ("declared_by", "me")):
        text = text.replace(f'{field} = "TODO"', f'{field} = "{value}"')
    schema = Schema.parse(text)
    assert [column.source for column in schema.columns] == ["codebook b.csv"] * 4
    assert schema.format == FORMAT
    assert schema_of(schema.facts()) == schema == Schema.parse(schema.to_toml())
    with pytest.raises(InvalidInput, match="source: needs format"):
        Schema.parse(text.replace("schema/2", "schema/1"))


@pytest.mark.parametrize(
    ("name", "storage", "wanted"),
    [
        ("patient_id", pa.int64(), IDENTIFIER),
        ("PatientID", None, IDENTIFIER),
        ("e-mail", pa.string(), IDENTIFIER),
        ("last_name", pa.string(), IDENTIFIER),
        ("name", None, IDENTIFIER),
        ("uid", pa.uuid(), IDENTIFIER),
        ("discharge_notes", pa.string(), FREE_TEXT),
        ("notes", pa.int32(), None),  # their number
        ("has_email", pa.bool_(), None),
        ("paid", None, None),
        ("drug_name", None, None),
        ("width", None, None),
        ("age", pa.int64(), None),
    ],
)
def test_suspects_are_found_by_name_and_stored_type(name, storage, wanted):
    assert suspect(name, storage) == wanted
    text = draft_schema([(name, storage), ("other", pa.int8())])
    assert (f'name = "{name}"' not in text) == (wanted is not None)
    assert f'name = "{name}"' in draft_schema([(name, storage)], keep_all=True)


def test_an_identifier_that_a_codebook_declares_is_kept():
    book = {"site_id": {"kind": "category", "categories": ["a", "b"]}}
    assert 'name = "site_id"' in draft_schema([("site_id", None)], codebook=book)


def test_an_open_kind_lists_what_fits_and_what_each_needs():
    text = draft_schema([("x", None)])
    assert (
        "# kind: number, integer, date or datetime (keep lower and upper), category or ordinal" in text
    )
    assert '# lower = "TODO"' in text
    assert '# categories = ["TODO"]' in text


def test_a_pattern_that_takes_more_than_its_numbers_is_named():
    schema = Schema.parse(
        'format = "adumbra-schema/2"\n[table]\nunit = "row"\nneighbours = "replace-one"\n'
        '[[groups]]\nmatch = "x*"\nkind = "boolean"\n[[groups]]\nmatch = "lab_*"\nkind = "boolean"\n'
    )
    (said,) = wide_patterns(schema, ["x1", "x2", "xylose", "lab_a", "lab_b"])
    assert said.startswith("match='x*': takes numbered columns and 1 of another shape;")
    assert "xylose" not in said  # a first line that is a row must not be shown
    assert wide_patterns(schema, ["x1", "x2", "lab_a"]) == []
