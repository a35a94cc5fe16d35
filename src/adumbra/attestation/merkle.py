"""The Merkle tree of RFC 9162 (section 2.1) over a log: roots, inclusion and consistency proofs.

    leaf   SHA-256(0x00 || entry)
    node   SHA-256(0x01 || left || right), the left half the largest power of two below the size

A root fixes every entry and their order. An inclusion proof shows that an entry is under a root; a
consistency proof shows that a later root was made by appending only. Both have about log2(size) hashes.
"""

import hashlib
from collections.abc import Iterable, Sequence

EMPTY = hashlib.sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two neighbours."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A log's tree: every full subtree is kept, so roots and proofs of any size are quick."""

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._levels: list[list[bytes]] = [[]]  # level k: subtrees of 2^k leaves, from the left
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        return len(self._levels[0])

    def append(self, entry: bytes) -> None:
        """One more entry."""
        level, value = 0, leaf_hash(entry)
        while True:
            row = self._levels[level]
            row.append(value)
            if len(row) % 2:
                return
            value = node_hash(row[-2], row[-1])
            level += 1
            if level == len(self._levels):
                self._levels.append([])

    def root(self, size: int | None = None) -> bytes:
        """The root of the first `size` entries; of all when left out."""
        count = len(self) if size is None else size
        return self._hash(0, count) if count else EMPTY

    def _hash(self, start: int, end: int) -> bytes:
        """The hash of the entries from `start` to `end`; `start` is where a subtree may start."""
        width = end - start
        level = width.bit_length() - 1
        if width == 1 << level:
            return self._levels[level][start >> level]
        half = _left(width)
        return node_hash(self._hash(start, start + half), self._hash(start + half, end))

    def inclusion(self, index: int, size: int | None = None) -> list[bytes]:
        """The proof that entry `index` is under the root of the first `size` entries."""
        start, end = 0, len(self) if size is None else size
        path = []
        while end - start > 1:
            middle = start + _left(end - start)
            if index < middle:
                path.append(self._hash(middle, end))
                end = middle
            else:
                path.append(self._hash(start, middle))
                start = middle
        return path[::-1]

    def consistency(self, first: int, second: int | None = None) -> list[bytes]:
        """The proof that the first `second` entries begin with the first `first` ones."""
        start, end = 0, len(self) if second is None else second
        is_whole = True
        path = []
        while first != end:
            middle = start + _left(end - start)
            if first <= middle:
                path.append(self._hash(middle, end))
                end = middle
            else:
                path.append(self._hash(start, middle))
                start = middle
                is_whole = False
        if not is_whole:
            path.append(self._hash(start, end))
        return path[::-1]


def _left(width: int) -> int:
    """The largest power of two below a width."""
    return 1 << (width - 1).bit_length() - 1


def is_included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether a leaf hash is entry `index` under the root of `size` entries (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    here, last, value = index, size - 1, leaf
    for other in path:
        if last == 0:
            return False
        if here % 2 or here == last:
            value = node_hash(other, value)
            while here and not here % 2:
                here, last = here >> 1, last >> 1
        else:
            value = node_hash(value, other)
        here, last = here >> 1, last >> 1
    return last == 0 and value == root


def is_consistent(
    first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes
) -> bool:
    """Whether the tree of `second` entries grew from that of `first` (RFC 9162, 2.1.4.2)."""
    if first == second:
        return not path and first_root == second_root
    if not 0 < first < second or not path:
        return False
    nodes = [first_root, *path] if first & (first - 1) == 0 else list(path)
    here, last = first - 1, second - 1
    while here % 2:
        here, last = here >> 1, last >> 1
    old = new = nodes[0]
    for other in nodes[1:]:
        if last == 0:
            return False
        if here % 2 or here == last:
            old, new = node_hash(other, old), node_hash(other, new)
            while here and not here % 2:
                here, last = here >> 1, last >> 1
        else:
            new = node_hash(new, other)
        here, last = here >> 1, last >> 1
    return last == 0 and (old, new) == (first_root, second_root)
