"""The tree is that of RFC 9162: roots as published, proofs for every place and size."""

import hashlib

import numpy as np
import pytest

from adumbra.attestation.loghead import Tree, is_consistent, is_included, leaf_hash

# The entries and roots of the test vectors of Certificate Transparency.
ENTRIES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        bytes(range(96, 112)).hex(),
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
MOST = 33


def by_definition(entries):
    """MTH of the RFC, word for word."""
    if not entries:
        return hashlib.sha256(b"").digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    half = 1
    while half * 2 < len(entries):
        half *= 2
    return hashlib.sha256(
        b"\x01" + by_definition(entries[:half]) + by_definition(entries[half:])
    ).digest()


def entries(count):
    return [b"event %d" % number for number in range(count)]


def test_roots_are_the_published_ones():
    tree = Tree(ENTRIES)
    assert [tree.root(size).hex() for size in range(1, 9)] == ROOTS
    assert tree.root(0) == hashlib.sha256(b"").digest()


def test_roots_are_those_of_the_definition():
    every = entries(MOST)
    tree = Tree(every)
    assert [tree.root(size) for size in range(MOST + 1)] == [
        by_definition(every[:size]) for size in range(MOST + 1)
    ]


def test_every_entry_is_proven_at_every_size_and_only_there():
    every = entries(MOST)
    tree = Tree(every)
    for size in range(1, MOST + 1):
        root = tree.root(size)
        for index in range(size):
            path, leaf = tree.inclusion(index, size), leaf_hash(every[index])
            assert is_included(leaf, index, size, path, root)
            for other in {index - 1, index + 1, size - 1 - index, size} - {index}:
                assert not is_included(leaf, other, size, path, root)
            assert not is_included(leaf_hash(b"other"), index, size, path, root)
            assert not is_included(leaf, index, size, [*path, leaf], root)
            assert not is_included(leaf, index, size, path, tree.root(size - 1))
            for at in range(len(path)):
                broken = [*path[:at], leaf_hash(b"x"), *path[at + 1 :]]
                assert not is_included(leaf, index, size, broken, root)
                assert not is_included(leaf, index, size, path[:at] + path[at + 1 :], root)


def test_every_growth_is_proven_and_nothing_else():
    every = entries(MOST)
    tree = Tree(every)
    forked = Tree([*every[:3], b"another", *every[4:]])
    for second in range(1, MOST + 1):
        for first in range(1, second + 1):
            path, old, new = tree.consistency(first, second), tree.root(first), tree.root(second)
            assert is_consistent(first, second, path, old, new)
            if first != second:
                assert not is_consistent(first, second, path, new, new)
                assert not is_consistent(first, second, path[:-1], old, new)
                assert not is_consistent(second, first, path, new, old)
            assert not is_consistent(first, second, [*path, old], old, new)
            if second >= 4:
                assert not is_consistent(first, second, path, old, forked.root(second))
                wrong = forked.consistency(first, second)
                assert not is_consistent(first, second, wrong, old, forked.root(second)) or first <= 3
            for at in range(len(path)):
                broken = [*path[:at], leaf_hash(b"x"), *path[at + 1 :]]
                assert not is_consistent(first, second, broken, old, new)
    assert not is_consistent(0, 5, [], tree.root(0), tree.root(5))


@pytest.mark.parametrize("size", [1000, 4097])
def test_larger_trees(size):
    every = entries(size)
    tree = Tree(every)
    rng = np.random.default_rng(0)
    for _ in range(100):
        upto = int(rng.integers(1, size + 1))
        index = int(rng.integers(upto))
        path = tree.inclusion(index, upto)
        assert len(path) <= 13
        assert is_included(leaf_hash(every[index]), index, upto, path, tree.root(upto))
        path = tree.consistency(upto)
        assert is_consistent(upto, size, path, tree.root(upto), tree.root())
