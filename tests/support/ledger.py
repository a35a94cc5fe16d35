"""Databases for ledger tests, guarantees in short, and a word in the summary on what did not run.

Every test that takes `location` runs on SQLite and on a real PostgreSQL server, which this module starts
as a non-root user on a Unix socket in a temporary folder.
"""

import atexit
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from adumbra.privacy.guarantee import PrivacyGuarantee, promise
from adumbra.privacy.ledger import Ledger, Population, create_ledger, tree_digest
from adumbra.relations import Neighbours, Unit

FULL = os.environ.get("ADUMBRA_FULL") == "1"
ROW = (Unit.ROW, Neighbours.REPLACE_ONE)
_counter = itertools.count()


def server_folder() -> Path | None:
    """Where initdb is, if a PostgreSQL server is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


DATABASES = ("sqlite", "postgresql") if server_folder() else ("sqlite",)


class Server:
    """A throw-away PostgreSQL cluster."""

    def __init__(self, folder: Path) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="adumbra-pg-"))
        self._bin = folder
        self._as = ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
        if self._as:
            shutil.chown(self.root, "postgres")
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "adumbra", "-D", str(self.root / "data"))
        self.start()
        # Whatever ends this process, kill -9 included, closes the pipe: then the server goes, too.
        stop = f"cat; {folder}/pg_ctl -D {self.root}/data -m immediate stop; rm -rf {self.root}"
        self._watch = subprocess.Popen(
            [*self._as, "sh", "-c", stop],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        atexit.register(self.remove)

    def start(self) -> None:
        settings = f"-k {self.root} -c listen_addresses='' -c max_connections=100"
        log = str(self.root / "log")
        self._run("pg_ctl", "-w", "-D", str(self.root / "data"), "-o", settings, "-l", log, "start")

    def crash(self) -> None:
        """Stop at once, without a checkpoint: recovery from the write-ahead log follows."""
        self._run("pg_ctl", "-w", "-D", str(self.root / "data"), "-m", "immediate", "stop")

    def remove(self) -> None:
        self._watch.stdin.close()
        self._watch.wait(timeout=60)

    def set(self, setting: str) -> None:
        """Change one setting of the running server."""
        self._sql(f"ALTER SYSTEM SET {setting}")
        self._sql("SELECT pg_reload_conf()")
        name, _, value = setting.partition(" = ")
        while self._sql(f"SHOW {name}").strip() != value:
            time.sleep(0.02)  # the server reads its settings when it gets round to it

    def new_location(self) -> str:
        """The address of a new, empty schema."""
        name = f"s{os.getpid()}_{next(_counter)}"
        self._sql(f"CREATE SCHEMA {name}")
        options = f"options=-csearch_path%3D{name}"
        return f"postgresql://adumbra@/postgres?host={self.root}&{options}"

    def _sql(self, statement: str) -> str:
        import psycopg

        address = f"host={self.root} user=adumbra dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            done = connection.execute(statement)
            return str(done.fetchone()[0]) if done.description else ""

    def _run(self, program: str, *arguments: str) -> str:
        command = [*self._as, str(self._bin / program), *arguments]
        # A server that stays must not hold our pipe: its output goes to a file.
        with tempfile.TemporaryFile() as output:
            subprocess.run(command, check=True, stdout=output, stderr=output, cwd="/", timeout=120)
            output.seek(0)
            return output.read().decode()


@cache
def server() -> Server:
    """The cluster of this test process."""
    folder = server_folder()
    assert folder is not None
    return Server(folder)


def new_location(database: str, folder: Path) -> str:
    """A place for a new ledger."""
    return (
        server().new_location()
        if database == "postgresql"
        else str(folder / f"ledger-{next(_counter)}.db")
    )


@pytest.fixture(params=DATABASES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a new ledger, on each database."""
    return new_location(request.param, tmp_path)


@pytest.fixture
def ledger(location: str) -> Ledger:
    """A new, empty ledger, on each database."""
    with create_ledger(location) as made:
        yield made


def pytest_terminal_summary(terminalreporter) -> None:
    """Figures that tests recorded under the name `figure`, and what did not run."""
    figures = [
        value
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "figure" and report.when == "call"
    ]
    if figures:
        terminalreporter.section("figures", sep="=")
        for figure in figures:
            terminalreporter.line(figure)
    if server_folder() is None:
        terminalreporter.section("PostgreSQL", sep="=", yellow=True)
        terminalreporter.line(
            "The ledger's PostgreSQL part DID NOT RUN: no server was found. Install the package "
            "`postgresql` (.ci/run does) to run it.",
            yellow=True,
        )


def ask(
    epsilon: float, delta: float = 0.0, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE
) -> PrivacyGuarantee:
    """A guarantee, as a mechanism would claim it."""
    return promise(epsilon, delta, unit, neighbours)


def register(
    ledger: Ledger, name: str = "people", epsilon: float = 1.0, delta: float = 0.0, **more
) -> Population:
    """A population of rows under replace-one."""
    population = Population(name, *ROW, epsilon, delta, **more)
    ledger.register(population)
    return population


def reserve(ledger: Ledger, name: str = "people", epsilon: float = 0.1, delta: float = 0.0) -> str:
    """One reservation."""
    return ledger.reserve(name, ask(epsilon, delta), request={"method": "test"}, source_pin="pin")


def stage(folder: Path, content: bytes = b"released bytes") -> Path:
    """A staged release folder."""
    staged = folder / f".staged-{next(_counter)}"
    (staged / "data").mkdir(parents=True)
    (staged / "card.json").write_bytes(b"{}")
    (staged / "data" / "rows.bin").write_bytes(content)
    return staged


def run(ledger: Ledger, folder: Path, entry: str, until: str = "commit") -> Path:
    """One entry from draw to the step named; returns the target."""
    target = folder / f"release-{entry}"
    steps = ("draw", "seal", "publish", "commit")
    for step in steps[: steps.index(until) + 1]:
        if step == "draw":
            ledger.draw(entry, ("rows",))
        elif step == "seal":
            staged = stage(folder)
            ledger.seal(entry, staged=staged, digest=tree_digest(staged))
        elif step == "publish":
            ledger.publish(entry, target)
        else:
            ledger.commit(entry)
    return target
