"""Results as data: JSON lines with machine, versions and the state of the source they came from."""

import datetime as dt
import importlib.metadata
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "benchmarks"
Line = dict[str, object]


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def source_state() -> dict[str, str]:
    """The commit, and the tree of `src`: the code that made a figure, whatever else was committed."""
    dirty = bool(git("status", "--porcelain", "--", "src"))
    tree = git("rev-parse", "HEAD:src")[:12]
    return {"commit": git("rev-parse", "HEAD")[:12], "source": tree + ("+changes" if dirty else "")}


def machine() -> Line:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(), "cores": os.cpu_count(), "memory_gib": round(memory, 1),
        "system": platform.system(), "python": platform.python_version(),
    }  # fmt: skip


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def versions(*names: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in names}


def stamp(command: str) -> Line:
    """What every line carries besides its figures."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    packages = versions("adumbra", "numpy", "scipy", "scikit-learn", "pyarrow")
    return {
        "date": now, "command": command, **source_state(), "machine": machine(), "versions": packages,
    }  # fmt: skip


def read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def words(name: str) -> str:
    """The prose of a page that no figure decides."""
    return (Path(__file__).parent / "words" / f"{name}.md").read_text(encoding="utf-8")


def append(path: Path, line: Line) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, sort_keys=True) + "\n")


def interval(values: Iterable[float]) -> tuple[float, float, int]:
    """Mean, half of the 95 % interval (Student), number of values; no interval from one value."""
    held = np.array(list(values), float)
    if len(held) < 2:
        return (float(held[0]) if len(held) else math.nan), math.nan, len(held)
    half = student.ppf(0.975, len(held) - 1) * held.std(ddof=1) / math.sqrt(len(held))
    return float(held.mean()), float(half), len(held)


def half_of_difference(left: tuple[float, float, int], right: tuple[float, float, int]) -> float:
    """Half of the 95 % interval (Welch) of the difference of two means, each as `interval` gives it.

    None (infinite) where one of them is of a single value.
    """
    if min(left[2], right[2]) < 2:
        return math.inf
    parts = [(half / student.ppf(0.975, count - 1)) ** 2 for _, half, count in (left, right)]
    squares = sum(part**2 / (cell[2] - 1) for part, cell in zip(parts, (left, right), strict=True))
    freedom = sum(parts) ** 2 / squares if squares else 1.0
    return float(student.ppf(0.975, freedom) * math.sqrt(sum(parts)))


def origin(runs: Iterable[Line]) -> list[str]:
    """One sentence per source tree, machine and command: where figures come from."""
    held: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        machine = run["machine"]
        packages = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        where = (
            f"{run['command']}; tree of `src` `{run['source']}`; {machine['processor']}, "
            f"{machine['cores']} cores, {machine['memory_gib']} GiB, "
            f"Python {machine['python']}; {packages}"
        )
        for key in ("date", "commit"):
            held.setdefault(where, {}).setdefault(key, []).append(str(run[key]))
    found = []
    for where, seen in held.items():
        dates, commits = (", ".join(dict.fromkeys(seen[key])) for key in ("date", "commit"))
        found.append(f"- {dates}, commit {commits}: {where}")
    return found


def newest(lines: Iterable[Line], *keys: str) -> dict[tuple, list[Line]]:
    """The lines of each cell (`keys`), of the source that was measured last for that cell."""
    cells: dict[tuple, list[Line]] = {}
    for line in lines:
        held = cells.setdefault(tuple(line[key] for key in keys), [])
        if held and held[-1].get("source") != line.get("source"):
            held.clear()
        held.append(line)
    return cells
