"""A release that can be asked: `load` returns it, and so does every release that is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from adumbra.answers.conditions import Where, read_where
from adumbra.answers.estimate import Answer, Asked, Estimate
from adumbra.attestation.sshsig import PublicKey
from adumbra.attestation.trust import Trust
from adumbra.errors import require
from adumbra.release import artifact
from adumbra.release.artifact import Release

if TYPE_CHECKING:
    from adumbra.answers.asking import Answers

# What answers is loaded with the first question: most releases are made or read, and never asked.


class Asking:
    """Questions with error bars, from released numbers alone.

    Every answer is an `Estimate`, or a mapping of them by name. `where` is text such as
    ``"region=north and age >= 30"``, or a dict of columns and values. `level` is the share of releases
    whose interval covers the truth. With `population=True` the rows are a sample, and sampling error is
    added. What a release cannot answer raises `Unsupported`; what its noise hides is an `Estimate` with
    `is_hidden` and an interval of all that is possible.
    """

    __slots__ = ()

    def _answers(self) -> "Answers":
        raise NotImplementedError

    def mean(
        self, column: str, where: Where = None, *, level: float = 0.95, population: bool = False
    ) -> Estimate:
        """The mean of a number, among rows where it is present and that meet `where`."""
        asked = Asked(level=level, population=population)
        return self._answers().mean(column, read_where(where), asked)

    def share(
        self, where: Where, *, given: Where = None, level: float = 0.95, population: bool = False
    ) -> Estimate:
        """The share of rows that meet `where`, among those that meet `given`."""
        asked = Asked(level=level, population=population)
        return self._answers().share(read_where(where), read_where(given), asked)

    def count(self, where: Where = None, *, level: float = 0.95, population: bool = False) -> Estimate:
        """How many rows meet `where`; without it, how many there are."""
        asked = Asked(level=level, population=population)
        return self._answers().count(read_where(where), asked)

    def quantile(
        self, column: str, q: float = 0.5, where: Where = None, *, level: float = 0.95,
        population: bool = False,
    ) -> Estimate:  # fmt: skip
        """The smallest value that at least a share q of rows do not exceed; 0.5 is the median."""
        asked = Asked(level=level, population=population)
        return self._answers().quantile(column, float(q), read_where(where), asked)

    def variance(
        self, column: str, where: Where = None, *, level: float = 0.95, population: bool = False
    ) -> Estimate:
        """The variance of a number."""
        asked = Asked(level=level, population=population)
        return self._answers().variance(column, read_where(where), asked)

    def crosstab(
        self, one: str, other: str, *, level: float = 0.95, population: bool = False
    ) -> Mapping[str, Estimate]:
        """The share of rows in each pair of levels of two columns."""
        asked = Asked(level=level, population=population)
        return self._answers().crosstab(one, other, asked)

    def compare(
        self, column: str, by: str, *, reference: str | None = None, level: float = 0.95,
        population: bool = False,
    ) -> Mapping[str, Estimate]:  # fmt: skip
        """Means (or a category's shares) of each class, less those of the first or the reference."""
        asked = Asked(level=level, population=population)
        return self._answers().compare(column, by, reference, asked)

    def correlation(
        self, one: str, other: str, *, level: float = 0.95, population: bool = False
    ) -> Estimate:
        """The correlation of two numbers."""
        asked = Asked(level=level, population=population)
        return self._answers().correlation(one, other, asked)

    def regress(
        self, target: str, features: Sequence[str], *, level: float = 0.95, population: bool = False
    ) -> Mapping[str, Estimate]:
        """Coefficients of a linear regression of the target on features and a constant."""
        asked = Asked(level=level, population=population)
        return self._answers().regress(target, tuple(features), asked)

    def principal_components(self, k: int, *, level: float = 0.95) -> Mapping[str, Estimate]:
        """Variances along the k leading directions."""
        return self._answers().principal_components(k, Asked(level=level))

    def distance(self, left: int, right: int, *, level: float = 0.95) -> Estimate:
        """The squared distance of two rows of a projected release, by their numbers from 0."""
        from adumbra.answers.others import distance  # noqa: PLC0415

        return distance(self._answers(), left, right, Asked(level=level))

    def ask(self, question: str, *, level: float = 0.95, population: bool = False) -> Answer:
        """The answer to a question in words, as the command line takes it: ``"mean age"``."""
        from adumbra.answers.asking import ask  # noqa: PLC0415

        return ask(self._answers(), question, Asked(level=level, population=population))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AskableRelease(Asking, Release):
    """A `Release` that answers questions: `mean`, `share`, `count`, `quantile`, `regress`, ..."""

    _read: dict[str, "Answers"] = field(default_factory=dict, init=False)

    def _answers(self) -> "Answers":
        """What answers, read once: sums of products where the release has them, else histograms."""
        if "answers" not in self._read:
            self._read["answers"] = read_answers([self])
        return self._read["answers"]


class CombinedReleases(Asking):
    """Several releases of the same rows, asked as one; see `combine`."""

    __slots__ = ("_read", "releases")

    def __init__(self, releases: Sequence[Release]) -> None:
        self.releases, self._read = tuple(releases), read_answers(releases)

    def _answers(self) -> "Answers":
        return self._read

    def __repr__(self) -> str:
        return f"CombinedReleases({len(self.releases)} of the same rows)"


def read_answers(releases: Sequence[Release]) -> "Answers":
    """What answers from releases of one kind."""
    from adumbra.answers.others import read_others  # noqa: PLC0415
    from adumbra.answers.reading import MARGINALS, read_histograms  # noqa: PLC0415
    from adumbra.answers.reading_moments import CAPS, SUMS, read_capped, read_moments  # noqa: PLC0415

    kinds = {(SUMS in release.arrays, CAPS in release.card["facts"]) for release in releases}
    require(
        len(kinds) == 1,
        "combine: the releases hold different things (counts, sums of products); combine those alike",
    )
    (has_sums, has_caps), *_ = kinds
    if has_sums and has_caps:
        return read_capped(*releases)
    if has_sums:
        return read_moments(*releases)
    counted = all(MARGINALS in release.arrays for release in releases)
    return read_histograms(*releases) if counted else read_others(*releases)


def combine(releases: Sequence[Release]) -> CombinedReleases:
    """Ask several releases of the same rows as one, with smaller errors.

    Parameters
    ----------
    releases : what `load` gave, of one method and one schema. That they are of the same rows is yours to
        know: nothing in a release can show it. Their privacy costs add up, as the ledger says.

    Returns
    -------
    CombinedReleases, which answers what one of them answers: released numbers are averaged by precision.

    Raises
    ------
    InvalidInput, if they do not fit together.
    """
    given = list(releases)
    require(bool(given), "releases=[]: give at least one")
    require(
        all(isinstance(release, Release) for release in given), "releases: give what `load` returned"
    )
    digests = {release.schema.digest() for release in given}
    require(len(digests) == 1, "combine: the releases have different schemas, so other cells or bounds")
    return CombinedReleases(given)


def askable(release: Release) -> AskableRelease:
    """The same release, to be asked."""
    require(isinstance(release, Release), f"release of type {type(release).__name__}: use `load`")
    return AskableRelease(
        tables=release.tables,
        arrays=release.arrays,
        card=release.card,
        guarantee=release.guarantee,
        path=release.path,
    )


def load(  # noqa: PLR0913 - what `verify` takes, and one more
    folder: str | Path,
    *,
    max_bytes: int | None = None,
    key: str | Path | PublicKey | None = None,
    trust: str | Path | Trust | None = None,
    signer: str | None = None,
    require_signature: bool = False,
) -> AskableRelease:
    """Verify a release, then open it; tables and arrays are read when first asked for.

    Parameters
    ----------
    folder : a folder that `release` made
    max_bytes : memory that a table may fill; without it, what the size of its file explains
    key : the public key that must have signed it, as in `verify`
    trust : an allowed-signers file, as in `verify`
    signer : who must have signed it, by a name of that file
    require_signature : refuse a release that is not signed

    Returns
    -------
    AskableRelease: a `Release` with `data` (the main table), `tables`, `arrays`, `card` and `guarantee`,
    and with `mean`, `share`, `count`, `quantile`, ... that answer with error bars.

    Raises
    ------
    VerificationFailed, with every fault on a line of its own.
    """
    opened = artifact.load(
        folder,
        max_bytes=max_bytes,
        key=key,
        trust=trust,
        signer=signer,
        require_signature=require_signature,
    )
    return askable(opened)
