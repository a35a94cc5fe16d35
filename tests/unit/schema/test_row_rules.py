"""Rules and derived columns in schema files: what is read, what is refused, what a digest holds."""

import pytest

from adumbra.errors import InvalidInput, SchemaError, Unsupported
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.pca import PCAConfig
from adumbra.mechanisms.projection import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.schema.facts import schema_of
from adumbra.schema.schema import FIRST_FORMAT, FORMAT, Schema
from adumbra.workflow import plan

TEXT = """format = "adumbra-schema/2"

[table]
unit = "row"
neighbours = "replace-one"
label = "y"
rows = 500

[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 99

[[columns]]
name = "income"
kind = "number"
lower = -10.5
upper = 1000.0
missing = "null"

[[columns]]
name = "job"
kind = "category"
categories = ["none", "nurse", "cook"]
missing = "category"

[[columns]]
name = "y"
kind = "boolean"

"""
RULES = """
[[rules]]
when = { age = "<15" }
then = { income = "missing", job = ["none", "missing"] }

[[rules]]
never = { job = "none", y = true }

[[derived]]
name = "group"
map = "job"
[derived.values]
care = "nurse"
other = { not = ["nurse", "missing"] }

[[derived]]
name = "band"
cut = "income"
at = [0, 10.5, 100]

[[derived]]
name = "total"
sum = ["age", "income"]
times = [1, -0.5]
"""


def test_a_schema_reads_and_writes_its_rules():
    schema = Schema.parse(TEXT + RULES)
    assert Schema.parse(schema.to_toml()) == schema
    assert schema_of(schema.facts()) == schema
    assert schema.format == FORMAT == schema.facts()["format"]
    assert schema.facts()["rules"][0] == {
        "when": {"age": "<15"},
        "then": {"income": "missing", "job": ["none", "missing"]},
    }
    assert len({schema.digest(), Schema.parse(TEXT).digest()}) == 2


def test_the_second_format_alone_changes_no_digest():
    old = Schema.parse(TEXT.replace("schema/2", "schema/1"))
    assert old == Schema.parse(TEXT)
    assert old.format == FIRST_FORMAT
    # The digest of this schema before there was a second format.
    assert old.digest() == "815dcd49438411f4d09926e1acbcc0cf5316b31de16fac6c754c8a76d6764a52"


def test_rules_need_the_second_format():
    with pytest.raises(
        SchemaError, match=r"rules: needs format='adumbra-schema/2'; run `adumbra schema"
    ):
        Schema.parse(TEXT.replace("schema/2", "schema/1") + RULES)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ('rules]]\nwhen = {age = "<15"}', "either when and then, or never"),
        ('rules]]\nwhen = {age = "<15"}\nthen = {age = ">3"}', "no column in both"),
        ("rules]]\nwhen = {old = 1}\nthen = {age = 3}", "is not a declared column"),
        ('rules]]\nwhen = {age = "open(1)"}\nthen = {job = "cook"}', "is not a condition on numbers"),
        ('rules]]\nwhen = {age = ">99"}\nthen = {job = "cook"}', "no declared value meets"),
        ('rules]]\nwhen = {age = 3}\nthen = {job = "judge"}', "is none of its categories"),
        ("rules]]\nwhen = {age = 3}\nthen = {y = true}", "the label is drawn first"),
        ("rules]]\nnever = {y = true}", "the label is drawn first"),
        ('rules]]\nwhen = {age = "missing"}\nthen = {job = "cook"}', "can never be missing"),
        ('rules]]\nwhen = {y = "true"}\nthen = {job = "cook"}', "a boolean is true or false"),
        ('rules]]\nwhen = {age = true}\nthen = {job = "cook"}', "is not a condition on numbers"),
        ('rules]]\nwhen = {age = "9..3"}\nthen = {job = "cook"}', "from the smaller to the larger"),
        ('rules]]\nwhen = {age = []}\nthen = {job = "cook"}', "at least one value"),
        ('rules]]\nwhen = {age = {no = 3}}\nthen = {job = "cook"}', "a condition is a value"),
        ('rules]]\nwhen = {age = inf}\nthen = {job = "cook"}', "finite"),
        ("rules]]\nif = {age = 1}", "a rule has when and then"),
        ('derived]]\nname = "d"', "one of map, cut and sum"),
        ('derived]]\ncut = "age"\nat = [1]', "name: a derived column needs one"),
        ('derived]]\nname = "age"\ncut = "age"\nat = [1]', "is declared as a column too"),
        ('derived]]\nname = "d"\ncut = "job"\nat = [1]', "takes numbers, integers and dates alone"),
        ('derived]]\nname = "d"\ncut = "age"\nat = [3, 2]', "each above the one before"),
        ('derived]]\nname = "d"\ncut = "age"\nat = [3]\nlabels = ["a"]', "name each"),
        ('derived]]\nname = "d"\ncut = "age"\nat = [3]\ncode = "x"', "is not a field of a cut"),
        ('derived]]\nname = "d"\nsum = "age"', "names columns, in a list"),
        ('derived]]\nname = "d"\nsum = ["age", "old"]', "is not a declared column"),
        ('derived]]\nname = "d"\nsum = ["age"]\ntimes = [1, 2]', "one factor for each"),
        ('derived]]\nname = "d"\nsum = ["age"]\ntimes = [1e300]', "may leave the whole numbers"),
        ('derived]]\nname = "d"\nmap = "age"', "a map needs a table of values"),
        ('derived]]\nname = "d"\nmap = "age"\nvalues = {a = "<5", b = 4}', "both take a value"),
        ('derived]]\nname = "d"\nmap = "age"\nkind = "integer"\nvalues = {a = 4}', "whole numbers"),
        ('derived]]\nname = "d"\nmap = "age"\nkind = "number"\nvalues = {a = 4}', "kind='number'"),
        ('derived]]\nname = "d"\nmap = "age"\nvalues = 3', "values: must be a table"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_or_computed_is_refused_with_its_line(section, words):
    with pytest.raises(SchemaError) as caught:
        Schema.parse(TEXT + "[[" + section + "\n", "f.toml")
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"f.toml:{TEXT.count(chr(10)) + 1}:")


def test_rules_that_no_row_keeps_are_refused():
    nothing = """
    [[rules]]
    when = { age = "<50" }
    then = { job = "cook" }
    [[rules]]
    when = { age = ">=50" }
    then = { job = "cook" }
    [[rules]]
    never = { job = "cook" }
    """
    with pytest.raises(SchemaError, match="no row keeps them all"):
        Schema.parse(TEXT + nothing)
    rules = nothing.replace('">=50"', '"50..98"')
    with pytest.raises(SchemaError, match="no row keeps them all"):
        Schema.parse(TEXT + rules + '[[rules]]\nwhen = {age = 99}\nthen = {job = "cook"}')
    assert Schema.parse(TEXT + rules).ruled_row()["age"] == 99


def test_a_rule_against_a_constraint_is_refused():
    text = TEXT + '[[constraints]]\nlower = "age"\nupper = "income"\n'
    impossible = (
        '[[rules]]\nnever = { income = [">50", "missing"] }\n[[rules]]\nnever = { age = "<51" }\n'
    )
    with pytest.raises(SchemaError, match="no row keeps them all"):
        Schema.parse(text + impossible)
    assert Schema.parse(text + impossible.replace("<51", "<50")).ruled_row() == {
        "income": 50.0,
        "age": 50.0,
    }


@pytest.mark.parametrize(
    "config",
    [
        LDAConfig(epsilon=1.0),
        PCAConfig(epsilon=1.0, n_components=1),
        DPProConfig(epsilon=1.0, n_components=2),
        JLLaplaceConfig(epsilon=1.0, n_components=2),
        RONGaussConfig(epsilon=1.0),
    ],
)
@pytest.mark.parametrize("part", ["rules", "derived"])
def test_methods_that_cannot_keep_a_rule_refuse_the_schema(config, part):
    text = TEXT.replace('missing = "null"\n', "")
    rules, derived = (
        '[[rules]]\nnever = { age = 3, job = "cook" }',
        '[[derived]]\nname = "d"\nsum = ["age"]',
    )
    with pytest.raises(Unsupported, match=f"{part}: .* cannot keep them; remove them"):
        plan(config, Schema.parse(text + (rules if part == "rules" else derived)))


def test_the_plan_of_moments_names_rules_and_what_is_computed():
    bare, ruled = (plan(MomentsConfig(epsilon=1.0), Schema.parse(TEXT + more)) for more in ("", RULES))
    assert ruled.noise == bare.noise  # neither measured nor paid for
    assert "Every synthetic row keeps 2 rules; rows that would break one are changed" in ruled.notes[-2]
    assert "neither measured nor paid for: group, band, total." in ruled.notes[-1]


def test_item_sets_have_no_rules():
    schema = Schema.parse(TEXT)
    with pytest.raises(InvalidInput, match="item sets have no columns"):
        Schema(
            unit=schema.unit,
            neighbours=schema.neighbours,
            items={"upper": 3},  # any; it is not looked at
            rules=Schema.parse(TEXT + RULES).rules,
        )


def test_a_pattern_leaves_the_names_of_derived_columns_out():
    text = TEXT + '[[groups]]\nmatch = "x*"\nkind = "boolean"\n'
    text += '[[derived]]\nname = "x9"\nsum = ["age"]\n'
    assert Schema.parse(text).expand(["age", "x1", "x9"]).names[-1] == "x1"
