"""The version, in one place (`pyproject.toml` says the same and a test compares them), and a digest."""

import hashlib
from pathlib import Path

__version__ = "0.1.0.dev0"
PACKAGE = Path(__file__).resolve().parent
AUDIT = PACKAGE / "audit.json"
KEPT = (".py", ".json", ".md", ".j2", ".css", ".typed", ".bin")  # what a package is made of; no caches


def package_digest(package: Path = PACKAGE) -> str:
    """SHA-256 over names and contents of the package's files, the audit's record left out."""
    total = hashlib.sha256(b"adumbra-package/1\0")
    for path in sorted(package.rglob("*")):
        name = path.relative_to(package).as_posix()
        if path.is_file() and path.suffix in KEPT and name != AUDIT.name:
            content = path.read_bytes()
            total.update(b"%d:%s:%d:" % (len(name), name.encode(), len(content)))
            total.update(content)
    return total.hexdigest()
