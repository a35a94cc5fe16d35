"""PostgreSQL behind a network that freezes or loses replies; addresses that show nothing."""

import re
import time

import pytest
from sqlalchemy import text as sql

from adumbra.errors import InvalidInput, LedgerError
from adumbra.privacy.ledger import State, create_ledger, open_ledger, store
from adumbra.privacy.ledger.store import ReplyLost, parse_location
from support.ledger import DATABASES, new_location, register, reserve, run, server
from support.ledger_network import Network

POSTGRES = [name for name in DATABASES if name == "postgresql"]


@pytest.fixture(params=POSTGRES)
def direct(request, tmp_path):
    """A ledger's own address."""
    location = new_location(request.param, tmp_path)
    with create_ledger(location) as ledger:
        register(ledger)
    return location


@pytest.fixture
def network(direct, tmp_path):
    made = Network(server().root, tmp_path)
    yield made
    made.is_frozen = False
    made.close()


@pytest.fixture
def through(network, direct):
    return network.address(direct, server().root)


def test_every_lost_reply_is_resolved_by_looking(through, network, tmp_path):
    with open_ledger(through) as ledger:
        network.losing = "reply"
        entry = reserve(ledger)
        target = run(ledger, tmp_path, entry)
        assert network.lost == 5  # reserve, draw, seal, publish, commit
        network.losing = None
        (found,) = ledger.show("people")[0].entries
        assert (found.id, found.state, found.target) == (entry, State.PUBLISHED, str(target))
        ledger.verify()


def test_a_lost_request_is_known_not_to_be_written(through, network, tmp_path):
    with open_ledger(through) as ledger:
        network.losing = "request"
        start = time.monotonic()
        with pytest.raises(LedgerError, match="busy or unreachable; try again") as failed:
            reserve(ledger)
        assert not isinstance(failed.value, ReplyLost)
        assert time.monotonic() - start < 30  # the transaction left behind was ended, not waited for
        network.losing = None
        assert ledger.show("people")[0].entries == ()
        entry = reserve(ledger)
        network.losing = "request"
        with pytest.raises(LedgerError):
            ledger.draw(entry, ("rows",))
        network.losing = None
        assert ledger.draw(entry, ("rows",)).guarantee.epsilon == 0.1
        ledger.verify()


@pytest.mark.parametrize("lost", ["reply", "request"])
def test_where_no_server_answers_the_entry_is_named(through, direct, network, monkeypatch, lost):
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    with open_ledger(through) as ledger:
        network.losing = lost
        lose = network._lose

        def lose_and_stop(*arguments):
            network.is_down = True
            lose(*arguments)

        network._lose = lose_and_stop
        with pytest.raises(ReplyLost) as failed:
            reserve(ledger)
    said = re.fullmatch(
        r"entry=(\S+): may be charged\nledger=.*: the reply .* look with `adumbra ledger show`.*",
        str(failed.value),
    )
    with open_ledger(direct) as ledger:
        found = [entry.id for entry in ledger.show("people")[0].entries]
        assert found == ([said.group(1)] if lost == "reply" else [])
        if lost == "reply":
            ledger.void(said.group(1), "the reply was lost")
        reserve(ledger)
        ledger.verify()


def freeze_in(ledger, network) -> None:
    """Take the write lock, then let the network freeze in the middle of the transaction."""

    def act() -> None:
        with ledger._acts() as chain:
            network.is_frozen = True
            chain.append("private", "note")

    with pytest.raises(LedgerError):
        act()


def test_a_frozen_network_ends_and_blocks_nobody(through, direct, network, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 2)
    with open_ledger(through + "&connect_timeout=2") as ledger, open_ledger(direct) as other:
        start = time.monotonic()
        freeze_in(ledger, network)
        assert time.monotonic() - start < 30
        monkeypatch.setattr(store, "BUSY_SECONDS", 30)
        with open_ledger(direct) as patient:
            reserve(patient)  # the server gave the lock back although the network is frozen
        with pytest.raises(LedgerError):
            ledger.show()
        network.is_frozen = False
        assert len(ledger.show("people")[0].entries) == 1
        other.verify()


def test_a_server_that_does_not_take_connections_is_given_up(through, network):
    network.is_frozen = True
    start = time.monotonic()
    with pytest.raises(LedgerError, match="busy or unreachable"):
        open_ledger(through + "&connect_timeout=2")
    assert time.monotonic() - start < 20


def test_every_wait_has_a_limit(direct):
    names = (
        "lock_timeout",
        "statement_timeout",
        "idle_in_transaction_session_timeout",
        "synchronous_commit",
    )
    with open_ledger(direct) as ledger, ledger.snapshot() as connection:
        shown = [connection.execute(sql(f"SHOW {name}")).scalar() for name in names]
        assert shown == ["1min", "2min", "2min", "on"]
        driver = connection.connection.dbapi_connection
        told = driver.info.get_parameters()
        for name in ("connect_timeout", "keepalives_idle", "keepalives_count", "tcp_user_timeout"):
            assert int(told[name]) > 0


ADDRESSES = (
    "postgresql://u:hunter2@127.0.0.1:1/x",
    "postgresql://u@127.0.0.1:1/x?password=hunter2",
    "postgresql://127.0.0.1:1/x?user=u&password=hunter2&sslpassword=hunter2&sslmode=disable",
    "postgresql://u:hunter2%2F@127.0.0.1:1/x",
    "postgresql+psycopg://u:hunter2@127.0.0.1:1/x",
    "postgresql+psycopg2://u:hunter2@127.0.0.1:1/x",
    "postgresql://u:hunter2@127.0.0.1:hunter2/x",
    "postgresql://u:hunter2@127.0.0.1:99999/x",
    "postgresql://u@127.0.0.1/x?port=1x&password=hunter2",
    "postgresql://u@127.0.0.1/x?host=a:b&password=hunter2",
    "postgresql://u@127.0.0.1:1/x?hunter2=1",
    "postgres://u:hunter2@127.0.0.1/x",
    "postgresql:/u:hunter2@127.0.0.1/x",
    "postgresql+psycopg:u:hunter2@127.0.0.1/x",
    "host=127.0.0.1 user=u password=hunter2",
    "hunter2://u:hunter2@127.0.0.1/x",
    "://u:hunter2@h/x",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_form_of_an_address_shows_its_password(address):
    for act in (open_ledger, create_ledger):
        with pytest.raises((InvalidInput, LedgerError)) as failed:
            act(address)
        assert "hunter2" not in str(failed.value)
        assert str(failed.value).startswith("ledger")


@pytest.mark.parametrize("port", ["abc", "0", "99999", "-1", "1.5"])
@pytest.mark.parametrize("form", ["postgresql://u@h:{}/x", "postgresql://u@h/x?port={}"])
def test_a_bad_port_is_said_to_be_one(form, port):
    with pytest.raises(InvalidInput, match=r"port must be a number from 1 to 65535|not a path and not"):
        parse_location(form.format(port))


def test_an_option_that_is_none_is_said_to_be_so():
    with pytest.raises(InvalidInput, match="has an option that PostgreSQL does not know"):
        parse_location("postgresql://u@h/x?conect_timeout=3")
    assert parse_location("postgresql://u@h:5433/x?connect_timeout=3").port == 5433
