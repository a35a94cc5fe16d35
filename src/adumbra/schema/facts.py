"""A schema out of the plain values that a card prints: the inverse of `Schema.facts`."""

from collections.abc import Mapping
from typing import Any

from adumbra.errors import InvalidInput
from adumbra.relations import Unit, relation_of
from adumbra.schema.schema import (
    Column,
    Derived,
    ItemSpec,
    Kind,
    Order,
    Pattern,
    PersonSpec,
    Rule,
    Schema,
)

OPTIONAL = ("rows", "label", "max_rows", "declared_by", "header", "delimiter", "encoding")


def schema_of(facts: Mapping[str, Any]) -> Schema:
    """The schema; raises InvalidInput where the values are not those of one."""
    try:
        return Schema(
            columns=tuple(_column(one) for one in facts["columns"]),
            unit=Unit(facts["unit"]),
            neighbours=relation_of(facts["neighbours"]),
            items=ItemSpec(**facts["items"]) if "items" in facts else None,
            patterns=tuple(
                Pattern(match=one["match"], at=one["at"], template=_column(one["template"]))
                for one in facts.get("patterns", ())
            ),
            constraints=tuple(Order(**one) for one in facts.get("constraints", ())),
            rules=tuple(Rule.of(one) for one in facts.get("rules", ())),
            derived=tuple(Derived.read(one) for one in facts.get("derived", ())),
            person=_person(facts) if "person" in facts else None,
            **{name: facts[name] for name in OPTIONAL if name in facts},
        )
    except (KeyError, TypeError, ValueError, AttributeError):  # InvalidInput is a ValueError
        raise InvalidInput("schema: the values do not describe one; is the card damaged?") from None


def _person(facts: Mapping[str, Any]) -> PersonSpec:
    return PersonSpec(
        column=facts["person"],
        max_rows=facts["max_rows_per_person"],
        bound=facts["bound"],
        no_person=facts["no_person"],
        **({"ids": facts["ids"]} if "ids" in facts else {}),
    )


def _column(facts: Mapping[str, Any]) -> Column:
    given = {**facts, "kind": Kind(facts["kind"])}
    for name in ("categories", "atoms"):
        if name in given:
            given[name] = tuple(given[name])
    return Column(**given)
