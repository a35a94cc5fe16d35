"""`verify`, on every database: what it accepts and every kind of fault it names."""

import json
from contextlib import suppress

import pytest
from sqlalchemy import LargeBinary, delete, insert, select, type_coerce, update
from sqlalchemy import text as sql

from adumbra.attestation.events import canonical, head_message, link_hash
from adumbra.errors import LedgerError, VerificationFailed
from adumbra.privacy.ledger import check, create_ledger, open_ledger
from adumbra.privacy.ledger.chain import GENESIS, Chain
from adumbra.privacy.ledger.guards import guards
from adumbra.privacy.ledger.model import charges, entries, events, heads, keys, metadata, populations
from support.ledger import DATABASES, new_location, register, reserve, run


def use(ledger, tmp_path):
    """Every kind of event."""
    register(ledger, "all", 10.0)
    register(ledger, "people", 5.0, parent="all")
    register(ledger, "again", 1.0)
    for until in ("draw", "seal", "publish", "commit"):
        run(ledger, tmp_path, reserve(ledger), until)
    ledger.void(reserve(ledger, "again"), "a mistake")
    reserve(ledger, "again", 0.3)
    ledger.raise_cap("again", 2.0, "agreed")
    ledger.link("again", "all", "the same people")
    ledger.declare_different("people", "again", "other wards")
    fingerprint = ledger.fingerprint(2)
    ledger.record_fingerprint(ledger.show("people")[0].entries[0].id, fingerprint)
    return ledger


@pytest.fixture
def used(ledger, tmp_path):
    """A ledger with every kind of event."""
    return use(ledger, tmp_path)


@pytest.fixture(scope="module", params=DATABASES)
def kept(request, tmp_path_factory):
    """The same, shared: what is done to it must be undone."""
    folder = tmp_path_factory.mktemp("kept")
    with create_ledger(new_location(request.param, folder)) as made:
        yield use(made, folder)
        made.verify()


class Undo(Exception):
    """Ends a transaction that must leave no trace."""


def faults_if(ledger, act) -> str:
    """What `verify` would say if somebody had done this; nothing stays."""
    said = ""
    with suppress(Undo), ledger._store.write() as connection:
        unguarded(connection, act)
        try:
            check.check(connection)
        except VerificationFailed as failed:
            said = str(failed)
        raise Undo
    return said


def faults_of(ledger, card=None) -> str:
    with pytest.raises(VerificationFailed) as failed:
        ledger.verify(card)
    assert failed.value.exit_code == 4
    return str(failed.value)


def without_guards(ledger, act) -> None:
    """Do what only an administrator of the database could do."""
    with ledger._store.write() as connection:
        unguarded(connection, act)


def unguarded(connection, act) -> None:
    """An act without triggers, which are back afterwards."""
    postgres = connection.dialect.name == "postgresql"
    kept = []
    for table in metadata.sorted_tables:
        if postgres:
            connection.execute(sql(f"ALTER TABLE {table.name} DISABLE TRIGGER USER"))
            continue
        rows = connection.execute(
            sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = :name"),
            {"name": table.name},
        ).all()
        kept += rows
        for row in rows:
            connection.execute(sql(f"DROP TRIGGER {row.name}"))
    act(connection)
    for table in metadata.sorted_tables if postgres else ():
        connection.execute(sql(f"ALTER TABLE {table.name} ENABLE TRIGGER USER"))
    for row in kept:
        connection.exec_driver_sql(row.sql)


def test_a_used_ledger_is_whole(used):
    verified = used.verify()
    assert (verified.populations, verified.entries, verified.card) == (3, 6, False)
    assert verified.sentence().startswith(
        f"{verified.events} public and {verified.private_events} private events"
    )
    assert verified.private_events == verified.events + 1  # one companion each, and a fingerprint


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_rows_cannot_be_deleted_or_rewritten(kept, table):
    with pytest.raises(LedgerError, match="refused the act"), kept._store.write() as connection:
        connection.execute(delete(table))
    free = (*table.primary_key, *(table.c[name] for name in ("cap", "spent") if name in table.c))
    column = next(column for column in table.c if column not in free)
    value = 7 if column.type.python_type is int else "rewritten"
    with pytest.raises(LedgerError, match="refused the act"), kept._store.write() as connection:
        connection.execute(update(table).values({column: value}))
    kept.verify()


def test_spent_cannot_pass_the_cap_or_fall_below_nothing(used):
    for wrong in (-1, 10**14):
        with pytest.raises(LedgerError, match="refused"), used._store.write() as connection:
            connection.execute(update(populations).values(spent=wrong))
    with pytest.raises(LedgerError, match="refused"), used._store.write() as connection:
        connection.execute(update(populations).values(cap=populations.c.cap - 1))
    with pytest.raises(LedgerError, match="refused"), used._store.write() as connection:
        connection.execute(
            insert(charges).values(entry=used.show()[0].entries[0].id, population="again", units=0)
        )


def test_a_state_cannot_go_back(used):
    with pytest.raises(LedgerError, match="refused"), used._store.write() as connection:
        connection.execute(update(entries).where(entries.c.state == "drawn").values(state="reserved"))


def test_a_missing_guard_is_named(used):
    name = min(guards("sqlite"))
    with used._store.write() as connection:
        on = f" ON {name.rpartition('_')[0]}" if connection.dialect.name == "postgresql" else ""
        connection.execute(sql(f"DROP TRIGGER {name}{on}"))
    assert f"guard={name}: missing" in faults_of(used)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            update(populations).where(populations.c.name == "all").values(spent=0),
            "adumbra_populations all",
        ),
        (
            update(populations).where(populations.c.name == "all").values(owner="x"),
            "adumbra_populations all",
        ),
        (
            update(entries).where(entries.c.state == "drawn").values(state="reserved"),
            "does not agree with the log",
        ),
        (delete(charges).where(charges.c.population == "people"), "adumbra_charges"),
        (update(heads).where(heads.c.log == "public").values(sequence=1), "public head: is not the end"),
        (
            update(heads).where(heads.c.log == "private").values(signature="00" * 64),
            "private head: its signature",
        ),
        (
            update(heads).where(heads.c.log == "private").values(signature="zz"),
            "private head: its signature",
        ),
        (delete(heads).where(heads.c.log == "private"), "private head: is not the end"),
        (delete(events).where(events.c.log == "public"), "public head: is not the end"),
        (
            update(events).where(events.c.sequence == 3).values(body="{}"),
            "public event 3: the chain is broken",
        ),
        (delete(events).where(events.c.sequence == 3), "public event 4: the chain is broken"),
        (
            update(keys).where(keys.c.name == "signing_key").values(value="11" * 32),
            "not those of the first event",
        ),
        (update(keys).where(keys.c.name == "signing_key").values(value="no"), "keys: not readable"),
        (
            update(keys).where(keys.c.name == "fingerprint_key").values(value="11" * 32),
            "not those of the first",
        ),
        (
            update(keys).where(keys.c.name == "public_key").values(value="11" * 32),
            "its signature does not hold",
        ),
        (delete(keys).where(keys.c.name == "fingerprint_key"), "not the five"),
    ],
)
def test_tampering_is_named(kept, change, message):
    assert message in faults_if(kept, lambda connection: connection.execute(change))


@pytest.mark.parametrize("table", [heads, keys], ids=["heads", "keys"])
def test_another_spelling_of_the_same_bytes_is_a_change(used, table):
    column = table.c.signature if table is heads else table.c.value
    with used._store.read() as connection:
        rows = connection.execute(select(table)).mappings().all()
    for row in rows:
        right, wrong = row[column.name], row[column.name].upper()
        if wrong != right:
            put(used, table, row, {column: wrong})
            assert faults_of(used)
            put(used, table, row, {column: right})
    used.verify()


def put(ledger, table, row, values) -> None:
    change = update(table).where(*(key == row[key.name] for key in table.primary_key)).values(values)
    without_guards(ledger, lambda connection: connection.execute(change))


def rewrite(ledger, log, change) -> None:
    without_guards(ledger, forge(ledger, log, change))


def forge(ledger, log, change):
    """Forge a whole chain, as someone who holds the signing key could."""

    def act(connection):
        rows = connection.execute(
            events.select().where(events.c.log == log).order_by(events.c.sequence)
        ).all()
        bodies = change([json.loads(row.body) for row in rows])
        connection.execute(delete(events).where(events.c.log == log))
        previous = GENESIS
        for sequence, body in enumerate(bodies, start=1):
            text = canonical(body)
            previous = link_hash(text, previous)
            row = {"log": log, "sequence": sequence, "body": text.decode(), "hash": previous}
            connection.execute(insert(events).values(**row))
        message = head_message(ledger._id, log, len(bodies), previous)
        values = {
            "sequence": len(bodies),
            "hash": previous,
            "signature": ledger._signing_key.sign(message).hex(),
        }
        connection.execute(update(heads).where(heads.c.log == log).values(**values))

    return act


def changed(which, nth=0, **fields):
    def change(bodies):
        chosen = [body for body in bodies if body["kind"] == which][nth]
        chosen |= {
            key: value(chosen[key]) if callable(value) else value for key, value in fields.items()
        }
        return bodies

    return change


@pytest.mark.parametrize(
    ("log", "change"),
    [
        ("public", changed("reserve", charges=lambda paid: dict.fromkeys(paid, 1))),
        ("public", changed("reserve", charges=lambda paid: {"people": paid["people"]})),
        ("public", changed("reserve", guarantee=lambda value: value | {"epsilon": 9.0})),
        ("public", changed("reserve", guarantee=lambda value: value | {"neighbours": "add-remove"})),
        ("public", changed("reserve", guarantee=lambda value: {})),
        ("public", changed("reserve", nth=1, entry="someone-000009")),
        ("public", changed("reserve", population="nobody")),
        ("public", changed("draw", entry="nobody")),
        ("public", changed("seal", kind="draw")),
        ("public", changed("commit", digest="00")),
        ("public", changed("register", cap=10**15)),
        ("public", changed("register", nth=1, population="all")),
        ("public", changed("raise-cap", cap=10**11)),
        ("public", changed("link", charges=[])),
        ("public", changed("link", parent="again")),
        ("public", changed("link", population="people")),
        ("public", changed("declare-different", kind="something-else")),
        ("public", changed("void", log="private")),
        ("public", changed("init", public_key="11" * 32)),
        ("public", lambda bodies: bodies[:-1]),
        ("private", changed("reserve", source_pin="other")),
        ("private", changed("register", owner="other")),
        ("private", changed("draw", about=1000)),
        ("private", changed("draw", operator="of nobody")),
        ("private", changed("draw", kind="seal")),
        ("private", changed("init", fingerprint_key_hash="")),
    ],
)
def test_even_a_signed_forgery_must_tell_a_possible_story(kept, log, change):
    assert faults_if(kept, forge(kept, log, change))


def test_a_forged_link_may_not_make_a_circle(ledger):
    for name, parent in (("a", None), ("b", "a"), ("c", None)):
        register(ledger, name, 1.0, parent=parent)
    ledger.link("c", "b", "x")

    def change(bodies):
        next(body for body in bodies if body["kind"] == "link").update(population="a", parent="b")
        return bodies

    rewrite(ledger, "public", change)
    assert "could not have happened" in faults_of(ledger)


def test_a_broken_sqlite_page_is_told(tmp_path):
    path = tmp_path / "ledger.db"
    with create_ledger(path) as ledger:
        register(ledger)
        reserve(ledger)
    whole = path.read_bytes()
    told = []
    for end in range(
        2 * 4096, len(whole), 4096
    ):  # the last cell of each page: rows, and entries of an index
        path.write_bytes(whole[: end - 1] + bytes([whole[end - 1] ^ 1]) + whole[end:])
        try:
            with open_ledger(path) as ledger:
                ledger.verify()
        except (VerificationFailed, LedgerError) as failed:
            told.append(str(failed))
    assert any("integrity check failed" in fault for fault in told)


class TestAgainstACard:
    """A card remembers the head: a ledger that lost its past cannot hide it."""

    def card(self, ledger):
        entry = ledger.show("people")[0].entries[0].id
        return {"ledger": {"entry": entry, "head": ledger.head().to_dict()}}

    def test_an_earlier_head_is_part_of_the_history(self, used):
        card = self.card(used)
        reserve(used, "people")
        assert used.verify(card).card
        assert "part of this history" in used.verify(card).sentence()

    def test_a_roll_back_shows(self, ledger, tmp_path):
        register(ledger, epsilon=5.0)
        entry = reserve(ledger)
        ledger.draw(entry, ("rows",))
        reserve(ledger)
        card = {"ledger": {"entry": entry, "head": ledger.head().to_dict()}}

        def roll_back(connection):
            connection.execute(delete(charges).where(charges.c.entry != entry))
            connection.execute(delete(entries).where(entries.c.id != entry))
            connection.execute(update(populations).values(spent=10**11))

        without_guards(ledger, roll_back)
        for log in ("public", "private"):
            rewrite(ledger, log, lambda bodies: bodies[:-1])
        assert ledger.verify().entries == 1  # the forged ledger is whole in itself
        assert "it was rolled back" in faults_of(ledger, card)

    def test_a_rewritten_past_shows(self, used):
        card = self.card(used)
        rewrite(used, "public", changed("reserve", request={"method": "other"}))
        used.verify()
        assert "the history was rewritten" in faults_of(used, card)

    def test_the_digest_of_the_card_is_compared_when_given(self, used):
        card = self.card(used)
        entry = used.show("people")[0].entries[3]
        card["ledger"]["entry"] = entry.id
        assert used.verify(card, card_digest=entry.digest).card
        with pytest.raises(VerificationFailed, match="sealed with other bytes"):
            used.verify(card, card_digest="00" * 32)

    def test_other_faults(self, used, tmp_path):
        card = self.card(used)
        head = card["ledger"]["head"]
        other = create_ledger(tmp_path / "other.db")
        assert "issued by another ledger" in faults_of(other, card)
        forged = {"ledger": {"entry": card["ledger"]["entry"], "head": head | {"signature": "00" * 64}}}
        assert "signature of its ledger head does not hold" in faults_of(used, forged)
        for broken in ({}, {"ledger": 3}, {"ledger": {"entry": "x", "head": head | {"sequence": "x"}}}):
            assert "no readable ledger head" in faults_of(used, broken)
        open_ = reserve(used, "people")
        assert f"entry {open_} was not drawn" in faults_of(
            used, {"ledger": {"entry": open_, "head": head}}
        )


def test_a_chain_is_only_ever_appended_in_order(ledger):
    with ledger._store.write() as connection:
        chain = Chain(connection, ledger._id, ledger._signing_key)
        assert chain.append("public", "declare-different", population="a", other="b") == 2
        assert chain.append("private", "declare-different", about=2, by="x") == 2
        assert chain.sequence("public") == 2
    ledger.verify()
    assert tuple(sorted(check.KEYS)) == check.KEYS


@pytest.mark.parametrize(("table", "column"), [(events, "body"), (heads, "signature")])
def test_what_no_ledger_wrote_is_a_fault_and_is_not_quoted(table, column, tmp_path):
    """SQLite keeps bytes in a column of text; reading them fails in ways of its own."""
    with create_ledger(tmp_path / "ledger.db") as ledger:
        register(ledger)
        change = update(table).values({column: type_coerce(b"my words", LargeBinary)})
        told = faults_if(ledger, lambda connection: connection.execute(change))
    assert told.startswith("tables: hold what no ledger wrote (")
    assert "my words" not in told
