"""FIMI text, both ways of reading it, against a loop over words."""

import numpy as np
import pytest

from adumbra.data.fimi import parse_bytes, parse_lines

PLAIN = b"0123456789 \n\n  11"


def naive(data):
    """Each word of each line: an item if it is 1 to 10 digits, else -1."""
    lines = [line.split() for line in data.split(b"\n")[:-1]]
    readable = [[word.isdigit() and len(word) <= 10 for word in line] for line in lines]
    items = [
        int(word) if fine else -1
        for line, marks in zip(lines, readable, strict=True)
        for word, fine in zip(line, marks, strict=True)
    ]
    return [len(line) for line in lines], items


def shown(parsed):
    lengths, items = parsed
    return lengths.tolist(), items.tolist()


@pytest.mark.parametrize("letters", [PLAIN, PLAIN + b"x-.\t\v\xff\x00"])
def test_any_bytes_are_the_naive_loop(letters):
    rng = np.random.default_rng(3)
    for _ in range(400):
        data = bytes(rng.choice(list(letters), rng.integers(0, 80))) + b"\n"
        assert shown(parse_lines(data)) == naive(data)
        assert shown(parse_bytes(np.frombuffer(data, np.uint8))) == naive(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\n\n",
        b"   \n",
        b"7\n",
        b"0000000007 9999999999\n",
        b"00000000007\n",
        b"12345678901 5\n",
        b"1234567890 1234567890\n\n 3 \n",
        b"99999999999999999999999\n",
    ],
)
def test_edges(data):
    assert shown(parse_lines(data)) == naive(data)
