"""A release folder: written whole or not at all, and verified offline down to the last byte.

    card.json            the card; lists SHA-256 and size of every other file, and seals itself
    card.sig             a signature of card.json, if the publisher signs; the card does not list it
    proof.json           that the ledger's log holds the card's digest; not listed either
    card.html            the same for people
    data/<name>.parquet  released rows
    model.safetensors    released arrays

`write_staged` fills a new folder that the ledger then publishes by one rename. `verify` trusts nothing:
only these members, no links, sizes before contents, every hash, the card's schema, and the promise in
words and figures, on the page too, against the guarantee that the card holds.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from adumbra.attestation.sshsig import PublicKey
from adumbra.attestation.trust import Trust
from adumbra.errors import VerificationFailed, require
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.release import formats, promise
from adumbra.release.artifact import ReadOnDemand, Release
from adumbra.release.card import (
    CARD_LIMIT,
    NOT_PRIVATE,
    Card,
    canonical,
    card_faults,
    content_sha256,
    plain,
    sealed_bytes,
)
from adumbra.release.detached import (
    PROOF_FILE,
    SIGNATURE,
    Demand,
    SignedBy,
    judge_beside,
    make_demand,
    words_on,
)
from adumbra.release.formats import AnyArray, TableStream
from adumbra.release.place import OPEN_FOLDER, make_parents
from adumbra.release.promise import PAGE_LIMIT, page_faults

__all__ = ["TableStream", "Verified", "date_files", "find_faults", "load", "verify", "write_staged"]
SHOWN_STRANGERS = 20  # members that do not belong to a release, listed by name
BESIDE = (SIGNATURE, PROOF_FILE)  # files that the card does not cover: they vouch for it
DAY = 86_400 * 10**9  # nanoseconds
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
MEMBER = re.compile(
    rf"(card\.(json|sig|html)|proof\.json|model\.safetensors|data/{NAME.pattern}\.parquet)"
)
Page = Callable[[Card], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A release that is what its card says; `digest` names it, and its ledger knows it by that name."""

    digest: str
    card: Card
    files: int
    size: int
    signature: SignedBy | None = None  # None: not signed

    def signature_words(self) -> str:
        """Who vouches for it, in a sentence for people."""
        return words_on(self.signature, self.card)


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
        files[f"data/{name}.parquet"] = written.to_dict()
    array_shapes: dict[str, object] = {}
    if arrays:
        written, array_shapes = formats.write_arrays(folder / "model.safetensors", arrays)
        files["model.safetensors"] = written.to_dict()
    streams = [table for table in tables.values() if isinstance(table, TableStream)]
    late = {name: plain(fact, name) for one in streams for name, fact in one.facts().items()}
    main = "data" if "data" in names else next(iter(names), None)
    contents = plain({"main": main, "tables": shapes, "arrays": array_shapes}, "contents")
    card = {**card, "contents": contents, "files": files, "facts": {**card["facts"], **late}}
    drawn = page(card).encode() if page is not None else None
    if drawn is not None and len(drawn) <= PAGE_LIMIT:  # a longer one nobody reads, and none verifies
        written = formats.write_bytes(folder / "card.html", drawn)
        card = {**card, "files": {**files, "card.html": written.to_dict()}}
    digest = formats.write_bytes(folder / "card.json", sealed_bytes(card)).sha256
    date_files(folder)
    for directory in [*([folder / "data"] if names else []), folder, folder.parent]:
        _sync_directory(directory)
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


def _sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(  # noqa: PLR0913 - what `verify` takes, and one more
    folder: str | Path,
    *,
    max_bytes: int | None = None,
    key: str | Path | PublicKey | None = None,
    trust: str | Path | Trust | None = None,
    signer: str | None = None,
    require_signature: bool = False,
) -> Release:
    """Verify a release, then open it; tables and arrays are read when first asked for.

    Parameters
    ----------
    folder : a folder that `release` made
    max_bytes : memory that a table may fill; without it, what the size of its file explains
    key : the publisher's key that must have signed it, as in `verify`
    trust : allowed signers, as in `verify`
    signer : a name in `trust` that must have signed it
    require_signature : refuse what nobody trusted has signed

    Returns
    -------
    Release with `data` (the main table), `tables`, `arrays`, `card` and `guarantee`.

    Raises
    ------
    VerificationFailed, with every fault on a line of its own.
    """
    path = Path(folder)
    card = verify(path, key=key, trust=trust, signer=signer, require_signature=require_signature).card
    contents = card["contents"]

    def table(name: str) -> pa.Table:
        return formats.read_table(path / "data" / f"{name}.parquet", max_bytes)

    def array(name: str) -> AnyArray:
        return formats.read_array(path / "model.safetensors", name)

    return Release(
        tables=ReadOnDemand(tuple(contents["tables"]), table),
        arrays=ReadOnDemand(tuple(contents["arrays"]), array),
        card=card,
        guarantee=PrivacyGuarantee.from_dict(card["guarantee"]["value"]),
        path=path,
    )


def verify(  # noqa: PLR0913 - each keyword is one demand
    folder: str | Path,
    *,
    digest: str | None = None,
    key: str | Path | PublicKey | None = None,
    trust: str | Path | Trust | None = None,
    signer: str | None = None,
    require_signature: bool = False,
) -> Verified:
    """Check every byte of a release, offline; raises `VerificationFailed` with all faults, one per line.

    Against forgery, give what you got by another channel: the publisher's `key` (a `.pub` file, a line
    of one, or a fingerprint), allowed signers as `trust` (and one `signer`), or the release's `digest`.
    """
    demand = make_demand(key=key, trust=trust, signer=signer, require_signature=require_signature)
    faults, verified = find_faults(folder, digest=digest, demand=demand)
    if verified is None:
        raise VerificationFailed("\n".join(faults))
    return verified


def find_faults(
    folder: str | Path, *, digest: str | None = None, demand: Demand | None = None
) -> tuple[tuple[str, ...], Verified | None]:
    """All faults of a release, or none and what was verified."""
    path = Path(folder)
    require(path.is_dir(), f"folder={path}: is not a folder; give the folder of a release")
    sizes, faults = _members(path)
    if "card.json" not in sizes:  # or it is a link, or a folder
        known = tuple(fault for fault in faults if fault.startswith("card.json: "))
        return known or ("card.json: is missing; is this the folder of a release?",), None
    if sizes["card.json"] > CARD_LIMIT:
        return (*faults, f"card.json: is larger than {CARD_LIMIT} bytes"), None
    raw = (path / "card.json").read_bytes()
    card = _parse(raw)
    if card is None:
        return (*faults, "card.json: is not a JSON object in canonical form"), None
    found = hashlib.sha256(raw).hexdigest()
    if digest not in (None, found):
        faults.append("card.json: is not the release of the digest given")
    broken = card_faults(card)
    if broken:
        return (*faults, *broken), None
    if card["proof"]["content_sha256"] != content_sha256(card):
        faults.append("card.json: its own hash is wrong")
    if "not_private" in card:
        faults.append(f"card.json: is stamped {NOT_PRIVATE}")
    faults += promise.card_faults(card) + _ledger_faults(card)
    faults += _file_faults(path, sizes, card)
    beside, signed = judge_beside(path, sizes, card, found, demand or Demand())
    faults += beside
    if "card.html" in card["files"] and not faults:
        faults += page_faults((path / "card.html").read_bytes(), card)
    if faults:
        return tuple(faults), None
    held = {"files": len(sizes), "size": sum(sizes.values())}
    return (), Verified(digest=found, card=card, signature=signed, **held)


def _members(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Sizes of the allowed regular files, and a fault for anything else that lies in the folder."""
    sizes: dict[str, int] = {}
    faults: list[str] = []
    unknown = 0
    for name, status in _walk(folder):
        if stat.S_ISREG(status.st_mode) and MEMBER.fullmatch(name):
            sizes[name] = status.st_size
        elif not (stat.S_ISDIR(status.st_mode) and name == "data"):
            unknown += 1
            kind = "a link" if stat.S_ISLNK(status.st_mode) else "an unknown member"
            if unknown <= SHOWN_STRANGERS:
                faults.append(f"{ascii(name)[1:-1]}: {kind}; a release holds its listed files only")
    if unknown > SHOWN_STRANGERS:
        faults.append(f"and {unknown - SHOWN_STRANGERS} more; is this the folder of a release?")
    return sizes, faults


def _walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything in the folder and in its own `data`, by sorted name; links are not followed."""
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        yield path.name, status
        if path.name == "data" and stat.S_ISDIR(status.st_mode):
            yield from ((f"data/{inner.name}", inner.lstat()) for inner in sorted(path.iterdir()))


def _parse(raw: bytes) -> Card | None:
    """The card, if its bytes are the only ones that this card may have."""
    try:
        card = json.loads(raw)
        known = isinstance(card, dict) and canonical(card) == raw
    except (ValueError, RecursionError):
        return None
    return card if known else None


def _ledger_faults(card: Card) -> list[str]:
    """The head that the ledger signed when this release was paid for."""
    from adumbra.privacy.ledger.chain import head_holds  # noqa: PLC0415 - SQLAlchemy comes with it

    signed = head_holds(card["ledger"]["head"])
    return [] if signed else ["card.json at ledger/head: its signature does not hold"]


def _file_faults(folder: Path, sizes: Mapping[str, int], card: Card) -> list[str]:
    """Missing, unlisted, resized, altered or mislabelled files."""
    listed, contents = card["files"], card["contents"]
    faults = [
        f"{name}: is not listed in the card"
        for name in sizes
        if name not in {"card.json", *BESIDE, *listed}
    ]
    stated = {f"data/{name}.parquet" for name in contents["tables"]} | (
        {"model.safetensors"} if contents["arrays"] else set()
    )
    if stated != set(listed) - {"card.html"} or contents["main"] not in {None, *contents["tables"]}:
        faults.append("card.json: its contents are not its files")
    for name, entry in listed.items():
        if name not in sizes:
            faults.append(f"{name}: is missing")
        elif sizes[name] != entry["bytes"]:
            faults.append(f"{name}: has {sizes[name]} bytes, the card says {entry['bytes']}")
        elif _hash(folder / name) != entry["sha256"]:
            faults.append(f"{name}: its hash is not the card's")
        elif fault := _shape_fault(folder, name, contents):
            faults.append(f"{name}: {fault}")
    return faults


def _hash(path: Path) -> str:
    with path.open("rb") as stored:
        return hashlib.file_digest(stored, "sha256").hexdigest()


def _shape_fault(folder: Path, name: str, contents: Card) -> str | None:
    """Why an intact file is not the table or the arrays that the card describes."""
    if name == "model.safetensors":
        return formats.shape_fault(folder / name, contents["arrays"])
    table = contents["tables"].get(Path(name).stem)
    return (
        formats.shape_fault(folder / name, table) if name != "card.html" and table is not None else None
    )
