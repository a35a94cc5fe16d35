"""Operators: each right with each act on each database, and what a forger can do and who sees it."""

import base64
import json
import sqlite3
from contextlib import closing

import pytest

from adumbra.attestation.events import (
    RIGHTS,
    Approval,
    NotPermitted,
    act_message,
    canonical,
    head_holds,
    head_message,
    link_hash,
)
from adumbra.errors import InvalidInput, LedgerError, VerificationFailed
from adumbra.privacy.ledger import create_ledger, open_ledger, verify_export
from adumbra.privacy.ledger.log import read_export
from adumbra.privacy.ledger.operated import public_key_of
from support.ledger import DATABASES, new_location, register, reserve, run, server
from support.operators import as_operator, enrol_each, grant_logins, signer

NEEDED = {
    "register": "register",
    "link": "register",
    "declare": "register",
    "raise": "raise",
    "change-delta": "raise",
    "release": "release",
    "withdraw": "release",
    "evaluate": "release",
    "void": "void",
    "show": "read",
    "verify": "read",
    "head": "read",
    "export": "read",
}


class Book:
    """A used ledger with one operator per right; `new` makes what an act needs."""

    def __init__(self, location, folder):
        self.location, self.folder, self.count = location, folder, 0
        with create_ledger(location) as ledger:
            enrol_each(ledger)
        self.addresses = dict.fromkeys((*RIGHTS, "all"), location)
        with self.opened("all") as ledger:
            register(ledger, epsilon=40.0, delta=1e-6)
            self.published = reserve(ledger, epsilon=0.1, delta=1e-6)
            run(ledger, folder, self.published)

    def opened(self, name):
        return open_ledger(self.addresses[name], operator=signer(name))

    def fresh(self):
        """Two populations without charges, and a reservation."""
        self.count += 1
        names = f"p{self.count}", f"q{self.count}"
        with self.opened("all") as ledger:
            for name in names:
                register(ledger, name, epsilon=1.0, delta=1e-6)
            return (*names, reserve(ledger, epsilon=0.1, delta=1e-6))

    def tried(self, ledger, act):
        """What was said against it; nothing, if it was done."""
        try:
            self.act(ledger, act)
        except LedgerError as error:
            return str(error)
        return ""

    def act(self, ledger, act):
        needs = act in ("link", "declare", "raise", "change-delta", "void")
        one, other, entry = self.fresh() if needs else ("people", "people", self.published)
        self.count += 1
        number = self.count
        acts = {
            "register": lambda: register(ledger, f"n{number}", delta=1e-6),
            "link": lambda: ledger.link(one, other, "the same people"),
            "declare": lambda: ledger.declare_different(one, other, "other people"),
            "raise": lambda: ledger.raise_cap(one, 2.0, "a study"),
            "change-delta": lambda: ledger.change_delta(one, 1e-7, "a study"),
            "release": lambda: run(ledger, self.folder, reserve(ledger, epsilon=0.1, delta=1e-6)),
            "withdraw": lambda: ledger.withdraw(self.published, "a wrong bound"),
            "evaluate": lambda: ledger.note_evaluation([self.published]),
            "void": lambda: ledger.void(entry, "a mistake"),
            "show": lambda: ledger.show(one),
            "verify": ledger.verify,
            "head": ledger.head,
            "export": lambda: ledger.export(self.folder / f"{number}.jsonl"),
        }
        acts[act]()


MARKS = ("declare", "withdraw", "evaluate")  # events alone: no table to grant, so a signature decides
CELLS = [(database, "signature") for database in DATABASES]
CELLS += [(name, how) for name in DATABASES if name == "postgresql" for how in ("grants", "both")]


@pytest.mark.parametrize(("database", "how"), CELLS)
def test_the_matrix_of_rights_and_acts(database, how, tmp_path, record_property):
    """Each right tries each act: with a key that has it alone, a login that has it alone, and both."""
    book = Book(new_location(database, tmp_path), tmp_path)
    logins = {}
    if how != "signature":
        with open_ledger(book.location) as ledger:
            logins = grant_logins(book.location, ledger, f"matrix_{how}")
    wrong, tried = [], 0
    for right in sorted(RIGHTS, key="release".__eq__):  # a release is withdrawn once
        who = "all" if how == "grants" else right
        with open_ledger(logins.get(right, book.location), operator=signer(who)) as ledger:
            for act, needed in NEEDED.items():
                allowed = needed in (right, "read")  # each right reads
                if how == "grants" and act in MARKS:
                    continue
                tried += 1
                said = book.tried(ledger, act)
                refused = "right" in said or "the database refused the act" in said
                if (said == "") != allowed or refused == allowed:
                    wrong.append((right, act, said))
    assert wrong == []
    with open_ledger(book.location) as ledger:
        ledger.verify()
    record_property(
        "figure", f"operators: {tried} cells of rights x acts on {database} by {how}: 0 wrong"
    )


def test_nobody_acts_without_a_key(location, tmp_path):
    book = Book(location, tmp_path)
    with open_ledger(location) as ledger:  # the owner's file or role, no operator's key
        for act, needed in NEEDED.items():
            if act in ("show", "verify", "head"):
                book.act(ledger, act)
                continue
            with pytest.raises(NotPermitted, match="signed by operators"):
                book.act(ledger, act)
            assert needed
    with pytest.raises(NotPermitted, match="is not enrolled in this ledger"):
        open_ledger(location, operator=signer("a stranger"))


def test_the_log_names_keys_and_no_people(location, tmp_path):
    Book(location, tmp_path)
    out = tmp_path / "log.jsonl"
    with as_operator(location, "read") as ledger:
        ledger.export(out)
        assert ledger.operators()[signer("void").public.fingerprint()] == ("void",)
    text = out.read_text()
    assert "the one who may" not in text
    events = [json.loads(line)["event"] for line in text.splitlines()[1:]]
    assert events[0]["acts"] == "not signed by operators until one is enrolled"
    signed = [one["operator"] for one in events if one["kind"] not in ("init", "enrol")]
    assert set(signed) == {signer("all").public.fingerprint()}
    assert len(signed) == len(events) - 7
    assert verify_export(out) == len(events)
    assert read_export(out).head.enrolment.operator == signer("read").public.fingerprint()


def test_a_ledger_without_operators_says_so_and_stays_as_it_was(ledger):
    register(ledger)
    assert ledger.operators() == {}
    assert "act" not in ledger.head().to_dict()
    assert ledger.verify().events == 2
    with pytest.raises(InvalidInput, match="has no operators; enrol two first"):
        ledger.require_two(2.0, "care")
    with pytest.raises(InvalidInput, match="choose among register, raise"):
        ledger.enrol(signer("x").public, ["everything"])


def test_heads_are_signed_by_the_operator_who_acted(location, tmp_path):
    book = Book(location, tmp_path)
    with book.opened("all") as ledger:
        head = ledger.head().to_dict()
        proof = ledger.proof(book.published)
        made = ledger.published_head()
    assert head_holds(head)
    assert proof.head.enrolment.operator == signer("all").public.fingerprint()
    assert type(made).parse(made.to_bytes()).head == made.head
    for place, value in {
        "sequence": head["sequence"] + 1,
        "hash": "0" * 64,
        "ledger": "another",
        "signature": "0" * 128,
        "public_key": "0" * 64,
        "act": {**head["act"], "previous": "0" * 64},
        "enrolment": {**head["enrolment"], "previous": "0" * 64},
    }.items():
        assert not head_holds({**head, place: value}), place
    assert not head_holds({name: head[name] for name in head if name != "act"})
    other = json.loads(head["act"]["event"])
    other["kind"] = "commit" if other["kind"] != "commit" else "void"
    body = canonical(other).decode()
    forged = {**head["act"], "event": body}
    assert not head_holds({**head, "act": forged, "hash": link_hash(body.encode(), forged["previous"])})


def test_a_dismissed_operator_is_out_and_what_was_signed_stays(location, tmp_path):
    book = Book(location, tmp_path)
    with open_ledger(location) as owner:
        owner.dismiss(signer("release").public.fingerprint(), "left")
        owner.verify()
        with pytest.raises(InvalidInput, match="is not enrolled"):
            owner.dismiss("SHA256:x", "left")
    with pytest.raises(NotPermitted):
        book.opened("release")
    with book.opened("all") as ledger:
        held = ledger.head()
        run(ledger, tmp_path, reserve(ledger, epsilon=0.1, delta=1e-6))
    with open_ledger(location) as owner:
        owner.dismiss(signer("all").public.fingerprint(), "left")
        assert owner.verify(held.to_dict()).card
        with pytest.raises(
            NotPermitted
        ):  # nobody is left, and the ledger does not go back to its own key
            reserve(owner, epsilon=0.1, delta=1e-6)
        owner.enrol(signer("release").public, ["release"])
    with book.opened("release") as ledger:
        reserve(ledger, epsilon=0.1, delta=1e-6)
        ledger.verify()


@pytest.fixture
def two(location):
    with create_ledger(location) as ledger:
        for name in ("one", "other"):
            ledger.enrol(signer(name).public, ["register", "raise"])
        ledger.enrol(signer("reader").public, ["read"])
        ledger.require_two(2.0, "care")
        assert ledger.threshold() == 2.0
    with as_operator(location, "one") as ledger:
        register(ledger, epsilon=1.0)
    return location


def test_a_high_cap_needs_two(two):
    with as_operator(two, "other") as other:
        approval = other.approve("people", 3.0, "a study")
    with as_operator(two, "one") as one:
        with pytest.raises(
            InvalidInput, match="is not needed for this cap"
        ):  # nothing unchecked is kept
            one.raise_cap("people", 2.0, "one is enough", approval=approval)
        one.raise_cap("people", 2.0, "one is enough")
        with pytest.raises(NotPermitted, match="needs two operators; another one runs"):
            one.raise_cap("people", 3.0, "a study")
        with pytest.raises(NotPermitted, match="for another raise"):  # from 1.0, which is past
            one.raise_cap("people", 3.0, "a study", approval=approval)
        with pytest.raises(NotPermitted, match="then raise it"):
            register(one, "more", epsilon=5.0)
        with pytest.raises(NotPermitted, match="then raise it"):
            one.change_delta("people", 1e-6, "x", epsilon=2.5)
    with as_operator(two, "other") as other:
        approval = Approval.parse(other.approve("people", 3.0, "a study").to_bytes())
        with pytest.raises(NotPermitted, match="both signatures are by one key"):
            other.raise_cap("people", 3.0, "a study", approval=approval)
    with as_operator(two, "one") as one:
        for epsilon, reason in ((4.0, "a study"), (3.0, "another study")):
            with pytest.raises(NotPermitted, match="for another raise"):
                one.raise_cap("people", epsilon, reason, approval=approval)
        one.raise_cap("people", 3.0, "a study", approval=approval)
        assert one.show("people")[0].population.epsilon == 3.0
        one.verify()
        with pytest.raises(NotPermitted, match="for another raise"):  # an approval is used up
            one.raise_cap("people", 3.5, "a study", approval=approval)
    with (
        as_operator(two, "reader") as reader,
        pytest.raises(NotPermitted, match="needs the right raise"),
    ):
        reader.approve("people", 9.0, "x")


def test_an_approval_of_another_ledger_is_none(two, tmp_path):
    elsewhere = new_location("sqlite", tmp_path)
    with create_ledger(elsewhere) as ledger:
        ledger.enrol(signer("other").public, ["register", "raise"])
    with as_operator(elsewhere, "other") as ledger:
        register(ledger, epsilon=1.0)
        approval = ledger.approve("people", 3.0, "a study")
    with as_operator(two, "one") as one, pytest.raises(InvalidInput, match="is for another ledger"):
        one.raise_cap("people", 3.0, "a study", approval=approval)
    with as_operator(two, "one") as one:
        renamed = Approval(
            **{**{n: getattr(approval, n) for n in approval.__slots__}, "ledger": one._id}
        )
        with pytest.raises(NotPermitted, match="for another raise, or not signed"):
            one.raise_cap("people", 3.0, "a study", approval=renamed)
    for raw in (b"{}", b"[]", b"x"):
        with pytest.raises(InvalidInput, match="is not a file that"):
            Approval.parse(raw)


# What somebody can do who writes to the file, with the ledger's own key in hand


class Forger:
    """Rewrites a SQLite ledger: guards off, events changed, hashes and the ledger's signatures anew."""

    def __init__(self, path):
        self.path = path

    def rewrite(self, change, drop_rows=False):
        with open_ledger(self.path) as ledger:
            key, ledger_id = ledger._signing_key, ledger._id
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            made = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in made:
                connection.execute(f"DROP TRIGGER {name}")
            for log in ("public", "private"):
                rows = connection.execute(
                    "SELECT body FROM adumbra_events WHERE log = ? ORDER BY sequence", (log,)
                ).fetchall()
                kept = change(log, [json.loads(body) for (body,) in rows], key, ledger_id)
                connection.execute("DELETE FROM adumbra_events WHERE log = ?", (log,))
                previous = "0" * 64
                for number, event in enumerate(kept, start=1):
                    event["sequence"] = number
                    body = canonical(event).decode()
                    digest = link_hash(body.encode(), previous)
                    connection.execute(
                        "INSERT INTO adumbra_events VALUES (?, ?, ?, ?)", (log, number, body, digest)
                    )
                    previous = digest
                signed = kept[-1].get("signature") if "operator" in kept[-1] else None
                message = head_message(ledger_id, log, len(kept), previous)
                connection.execute(
                    "UPDATE adumbra_heads SET sequence = ?, hash = ?, signature = ? WHERE log = ?",
                    (len(kept), previous, signed or key.sign(message).hex(), log),
                )
            if drop_rows:
                connection.execute("DELETE FROM adumbra_keys WHERE name LIKE 'roll:%'")
            connection.execute("UPDATE adumbra_populations SET cap = 9000000000000, epsilon = '9.0'")
            for _, text in made:
                connection.execute(text)


def forged_raise(sequence_of=None, **more):
    def change(log, events, key, ledger):
        about = {"about": len(events) + 1, "by": "root"} if log == "private" else {}
        facts = {"population": "people", "before": "1.0", "epsilon": "9.0", "cap": 9 * 10**12}
        facts |= {"given_up": 0, "reason": "because"}
        event = {"day": "2026-11-16", "kind": "raise-cap", "log": log, "sequence": len(events) + 1}
        event |= about or facts
        return [*events, {**event, **more}]

    return change


@pytest.fixture
def forger(tmp_path):
    path = tmp_path / "l.db"
    with create_ledger(path) as ledger:
        ledger.enrol(signer("one").public, ["register", "raise"])
        ledger.enrol(signer("seller").public, ["release"])
    with as_operator(path, "one") as ledger:
        register(ledger, epsilon=1.0)
        ledger.verify()
    return Forger(path)


def test_a_forged_raise_without_a_signature_is_seen(forger):
    forger.rewrite(forged_raise())
    with (
        open_ledger(forger.path) as ledger,
        pytest.raises(VerificationFailed, match="signed by operators"),
    ):
        ledger.verify()


def test_a_forged_raise_in_an_operators_name_is_seen(forger):
    name = signer("one").public.fingerprint()
    with as_operator(forger.path, "one") as ledger:
        true = json.loads(ledger.head().act["event"])
    # a signature that was made for another event of this ledger, replayed
    forger.rewrite(forged_raise(operator=name, signature=true["signature"]))
    with (
        open_ledger(forger.path) as ledger,
        pytest.raises(VerificationFailed, match="not signed by somebody"),
    ):
        ledger.verify()


def test_an_operator_who_signs_what_is_not_theirs_is_seen(forger):
    """The seller has a true key, the file, and no right to raise."""
    by = signer("seller")

    def change(log, events, key, ledger):
        made = forged_raise(operator=by.public.fingerprint())(log, events, key, ledger)
        previous = "0" * 64
        for event in made[:-1]:
            previous = link_hash(canonical(event), previous)
        signed = by.sign(act_message(ledger, previous, made[-1]), "adumbra-ledger").signed
        made[-1]["signature"] = base64.b64encode(signed).decode()
        return made

    forger.rewrite(change)
    with (
        open_ledger(forger.path) as ledger,
        pytest.raises(VerificationFailed, match="needs the right raise"),
    ):
        ledger.verify()


@pytest.mark.parametrize("rows", [False, True])
def test_a_ledger_without_its_enrolments_is_another_history(forger, rows):
    """Downgraded: the enrolments are cut out, and the ledger's key signs for everybody again."""
    with open_ledger(forger.path) as ledger:
        kept = ledger.head().to_dict()

    def change(log, events, key, ledger):
        left = [one for one in events if one["kind"] != "enrol"]
        plain = [{n: one[n] for n in one if n not in ("operator", "signature")} for one in left]
        numbered = [
            {**one, "about": n} if "about" in one else one for n, one in enumerate(plain, start=1)
        ]
        return forged_raise()(log, numbered, key, ledger)

    forger.rewrite(change, drop_rows=rows)
    if rows:  # a whole new history, which no ledger can tell of itself: whoever kept a head can
        with open_ledger(forger.path) as ledger:
            ledger.verify()
            with pytest.raises(VerificationFailed, match="rolled back|rewritten"):
                ledger.verify(kept)
    else:
        wrong = pytest.raises(VerificationFailed, match="keys: who is enrolled")
        with wrong, open_ledger(forger.path) as ledger:
            ledger.verify()


def test_a_second_first_event_needs_a_signature_too(forger):
    def change(log, events, key, ledger):
        about = {"about": len(events) + 1, "by": "root"} if log == "private" else {}
        event = {"day": "2026-11-16", "kind": "init", "log": log, "sequence": len(events) + 1, **about}
        return [*events, event]

    forger.rewrite(change)
    with open_ledger(forger.path) as ledger, pytest.raises(VerificationFailed, match="public event 5"):
        ledger.verify()


def test_a_head_of_an_operator_whose_enrolment_is_gone_is_not_shown(forger):
    with closing(sqlite3.connect(forger.path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER adumbra_keys_delete")
        name = signer("one").public.fingerprint()
        gone = connection.execute(
            "DELETE FROM adumbra_keys WHERE name LIKE 'roll:%' AND value LIKE ?", (f"%{name}%",)
        )
        assert gone.rowcount == 1
    with open_ledger(forger.path) as ledger, pytest.raises(LedgerError, match="is not enrolled; run"):
        ledger.head()


def test_rows_that_enrol_a_stranger_are_worth_nothing(forger):
    with closing(sqlite3.connect(forger.path, isolation_level=None)) as connection:
        ((value,),) = connection.execute(
            "SELECT value FROM adumbra_keys WHERE name LIKE 'roll:%' ORDER BY name LIMIT 1"
        ).fetchall()
        kept = json.loads(value)
        event = json.loads(kept["event"])
        stranger = signer("stranger").public
        event |= {"operator": stranger.fingerprint(), "key": stranger.line()}
        kept["event"] = canonical(event).decode()
        connection.execute(
            "INSERT INTO adumbra_keys VALUES ('roll:000000000099', ?)", (canonical(kept).decode(),)
        )
    with pytest.raises(VerificationFailed, match="who is enrolled was changed"):
        as_operator(forger.path, "stranger")


def test_an_act_of_another_ledger_cannot_be_replayed(forger, tmp_path):
    """The same operator raises the same cap of a ledger of their own; the event is copied over."""
    with create_ledger(tmp_path / "other.db") as other:
        other.enrol(signer("one").public, ["register", "raise"])
    with as_operator(tmp_path / "other.db", "one") as other:
        register(other, epsilon=1.0)
        other.raise_cap("people", 9.0, "because")
        copied = json.loads(other.head().act["event"])
    forger.rewrite(forged_raise(operator=copied["operator"], signature=copied["signature"]))
    with (
        open_ledger(forger.path) as ledger,
        pytest.raises(VerificationFailed, match="not signed by somebody"),
    ):
        ledger.verify()


def test_an_export_with_a_forged_act_is_refused(forger, tmp_path):
    out = tmp_path / "log.jsonl"
    with as_operator(forger.path, "one") as ledger:
        ledger.export(out)
    assert verify_export(out) == 4
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    lines[-1]["event"]["epsilon"] = "99.0"
    previous = lines[-2]["hash"]
    lines[-1]["hash"] = link_hash(canonical(lines[-1]["event"]), previous)
    lines[0]["hash"] = lines[-1]["hash"]
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(VerificationFailed, match="event 4: is not signed by somebody"):
        verify_export(out)


@pytest.mark.parametrize("database", [name for name in DATABASES if name == "postgresql"])
def test_the_database_itself_binds_a_releaser(database, tmp_path):
    """With any program: no cap, no charge taken back, no key, no enrolment, no trigger."""
    location = new_location(database, tmp_path)
    book = Book(location, tmp_path)
    with open_ledger(location) as ledger:
        addresses = grant_logins(location, ledger, "bound")
    schema = location.rpartition("%3D")[2]

    columns = "unit, neighbours, currency, epsilon, delta, cap"

    def may(login, statement):
        try:
            server()._run(
                "psql", "-h", str(server().root), "-U", f"bound_login_{login}", "-v", "ON_ERROR_STOP=1",
                "-qtAc", f"SET search_path = {schema}; {statement}", "postgres",
            )  # fmt: skip
        except Exception:  # noqa: BLE001 - psql says no
            return False
        return True

    def seen(login, statement):
        return server()._run(
            "psql", "-h", str(server().root), "-U", f"bound_login_{login}", "-qtAc",
            f"SET search_path = {schema}; {statement}", "postgres",
        ).split()  # fmt: skip

    for statement in (
        "UPDATE adumbra_populations SET cap = cap + 1",
        "UPDATE adumbra_populations SET epsilon = '99'",
        "UPDATE adumbra_populations SET spent = 0",
        f"INSERT INTO adumbra_populations SELECT 'x', {columns}, 0, '', '', '' FROM adumbra_populations",  # noqa: S608 - a constant
        "UPDATE adumbra_entries SET state = 'void' WHERE state = 'reserved'",
        "INSERT INTO adumbra_keys VALUES ('roll:000000000099', 'x')",
        "DELETE FROM adumbra_events",
        "DROP TRIGGER adumbra_populations_update ON adumbra_populations",
        "ALTER TABLE adumbra_keys DISABLE ROW LEVEL SECURITY",
        "CREATE FUNCTION adumbra_may_void() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    ):
        book.fresh()  # so that there is a reservation and a charge
        assert not may("release", statement), statement
        assert not may("read", statement), statement
    assert may("raise", "UPDATE adumbra_populations SET cap = cap + 1 WHERE false")
    assert may(
        "void", "UPDATE adumbra_populations SET spent = spent - 1 WHERE name = 'people'; ROLLBACK"
    )
    names = "SELECT name FROM adumbra_keys WHERE name NOT LIKE 'roll:%' ORDER BY name"
    assert seen("release", names) == ["fingerprint_key", "format", "ledger", "public_key"]
    for login in ("read", "register", "raise", "void"):
        assert "signing_key" not in seen(login, "SELECT name FROM adumbra_keys")
        assert "fingerprint_key" not in seen(login, "SELECT name FROM adumbra_keys")
    borrowed = open_ledger(addresses["release"], operator=signer("raise"))
    with borrowed as ledger, pytest.raises(LedgerError, match="this role has no right to it"):
        ledger.raise_cap("people", 50.0, "x")
    for login, why in {"raise": "may not read the ledger's key", "read": "has no right to it"}.items():
        with open_ledger(addresses[login]) as ledger, pytest.raises(LedgerError, match=why):
            ledger.enrol(signer("x").public, ["raise"])


def test_grants_are_for_postgresql(ledger):
    if ledger._store._url.get_backend_name() == "sqlite":
        with pytest.raises(InvalidInput, match="is a SQLite file"):
            ledger.grants()
    else:
        with pytest.raises(InvalidInput, match="prefix="):
            ledger.grants("x; DROP")


def test_a_public_key_is_a_line_or_a_file(tmp_path):
    key = signer("read").public
    path = tmp_path / "key.pub"
    path.write_text(key.line(), encoding="utf-8")
    assert {public_key_of(form) for form in (key, key.line(), path, str(path))} == {key}
    with pytest.raises(InvalidInput, match=r"none.pub: cannot be read; give the .pub file"):
        public_key_of(tmp_path / "none.pub")
