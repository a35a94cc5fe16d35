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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Engine, create_engine

from adumbra import workflow
from adumbra.audit.planted import Patch, plant
from adumbra.audit.recorder import DirectEngine
from adumbra.audit.replay_kinds import NAME, POPULATION, Kind, families
from adumbra.audit.transcripts import Steps, watching
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import Population, create_ledger, open_ledger, store
from adumbra.privacy.ledger import ledger as ledger_module
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant, replaying_grant
from adumbra.release import storage
from adumbra.release.card import card_faults
from adumbra.report import page

LEDGER, OUT = "ledger.db", "release"
T = TypeVar("T")
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
            engine=DirectEngine(),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """One table with everything that its release showed, and the noise that it drew."""

    folder: Path
    kind: Kind
    act: Act
    record: NoiseRecord
    steps: Steps
    seen: Seen

    def differences(self, table: bytes) -> list[str]:
        """What a neighbouring file makes different under the same noise; nothing may."""
        again, steps = NoiseRecord(calls=self.record.calls), Steps()
        noise = _replayed(again, watching(steps, self.steps))
        other = _observe(self.folder, self.kind, table, self.act, noise)
        found = [
            f"{name} differs"
            for name in ("code", "stdout", "stderr", "names")
            if getattr(self.seen, name) != getattr(other, name)
        ]
        names = sorted(self.seen.files.keys() | other.files.keys())
        found += [
            f"{name} differs" for name in names if self.seen.files.get(name) != other.files.get(name)
        ]
        missing = again.unmatched() if not self.steps.sequences else ()
        if missing or len(steps.steps) != len(self.steps.steps):
            found.append(f"noise calls on the table only: {missing}")
        if self.seen.code != 0:
            found.append(f"the release failed: {self.seen.stdout[:200]} {self.seen.stderr[:200]}")
        return found


def observe_base(folder: Path, kind: Kind, table: bytes, *, act: Act = release_through_workflow) -> Base:
    """Release a table, recording its noise; its neighbours are compared with it."""
    record, steps = NoiseRecord(), Steps()
    seen = _observe(folder, kind, table, act, _recorded(record, watching(steps)))
    return Base(folder=folder, kind=kind, act=act, record=record, steps=steps, seen=seen)


def compare(
    folder: Path, kind: Kind, tables: tuple[bytes, bytes], *, act: Act = release_through_workflow
) -> list[str]:
    """What differs between the runs on two neighbouring files; nothing may."""
    return observe_base(folder, kind, tables[0], act=act).differences(tables[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of one kind of release."""

    kind: str
    pairs: int
    hostile: int  # of them
    differing: tuple[str, ...]  # what differed, pair by pair; nothing may


def replay_kind(folder: Path, kind: Kind, pairs: int, seed: int = 0) -> Replayed:
    """Compare so many pairs of neighbours, about half of them hostile."""
    hostile, differing = 0, list[str]()
    for first, others in families(kind, pairs, seed):
        base = observe_base(folder, kind, first)
        for second, is_hostile in others:
            hostile += is_hostile
            differing += base.differences(second)
    return Replayed(kind=kind.name, pairs=pairs, hostile=hostile, differing=tuple(differing))


def _recorded(record: NoiseRecord, patches: list[Patch]) -> list[Patch]:
    return [*patches, (ledger_module, "open_grant", _granting(recording_grant, record))]


def _replayed(record: NoiseRecord, patches: list[Patch]) -> list[Patch]:
    return [*patches, (ledger_module, "open_grant", _granting(replaying_grant, record))]


def _granting(make: Callable[..., Grant], record: NoiseRecord) -> Callable[..., Grant]:
    def open_recorded(
        _entry: str, guarantee: PrivacyGuarantee, purposes: tuple[str, ...], _head: str
    ) -> Grant:
        return make(record, 0, guarantee, purposes)

    return open_recorded


def _observe(folder: Path, kind: Kind, data: bytes, act: Act, noise: list[Patch]) -> Seen:
    """Run once in a folder of always the same name, and gather what can be seen."""
    place = folder / "run"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    template = folder / f"template-{kind.name.replace('/', '-')}.db"
    shutil.copyfile(template if template.exists() else make_ledger(folder, kind), place / LEDGER)
    (place / LEDGER).chmod(0o600)
    (place / kind.data_name).write_bytes(data)
    (place / f"{NAME}.toml").write_text(kind.schema.to_toml(), encoding="utf-8")
    patches: list[Patch] = [
        *noise,
        (store, "create_engine", _one_engine),
        (workflow, "render", _remembered_page),
        (page, "_figures", _remembered_figures),
        (storage, "card_faults", _remembered_faults),
    ]
    with _captured() as (out, err), plant(patches):
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


# What follows changes no result, only the time of many small releases: functions of a card alone are
# remembered by the whole card, and one connection pool serves the ledger that is always in one place.


def _remembered(function: Callable[[Any], T], *parts: str) -> Callable[[Any], T]:
    known: dict[str, T] = {}

    def remembered(card: Any) -> T:  # noqa: ANN401 - a card, or what should be one
        whole = repr([(part, card[part]) for part in parts or card])
        if whole not in known:
            known[whole] = function(card)
        return known[whole]

    return remembered


_remembered_page = _remembered(page.render)
# most of a small release's time goes into its pictures, which are made from these two entries
_remembered_figures = _remembered(page._figures, "guarantee", "mechanisms")  # noqa: SLF001
_remembered_faults = _remembered(card_faults)
_ENGINES: dict[str, Engine] = {}


def _one_engine(url: URL, **options: Any) -> Engine:  # noqa: ANN401
    place = str(url)
    if place not in _ENGINES:
        _ENGINES[place] = create_engine(url, **options)
    return _ENGINES[place]


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err
