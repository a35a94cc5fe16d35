"""The ledger's events as a reader checks them."""

from adumbra.attestation.events import link


def test_a_link_shows_its_hash_alone():
    """A fingerprint's event holds the number of rows: a traceback with locals must not show it."""
    event = {"log": "private", "sequence": 3, "kind": "fingerprint", "rows": 987_654}
    made = link("a" * 32, event, "0" * 64)
    assert b"987654" in made.body
    assert repr(made) == f"Link(hash={made.hash!r})"
