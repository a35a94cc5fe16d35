"""Which files a location means, and a pin that tells when they changed."""

import glob
import hashlib
import json
from pathlib import Path

from adumbra.errors import require

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".dat": "dat"}
PACKED = {".gz", ".bz2", ".xz", ".zst", ".zip", ".7z"}
MEMORY_PIN = "memory"  # an object in memory has no name, size or time that could change behind us
_LISTED = ", ".join(SUFFIXES)


def find_files(location: str | Path) -> tuple[Path, ...]:
    """The files of a path, a folder (with its subfolders) or a glob: sorted, all of one kind."""
    text = str(location)
    path = Path(location)
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and _is_visible(p, path)]
        require(bool(found), f"data={text!r}: the folder holds no file with one of {_LISTED}")
    elif path.exists():
        require(path.is_file(), f"data={text!r}: is a pipe or a device; write the rows to a file first")
        found = [path]
    else:
        found = [Path(name) for name in glob.glob(text, recursive=True)]  # noqa: PTH207  (absolute patterns too)
        found = [p for p in found if p.is_file()]
        require(bool(found), f"data={text!r}: no such file, folder or pattern; check the path")
    kinds = sorted({p.suffix.lower() for p in found})
    unknown = [suffix for suffix in kinds if suffix not in SUFFIXES]
    remedy = "unpack it first" if PACKED.intersection(unknown) else f"use one of {_LISTED}"
    require(not unknown, f"data={text!r}: suffix {', '.join(map(repr, unknown))} is unknown; {remedy}")
    distinct = {SUFFIXES[suffix] for suffix in kinds}
    require(
        len(distinct) == 1,
        f"data={text!r}: mixes {' and '.join(sorted(distinct))}; name one kind by a glob",
    )
    return tuple(sorted(_once(found)))


def _once(found: list[Path]) -> list[Path]:
    """Each file once, by where it really is: a link or a repeated `**` would count its rows twice."""
    by_place: dict[Path, Path] = {}
    for path in sorted(found):
        by_place.setdefault(path.resolve(), path)
    return list(by_place.values())


def file_kind(paths: tuple[Path, ...]) -> str:
    """The kind of the files that `find_files` returned."""
    return SUFFIXES[paths[0].suffix.lower()]


def _is_visible(path: Path, folder: Path) -> bool:
    """Whether no part of the path below the folder is hidden or a side file (`_SUCCESS`, `.tmp`)."""
    inner = path.relative_to(folder)
    return path.is_file() and not any(part.startswith((".", "_")) for part in inner.parts)


def pin_files(paths: tuple[Path, ...]) -> str:
    """SHA-256 over the names, sizes and modification times."""
    facts = []
    for path in paths:
        status = path.stat()
        facts.append([path.name, status.st_size, status.st_mtime_ns])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
