"""Where a release runs, by its flags, and how far it is.

It runs on threads of this process, or on workers of a cluster. Progress goes to stderr: stages, public
numbers of blocks or orders, their rate and the time that is left.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.errors import InvalidInput, require

if TYPE_CHECKING:
    from rich.progress import Task

    from adumbra.engine.dask import DaskEngine
    from adumbra.engine.local import LocalEngine, Progress
    from adumbra.mechanisms.base import Plan

EngineName = Annotated[
    str, typer.Option("--engine", help="Where it runs: local, or dask (the extra `dask`).")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="With --engine dask: the scheduler of a running cluster, tls://host:port. "
        "Default: a cluster of processes on this machine.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="With --engine dask: worker processes of a cluster on this machine. Default: one per core.",
        min=1,
    ),
]
PartsFolder = Annotated[
    Path | None,
    typer.Option(
        "--parts",
        help="With --engine dask: a folder that all workers share, for parts of released rows. "
        "Default: the folder that holds --out, or the one above it that is there.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Threads, per worker if there are workers. Default: all cores, divided by the workers.",
        min=1,
    ),
]


Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="The most memory that the release may take (each process of it, if it has workers), such "
        "as 2GB: a plan that needs more is refused, before any charge. Default of a release: what this "
        "machine has free.",
    ),
]
UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """What the command line says of where a release runs."""

    engine: str
    scheduler: str | None
    workers: int | None
    threads: int | None
    parts: Path | None
    memory: str | None = None


@contextmanager
def open_engine(asked: EngineFlags, out: Path) -> "Iterator[LocalEngine | DaskEngine]":
    """The engine that the flags ask for; workers of its own end with it."""
    known = asked.engine in {"local", "dask"}
    require(known, f"engine={asked.engine}: unknown; use local or dask")
    if asked.engine == "dask":
        with _dask(asked, out) as engine:
            yield engine
        return
    from adumbra.engine.local import LocalEngine

    for flag in ("scheduler", "workers", "parts"):
        value = getattr(asked, flag)
        require(value is None, f"{flag}={value}: needs workers; give --engine dask, or leave it out")
    memory = None if asked.memory is None else bytes_of(asked.memory)
    yield LocalEngine(threads=asked.threads, memory=memory)


def bytes_of(text: str) -> int:
    """A size as people write it."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([MGT]i?B)", text.strip())
    if found is None:
        raise InvalidInput(f"memory={text}: is not a size; write it like 2GB, 1.5GB or 800MB")
    return round(float(found[1]) * UNITS[found[2]])


def require_memory_for(planned: "Plan", memory: str | None) -> None:
    """Refuse a plan that needs more memory than it may take."""
    from adumbra.release.storage import require_memory

    if memory is not None and planned.size is not None:
        require_memory(planned.size.memory, 0, bytes_of(memory))


def _dask(asked: EngineFlags, out: Path) -> "DaskEngine":
    """An engine on workers; the flags are checked before one is started."""
    there = asked.workers is not None or asked.threads is not None
    memory = None if asked.memory is None else bytes_of(asked.memory)
    rule = "its workers are there already; leave out --workers and --threads"
    require(asked.scheduler is None or not there, f"scheduler={asked.scheduler}: {rule}")
    folder = asked.parts
    if folder is None:  # what is missing above --out is made with the release, as on threads
        folder = next(each for each in out.absolute().parents if each.is_dir())
    require(folder.is_dir(), f"parts={folder}: is not a folder; make it, or give another one by --parts")
    missing = find_spec("distributed") is None
    require(not missing, "engine=dask: Dask is not installed; pip install 'adumbra[dask]'")
    from adumbra.engine import cluster

    if asked.scheduler is not None:
        return cluster.connect(asked.scheduler, parts=folder, memory=memory)
    return cluster.local_engine(asked.workers, threads=asked.threads, parts=folder, memory=memory)


@contextmanager
def progress_bar(*, quiet: bool, unit: str = "blocks") -> "Iterator[Progress]":
    """Stages and public counts of blocks, or of the engine's unit, as a bar on stderr; never private."""
    if quiet:
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):
        """What `rate_words` says."""

        def render(self, task: "Task") -> Text:
            return Text(rate_words(task, unit), style="dim")

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), Rate())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


def rate_words(task: "Task", unit: str) -> str:
    """Blocks per second and the time that is left, where the number of blocks is public."""
    speed, rest = task.finished_speed or task.speed, task.time_remaining
    if task.total is None or speed is None or rest is None:
        return ""
    return f"{speed:.1f} {unit}/s, {rest:.0f} s left"
