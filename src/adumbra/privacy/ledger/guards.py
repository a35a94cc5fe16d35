"""Triggers that keep the log growing only: what they forbid, how they are made, and whether they stand.

No column is ever NULL, so one condition text serves both databases. A guard is compared by its whole
text: one of the right name that forbids nothing is a fault.
"""

import re

from sqlalchemy import Connection
from sqlalchemy import text as sql

from adumbra.privacy.ledger.values import NEXT

POPULATIONS = "adumbra_populations"
_FIXED = {
    "adumbra_entries": ("id", "sequence", "population", "guarantee", "source_pin"),
    POPULATIONS: ("name", "unit", "neighbours", "owner", "purpose"),
}
_ONCE = {"adumbra_entries": ("digest", "staged", "target"), POPULATIONS: ("parent",)}
_STEPS = ", ".join(f"'{old}>{new}'" for old, following in NEXT.items() for new in following)
_CONDITIONS = {
    "adumbra_entries": f"(OLD.state || '>' || NEW.state) IN ({_STEPS})",
    # What an account counts may change while nothing is spent; the log says whether it ever was.
    POPULATIONS: (
        "(NEW.cap >= OLD.cap AND NEW.currency = OLD.currency AND NEW.delta = OLD.delta "
        "OR OLD.spent = 0 AND NEW.spent = 0)"
    ),
    "adumbra_heads": "NEW.log = OLD.log AND NEW.sequence = OLD.sequence + 1",
    "adumbra_keys": "",
    "adumbra_events": "",
    "adumbra_charges": "",
}
# As earlier versions made it; it stands until the first change of a delta.
_EARLIER = " AND ".join(
    [
        "NEW.cap >= OLD.cap",
        *(
            f"NEW.{name} = OLD.{name}"
            for name in ("name", "unit", "neighbours", "currency", "delta", "owner", "purpose")
        ),
        "(OLD.parent = '' OR NEW.parent = OLD.parent)",
    ]
)
# Made by `ledger grants` on PostgreSQL, and guards where they stand: who takes a charge back may void.
_MAY_VOID = "has_function_privilege('{schema}adumbra_may_void()'::regprocedure, 'EXECUTE')"
BOUND = {
    "adumbra_populations_return": (
        "CREATE TRIGGER adumbra_populations_return BEFORE UPDATE ON {schema}adumbra_populations FOR "
        f"EACH ROW WHEN (NEW.spent < OLD.spent AND NOT {_MAY_VOID}) "
        "EXECUTE FUNCTION {schema}adumbra_refuse()"
    ),
    "adumbra_entries_void": (
        "CREATE TRIGGER adumbra_entries_void BEFORE UPDATE ON {schema}adumbra_entries FOR EACH ROW "
        f"WHEN (NEW.state = 'void' AND NOT {_MAY_VOID}) EXECUTE FUNCTION {{schema}}adumbra_refuse()"
    ),
}
_REFUSE = (
    "\nBEGIN\n  RAISE EXCEPTION USING MESSAGE = TG_OP || ' on ' || TG_TABLE_NAME || "
    "': the ledger only grows';\nEND "
)


def _allowed(table: str) -> str:
    """The condition under which an UPDATE is legal ('' means never)."""
    kept = [f"NEW.{name} = OLD.{name}" for name in _FIXED.get(table, ())]
    once = [f"(OLD.{name} = '' OR NEW.{name} = OLD.{name})" for name in _ONCE.get(table, ())]
    return " AND ".join([_CONDITIONS[table], *kept, *once])


def _acts(dialect: str) -> tuple[str, ...]:
    return ("UPDATE", "DELETE", "TRUNCATE") if dialect == "postgresql" else ("UPDATE", "DELETE")


def _statement(dialect: str, table: str, act: str, condition: str) -> str:
    """The trigger that refuses one act on one table, unless the condition holds."""
    each = "STATEMENT" if act == "TRUNCATE" else "ROW"
    start = f"CREATE TRIGGER {table}_{act.lower()} BEFORE {act} ON {table} FOR EACH {each} "
    is_conditional = condition and act == "UPDATE"
    if dialect == "postgresql":
        when = f"WHEN (NOT ({condition})) " if is_conditional else ""
        return f"{start}{when}EXECUTE FUNCTION adumbra_refuse()"
    when = f"WHEN NOT ({condition}) " if is_conditional else ""
    return f"{start}{when}BEGIN SELECT RAISE(ABORT, '{act} on {table}: the ledger only grows'); END"


def guards(dialect: str) -> dict[str, tuple[str, ...]]:
    """Name -> the texts that it may have, the present one first."""
    made: dict[str, tuple[str, ...]] = {
        f"{table}_{act.lower()}": (_statement(dialect, table, act, _allowed(table)),)
        for table in _CONDITIONS
        for act in _acts(dialect)
    }
    made[f"{POPULATIONS}_update"] += (_statement(dialect, POPULATIONS, "UPDATE", _EARLIER),)
    return made


def create_guards(connection: Connection) -> None:
    """Make all of them, inside the caller's transaction."""
    if connection.dialect.name == "postgresql":
        body = f"CREATE FUNCTION adumbra_refuse() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSE}$$"
        connection.execute(sql(body))
    for texts in guards(connection.dialect.name).values():
        connection.execute(sql(texts[0]))


def renew_population_guard(connection: Connection) -> None:
    """Put the present guard in the place of that of an earlier version; only the tables' owner can."""
    if not is_earlier_guard(connection):
        return
    name = f"{POPULATIONS}_update"
    where = f" ON {POPULATIONS}" if connection.dialect.name == "postgresql" else ""
    connection.execute(sql(f"DROP TRIGGER {name}{where}"))
    connection.execute(sql(guards(connection.dialect.name)[name][0]))


def is_earlier_guard(connection: Connection) -> bool:
    """Whether the accounts have the guard that an earlier version made."""
    plain = _plain if connection.dialect.name == "postgresql" else str
    name = f"{POPULATIONS}_update"
    earlier = plain(guards(connection.dialect.name)[name][-1])
    return plain(_present(connection).get(name, "")) == earlier


def guard_faults(connection: Connection) -> list[str]:
    """Every guard that is missing, disabled or not as it was made, and every trigger that is none."""
    dialect = connection.dialect.name
    plain = _plain if dialect == "postgresql" else str
    found = _present(connection)
    faults = []
    for name, texts in sorted(guards(dialect).items()):
        if name not in found:
            faults.append(f"guard={name}: missing; the table could be rewritten")
        elif plain(found[name]) not in {plain(text) for text in texts}:
            faults.append(f"guard={name}: is not the one that was made; the table could be rewritten")
    bound = BOUND if dialect == "postgresql" else {}
    faults += [
        f"guard={name}: is not the one that was made; a charge could be taken back"
        for name in sorted(bound.keys() & found.keys())
        if plain(found[name]) != plain(bound[name].format(schema=""))
    ]
    strange = sorted(found.keys() - guards(dialect).keys() - bound.keys())
    faults += [f"trigger={name}: does not belong to a ledger" for name in strange]
    if dialect == "postgresql" and _function(connection) != _REFUSE:
        faults.append("guard=adumbra_refuse: is not the one that was made; no table is guarded")
    return faults


def _present(connection: Connection) -> dict[str, str]:
    """The triggers of the ledger's tables that are enabled now, with their texts."""
    query = (
        "SELECT tgname, pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger "
        "JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') "
        "AND pg_table_is_visible(tgrelid) AND relname ~ '^adumbra_'"
        if connection.dialect.name == "postgresql"
        else "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    )
    return {row[0]: row[1] for row in connection.exec_driver_sql(query)}


def _function(connection: Connection) -> str:
    """The body of the function that the guards call."""
    query = "SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('adumbra_refuse()')"
    return str(connection.exec_driver_sql(query).scalar())


def _plain(text: str) -> str:
    """A trigger's text without what PostgreSQL adds when it prints it: casts, brackets, schemas.

    The words, their order and every constant stay, so another condition is another text; a change of
    brackets alone could stay unseen on PostgreSQL. SQLite keeps the text as it was written.
    """
    text = re.sub(r"= ANY \(ARRAY\[", "IN ", text)
    text = re.sub(r"'[^' ]*\.(adumbra_\w+)", r"'\1", text)
    text = re.sub(r"::(text|bigint|integer|regprocedure|oid)|[()\[\]\s]", " ", text)
    text = re.sub(r" ON (\S+\.)?(adumbra_\w+)", r" ON \2", text)
    text = re.sub(r"FUNCTION (\S+\.)?(adumbra_\w+)", r"FUNCTION \2", text)
    return " ".join(re.sub(r"\s*,\s*", ", ", text).split()).lower()
