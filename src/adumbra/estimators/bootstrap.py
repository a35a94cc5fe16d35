"""How far a figure of synthetic rows moves when the release is made again, from released rows alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from adumbra.data.opening import open_source
from adumbra.errors import Unsupported, require
from adumbra.mechanisms.base import Config
from adumbra.mechanisms.methods import config_of
from adumbra.relations import Unit
from adumbra.release.artifact import Release
from adumbra.workflow import prepare_in_memory

MOST_DRAWS = 10_000
APPROXIMATE = (
    "approximate: it sees neither rows that were shortened nor counts that were shrunk, and sees a bias "
    "in its sign but not in its size; this is no 95 % interval"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrapped:
    """A figure of the released rows, and how it moved in releases of releases."""

    value: float  # of the released rows
    draws: tuple[float, ...]  # of rows of each release of them
    notes: tuple[str, ...] = (APPROXIMATE,)

    @property
    def spread(self) -> float:
        """The standard deviation over the draws."""
        return float(np.std(self.draws, ddof=1))

    @property
    def bias(self) -> float:
        """How far the draws lie from the value, on average: the direction of the bias."""
        return float(np.mean(self.draws)) - self.value

    def __str__(self) -> str:
        count = len(self.draws)
        return f"{self.value:.6g}, spread {self.spread:.2g} over {count} redraws (approximate)"


def bootstrap(release: Release, function: Callable[[pa.Table], float], draws: int = 20) -> Bootstrapped:
    """The spread of any figure of synthetic rows: the method is run again on them, with fresh noise.

    It costs no budget: only released rows are read. Where `release.mean` and the like answer, ask those:
    they have intervals that hold, and this has none.

    Parameters
    ----------
    release : a release of synthetic rows (`moments`, `ron-gauss`, `lda`, `pca` with `output="sample"`)
    function : from a table like `release.data` to a number
    draws : releases of the released rows, 20 or more for a figure that counts

    Returns
    -------
    Bootstrapped: `value`, `spread`, `bias`, `draws`, `notes`. It is approximate.

    Raises
    ------
    Unsupported for a release without synthetic rows in its columns; InvalidInput for too few draws.
    """
    require(2 <= draws <= MOST_DRAWS, f"draws={draws}: must lie between 2 and {MOST_DRAWS}")
    config, rows = _again(release)
    schema = replace(release.schema, rows=None, derived=())
    source = open_source(rows.select(schema.names), schema)
    found = []
    for number in range(draws):
        own = {one.name for one in fields(config)}  # type: ignore[arg-type]  # every config is a dataclass
        seed = {"sample_seed": number} if "sample_seed" in own else {}
        with prepare_in_memory(source, replace(config, **seed)) as prepared:  # type: ignore[type-var]
            found.append(_figure(function, prepared.draw().table()))
    return Bootstrapped(value=_figure(function, rows), draws=tuple(found))


def _again(release: Release) -> tuple[Config, pa.Table]:
    """The config that makes as many synthetic rows once more, and the released rows."""
    method, main = release.card["method"], release.card["contents"]["main"]
    options = method["config"]
    is_drawn = "synthetic_rows" in options and options.get("output") not in ("rows", "projected")
    names = (
        set()
        if main is None
        else {name for name, *_ in release.card["contents"]["tables"][main]["columns"]}
    )
    if not is_drawn or not set(release.schema.names) <= names:
        raise Unsupported(
            f"method={method['name']}: has no synthetic rows to release again; use a release of "
            "moments, ron-gauss, lda, or pca with output='sample'"
        )
    if release.schema.unit is Unit.PERSON:
        raise Unsupported(
            "unit=person: synthetic rows have no persons, so that its noise is not redrawn"
        )
    rows = release.data
    require(rows.num_rows >= 1, "data: has no rows; nothing can be released again")
    config: Config = config_of(method["name"], {**options, "synthetic_rows": rows.num_rows})
    return config, rows


def _figure(function: Callable[[pa.Table], float], rows: pa.Table) -> float:
    """What the function says of rows, which must be a number."""
    value = float(function(rows))
    require(math.isfinite(value), "function: gave no finite number for some rows; let it give one")
    return value
