"""A release in the reader's hands: tables, arrays, card and guarantee, once its folder was verified.

`verify` trusts nothing: only the members that storage.py lists, no links, sizes before contents, every
hash, the card's schema, and the promise in words and figures, on the page too, against the guarantee
that the card holds.
"""

import hashlib
import html
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adumbra.attestation.events import head_holds
from adumbra.attestation.sshsig import PublicKey
from adumbra.attestation.trust import Trust
from adumbra.errors import InvalidInput, VerificationFailed, require
from adumbra.numerics import Array
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.release import formats, promise
from adumbra.release.card import CARD_LIMIT, NOT_PRIVATE, Card, read_card
from adumbra.release.detached import (
    PROOF_FILE,
    SIGNATURE,
    Demand,
    SignedBy,
    judge_beside,
    make_demand,
    words_on,
)
from adumbra.release.formats import AnyArray
from adumbra.release.promise import page_faults
from adumbra.schema.facts import schema_of
from adumbra.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]  # stubs are not a dependency
    import polars as pl

T = TypeVar("T")

PREVIEW_ROWS = 5
PREVIEW_COLUMNS = 8
SHOWN_UNKNOWN = 20  # members that do not belong to a release, listed by name
BESIDE = (SIGNATURE, PROOF_FILE)  # files that the card does not cover: they vouch for it
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")  # of a table
MEMBER = re.compile(
    rf"(card\.(json|sig|html)|proof\.json|model\.safetensors|data/{NAME.pattern}\.parquet)"
)


class ReadOnDemand(Mapping[str, T], Generic[T]):
    """Named parts of a release, each read from its file when it is first asked for."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], T]) -> None:
        self._names, self._read = names, read
        self._held: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._held:
            self._held[name] = self._read(name)
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{', '.join(self._names)}>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release:
    """What left, with its promise; everything in it is public."""

    tables: Mapping[str, pa.Table]
    arrays: Mapping[str, NDArray[np.generic]]
    card: Card
    guarantee: PrivacyGuarantee
    path: Path | None = None

    @property
    def data(self) -> pa.Table:
        """The main table; a release of arrays alone has none."""
        main = self.card["contents"]["main"]
        require(main is not None, "data: this release has no table, only arrays; look at its `arrays`")
        return self.tables[main]

    @property
    def schema(self) -> Schema:
        """What was declared about the table, as the card prints it."""
        return schema_of(self.card["public_inputs"]["schema"])

    def to_pandas(self) -> "pd.DataFrame":
        """The main table as a pandas frame."""
        try:
            frame: pd.DataFrame = self.data.to_pandas()
        except ModuleNotFoundError:
            raise InvalidInput(
                "to_pandas: pandas is not installed; pip install pandas, or use `data`"
            ) from None
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """The main table as a polars frame."""
        try:
            import polars as pl  # noqa: PLC0415 - optional
        except ModuleNotFoundError:
            raise InvalidInput(
                "to_polars: polars is not installed; pip install polars, or use `data`"
            ) from None
        frame = pl.from_arrow(self.data)
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 - a table always gives a frame; tells mypy so
        return frame

    def to_numpy(self) -> Array:
        """The main table as a float64 matrix, rows by columns; text and sets have no place in one."""
        table = self.data
        text = [field.name for field in table.schema if pa.types.is_string(field.type)]
        require(
            not text, f"to_numpy: column {text[:1]} holds text; choose numeric columns of `data` first"
        )
        sets = [field.name for field in table.schema if pa.types.is_list(field.type)]
        require(not sets, f"to_numpy: column {sets[:1]} holds sets of items; use `to_pairs()`")
        columns = [column.to_numpy().astype(np.float64) for column in table.columns]
        return np.column_stack(columns)

    def to_pairs(self) -> pa.Table:
        """Sets of items as a flat table of (row, item), for CSV and SQL; an empty set has no line."""
        table = self.data
        names = [field.name for field in table.schema if pa.types.is_list(field.type)]
        require(bool(names), "to_pairs: the main table holds no sets of items; use `data` as it is")
        sets = table[names[0]].combine_chunks()
        return pa.table({"row": pc.list_parent_indices(sets), "item": pc.list_flatten(sets)})

    def __repr__(self) -> str:
        return f"Release({self.card['method']['name']}: {self.summary()}; {self.guarantee.sentence()})"

    def summary(self) -> str:
        """What is in it, in a few words."""
        contents = self.card["contents"]
        parts = [f"{name} {t['rows']} x {len(t['columns'])}" for name, t in contents["tables"].items()]
        parts += [f"{name} {' x '.join(map(str, a['shape']))}" for name, a in contents["arrays"].items()]
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        """A short escaped table for notebooks."""
        title = html.escape(str(self.card["about"]["title"]))
        promise = html.escape(self.guarantee.sentence())
        head = f"<p><strong>{title}</strong><br>{html.escape(self.summary())}<br>{promise}</p>"
        if self.card["contents"]["main"] is None:
            return f"<div>{head}</div>"
        shown = self.data.slice(0, PREVIEW_ROWS).select(
            range(min(PREVIEW_COLUMNS, self.data.num_columns))
        )
        names = "".join(f"<th>{html.escape(name)}</th>" for name in shown.column_names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row.values()) + "</tr>"
            for row in shown.to_pylist()
        )
        return f"<div>{head}<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table></div>"


def off_grid(values: Array, grid: float) -> int:
    """How many values are not whole multiples of the power of two `grid`; a true release has none."""
    require(grid > 0 and math.frexp(grid)[0] == 0.5, f"grid={grid}: must be a power of two")
    given = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        units = np.ldexp(
            given, 1 - math.frexp(grid)[1]
        )  # exact but for overflow (whole) and underflow (not)
        whole = (units == np.rint(units)) & np.isfinite(given) & ((units != 0) | (given == 0))
    return int(whole.size - np.count_nonzero(whole))


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
    return _opened(path, card, max_bytes)


def open_written(folder: Path, digest: str) -> Release:
    """Open a release that this process has just written: `load` without a second hash of its files.

    The card lists the hashes that were taken of the bytes on their way to the disk, and `digest` is the
    card's own. To hash the bytes that the system still holds would say nothing more.
    """
    faults, verified = find_faults(folder, digest=digest, is_hashed=True)
    if verified is None:
        raise VerificationFailed("\n".join(faults))
    return _opened(folder, verified.card, None)


def _opened(path: Path, card: Card, max_bytes: int | None) -> Release:
    """A verified release; its tables and arrays are read when first asked for."""
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
    folder: str | Path,
    *,
    digest: str | None = None,
    demand: Demand | None = None,
    is_hashed: bool = False,
) -> tuple[tuple[str, ...], Verified | None]:
    """All faults of a release, or none and what was verified. `is_hashed`: its files were, just now."""
    path = Path(folder)
    require(path.is_dir(), f"folder={path}: is not a folder; give the folder of a release")
    sizes, faults = _members(path)
    if "card.json" not in sizes:  # or it is a link, or a folder
        known = tuple(fault for fault in faults if fault.startswith("card.json: "))
        return known or ("card.json: is missing; is this the folder of a release?",), None
    if sizes["card.json"] > CARD_LIMIT:
        return (*faults, f"card.json: is larger than {CARD_LIMIT} bytes"), None
    raw = (path / "card.json").read_bytes()
    found = hashlib.sha256(raw).hexdigest()
    if digest not in (None, found):
        faults.append("card.json: is not the release of the digest given")
    card, broken = read_card(raw)
    faults += broken
    if card is None:
        return tuple(faults), None
    if "not_private" in card:
        faults.append(f"card.json: is stamped {NOT_PRIVATE}")
    faults += promise.card_faults(card) + _ledger_faults(card)
    faults += _file_faults(path, sizes, card, is_hashed=is_hashed)
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
            if unknown <= SHOWN_UNKNOWN:
                faults.append(f"{ascii(name)[1:-1]}: {kind}; a release holds its listed files only")
    if unknown > SHOWN_UNKNOWN:
        faults.append(f"and {unknown - SHOWN_UNKNOWN} more; is this the folder of a release?")
    return sizes, faults


def _walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything in the folder and in its own `data`, by sorted name; links are not followed."""
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        yield path.name, status
        if path.name == "data" and stat.S_ISDIR(status.st_mode):
            yield from ((f"data/{inner.name}", inner.lstat()) for inner in sorted(path.iterdir()))


def _ledger_faults(card: Card) -> list[str]:
    """The head that the ledger signed when this release was paid for."""
    signed = head_holds(card["ledger"]["head"])
    return [] if signed else ["card.json at ledger/head: its signature does not hold"]


def _file_faults(folder: Path, sizes: Mapping[str, int], card: Card, *, is_hashed: bool) -> list[str]:
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
        elif not is_hashed and _hash(folder / name) != entry["sha256"]:
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
