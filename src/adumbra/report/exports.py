"""The card of a release in the formats of others, made from the verified card alone.

    registry       YAML of the OpenDP deployments registry
    croissant      Croissant 1.0 (JSON-LD), for machine learning tools
    frictionless   a Data Package (datapackage.json)
    schema-org     a schema.org Dataset (JSON-LD), for search engines
    markdown       a data sheet for people

A guarantee is computed again from the card's exact value and rounded up, so that no export promises more
than the card. What a card does not hold (a licence, an address, the kind of curator) the publisher adds;
what it holds cannot be said differently.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adumbra.errors import require
from adumbra.release.artifact import Verified, verify
from adumbra.report.registry import KINDS, registry
from adumbra.report.sheet import Sheet, markdown

MEDIA = {
    ".json": "application/json",
    ".html": "text/html",
    ".parquet": "application/x-parquet",
    ".safetensors": "application/octet-stream",
}
ADDED = ("curator", "intended_use", "region", "sector", "why", "product")  # of a card's `about`
MORE = ("curator_type", "author", "license")  # what no card holds
KEYWORDS = ["differential privacy", "privacy-preserving data publishing"]
LANGUAGE_MAPS = ("data", "examples")
CROISSANT = "http://mlcommons.org/croissant/"
CROISSANT_NAMES = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject",
    "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path",
    "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator", "source",
    "subField", "transform",
)  # fmt: skip
SCHEMA_ORG = "https://schema.org/"
# Types of a card's columns in the words of Croissant and of Data Packages; all others are whole numbers.
TYPES = {
    "bool": ("sc:Boolean", "boolean"),
    "string": ("sc:Text", "string"),
    "float": ("sc:Float", "number"),
    "double": ("sc:Float", "number"),
    "date32[day]": ("sc:Date", "date"),
    "timestamp[us]": ("sc:DateTime", "datetime"),
    "list<int32>": ("sc:Integer", "array"),
}
WHOLE = ("sc:Integer", "integer")


def export(
    folder: str | Path,
    format: str,  # noqa: A002 - the word of the command line
    *,
    out: str | Path | None = None,
    url: str = "",
    about: Mapping[str, str] | None = None,
) -> str:
    """The card of a release in another format, after the whole release was verified.

    Parameters
    ----------
    folder : a folder that `release` made
    format : registry, croissant, frictionless, schema-org or markdown
    out : a new file for the text; never inside the release
    url : where the folder is published; without it files are named relative to `out`, or to the folder
    about : what the card does not hold: curator, intended_use, region, sector, curator_type, author, ...

    Returns
    -------
    The text.

    Raises
    ------
    VerificationFailed, if the release is not what its card says. InvalidInput, if the format needs what
    neither the card nor `about` says, or if `about` contradicts the card.
    """
    require(format in FORMATS, f"format={format}: unknown; choose one of {', '.join(FORMATS)}")
    place = Path(folder)
    base = f"{url.rstrip('/')}/" if url else ""
    if out is not None:
        inside = Path(out).resolve().is_relative_to(place.resolve())
        require(not inside, f"out={out}: lies in the release; it would no longer verify")
        above = Path(out).resolve().parent
        if not url and place.resolve().is_relative_to(above):
            base = f"{place.resolve().relative_to(above).as_posix()}/"
    text = FORMATS[format](make_sheet(verify(place), about or {}, base))
    if out is not None:
        Path(out).write_text(text, encoding="utf-8")
    return text


def make_sheet(checked: Verified, about: Mapping[str, str], base: str = "") -> Sheet:
    """What the formats say of a verified release."""
    said = {name: str(value) for name, value in checked.card["about"].items()}
    for name, value in about.items():
        known = ", ".join((*ADDED, *MORE))
        require(name in (*ADDED, *MORE), f"about={name}: cannot be added; known are {known}")
        require(
            said.get(name, value) == value,
            f"about={name}: the card says otherwise, and an export says what the card says",
        )
        require(bool(value.strip()), f"about={name}: is empty; leave it out or say something")
        said[name] = value
    kind = said.get("curator_type", KINDS[0])
    require(kind in KINDS, f"about=curator_type: must be one of {', '.join(KINDS)}")
    return Sheet(card=checked.card, digest=checked.digest, said=said, base=base)


def schema_org(sheet: Sheet) -> str:
    """A schema.org Dataset; every name in it is one of that vocabulary."""
    method = sheet.card["method"]
    value: dict[str, object] = {
        "@context": {"@vocab": SCHEMA_ORG},
        "@type": "Dataset",
        **_named(sheet),
        "identifier": f"sha256:{sheet.digest}",
        "measurementTechnique": f"{method['name']} with {sheet.guarantee.sentence()}",
        "variableMeasured": [
            {"@type": "PropertyValue", "name": name, "description": f"{kind} column of table {table}"}
            for table, held in sheet.card["contents"]["tables"].items()
            for name, kind in held["columns"]
        ],
        "distribution": [
            {
                "@type": "DataDownload",
                "name": name,
                "contentUrl": sheet.address(name),
                "encodingFormat": MEDIA[Path(name).suffix],
                "contentSize": f"{size} B",
                "sha256": digest,
            }
            for name, digest, size in sheet.files()
        ],
    }
    return _json(value)


def croissant(sheet: Sheet) -> str:
    """Croissant 1.0: files with their hashes, and each released table as a set of records."""
    names: dict[str, object] = {name: f"cr:{name}" for name in CROISSANT_NAMES}
    for name in LANGUAGE_MAPS:
        names[name] = {"@id": f"cr:{name}", "@type": "@json"}
    names["dataType"] = {"@id": "cr:dataType", "@type": "@vocab"}
    context = {"@language": "en", "@vocab": SCHEMA_ORG, "sc": SCHEMA_ORG, "cr": CROISSANT, **names}
    context |= {"dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo"}
    context["rai"] = f"{CROISSANT}RAI/"
    about = sheet.said
    value: dict[str, object] = {
        "@context": context,
        "@type": "sc:Dataset",
        "conformsTo": f"{CROISSANT}1.0",
        **_named(sheet),
        "citeAs": f"{sheet.title}. {about.get('curator', 'Curator not named')}, {about['date']}. "
        f"Release sha256:{sheet.digest}.",
        "rai:personalSensitiveInformation": f"{sheet.guarantee.sentence()}. {sheet.protects}",
        "rai:dataLimitations": list(sheet.card["limits"]),
        **({"rai:dataUseCases": about["intended_use"]} if "intended_use" in about else {}),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": sheet.address(name),
                "contentSize": f"{size} B",
                "encodingFormat": MEDIA[Path(name).suffix],
                "sha256": digest,
            }
            for name, digest, size in sheet.files()
        ],
        "recordSet": [_records(table, held) for table, held in sheet.card["contents"]["tables"].items()],
    }
    return _json(value)


def _records(table: str, held: Mapping[str, Any]) -> dict[str, object]:
    """One table; fields are numbered, since names of columns may be no names of nodes."""
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{table}/{number}",
            "name": name,
            "dataType": TYPES.get(kind, WHOLE)[0],
            **({"repeated": True} if kind.startswith("list") else {}),
            "source": {"fileObject": {"@id": f"data/{table}.parquet"}, "extract": {"column": name}},
        }
        for number, (name, kind) in enumerate(held["columns"])
    ]
    return {"@type": "cr:RecordSet", "@id": table, "name": table, "field": fields}


def frictionless(sheet: Sheet) -> str:
    """A Data Package; the guarantee is its property `privacy`."""
    tables = sheet.card["contents"]["tables"]
    resources = []
    for name, digest, size in sheet.files():
        table = Path(name).stem if name.startswith("data/") else None
        one: dict[str, object] = {
            "name": re.sub(r"[^a-z0-9._-]", "-", name),
            "path": sheet.address(name),
            "format": Path(name).suffix[1:],
            "mediatype": MEDIA[Path(name).suffix],
            "bytes": size,
            "hash": f"sha256:{digest}",
        }
        if table is not None:
            columns = [
                {"name": column, "type": TYPES.get(kind, WHOLE)[1]}
                for column, kind in tables[table]["columns"]
            ]
            one |= {"type": "table", "schema": {"fields": columns}}
        resources.append(one)
    curator = sheet.said.get("curator")
    value: dict[str, object] = {
        "name": sheet.slug,
        "id": f"sha256:{sheet.digest}",
        "title": sheet.title,
        "description": sheet.description,
        "keywords": KEYWORDS,
        **({"contributors": [{"title": curator, "role": "publisher"}]} if curator else {}),
        **({"licenses": [_license(sheet.said["license"])]} if "license" in sheet.said else {}),
        "privacy": sheet.privacy(),
        "resources": resources,
    }
    return _json(value)


def _license(said: str) -> dict[str, str]:
    return {"path": said} if "://" in said else {"name": said}


def _named(sheet: Sheet) -> dict[str, object]:
    """What both kinds of JSON-LD say of a dataset."""
    curator = sheet.said.get("curator")
    organisation = {"@type": "Organization", "name": curator}
    return {
        "name": sheet.title,
        "description": sheet.description,
        "datePublished": sheet.said["date"],
        "keywords": KEYWORDS,
        **({"creator": organisation} if curator else {}),
        **({"license": sheet.said["license"]} if "license" in sheet.said else {}),
        **({"url": sheet.base} if "://" in sheet.base else {}),
    }


def _json(value: object) -> str:
    """As it may stand in a page's script element: words from a card cannot end one."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


FORMATS: dict[str, Callable[[Sheet], str]] = {
    "registry": registry,
    "croissant": croissant,
    "frictionless": frictionless,
    "schema-org": schema_org,
    "markdown": markdown,
}
