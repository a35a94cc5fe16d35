"""Tables and constraints, the same on SQLite and PostgreSQL; no column is NULL ("" is "not yet")."""

from sqlalchemy import BigInteger, CheckConstraint, Column, Connection, ForeignKey, MetaData, Table, Text

from adumbra.privacy.ledger.guards import create_guards
from adumbra.privacy.ledger.values import MAX_UNITS, State

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


def create_all(connection: Connection) -> None:
    """Make the tables and their guards, inside the caller's transaction."""
    metadata.create_all(connection, checkfirst=False)
    create_guards(connection)
