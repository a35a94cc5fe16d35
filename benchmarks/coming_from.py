"""The peers' snippets of docs/how-to/coming-from.md, each run in the peer's own environment.

    python benchmarks/coming_from.py --environments FOLDER

Prints a line per snippet: the peer, its version, and the rows that it gave or its error. An environment
is made if there is none. Ends with 1 if a snippet failed.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from comparison import environments

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "coming-from.md"
PACKAGES = {"smartnoise-synth": "smartnoise-synth", "SDV": "sdv", "OpenDP": "opendp", "dpmm": "dpmm"}
SECONDS = 900


def snippets(page):
    """The table that all snippets read, and each peer's own code."""
    table = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    found = re.findall(r"^### ([^\n]+)\n\n```python peer\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return table, dict(found)


def main(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, required=True)
    asked = parser.parse_args(words)
    table, found = snippets(PAGE.read_text(encoding="utf-8"))
    failed = 0
    for name, code in found.items():
        made = environments.make(asked.environments, PACKAGES[name])
        said, ok = made.message, made.ok
        if ok:
            program = (
                f"{table}\n{code}\nprint(len(synthetic), 'rows of', len(synthetic.columns), 'columns')"
            )
            if name == "OpenDP":  # polars' frame
                program = program.replace("len(synthetic)", "synthetic.height")
            python = environments.python_of(asked.environments, PACKAGES[name])
            done = subprocess.run(
                [python, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=SECONDS,
                check=False,
            )  # fmt: skip
            ok, said = done.returncode == 0, environments.last_line(done.stdout)
            said = said if ok else environments.last_line(done.stderr)
        failed += not ok
        print(f"{name} {made.version}: {'ok' if ok else 'FAILED'}, {said}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
