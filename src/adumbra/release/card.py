"""The card of a release: what left, what it promises, and who declared what, as one JSON object.

`build_card` makes it from public values only; `canonical` is its one byte form; `card_faults` holds it
against the JSON Schema in the package. A card says a day but no time, and no duration, path or user
name. Under add-remove nothing in it depends on the number of private rows.
"""

import datetime as dt
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from adumbra.errors import InvalidInput, require
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.release.card_rules import Check, compiled
from adumbra.release.promise import FORMAT, promised

NOT_PRIVATE = (
    "NOT PRIVATE: made for a test or an audit, with noise from a secret that is known. Whoever knows it "
    "can take the noise off. Delete this folder, or keep it as safe as the private rows."
)
LIMITS = (
    "The guarantee covers this folder; whatever else is published about the same people adds to it.",
    "It hides one unit's contribution, not what is true of the population as a whole.",
    (
        "Bounds, categories and labels were declared, or bought from an earlier release that the column "
        "names. A wrong one costs accuracy; one that was read off the private rows costs privacy, and "
        "the guarantee does not cover it."
    ),
    "Run time, memory and the machine itself are outside the guarantee.",
)
CARD_LIMIT = 2**26  # bytes of card.json: 100,000 declared columns fit
UNSEALED = "0" * 64  # stands in `proof.content_sha256` while the card's own hash is taken

Card = dict[str, Any]


def build_card(  # noqa: PLR0913 - one keyword per section; a config object would only repeat their names
    *,
    method: str,
    config: Mapping[str, object],
    guarantee: PrivacyGuarantee,
    schema_dict: Mapping[str, object],
    declared_by: str,
    mechanisms: Sequence[Mapping[str, object]],
    expected_error: Mapping[str, object],
    ledger: Mapping[str, object],
    about: Mapping[str, object],
    population: str | None = None,
    limits: Sequence[str],
    facts: Mapping[str, object],
    adumbra_version: str,
    notes: Sequence[str] = (),
    before_dp: str = "not declared",
) -> Card:
    """The card without its files, which `storage.write_staged` adds; every argument is public.

    `ledger` holds the entry that paid and the fields of the ledger's signed head.
    """
    require_about(about)
    named = {} if population is None else {"population": population}
    public_rows = guarantee.neighbours.rows_are_public
    require(
        public_rows or schema_dict.get("rows") is None,
        f"rows with neighbours={guarantee.neighbours}: it is private there; the schema must not say it",
    )
    words, attacker = promised(guarantee, schema_dict)
    card = {
        "format": FORMAT,
        "about": {"title": f"Private release by {method}", "date": _today(), **named, **about},
        "guarantee": {**guarantee.quoted(), "attacker": attacker},
        "unit": {
            "unit": guarantee.unit,
            "neighbours": str(guarantee.neighbours),
            "sentence": words.protects,
        },
        "setting": {
            "model": "central",
            "interaction": "one release, fixed before the data was read",
            "trust": "the curator and its machine saw the exact rows; this release shows them to nobody",
        },
        "public_inputs": {
            "declared_by": declared_by,
            "schema": schema_dict,
            "unprotected": [
                "column names, kinds, bounds, categories and the label column",
                "the method and all of its parameters",
                *(["the number of rows"] if public_rows else []),
                *(["which column holds the ids of persons"] if "person" in schema_dict else []),
            ],
        },
        "accounting": {
            "rule": "epsilons add up"
            if guarantee.is_pure
            else "squares of mu add up (Gaussian differential privacy)",
            "scope": "this release alone; the ledger holds what the population has spent in all",
        },
        "ledger": _paid(ledger),
        "before_dp": before_dp,
        "method": {"name": method, "config": config, "adumbra_version": adumbra_version},
        "mechanisms": list(mechanisms),
        "accuracy": expected_error,
        "notes": list(notes),
        "limits": list(limits),
        "facts": facts,
        "proof": {"content_sha256": UNSEALED},
    }
    return _plain_object(card, "card")


def drawn_card(
    card: Card,
    *,
    about: Mapping[str, object],
    ledger: Mapping[str, object],
    mechanisms: Sequence[Mapping[str, object]],
    facts: Mapping[str, object],
) -> Card:
    """The card of a plan, once it is paid and drawn: on this day, unless `about` names another."""
    drawn = {
        "about": {**card["about"], "date": _today(), **about},
        "ledger": _paid(ledger),
        "mechanisms": list(mechanisms) or card["mechanisms"],
        "facts": facts,
    }
    return {**card, **_plain_object(drawn, "card")}


def _today() -> str:
    return dt.datetime.now(tz=dt.UTC).date().isoformat()


def _paid(ledger: Mapping[str, object]) -> Card:
    """The entry that paid, and the ledger's signed head."""
    return {"entry": ledger["entry"], "head": {k: v for k, v in ledger.items() if k != "entry"}}


def stamped(card: Card) -> Card:
    """The card of a release whose noise is known: it says so, and `verify` refuses it."""
    return {**card, "not_private": NOT_PRIVATE}


def canonical(card: Mapping[str, object]) -> bytes:
    """The one byte form of a card: sorted keys, two spaces, UTF-8, floats by repr, a final newline."""
    return (
        json.dumps(card, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    ).encode()


def content_sha256(card: Card) -> str:
    """The card's own hash: SHA-256 of its bytes with the digits of `content_sha256` set to zero."""
    unsealed = {**card, "proof": {**card["proof"], "content_sha256": UNSEALED}}
    return hashlib.sha256(canonical(unsealed)).hexdigest()


def sealed_bytes(card: Card) -> bytes:
    """The bytes of card.json, with the card's own hash filled in."""
    return card_bytes(seal_card(card))


def seal_card(card: Card) -> Card:
    """The card with its own hash filled in."""
    return {**card, "proof": {**card["proof"], "content_sha256": content_sha256(card)}}


@cache
def card_schema() -> dict[str, Any]:
    """The JSON Schema of this format, from the package."""
    text = resources.files("adumbra.release").joinpath("card.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _keeps_schema() -> Check:
    return compiled(card_schema())


def require_about(about: object) -> None:
    """Refuse what no card can say of a release, by the names that it can."""
    known = sorted(card_schema()["properties"]["about"]["properties"])
    require(isinstance(about, Mapping), f"about={about!a}: must be a table of {', '.join(known)}")
    unknown = sorted(set(about) - set(known), key=str) if isinstance(about, Mapping) else []
    require(not unknown, f"about={unknown[:1]!a}: is not a part of a card; known are {', '.join(known)}")


def card_faults(card: object) -> tuple[str, ...]:
    """Where the card breaks its JSON Schema: place and rule, never the offending (untrusted) value."""
    if _keeps_schema()(card):
        return ()
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import, and only faults need it

    errors = Draft202012Validator(card_schema()).iter_errors(card)
    places = (
        ("/".join(map(str, error.absolute_path)) or "the whole card", error.validator)
        for error in errors
    )
    return tuple(
        f"card.json at {ascii(place)[1:-1]}: breaks the rule `{rule}`" for place, rule in places
    )


def read_card(raw: bytes) -> tuple[Card | None, tuple[str, ...]]:
    """The card of these bytes, if it keeps its schema, and what is wrong with it."""
    try:
        card = json.loads(raw)
        known = isinstance(card, dict) and canonical(card) == raw
    except (ValueError, RecursionError):
        known = False
    if not known:  # a card has one form
        return None, ("card.json: is not a JSON object in canonical form",)
    broken = card_faults(card)
    if broken:
        return None, broken
    own = card["proof"]["content_sha256"] == content_sha256(card)
    return card, () if own else ("card.json: its own hash is wrong",)


def card_bytes(card: Card) -> bytes:
    """The bytes of card.json; refuses a card that breaks its schema or is too long."""
    faults = card_faults(card)
    require(not faults, "\n".join(faults))
    raw = canonical(card)
    require(len(raw) <= CARD_LIMIT, _too_long(len(raw)))
    return raw


def _too_long(size: int) -> str:
    return f"a card of {size} bytes: at most {CARD_LIMIT}; shorten the schema or what is said about it"


def require_card(card: Card, coming: int) -> None:
    """Refuse, before anything is paid, a card that `storage.write_staged` would refuse.

    `coming` bounds the bytes of what the draw adds: facts, contents and files.
    """
    raw = card_bytes({**card, "contents": {"main": None, "tables": {}, "arrays": {}}, "files": {}})
    require(len(raw) + coming <= CARD_LIMIT, _too_long(len(raw) + coming))


def plain(value: object, where: str) -> object:
    """The value as JSON knows it; whatever JSON cannot hold exactly is refused."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        require(math.isfinite(value), f"{where}: holds a number that is not finite; a card cannot")
        return value
    if isinstance(value, str):
        return _plain_text(value, where)
    if isinstance(value, Mapping):
        return _plain_object(value, where)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise InvalidInput(
        f"{where}: a {type(value).__name__} has no place in a card; use numbers, text, lists and tables"
    )


def _plain_object(value: Mapping[Any, object], where: str) -> Card:
    """A JSON object, its keys text."""
    require(all(isinstance(key, str) for key in value), f"{where}: every name must be text")
    return {_plain_text(key, where): plain(item, f"{where}.{key}") for key, item in value.items()}


def _plain_text(value: str, where: str) -> str:
    """Text that UTF-8 can hold, without a subclass around it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{where!a}: holds text that is not Unicode; a card cannot") from None
    return str(value)
