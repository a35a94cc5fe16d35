"""Guards are compared by their texts: one of the right name that guards nothing is a fault."""

import pytest
from sqlalchemy import text as sql

from adumbra.errors import LedgerError, VerificationFailed
from adumbra.privacy.ledger import create_ledger
from adumbra.privacy.ledger.guards import POPULATIONS, guards
from support.ledger import DATABASES, new_location, register, reserve

UPDATE, DELETE = f"{POPULATIONS}_update", f"{POPULATIONS}_delete"


def replace(connection, name: str, text: str) -> None:
    """Put another trigger in the place of one on the table of populations."""
    where = f" ON {POPULATIONS}" if connection.dialect.name == "postgresql" else ""
    connection.execute(sql(f"DROP TRIGGER {name}{where}"))
    connection.execute(sql(text))


def test_the_guard_of_an_earlier_version_is_known_and_renewed(ledger):
    register(ledger)
    with ledger._store.write() as connection:
        replace(connection, UPDATE, guards(connection.dialect.name)[UPDATE][1])
    ledger.verify()
    ledger.change_delta("people", 1e-6, "renewed on the way")
    ledger.verify()
    reserve(ledger, "people", 0.1, 1e-6)
    with pytest.raises(LedgerError, match="refused the act"), ledger._store.write() as connection:
        connection.execute(sql("UPDATE adumbra_populations SET delta = '0.5'"))


def seen(ledger, act) -> str:
    """What `verify` says after an act on the guards."""
    register(ledger)
    with ledger._store.write() as connection:
        act(connection, guards(connection.dialect.name))
    with pytest.raises(VerificationFailed) as failed:
        ledger.verify()
    return str(failed.value)


def test_a_weaker_condition_is_seen(ledger):
    def weaken(connection, made):
        replace(connection, UPDATE, made[UPDATE][0].replace("NOT (", "NOT (OLD.spent >= 0 OR ", 1))

    assert f"guard={UPDATE}: is not the one that was made" in seen(ledger, weaken)


def test_a_body_that_refuses_nothing_is_seen(ledger):
    def empty(connection, made):
        text = made[DELETE][0]
        if connection.dialect.name == "postgresql":
            text = text.replace("FOR EACH ROW ", "FOR EACH ROW WHEN (false) ")
        else:
            text = text[: text.index("BEGIN")] + "BEGIN SELECT 1; END"
        replace(connection, DELETE, text)

    assert f"guard={DELETE}: is not the one that was made" in seen(ledger, empty)


def test_a_trigger_that_does_not_belong_is_seen(ledger):
    def add(connection, made):
        connection.execute(sql(made[UPDATE][0].replace(UPDATE, "another")))

    assert "trigger=another: does not belong to a ledger" in seen(ledger, add)


@pytest.mark.parametrize("database", [name for name in DATABASES if name == "postgresql"])
@pytest.mark.parametrize(
    ("act", "said"),
    [
        (f"ALTER TABLE {POPULATIONS} DISABLE TRIGGER {UPDATE}", f"guard={UPDATE}: missing"),
        (f"ALTER TABLE {POPULATIONS} ENABLE REPLICA TRIGGER {UPDATE}", f"guard={UPDATE}: missing"),
        (
            (
                "CREATE OR REPLACE FUNCTION adumbra_refuse() RETURNS trigger LANGUAGE plpgsql "
                "AS $$BEGIN RETURN NEW; END$$"
            ),
            "guard=adumbra_refuse: is not the one that was made; no table is guarded",
        ),
    ],
)
def test_what_only_postgresql_can_do_is_seen(database, tmp_path, act, said):
    with create_ledger(new_location(database, tmp_path)) as ledger:
        assert said in seen(ledger, lambda connection, _: connection.execute(sql(act)))
