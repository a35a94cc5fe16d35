"""Schema files in: TOML text to a `Schema`, or one error with every fault and its line."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from adumbra.errors import InvalidInput, SchemaError
from adumbra.relations import LEGAL_PAIRS, Moved, Moves, Neighbours, Relation, Unit
from adumbra.schema.column import NULL, Declaration, Kind
from adumbra.schema.fields import NEW, PERSON, Faults, Table, find_lines
from adumbra.schema.orders import Order, order_faults
from adumbra.schema.row_rules import Derived, Rule
from adumbra.schema.schema import FIRST_FORMAT, FORMAT, Column, ItemSpec, Pattern, Schema
from adumbra.schema.table import MAX_ROWS, PersonSpec, TableDeclaration, of_table
from adumbra.schema.witness import row_faults

MOST_COLUMNS = 100_000
_RANGE = re.compile(r"^([^*?\[\]{}]*)\{(\d{1,9})\.\.(\d{1,9})\}([^*?\[\]{}]*)$")
T = TypeVar("T")


def read_schema(path: Path) -> Schema:
    """Read a schema file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")  # Windows editors write a byte order mark
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise InvalidInput(f"schema={str(path)!r}: cannot be read ({reason}); check the path") from None
    except UnicodeDecodeError as problem:
        raise SchemaError(
            (f"{path}:1: byte {problem.start} is not UTF-8; save the file as UTF-8",)
        ) from None
    return parse_schema(text, str(path))


def parse_schema(text: str, filename: str) -> Schema:
    """Parse TOML text into a schema, or raise one `SchemaError` with all faults."""
    text = text.replace("\r\n", "\n")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        found = re.search(r"^(.*) \(at line (\d+), column \d+\)$", str(problem))
        rule, line = (found[1], found[2]) if found else (str(problem), str(text.count("\n") + 1))
        raise SchemaError((f"{filename}:{line}: not valid TOML: {rule}",)) from None
    faults = Faults(filename, find_lines(text))
    top = Table(document, (), faults)
    top.refuse_unknown()
    columns, patterns, names = _read_columns(top)
    declared, declared_by = _read_table(top, names, is_open=bool(patterns))
    form = top.get("format", str, needed=True)
    templates = [one.template for one in patterns]
    newer = dict.fromkeys(one.newer_field for one in (*columns, *templates))
    listed = top.values.get("items")
    newer |= {"ids": None} if isinstance(listed, dict) and "ids" in listed else {}
    newer |= {"amount": None} if isinstance(declared.neighbours, Moves) else {}
    for name in ("person", "delimiter", "encoding"):
        newer |= {name: None} if getattr(declared, name) is not None else {}
    _check_format(top, form, [name for name in newer if name])
    items = _read_items(top)
    for name, message in declared.faults():
        faults.add((name,) if name in ("columns", "items") else ("table", name), message)
    orders = _read_constraints(top)
    rules = _read_listed(top, "rules", Rule.of)
    derived = _read_listed(top, "derived", Derived.read)
    if not patterns and len(columns) == len(names):
        for place, message in order_faults(orders, columns, declared.label) if orders else ():
            faults.add(("constraints", place), message)
        of_rows = row_faults(rules, derived, columns, orders, declared.label) if rules or derived else ()
        for section, place, message in of_rows:
            faults.add((section, place), message)
    faults.finish()
    return Schema(
        columns=tuple(columns),
        patterns=tuple(patterns),
        items=items,
        declared_by=declared_by,
        constraints=tuple(orders),
        rules=tuple(rules),
        derived=tuple(derived),
        **of_table(declared),
    )


def _check_format(top: Table, form: str | None, newer: list[str]) -> None:
    """Faults of the format: unknown, or older than what the file says."""
    if form not in (None, FORMAT, FIRST_FORMAT):
        top.fault("format", f"format={form!r}: must be {FORMAT!r} or {FIRST_FORMAT!r}")
    if form != FIRST_FORMAT:
        return
    for name in newer:
        top.fault("format", f"{name}: needs format={FORMAT!r}; run `adumbra schema upgrade` on it")
    for name in set(top.values) & set(NEW):
        top.fault(name, f"{name}: needs format={FORMAT!r}; run `adumbra schema upgrade` on the file")


def _tables(top: Table, section: str) -> list[dict[str, object]]:
    """The tables of a section as they stand; none, and a fault, if it is something else."""
    values = top.values.get(section, [])
    if isinstance(values, list) and all(isinstance(value, dict) for value in values):
        return values
    top.fault(section, f"{section}: must be tables, [[{section}]]")
    return []


def _read_listed(top: Table, section: str, read: Callable[[dict[str, object]], T]) -> list[T]:
    """The tables of a section, each read by its own function."""
    found = []
    for place, value in enumerate(_tables(top, section)):
        try:
            found.append(read(value))
        except InvalidInput as problem:
            top.faults.add((section, place), f"{section} {place + 1}: {problem}")
    return found


def _subtable(top: Table, name: str) -> Table | None:
    """A `[name]` table, if there is one."""
    value = top.values.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        top.fault(name, f"{name}: must be a table, [{name}]")
        return None
    table = Table(value, (name,), top.faults)
    table.refuse_unknown()
    return table


def _read_table(top: Table, names: list[str], *, is_open: bool) -> tuple[TableDeclaration, str]:
    """The `[table]` part; a legal word stands in for a wrong one, so that other rules are checked."""
    table = _subtable(top, "table")
    if table is None:
        if "table" not in top.values:
            top.fault("table", "[table] is absent; declare unit and neighbours in it")
        table = Table({"unit": "row", "neighbours": "replace-one"}, ("table",), top.faults)
    unit, word = table.choice("unit", Unit), table.choice("neighbours", _relation_word)
    if unit is None or word is None:
        legal = [pair for pair in LEGAL_PAIRS if unit in (None, pair[0]) and word in (None, pair[1])]
        unit, word = legal[0]
    max_rows = table.get("max_rows", int)
    declared = TableDeclaration(
        names=tuple(names),
        is_open=is_open,
        has_items="items" in top.values,
        unit=unit,
        neighbours=_read_relation(table, word),
        label=table.get("label", str),
        rows=table.get("rows", int),
        max_rows=MAX_ROWS if max_rows is None else max_rows,
        header=table.get("header", bool),
        delimiter=table.get("delimiter", str),
        encoding=table.get("encoding", str),
        person=_read_person(table),
    )
    return declared, table.get("declared_by", str) or ""


def _relation_word(word: str) -> Neighbours | Moved:
    return Moved(word) if word in tuple(Moved) else Neighbours(word)


def _read_relation(table: Table, word: Neighbours | Moved) -> Relation:
    """The relation, with its amount where it has one; a legal amount stands in for a wrong one."""
    if isinstance(word, Neighbours):
        if "amount" in table.values:
            table.fault(
                "amount", f"amount: {word} has none; remove it, or declare cell-moves or row-moves"
            )
        return word
    amount = table.get("amount", float, needed=True)
    try:
        return Moves(word, 1.0 if amount is None else amount)
    except InvalidInput as problem:
        table.fault("amount", str(problem))
        return Moves(word, 1.0)


def _read_person(table: Table) -> PersonSpec | None:
    """Whose rows belong together; None where nothing of it is declared."""
    if not any(name in table.values for name in PERSON):
        return None
    column, most = (
        table.get("person", str, needed=True),
        table.get("max_rows_per_person", int, needed=True),
    )
    given = {name: word for name in PERSON[2:] if (word := table.get(name, str)) is not None}
    # A legal value stands in for a wrong one, which is a fault already.
    return PersonSpec(column=column or "?", max_rows=1 if most is None else most, **given)


def _read_listed_items(table: Table) -> ItemSpec | None:
    """Items that a public file lists."""
    for name in ("universe", "lower", "upper"):
        if name in table.values:
            table.fault(name, f"{name}: the file of ids says what is possible; remove it")
    path, column = table.get("ids", str), table.get("column", str) or "items"
    dictionary = table.get("dictionary", str)
    try:
        return None if path is None else ItemSpec.of_file(path, column=column, dictionary=dictionary)
    except InvalidInput as problem:
        table.fault("ids", str(problem))
        return None


def _read_items(top: Table) -> ItemSpec | None:
    """The `[items]` part."""
    table = _subtable(top, "items")
    if table is None:
        return None
    if "ids" in table.values:
        return _read_listed_items(table)
    universe = table.get("universe", int, needed="upper" not in table.values)
    if universe is not None and ("lower" in table.values or "upper" in table.values):
        table.fault(
            "universe", f"universe={universe}: declares 0 to {universe - 1}; remove lower and upper"
        )
    lower = table.get("lower", int)
    upper = table.get("upper", int) if universe is None else universe - 1
    if upper is None:
        return None
    try:
        return ItemSpec(
            column=table.get("column", str) or "items",
            lower=0 if lower is None else lower,
            upper=upper,
            dictionary=table.get("dictionary", str),
        )
    except InvalidInput as problem:
        top.fault("items", str(problem))
        return None


def _read_constraints(top: Table) -> list[Order]:
    """The `[[constraints]]`: the names of two columns each."""
    values = top.values.get("constraints", [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        top.fault("constraints", "constraints: must be tables, [[constraints]]")
        return []
    orders = []
    for place, value in enumerate(values):
        entry = Table(value, ("constraints", place), top.faults)
        entry.refuse_unknown()
        lower, upper = (entry.get(name, str, needed=True) for name in ("lower", "upper"))
        orders.append(Order(lower=lower or "", upper=upper or ""))
    return orders


def _read_columns(top: Table) -> tuple[list[Column], list[Pattern], list[str]]:
    """Columns and groups in the order of the file; names also of those that have faults."""
    entries: list[Table] = []
    for section in ("columns", "groups"):
        values = _tables(top, section)
        entries += [Table(value, (section, i), top.faults) for i, value in enumerate(values)]
    entries.sort(key=lambda entry: top.faults.lines.get(entry.place, 0))
    columns: list[Column] = []
    patterns: list[Pattern] = []
    names: list[str] = []
    for entry in entries:
        entry.refuse_unknown()
        expanded, pattern = _entry_names(entry)
        names += expanded
        if len(names) > MOST_COLUMNS:
            entry.fault("match", f"columns: more than {MOST_COLUMNS}; declare fewer")
            break
        template = _read_column(entry, pattern or (expanded or ["?"])[0])
        if template is None:
            continue
        if pattern is not None:
            patterns.append(Pattern(match=pattern, template=template, at=len(columns)))
        columns += [replace(template, name=name) for name in expanded]
    return columns, patterns, names


def _entry_names(entry: Table) -> tuple[list[str], str | None]:
    """The names that an entry declares, and the pattern that waits for the data's names."""
    if entry.place[0] == "columns":
        name = entry.get("name", str, needed=True)
        if name == "":
            entry.fault("name", "name='': a column needs a name")
        return ([name] if name else []), None
    given, match = entry.get("names", list), entry.get("match", str)
    if ("names" in entry.values) == ("match" in entry.values):
        entry.fault("match", "match: a group has either match or names; declare one of them")
        return [], None
    if given is not None:
        if not given or "" in given:
            entry.fault("names", "names: must be a list of one or more names")
        return [name for name in given if name], None
    if match is None:
        return [], None
    if "{" not in match and "}" not in match:
        if not any(sign in match for sign in "*?["):
            entry.fault(
                "match", f"match={match!r}: no pattern; use * or {{0..9}}, or [[columns]] for one name"
            )
        return [], match
    return _range_names(entry, match), None


def _range_names(entry: Table, match: str) -> list[str]:
    """The names of `prefix{first..last}suffix`; leading zeros of `first` are kept."""
    found = _RANGE.match(match)
    if found is None:
        entry.fault("match", f"match={match!r}: a range reads prefix{{0..9}}suffix, without * ? [ ]")
        return []
    prefix, first, last, suffix = found.groups()
    count = int(last) - int(first) + 1
    if not 1 <= count <= MOST_COLUMNS:
        entry.fault("match", f"match={match!r}: must count upwards, to at most {MOST_COLUMNS} columns")
        return []
    return [f"{prefix}{number:0{len(first)}d}{suffix}" for number in range(int(first), int(last) + 1)]


def _read_column(entry: Table, name: str) -> Column | None:
    """The kind, bounds, categories and missing value of an entry."""
    before = len(entry.faults.found)
    kind = entry.choice("kind", Kind)
    if kind is not None and kind.is_time:
        lower, upper = entry.instant("lower", kind), entry.instant("upper", kind)
    else:
        lower, upper = entry.get("lower", float), entry.get("upper", float)
    categories = entry.get("categories", list) or []
    is_cast = entry.get("cast", bool)
    missing = entry.values.get("missing")
    if kind is not None and kind.is_time and missing != NULL:
        missing = entry.instant("missing", kind)
    if not isinstance(missing, float | int | str | None):
        entry.fault("missing", "missing: must be a number, a text, true or false")
        missing = None
    if kind is None or len(entry.faults.found) > before:
        return None
    given: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "lower": lower,
        "upper": upper,
        "categories": tuple(categories),
        "missing": missing,
        "cast": is_cast or False,
        "source": entry.get("source", str) or "",
        "atoms": entry.numbers("atoms", kind),
        "private": entry.get("private", bool) or False,
    }
    faults = Declaration(**given).faults()
    for field_name, message in faults:
        entry.fault(field_name, message)
    return None if faults else Column(**given)
