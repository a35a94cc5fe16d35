"""Replay invariance: with every noise value frozen, nothing that leaves may depend on one row.

A whole release runs twice, on a table and on its neighbour, through the same door as production: files
are read, a (throw-away) ledger is paid, the folder with card and page is written, the public ledger is
exported. The grant alone is another one: it records the noise of the first run and replays it in the
second. Then everything that anybody outside can see must agree to the last byte:

    files, their names and sizes; stdout; stderr; exit code; public ledger export; leftovers beside it
"""

import contextlib
import io
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adumbra import workflow
from adumbra.audit.planted import plant
from adumbra.audit.replay_kinds import NAME, POPULATION, Kind
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import Population, create_ledger, open_ledger
from adumbra.privacy.ledger import ledger as ledger_module
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant, replaying_grant
from adumbra.report import page

LEDGER, OUT = "ledger.db", "release"
Act = Callable[[Path, Kind], int]  # release the data of a folder and return an exit code


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that can be seen from outside after one run."""

    code: int
    stdout: str
    stderr: str
    names: tuple[str, ...]
    files: dict[str, bytes]


def release_through_workflow(folder: Path, kind: Kind) -> int:
    """The Python door; an exception is an exit code, as it is for the command."""
    try:
        workflow.release(
            folder / kind.data_name,
            kind.config(),
            schema=kind.schema,
            ledger=folder / LEDGER,
            population=POPULATION,
            out=folder / OUT,
        )
    except Exception as error:  # noqa: BLE001 - any failure that data can cause must be seen
        print(type(error).__name__, error)  # noqa: T201 - what a person would see
        return 1
    return 0


def make_ledger(folder: Path, kind: Kind) -> Path:
    """A throw-away ledger with one population that can pay for one release."""
    place = folder / f"template-{kind.name.replace('/', '-')}.db"
    config = kind.config()
    with create_ledger(place) as ledger:
        ledger.register(
            Population(
                name=POPULATION,
                unit=kind.schema.unit,
                neighbours=kind.schema.neighbours,
                epsilon=config.epsilon,
                delta=config.delta,
            )
        )
    return place


def compare(
    folder: Path, kind: Kind, tables: tuple[bytes, bytes], *, act: Act = release_through_workflow
) -> list[str]:
    """What differs between the runs on two neighbouring files; nothing may."""
    template = next(iter(folder.glob(f"template-{kind.name.replace('/', '-')}.db")), None)
    template = template or make_ledger(folder, kind)
    record = NoiseRecord()
    first = _observe(folder, kind, template, tables[0], act, _granting(record, replays=False))
    second = _observe(folder, kind, template, tables[1], act, _granting(record, replays=True))
    found = [
        f"{name} differs"
        for name in ("code", "stdout", "stderr", "names")
        if getattr(first, name) != getattr(second, name)
    ]
    names = sorted(first.files.keys() | second.files.keys())
    found += [f"{name} differs" for name in names if first.files.get(name) != second.files.get(name)]
    if first.code != 0:
        found.append(f"the release failed: {first.stdout[:200]} {first.stderr[:200]}")
    return found


def _granting(record: NoiseRecord, *, replays: bool) -> Callable[..., Grant]:
    def open_recorded(
        _entry: str, guarantee: PrivacyGuarantee, purposes: tuple[str, ...], _head: str
    ) -> Grant:
        make = replaying_grant if replays else recording_grant
        return make(record, 0, guarantee, purposes)

    return open_recorded


def _observe(  # noqa: PLR0913, PLR0917 - one run and all that it starts from
    folder: Path, kind: Kind, template: Path, data: bytes, act: Act, granting: Callable[..., Grant]
) -> Seen:
    """Run once in a folder of always the same name, and gather what can be seen."""
    place = folder / "run"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copyfile(template, place / LEDGER)
    (place / LEDGER).chmod(0o600)
    (place / kind.data_name).write_bytes(data)
    (place / f"{NAME}.toml").write_text(kind.schema.to_toml(), encoding="utf-8")
    with (
        _captured() as (out, err),
        plant([(ledger_module, "open_grant", granting), (page, "_figures", _figures)]),
    ):
        code = act(place, kind)
    with open_ledger(place / LEDGER) as ledger:
        ledger.export(place / "export.jsonl", public=True)
    shown = [
        path for path in sorted(place.rglob("*")) if not path.name.startswith((LEDGER, kind.data_name))
    ]
    return Seen(
        code=code,
        stdout=out.getvalue(),
        stderr=err.getvalue(),
        names=tuple(str(path.relative_to(place)) for path in shown),
        files={str(path.relative_to(place)): path.read_bytes() for path in shown if path.is_file()},
    )


def _figures(card: Mapping[str, Any]) -> list[dict[str, str]]:
    """The page's own figures, drawn once for the card entries that they are made from."""
    place = repr((card["guarantee"], card["mechanisms"], card["about"]))
    if place not in _DRAWN:
        _DRAWN[place] = _draw_figures(card)
    return _DRAWN[place]


_draw_figures = page._figures  # noqa: SLF001 - most of a small release's time goes into its pictures
_DRAWN: dict[str, list[dict[str, str]]] = {}


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err
