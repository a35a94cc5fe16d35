"""What a planted bug is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from adumbra.audit.checks import settle
from adumbra.audit.pairs import Case, Tables
from adumbra.audit.planted import Patch


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One planted bug."""

    name: str
    check: str  # that is there for such a bug, and must see it
    case: str
    patches: Callable[[], list[Patch]]
    tables: Callable[[], Tables] | None = None  # where the case's own neighbours do not show it
    config: Mapping[str, Any] = field(default_factory=dict)  # what the case's own config says otherwise

    def host(self, cases: dict[str, Case]) -> Case:
        """The case that the bug is planted into."""
        case = cases[self.case]
        case = replace(case, config=replace(case.config, **self.config))
        if self.tables is not None:
            return replace(case, tables=(self.tables(),), is_worst=False)
        return settle(case)


# Most bugs understate how far one row moves a statistic: the check of sensitivities must see them.
sensitivity_mutant = partial(Mutant, check="sensitivity")
replay_mutant = partial(Mutant, check="replay")
attack_mutant = partial(Mutant, check="attack")
# Where a large epsilon hides a bug: below the least noise of a comparison, or in rare events.
SMALL_EPSILON = {"epsilon": 1.0}
