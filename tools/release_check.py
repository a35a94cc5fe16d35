"""`make release-check`: build, look inside, install alone, run the demo.

    python tools/release_check.py OUT

The sdist may hold tracked files only, for a user's rows and ledger lie in the same folder as the code.
The wheel is installed into an environment of its own, with pinned dependencies and nothing of this
folder, and its demo must reach a verified release and an evaluation there.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE = {"PKG-INFO"}  # written by the build itself


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command; its words are shown only where it fails."""
    words = [str(word) for word in command]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def strangers(sdist: Path, tracked: set[str]) -> list[str]:
    """Members of an sdist that git does not track."""
    with tarfile.open(sdist) as packed:
        names = [member.name.split("/", 1)[1] for member in packed if member.isfile()]
    return sorted(name for name in names if name not in tracked | MADE)


def missing(wheel: Path, tracked: set[str]) -> list[str]:
    """Tracked files of the package that the wheel left out."""
    with zipfile.ZipFile(wheel) as packed:
        names = {f"src/{name}" for name in packed.namelist()}
    return sorted(name for name in tracked if name.startswith("src/adumbra/") and name not in names)


def false_classifiers(settings: dict[str, object]) -> list[str]:
    """Classifiers that the project's own files do not bear out."""
    project = settings["project"]
    assert isinstance(project, dict)  # noqa: S101 - a table of TOML
    needs = {
        "Typing :: Typed": (ROOT / "src/adumbra/py.typed").exists(),
        "Programming Language :: Python :: 3 :: Only": project["requires-python"].startswith(">=3"),
    }
    listed = project["classifiers"]
    licensed = [one for one in listed if one.startswith("License ::")]  # the expression says it alone
    return [name for name, holds in needs.items() if name in listed and not holds] + licensed


def main(out: str) -> None:
    """All checks in order; the first that fails ends it."""
    place = Path(out).resolve()
    place.mkdir(parents=True, exist_ok=True)
    for old in (*place.glob("*.whl"), *place.glob("*.tar.gz")):
        old.unlink()
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place)
    (sdist,), (wheel,) = place.glob("*.tar.gz"), place.glob("*.whl")
    for made in (sdist, wheel):
        print(f"built     {made.name}, {made.stat().st_size:,} bytes")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    tracked = set(run("git", "ls-files").splitlines())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    faults = [f"sdist: {name} is not tracked by git" for name in strangers(sdist, tracked)]
    faults += [f"wheel: {name} is absent" for name in missing(wheel, tracked)]
    faults += [f"classifier {name}: does not hold" for name in false_classifiers(settings)]
    if faults:
        sys.exit("\n".join(faults))
    print("checked   twine, tracked files only, package whole, classifiers")
    alone(wheel)


def alone(wheel: Path) -> None:
    """Install the wheel where nothing of this folder is, and run its demo."""
    with tempfile.TemporaryDirectory() as work:
        place = Path(work)
        venv.create(place / "env", with_pip=True)
        python = place / "env/bin/python"
        quiet = ("--quiet", "--disable-pip-version-check", "--no-compile")
        run(python, "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", wheel, cwd=place)
        home = run(python, "-c", "import adumbra; print(adumbra.__file__)", cwd=place).strip()
        if not Path(home).is_relative_to(place):
            sys.exit(f"the wheel's environment imports {home}, which is not its own")
        command = place / "env/bin/adumbra"
        run(command, "demo", "--out", "demo", cwd=place)
        print(run(command, "verify", "demo/release", cwd=place).splitlines()[0])
        if "NOT FOR RELEASE" not in (place / "demo/evaluation.html").read_text(encoding="utf-8"):
            sys.exit("demo/evaluation.html: is not the stamped page")
    print("installed alone; the demo reaches a verified release and an evaluation")


if __name__ == "__main__":
    main(*sys.argv[1:])
