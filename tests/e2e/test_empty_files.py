"""A file without rows under add-remove: nothing that leaves tells it from a file of one row."""

import pytest

from adumbra.audit import replay
from adumbra.audit.replay_kinds import kinds
from adumbra.relations import Neighbours
from support.cli import adumbra

GROWING = {kind.name: kind for kind in kinds() if kind.schema.neighbours is Neighbours.ADD_REMOVE}
LINES = ("a,b,c,y", "0.5,3,p,yes")
SMALL = ["moments/add-remove", "topk-frefirst/add-remove"]


def files(kind):
    """No row, and one."""
    if kind.schema.items is not None:
        return b"", b"1 2 3\n"
    return f"{LINES[0]}\n".encode(), "\n".join((*LINES, "")).encode()


@pytest.mark.parametrize("kind", GROWING.values(), ids=GROWING)
def test_a_release_of_no_rows_shows_nothing_of_it(kind, tmp_path):
    """Under the same noise, through the workflow: bytes, words and exit of both are alike."""
    assert replay.compare(tmp_path, kind, files(kind)) == []


def command(folder, kind, data):
    folder.mkdir()
    kind.write(folder, data)
    (folder / "table.toml").write_text(kind.schema.to_toml())
    place = replay.make_ledger(folder, kind)
    config = kind.config()
    options = [word for name, value in kind.options.items() for word in ("-o", f"{name}={value}")]
    return adumbra(
        *("release", kind.data_name, "--schema", "table.toml", "--method", kind.method, "--yes"),
        *("--epsilon", config.epsilon, "--delta", config.delta, *options),
        *("--ledger", place.name, "--population", replay.POPULATION, "--out", "release"),
        cwd=folder,
    )


@pytest.mark.parametrize("name", SMALL)
def test_the_command_releases_a_file_of_no_rows(name, tmp_path):
    kind = GROWING[name]
    done = [command(tmp_path / f"{number}", kind, data) for number, data in enumerate(files(kind))]
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    shapes = [sorted(str(path.relative_to(tmp_path / f"{number}" / "release"))
                     for path in (tmp_path / f"{number}" / "release").rglob("*"))
              for number in range(2)]  # fmt: skip
    assert shapes[0] == shapes[1]
    assert len(done[0].stdout.splitlines()) == len(done[1].stdout.splitlines())
    assert adumbra("verify", "release", cwd=tmp_path / "0").returncode == 0
