"""Start-up times and the installed size of the core, in fresh processes.

python benchmarks/startup.py [--size]        --size also makes a venv with the core alone (a minute)
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def best_seconds(command, repeat=7):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def core_megabytes():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [
            f"{folder}/bin/python",
            "-m",
            "pip",
            "install",
            "-q",
            "-c",
            str(ROOT / "constraints.txt"),
            str(ROOT),
        ]
        subprocess.run(install, check=True)
        libraries = next(Path(folder).glob("lib/python*/site-packages"))
        return sum(path.stat().st_size for path in libraries.rglob("*") if path.is_file()) / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", action="store_true")
    arguments = parser.parse_args()
    python = best_seconds([sys.executable, "-c", "pass"])
    imported = best_seconds([sys.executable, "-c", "import adumbra"])
    helped = best_seconds([str(Path(sys.executable).with_name("adumbra")), "--help"])
    print(
        f"bare python {python:.2f} s, import adumbra {imported:.2f} s (goal 1), "
        f"adumbra --help {helped:.2f} s (goal 0.5)"
    )
    if arguments.size:
        print(f"installed core {core_megabytes():.0f} MB (goal 700)")


if __name__ == "__main__":
    main()
