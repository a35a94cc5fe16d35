"""One virtual environment per peer, made by `python -m venv` and pip as a new user makes it.

What pip picks today is what is judged: nothing is pinned here. An install that fails, or a package that
cannot be imported afterwards, is a result with its message. Where a peer is known to need a remedy, the
fresh install is tried first and its failure recorded, then the remedy is applied and recorded too.
`PIP_CONSTRAINT` (pip's own variable) is honoured and recorded, for instance to get a CPU build of torch.
"""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 900  # per pip command


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a peer is installed, and the imports that show that it works."""

    install: tuple[str, ...]
    check: str
    remedy: tuple[str, ...] = ()  # installed on top when the check fails
    shown: str = ""  # the distribution whose version is shown

    @property
    def distribution(self) -> str:
        return self.shown or self.install[0].split("[")[0]


COMMON = "import pandas; "
RECIPES: dict[str, Recipe] = {
    "adumbra": Recipe(install=(str(ROOT),), check="import adumbra", shown="adumbra"),
    "smartnoise-synth": Recipe(
        install=("smartnoise-synth",),
        check=COMMON + "from snsynth import Synthesizer; Synthesizer.create('mst', epsilon=1.0)",
        remedy=("packaging",),
    ),
    "dpmm": Recipe(install=("dpmm",), check=COMMON + "import dpmm.pipelines"),
    "datasynthesizer": Recipe(
        install=("DataSynthesizer",),
        check=COMMON + "from DataSynthesizer.DataDescriber import DataDescriber",
    ),
    "opendp": Recipe(
        install=("opendp[polars,scikit-learn,mbi]", "pandas"),
        check=COMMON + "import opendp.prelude as dp; dp.mbi.MST",
    ),
    "mbi": Recipe(install=("mbi", "pandas"), check=COMMON + "from mbi import Domain, estimation"),
    "diffprivlib": Recipe(
        install=("diffprivlib", "pandas"),
        check=COMMON + "import diffprivlib.models",
        remedy=("scikit-learn<1.7",),
    ),
    "sdv": Recipe(install=("sdv",), check=COMMON + "import sdv.single_table"),
    "dpsynth": Recipe(install=("dpsynth",), check=COMMON + "import dpsynth"),
    "python-dp": Recipe(install=("python-dp", "numpy"), check="import pydp"),
    "sdmetrics": Recipe(install=("sdmetrics", "pyarrow"), check=COMMON + "import sdmetrics"),
    "syntheval": Recipe(install=("syntheval", "pyarrow"), check=COMMON + "import syntheval"),
}


@dataclass(kw_only=True)
class Installed:
    """What happened when a peer was installed."""

    name: str
    ok: bool
    message: str
    remedy: str
    seconds: float
    megabytes: float
    packages: int
    version: str
    versions: dict[str, str]
    constraint: str
    python: str


def python_of(folder: Path, name: str) -> Path:
    return folder / name / "bin" / "python"


def last_line(text: str) -> str:
    """The last line that says something: of a traceback, its error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if re.search(r"\w{3}", line)] or lines  # not a bracket alone
    faults = [line for line in lines if line.startswith(("ERROR", "error:"))]
    said = (faults or lines or [""])[-1]
    return re.sub(r"(/[\w.+-]+)+/", ".../", said)[:240]  # no folder of this machine in a result


def _run(command: list[str], seconds: float = SECONDS) -> tuple[bool, str]:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, env=_quiet()
        )
    except subprocess.TimeoutExpired:
        return False, f"no end after {seconds:.0f} s"
    return done.returncode == 0, "" if done.returncode == 0 else last_line(done.stderr or done.stdout)


def _quiet() -> dict[str, str]:
    return {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONWARNINGS": "ignore"}


def _constraint() -> str:
    path = os.environ.get("PIP_CONSTRAINT")
    return " ".join(Path(path).read_text(encoding="utf-8").split()) if path else ""


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def make(folder: Path, name: str) -> Installed:
    """The environment, made unless its record stands in it; a failed one is tried again."""
    home, record = folder / name, folder / name / "installed.json"
    if record.exists():
        known = Installed(**json.loads(record.read_text(encoding="utf-8")))
        if known.ok:
            return known
    recipe, start = RECIPES[name], time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    before, python = megabytes(home), str(python_of(folder, name))
    pip = [python, "-m", "pip", "install", "--quiet"]
    ok, message = _run([*pip, *recipe.install])
    remedy = ""
    if ok:
        ok, message = _run([python, "-c", recipe.check], 300)
        if not ok and recipe.remedy:
            remedy = "pip install " + " ".join(recipe.remedy)
            fixed, failure = _run([*pip, *recipe.remedy])
            ok, failure = _run([python, "-c", recipe.check], 300) if fixed else (False, failure)
            message = message if ok else failure
    versions = versions_of(python)
    found = Installed(
        name=name, ok=ok, message=message, remedy=remedy, seconds=time.perf_counter() - start,
        megabytes=megabytes(home) - before, packages=len(versions), constraint=_constraint(),
        version=versions.get(recipe.distribution.lower(), ""), versions=versions,
        python=".".join(map(str, sys.version_info[:3])),
    )  # fmt: skip
    record.write_text(json.dumps(asdict(found)), encoding="utf-8")
    return found


def versions_of(python: str) -> dict[str, str]:
    done = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], capture_output=True, text=True, check=False
    )
    listed = json.loads(done.stdout) if done.returncode == 0 else []
    return {entry["name"].lower(): entry["version"] for entry in listed if entry["name"] != "pip"}


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        made = make(Path(sys.argv[1]), wanted)
        print(wanted, made.ok, made.version, made.message, f"{made.seconds:.0f} s", flush=True)
