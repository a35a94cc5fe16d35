"""The card as an entry of the OpenDP deployments registry, in YAML.

The format is that of `schemas/deployments-schema.yaml` in opendp/deployments-registry-data at commit
057e5d81 (`deployment` with basic, dp_variant, privacy_loss, deployment_model, implementation and
administrative). The registry has no name for Gaussian differential privacy: such a release is entered as
approximate DP with its epsilon at its delta, and the details say mu.
"""

import math
import re
from collections.abc import Mapping, Sequence

from adumbra.errors import InvalidInput
from adumbra.numerics import figure_upper
from adumbra.relations import Unit
from adumbra.report.sheet import Sheet, audit_words

KINDS = ("Government", "Industry", "Nonprofit")  # of curators
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
SUMMARIES = ("answers", "bounds", "top-k")  # methods whose tables are statistics and not rows
NEEDED = ("curator", "curator_type", "intended_use", "region", "author")
_UNQUOTED = re.compile(r"[a-z_]+")


def registry(sheet: Sheet) -> str:
    """The entry; refuses a release of which the registry must know more, with all that is missing."""
    missing = [name for name in NEEDED if not sheet.said.get(name)]
    if missing:
        raise InvalidInput(
            f"about: the registry needs {', '.join(missing)}, which the card does not say; add "
            + " ".join(f"--about {name}=..." for name in missing)
        )
    parts = {
        "basic": _basic(sheet),
        "dp_variant": _variant(sheet),
        "privacy_loss": _loss(sheet),
        "deployment_model": _model(sheet),
        "implementation": _implementation(sheet),
        "administrative": {
            "status": "Draft",
            "registry_authors": [sheet.said["author"]],
            "tier": 3,
        },
    }
    return to_yaml({"url_slug": sheet.slug, "deployment": parts})


def _basic(sheet: Sheet) -> dict[str, object]:
    said = sheet.said
    curator = {"data_curator_name": said["curator"], "data_curator_type": said["curator_type"]}
    sector = said.get("sector", "").capitalize()
    return {
        "name": sheet.title,
        "data_curators": [curator],
        "description": sheet.description,
        "intended_use": said["intended_use"],
        "data_product_type": product_type(sheet),
        "data_product_region": said["region"],
        **({"data_product_sector": sector} if sector in SECTORS else {}),
        "publication_date": said["date"],
    }


def product_type(sheet: Sheet) -> str:
    """What was released, in the registry's words."""
    if not sheet.card["contents"]["tables"] or sheet.card["method"]["name"].startswith(SUMMARIES):
        return "Summary statistics"
    return "Synthetic data" if "synthetic" in sheet.rows else "Dataset"


def _variant(sheet: Sheet) -> dict[str, object]:
    schema = sheet.card["public_inputs"]["schema"]
    width = len(schema.get("columns", []))
    rows = "sets of items" if schema.get("items") else f"rows of {width} declared columns"
    return {
        "variant_name": "Pure DP" if sheet.guarantee.is_pure else "Approximate DP",
        "data_domain": f"Tables of {rows}; whatever a row holds is brought within the declared bounds.",
        "unprotected_quantities": _bullets(sheet.card["public_inputs"]["unprotected"]),
    }


def _loss(sheet: Sheet) -> dict[str, object]:
    amount = sheet.guarantee
    rows = sheet.card["public_inputs"]["schema"].get("rows")
    counted = amount.unit is Unit.ROW and amount.neighbours.rows_are_public and rows
    details = [amount.sentence(), sheet.attacker]
    if amount.mu is not None:
        details.append(f"Gaussian differential privacy with mu={figure_upper(amount.mu)}")
    return {
        "privacy_unit": f"{amount.unit}-level",
        "privacy_unit_details": f"Neighbours: {amount.neighbours}. {sheet.protects}",
        **({"number_of_privacy_units": int(rows)} if counted else {}),
        "privacy_parameters": {
            "epsilon": sheet.epsilon,
            **({} if amount.is_pure else {"delta": sheet.delta}),
        },
        "privacy_parameters_details": _bullets(details),
    }


def _model(sheet: Sheet) -> dict[str, object]:
    setting = sheet.card["setting"]
    return {
        "model_name": "Central",
        "trust_assumptions": setting["trust"],
        "actors": f"Curator: {sheet.said['curator']}. Readers: whoever has the release; any of them "
        "may attack it, with any other knowledge.",
        "release_type": "One release",
        "release_type_details": sheet.card["accounting"]["scope"],
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": setting["interaction"],
    }


def _implementation(sheet: Sheet) -> dict[str, object]:
    card = sheet.card
    uses = [
        f"{one['purpose']}: {one['distribution']} noise of scale {one['scale']}, which hides a change "
        f"of {one.get('sensitivity')}"
        for one in card["mechanisms"]
    ]
    audit = (card.get("provenance") or {}).get("audit")
    library = f"{card['method']['name']} of Adumbra {card['method']['adumbra_version']}"
    exact = "sums are exact and noise lies on their lattice, so floating point adds no loss"
    errors = [f"{name}: {value}" for name, value in card["accuracy"].items()]
    found = "no audit of this version is recorded" if audit is None else audit_words(audit)
    return {
        "preprocessing_and_hyperparameter_tuning": card["before_dp"],
        "mechanisms": _bullets([library, *uses, exact]),
        "composition": f"{card['accounting']['rule']}; {card['accounting']['scope']}",
        "post_processing": "Everything after the noise reads released numbers alone.",
        "justification": sheet.said.get("why", "not stated on the card"),
        "utility": _bullets(errors) if errors else "no expected errors on the card",
        "additional_information": _bullets(
            [
                f"SHA-256 of card.json: {sheet.digest}",
                f"ledger entry {card['ledger']['entry']}",
                f"audit: {found}",
                *card["limits"],
            ]
        ),
    }


def _bullets(lines: Sequence[object]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def to_yaml(value: object, indent: int = 0) -> str:
    """Plain values as YAML that versions 1.1 and 1.2 read alike: all text is quoted."""
    pad = " " * indent
    if isinstance(value, Mapping):
        lines = []
        for name, inner in value.items():
            key = name if _UNQUOTED.fullmatch(name) else _quoted(name)
            if isinstance(inner, Mapping | list) and inner:
                lines.append(f"{pad}{key}:\n{to_yaml(inner, indent + 2)}")
            else:
                lines.append(f"{pad}{key}: {_scalar(inner)}\n")
        return "".join(lines)
    if isinstance(value, list):
        return "".join(f"{pad}-{to_yaml(inner, indent + 2)[indent + 1 :]}" for inner in value)
    return f"{pad}{_scalar(value)}\n"


def _scalar(value: object) -> str:
    if isinstance(value, float):  # 1e-06 without a point is text in YAML 1.1
        if not math.isfinite(value):
            raise InvalidInput("export: a number is not finite")
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _quoted(str(value))


def _quoted(text: str) -> str:
    """A double-quoted scalar; whatever is not printable is escaped."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    letters = (escapes.get(one) or (one if one.isprintable() else f"\\U{ord(one):08x}") for one in text)
    return f'"{"".join(letters)}"'
