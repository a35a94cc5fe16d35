"""reserve -> draw -> seal -> publish -> commit, and every wrong order, on every database."""

import os
import shutil
from pathlib import Path

import pytest

from adumbra.errors import InvalidInput, LedgerError, VerificationFailed
from adumbra.privacy.ledger import State, open_ledger, tree_digest
from adumbra.privacy.ledger.protocol import moved
from support.ledger import ask, register, reserve, run, stage


def _seal(ledger, entry, folder):
    staged = stage(folder)
    ledger.seal(entry, staged=staged, digest=tree_digest(staged))


FILE_SYSTEMS = Path("/dev/shm"), Path("/var/tmp")  # noqa: S108  nothing is written there
STEPS = {
    "draw": lambda ledger, entry, folder: ledger.draw(entry, ("rows",)),
    "seal": _seal,
    "publish": lambda ledger, entry, folder: ledger.publish(entry, folder / "elsewhere"),
    "commit": lambda ledger, entry, folder: ledger.commit(entry),
    "void": lambda ledger, entry, folder: ledger.void(entry, "because"),
}
LEGAL = {
    State.RESERVED: ("draw", "void"),
    State.DRAWN: ("seal",),
    State.SEALED: ("publish",),
    State.PUBLISHING: ("commit",),
    State.PUBLISHED: (),
    State.VOID: (),
}
UNTIL = {
    State.DRAWN: "draw",
    State.SEALED: "seal",
    State.PUBLISHING: "publish",
    State.PUBLISHED: "commit",
}


def _at(ledger, folder, state):
    entry = reserve(ledger)
    if state is State.VOID:
        ledger.void(entry, "because")
    elif state in UNTIL:
        run(ledger, folder, entry, UNTIL[state])
    return entry


def test_the_whole_way(ledger, location, tmp_path):
    register(ledger)
    entry = reserve(ledger)
    grant = ledger.draw(entry, ("rows", "matrix"))
    assert (grant.entry_id, grant.guarantee, grant.purposes) == (entry, ask(0.1), ("rows", "matrix"))
    assert grant.ledger_head == ledger.head().hash
    staged = stage(tmp_path, b"bytes")
    ledger.seal(entry, staged=staged, digest=tree_digest(staged))
    ledger.publish(entry, tmp_path / "out")
    assert not staged.exists()
    assert (tmp_path / "out" / "data" / "rows.bin").read_bytes() == b"bytes"
    ledger.commit(entry)
    found = ledger.show("people")[0].entries[0]
    assert (found.state, found.is_stranded, found.epsilon) == (State.PUBLISHED, False, 0.1)
    assert found.digest == tree_digest(tmp_path / "out")
    with open_ledger(location) as again:
        assert again.verify() == ledger.verify()
        assert again.head() == ledger.head()


@pytest.mark.parametrize("state", list(State))
def test_every_other_step_is_refused_and_leaves_no_trace(ledger, tmp_path, state):
    register(ledger)
    for step, act in STEPS.items():
        if step in LEGAL[state]:
            continue
        entry = _at(ledger, tmp_path, state)
        spent, head = ledger.show("people")[0].spent_units, ledger.head()
        shutil.rmtree(tmp_path / "elsewhere", ignore_errors=True)
        with pytest.raises(LedgerError):
            act(ledger, entry, tmp_path)
        assert ledger.show("people")[0].spent_units == spent
        assert ledger.head() == head
        if state is not State.VOID:
            ledger.raise_cap(
                "people", ledger.show("people")[0].population.epsilon + 1, "more room for the test"
            )
    ledger.verify()


def test_the_refusal_says_where_it_stands(ledger, tmp_path):
    register(ledger)
    entry = _at(ledger, tmp_path, State.DRAWN)
    with pytest.raises(
        LedgerError, match="is drawn, must be reserved to become drawn; its noise is never drawn again"
    ):
        ledger.draw(entry, ("rows",))
    with pytest.raises(InvalidInput, match="entry=none: not in this ledger"):
        ledger.draw("none", ("rows",))


@pytest.mark.parametrize("purposes", [(), ("",), ("a", "a")])
def test_a_draw_declares_its_purposes(ledger, purposes):
    register(ledger)
    entry = reserve(ledger)
    with pytest.raises(InvalidInput, match="purposes"):
        ledger.draw(entry, purposes)
    ledger.draw(entry, ("rows",))  # the mistake above did not use the draw up


def test_void_returns_the_charge_once(ledger):
    register(ledger)
    entry = reserve(ledger, epsilon=0.4)
    ledger.void(entry, "typed the wrong number")
    statement = ledger.show("people")[0]
    assert (statement.spent, statement.left, statement.more_like_last) == (0.0, 1.0, None)
    assert statement.entries[0].state is State.VOID
    with pytest.raises(LedgerError, match="is void"):
        ledger.void(entry, "again")
    assert ledger.show("people")[0].spent == 0.0


def test_stranded_entries_are_listed_with_a_remedy(ledger, tmp_path):
    register(ledger, epsilon=10.0)
    for state in State:
        _at(ledger, tmp_path, state)
    stranded = {entry.state: entry.remedy for entry in ledger.show("people")[0].stranded}
    assert set(stranded) == {State.RESERVED, State.DRAWN, State.SEALED, State.PUBLISHING}
    assert stranded[State.RESERVED] == "nothing was drawn yet; `adumbra ledger void` returns its charge"


def test_an_empty_digest_is_refused(ledger, tmp_path):
    register(ledger)
    entry = _at(ledger, tmp_path, State.DRAWN)
    with pytest.raises(InvalidInput, match="digest"):
        ledger.seal(entry, staged=stage(tmp_path), digest="")


def test_publishing_never_overwrites(ledger, tmp_path):
    register(ledger)
    entry = _at(ledger, tmp_path, State.SEALED)
    (tmp_path / "taken").mkdir()
    with pytest.raises(LedgerError, match="exists already"):
        ledger.publish(entry, tmp_path / "taken")
    with pytest.raises(LedgerError, match="its folder does not exist"):
        ledger.publish(entry, tmp_path / "no" / "such")
    ledger.publish(entry, tmp_path / "free")
    ledger.commit(entry)


def test_publishing_what_is_gone_is_refused(ledger, tmp_path):
    register(ledger)
    entry = _at(ledger, tmp_path, State.SEALED)
    staged = Path(ledger.show("people")[0].entries[0].staged)
    staged.rename(tmp_path / "aside")
    with pytest.raises(LedgerError, match="the sealed folder is not there; put it back and resume"):
        ledger.publish(entry, tmp_path / "out")
    staged.symlink_to(tmp_path / "aside")
    with pytest.raises(LedgerError, match="the sealed folder is not there"):
        ledger.publish(entry, tmp_path / "out")
    staged.unlink()
    (tmp_path / "aside").rename(staged)
    ledger.resume(entry, tmp_path / "out", digest_of=tree_digest)


def test_publishing_across_file_systems_is_refused(ledger, tmp_path):
    other = next(place for place in FILE_SYSTEMS if place.stat().st_dev != tmp_path.stat().st_dev)
    register(ledger)
    entry = _at(ledger, tmp_path, State.SEALED)
    with pytest.raises(LedgerError, match="stage beside the target"):
        ledger.publish(entry, other / f"adumbra-{os.getpid()}")


def test_commit_needs_the_bytes_in_their_place(ledger, tmp_path):
    register(ledger)
    entry = reserve(ledger)
    target = run(ledger, tmp_path, entry, "publish")
    target.rename(tmp_path / "gone")
    with pytest.raises(LedgerError, match="resume the entry first"):
        ledger.commit(entry)


class TestResume:
    """After a crash the same bytes are published; nothing is drawn again."""

    def test_sealed(self, ledger, tmp_path):
        register(ledger)
        entry = _at(ledger, tmp_path, State.SEALED)
        with pytest.raises(LedgerError, match="sealed without a target"):
            ledger.resume(entry, digest_of=tree_digest)
        assert ledger.resume(entry, tmp_path / "out", digest_of=tree_digest) == tmp_path / "out"
        assert tree_digest(tmp_path / "out") == ledger.show("people")[0].entries[0].digest
        assert ledger.resume(entry, digest_of=tree_digest) == tmp_path / "out"  # idempotent
        ledger.verify()

    def test_recorded_but_not_moved(self, ledger, tmp_path, monkeypatch):
        register(ledger)
        entry = _at(ledger, tmp_path, State.SEALED)
        monkeypatch.setattr(Path, "rename", _no_rename)
        with pytest.raises(LedgerError, match="could not be moved there; free the place and resume"):
            ledger.publish(entry, tmp_path / "out")
        monkeypatch.undo()
        assert ledger.show("people")[0].stranded[0].state is State.PUBLISHING
        ledger.resume(entry, digest_of=tree_digest)
        assert (tmp_path / "out" / "card.json").exists()
        assert not ledger.show("people")[0].stranded

    def test_a_taken_place_is_left_for_another(self, ledger, tmp_path, monkeypatch):
        register(ledger)
        entry = _at(ledger, tmp_path, State.SEALED)
        monkeypatch.setattr(Path, "rename", _no_rename)
        with pytest.raises(LedgerError, match="could not be moved there"):
            ledger.publish(entry, tmp_path / "out")
        monkeypatch.undo()
        (tmp_path / "out").mkdir()
        with pytest.raises(LedgerError, match="exists already; free the place, or resume with --target"):
            ledger.resume(entry, digest_of=tree_digest)
        place = ledger.resume(entry, tmp_path / "elsewhere", digest_of=tree_digest)
        assert place == tmp_path / "elsewhere"
        assert not list((tmp_path / "out").iterdir())
        (found,) = ledger.show("people")[0].entries
        assert (found.state, Path(found.target)) == (State.PUBLISHED, place)
        ledger.verify()

    def test_a_folder_that_somebody_moved_is_found_where_he_says(self, ledger, tmp_path):
        register(ledger)
        entry = reserve(ledger)
        moved_to = run(ledger, tmp_path, entry, "publish").rename(tmp_path / "archive")
        assert ledger.resume(entry, moved_to, digest_of=tree_digest) == moved_to
        (found,) = ledger.show("people")[0].entries
        assert (found.state, Path(found.target)) == (State.PUBLISHED, moved_to)
        ledger.verify()

    def test_moved_but_not_committed(self, ledger, tmp_path):
        register(ledger)
        entry = reserve(ledger)
        target = run(ledger, tmp_path, entry, "publish")
        assert ledger.resume(entry, digest_of=tree_digest) == target
        assert not ledger.show("people")[0].stranded

    def test_altered_bytes_are_never_published(self, ledger, tmp_path):
        register(ledger)
        entry = _at(ledger, tmp_path, State.SEALED)
        staged = Path(ledger.show("people")[0].entries[0].staged)
        (staged / "data" / "rows.bin").write_bytes(b"other bytes")
        with pytest.raises(VerificationFailed, match="not those that were sealed"):
            ledger.resume(entry, tmp_path / "out", digest_of=tree_digest)
        assert not (tmp_path / "out").exists()

    def test_lost_bytes_are_told(self, ledger, tmp_path):
        register(ledger)
        entry = _at(ledger, tmp_path, State.SEALED)
        shutil.rmtree(ledger.show("people")[0].entries[0].staged)
        with pytest.raises(VerificationFailed, match="must be a folder"):
            ledger.resume(entry, tmp_path / "out", digest_of=tree_digest)

    def test_another_digest_function(self, ledger, tmp_path):
        register(ledger)
        entry = _at(ledger, tmp_path, State.DRAWN)
        ledger.seal(entry, staged=stage(tmp_path), digest="by-card")
        ledger.resume(entry, tmp_path / "out", digest_of=lambda folder: "by-card")
        assert not ledger.show("people")[0].stranded

    @pytest.mark.parametrize("state", [State.RESERVED, State.DRAWN, State.VOID])
    def test_nothing_sealed(self, ledger, tmp_path, state):
        register(ledger)
        entry = _at(ledger, tmp_path, state)
        with pytest.raises(LedgerError, match=f"is {state}, nothing is sealed"):
            ledger.resume(entry, tmp_path / "out", digest_of=tree_digest)


def _no_rename(self, target):
    raise FileNotFoundError(self)


def test_where_an_entry_stands_is_told_even_if_the_ledger_cannot_be_asked(ledger):
    register(ledger)
    entry = reserve(ledger)
    remedy = "nothing was drawn yet; `adumbra ledger void` returns its charge"
    assert ledger.standing(entry) == f"entry={entry}: is reserved and stays charged; {remedy}"
    unknown = "entry=other: stays charged; `adumbra ledger show` prints its state"
    assert ledger.standing("other") == unknown


def test_a_note_that_only_quotes_a_retarget_moves_nothing(ledger):
    register(ledger)
    with ledger._acts() as chain:
        chain.note("later", quoted={"kind": "retarget"})
    with ledger._store.read() as connection:
        assert moved(connection) == {}
