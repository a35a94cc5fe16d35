"""Who signed a release, as the reader's own trust says it; every sentence and every refusal."""

import shutil

import pytest

import adumbra as ad
from adumbra.attestation.signers import open_key, read_public_key
from adumbra.attestation.trust import Trust, parse_signer
from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.release.artifact import find_faults, load, verify
from adumbra.release.detached import SIGNATURE, write_signature
from support.release import example_card, example_release
from support.ssh import make_key


@pytest.fixture
def ann(tmp_path):
    return make_key(tmp_path, "ann")


@pytest.fixture
def bob(tmp_path):
    return make_key(tmp_path, "bob")


def line(key, name="ann", options=""):
    return f"{name} {options}{read_public_key(f'{key}.pub').line()}"


def trusting(*lines, revoked=()):
    return Trust(
        allowed=tuple(map(parse_signer, lines)),
        revoked=frozenset(read_public_key(f"{key}.pub").blob for key in revoked),
    )


@pytest.fixture
def signed(tmp_path, ann):
    folder = tmp_path / "r"
    signer = open_key(ann)
    example_release(folder, card={**example_card(), "signed_by": signer.public.fingerprint()})
    write_signature(folder, signer, (folder / "card.json").read_bytes())
    return folder


def refused(folder, **demand):
    with pytest.raises(VerificationFailed) as caught:
        verify(folder, **demand)
    return str(caught.value)


def test_a_release_without_a_signature_is_called_unsigned(tmp_path, ann):
    example_release(tmp_path / "r")
    found = verify(tmp_path / "r")
    assert found.signature is None
    assert found.signature_words() == "NOT SIGNED: nothing shows who made it"
    missing = "card.sig: is missing; the release is not signed"
    for demand in (
        {"key": f"{ann}.pub"},
        {"trust": trusting(line(ann)), "require_signature": True},
        {"trust": trusting(line(ann)), "signer": "ann"},
    ):
        assert refused(tmp_path / "r", **demand) == missing
        with pytest.raises(VerificationFailed, match="is not signed"):
            load(tmp_path / "r", **demand)
    assert verify(tmp_path / "r", trust=trusting(line(ann))).signature is None  # said, not demanded


def test_a_signature_says_by_whom(signed, ann):
    public = read_public_key(f"{ann}.pub")
    mark = public.fingerprint()
    unknown = verify(signed)
    assert unknown.signature_words() == f"signed by {mark}, a key that you have not said you trust"
    assert not unknown.signature.is_trusted
    for key in (f"{ann}.pub", mark, public.line(), public):
        found = verify(signed, key=key)
        assert found.signature_words() == f"signed by {mark}, the key that you gave"
        assert found.signature.is_trusted
    known = trusting(line(ann), line(ann, "office"))
    found = verify(signed, trust=known, require_signature=True)
    assert found.signature_words() == f"signed by ann, office ({mark}), valid on 2026-11-16"
    assert load(signed, trust=known, signer="office").data.num_rows == 50


def test_another_publishers_key_will_not_do(signed, ann, bob):
    theirs = read_public_key(f"{bob}.pub").fingerprint()
    assert f"not by the key given ({theirs})" in refused(signed, key=f"{bob}.pub")
    known = trusting(line(bob, "bob"))
    assert "a key that you have not said you trust" in refused(
        signed, trust=known, require_signature=True
    )
    both = trusting(line(ann), line(bob, "bob"))
    assert "which is not a key of signer=bob" in refused(signed, trust=both, signer="bob")
    # Bob signs Ann's card with his own key: the card names Ann's.
    write_signature(signed, open_key(bob), (signed / "card.json").read_bytes())
    assert "the card names another signer" in refused(signed)


@pytest.mark.parametrize(
    ("options", "trusted"),
    [
        ('valid-after="20261116" ', True),
        ('valid-after="20261117" ', False),
        ('valid-before="20261116" ', False),
        ('namespaces="file" ', False),
        ('namespaces="adumbra-release" ', True),
    ],
)
def test_a_key_counts_for_its_days_and_its_purpose(options, trusted, signed, ann):
    known = trusting(line(ann, options=options))
    found = verify(signed, trust=known)
    assert found.signature.is_trusted is trusted
    if not trusted:
        assert refused(signed, trust=known, require_signature=True).startswith("card.sig: signed by ")
        if "valid" in options:
            assert "that key is not valid for a release of 2026-11-16" in found.signature_words()
            assert "is not valid for" in refused(signed, trust=known, key=f"{ann}.pub")


def test_a_revoked_key_counts_for_nothing(signed, ann):
    known = trusting(line(ann), revoked=[ann])
    for demand in ({}, {"require_signature": True}, {"key": f"{ann}.pub"}):
        assert "which is revoked; trust nothing that it signed" in refused(signed, trust=known, **demand)


def test_a_signature_that_was_taken_away_is_missed(signed, ann):
    (signed / SIGNATURE).unlink()
    words = "NOT SIGNED although its card names a signer: nothing shows who made it"
    assert verify(signed).signature_words() == words
    assert "is not signed" in refused(signed, key=f"{ann}.pub")


def test_a_broken_signature_fails_without_any_demand(signed, ann, tmp_path):
    good = (signed / SIGNATURE).read_bytes()
    (signed / SIGNATURE).write_bytes(good.replace(b"A", b"B", 1))
    assert find_faults(signed)[0][0].startswith("card.sig: ")
    (signed / SIGNATURE).write_bytes(b"x" * 20_000)
    assert find_faults(signed)[0] == ("card.sig: is larger than 16384 bytes",)
    card = (signed / "card.json").read_bytes()
    (signed / SIGNATURE).write_bytes(open_key(ann).sign(card, "file").armour())
    assert find_faults(signed)[0] == ("card.sig: does not hold for card.json",)
    (signed / SIGNATURE).unlink()
    (signed / SIGNATURE).symlink_to(tmp_path / "elsewhere")
    assert find_faults(signed)[0] == ("card.sig: a link; a release holds its listed files only",)


def test_an_old_signature_does_not_fit_a_new_card(signed, ann, tmp_path):
    other = tmp_path / "other"
    example_release(other, card=example_card(about={"title": "Another", "date": "2026-11-16"}))
    shutil.copy(signed / SIGNATURE, other / SIGNATURE)
    assert refused(other, key=f"{ann}.pub") == "card.sig: does not hold for card.json"


def test_a_demand_must_say_whose(signed):
    with pytest.raises(InvalidInput, match="require_signature: whose"):
        verify(signed, require_signature=True)
    with pytest.raises(InvalidInput, match="whose"):
        verify(signed, signer="ann")
    with pytest.raises(InvalidInput, match="a fingerprint has 43 letters"):
        verify(signed, key="SHA256:short")


def test_the_public_names(signed, ann, tmp_path):
    allowed = tmp_path / "allowed"
    allowed.write_text(line(ann) + "\n")
    assert ad.verify(signed, trust=allowed, require_signature=True).signature.names == ("ann",)
    assert ad.Trust.read(allowed).allowed[0].names == ("ann",)
    assert ad.open_key(ann).public == read_public_key(f"{ann}.pub")
    assert ad.new_key(tmp_path / "fresh").kind == "ssh-ed25519"
