"""Noise keys: streams with random access, one value each, and a secret that stays where it is."""

import copy
import dataclasses
import pickle  # noqa: TID251  (to see that it is refused)
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from adumbra.errors import NoiseKeyReused
from adumbra.numerics import Lattice
from adumbra.privacy import grant as grants
from adumbra.privacy.grant import ClaimBook, NoiseCall, NoiseKey, Secret, derive_key

SECRET = bytes(range(32))


def a_key(purpose="rows", block=3):
    return derive_key(SECRET, purpose, block, ClaimBook())


def test_words_are_the_documented_keystream():
    # written out from the primitives, so that a change of the format cannot pass unseen
    info = b"adumbra-noise/1" + b"\0\0\0\4rows" + (3).to_bytes(8, "big")
    material = HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(SECRET)
    info = b"adumbra-noise/1" + b"\0\0\0\6stream" + b"\0\0\0\7samples"
    stream = HKDFExpand(hashes.SHA256(), 32, info).derive(material)
    cipher = Cipher(algorithms.AES(stream), modes.CTR(bytes(16))).encryptor()
    assert a_key().words("samples", 50).tobytes() == cipher.update(bytes(400))


def test_words_are_random_access():
    whole = a_key().words("samples", 1000)
    for start in (0, 1, 2, 17, 998, 999):
        for count in (0, 1, 1000 - start):
            assert np.array_equal(a_key().words("samples", count, start), whole[start : start + count])
    stream = a_key().stream("samples", 7, start=3)
    pieces = [stream.read(n).copy() for n in (7, 1, 4)]
    assert np.array_equal(np.concatenate(pieces), whole[3:15])
    assert np.array_equal(a_key().words("samples", 2, 2**70), a_key().words("samples", 3, 2**70)[:2])


def test_unlike_names_give_unlike_words():
    streams = [
        a_key().words("samples", 4),
        a_key().words("extend-0", 4),
        a_key(block=4).words("samples", 4),
        a_key(purpose="other").words("samples", 4),
        a_key(purpose="rows\0", block=3).words("samples", 4),
        derive_key(bytes(32), "rows", 3, ClaimBook()).words("samples", 4),
    ]
    assert len({words.tobytes() for words in streams}) == len(streams)


def test_digest_covers_everything():
    base = NoiseCall("gaussian", Lattice(np.arange(6), 0), np.asarray(2.0))
    calls = [
        base,
        dataclasses.replace(base, kind="laplace"),
        dataclasses.replace(base, value=Lattice(np.arange(6) * 2, 0)),
        dataclasses.replace(base, value=Lattice(np.arange(6), 1)),
        dataclasses.replace(base, value=Lattice(np.arange(6).reshape(2, 3), 0)),
        dataclasses.replace(base, value=Lattice(np.arange(5), 0)),
        dataclasses.replace(base, scale=np.asarray(2.5)),
        dataclasses.replace(base, scale=np.full(6, 2.0)),
        dataclasses.replace(base, detail=1),
    ]
    assert len({a_key()._digest(call) for call in calls}) == len(calls)
    again = NoiseCall("gaussian", Lattice(np.arange(12)[::2] // 2, 0), np.asarray(2.0))
    assert a_key()._digest(again) == a_key()._digest(base)


def test_digest_of_a_value_in_pieces(monkeypatch):
    value = np.arange(100)
    whole = a_key()._digest(NoiseCall("gaussian", Lattice(value, 0), np.asarray(2.0)))
    monkeypatch.setattr(grants, "_TAG_PIECE", 64)
    in_pieces = a_key()._digest(NoiseCall("gaussian", Lattice(value, 0), np.asarray(2.0)))
    value[99] = 0
    changed = a_key()._digest(NoiseCall("gaussian", Lattice(value, 0), np.asarray(2.0)))
    assert len({whole, in_pieces, changed}) == 3


def test_claims():
    own = a_key()
    own.claim(b"one")
    own.claim(b"one")
    with pytest.raises(
        NoiseKeyReused, match=r"purpose='rows', block=3: this key already covers another"
    ):
        own.claim(b"two")


def test_claims_are_shared_by_keys_of_one_book():
    book = ClaimBook()
    derive_key(SECRET, "rows", 0, book).claim(b"one")
    derive_key(SECRET, "rows", 1, book).claim(b"two")
    with pytest.raises(NoiseKeyReused):
        derive_key(SECRET, "rows", 0, book).claim(b"two")


def test_one_of_many_threads_wins_a_claim():
    book, refused = ClaimBook(), []
    gate = threading.Barrier(16)

    def work(number):
        gate.wait()
        try:
            book.claim("rows", 0, bytes([number]))
        except NoiseKeyReused:
            refused.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 15


def test_another_process_cannot_use_a_key(monkeypatch):
    own = a_key()
    pid = grants.os.getpid()
    monkeypatch.setattr(grants.os, "getpid", lambda: pid + 1)
    for use in (lambda: own.claim(b"one"), lambda: own.words("samples", 1)):
        with pytest.raises(NoiseKeyReused, match=f"the grant belongs to process {pid}"):
            use()


def test_the_secret_is_not_shown():
    own = a_key()
    hidden = own._secret.reveal()
    assert repr(own) == "NoiseKey(purpose='rows', block=3)"
    assert repr(own._secret) == "Secret(hidden)"
    for text in (repr(own), str(own), repr(own._secret), f"{own._secret}"):
        assert hidden.hex() not in text
        assert repr(hidden)[2:-1] not in text
    for holder in (own, own._secret):
        with pytest.raises(TypeError, match=r"has no|must have"):
            vars(holder)
        for steal in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="holds a secret; it cannot be copied or pickled"):
                steal(holder)
    assert "value" not in repr(NoiseCall("gaussian", Lattice(np.arange(3), 0), np.asarray(2.0)))


def test_names():
    assert isinstance(a_key(), NoiseKey)
    assert (a_key().purpose, a_key().block) == ("rows", 3)
    assert Secret(b"x").reveal() == b"x"
