"""Forgeries against `verify(require_signature=True)`: none passes, however right its hashes are.

Each forger has a true signed release, all of this package's own functions, a key of their own, another
publisher's signed release, and the public half of the victim's key. `ADUMBRA_FULL=1` tries 10,000.
"""

import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adumbra.attestation.signers import new_key, open_key
from adumbra.attestation.sshsig import Signature
from adumbra.attestation.trust import NAMESPACE, AllowedSigner, Trust
from adumbra.release.artifact import find_faults
from adumbra.release.detached import SIGNATURE, make_demand, write_signature
from adumbra.report.page import render
from support.release import FULL, example_card, example_release, reseal, signed_head

FORGERIES = 10_000 if FULL else 400


def signed_release(folder, signer, **changes):
    card = {**example_card(**changes), "signed_by": signer.public.fingerprint()}
    example_release(folder, card=card)
    write_signature(folder, signer, (folder / "card.json").read_bytes())


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forgers")
    signers = {}
    for name in ("victim", "rival", "forger"):
        new_key(folder / name)
        signers[name] = open_key(folder / name)
    signed_release(folder / "true", signers["victim"])
    signed_release(folder / "older", signers["victim"], about={"title": "Older", "date": "2025-01-01"})
    signed_release(folder / "rivals", signers["rival"], about={"curator": "A rival"})
    allowed = tuple(
        AllowedSigner(names=(name,), key=signers[name].public) for name in ("victim", "rival")
    )
    demand = make_demand(trust=Trust(allowed=allowed), signer="victim", require_signature=True)
    return folder, signers, demand


def change_rows(folder, rng):
    path = folder / "data" / "data.parquet"
    table = pq.read_table(path)
    numbers = table["n"].to_numpy().copy()
    numbers[int(rng.integers(len(numbers)))] += int(rng.integers(1, 1000))
    table = table.set_column(table.schema.get_field_index("n"), "n", pa.array(numbers))
    pq.write_table(table, path, store_schema=False, write_statistics=False)
    reseal(folder)


def change_card(folder, rng):
    def change(card):
        match int(rng.integers(5)):
            case 0:
                card["guarantee"]["quoted"]["epsilon"] = float(rng.uniform(1e-6, 0.5))
            case 1:
                card["about"]["curator"] = f"Another curator {rng.integers(1000)}"
            case 2:
                card["before_dp"] = f"none {rng.integers(1000)}"
            case 3:
                card["about"]["date"] = f"2027-0{rng.integers(1, 9)}-01"
            case _:
                card["mechanisms"][0]["scale"] = float(rng.uniform(0.1, 9))
        return card

    reseal(folder, change)


def change_whole_card(folder, rng):
    """A whole new release by this package's own functions, with a smaller epsilon, signature kept."""
    kept = (folder / SIGNATURE).read_bytes()
    shutil.rmtree(folder)
    from support.release import example_guarantee

    guarantee = example_guarantee(epsilon=float(rng.uniform(0.001, 0.9)))
    card = example_card(guarantee)
    if rng.random() < 0.5:
        card["signed_by"] = Signature.parse(kept).key.fingerprint()
    example_release(folder, card=card, page=render if rng.random() < 0.3 else None)
    (folder / SIGNATURE).write_bytes(kept)


def change_page(folder, rng):
    path = folder / "card.html"
    content = bytearray(path.read_bytes())
    content[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
    path.write_bytes(content)
    reseal(folder)


def change_head(folder, rng):
    head = {**signed_head(), "sequence": int(rng.integers(18, 10_000))}
    reseal(folder, lambda card: {**card, "ledger": {**card["ledger"], "head": head}})


def change_signer(folder, rng):
    """The forger's own key signs, under the victim's name on the card or their own."""
    if rng.random() < 0.5:
        mine = SIGNERS["forger"].public.fingerprint()
        reseal(folder, lambda card: {**card, "signed_by": mine, "before_dp": str(rng.random())})
    write_signature(folder, SIGNERS["forger"], (folder / "card.json").read_bytes())


def graft_key(folder, rng):
    """The victim's public key around the forger's signature, or the reverse."""
    card = (folder / "card.json").read_bytes()
    theirs = Signature.parse((folder / SIGNATURE).read_bytes())
    mine = SIGNERS["forger"].sign(
        card + bytes([int(rng.integers(256))]) * (rng.random() < 0.3), NAMESPACE
    )
    keys = [theirs.key, mine.key]
    signatures = [mine.signed, theirs.signed]
    pick = int(rng.integers(2))
    made = Signature(keys[pick], NAMESPACE, "sha512", signatures[pick])
    (folder / SIGNATURE).write_bytes(made.armour())


def change_signature(folder, rng):
    content = bytearray((folder / SIGNATURE).read_bytes())
    match int(rng.integers(4)):
        case 0:
            content[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
        case 1:
            del content[int(rng.integers(len(content))) :]
        case 2:
            content += content[: int(rng.integers(1, 40))]
        case _:
            card = (folder / "card.json").read_bytes()
            space = str(rng.choice(["file", "git", "adumbra", "adumbra-release2", "adumbra-log"]))
            content = bytearray(SIGNERS["victim"].sign(card, space).armour())
    (folder / SIGNATURE).write_bytes(content)


def swap_publisher(folder, rng):
    """A rival's true release in the victim's place, or parts of the one in the other."""
    other = folder.parent / "rivals"
    if rng.random() < 0.4:
        shutil.rmtree(folder)
        shutil.copytree(other, folder)
        return
    names = rng.permutation(["card.json", SIGNATURE, "card.html"])[: int(rng.integers(1, 3))]
    for name in map(str, names):
        (folder / name).write_bytes((other / name).read_bytes())


def mix_with_an_older_one(folder, rng):
    name = str(rng.choice(["card.json", SIGNATURE]))
    (folder / name).write_bytes((folder.parent / "older" / name).read_bytes())


def strip_signature(folder, rng):
    (folder / SIGNATURE).unlink()
    if rng.random() < 0.7:
        reseal(folder, lambda card: {k: v for k, v in card.items() if k != "signed_by"})


SIGNERS = {}
WAYS = (
    change_rows, change_card, change_whole_card, change_page, change_head, change_signer, graft_key,
    change_signature, swap_publisher, mix_with_an_older_one, strip_signature,
)  # fmt: skip


def test_no_forgery_passes(world, record_property):
    folder, signers, demand = world
    SIGNERS.update(signers)
    assert find_faults(folder / "true", demand=demand)[0] == ()  # what is true passes
    rng = np.random.default_rng(24)
    passed, tried, without = [], 0, 0
    for number in range(FORGERIES):
        way = WAYS[number % len(WAYS)]
        forged = folder / "forged"
        shutil.copytree(folder / "true", forged)
        way(forged, rng)
        changed = digest_of(forged) != digest_of(folder / "true")
        if changed:
            tried += 1
            faults, verified = find_faults(forged, demand=demand)
            without += find_faults(forged)[1] is not None
            if verified is not None or not faults:
                passed.append(way.__name__)
        shutil.rmtree(forged)
    assert passed == []
    assert tried > 0.97 * FORGERIES
    assert without > 0.05 * FORGERIES  # many are whole by their hashes: the signature alone stops them
    assert find_faults(folder / "true", demand=demand)[0] == ()
    record_property(
        "figure",
        f"forgeries: {tried} tried, 0 passed; {without} of them are whole but for the signature",
    )


def digest_of(folder):
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            total.update(
                path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
            )
    return total.hexdigest()


def test_a_card_cannot_list_its_own_signature(world, tmp_path):
    """`files` names what the card covers; the signature is none of it."""
    folder, _, demand = world
    shutil.copytree(folder / "true", tmp_path / "r")
    card = json.loads((tmp_path / "r" / "card.json").read_bytes())
    card["files"][SIGNATURE] = {"sha256": "0" * 64, "bytes": 1}
    reseal(tmp_path / "r", lambda _: card)
    faults, verified = find_faults(tmp_path / "r", demand=demand)
    assert verified is None
    assert any("files" in fault for fault in faults)
