"""A release folder: where it goes, whether the machine has room, and its files, whole or not at all.

    card.json            the card; lists SHA-256 and size of every other file, and seals itself
    card.sig             a signature of card.json, if the publisher signs; the card does not list it
    proof.json           that the ledger's log holds the card's digest; not listed either
    card.html            the same for people
    data/<name>.parquet  released rows
    model.safetensors    released arrays

It is drawn and written after the charge, so a bad place, a full disk and too little memory are refused
before it: by public numbers, which the plan prints. `write_staged` fills a new folder that the ledger
then publishes by one rename; `artifact.py` reads and verifies it.
"""

import fcntl
import os
import resource
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from adumbra.errors import InvalidInput, NoSpace, OutOfMemory, require, system_fault
from adumbra.release import formats
from adumbra.release.artifact import NAME
from adumbra.release.card import (
    Card,
    plain,
    sealed_bytes,
)
from adumbra.release.detached import sync_directory
from adumbra.release.formats import AnyArray, TableStream
from adumbra.release.promise import FORMATS, PAGE_LIMIT

LONGEST_ENTRY = "0" * 24  # an entry's id is shorter in any ledger that a disk can hold
SMALL = 2**16  # bytes of a file of the kernel that is read
DAY = 86_400 * 10**9  # nanoseconds
OPEN_FOLDER = 0o755  # of what everybody may read, whatever the umask is
Page = Callable[[Card], str]


def staged_at(target: Path, entry: str) -> Path:
    """A name that nobody can foresee, beside the target: a release is written there first."""
    return target.parent / f".{target.name}.{entry}.{secrets.token_hex(8)}.staged"


@contextmanager
def staging(target: Path, entry: str) -> Iterator[Path]:
    """A new, empty folder of ours alone beside the target; locked while the release is made.

    `mkdir` follows no link and takes no folder that is there. The lock goes with the process, so that
    `ledger clean` can tell what a crash left from what is being written.
    """
    make_parents(target.parent)
    folder = staged_at(target, entry)
    folder.mkdir(mode=0o700)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(handle, 0o700)
        yield folder
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether a process that lives is writing here."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def make_parents(folder: Path) -> None:
    """Make a folder and those above it that are missing, readable for all."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(mode=OPEN_FOLDER)
            each.chmod(OPEN_FOLDER)


def require_place(target: Path) -> None:
    """Refuse a folder that exists, lies in another release, or cannot be made; leaves nothing behind."""
    require(not os.path.lexists(target), f"out={target}: exists already; choose a new folder")
    above = [Path(os.path.realpath(target.absolute().parent))]
    above += above[0].parents
    around = next((folder for folder in above if _is_release(folder)), None)
    require(
        around is None,
        f"out={target}: lies inside the release {around}, which would no longer verify; choose a "
        "folder beside it",
    )
    missing = [folder for folder in above if not folder.exists()]
    probe = staged_at(target, LONGEST_ENTRY)
    try:
        probe.mkdir(mode=0o700, parents=True)
    except (OSError, ValueError) as error:  # ValueError: a path that no system takes
        if (named := system_fault(error, f"out={target}")) is not None:
            raise named from None
        reason = getattr(error, "strerror", None) or "not a path"
        raise InvalidInput(
            f"out={target}: no folder can be made there ({reason}); choose another place"
        ) from None
    finally:
        for folder in (probe, *missing):
            with suppress(OSError, ValueError):
                folder.rmdir()


def in_words(size: int) -> str:
    """A size for people, rounded up."""
    for unit, step in (("GB", 10**9), ("MB", 10**6)):
        if size >= step:
            tenths = -(-10 * size // step)
            return f"{tenths / 10:.1f} {unit}" if tenths < 100 else f"{-(-size // step):,} {unit}"
    return f"{-(-size // 1000)} kB"


def require_room(
    target: Path | None, output: int, memory: int, resident: int, limit: int | None = None
) -> None:
    """Refuse a release whose folder, disk or memory is not to be had now; 0 bytes: nothing is known."""
    if target is not None:
        require_place(target)
        require_space(target, output)
    if memory:
        require_memory(memory, resident, limit)


def require_space(target: Path, needed: int, name: str = "out") -> None:
    """Refuse a release that does not fit on the file system of its folder, or of what `name` says."""
    place = target.absolute()
    folder = next(each for each in (place, *place.parents) if each.is_dir())
    try:
        status = os.statvfs(folder)
    except OSError:
        return  # nobody knows; what is written will show
    free = status.f_bavail * status.f_frsize
    if free < needed:
        has = f"needs up to {in_words(needed)} of disk and {in_words(free)} are free"
        raise NoSpace(f"{name}={target}: the release {has}; make room or choose another place")


def require_memory(needed: int, resident: int, limit: int | None = None) -> None:
    """Refuse a release that takes more memory than there is, or than it may take.

    `needed` is the peak of the whole process, of which up to `resident` bytes are in use already. Who
    sets a limit answers for the machine: what it has free is not asked.
    """
    if limit is not None:
        said = f"memory={in_words(limit)}: the method needs up to {in_words(needed)}"
        if needed > limit:
            raise OutOfMemory(f"{said}; allow more, or use fewer columns or rows (nothing was charged)")
        return
    has = free_memory()
    if has is None:
        return
    used = min(_pages(1) or 0, resident)
    if needed - used > has:
        said = f"the method needs up to {in_words(needed)} and {in_words(has + used)} can be had"
        remedy = "use a machine with more, or fewer columns or rows, or say what it has by --memory"
        raise OutOfMemory(f"memory: {said}; {remedy} (nothing was charged)")


def free_memory() -> int | None:
    """Bytes that this process may still take: of the machine, its control group and its limits."""
    known = [_machine(), *_control_groups()]
    for limit, field in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        most, used = resource.getrlimit(limit)[0], _pages(field)
        known.append(None if most == resource.RLIM_INFINITY or used is None else most - used)
    left = [max(one, 0) for one in known if one is not None]
    return min(left, default=None)


def _machine() -> int | None:
    """What the kernel can give without swapping."""
    for line in _lines(Path("/proc/meminfo")):
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            return int(size.split()[0]) * 1024
    return None


def _control_groups() -> Iterator[int]:
    """What is left in the control group of this process and in those around it (version 2, then 1)."""
    for line in _lines(Path("/proc/self/cgroup")):
        _, kinds, place = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        root = Path("/sys/fs/cgroup") / kinds
        names = ("memory.max", "memory.current", "inactive_file")
        if kinds:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        own = root / place.lstrip("/")
        for folder in (own, *own.parents):
            most, used = (next(iter(_lines(folder / name)), "") for name in names[:2])
            if most.isdigit() and used.isdigit():
                cached = dict(line.split() for line in _lines(folder / "memory.stat")).get(names[2], "0")
                yield int(most) - int(used) + int(cached)  # the kernel drops cached files first
            if folder == root:
                break


def _pages(field: int) -> int | None:
    """One figure of this process (0: address space, 1: resident, 5: data), in bytes."""
    for line in _lines(Path("/proc/self/statm")):
        return int(line.split()[field]) * resource.getpagesize()
    return None


def _lines(path: Path) -> list[str]:
    """The lines of a small file of the kernel; none if there is no such file."""
    try:
        handle = os.open(path, os.O_RDONLY)  # twice in each release, up to a dozen files
    except (OSError, ValueError):
        return []
    try:
        return os.read(handle, SMALL).decode("ascii").splitlines()
    except (OSError, ValueError):
        return []
    finally:
        os.close(handle)


def _is_release(folder: Path) -> bool:
    """Whether a folder holds a card of a known format."""
    with suppress(OSError, ValueError):
        card = (folder / "card.json").read_bytes()
        return any(f'"format": "{known}"'.encode() in card for known in FORMATS)
    return False


def write_staged(
    folder: Path,
    *,
    tables: Mapping[str, pa.Table | TableStream],
    arrays: Mapping[str, AnyArray],
    card: Card,
    page: Page | None,
) -> str:
    """Write a whole release into a new folder, durably; returns its digest, the SHA-256 of card.json.

    The main table is `data`, or else the first. The page is drawn from the card as it stands before the
    page's own hash is added.
    """
    names = list(tables)
    bad = [name for name in names if not NAME.fullmatch(name)]
    require(not bad, f"table names {bad}: must be of a-z, 0-9, _ and -, at most 64 characters")
    _make_folder(folder)
    if names:
        (folder / "data").mkdir()
        (folder / "data").chmod(OPEN_FOLDER)
    files: dict[str, object] = {}
    shapes: dict[str, object] = {}
    for name in names:
        written, shapes[name] = formats.write_table(folder / "data" / f"{name}.parquet", tables[name])
        files[f"data/{name}.parquet"] = asdict(written)
    array_shapes: dict[str, object] = {}
    if arrays:
        written, array_shapes = formats.write_arrays(folder / "model.safetensors", arrays)
        files["model.safetensors"] = asdict(written)
    streams = [table for table in tables.values() if isinstance(table, TableStream)]
    late = {name: plain(fact, name) for one in streams for name, fact in one.facts().items()}
    main = "data" if "data" in names else next(iter(names), None)
    contents = plain({"main": main, "tables": shapes, "arrays": array_shapes}, "contents")
    card = {**card, "contents": contents, "files": files, "facts": {**card["facts"], **late}}
    drawn = page(card).encode() if page is not None else None
    if drawn is not None and len(drawn) <= PAGE_LIMIT:  # a longer one nobody reads, and none verifies
        written = formats.write_bytes(folder / "card.html", drawn)
        card = {**card, "files": {**files, "card.html": asdict(written)}}
    digest = formats.write_bytes(folder / "card.json", sealed_bytes(card)).sha256
    date_files(folder)
    for directory in [*([folder / "data"] if names else []), folder, folder.parent]:
        sync_directory(directory)
    return digest


def date_files(folder: Path) -> None:
    """Set the times of every file and folder of a release to the day (UTC) of its latest file.

    Finer times tell when it was made and how long each part took, which depends on private rows; an
    archive or a copy would carry them along.
    """
    paths = [folder, *folder.rglob("*")]
    latest = max(path.lstat().st_mtime_ns for path in paths)
    day = latest - latest % DAY
    for path in sorted(paths, reverse=True):  # what is inside a folder before the folder
        os.utime(path, ns=(day, day), follow_symlinks=False)


def _make_folder(folder: Path) -> None:
    """A folder of our own that nothing else is in; no link to one, and nobody else's."""
    make_parents(folder.parent)
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        empty = ours and next(folder.iterdir(), None) is None
    except NotADirectoryError:
        empty = False
    require(empty, f"folder={folder}: must be new, or an empty folder of your own")
    folder.chmod(0o700)
