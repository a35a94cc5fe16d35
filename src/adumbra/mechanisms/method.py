"""One method as one value: its name, its config, and the way to what it does.

To know a config takes no more than this, so that rows are read while the rest is imported.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from adumbra.data.sources import Source
    from adumbra.engine.local import Engine
    from adumbra.mechanisms.base import Draft, Published, Settled
    from adumbra.postprocess.pictures import Pictures
    from adumbra.privacy.grant import Grant
    from adumbra.schema.schema import Schema

ConfigT = TypeVar("ConfigT")
PartsT = TypeVar("PartsT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Generic[ConfigT, PartsT]):
    """What a method does; `settle` and `draw` make a release, the others are for its page."""

    settle: "Callable[[ConfigT, Schema], Settled[ConfigT, PartsT]]"
    draw: "Callable[[Settled[ConfigT, PartsT], Source, Engine, Grant], Draft]"
    pictures: "Callable[[Settled[ConfigT, PartsT], Published], Pictures] | None" = None
    words: "Callable[[Settled[ConfigT, PartsT], Published], Mapping[str, str]] | None" = None
    behind: tuple[str, ...] = ()  # what `draw` imports after its passes; it can be loaded meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Generic[ConfigT, PartsT]):
    """One method of release, described by one value."""

    name: str  # as the command line spells it
    config: type[ConfigT]
    steps: Callable[[], Steps[ConfigT, PartsT]]  # imports them: a release needs one method of all
    purpose: str  # what it is for, completing "for ..."
    data: str  # what it takes: "tables", "item sets"
    neighbours: str  # which relations it has a proof for

    def settle(self, config: ConfigT, schema: "Schema") -> "Settled[ConfigT, PartsT]":
        """Make every public decision."""
        return self.steps().settle(config, schema)

    def draw(
        self, settled: "Settled[ConfigT, PartsT]", source: "Source", engine: "Engine", grant: "Grant"
    ) -> "Draft":
        """Draw what was settled and paid for."""
        return self.steps().draw(settled, source, engine, grant)
