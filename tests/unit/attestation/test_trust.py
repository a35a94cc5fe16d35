"""The trust file is OpenSSH's; what we take from it we take as OpenSSH does, and no line is skipped."""

import datetime as dt

import pytest

from adumbra.attestation.signers import open_key, read_public_key
from adumbra.attestation.trust import Trust, parse_signer, user_trust
from adumbra.errors import InvalidInput
from support.ssh import make_key, openssh_accepts

DAY = dt.date(2026, 11, 16)


@pytest.fixture
def key(tmp_path):
    return read_public_key(f"{make_key(tmp_path)}.pub")


@pytest.mark.parametrize(
    ("options", "valid"),
    [
        ("", True),
        ('namespaces="adumbra-release" ', True),
        ('namespaces="file,adumbra-release" ', True),
        ('namespaces="file" ', False),
        ('valid-after="20261116Z" ', True),
        ('valid-after="20261117Z" ', False),
        ('valid-after="202611160001Z" ', False),
        ('valid-before="20261116Z" ', False),
        ('valid-before="20261117Z" ', True),
        ('valid-before="20261116000001Z" ', True),
        ('valid-after="20260101Z",valid-before="20270101Z" ', True),
        ('namespaces="adumbra-release",valid-after="20200101Z",valid-before="20210101Z" ', False),
    ],
)
def test_lines_mean_what_they_mean_to_openssh(options, valid, tmp_path, monkeypatch):
    path = make_key(tmp_path)
    public = read_public_key(f"{path}.pub")
    line = f"ann {options}{public.line()} a comment"
    parsed = parse_signer(line)
    assert (parsed.is_for("adumbra-release") and parsed.is_valid_on(DAY)) is valid
    assert parse_signer(parsed.line()) == parsed
    signature = open_key(path).sign(b"m", "adumbra-release").armour()
    at = ("-O", "verify-time=20261116000001Z")
    assert openssh_accepts(line, signature, b"m", tmp_path, more=at) is valid
    assert openssh_accepts(parsed.line(), signature, b"m", tmp_path, more=at) is valid


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("KEY", "must be `names \\[options\\] kind base64`"),
        ("ann", "must be `names \\[options\\] kind base64`"),
        ("ann ssh-ed25519", "must be `names"),
        ("* KEY", "patterns \\(\\* \\? !\\) are not taken"),
        ("!ann KEY", "patterns"),
        ("ann, KEY", "names must be plain"),
        ("ann cert-authority KEY", "options are namespaces="),
        ('ann expires="x" KEY', "option expires: is not known or given twice"),
        ('ann valid-after="2026" KEY', "a time must be YYYYMMDD"),
        ('ann valid-after="20261399" KEY', "a time must be YYYYMMDD"),
        ('ann valid-after="20260101",valid-after="20260101" KEY', "given twice"),
        ("ann a b KEY", "must be `names"),
    ],
)
def test_a_line_that_is_not_understood_stops(line, text, key, tmp_path):
    place = tmp_path / "allowed"
    place.write_text(f"# whom we trust\n\n{line.replace('KEY', key.line())}\n")
    with pytest.raises(InvalidInput, match=f"allowed, line 3: .*{text}"):
        Trust.read(place)


def test_the_users_own_files(key, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_trust() is None
    (tmp_path / "adumbra").mkdir()
    (tmp_path / "adumbra" / "allowed_signers").write_text(f"ann,bob {key.line()}\n")
    found = user_trust()
    assert [line.names for line in found.lines_for(key)] == [("ann", "bob")]
    assert found.revoked == frozenset()
    (tmp_path / "adumbra" / "revoked_keys").write_text(f"{key.line()} stolen\n")
    assert user_trust().revoked == {key.blob}
    (tmp_path / "adumbra" / "allowed_signers").unlink()
    assert user_trust().allowed == ()
    with pytest.raises(InvalidInput, match="cannot be read"):
        Trust.read(tmp_path / "none")
