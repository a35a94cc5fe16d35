"""What a card says of the package that made it is so, and changes when the package does."""

import json
import shutil
from importlib.metadata import Distribution, version

from adumbra.release.card import card_faults
from adumbra.release.provenance import _version_of, audit_of, provenance
from adumbra.version import PACKAGE, __version__, package_digest
from support.release import example_card


def test_the_section_fits_the_card_and_names_what_runs():
    said = provenance()
    assert (said["version"], said["sha256"]) == (__version__, package_digest(PACKAGE))
    assert said["dependencies"]["numpy"] == version("numpy")
    assert all(stated == version(name) for name, stated in said["dependencies"].items())
    assert "pytest" not in said["dependencies"]
    card = {**example_card(), "provenance": said, "contents": {}, "files": {}}
    assert not [fault for fault in card_faults(card) if "provenance" in fault]
    broken = {**card, "provenance": {**said, "audit": {"claims": 1}}}
    assert [fault for fault in card_faults(broken) if "provenance" in fault]


def test_a_version_stands_in_the_head_of_the_metadata(tmp_path):
    for folder, file in (("new.dist-info", "METADATA"), ("old.egg-info", "PKG-INFO")):
        (tmp_path / folder).mkdir()
        text = "Metadata-Version: 2.1\nName: x\nVersion: 1.5.2\n\nVersion: 9 is planned\n"
        (tmp_path / folder / file).write_text(text)
        assert _version_of(Distribution.at(tmp_path / folder)) == "1.5.2"


def test_every_file_of_the_package_counts_and_nothing_else(tmp_path):
    copied = tmp_path / "adumbra"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    digest = package_digest(copied)
    assert digest == package_digest(PACKAGE)  # caches do not count
    (copied / "audit.json").write_text("{}")
    assert package_digest(copied) == digest
    for name in ("privacy/noise.py", "release/card.schema.json", "privacy/noise" + ".proof.md"):
        before = (copied / name).read_bytes()
        (copied / name).write_bytes(before + b" ")
        assert package_digest(copied) != digest, name
        (copied / name).write_bytes(before)
    (copied / "privacy" / "noise.py").rename(copied / "privacy" / "noises.py")
    assert package_digest(copied) != digest
    kept = {
        path.suffix for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    from adumbra.version import KEPT

    assert kept <= set(KEPT)


def test_an_audit_counts_for_the_package_that_was_audited(tmp_path):
    record = tmp_path / "audit.json"
    assert audit_of("ab" * 32, record) is None
    result = {"claims": 40, "refuted": 0, "runs": 1000}
    record.write_text(json.dumps({"sha256": "ab" * 32, **result}))
    assert audit_of("ab" * 32, record) == result
    assert audit_of("cd" * 32, record) is None  # another package
    for broken in ("", "[]", "null", '{"sha256": 1}', json.dumps({"sha256": "ab" * 32, "claims": "x"})):
        record.write_text(broken)
        assert audit_of("ab" * 32, record) is None
