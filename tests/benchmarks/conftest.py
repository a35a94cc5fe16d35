"""Benchmarks are scripts beside the package: their folder is where they import each other from."""

import sys
from pathlib import Path

BENCHMARKS = str(Path(__file__).resolve().parents[2] / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)  # last: no script hides an installed package
