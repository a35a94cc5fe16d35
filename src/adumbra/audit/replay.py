"""Replay invariance: with every noise value frozen, nothing that leaves may depend on one row.

A whole release runs twice, on a table and on its neighbour, by the same code as production: files are
read, a (throw-away) ledger is paid, the folder with card and page is written, the public ledger is
exported. The grant alone is another one, and it is passed in: it records the noise of the first run and
replays it in the second. So its folders are stamped NOT PRIVATE, and no other release of the process can
come to such a grant. Then everything that anybody outside can see must agree to the last byte:

    files, their names and sizes; stdout; stderr; exit code; public ledger export; leftovers beside it

stdout and stderr belong to the process. They are compared where the caller says what was written to them
(`Streams`); `adumbra audit --replay` runs in a process of its own (`alone`) and does.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from adumbra.audit.alone import reports
from adumbra.audit.recorder import DirectEngine
from adumbra.audit.replay_kinds import NAME, POPULATION, Kind, families
from adumbra.prepared import OpenGrant, _publish
from adumbra.privacy.grant import Grant
from adumbra.privacy.ledger import Ledger, Population, create_ledger, open_ledger
from adumbra.privacy.recorded_noise import NoiseRecord, RecordedGrant, recording_grant, replaying_grant
from adumbra.workflow import prepare

LEDGER, OUT = "ledger.db", "release"
Streams = Callable[[], tuple[str, str]]  # what went to stdout and to stderr since the last call


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One release of a table: where its files are, what pays for it, and how its grant is opened."""

    folder: Path
    kind: Kind
    ledger: Ledger
    open_grant: OpenGrant


Act = Callable[[Run], tuple[int, str]]  # release what is in the folder; returns exit code and words


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that can be seen from outside after one run."""

    code: int
    words: str
    stdout: str
    stderr: str
    names: tuple[str, ...]
    files: dict[str, bytes]


def unwatched() -> tuple[str, str]:
    """Streams that are not looked at."""
    return "", ""


def release_through_workflow(run: Run) -> tuple[int, str]:
    """As `workflow.release` does it; an exception is an exit code, as it is for the command."""
    try:
        prepared = prepare(
            run.folder / run.kind.data_name,
            run.kind.config(),
            schema=run.kind.schema,
            ledger=run.ledger,
            population=POPULATION,
            out=run.folder / OUT,
            engine=DirectEngine(),
        )
        _publish(prepared, run.folder / OUT, run.open_grant)
    except Exception as error:  # noqa: BLE001 - any failure that data can cause must be seen
        return 1, f"{type(error).__name__} {error}"  # what a person would see
    return 0, ""


def make_ledger(folder: Path, kind: Kind) -> Path:
    """A throw-away ledger with one population that can pay for one release."""
    place = _template(folder, kind)
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
class Bench:
    """Where the releases of one kind run, one after the other."""

    folder: Path
    kind: Kind
    act: Act
    streams: Streams
    ledger: Ledger  # of `folder / "run"`; the file is made anew for each run

    def observe(self, data: bytes, open_grant: OpenGrant) -> Seen:
        """Run once in a folder of always the same name, and gather what can be seen."""
        place = self.folder / "run"
        self.ledger.close()
        _lay_out(self.folder, self.kind)
        self.kind.write(place, data)
        (place / f"{NAME}.toml").write_text(self.kind.schema.to_toml(), encoding="utf-8")
        self.streams()  # what was written before is not this run's
        run = Run(folder=place, kind=self.kind, ledger=self.ledger, open_grant=open_grant)
        code, words = self.act(run)
        self.ledger.export(place / "export.jsonl", public=True)
        stdout, stderr = self.streams()
        hidden = (LEDGER, self.kind.data_name)
        shown = [path for path in sorted(place.rglob("*")) if not path.name.startswith(hidden)]
        return Seen(
            code=code,
            words=words,
            stdout=stdout,
            stderr=stderr,
            names=tuple(str(path.relative_to(place)) for path in shown),
            files={str(path.relative_to(place)): path.read_bytes() for path in shown if path.is_file()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """One table with everything that its release showed, and the noise that it drew."""

    bench: Bench
    record: NoiseRecord
    seen: Seen

    def differences(self, table: bytes) -> list[str]:
        """What a neighbouring file makes different under the same noise; nothing may."""
        again = self.record.followed()
        other = self.bench.observe(table, _opening(replaying_grant, again))
        found = [
            f"{name} differs"
            for name in ("code", "words", "stdout", "stderr", "names")
            if getattr(self.seen, name) != getattr(other, name)
        ]
        names = sorted(self.seen.files.keys() | other.files.keys())
        found += [
            f"{name} differs" for name in names if self.seen.files.get(name) != other.files.get(name)
        ]
        if (fault := again.fault()) is not None:
            found.append(fault)
        if self.seen.code != 0:
            said = (self.seen.words, self.seen.stdout, self.seen.stderr)
            found.append(f"the release failed: {' '.join(text[:200] for text in said)}")
        return found


def observe_base(
    folder: Path,
    kind: Kind,
    table: bytes,
    *,
    act: Act = release_through_workflow,
    streams: Streams = unwatched,
) -> Base:
    """Release a table, recording its noise; its neighbours are compared with it."""
    record = NoiseRecord()
    with open_ledger(_lay_out(folder, kind)) as ledger:  # closed after each run, open when it is asked
        bench = Bench(folder=folder, kind=kind, act=act, streams=streams, ledger=ledger)
    return Base(bench=bench, record=record, seen=bench.observe(table, _opening(recording_grant, record)))


def compare(
    folder: Path,
    kind: Kind,
    tables: tuple[bytes, bytes],
    *,
    act: Act = release_through_workflow,
    streams: Streams = unwatched,
) -> list[str]:
    """What differs between the runs on two neighbouring files; nothing may."""
    return observe_base(folder, kind, tables[0], act=act, streams=streams).differences(tables[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of one kind of release."""

    kind: str
    pairs: int
    hostile: int  # of them
    differing: tuple[str, ...]  # what differed, pair by pair; nothing may


def replay_alone(pairs: int, method: str | None = None) -> Iterator[Replayed]:
    """Compare so many pairs of each kind in a process of its own, where stdout and stderr are seen."""
    for report in reports("replay", pairs, method or ""):
        yield Replayed(**{**report, "differing": tuple(report["differing"])})


def replay_kind(
    folder: Path, kind: Kind, pairs: int, seed: int = 0, *, streams: Streams = unwatched
) -> Replayed:
    """Compare so many pairs of neighbours, about half of them hostile."""
    hostile, differing = 0, list[str]()
    for first, others in families(kind, pairs, seed):
        base = observe_base(folder, kind, first, streams=streams)
        for second, is_hostile in others:
            hostile += is_hostile
            differing += base.differences(second)
    return Replayed(kind=kind.name, pairs=pairs, hostile=hostile, differing=tuple(differing))


def _opening(make: Callable[..., RecordedGrant], record: NoiseRecord) -> OpenGrant:
    """Open the auditor's grant for an entry that was paid."""

    def opened(ledger: Ledger, entry: str, purposes: tuple[str, ...]) -> Grant:
        return make(record, 0, ledger.mark_drawn(entry, purposes), purposes)

    return opened


def _template(folder: Path, kind: Kind) -> Path:
    return folder / f"template-{kind.name.replace('/', '-')}.db"


def _lay_out(folder: Path, kind: Kind) -> Path:
    """An empty folder with a ledger that nothing was taken from; returns the ledger's place."""
    place, template = folder / "run", _template(folder, kind)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copyfile(template if template.exists() else make_ledger(folder, kind), place / LEDGER)
    (place / LEDGER).chmod(0o600)
    return place / LEDGER
