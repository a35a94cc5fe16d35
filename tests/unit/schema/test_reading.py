"""Schema files: every fault at once with its line, groups, drafts, and files that come back the same."""

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from adumbra.data.drafting import draft_schema
from adumbra.errors import InvalidInput, SchemaError
from adumbra.relations import Neighbours, Unit
from adumbra.schema.fields import find_lines
from adumbra.schema.schema import ItemSpec, Kind, Pattern, Schema
from support.data import NUMBER, table

TABLE = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
"""
COLUMN = """[[columns]]
name = "a"
kind = "number"
lower = 0
upper = 1
"""


def faults(text):
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text, "f.toml")
    assert str(caught.value) == "\n".join(caught.value.faults)
    return list(caught.value.faults)


def test_all_faults_at_once_with_their_lines():
    text = """format = "adumbra-schema/3"
[table]
unit = "rows"
rows = "x"
label = "q"
colour = 1
[[groups]]
match = "px_{9..0}"
kind = "number"
lower = "TODO"
upper = 1
[[columns]]
name = "y"
kind = "category"
categories = [
  "a",
  "a",
]
missing = 3
[[columns]]
name = "z"
kind = "float"
lower = 3
[[columns]]
kind = "boolean"
missing = [1]
[[columns]]
name = "w"
kind = "integer"
lower = 3
upper = 2
"""
    found = faults(text)
    assert [int(fault.split(":")[1]) for fault in found] == [
        1,
        2,
        3,
        4,
        5,
        6,
        8,
        10,
        15,
        19,
        22,
        24,
        26,
        31,
    ]
    assert all(fault.startswith("f.toml:") for fault in found)
    for words in (
        "format='adumbra-schema/3': must be 'adumbra-schema/2' or 'adumbra-schema/1'",
        "neighbours is absent; declare replace-one, add-remove or one-element",
        "unit='rows': must be row, element or person",
        "rows='x': must be a whole number",
        "label='q': is not a column",
        "colour: is not a field of [table]; known are unit, neighbours",
        "match='px_{9..0}': must count upwards",
        "lower='TODO': declare the lowest value that is publicly possible",
        "categories: 'a' more than once",
        "missing=3: must be one of the categories",
        "kind='float': must be number, integer, date, datetime, category, ordinal or boolean",
        "name is absent; declare the column's name",
        "missing: must be a number, a text, true or false",
        "upper=2: must be above lower=3",
    ):
        assert sum(words in fault for fault in found) == 1, words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.toml:1: format is absent"),
        ("", "f.toml:1: [table] is absent"),
        ("", "f.toml:1: columns are absent"),
        ("a = \n", "f.toml:1: not valid TOML"),
        ("[table]\nx = 'a", "f.toml:2: not valid TOML"),
        ("table = 3\n", "f.toml:1: table: must be a table, [table]"),
        ("bogus = 3\n", "f.toml:1: bogus: is not a field of a schema"),
        ("columns = 3\n", "f.toml:1: columns: must be tables, [[columns]]"),
        (TABLE + COLUMN + '[[columns]]\nname = ""\nkind = "boolean"\n', "f.toml:11: name='': a column"),
        (TABLE + COLUMN + "max = 3\n", "f.toml:10: max: is not a field of [columns]"),
        (TABLE + COLUMN + COLUMN, "columns 'a': declared more than once"),
        (TABLE + COLUMN.replace("1", "true"), "f.toml:9: upper=True: must be a number"),
        (TABLE + COLUMN + "categories = [1]\n", "f.toml:10: categories: must be a list of texts"),
        (TABLE + '[[groups]]\nkind = "boolean"\n', "f.toml:5: match: a group has either match or names"),
        (TABLE + '[[groups]]\nkind = "boolean"\nnames = []\n', "f.toml:7: names: must be a list of one"),
        (TABLE + '[[groups]]\nkind = "boolean"\nmatch = 3\n', "f.toml:7: match=3: must be text"),
        (TABLE + '[[groups]]\nkind = "boolean"\nmatch = "one"\n', "f.toml:7: match='one': no pattern"),
        (TABLE + '[[groups]]\nkind = "boolean"\nmatch = "x{0..}"\n', "a range reads prefix{0..9}suffix"),
        (TABLE + '[[groups]]\nkind = "boolean"\nmatch = "x{0..99999999}"\n', "at most 100000 columns"),
        (TABLE + '[[groups]]\nkind = "boolean"\nmatch = "x{0..99999}"\n' + COLUMN, "more than 100000"),
        (TABLE + "[items]\nuniverse = 0\n", "f.toml:5: items, lower=0, upper=-1"),
        (TABLE + "[items]\n", "f.toml:5: universe is absent; declare how many items"),
        (TABLE + '[items]\nuniverse = "TODO"\n', "f.toml:6: universe='TODO': declare how many items"),
        (TABLE + "[items]\nuniverse = 5\nlower = 1\n", "f.toml:6: universe=5: declares 0 to 4; remove"),
        (TABLE + COLUMN + "[items]\nuniverse = 5\n", "f.toml:10: items: a table has either columns or"),
    ],
)
def test_each_fault_has_its_line(text, message):
    assert any(message in fault for fault in faults(text)), faults(text)


def test_wrong_words_of_a_pair_do_not_hide_other_rules():
    text = TABLE.replace("row", "rows", 1).replace("replace-one", "add-remove") + "rows = 5\n" + COLUMN
    found = faults(text)
    assert any("unit='rows'" in fault for fault in found)
    assert any("rows=5: is private under add-remove" in fault for fault in found)


def test_groups_keep_the_order_of_the_file():
    text = (
        TABLE
        + COLUMN
        + '[[groups]]\nmatch = "px_{08..11}"\nkind = "boolean"\n'
        + COLUMN.replace('"a"', '"b"')
        + '[[groups]]\nnames = ["u", "v"]\nkind = "boolean"\n'
        + '[[groups]]\nmatch = "gene_*"\nkind = "integer"\nlower = 0\nupper = 9\n'
        + COLUMN.replace('"a"', '"c"')
    )
    schema = Schema.parse(text)
    assert schema.names == ("a", "px_08", "px_09", "px_10", "px_11", "b", "u", "v", "c")
    assert schema.patterns[0].at == 8
    assert schema.expand(["gene_2", "x", "gene_1"]).names[-3:] == ("gene_2", "gene_1", "c")
    assert Schema.parse(schema.to_toml()) == schema


def test_ten_thousand_columns_need_a_few_lines():
    text = TABLE + '[[groups]]\nmatch = "gene_{0..9999}"\nkind = "number"\nlower = 0\nupper = 12.5\n'
    schema = Schema.parse(text)
    assert schema.width == 10_000
    assert len(schema.to_toml().splitlines()) < 15
    assert Schema.parse(schema.to_toml()) == schema


def test_ranges_and_single_names_are_written_apart():
    names = ("alpha", "p0", "p1", "p2", "beta", "p7", "gamma")
    schema = Schema.numeric(7, 0, 1, names=names)
    text = schema.to_toml()
    assert [line for line in text.splitlines() if line.startswith(("name", "match"))] == [
        'name = "alpha"',
        'match = "p{0..2}"',
        'names = ["beta", "p7", "gamma"]',
    ]
    assert Schema.parse(text) == schema
    long = table(*(replace(NUMBER, name=f"{letter * 30}") for letter in "abcde"))
    assert Schema.parse(long.to_toml()) == long
    assert max(map(len, long.to_toml().splitlines())) < 90


def test_the_examples_of_the_reference_are_schemas():
    reference = Path(__file__).parents[3] / "docs" / "reference" / "schema-format.md"
    found = re.findall(r"```toml\n(.*?)```", reference.read_text(), re.DOTALL)
    whole, person, bought, kinds, items, constraint, rules, derived = found
    of_persons = Schema.parse('format = "adumbra-schema/2"\n' + person + COLUMN)
    assert of_persons.person is not None
    assert of_persons.reach.rows == 8
    assert Schema.parse(whole).width == 10_003
    newest = TABLE.replace("schema/1", "schema/2")
    named = {column.name: str(column.kind) for column in Schema.parse(newest + kinds).columns}
    assert named == {"admitted": "date", "pain": "ordinal", "income": "number"}
    assert all(column.private for column in Schema.parse(newest + bought).columns)
    assert Schema.parse(TABLE + items).width == 16_470
    hired, left = COLUMN.replace('"a"', '"hired"'), COLUMN.replace('"a"', '"left"')
    assert len(Schema.parse(TABLE + hired + left + constraint).constraints) == 1
    head = TABLE.replace("schema/1", "schema/2")
    for name in ("AGEP", "PINCP", "INDP", "gross", "tax"):
        bounds = 'kind = "integer"\nlower = 0\nupper = 99999\nmissing = "null"'
        head += f'[[columns]]\nname = "{name}"\n{bounds}\n'
    head += '[[columns]]\nname = "SEX"\nkind = "category"\ncategories = ["male", "female"]\n'
    head += '[[columns]]\nname = "PREGNANT"\nkind = "boolean"\n'
    assert len(Schema.parse(head + rules).rules) == 2
    assert [one.form for one in Schema.parse(head + derived).derived] == ["map", "cut", "sum"]


def test_item_sets_round_trip():
    schema = Schema.parse(
        TABLE + '[items]\ncolumn = "basket"\nuniverse = 10\ndictionary = "names.csv"\n'
    )
    assert schema.items == ItemSpec(column="basket", upper=9, dictionary="names.csv")
    assert Schema.parse(schema.to_toml()) == schema
    assert Schema.parse(TABLE + "[items]\nlower = 1\nupper = 10\n").width == 10


def test_strings_are_escaped():
    strange = 'a"b\\c\n\x7f\x01é'
    schema = table(NUMBER, declared_by=strange)
    assert Schema.parse(schema.to_toml()) == schema


def test_files_are_read_and_refused(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes((TABLE + COLUMN).replace("\n", "\r\n").encode())
    assert Schema.read(path).names == ("a",)
    path.write_bytes(b"\xef\xbb\xbf" + (TABLE + COLUMN).encode())
    assert Schema.read(path).names == ("a",)
    path.write_bytes(b"\xff" + TABLE.encode())
    with pytest.raises(SchemaError, match="byte 0 is not UTF-8"):
        Schema.read(path)
    with pytest.raises(InvalidInput, match=r"cannot be read .*check the path"):
        Schema.read(tmp_path / "absent.toml")


def test_lines_are_found_in_spite_of_strings_and_arrays():
    text = '''a = """
[fake]
b = 1
"""
c = [ # [
  "]", 'x]',
  { d = 1 },
]
"quoted" = \'\'\' one \'\'\'
[t] # comment
e = "[["
[[u]]
f = 1
[[u]]
f = 2
'''
    lines = find_lines(text)
    assert lines == {
        ("a",): 1,
        ("c",): 5,
        ("quoted",): 9,
        ("t",): 10,
        ("t", "e"): 11,
        ("u",): 12,
        ("u", 0): 12,
        ("u", 0, "f"): 13,
        ("u", 1): 14,
        ("u", 1, "f"): 15,
    }


def test_drafts_group_names_with_leading_zeros_and_tell_of_doubled_ones():
    names = [*(f"marker_{i:03d}" for i in range(290)), "x", "x", *(f"q{i}" for i in range(9, 12))]
    text = draft_schema([(name, pa.float64()) for name in names])
    wanted = ["marker_{000..289}", "q{9..11}"]
    assert re.findall(r'match = "(.*)"', text) == wanted
    assert '# "x" names 2 columns; rename them in the data\n' in text
    assert text.count('name = "x"') == 1
    schema = Schema.numeric(len(set(names)), 0, 1, names=list(dict.fromkeys(names)))
    assert re.findall(r'match = "(.*)"', schema.to_toml()) == wanted
    assert Schema.parse(schema.to_toml()) == schema
    assert "# the first line has one field only; delimiters are commas" in draft_schema([("a;b", None)])


def test_the_same_fault_on_many_lines_is_told_once():
    text = draft_schema([(f"name {chr(97 + i)}", pa.int64()) for i in range(26)])
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text)
    assert len(caught.value.faults) < 10
    many = [fault for fault in caught.value.faults if "and the same on 25 more lines, up to " in fault]
    assert len(many) == 2
    with pytest.raises(SchemaError, match="an integer column needs bounds"):
        Schema.parse(TABLE + '[[columns]]\nname = "a"\nkind = "integer"\n')


def test_drafts_tell_names_and_types_only():
    columns = [
        ("flag", pa.bool_()),
        ("age", pa.int32()),
        ("pay", pa.decimal128(9, 2)),
        ("town", pa.dictionary(pa.int8(), pa.string())),
        ("when", pa.timestamp("s")),
        ("born", pa.date32()),
        ("spent", pa.duration("s")),
        ("what", None),
        ("void", pa.null()),
        ("basket", pa.list_(pa.int32())),
        *[(f"p{i}", pa.float32()) for i in range(50)],
    ]
    text = draft_schema(columns)
    assert 'match = "p{0..49}"' in text
    assert 'basket" of type list<item: int32> is left out; for its item sets write [items]' in text
    assert '"spent" of type duration[s] is left out; cast it' in text
    assert 'name = "when"\nkind = "datetime"\nlower = "TODO"\n' in text
    assert 'name = "born"\nkind = "date"\nlower = "TODO"\n' in text
    found = faults(text)
    assert all("TODO" in fault for fault in found)
    filled = text.replace('unit = "TODO"', 'unit = "row"').replace(
        'neighbours = "TODO"', 'neighbours = "add-remove"'
    )
    for kind, ends in (
        ("datetime", ("2020-01-01", "2021-01-01")),
        ("date", ("1900-01-01", "2020-01-01")),
    ):
        open_ends = f'kind = "{kind}"\nlower = "TODO"\nupper = "TODO"'
        filled = filled.replace(open_ends, f'kind = "{kind}"\nlower = {ends[0]}\nupper = {ends[1]}')
    filled = filled.replace('lower = "TODO"', "lower = 0").replace('upper = "TODO"', "upper = 9")
    filled = filled.replace('["TODO"]', '["x"]').replace('kind = "TODO"', 'kind = "boolean"')
    schema = Schema.parse(filled.replace('"TODO"', '"me"'))
    kinds = {column.name: column.kind for column in schema.columns if not column.name.startswith("p")}
    assert kinds == {
        "flag": Kind.BOOLEAN,
        "age": Kind.INTEGER,
        "town": Kind.CATEGORY,
        "when": Kind.DATETIME,
        "born": Kind.DATE,
        "what": Kind.BOOLEAN,
        "void": Kind.BOOLEAN,
    }
    assert "universe" in draft_schema([("items", pa.list_(pa.int64()))])


def test_patterns_between_columns_are_written_in_place():
    pattern = Pattern(match="q*", template=NUMBER, at=0)
    schema = Schema(
        columns=(NUMBER,), patterns=(pattern,), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE
    )
    again = Schema.parse(schema.to_toml())
    assert again.expand(["q1"]) == schema.expand(["q1"])
