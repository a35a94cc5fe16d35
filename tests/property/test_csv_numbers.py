"""The compiled loop reads numbers of CSV text to the bit, or leaves the text to the usual way."""

import random  # noqa: TID251 - texts of numbers; no released value
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adumbra.data import csv_numbers
from adumbra.data.csv import parse_records
from adumbra.data.csv_numbers import LEAST_POWER, MOST_POWER, plain_table, powers_of_five, uses_loop
from adumbra.data.csv_records import Layout, split_records
from adumbra.data.opening import open_source
from support.data import MIXED, table

TWO = Layout(b",", 2)


def read(texts, layout=TWO, chosen=(0, 1)):
    """The chosen fields of the texts by the loop, or None."""
    rows = [texts[i : i + layout.fields] for i in range(0, len(texts), layout.fields)]
    data = b"".join(layout.delimiter.join(row) + b"\n" for row in rows)
    (records,) = split_records([data], layout)
    return plain_table(records, layout, dict.fromkeys(chosen, True))


def bits(values):
    return np.asarray(values, np.float64).view(np.uint64).tolist()


def same(texts):
    """The loop's numbers are Python's, bit for bit."""
    found = read(texts)
    assert found is not None
    assert bits(found["0"]) == bits([float(text) for text in texts[::2]])
    assert bits(found["1"]) == bits([float(text) for text in texts[1::2]])


def test_the_table_of_powers():
    for q, (high, low) in zip(
        range(LEAST_POWER, MOST_POWER + 1), powers_of_five().tolist(), strict=True
    ):
        value = Fraction((high << 64) + low)
        ratio = value / (Fraction(5) ** q)
        power = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        errors = [abs(ratio / Fraction(2) ** near - 1) for near in (power - 1, power, power + 1)]
        assert high >> 63 == 1
        assert min(errors) <= Fraction(1, 2**127)


def test_many_numbers_in_many_spellings():
    chance = random.Random(5)  # noqa: S311
    texts = []
    while len(texts) < 60_000:
        kind = chance.randrange(6)
        sign = chance.choice(["", "-"])
        if kind == 0:
            text = repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-30, 30))
        elif kind == 1:
            text = f"{chance.gauss(0, 1e3):.{chance.randrange(1, 15)}f}"
        elif kind == 2:
            text = f"{sign}{chance.randrange(10 ** chance.randrange(1, 20))}"
        elif kind == 3:
            text = f"{sign}{'0' * chance.randrange(1, 30)}.{'0' * chance.randrange(30)}"
            text += str(chance.randrange(1, 10**10))
        elif kind == 4:
            whole = chance.randrange(1, 10**15)
            text = f"{sign}{whole}{chance.choice('eE')}{chance.choice(['', '+', '-'])}"
            text += f"{chance.randrange(40):0{chance.randrange(1, 4)}d}"
        else:  # the middle between two floats, where it is short, and numbers beside it
            low = chance.randrange(2**53, 2**54) | 1
            text = f"{sign}{low + chance.choice([-1, 0, 0, 0, 1])}"
        texts.append(text.encode())
    same(texts)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 10**19 - 1), st.integers(LEAST_POWER, MOST_POWER))
@example(0, 9007199254740993, 0)
@example(0, 9007199254740993 * 5**4, -4)
@example(2**63, 10**19 - 1, 60)
def test_numbers_of_any_bits(word, digits, power):
    (number,) = struct.unpack("<d", struct.pack("<Q", word))
    texts = [b"%de%d" % (digits, power), b"-%dE%+d" % (digits, power)]
    if 1e-40 < abs(number) < 1e40:
        texts += [repr(number).encode(), f"{number:.18e}".encode()]
    same(texts)


PLAIN = [b"0", b"-0.0", b"1.5", b"-12", b"007", b"3e4", b"0.1"]
OTHERS = [b"", b" 1", b"1 ", b"+1", b".5", b"5.", b"-", b"1e", b"1e+", b"e5", b"nan", b"inf", b"NA",
          b"x", b"1_0", b"1..2", b"--1", b"1e61", b"1e-61", b"1e99999", b"12345678901234567890",
          b"1.2.3", b"0.12345678901234567891", b"\xff", b"1\x00", b"0x10", b"1;2"]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_not_plain_is_left_alone(other):
    assert read([*PLAIN, b"1"]) is not None
    for place in range(4):
        texts = [b"1", b"2", b"3", b"4"]
        texts[place] = other
        assert read(texts) is None
        if other != b"":  # one empty field and its delimiter are a record all the same
            assert read([b"1", b"2", b"3", other], chosen=(0,)) is not None  # nobody reads the field


@pytest.mark.parametrize("data", [b"1,2\n3\n", b"1,2,3\n", b"1,2\n3,4,5\n", b'1,"2"\n', b"1,2\n\n3,4\n"])
def test_records_of_other_shapes_are_left_alone(data):
    for records in split_records([data], TWO):
        assert plain_table(records, TWO, {0: True, 1: True}) is None
        usual = parse_records(records, TWO, {0: True, 1: True})
        assert parse_records(records, TWO, {0: True, 1: True}, loop=True) == usual


def test_words_are_left_alone():
    (records,) = split_records([b"1,x\n2,y\n"], TWO)
    assert plain_table(records, TWO, {0: True, 1: False}) is None
    assert plain_table(records, TWO, {0: True})["0"].to_pylist() == [1.0, 2.0]


CELLS = st.one_of(st.sampled_from(PLAIN + OTHERS), st.floats(width=64).map(lambda x: repr(x).encode()))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_both_ways_read_the_same_rows(rows):
    data = b"".join(one + b"," + other + b"\n" for one, other in rows)
    for records in split_records([data], TWO):
        found = parse_records(records, TWO, {0: True, 1: True}, loop=True)
        usual = parse_records(records, TWO, {0: True, 1: True})
        assert found.schema == usual.schema
        for name in ("0", "1"):
            if found[name].type == pa.float64():
                assert bits(found[name].fill_null(7.0)) == bits(usual[name].fill_null(7.0))
            else:
                assert found[name] == usual[name]


def test_a_source_reads_large_text_by_the_loop(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,i\n" + b"".join(b"%d.25,%d\n" % (i % 7, i % 5) for i in range(9000)))
    schema = table(*MIXED[:2])
    monkeypatch.delenv("ADUMBRA_NOISE", raising=False)
    usual = [batch.values for batch in open_source(path, schema).batches(4096)]
    assert not uses_loop(1000)
    used = []
    right = csv_numbers.compiled_parser()
    monkeypatch.setattr(csv_numbers, "WORTH_BYTES", 1000)
    monkeypatch.setattr(csv_numbers, "compiled_parser", lambda: lambda *x: used.append(1) or right(*x))
    again = [batch.values for batch in open_source(path, schema).batches(4096)]
    assert used
    assert all(np.array_equal(one, other) for one, other in zip(usual, again, strict=True))
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    assert not uses_loop(2**40)
    monkeypatch.setenv("ADUMBRA_NOISE", "numba")
    assert uses_loop(1)
