"""Exports: valid in their own formats, never a smaller loss than the card, and no markup of others."""

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator
from markdown_it import MarkdownIt

import adumbra as ad
from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.mechanisms.methods import METHODS
from adumbra.privacy.guarantee import promise, pure
from adumbra.relations import Neighbours, Unit
from adumbra.release.artifact import Verified, verify
from adumbra.release.card import card_schema
from adumbra.release.formats import COLUMN_TYPES
from adumbra.report.exports import FORMATS, TYPES, export, make_sheet
from adumbra.report.registry import to_yaml
from support.cli import in_process
from support.every_method import release_each
from support.release import example_card, example_release, reseal

DATA = Path(__file__).resolve().parents[2] / "data"
RULES = json.loads((DATA / "formats/opendp-registry.json").read_text())
MORE = {"curator_type": "Government", "author": "A. Writer"}
NAMES = [method.name for method in METHODS]
HOSTILE = (
    "</script><script>alert(1)</script> [a](http://evil.example) ![b](x) `c` | d | **e** \u202eback\n"
    "# f <b>g</b> http://evil.example www.evil.example me@evil.example &lt; \x07 - h"
)


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    return release_each(tmp_path_factory.mktemp("each"))


def sheet_of(card, **about):
    checked = Verified(digest="ab" * 32, card={**card, "files": {}}, files=1, size=1)
    return make_sheet(checked, about)


def finished(card):
    return {**card, "contents": {"main": None, "tables": {}, "arrays": {}}, "files": {}}


@pytest.mark.parametrize("method", NAMES)
def test_every_methods_card_keeps_the_shipped_schema(releases, method):
    card = json.loads((releases[method] / "card.json").read_bytes())
    assert list(Draft202012Validator(card_schema()).iter_errors(card)) == []


def registry_faults(text):
    value = yaml.safe_load(text)
    validator = Draft7Validator(RULES, format_checker=Draft7Validator.FORMAT_CHECKER)
    return [error.message for error in validator.iter_errors(value)], value


@pytest.mark.parametrize("method", NAMES)
def test_the_registry_entry_keeps_the_registrys_rules(releases, method):
    faults, value = registry_faults(export(releases[method], "registry", about=MORE))
    assert faults == []
    entry, card = value["deployment"], verify(releases[method]).card
    assert set(entry) == set(RULES["properties"]["deployment"]["properties"])
    loss = entry["privacy_loss"]["privacy_parameters"]
    assert loss["epsilon"] >= card["guarantee"]["quoted"]["epsilon"]
    assert loss.get("delta", 0.0) >= card["guarantee"]["quoted"]["delta"]
    assert entry["dp_variant"]["variant_name"] == (
        "Pure DP" if card["guarantee"]["variant"] == "pure" else "Approximate DP"
    )
    synthetic = method in {"moments", "ron-gauss", "lda", "pca"}
    summary = method in {"top-k", "answers", "bounds"}
    kind = "Summary statistics" if summary else "Synthetic data" if synthetic else "Dataset"
    assert entry["basic"]["data_product_type"] == kind
    assert entry["basic"]["data_product_sector"] == "Healthcare"
    assert entry["privacy_loss"]["number_of_privacy_units"] == 400  # public under replace-one


def test_the_rules_of_the_registry_can_fail(releases):
    text = export(releases["moments"], "registry", about=MORE)
    for wrong in (
        text.replace("status: ", "state: "),
        text.replace('"Government"', '"Agency"'),
        re.sub(r"epsilon: \S+", 'epsilon: "1.5"', text),
        text.replace("    basic:", "  base:").replace("  basic:", "  base:"),
    ):
        assert registry_faults(wrong)[0] != []


def test_the_registry_is_told_what_a_card_lacks(releases):
    with pytest.raises(InvalidInput, match="needs curator_type, author, which the card does not say"):
        export(releases["moments"], "registry")
    with pytest.raises(InvalidInput, match="must be one of Government, Industry, Nonprofit"):
        export(releases["moments"], "registry", about={**MORE, "curator_type": "agency"})


@pytest.mark.filterwarnings("ignore")  # of the packages that judge, not of ours
@pytest.mark.parametrize("method", NAMES)
def test_croissant_is_read_by_its_own_package(releases, method, tmp_path):
    import mlcroissant

    folder = tmp_path / "release"
    shutil.copytree(releases[method], folder)
    out = tmp_path / "croissant.json"
    export(
        folder, "croissant", out=out, about={"license": "https://creativecommons.org/licenses/by/4.0/"}
    )
    found = mlcroissant.Dataset(jsonld=out)  # raises on every error
    assert not found.metadata.ctx.issues.errors
    card = verify(folder).card
    held = card["contents"]["tables"]
    assert {one.name for one in found.metadata.record_sets} == set(held)
    for table, described in held.items():
        first = next(iter(found.records(table)))
        assert len(first) == len(described["columns"])
    stored = {one.sha256 for one in found.metadata.file_objects}
    assert {one["sha256"] for one in card["files"].values()} <= stored


@pytest.mark.filterwarnings("ignore")
def test_croissants_package_can_fail(releases, tmp_path):
    import mlcroissant

    value = json.loads(export(releases["moments"], "croissant"))
    value["recordSet"][0]["field"][0]["source"]["fileObject"]["@id"] = "data/other.parquet"
    (tmp_path / "c.json").write_text(json.dumps(value))
    with pytest.raises(mlcroissant.ValidationError):
        mlcroissant.Dataset(jsonld=tmp_path / "c.json")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", NAMES)
def test_the_data_package_is_valid(releases, method):
    from frictionless import Package

    about = {"license": "CC-BY-4.0"}
    value = json.loads(export(releases[method], "frictionless", about=about))
    assert Package.validate_descriptor(value).valid
    package = Package.from_descriptor(value, basepath=str(releases[method]))
    for one in package.resources:
        path = releases[method] / one.path
        assert path.stat().st_size == one.bytes
    assert value["privacy"]["epsilon"] >= 1.5
    assert not Package.validate_descriptor({**value, "resources": "none"}).valid


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", NAMES)
def test_every_name_is_one_of_schema_org(releases, method):
    from rdflib import RDF, Graph
    from rdflib.namespace import SDO

    text = export(releases[method], "schema-org", url="https://data.example/ward")
    graph = Graph().parse(data=text, format="json-ld")
    kinds = set(graph.objects(None, RDF.type))
    assert {str(kind).rpartition("/")[2] for kind in kinds} <= {
        "Dataset", "Organization", "DataDownload", "PropertyValue",
    }  # fmt: skip
    used = {one for one in graph.predicates() if one != RDF.type}
    for name in (*used, *kinds):
        assert str(name).startswith("https://schema.org/")
        assert str(name).rpartition("/")[2] in SDO  # the vocabulary as rdflib ships it
    (dataset,) = graph.subjects(RDF.type, SDO.Dataset)
    description = str(graph.value(dataset, SDO.description))
    assert 50 <= len(description) <= 5000  # what search engines ask for
    assert str(graph.value(dataset, SDO.name)) == "Ward stays"
    downloads = {str(one) for one in graph.objects(None, SDO.contentUrl)}
    assert "https://data.example/ward/card.json" in downloads


@pytest.mark.filterwarnings("ignore")
def test_every_type_of_a_column_has_its_word(tmp_path):
    import mlcroissant
    from frictionless import Package

    whole = {name for name in COLUMN_TYPES if "int" in name and not name.startswith("list")}
    assert COLUMN_TYPES - whole == set(TYPES)
    columns = [[f"c{number}", name] for number, name in enumerate(sorted(COLUMN_TYPES))]
    card = {**example_card(), "contents": {"main": "data", "arrays": {}}}
    card["contents"]["tables"] = {"data": {"rows": 1, "columns": columns}}
    checked = Verified(digest="ab" * 32, card=card, files=1, size=1)
    card["files"] = {"data/data.parquet": {"sha256": "cd" * 32, "bytes": 1}}
    sheet = make_sheet(checked, {})
    package = json.loads(FORMATS["frictionless"](sheet))
    assert Package.validate_descriptor(package).valid
    words = {one["type"] for one in package["resources"][1]["schema"]["fields"]}
    assert {"date", "datetime", "array", "integer", "number", "string", "boolean"} == words
    (tmp_path / "c.json").write_text(FORMATS["croissant"](sheet))
    assert len(mlcroissant.Dataset(jsonld=tmp_path / "c.json").metadata.record_sets[0].fields) == 15


def tokens_of(text):
    parsed = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [(one, inner) for one in parsed for inner in (one, *(one.children or []))]


@pytest.mark.parametrize("method", NAMES)
def test_the_data_sheet_has_its_parts(releases, method):
    text = export(releases[method], "markdown")
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    titles = [parsed[at + 1].content for at, one in enumerate(parsed) if one.type == "heading_open"]
    for part in ("Who and when", "The promise", "What it holds", "Noise", "Limits", "How to check it"):
        assert part in titles
    assert sum(one.type == "table_open" for one in parsed) >= 6
    card = verify(releases[method]).card
    assert ad.PrivacyGuarantee.from_dict(card["guarantee"]["value"]).sentence().split(",")[0] in (
        text.replace("\\", "")
    )


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_words_of_others_stay_words(tmp_path, name):
    about = {
        "title": HOSTILE,
        "curator": HOSTILE,
        "intended_use": HOSTILE,
        "region": "r",
        "date": "2026-11-16",
    }
    card = example_card(about=about, limits=[HOSTILE], declared_by=HOSTILE, before_dp=HOSTILE)
    example_release(tmp_path / "r", card=card)
    text = export(tmp_path / "r", name, about=MORE)
    if name == "registry":
        assert registry_faults(text)[0] == []
        assert yaml.safe_load(text)["deployment"]["basic"]["name"] == HOSTILE
    elif name == "markdown":
        kinds = {inner.type for _, inner in tokens_of(text)}
        assert not kinds & {"html_block", "html_inline", "link_open", "image", "fence", "strong_open"}
        code = [inner.content for _, inner in tokens_of(text) if inner.type == "code_inline"]
        assert code == [one for one in code if one.startswith("adumbra verify")]
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert all(len(re.findall(r"(?<!\\)\|", row)) in (3, 4, 5) for row in rows)
        for bare in ("http://", "www.evil", "me@evil", "\u202e", "\x07"):
            assert bare not in text
    else:
        value = json.loads(text)
        assert HOSTILE in (value["name"], value.get("title"))
        assert "</script" not in text


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1e-3, 60.0),
    st.one_of(st.just(0.0), st.floats(1e-12, 1e-2)),
    st.sampled_from(["adumbra-release/1", "adumbra-release/2"]),
)
def test_no_export_says_less_than_the_guarantee(epsilon, delta, form):
    unit = (Unit.ROW, Neighbours.REPLACE_ONE)
    guarantee = promise(epsilon, delta, *unit) if delta else pure(epsilon, *unit)
    card = {**finished(example_card(guarantee)), "format": form}
    # A card of another machine may quote a last digit less; the export leans on the exact value.
    quoted = card["guarantee"]["quoted"]
    card["guarantee"] = {
        **card["guarantee"],
        "quoted": {**quoted, "epsilon": quoted["epsilon"] * (1 - 1e-10)},
    }
    sheet = sheet_of(card, **MORE, intended_use="u", region="r")
    truth, at = guarantee.epsilon_at(guarantee.delta), guarantee.delta
    entry = yaml.safe_load(FORMATS["registry"](sheet))["deployment"]["privacy_loss"][
        "privacy_parameters"
    ]
    package = json.loads(FORMATS["frictionless"](sheet))["privacy"]
    for said in (entry, package):
        assert said["epsilon"] >= truth
        assert said.get("delta", 0.0) >= at
    if guarantee.mu is not None:
        assert package["mu"] >= guarantee.mu
    for name, text in ((name, make(sheet)) for name, make in FORMATS.items()):
        for word, least in (("epsilon", truth), ("delta", at)):
            for figure in re.findall(rf"\b{word}=([0-9.e+-]+[0-9])", text.replace("\\", "")):
                assert Decimal(figure) >= Decimal(repr(least)), (name, word)


def test_item_sets_of_format_1_get_the_present_words():
    card = json.loads((DATA / "release-1/items/card.json").read_text())
    text = FORMATS["markdown"](sheet_of(card))
    assert "one item more or one item less" in text
    assert "any other value" not in text


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_forged_card_is_not_exported(tmp_path, name):
    example_release(tmp_path / "r")

    def less(card):
        card["guarantee"]["quoted"]["epsilon"] = 0.001
        return card

    reseal(tmp_path / "r", less)
    with pytest.raises(VerificationFailed):
        export(tmp_path / "r", name, out=tmp_path / "out", about=MORE)
    assert not (tmp_path / "out").exists()


def test_the_card_cannot_be_contradicted(releases, tmp_path):
    with pytest.raises(InvalidInput, match="the card says otherwise"):
        export(releases["moments"], "schema-org", about={"curator": "Somebody else"})
    with pytest.raises(InvalidInput, match="cannot be added"):
        export(releases["moments"], "schema-org", about={"epsilon": "0.1"})
    with pytest.raises(InvalidInput, match="is empty"):
        export(releases["moments"], "schema-org", about={"license": " "})
    with pytest.raises(InvalidInput, match="lies in the release"):
        export(releases["moments"], "markdown", out=releases["moments"] / "sheet")
    with pytest.raises(InvalidInput, match="choose one of registry, croissant"):
        export(releases["moments"], "xml")


def test_private_row_counts_stay_out(tmp_path):
    card = example_card(ad.PrivacyGuarantee.from_dict(
        {"epsilon": 1.0, "mu": None, "delta": 0.0, "unit": "row", "neighbours": "add-remove"}
    ))  # fmt: skip
    example_release(tmp_path / "r", card=card)
    text = export(tmp_path / "r", "registry", about={**MORE, "intended_use": "u", "region": "r"})
    faults, value = registry_faults(text)
    assert faults == []
    assert "number_of_privacy_units" not in value["deployment"]["privacy_loss"]


def test_yaml_reads_back_in_both_versions():
    value = {"a": {"b": [{"c": 1e-06, "d": 3}, {"c": "yes", "d": "1.0"}], "e": []}, "odd key": "x\ty"}
    text = to_yaml({**value, "a": {**value["a"], "e": "none"}})
    assert yaml.safe_load(text) == {**value, "a": {**value["a"], "e": "none"}}
    with pytest.raises(InvalidInput):
        to_yaml({"a": float("inf")})


def test_the_command_writes_each_format(releases, tmp_path):
    folder = releases["moments"]
    for name in FORMATS:
        out = tmp_path / f"{name}.txt"
        about = [f"--about={key}={value}" for key, value in MORE.items()]
        done = in_process("export", folder, "--format", name, "--out", out, *about)
        assert done.returncode == 0, done.stderr
        assert out.read_text() == export(folder, name, about=MORE)
        assert in_process("export", folder, "--format", name, "--out", out, *about).returncode == 2
    done = in_process(
        "export", folder, "--format", "markdown", "--out", tmp_path / "x", "--about", "license"
    )
    assert done.returncode == 2
    assert "needs a value" in done.stderr
    assert verify(folder)


def test_files_are_named_where_they_are(releases, tmp_path):
    shutil.copytree(releases["moments"], tmp_path / "r")
    beside = json.loads(export(tmp_path / "r", "frictionless", out=tmp_path / "datapackage.json"))
    assert all((tmp_path / one["path"]).is_file() for one in beside["resources"])
    far = tmp_path / "far"
    far.mkdir()
    away = json.loads(export(tmp_path / "r", "frictionless", out=far / "datapackage.json"))
    assert all((tmp_path / "r" / one["path"]).is_file() for one in away["resources"])
