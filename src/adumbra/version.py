"""The version, in one place (`pyproject.toml` says the same and a test compares them), and a digest."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

__version__ = "0.1.0.dev0"
PACKAGE = Path(__file__).resolve().parent
AUDIT = PACKAGE / "audit.json"
KEPT = (".py", ".json", ".md", ".j2", ".css", ".typed", ".bin")  # what a package is made of; no caches


def package_digest(package: Path = PACKAGE) -> str:
    """SHA-256 over names and contents of the package's files, the audit's record left out."""
    total = hashlib.sha256(b"adumbra-package/1\0")
    for parts in sorted(_members(str(package), ())):
        name = "/".join(parts)
        if name.endswith(KEPT) and name != AUDIT.name:
            content = package.joinpath(*parts).read_bytes()
            total.update(b"%d:%s:%d:" % (len(name), name.encode(), len(content)))
            total.update(content)
    return total.hexdigest()


def _members(folder: str, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every file below a folder, by the names on the way to it; each release asks for them."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                yield from _members(entry.path, (*above, entry.name))
            elif entry.is_file():
                yield (*above, entry.name)
