"""The first line of a CSV file is a row until the schema says that it holds public names."""

import pytest

from adumbra.data.csv_header import look_like_values
from adumbra.data.opening import compare, describe, fields_by, open_source
from adumbra.errors import InvalidInput, SchemaError
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Pattern, Schema

NUMBER = Column(name="a", kind=Kind.NUMBER, lower=0, upper=10)
OTHER = Column(name="b", kind=Kind.INTEGER, lower=0, upper=10)
ROW = b"7,SECRET\n1,2\n3,4\n"
TEXT = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
{}
[[groups]]
match = "{}"
kind = "number"
lower = 0
upper = 1
"""


def table(*columns, **more):
    given = {"unit": Unit.ROW, "neighbours": Neighbours.REPLACE_ONE} | more
    return Schema(columns=columns, **given)


def pattern(**more):
    return table(patterns=(Pattern(match="*", template=NUMBER, at=0),), **more)


def write(folder, data, name="t.csv"):
    (folder / name).write_bytes(data)
    return folder / name


def values(path, schema):
    return [row for batch in open_source(path, schema).batches(2) for row in batch.values.tolist()]


def test_a_pattern_needs_a_declared_header(tmp_path):
    path = write(tmp_path, ROW)
    message = r"first line of a CSV file, which may be a row; declare header = true in \[table\]"
    with pytest.raises(InvalidInput, match=message) as caught:
        open_source(path, pattern())
    schema, faults = compare(path, pattern())
    assert schema == pattern()
    assert len(faults) == 1
    assert "SECRET" not in str(caught.value) + faults[0]
    with pytest.raises(InvalidInput, match="may be a row"):
        fields_by(path, pattern())


def test_a_declared_header_fills_patterns_in(tmp_path):
    path = write(tmp_path, b"u,v\n1,2\n")
    source = open_source(path, pattern(header=True))
    assert source.schema.names == ("u", "v")
    assert source.schema.header is True
    assert compare(path, pattern(header=True)) == (source.schema, [])
    assert values(path, pattern(header=True)) == [[1, 2]]


def test_describe_wants_the_declaration(tmp_path):
    path = write(tmp_path, ROW)
    with pytest.raises(
        InvalidInput, match="may be a row, and a row is never shown; give --header"
    ) as no:
        describe(path)
    assert "SECRET" not in str(no.value)
    assert describe(path, header=True)[0][1] == [("7", None), ("SECRET", None)]


def test_what_is_absent_is_said_by_declared_names_only(tmp_path):
    for data in (ROW, b"7;SECRET\n", b"SECRET\n", b"a,SECRET,SECRET\n"):
        with pytest.raises(InvalidInput, match="absent") as caught:
            open_source(write(tmp_path, data), table(NUMBER, OTHER))
        faults = compare(tmp_path / "t.csv", table(NUMBER, OTHER))[1]
        assert "SECRET" not in str(caught.value) + "".join(faults)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_without_a_header_every_line_is_a_row_in_schema_order(tmp_path, mark, end):
    path = write(tmp_path, mark + b"1,2\n\n3,4\n5\n".replace(b"\n", end))
    schema = table(NUMBER, OTHER, header=False, rows=3)
    assert open_source(path, schema).public_rows() == 3
    assert values(path, schema) == [[1, 2], [3, 4], [5, 5]]
    assert compare(path, schema) == (schema, [])
    assert [one.values.tolist() for one in open_source(path, schema).batches(2, start=2)] == [[[5, 5]]]


def test_without_a_header_a_blank_line_of_one_column_is_a_row(tmp_path):
    path = write(tmp_path, b"\n\n1\n")
    assert values(path, table(NUMBER, header=False)) == [[5], [5], [1]]
    assert values(write(tmp_path, b""), table(NUMBER, header=False)) == []


def test_without_a_header_every_file_begins_with_a_row(tmp_path):
    write(tmp_path, b"1\t2\n", "1.tsv")
    write(tmp_path, b"3\t4\n", "2.tsv")
    assert values(tmp_path, table(NUMBER, OTHER, header=False)) == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "first", [b"PK\x03\x04", b"\x1f\x8b", b"\xff\xfe", b"\0", b'"', b"x\r", b"a,b,c"]
)
def test_without_a_header_no_first_row_is_refused(tmp_path, first):
    source = open_source(write(tmp_path, first + b",2\n" + b"1,2\n"), table(NUMBER, OTHER, header=False))
    assert sum(len(batch) for batch in source.batches(2)) == source.public_rows()


def test_a_pattern_without_a_header_is_a_fault():
    with pytest.raises(InvalidInput, match="header=false: a file without a line of names has none"):
        pattern(header=False)
    with pytest.raises(SchemaError, match="f.toml:5: header=false: a file without"):
        Schema.parse(TEXT.format("header = false", "x*"), "f.toml")
    with pytest.raises(SchemaError, match="f.toml:5: header='no': must be true or false"):
        Schema.parse(TEXT.format('header = "no"', "x*"), "f.toml")
    with pytest.raises(SchemaError, match="f.toml:5: header=1: must be true or false"):
        Schema.parse(TEXT.format("header = 1", "x*"), "f.toml")
    with pytest.raises(InvalidInput, match="header='false': must be true or false"):
        pattern(header="false")


@pytest.mark.parametrize("header", [True, False])
def test_the_declaration_is_kept_in_file_and_digest(header):
    schema = Schema.parse(TEXT.format(f"header = {header}".lower(), "x{0..2}"))
    plain = Schema.parse(TEXT.format("", "x{0..2}"))
    assert schema.header is header
    assert Schema.parse(schema.to_toml()) == schema
    assert (schema.facts()["header"], schema.digest() == plain.digest()) == (header, False)
    assert "header" not in plain.facts()
    # As computed before the key existed: files without it keep their digest.
    assert plain.digest() == "e68a7aedefbc6c3e988722b687ffc64aa548c277955329b2333b3500023284fd"


@pytest.mark.parametrize(
    ("names", "looks"),
    [
        (["age", "1990"], True),
        (["-1.5e-3"], True),
        (["2024-01-31"], True),
        (["x1", "age (20-30)", "", "µ3", "1st"], False),
        ([], False),
    ],
)
def test_numbers_and_dates_look_like_values(names, looks):
    assert look_like_values(names) is looks
