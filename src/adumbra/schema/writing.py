"""Schema files out: a `Schema` as TOML, and the draft of one from names and storage types."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import pyarrow as pa

from adumbra.relations import Moves, word_of
from adumbra.schema.fields import TODO
from adumbra.schema.schema import FORMAT, Schema
from adumbra.schema.suspects import suspect


# Storage types of columns: public facts of a file or frame, which hold no value of a row.
def value_type(storage: pa.DataType) -> pa.DataType:
    """The type of the values behind dictionaries, run ends and extensions."""
    while True:
        if isinstance(storage, pa.BaseExtensionType):
            storage = storage.storage_type
        elif pa.types.is_dictionary(storage) or pa.types.is_run_end_encoded(storage):
            storage = storage.value_type
        else:
            return storage


def is_text(storage: pa.DataType) -> bool:
    """Strings and bytes in all their layouts."""
    tests: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(test(storage) for test in tests)


Fields = dict[str, object]
_NUMBERED = re.compile(r"^([^*?\[\]{}]*?)(\d{1,9})([^*?\[\]{}\d]*)$")
_SHORTEST_RANGE = 3  # from here on `prefix{0..2}` reads better than a list of names
_HEAD = """\
# Drafted from column names and storage types only. Replace every TODO by what is publicly known
# (a codebook, a law, the range of a sensor), never by what the data holds: such bounds leak it.
# `adumbra schema check` lists what is left to do.
"""


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
    parts = [f"format = {_value(FORMAT)}\n", _section("[table]", table)]
    if schema.items is not None:
        spec = schema.items
        items = dict(spec.facts())
        for name in ("listed", "digest", "lower", "upper") if spec.ids else ():
            items.pop(name)  # they follow from the file
        parts.append(_section("[items]", items))
    cuts = sorted({0, len(schema.columns), *(pattern.at for pattern in schema.patterns)})
    for start, stop in zip(cuts, [*cuts[1:], len(schema.columns)], strict=True):
        here = [pattern for pattern in schema.patterns if pattern.at == start]
        parts += [_section("[[groups]]", {"match": p.match, **_spec(p.template.facts())}) for p in here]
        parts += _column_sections(column.facts() for column in schema.columns[start:stop])
    parts += [_section("[[constraints]]", dict(order.facts())) for order in schema.constraints]
    parts += [_section("[[rules]]", rule.facts()) for rule in schema.rules]
    parts += [_section("[[derived]]", one.facts()) for one in schema.derived]
    return "\n".join(parts)


def draft_schema(  # noqa: PLR0913 - all but the columns have defaults
    columns: Sequence[tuple[str, pa.DataType | None]],
    *,
    header: bool | None = None,
    delimiter: str | None = None,
    codebook: Mapping[str, Fields] | None = None,
    source: str = "",
    keep_all: bool = False,
) -> str:
    """A schema to fill in, from names and storage types (None: text, whose types are not declared).

    A codebook's entries are taken as they are, and name their source. What looks like an identifier or
    free text is left out, unless the codebook declares its values or `keep_all` is set.
    """
    book = codebook or {}
    notes = [f"# {note}\n" for note in _name_notes([name for name, _ in columns])]
    once = dict[str, pa.DataType | None]()
    for name, storage in columns:
        once.setdefault(name, storage)
    columns = list(once.items())
    item_columns = [name for name, storage in columns if storage is not None and _is_list(storage)]
    if item_columns and len(item_columns) == len(columns):
        body = [_section("[items]", {"column": item_columns[0], "universe": TODO})]
    else:
        kept: list[Fields] = []
        body = []
        for name, storage in columns:
            fields = _known_fields(name, storage, book.get(name, {}), source)
            is_known = fields is not None and not _todos(fields)
            looks = None if keep_all or is_known else suspect(name, storage)
            if looks is not None:
                remedy = "to keep it, declare it by hand or draft with --keep-all"
                body.append(f"# column {_value(name)} is left out: it looks like {looks}; {remedy}\n")
            elif fields is None:
                rule = f"of type {storage} is left out; {_left_out(storage)}"
                body.append(f"# column {_value(name)} {rule}\n")
            else:
                kept.append(fields)
        body += _column_sections(kept, is_draft=True)
    head: Fields = {"unit": TODO, "neighbours": TODO, "declared_by": TODO}
    head |= {} if header is None else {"header": header}
    table = _section("[table]", head if delimiter is None else {**head, "delimiter": delimiter})
    choices = '# label = "..."   the column to predict, if any\n# rows = ...      if n is public\n'
    return "\n".join([f"{_HEAD}format = {_value(FORMAT)}\n", table + choices, *notes, *body])


def _name_notes(names: list[str]) -> list[str]:
    """What is to be done about names before any release."""
    counts = Counter(names)
    doubled = [name for name in counts if counts[name] > 1]
    notes = [f"{_value(name)} names {counts[name]} columns; rename them in the data" for name in doubled]
    return notes + delimiter_hint(names)


def delimiter_hint(names: list[str]) -> list[str]:
    """A word on the delimiter, if the one name of a text file looks like several; it quotes nothing."""
    if len(names) != 1 or not any(sign in names[0] for sign in ";\t|,"):
        return []
    rule = "delimiters are commas (.csv) or tabs (.tsv), or declared by delimiter in [table]"
    return [f"the first line has one field only; {rule}"]


def _known_fields(name: str, storage: pa.DataType | None, entry: Fields, source: str) -> Fields | None:
    """The fields of a column: those of the codebook, then what its storage type tells."""
    if "kind" not in entry:
        return _draft_fields(name, storage)
    fields: Fields = {"name": name, **entry}
    if entry["kind"] in ("number", "integer", "date", "datetime"):
        fields |= {end: entry.get(end, TODO) for end in ("lower", "upper")}
    if entry["kind"] in ("category", "ordinal"):
        fields.setdefault("categories", [TODO])
    return {**fields, "source": source} if source else fields


def _todos(fields: Fields) -> int:
    """How many values of a draft's column are left to declare."""
    return sum(value in (TODO, [TODO]) for value in fields.values())


def _draft_fields(name: str, storage: pa.DataType | None) -> Fields | None:
    """What a storage type tells of a column; None if it cannot be read."""
    if storage is None or pa.types.is_null(storage):
        return {"name": name, "kind": TODO}
    plain = value_type(storage)
    if pa.types.is_boolean(plain):
        return {"name": name, "kind": "boolean"}
    if is_text(plain):
        return {"name": name, "kind": "category", "categories": [TODO]}
    kinds: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
        ("integer", pa.types.is_integer),
        ("number", pa.types.is_floating),
        ("number", pa.types.is_decimal),
        ("date", pa.types.is_date),
        ("datetime", pa.types.is_timestamp),
    )
    found = [kind for kind, test in kinds if test(plain)]
    return {"name": name, "kind": found[0], "lower": TODO, "upper": TODO} if found else None


def _left_out(storage: pa.DataType | None) -> str:
    """What can be done about a column that a draft leaves out."""
    if storage is not None and _is_list(storage):
        return "for its item sets write [items] with column and universe in place of the columns"
    return "cast it to a number or text to use it"


def _is_list(storage: pa.DataType) -> bool:
    """Whether a column may hold item sets."""
    is_list = pa.types.is_list(storage) or pa.types.is_large_list(storage)
    return bool(is_list and pa.types.is_integer(storage.value_type))


def _column_sections(columns: Iterable[Fields], *, is_draft: bool = False) -> Iterator[str]:
    """Sections of columns in order; neighbours with equal fields together (a draft: if numbered)."""
    for _, run in groupby(columns, key=lambda fields: json.dumps(_spec(fields), sort_keys=True)):
        members = list(run)
        fields = _spec(members[0])
        for title, names in _ranges([str(member["name"]) for member in members]):
            if title is not None:
                section = _section("[[groups]]", {"match": title, **fields})
                yield section + (_other_kinds(fields) if is_draft else "")
            elif len(names) > 1 and not (is_draft and _todos(fields)):
                yield _section("[[groups]]", {"names": names, **fields})
            else:
                yield from (_column_section({"name": name, **fields}) for name in names)


def _column_section(fields: Fields) -> str:
    """One column; where its kind is open, with the kinds that fit and the lines that each needs."""
    section = _section("[[columns]]", fields)
    if fields.get("kind") != TODO:
        return section + _other_kinds(fields)
    kinds = (
        "# kind: number, integer, date or datetime (keep lower and upper), "
        "category or ordinal (keep categories), boolean\n"
    )
    lines = f"lower = {_value(TODO)}\nupper = {_value(TODO)}\ncategories = {_value([TODO])}\n"
    return section + kinds + "".join(f"# {line}\n" for line in lines.splitlines())


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
    if also is None or not _todos(fields):
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


def _section(title: str, fields: Fields) -> str:
    """One TOML table."""
    return "\n".join([title, *(f"{name} = {_value(value)}" for name, value in fields.items())]) + "\n"


def _value(value: object) -> str:
    """One TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        entries = [_value(entry) for entry in value]
        line = f"[{', '.join(entries)}]"
        return line if len(line) <= 90 else "[\n" + "".join(f"  {entry},\n" for entry in entries) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_value(name)} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
