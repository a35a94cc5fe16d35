"""Tables, constraints and guards, the same on SQLite and PostgreSQL.

No column is ever NULL (an empty text means "not yet"), so one condition text serves the guards of both.
"""

from sqlalchemy import BigInteger, CheckConstraint, Column, Connection, ForeignKey, MetaData, Table, Text
from sqlalchemy import text as sql

from adumbra.privacy.ledger.amounts import MAX_UNITS
from adumbra.privacy.ledger.values import NEXT, State

FORMAT = "adumbra-ledger/1"

metadata = MetaData()


def _text(name: str, *more: object, primary: bool = False) -> Column[str]:
    return Column(name, Text, *more, primary_key=primary, nullable=False)  # type: ignore[arg-type]


def _integer(name: str, *, primary: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=primary, nullable=False, autoincrement=False)


keys = Table("adumbra_keys", metadata, _text("name", primary=True), _text("value"))
events = Table(
    "adumbra_events",
    metadata,
    _text("log", CheckConstraint("log IN ('public', 'private')"), primary=True),
    _integer("sequence", primary=True),
    _text("body"),
    _text("hash"),
)
heads = Table(
    "adumbra_heads",
    metadata,
    _text("log", primary=True),
    _integer("sequence"),
    _text("hash"),
    _text("signature"),
)
populations = Table(
    "adumbra_populations",
    metadata,
    _text("name", primary=True),
    _text("unit"),
    _text("neighbours"),
    _text("currency", CheckConstraint("currency IN ('pure', 'gaussian')")),
    _text("epsilon"),  # decimal text, as it was declared
    _text("delta"),
    _integer("cap"),
    _integer("spent"),
    _text("parent"),
    _text("owner"),
    _text("purpose"),
    CheckConstraint(f"cap >= 1 AND cap <= {MAX_UNITS}", name="adumbra_cap_in_range"),
    CheckConstraint("spent >= 0 AND spent <= cap", name="adumbra_spent_within_cap"),
)
entries = Table(
    "adumbra_entries",
    metadata,
    _text("id", primary=True),
    _integer("sequence"),
    _text("population", ForeignKey("adumbra_populations.name")),
    _text("state", CheckConstraint("state IN ({})".format(", ".join(f"'{state}'" for state in State)))),
    _text("guarantee"),
    _text("source_pin"),
    _text("digest"),
    _text("staged"),
    _text("target"),
)
charges = Table(
    "adumbra_charges",
    metadata,
    _text("entry", ForeignKey("adumbra_entries.id"), primary=True),
    _text("population", ForeignKey("adumbra_populations.name"), primary=True),
    _integer("units"),
    CheckConstraint(f"units >= 1 AND units <= {MAX_UNITS}", name="adumbra_units_in_range"),
)

_FIXED = {
    "adumbra_entries": ("id", "sequence", "population", "guarantee", "source_pin"),
    "adumbra_populations": ("name", "unit", "neighbours", "currency", "delta", "owner", "purpose"),
}
_ONCE = {"adumbra_entries": ("digest", "staged", "target"), "adumbra_populations": ("parent",)}


def _allowed() -> dict[str, str]:
    """Table -> the condition under which an UPDATE is legal ('' means never)."""
    steps = ", ".join(f"'{old}>{new}'" for old, following in NEXT.items() for new in following)
    conditions = {
        "adumbra_entries": f"(OLD.state || '>' || NEW.state) IN ({steps})",
        "adumbra_populations": "NEW.cap >= OLD.cap",
        "adumbra_heads": "NEW.log = OLD.log AND NEW.sequence = OLD.sequence + 1",
        "adumbra_keys": "",
        "adumbra_events": "",
        "adumbra_charges": "",
    }
    for table, names in _FIXED.items():
        conditions[table] += "".join(f" AND NEW.{name} = OLD.{name}" for name in names)
    for table, names in _ONCE.items():
        conditions[table] += "".join(
            f" AND (OLD.{name} = '' OR NEW.{name} = OLD.{name})" for name in names
        )
    return conditions


def guard_names(dialect: str) -> set[str]:
    """Every trigger that must be there."""
    acts = ("update", "delete", "truncate") if dialect == "postgresql" else ("update", "delete")
    return {f"{table}_{act}" for table in _allowed() for act in acts}


def create_all(connection: Connection) -> None:
    """Make the tables and their guards, inside the caller's transaction."""
    metadata.create_all(connection, checkfirst=False)
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        connection.execute(sql(_POSTGRES_REFUSE))
    for table, condition in _allowed().items():
        if is_postgres:
            _guard_postgres(connection, table, condition)
        else:
            _guard_sqlite(connection, table, condition)


_POSTGRES_REFUSE = """
CREATE FUNCTION adumbra_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING MESSAGE = TG_OP || ' on ' || TG_TABLE_NAME || ': the ledger only grows';
END $$
"""


def _guard_postgres(connection: Connection, table: str, condition: str) -> None:
    when = f"WHEN (NOT ({condition})) " if condition else ""
    run = "EXECUTE FUNCTION adumbra_refuse()"
    connection.execute(
        sql(f"CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} FOR EACH ROW {when}{run}")
    )
    connection.execute(sql(f"CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} FOR EACH ROW {run}"))
    connection.execute(
        sql(f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {run}")
    )


def _guard_sqlite(connection: Connection, table: str, condition: str) -> None:
    for act in ("UPDATE", "DELETE"):
        when = f"WHEN NOT ({condition}) " if condition and act == "UPDATE" else ""
        body = f"BEGIN SELECT RAISE(ABORT, '{act} on {table}: the ledger only grows'); END"
        connection.execute(
            sql(
                f"CREATE TRIGGER {table}_{act.lower()} BEFORE {act} ON {table} FOR EACH ROW {when}{body}"
            )
        )


def present_guards(connection: Connection) -> set[str]:
    """The triggers that the database has now."""
    query = (
        "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE NOT tgisinternal AND tgenabled <> 'D' AND pg_table_is_visible(tgrelid)"
        if connection.dialect.name == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    return {row[0] for row in connection.execute(sql(query))}
