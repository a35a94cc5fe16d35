"""A schema to fill in, drafted from column names and storage types alone: no cell is read."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from adumbra.data.columns import is_text, value_type
from adumbra.data.files import delimiter_hint
from adumbra.data.suspects import suspect
from adumbra.schema.fields import TODO
from adumbra.schema.schema import FORMAT
from adumbra.schema.writing import Fields, column_sections, section, todos, toml

_HEAD = """\
# Drafted from column names and storage types only. Replace every TODO by what is publicly known
# (a codebook, a law, the range of a sensor), never by what the data holds: such bounds leak it.
# `adumbra schema check` lists what is left to do.
"""


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
        body = [section("[items]", {"column": item_columns[0], "universe": TODO})]
    else:
        kept: list[Fields] = []
        body = []
        for name, storage in columns:
            fields = _known_fields(name, storage, book.get(name, {}), source)
            is_known = fields is not None and not todos(fields)
            looks = None if keep_all or is_known else suspect(name, storage)
            if looks is not None:
                remedy = "to keep it, declare it by hand or draft with --keep-all"
                body.append(f"# column {toml(name)} is left out: it looks like {looks}; {remedy}\n")
            elif fields is None:
                rule = f"of type {storage} is left out; {_left_out(storage)}"
                body.append(f"# column {toml(name)} {rule}\n")
            else:
                kept.append(fields)
        body += column_sections(kept, is_draft=True)
    head: Fields = {"unit": TODO, "neighbours": TODO, "declared_by": TODO}
    head |= {} if header is None else {"header": header}
    table = section("[table]", head if delimiter is None else {**head, "delimiter": delimiter})
    choices = '# label = "..."   the column to predict, if any\n# rows = ...      if n is public\n'
    return "\n".join([f"{_HEAD}format = {toml(FORMAT)}\n", table + choices, *notes, *body])


def _name_notes(names: list[str]) -> list[str]:
    """What is to be done about names before any release."""
    counts = Counter(names)
    doubled = [name for name in counts if counts[name] > 1]
    notes = [f"{toml(name)} names {counts[name]} columns; rename them in the data" for name in doubled]
    return notes + delimiter_hint(names)


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
