"""Real faults of the machine: full and read-only disks, too little memory, before and after the charge.

Each command runs in a mount namespace of its own, with small file systems in memory.
"""

import json
import subprocess
import sys
import textwrap

import pytest

from adumbra.privacy.ledger import Population, create_ledger, open_ledger
from adumbra.relations import Neighbours, Unit
from support.cli import COMMAND

SCHEMA = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
declared_by = "test"
[[groups]]
names = ["x", "y"]
kind = "number"
lower = 0
upper = 1
"""
RELEASE = (
    "release rows.csv --schema s.toml --epsilon 1 --ledger book/l.db --population p --out out/r --yes"
)
# Does what a shell command says once the charge is durable, then goes on as the command would.
AFTER = textwrap.dedent(
    """
    import resource, subprocess, sys
    from adumbra.cli import main
    from adumbra.privacy.ledger import Ledger
    right = Ledger.draw
    fault, limit = sys.argv.pop(1), int(sys.argv.pop(1))
    def draw(book, entry, purposes):
        grant = right(book, entry, purposes)
        subprocess.run(fault, shell=True, check=True)
        if limit:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
        return grant
    Ledger.draw = draw
    main.main()
    """
)


@pytest.fixture
def place(tmp_path):
    for name in ("out", "book"):
        (tmp_path / name).mkdir()
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "rows.csv").write_text("x,y\n" + "0.5,0.25\n" * 200)
    with create_ledger(tmp_path / "book/l.db") as book:
        book.register(Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 9.0, 1e-6))
    return tmp_path


def run(place, mounts, *command):
    """The command after some mounts that only it sees."""
    script = f'set -e; {mounts}\nexec "$@"'
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *map(str, command)],
        cwd=place, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def entries(place):
    with open_ledger(place / "book/l.db") as book:
        return book.show("p")[0].entries


SMALL = "mount -t tmpfs -o size=64k tmpfs out"
READ_ONLY = "mount -t tmpfs -o ro tmpfs out"
LEDGER_READ_ONLY = "mount --bind book book; mount -o remount,bind,ro book"
LEDGER_SMALL = "cp -p book/l.db l.db; mount -t tmpfs -o size=6m tmpfs book; cp -p l.db book/l.db"
FILL = "dd if=/dev/zero of=book/fill 2>/dev/null || true"
LEDGER_FULL = f"{LEDGER_SMALL}; {FILL}"


@pytest.mark.parametrize(
    ("mounts", "code", "words"),
    [
        (SMALL, 5, "of disk and 66 kB are free; make room or choose another place"),
        (READ_ONLY, 6, "the file system is read-only; choose another place"),
        ("ulimit -v 6000000", 7, "memory: the method needs up to"),
        (LEDGER_READ_ONLY, 8, "read-only"),
        (LEDGER_FULL, 8, "its disk is full; make room and try again"),
    ],
    ids=["full", "read-only", "memory", "ledger read-only", "ledger full"],
)
def test_what_can_be_foreseen_is_refused_before_the_charge(place, mounts, code, words):
    if code == 7:  # synthetic rows are streamed, so that only columns need memory
        (place / "s.toml").write_text(SCHEMA.replace('names = ["x", "y"]', 'match = "x{0..29999}"'))
        header, row = ",".join(f"x{at}" for at in range(30_000)), ",".join(["0.5"] * 30_000)
        (place / "rows.csv").write_text(f"{header}\n{row}\n{row}\n")
    done = run(place, mounts, COMMAND, *RELEASE.split())
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "stays charged" not in done.stderr
    assert entries(place) == ()


@pytest.mark.parametrize(
    ("mounts", "fault", "limit", "code", "words"),
    [
        ("mount -t tmpfs -o size=9m,nr_inodes=4 tmpfs out", "true", 0, 5, "out=out/r: the disk is full"),
        ("mount -t tmpfs tmpfs out", "mount -o remount,ro out", 0, 6, "out=out/r: the file system is"),
        (LEDGER_SMALL, FILL, 0, 8, "its disk is full; make room and try again"),
    ],
    ids=["full", "read-only", "ledger full"],
)
def test_a_fault_after_the_charge_has_its_code_and_says_what_stays_charged(
    place, mounts, fault, limit, code, words
):
    more = ["-o", "synthetic_rows=20000000"] if limit else []
    done = run(place, mounts, sys.executable, "-c", AFTER, fault, limit, *RELEASE.split(), *more)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert ": is drawn and stays charged; its noise is never drawn again" in done.stderr
    assert len(entries(place)) == (code != 8)  # of the last one the book was a copy


def test_a_plan_says_what_it_needs_and_a_private_number_of_rows_changes_nothing(place):
    schema = SCHEMA.replace("replace-one", "add-remove")
    (place / "s.toml").write_text(schema)
    said = []
    for rows in (200, 3):
        (place / "rows.csv").write_text("x,y\n" + "0.5,0.25\n" * rows)
        words = "plan --schema s.toml --data rows.csv --epsilon 1 -o synthetic_rows=1000"
        said.append(run(place, "true", COMMAND, *words.split(), "--json").stdout)
    assert said[0] == said[1]
    size = json.loads(said[0])["size"]
    assert size["assumed_rows"] == 1000
    assert 2**28 < size["peak_memory_bytes"] < 2**30
    assert 16_000 < size["output_bytes"] < 2**20
