"""Files that mean harm or are broken: damaged ledgers, pipes, huge headers, letters that nobody sees."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adumbra.cli.main import app
from adumbra.data.opening import find_files
from adumbra.errors import AdumbraError, InvalidInput, visible
from adumbra.privacy.ledger import create_ledger, open_ledger
from adumbra.release import formats
from adumbra.report.page import template
from support.cli import adumbra
from support.ledger import register, reserve

TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@pytest.fixture
def ledger_bytes(tmp_path) -> bytes:
    with create_ledger(tmp_path / "l.db") as ledger:
        register(ledger)
        for _ in range(3):
            reserve(ledger)
    return (tmp_path / "l.db").read_bytes()


def look(path: Path) -> int:
    """Verify and show; the exit code."""
    try:
        with open_ledger(path) as ledger:
            ledger.verify()
            ledger.show()
    except AdumbraError as error:
        return error.exit_code
    return 0


def test_a_damaged_ledger_exits_with_4(ledger_bytes, tmp_path):
    path = tmp_path / "damaged.db"
    rng = np.random.default_rng(11)
    counts = dict.fromkeys((0, 4), 0)
    size = len(ledger_bytes)
    for number in range(150):
        damaged = bytearray(ledger_bytes)
        if number % 3 == 0:  # a torn page
            start = 512 * int(rng.integers(0, size // 512))
            damaged[max(start, 16) : start + 512] = rng.bytes(start + 512 - max(start, 16))
        elif number % 3 == 1:  # a short file
            del damaged[int(rng.integers(200, size)) :]
        else:  # single bytes
            for place in rng.integers(16, size, 40):
                damaged[place] ^= 255
        path.write_bytes(damaged)
        path.chmod(0o600)
        code = look(path)
        assert code in counts, f"number {number} exits with {code}"
        counts[code] += 1
    assert counts[4] > 90  # free space and unused bytes may change without harm


def test_a_damaged_ledger_says_so_on_the_command_line(ledger_bytes, tmp_path):
    path = tmp_path / "damaged.db"
    path.write_bytes(ledger_bytes[: len(ledger_bytes) // 2])
    path.chmod(0o600)
    done = adumbra("ledger", "show", "--ledger", path)
    assert done.returncode == 4
    assert "the file is damaged; keep it, and go on with `adumbra ledger restore`" in done.stderr
    path.write_bytes(ledger_bytes[:16] + bytes(4096))
    assert adumbra("ledger", "verify", "--ledger", path).returncode == 4


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.dat", "rows.tsv"])
def test_a_pipe_is_not_data(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InvalidInput, match="is a pipe or a device; write the rows to a file first"):
        find_files(tmp_path / name)
    with pytest.raises(InvalidInput):
        find_files(tmp_path)
    with pytest.raises(InvalidInput):
        find_files(str(tmp_path / "*"))


def huge_header(path: Path, size: int) -> None:
    """A safetensors file whose header is valid and of many small arrays."""
    one = {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}
    count = size // (len(json.dumps(one)) + 12)
    header = json.dumps({f"a{number:07d}": one for number in range(count)}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def test_a_huge_safetensors_header_is_refused_before_it_is_parsed(tmp_path):
    huge_header(tmp_path / "model.safetensors", 46_000_000)
    code = (
        "import sys, resource\n"
        "from pathlib import Path\n"
        "from adumbra.release import formats\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(formats.arrays_fault(Path(sys.argv[1]), {}))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model.safetensors"],
        capture_output=True,
        text=True,
        check=True,
    )
    fault, grown = done.stdout.splitlines()
    assert fault == "its header is larger than 1048576 bytes"
    assert int(grown) * 1024 < 16_000_000  # kilobytes


def test_arrays_with_too_many_names_are_not_written(tmp_path):
    names = {f"{number:04d}{'x' * 1000}": np.zeros(1) for number in range(1200)}
    with pytest.raises(InvalidInput, match="their names and shapes take more than 1048576 bytes"):
        formats.write_arrays(tmp_path / "model.safetensors", names)


def test_letters_that_turn_others_round_are_shown_escaped(tmp_path):
    for letter in TURNING:
        assert visible(f"a{letter}b") == f"a\\u{ord(letter):04x}b"
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    place = tmp_path / f"x{TURNING}y"
    done = adumbra("ledger", "show", "--ledger", place)
    assert done.returncode == 2
    assert not set(TURNING) & set(done.stderr)
    assert "x\\u202a\\u202b" in done.stderr
    create_ledger(tmp_path / "l.db").close()
    words = ["ledger", "backup", str(tmp_path / f"k{TURNING}"), "--ledger", str(tmp_path / "l.db")]
    text = CliRunner().invoke(app, words).stdout
    assert text.startswith("backed up to")
    assert not set(TURNING) & set(text)


def test_a_page_shows_them_escaped_too():
    source = template("card.html.j2").environment.from_string("{{ word }}")
    assert source.render(word=f"a{TURNING[4]}<b>") == "a\\u202e&lt;b&gt;"
