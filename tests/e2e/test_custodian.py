"""The custodian of a hospital's CSV file of 100 columns: how many lines must be written by hand?"""

import difflib
import re

from typer.testing import CliRunner

from adumbra.cli.schema_commands import app
from adumbra.schema.schema import Schema

RUN = CliRunner()
MOST_LINES = 40
LABS = "sodium potassium chloride urea creatinine glucose calcium albumin bilirubin lactate"
DRUGS = "aspirin heparin insulin morphine warfarin statin steroid antibiotic diuretic opioid"
DIAGNOSES = "diabetes asthma stroke cancer sepsis copd angina anaemia gout epilepsy"


def dictionary():
    """The hospital's data dictionary: 92 of its 100 columns, with what it says of each."""
    book = {f"{lab}_{when}": ("number", "0", str(50 + 10 * i), "") for i, lab in enumerate(LABS.split())
            for when in ("admission", "peak", "discharge")}  # fmt: skip
    book |= {f"drug_{name}": ("boolean", "", "", "") for name in DRUGS.split()}
    book |= {f"has_{name}": ("boolean", "", "", "") for name in DIAGNOSES.split()}
    book |= {f"vital_{i}": ("integer", "0", "300", "") for i in range(1, 21)}
    book |= {f"score_{i}": ("integer", "0", "10", "") for i in range(1, 16)}
    book |= {"age": ("", "", "", "@ages"), "country": ("", "", "", "@countries")}
    book |= {"month": ("", "", "", "@months"), "chapter": ("", "", "", "@icd10-chapters")}
    book |= {"sex": ("", "", "", "f | m"), "ward": ("", "", "", " | ".join("ABCDEFGH"))}
    return book | {"triage": ("", "", "", "red | amber | green")}


OTHERS = {  # what the dictionary lacks, and what the custodian knows of it
    "stay_days": 'kind = "integer"\nlower = 0\nupper = 365',
    "cost": 'kind = "number"\nlower = 0\nupper = 1000000',
    "readmitted": 'kind = "boolean"',
}
SUSPECTS = ("patient_id", "last_name", "phone", "admission_notes", "email")
KNOWN = 'unit = "row"\nneighbours = "add-remove"\ndeclared_by = "data dictionary 2026, M. Keller"'


def by_hand(draft, wanted):
    """The lines that a person writes or replaces to turn the draft into the wanted file."""
    changed = difflib.ndiff(draft.splitlines(), wanted.splitlines())
    return sum(1 for line in changed if line.startswith("+ ") and line[2:].strip())


def filled(draft):
    """The draft with what the custodian knows; lines that answer a TODO are replaced or added."""
    text = re.sub(r'unit = "TODO"\nneighbours = "TODO"\ndeclared_by = "TODO"', KNOWN, draft)
    for name, fields in OTHERS.items():
        column = re.compile(rf'(name = "{name}"\n)kind = "TODO"\n(# .*\n)*')
        text, count = column.subn(rf"\g<1>{fields}\n", text)
        assert count == 1
    return text


def invoke(*arguments):
    return RUN.invoke(app, [str(argument) for argument in arguments])


def test_a_hundred_columns_take_forty_lines_with_a_codebook(tmp_path, record_property):
    book = dictionary()
    names = [*SUSPECTS, *book, *OTHERS]
    assert len(names) == 100
    data, codebook = tmp_path / "visits.csv", tmp_path / "dictionary.csv"
    data.write_text(",".join(names) + "\n" + ",".join("CANARY" for _ in names) + "\n")
    lines = [f"{name},{','.join(cells)}" for name, cells in book.items()]
    codebook.write_text("name,kind,lower,upper,values\n" + "\n".join(lines) + "\n")

    draft = tmp_path / "draft.toml"
    said = invoke("draft", data, "--header", "--codebook", codebook, "--out", draft)
    assert said.exit_code == 0, said.output
    assert "6 values left to declare" in said.output
    checked = invoke("check", draft, data)
    assert checked.exit_code != 0
    assert "6 values left to declare: replace every TODO" in checked.output
    done = tmp_path / "done.toml"
    done.write_text(filled(draft.read_text()))
    assert "CANARY" not in draft.read_text()
    result = invoke("check", done, data)
    assert result.exit_code == 0, result.exception
    assert "95 columns" in result.output
    with_book = by_hand(draft.read_text(), done.read_text())

    bare = tmp_path / "bare.toml"
    assert invoke("draft", data, "--header", "--keep-all", "--out", bare).exit_code == 0
    plain = Schema.read(done)
    single = by_hand(bare.read_text(), "".join(_columns(plain)))
    figure = f"lines by hand: {with_book}; without a codebook {single}"
    record_property("figure", figure)
    assert with_book <= MOST_LINES
    assert with_book * 5 < single

    assert {column.source for column in plain.columns} == {"", "codebook dictionary.csv"}
    assert not set(SUSPECTS) & set(plain.names)


def _columns(schema):
    """The file as somebody writes it who fills in a draft column by column."""
    yield 'format = "adumbra-schema/2"\n\n[table]\n' + KNOWN + "\nheader = true\n"
    for column in schema.columns:
        yield f'\n[[columns]]\nname = "{column.name}"\nkind = "{column.kind}"\n'
        if column.is_numeric:
            yield f"lower = {column.lower}\nupper = {column.upper}\n"
        if column.categories:
            yield f"categories = {list(column.categories)}\n"
