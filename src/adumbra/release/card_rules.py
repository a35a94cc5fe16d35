"""Does a card keep its JSON Schema? Answered without the library, for cards that do.

A release checks its card twice, and `verify` once; jsonschema takes a tenth of a second to import and
more than a tenth of a small release to answer. Here the schema becomes nested functions, once. Whatever
they refuse is shown to jsonschema, which names the place and the rule, or finds none. A keyword that
they do not know raises when the package's own schema is read, never at a card.
"""

import re
from collections.abc import Callable, Mapping, Sized
from typing import Any

Check = Callable[[Any], bool]
Rule = Mapping[str, Any]


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: object) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool)


TYPES: dict[str, Check] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": _number,
    "integer": _integer,
}
# Each keyword asks only values of one type; all others keep it.
NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}
SIZES: dict[str, tuple[type[Sized], Callable[[int, int], bool]]] = {
    "minItems": (list, lambda size, bound: size >= bound),
    "maxItems": (list, lambda size, bound: size <= bound),
    "maxLength": (str, lambda size, bound: size <= bound),
    "maxProperties": (dict, lambda size, bound: size <= bound),
}
WORDS = {"$schema", "$id", "$defs", "title", "description", "format"}  # say something, ask nothing
JOINED = {"properties", "additionalProperties", "items", "prefixItems"}  # read together, below


def compiled(schema: Rule) -> Check:
    """Whether a JSON value keeps the schema, as a function."""
    return _compiled(schema, schema)


def _compiled(rule: Rule, root: Rule) -> Check:
    checks = [_keyword(name, rule[name], root) for name in rule if name not in WORDS | JOINED]
    if "properties" in rule or "additionalProperties" in rule:
        checks.append(_properties(rule, root))
    if "items" in rule or "prefixItems" in rule:
        checks.append(_items(rule, root))
    if len(checks) == 1:
        return checks[0]
    return lambda value: all(check(value) for check in checks)


def _keyword(name: str, asked: Any, root: Rule) -> Check:  # noqa: ANN401 - any JSON value
    if name in NUMBERS:
        compare = NUMBERS[name]
        return lambda value: not _number(value) or compare(value, asked)
    if name in SIZES:
        kind, fits = SIZES[name]
        return lambda value: not isinstance(value, kind) or fits(len(value), asked)
    make = KEYWORDS.get(name)
    if make is None:
        raise NotImplementedError(f"card.schema.json: the keyword {name} is not known here")
    return make(asked, root)


def _type(asked: str | list[str], _root: Rule) -> Check:
    kinds = [TYPES[name] for name in ([asked] if isinstance(asked, str) else asked)]
    if len(kinds) == 1:
        return kinds[0]
    return lambda value: any(kind(value) for kind in kinds)


def _enum(asked: list[object], _root: Rule) -> Check:
    """One of some constants; text and numbers alone, so that equality is plain but for booleans."""
    return lambda value: not isinstance(value, bool | list | dict) and value in asked


def _pattern(asked: str, _root: Rule) -> Check:
    search = re.compile(asked).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _required(asked: list[str], _root: Rule) -> Check:
    names = frozenset(asked)
    return lambda value: not isinstance(value, dict) or names <= value.keys()


def _dependent(asked: Mapping[str, list[str]], _root: Rule) -> Check:
    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return True
        return all(set(names) <= value.keys() for name, names in asked.items() if name in value)

    return check


def _names(asked: Rule, root: Rule) -> Check:
    check = _compiled(asked, root)
    return lambda value: not isinstance(value, dict) or all(map(check, value))


def _reference(asked: str, root: Rule) -> Check:
    start, defs, name = asked.split("/")
    if (start, defs) != ("#", "$defs"):
        raise NotImplementedError(f"card.schema.json: the reference {asked} is not known here")
    return _compiled(root["$defs"][name], root)


def _one_of(asked: list[Rule], root: Rule) -> Check:
    checks = [_compiled(rule, root) for rule in asked]
    return lambda value: sum(check(value) for check in checks) == 1


def _any_of(asked: list[Rule], root: Rule) -> Check:
    checks = [_compiled(rule, root) for rule in asked]
    return lambda value: any(check(value) for check in checks)


KEYWORDS: dict[str, Callable[[Any, Rule], Check]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda asked, root: _enum([asked], root),
    "pattern": _pattern,
    "required": _required,
    "dependentRequired": _dependent,
    "propertyNames": _names,
    "$ref": _reference,
    "oneOf": _one_of,
    "anyOf": _any_of,
}


def _either(asked: Rule | bool, root: Rule) -> Check:
    """A schema, or `true` or `false` in its place."""
    return (lambda _: asked) if isinstance(asked, bool) else _compiled(asked, root)


def _properties(rule: Rule, root: Rule) -> Check:
    known = {name: _compiled(one, root) for name, one in rule.get("properties", {}).items()}
    other = _either(rule.get("additionalProperties", True), root)

    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return True
        return all(known.get(name, other)(item) for name, item in value.items())

    return check


def _items(rule: Rule, root: Rule) -> Check:
    first = [_compiled(one, root) for one in rule.get("prefixItems", ())]
    other = _either(rule.get("items", True), root)

    def check(value: object) -> bool:
        if not isinstance(value, list):
            return True
        ahead = all(one(item) for one, item in zip(first, value, strict=False))
        return ahead and all(map(other, value[len(first) :]))

    return check
