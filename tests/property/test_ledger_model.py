"""The ledger against a model of a page: random acts in random order, on every database.

Laws: `spent` is the sum of the live charges and falls only by a void; what is published was reserved and
drawn before; one id has one draw and one byte string; what the cap does not allow is refused.
"""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from adumbra.errors import AdumbraError, BudgetRefused, InvalidInput, LedgerError
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import Population, create_ledger, open_ledger, tree_digest
from adumbra.privacy.ledger.model import populations
from support.ledger import DATABASES, FULL, ROW, ask, new_location, stage

GOAL, EXAMPLES, STEPS = (100_000, 60, 200) if FULL else (250, 6, 50)  # rounds of examples until the goal
taken: Counter[str] = Counter()  # steps, by database
NAMES = ("a", "b", "c")
# Prices in 10^-12 units, written down by hand: the model does not share the ledger's arithmetic.
EPSILONS = {0.1: 10**11, 0.3: 3 * 10**11, 0.7: 7 * 10**11, 1e-9: 1000, 2.5: 25 * 10**11}
HOSTILE = (
    float("nan"),
    float("inf"),
    -float("inf"),
    -1.0,
    -1e-9,
    -0.0,
    0.0,
    5e-324,
    2.2e-308,
    1e308,
    1e4 * 1.1,
)
ORDER = ("reserved", "drawn", "sealed", "publishing", "published")


def wrong(value, *, forged):
    """A guarantee that should not be; a forged one has passed its own checks with another number."""
    if not forged:
        return PrivacyGuarantee(unit=ROW[0], neighbours=ROW[1], pure_epsilon=value)
    guarantee = ask(0.1)
    object.__setattr__(guarantee, "pure_epsilon", value)
    return guarantee


class LedgerMachine(RuleBasedStateMachine):
    database = "sqlite"

    @initialize(caps=st.tuples(*[st.sampled_from([0.7, 1.0, 7.0])] * 3), child=st.booleans())
    def begin(self, caps, child):
        self.folder = Path(tempfile.mkdtemp(prefix="adumbra-model-"))
        self.location = new_location(self.database, self.folder)
        self.ledger = create_ledger(self.location)
        self.cap, self.spent, self.parent, self.entries, self.digests = {}, {}, {}, {}, {}
        for name, epsilon in zip(NAMES, caps, strict=True):
            parent = "a" if child and name == "b" else None
            self.ledger.register(Population(name, *ROW, epsilon, 0.0, parent=parent))
            self.cap[name], self.spent[name] = round(epsilon * 10**12), 0
            self.parent[name] = parent

    def teardown(self):
        if hasattr(self, "ledger"):
            self.ledger.verify()
            self.ledger.close()
            shutil.rmtree(self.folder)

    def above(self, name):
        return [name] if self.parent[name] is None else [name, *self.above(self.parent[name])]

    def pick(self, number, *states):
        ids = sorted(entry for entry, found in self.entries.items() if found["state"] in states)
        return ids[number % len(ids)] if ids else None

    @rule(name=st.sampled_from(NAMES), epsilon=st.sampled_from(sorted(EPSILONS)))
    def reserve(self, name, epsilon):
        units = EPSILONS[epsilon]
        fits = all(self.spent[each] + units <= self.cap[each] for each in self.above(name))
        if not fits:
            with pytest.raises(BudgetRefused) as refused:
                self.ledger.reserve(name, ask(epsilon), request={}, source_pin="")
            least = min(self.cap[each] - self.spent[each] for each in self.above(name))
            assert refused.value.left == (least / 10**12 if least >= 1000 else 0.0)
            return
        entry = self.ledger.reserve(name, ask(epsilon), request={}, source_pin="")
        assert entry not in self.entries
        self.entries[entry] = {"state": "reserved", "charges": dict.fromkeys(self.above(name), units)}
        for each in self.above(name):
            self.spent[each] += units

    @rule(name=st.sampled_from(NAMES), value=st.sampled_from(HOSTILE), forged=st.booleans())
    def hostile(self, name, value, forged):
        with pytest.raises((InvalidInput, BudgetRefused)):
            self.ledger.reserve(name, wrong(value, forged=forged), request={}, source_pin="")

    @rule(number=st.integers(0, 50), step=st.sampled_from(["draw", "seal", "publish", "commit", "void"]))
    def step(self, number, step):
        """Any step on any entry: it passes if the model says so, and leaves no trace if not."""
        entry = self.pick(number, *ORDER, "void")
        if entry is None:
            return
        found = self.entries[entry]
        legal = {
            "draw": "reserved",
            "void": "reserved",
            "seal": "drawn",
            "publish": "sealed",
            "commit": "publishing",
        }
        if found["state"] != legal[step]:
            with pytest.raises(LedgerError):
                self.act(entry, step)
            return
        self.act(entry, step)
        after = {
            "draw": "drawn",
            "void": "void",
            "seal": "sealed",
            "publish": "publishing",
            "commit": "published",
        }
        found["state"] = after[step]
        if step == "void":
            for each, units in found["charges"].items():
                self.spent[each] -= units

    def act(self, entry, step):
        if step == "draw":
            grant = self.ledger.draw(entry, ("rows",))
            self.digests[entry] = grant.key("rows").words("x", 4).tobytes()
        elif step == "seal":
            staged = stage(self.folder, self.digests.get(entry, b"none"))
            self.ledger.seal(entry, staged=staged, digest=tree_digest(staged))
        elif step == "publish":
            self.ledger.publish(entry, self.folder / f"out-{entry}")
        elif step == "commit":
            self.ledger.commit(entry)
        else:
            self.ledger.void(entry, "model")

    @rule(number=st.integers(0, 50))
    def resume(self, number):
        entry = self.pick(number, *ORDER)
        if entry is None:
            return
        if self.entries[entry]["state"] in ("reserved", "drawn"):
            with pytest.raises(LedgerError):
                self.ledger.resume(entry, self.folder / f"out-{entry}", digest_of=tree_digest)
            return
        target = self.ledger.resume(entry, self.folder / f"out-{entry}", digest_of=tree_digest)
        assert (target / "data" / "rows.bin").read_bytes() == self.digests[entry]
        self.entries[entry]["state"] = "published"

    @rule(name=st.sampled_from(NAMES), more=st.sampled_from([0.1, 1.0, -0.1]))
    def raise_cap(self, name, more):
        epsilon = round(self.cap_epsilon(name) + more, 6)
        if more < 0 or epsilon > 50:
            with pytest.raises(AdumbraError):
                self.ledger.raise_cap(name, epsilon if more < 0 else 2000.0, "model")
            return
        full = self.spent[name] == self.cap[name]
        given = getattr(self, "given", {})
        given[name] = given.get(name, 0) + full
        self.given = given
        self.ledger.raise_cap(name, epsilon, "model")
        self.cap[name] = round(epsilon * 10**12) - given[name]

    def cap_epsilon(self, name):
        return next(each.epsilon for each in self.ledger.populations() if each.name == name)

    @rule(name=st.sampled_from(NAMES), parent=st.sampled_from(NAMES))
    def link(self, name, parent):
        live = [
            found
            for found in self.entries.values()
            if name in found["charges"] and found["state"] != "void"
        ]
        total = sum(found["charges"][name] for found in live)
        circle = name in self.above(parent)
        fits = all(self.spent[each] + total <= self.cap[each] for each in self.above(parent))
        if self.parent[name] is not None or circle or not fits:
            with pytest.raises(AdumbraError):
                self.ledger.link(name, parent, "model")
            return
        self.ledger.link(name, parent, "model")
        for found in live:
            for each in self.above(parent):
                found["charges"][each] = found["charges"][name]
                self.spent[each] += found["charges"][name]
        self.parent[name] = parent

    @rule()
    def look_with_other_eyes(self):
        with open_ledger(self.location) as other:
            other.verify()
            stranded = {entry.id for each in other.show() for entry in each.stranded}
        assert stranded == {
            entry for entry, found in self.entries.items() if found["state"] not in ("published", "void")
        }

    @precondition(lambda self: hasattr(self, "ledger"))
    @invariant()
    def sums_agree(self):
        taken[self.database] += 1
        with self.ledger._store.read() as connection:
            rows = connection.execute(select(populations)).all()
        assert {row.name: row.spent for row in rows} == self.spent
        assert {row.name: row.cap for row in rows} == self.cap
        assert all(0 <= row.spent <= row.cap for row in rows)
        published = {entry for entry, found in self.entries.items() if found["state"] == "published"}
        assert published <= self.digests.keys()
        assert len(set(self.digests.values())) == len(self.digests)


@pytest.mark.parametrize("database", DATABASES)
def test_the_ledger_follows_its_model(database, record_property):
    machine = type("Machine", (LedgerMachine,), {"database": database})
    while taken[database] < GOAL:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                database=None,
            ),
        )
    record_property(
        "figure",
        f"{database}: {taken[database]} model-based steps, every one as the model says",
    )
