"""The tripwire: order-free, keyed, incremental; it flags the same rows under a new name, no others."""

import hashlib

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.numerics import ROW_BITS
from adumbra.privacy.fingerprint import SKETCH
from adumbra.privacy.ledger import Fingerprint, Population
from adumbra.privacy.ledger.tripwire import ALERT, shared
from adumbra.relations import Neighbours, Unit
from support.ledger import ask, register, reserve

KEY = b"k" * 32
WIDTH = 12


def table(seed: int, rows: int = 1500, width: int = WIDTH):
    """Quantised rows, as `BoundedRows.units` holds them."""
    top = 2**ROW_BITS
    return np.random.default_rng(seed).integers(-top, top + 1, (rows, width)).astype(np.float64)


def fingerprint(rows, key: bytes = KEY) -> Fingerprint:
    made = Fingerprint(key, rows.shape[1])
    made.update(rows)
    return made


def naive(rows, key: bytes = KEY):
    """The same in Python integers, row by row."""
    width, lanes, word = rows.shape[1], 2, 2**64
    seed = hashlib.sha256(b"adumbra-fingerprint/1" + key + width.to_bytes(8, "big")).digest()
    count = lanes * width + lanes * lanes + lanes
    raw = hashlib.shake_256(seed).digest(8 * count)
    words = [int.from_bytes(raw[8 * i : 8 * i + 8], "big") for i in range(count)]
    power = 1 << (((2**53 >> ROW_BITS) // width).bit_length() - 1)
    matrix = [[words[j * lanes + lane] % power for lane in range(lanes)] for j in range(width)]
    mixer = [
        [words[lanes * width + lane * lanes + t] | 1 for t in range(lanes)] for lane in range(lanes)
    ]
    offset = words[-lanes:]
    total, hashes = [0] * lanes, set()
    for row in rows:
        sums = [
            sum(int(value) * matrix[j][lane] for j, value in enumerate(row)) for lane in range(lanes)
        ]
        for t in range(lanes):
            z = (offset[t] + sum(sums[lane] * mixer[lane][t] for lane in range(lanes))) % word
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % word
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB % word
            z ^= z >> 31
            total[t] = (total[t] + z) % word
            if t == 0:
                hashes.add(z)
    digest = "".join(f"{value:016x}" for value in total) + f"{len(rows):016x}"
    return digest, [f"{value:016x}" for value in sorted(hashes)[:SKETCH]]


@pytest.mark.parametrize("width", [1, 3, 500])
def test_equals_the_naive_computation(width):
    rows = table(1, rows=400, width=width)
    made = fingerprint(rows)
    assert (made.digest(), made.sketch()) == naive(rows)


def test_order_and_blocks_do_not_matter():
    rows = table(2)
    whole = fingerprint(rows)
    shuffled = np.random.default_rng(0).permutation(rows)
    parts = Fingerprint(KEY, WIDTH)
    for piece in np.array_split(shuffled, 21):
        parts.update(piece)
    parts.update(rows[:0])
    assert (parts.digest(), parts.sketch()) == (whole.digest(), whole.sketch())


def test_it_is_a_multiset_and_keyed():
    rows = table(3)
    assert fingerprint(np.vstack((rows, rows[:1]))).digest() != fingerprint(rows).digest()
    assert fingerprint(rows, b"x" * 32).digest() != fingerprint(rows).digest()
    assert not set(fingerprint(rows, b"x" * 32).sketch()) & set(fingerprint(rows).sketch())
    changed = rows.copy()
    changed[7, 3] += 1
    assert fingerprint(changed).digest() != fingerprint(rows).digest()


def test_widths_out_of_range():
    with pytest.raises(InvalidInput, match="at least 1"):
        Fingerprint(KEY, 0)
    with pytest.raises(InvalidInput, match="too wide"):
        Fingerprint(KEY, 2**31)


def disguise(rows, kind: int, rng):
    """The same people under another name, as somebody in a hurry would do it."""
    rows = rng.permutation(rows)
    match kind % 5:
        case 0:
            return rows
        case 1:
            return rows[: int(len(rows) * rng.uniform(0.1, 0.9))]
        case 2:
            return np.vstack((rows, table(int(rng.integers(2**40)), rows=len(rows))))
        case 3:
            return np.repeat(rows, 2, axis=0)
        case _:
            return np.vstack(
                (rows[: len(rows) // 3], table(int(rng.integers(2**40)), rows=len(rows) // 2))
            )


def test_disguises_are_flagged_and_strangers_are_not(record_property):
    rng = np.random.default_rng(99)
    flagged = alarms = 0
    for case in range(200):
        rows = table(1000 + case)
        one = fingerprint(rows).sketch()
        flagged += shared(one, fingerprint(disguise(rows, case, rng)).sketch()) >= ALERT
        alarms += shared(one, fingerprint(table(5000 + case)).sketch()) >= ALERT
    assert flagged >= 199
    assert alarms == 0
    record_property("figure", f"tripwire: {flagged} of 200 disguises flagged, {alarms} of 200 strangers")


def test_the_share_is_about_right():
    rows = table(4, rows=20_000)
    for part in (0.05, 0.2, 1.0):
        other = np.vstack((rows[: int(20_000 * part)], table(5, rows=int(20_000 * (1 - part)))))
        # a sketch of 256: the estimate of a share s has a standard deviation near sqrt(2 s / 256)
        assert abs(shared(fingerprint(rows).sketch(), fingerprint(other).sketch()) - part) < 0.3
    small = fingerprint(rows[:10]).sketch()
    assert shared(small, small) == 1.0
    assert shared(small, []) == 0.0
    assert shared(small, fingerprint(rows[5:12]).sketch()) == 5 / 7


class TestInTheLedger:
    """Recorded beside the account, shown to the steward, settled by a recorded act."""

    def spend(self, ledger, name, rows):
        entry = reserve(ledger, name)
        made = ledger.fingerprint(WIDTH)
        made.update(rows)
        ledger.record_fingerprint(entry, made)

    def overlaps(self, ledger, name="a"):
        return ledger.show(name)[0].overlaps

    def test_the_same_rows_are_shown_until_settled(self, ledger):
        for name in ("a", "b", "c", "d"):
            register(ledger, name)
        rows = table(6)
        self.spend(ledger, "a", rows)
        self.spend(ledger, "a", rows)
        before = ledger.head()
        self.spend(ledger, "b", rows[::-1])
        self.spend(ledger, "c", np.vstack((rows[:750], table(7, rows=750))))
        self.spend(ledger, "d", table(8))
        found = self.overlaps(ledger)
        assert [(one.population, one.other, one.is_same) for one in found] == [
            ("a", "b", True),
            ("a", "c", False),
        ]
        assert found[0].sentence() == (
            "populations a and b hold the same rows; if they are the same people, run `adumbra ledger "
            "link a --to b`; if not, say so with `adumbra ledger declare a b`"
        )
        assert "% of the smaller table's rows" in found[1].sentence()
        assert self.overlaps(ledger, "d") == ()
        ledger.link("b", "a", "the same cohort under a new name")
        ledger.declare_different("c", "a", "twins in two registers")
        ledger.declare_different("c", "b", "twins in two registers")
        assert self.overlaps(ledger) == ()
        assert before.sequence < ledger.head().sequence
        ledger.verify()

    def test_the_advice_can_be_followed(self, ledger):
        rows = table(6)
        register(ledger, "a", 1.0, delta=1e-6)
        register(ledger, "b", 1.0)
        ledger.register(Population("c", Unit.ROW, Neighbours.ADD_REMOVE, 1.0, 0.0))
        self.spend(ledger, "a", rows)
        self.spend(ledger, "b", rows)
        entry = ledger.reserve(
            "c", ask(0.1, neighbours=Neighbours.ADD_REMOVE), request={}, source_pin=""
        )
        made = ledger.fingerprint(WIDTH)
        made.update(rows)
        ledger.record_fingerprint(entry, made)
        pure, unlike = (found.sentence() for found in self.overlaps(ledger))
        assert "run `adumbra ledger link b --to a`" in pure  # a, with a delta, cannot be b's child
        assert "link" not in unlike
        assert "one counts row/replace-one, the other row/add-remove, so they cannot share" in unlike
        assert "spend from one of them only, and quote what both have spent" in unlike
        ledger.raise_cap("a", 50.0, "two releases of the same people")
        ledger.link("b", "a", "as advised")
        assert len(self.overlaps(ledger)) == 1

    def test_the_public_chain_does_not_know_of_it(self, ledger):
        register(ledger, "a")
        entry = reserve(ledger, "a")
        head = ledger.head()
        made = ledger.fingerprint(WIDTH)
        made.update(table(9))
        ledger.record_fingerprint(entry, made)
        assert ledger.head() == head
        with pytest.raises(InvalidInput, match="not in this ledger"):
            ledger.record_fingerprint("nobody", made)
