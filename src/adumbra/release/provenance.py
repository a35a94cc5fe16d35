"""What made a release: this package by version and digest, what it depends on, and its audit's result.

All of it is public and the same for every release of one installation; nothing depends on data. An audit
counts for the package that was audited, so `audit.json` names that package's digest and is not read for
any other. `tools/audit_record.py` writes the file before a version is built; between versions there is
none, and the card says null.
"""

import json
import platform
import re
from functools import cache
from importlib import import_module, metadata
from pathlib import Path

from adumbra.errors import Unsupported
from adumbra.starting import uncollected
from adumbra.version import AUDIT, PACKAGE, __version__, package_digest

LOADED_LATE = ("scipy.special", "jinja2")  # by models and pages: without them a paid release is lost


@cache
def provenance() -> dict[str, object]:
    """The card's section; taken once per process."""
    digest = package_digest(PACKAGE)
    return {
        "version": __version__,
        "sha256": digest,
        "python": platform.python_version(),
        "dependencies": dependencies(),
        "audit": audit_of(digest, AUDIT),
    }


def dependencies() -> dict[str, str]:
    """The installed version of everything that the package always needs."""
    try:
        needed = metadata.requires("adumbra") or []
    except metadata.PackageNotFoundError:  # run from a folder, not installed
        return {}
    names = [re.split(r"[^A-Za-z0-9._-]", line)[0] for line in needed if "extra ==" not in line]
    found = {}
    for name in sorted(names):
        try:
            found[name] = _version_of(metadata.distribution(name))
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def _version_of(package: metadata.Distribution) -> str:
    """The version by the head of the package's metadata: most of it is a long description."""
    head = (package.read_text("METADATA") or "").partition("\n\n")[0]
    stated = re.search(r"^Version: *(\S+)", head, re.MULTILINE)
    return package.version if stated is None else stated[1]


def require_libraries(*, item_sets: bool) -> None:
    """Refuse, before the charge, a library that is needed after it and cannot be imported."""
    for name in (*LOADED_LATE, "scipy.sparse") if item_sets else LOADED_LATE:
        try:
            with uncollected():
                import_module(name)
        except Exception as fault:
            # a broken installation raises what it likes
            raise Unsupported(
                f"{name}: cannot be imported ({type(fault).__name__}); install it again"
            ) from fault


def audit_of(digest: str, record: Path) -> dict[str, int] | None:
    """How the audit of this very package ended, or None if there is no record of it."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
        is_ours = found["sha256"] == digest
        result = {name: int(found[name]) for name in ("claims", "refuted", "runs")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if is_ours else None
