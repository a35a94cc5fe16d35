"""No byte of a release changes unseen, and no bundle, however hostile, does more than fail by name."""

import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.release.artifact import find_faults, load
from adumbra.report.page import render
from support.release import FULL, example_release, files_of, reseal

FLIPS = 10_000 if FULL else 1_200
BUNDLES = 10_000 if FULL else 1_000


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "r"
    example_release(folder, page=render)
    assert find_faults(folder)[0] == ()
    return folder


def test_any_changed_byte_is_seen(original):
    """Positions spread over every file, each with another pattern; the release is whole again after."""
    rng = np.random.default_rng(5)
    files = files_of(original)
    missed, done = [], 0
    for name, content in files.items():
        share = max(100, FLIPS * len(content) // sum(map(len, files.values())))
        for position in np.linspace(0, len(content) - 1, min(share, 4 * len(content))).astype(int):
            changed = bytearray(content)
            changed[position] ^= int(rng.integers(1, 256))
            (original / name).write_bytes(changed)
            done += 1
            if not find_faults(original)[0]:
                missed.append((name, int(position)))
        (original / name).write_bytes(content)
    assert done >= 1000
    assert missed == []
    assert find_faults(original)[0] == ()


def test_any_cut_or_grown_file_is_seen(original):
    for name, content in files_of(original).items():
        for changed in (
            content[:-1],
            content[: len(content) // 2],
            b"",
            content + b"\n",
            content + content,
        ):
            (original / name).write_bytes(changed)
            assert find_faults(original)[0] != (), name
        (original / name).write_bytes(content)


HOSTILE = [
    None, True, -1, 0, 2**70, 1e308, 5e-324, "", "x" * 5000, "\x00", "../../etc/passwd", "<script>",
    [], {}, [[[]]], {"": ""}, {"a": {"b": []}}, "NaN", "\u202e", "data", ["data"], "=1+1",
    {"sha256": 1, "bytes": -1},
]  # fmt: skip


def every_place(value, place=()):
    yield place
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in items:
        yield from every_place(inner, (*place, key))


def put(card, place, value, *, remove=False):
    inner = card
    for key in place[:-1]:
        inner = inner[key]
    if remove:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return card


def deform(folder, rng):
    """One random act of malice; most are followed by making the hashes right again."""
    names = sorted(files_of(folder))
    victim = folder / str(rng.choice(names))
    match int(rng.integers(9)):
        case 0 | 1 | 2:  # a hostile value at a random place of the card
            card = json.loads((folder / "card.json").read_bytes())
            card["public_inputs"]["schema"]["columns"] = card["public_inputs"]["schema"]["columns"][:2]
            places = list(every_place(card))[1:]
            place = places[int(rng.integers(len(places)))]
            value = HOSTILE[int(rng.integers(len(HOSTILE)))]
            remove = rng.random() < 0.2
            reseal(folder, lambda _: put(card, place, value, remove=remove))
        case 3 | 4 | 5:  # random bytes overwritten, the forger's hashes right
            content = bytearray(victim.read_bytes())
            for _ in range(int(rng.integers(1, 8))):
                content[int(rng.integers(len(content)))] = int(rng.integers(256))
            victim.write_bytes(content)
            if victim.name != "card.json":
                reseal(folder)
        case 6:  # cut short
            content = victim.read_bytes()
            victim.write_bytes(content[: int(rng.integers(len(content)))])
            if victim.name != "card.json":
                reseal(folder)
        case 7:  # another file's bytes
            victim.write_bytes((folder / str(rng.choice(names))).read_bytes())
            if victim.name != "card.json":
                reseal(folder)
        case _:  # another kind of member
            victim.unlink()
            [lambda p: p.mkdir(), lambda p: p.symlink_to("/dev/zero"), os.mkfifo, lambda p: None][
                int(rng.integers(4))
            ](victim)


def use(folder):
    """Everything a reader does with a release."""
    release = load(folder)
    for table in release.tables.values():
        table.to_pylist()
    for name in release.arrays:
        release.arrays[name].sum()
    return repr(release), release._repr_html_()


def test_hostile_bundles_fail_by_name_or_open(original, tmp_path):
    rng = np.random.default_rng(11)
    refused = []
    for _ in range(BUNDLES):
        folder = tmp_path / "b"
        shutil.copytree(original, folder)
        deform(folder, rng)
        try:
            use(folder)
        except (VerificationFailed, InvalidInput) as error:
            refused.append(str(error))
        shutil.rmtree(folder)
    assert len(refused) > BUNDLES // 2  # the attack does bite
    assert all(line.isprintable() for text in refused for line in text.split("\n"))


@settings(max_examples=200 if FULL else 50, deadline=None, suppress_health_check=list(HealthCheck))
@given(raw=st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_bytes_as_card(raw, tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    (folder / "card.json").write_bytes(raw)
    faults, verified = find_faults(folder)
    assert faults
    assert verified is None
