"""Noise, selection, import time and installed size, beside OpenDP, diffprivlib and PyDP.

    python benchmarks/throughput.py --environments FOLDER

Each library runs in an environment of its own; a failure is a result with its message. Lines are
appended to benchmarks/results/throughput.jsonl and shown on docs/benchmarks/peers.md.
"""

import argparse
import re
import resource
import subprocess
import sys
from pathlib import Path

from comparison import environments, facts, peers_page

HERE = Path(__file__).parent / "comparison"
NOTES = {
    "adumbra": "exact on a lattice, keyed; numba where installed",
    "opendp": "exact, discrete",
    "diffprivlib": "floats, one call per value",
    "python-dp": "one call per value",
}
IMPORTS = {
    "adumbra": "import adumbra", "opendp": "import opendp.prelude",
    "diffprivlib": "import diffprivlib.models",
    "python-dp": "import pydp", "smartnoise-synth": "import snsynth", "dpmm": "import dpmm.pipelines",
    "sdv": "import sdv.single_table", "datasynthesizer": "import DataSynthesizer.DataDescriber",
    "mbi": "import mbi",
}  # fmt: skip


def measured(command):
    """The figure that a command prints, or None and its last words."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        return None, environments.last_line(done.stderr)
    return float(done.stdout.strip().splitlines()[-1]), ""


def import_seconds(python, statement, rounds=5):
    """Processor seconds of a fresh process with the import, less those without; best of rounds."""
    found = {}
    for code in ("pass", statement):
        times = []
        for _ in range(rounds):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            if done.returncode:
                return None, environments.last_line(done.stderr)
        found[code] = min(times)
    return found[statement] - found["pass"], ""


def first_release():
    """Lines of code of each snippet of the page for newcomers, by its heading."""
    path = facts.ROOT / "docs" / "how-to" / "coming-from.md"
    text = path.read_text(encoding="utf-8")
    for name, code in re.findall(
        r"^### (.+?)\n.*?^```python(?: peer)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    ):
        yield (
            name,
            sum(bool(line.strip()) and not line.strip().startswith("#") for line in code.splitlines()),
        )


def lines_of(options):
    """Every figure as (what, library, version, value, unit, note, message)."""
    own = facts.versions("adumbra")["adumbra"]
    for name, statement in IMPORTS.items():
        made = None if name == "adumbra" else environments.make(options.environments, name)
        python = sys.executable if made is None else environments.python_of(options.environments, name)
        version = own if made is None else made.version
        if name in NOTES:
            for what in ("gaussian", "laplace", "selection"):
                value, message = measured([python, HERE / "timed_draws.py", name, what])
                unit = "µs per choice of 10,000" if what == "selection" else "ns per value"
                scale = 1e6 if what == "selection" else 1e9
                value = None if value is None else scale * value
                yield what, name, version, value, unit, NOTES[name], message
        value, message = import_seconds(python, statement)
        yield "import", name, version, value, "CPU s", statement, message
        core = environments.make(options.environments, name)
        yield (
            "installed size",
            name,
            version,
            core.megabytes,
            "MB",
            f"{core.packages} packages",
            core.message,
        )
    for name, count in first_release():
        yield (
            "lines to a first release",
            name,
            "",
            float(count),
            "lines",
            "docs/how-to/coming-from.md",
            "",
        )


def main(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=facts.RESULTS)
    parser.add_argument("--pages", type=Path, default=facts.PAGES)
    options = parser.parse_args(words)
    path = options.results / "throughput.jsonl"
    stamp = facts.stamp("make peers")
    for what, library, version, value, unit, note, message in lines_of(options):
        line = {
            "kind": "throughput", "what": what, "library": library, "version": version, "unit": unit,
            "value": value, "note": note, "message": message, **stamp,
        }  # fmt: skip
        facts.append(path, line)
        print(f"{what:16s} {library:18s} {value} {unit} {message}", flush=True)
    peers_page.write(options.results, options.pages)


if __name__ == "__main__":
    main()
