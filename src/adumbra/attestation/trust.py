"""Whom a reader trusts: an allowed-signers file as OpenSSH has it, and a list of revoked keys.

    allowed_signers   names [options] kind base64 [comment]
    revoked_keys      kind base64 [comment]

Options are `namespaces="..."`, `valid-after="..."` and `valid-before="..."` (YYYYMMDD, with HHMM[SS] and
Z if wanted, always UTC). A release has a day and no time: its key must be valid when that day starts. A
signer writes that day, so whoever steals a key can write an older one: a stolen key is revoked, and a
revoked key counts for no release at all.
"""

import datetime as dt
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from adumbra.attestation.signers import read_small
from adumbra.attestation.sshsig import KINDS, PublicKey
from adumbra.errors import InvalidInput, require

T = TypeVar("T")

NAMESPACE = "adumbra-release"  # what a signature of a release says that it signs
ALLOWED, REVOKED = "allowed_signers", "revoked_keys"
_NAME = re.compile(r"[^\s,\"*?!]{1,200}")
_OPTION = re.compile(r'([a-z-]+)(?:="([^"]*)")?(?:,|$)', re.IGNORECASE)
_TIMES = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedSigner:
    """One line: a key, the names it stands for, for what and when."""

    names: tuple[str, ...]
    key: PublicKey
    namespaces: tuple[str, ...] | None = None
    valid_after: dt.datetime | None = None
    valid_before: dt.datetime | None = None

    def is_for(self, namespace: str) -> bool:
        """Whether the key may sign in this namespace."""
        return self.namespaces is None or namespace in self.namespaces

    def is_valid_on(self, day: dt.date) -> bool:
        """Whether the key is valid at the start of a day (UTC)."""
        start = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
        after = self.valid_after is None or self.valid_after <= start
        return after and (self.valid_before is None or start < self.valid_before)

    def line(self) -> str:
        """As in the file."""
        stamp = "%Y%m%d%H%M%SZ"
        options = [
            f'namespaces="{",".join(self.namespaces)}"' if self.namespaces is not None else "",
            f'valid-after="{self.valid_after:{stamp}}"' if self.valid_after else "",
            f'valid-before="{self.valid_before:{stamp}}"' if self.valid_before else "",
        ]
        words = (",".join(self.names), ",".join(filter(None, options)), self.key.line())
        return " ".join(filter(None, words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Allowed signers and revoked keys."""

    allowed: tuple[AllowedSigner, ...] = ()
    revoked: frozenset[bytes] = frozenset()  # blobs of keys

    @classmethod
    def read(cls, allowed: str | Path | None, revoked: str | Path | None = None) -> Self:
        """From files; every line that cannot be read is named, and none is skipped."""
        signers = () if allowed is None else tuple(_lines(Path(allowed), parse_signer))
        keys = () if revoked is None else tuple(_lines(Path(revoked), PublicKey.parse))
        return cls(allowed=signers, revoked=frozenset(key.blob for key in keys))

    def lines_for(self, key: PublicKey) -> tuple[AllowedSigner, ...]:
        """Every line of one key."""
        return tuple(signer for signer in self.allowed if signer.key == key)


def user_folder() -> Path:
    """The folder of the user's own settings (XDG)."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base else Path.home() / ".config") / "adumbra"


def user_trust() -> Trust | None:
    """The user's own trust files, or None if there are none."""
    allowed, revoked = (user_folder() / name for name in (ALLOWED, REVOKED))
    if not (allowed.exists() or revoked.exists()):
        return None
    return Trust.read(allowed if allowed.exists() else None, revoked if revoked.exists() else None)


def parse_signer(line: str) -> AllowedSigner:
    """One line of an allowed-signers file."""
    words = _split(line)
    place = next((at for at, word in enumerate(words) if at and word in KINDS), None)
    require(
        place in (1, 2) and len(words) > (place or 0) + 1,
        "must be `names [options] kind base64`, as `adumbra key show` prints it",
    )
    names = tuple(words[0].split(","))
    require(
        all(_NAME.fullmatch(name) for name in names),
        "names must be plain and split by commas; patterns (* ? !) are not taken",
    )
    options = _options(words[1]) if place == 2 else {}
    spaces = options.get("namespaces")
    return AllowedSigner(
        names=names,
        key=PublicKey.parse(" ".join(words[place : (place or 0) + 2])),
        namespaces=None if spaces is None else tuple(spaces.split(",")),
        valid_after=parse_time(options.get("valid-after")),
        valid_before=parse_time(options.get("valid-before")),
    )


def parse_time(text: str | None) -> dt.datetime | None:
    """YYYYMMDD[HHMM[SS]][Z], in UTC."""
    if text is None:
        return None
    digits = text.removesuffix("Z")
    form = _TIMES.get(len(digits))
    try:
        return dt.datetime.strptime(digits, form or "").replace(tzinfo=dt.UTC)
    except ValueError:
        raise InvalidInput("a time must be YYYYMMDD, with HHMM or HHMMSS if wanted") from None


def _options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        option = _OPTION.match(text, at)
        if option is None or option[2] is None:
            raise InvalidInput('options are namespaces="...", valid-after="..." and valid-before="..."')
        name = option[1].lower()
        require(
            name in ("namespaces", "valid-after", "valid-before") and name not in found,
            f"option {name}: is not known or given twice",
        )
        found[name] = option[2]
        at = option.end()
    return found


def _split(line: str) -> list[str]:
    """Words at blanks that stand outside quotes."""
    return re.findall(r'(?:[^\s"]|"[^"]*")+', line)


def _lines(path: Path, read: Callable[[str], T]) -> Iterator[T]:
    """Every line that is neither empty nor a comment, read."""
    text = read_small(path, "trust").decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                yield read(line.strip())
            except InvalidInput as error:
                raise InvalidInput(f"trust={path}, line {number}: {error}") from None
