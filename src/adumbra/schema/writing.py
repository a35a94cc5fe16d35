"""Schema files out: a `Schema`, or the columns of a draft, as TOML."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from adumbra.relations import Moves, word_of
from adumbra.schema.fields import TODO
from adumbra.schema.schema import FORMAT, Schema

Fields = dict[str, object]
_NUMBERED = re.compile(r"^([^*?\[\]{}]*?)(\d{1,9})([^*?\[\]{}\d]*)$")
_SHORTEST_RANGE = 3  # from here on `prefix{0..2}` reads better than a list of names


def write_schema(schema: Schema) -> str:
    """The schema file; neighbouring columns that differ only by name become one group."""
    relation = schema.neighbours
    table: Fields = {"unit": str(schema.unit), "neighbours": str(word_of(relation))}
    table |= {"amount": relation.amount} if isinstance(relation, Moves) else {}
    optional = {"rows": schema.rows, "label": schema.label, "declared_by": schema.declared_by or None}
    table |= {name: value for name, value in optional.items() if value is not None}
    table["max_rows"] = schema.max_rows
    csv = {name: getattr(schema, name) for name in ("header", "delimiter", "encoding")}
    table |= {name: value for name, value in csv.items() if value is not None}
    table |= {} if schema.person is None else schema.person.facts()
    parts = [f"format = {toml(FORMAT)}\n", section("[table]", table)]
    if schema.items is not None:
        spec = schema.items
        items = dict(spec.facts())
        for name in ("listed", "digest", "lower", "upper") if spec.ids else ():
            items.pop(name)  # they follow from the file
        parts.append(section("[items]", items))
    cuts = sorted({0, len(schema.columns), *(pattern.at for pattern in schema.patterns)})
    for start, stop in zip(cuts, [*cuts[1:], len(schema.columns)], strict=True):
        here = [pattern for pattern in schema.patterns if pattern.at == start]
        parts += [section("[[groups]]", {"match": p.match, **_spec(p.template.facts())}) for p in here]
        parts += column_sections(column.facts() for column in schema.columns[start:stop])
    parts += [section("[[constraints]]", dict(order.facts())) for order in schema.constraints]
    parts += [section("[[rules]]", rule.facts()) for rule in schema.rules]
    parts += [section("[[derived]]", one.facts()) for one in schema.derived]
    return "\n".join(parts)


def todos(fields: Fields) -> int:
    """How many values of a draft's column are left to declare."""
    return sum(value in (TODO, [TODO]) for value in fields.values())


def column_sections(columns: Iterable[Fields], *, is_draft: bool = False) -> Iterator[str]:
    """Sections of columns in order; neighbours with equal fields together (a draft: if numbered)."""
    for _, run in groupby(columns, key=lambda fields: json.dumps(_spec(fields), sort_keys=True)):
        members = list(run)
        fields = _spec(members[0])
        for title, names in _ranges([str(member["name"]) for member in members]):
            if title is not None:
                group = section("[[groups]]", {"match": title, **fields})
                yield group + (_other_kinds(fields) if is_draft else "")
            elif len(names) > 1 and not (is_draft and todos(fields)):
                yield section("[[groups]]", {"names": names, **fields})
            else:
                yield from (_column_section({"name": name, **fields}) for name in names)


def _column_section(fields: Fields) -> str:
    """One column; where its kind is open, with the kinds that fit and the lines that each needs."""
    column = section("[[columns]]", fields)
    if fields.get("kind") != TODO:
        return column + _other_kinds(fields)
    kinds = (
        "# kind: number, integer, date or datetime (keep lower and upper), "
        "category or ordinal (keep categories), boolean\n"
    )
    lines = f"lower = {toml(TODO)}\nupper = {toml(TODO)}\ncategories = {toml([TODO])}\n"
    return column + kinds + "".join(f"# {line}\n" for line in lines.splitlines())


_FITTING = {  # what else a column of a stored type can be
    "integer": "number, boolean, or category and ordinal (with categories in place of bounds)",
    "number": "integer, which rounds",
    "category": "ordinal (lowest first); with cast = true whatever its text says: integer, date, ...",
    "date": "datetime",
    "datetime": "date, which cuts off the time",
}


def _other_kinds(fields: Fields) -> str:
    """Of a column with values to declare: the other kinds that fit, and what buys unknown ones."""
    also = _FITTING.get(str(fields["kind"]))
    if also is None or not todos(fields):
        return ""
    kinds = f"# kind: also {also}\n"
    unknown = "the bounds" if "lower" in fields else "which of a public list are frequent"
    return f"{kinds}# private = true   if nobody knows {unknown}: the method bounds buys them\n"


def _spec(fields: Fields) -> Fields:
    """The fields of a column besides its name."""
    return {name: value for name, value in fields.items() if name != "name"}


def numbered(prefix: str, first: str, further: int, suffix: str) -> str:
    """The name so many places after that of `first`, whose leading zeros are kept."""
    return f"{prefix}{int(first) + further:0{len(first)}d}{suffix}"


def _ranges(names: list[str]) -> Iterator[tuple[str | None, list[str]]]:
    """Split names into numbered ranges (with their pattern) and the rest (without one)."""
    rest: list[str] = []
    position = 0
    while position < len(names):
        found = _NUMBERED.match(names[position])
        stop = position + 1
        if found:
            prefix, first, suffix = found.groups()
            while stop < len(names) and names[stop] == numbered(prefix, first, stop - position, suffix):
                stop += 1
        if found and stop - position >= _SHORTEST_RANGE:
            if rest:
                yield None, rest
                rest = []
            last = numbered("", first, stop - position - 1, "")
            yield f"{prefix}{{{first}..{last}}}{suffix}", names[position:stop]
        else:
            rest += names[position:stop]
        position = stop
    if rest:
        yield None, rest


def section(title: str, fields: Fields) -> str:
    """One TOML table."""
    return "\n".join([title, *(f"{name} = {toml(value)}" for name, value in fields.items())]) + "\n"


def toml(value: object) -> str:
    """One TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        entries = [toml(entry) for entry in value]
        line = f"[{', '.join(entries)}]"
        return line if len(line) <= 90 else "[\n" + "".join(f"  {entry},\n" for entry in entries) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(name)} = {toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
