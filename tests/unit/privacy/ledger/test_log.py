"""Notices in the public log, and the log as a whole; on every database."""

import json

import pytest

from adumbra.errors import InvalidInput, LedgerError
from adumbra.privacy.ledger import State, open_ledger
from support.ledger import register, reserve, run


@pytest.fixture
def published(ledger, tmp_path):
    """Two published releases of one population."""
    register(ledger)
    entries = [reserve(ledger), reserve(ledger)]
    for entry in entries:
        run(ledger, tmp_path, entry)
    return entries


def notices(ledger):
    return [json.loads(text) for text in ledger.whole_log().notices]


def test_a_withdrawn_release_stays_charged_and_is_withdrawn_once(ledger, published):
    first, second = published
    before = ledger.show("people")[0].spent_units
    ledger.withdraw(first, "a wrong bound")
    (notice,) = notices(ledger)
    assert (notice["kind"], notice["entry"], notice["reason"]) == ("withdraw", first, "a wrong bound")
    (statement,) = ledger.show("people")
    assert statement.spent_units == before
    assert {entry.state for entry in statement.entries} == {State.PUBLISHED}
    with pytest.raises(InvalidInput, match="there is a notice on it already .withdraw"):
        ledger.supersede(first, second, "again")
    ledger.verify()


def test_a_superseded_release_names_its_successor(ledger, published):
    first, second = published
    with pytest.raises(InvalidInput, match="is the release itself"):
        ledger.supersede(first, first, "by itself")
    ledger.supersede(first, second, "a finer schema")
    (notice,) = notices(ledger)
    digests = {entry.id: entry.digest for entry in ledger.show("people")[0].entries}
    assert (notice["by"], notice["by_digest"]) == (second, digests[second])
    assert notice["digest"] == digests[first]
    ledger.verify()  # rebuilds the state from the events


def test_only_published_releases_get_notices(ledger, published, tmp_path):
    sealed = reserve(ledger)
    with pytest.raises(LedgerError, match="is not sealed; there is nothing to prove yet"):
        ledger.proof(sealed)
    run(ledger, tmp_path, sealed, "seal")
    before = ledger.head()
    for act in (
        lambda: ledger.withdraw(sealed, "x"),
        lambda: ledger.supersede(published[0], sealed, "x"),
        lambda: ledger.note_evaluation([sealed]),
    ):
        with pytest.raises(InvalidInput, match="is sealed; this needs a published release"):
            act()
    assert ledger.head() == before
    ledger.note_evaluation(published)
    assert ledger.evaluated("people") == tuple(published)


def test_the_whole_log_continues_every_earlier_head(ledger, location, published):
    early = ledger.published_head().head
    ledger.withdraw(published[0], "a wrong bound")
    whole = ledger.whole_log()
    assert whole.head.size == early.size + 1
    assert whole.continues(early)
    assert whole.head.root == ledger.published_head().head.root
    with open_ledger(location) as other:
        assert other.whole_log().head.root == whole.head.root
