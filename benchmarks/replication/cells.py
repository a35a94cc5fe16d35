"""One cell of a table or one point of a figure: who, on what, at which setting, and how it is drawn."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# What an arm is. `printed` is a number from the paper's text; `as printed` reruns its mechanism, which
# is not private; a `comparator` is a rival that the paper names.
KINDS = ("ceiling", "printed", "as printed", "ours", "comparator", "floor")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`draw(seed)` gives one value; a printed cell holds its one value."""

    item: str  # "Table 1"
    data: str
    setting: str  # "epsilon=1"
    arm: str
    kind: str
    measure: str
    draw: Callable[[int], float] | None = None
    printed: float | None = None
    once: bool = False  # the same value for every seed
    needs: str = ""  # a peer's environment; without --environments what is stored stays

    def key(self):
        return (self.item, self.data, self.setting, self.arm, self.measure)


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what it shows, the paper's data sets, and its cells on one of them."""

    item: str
    about: str
    cells: Callable[..., Iterator[Cell]]  # of a data set, or of nothing where data are generated
    takes: str = ""  # the role a data set must declare; empty: generated data
    theirs: tuple[str, ...] = ()  # the paper's own data sets, held here or not


@dataclass(frozen=True)
class Paper:
    """A paper, its experiments, and what of it cannot be shown, in sentences."""

    name: str
    title: str
    experiments: tuple[Experiment, ...]
    missing: tuple[str, ...] = ()


class Store:
    """Values by cell, appended to a file as soon as they are known, so that a stopped run goes on."""

    def __init__(self, path: Path, about: dict[str, object]):
        self.path, self.about, self.lines, self.gone = path, about, {}, set()
        self.read()

    def read(self):
        """What the file holds, the newest line per cell; another run may have appended to it."""
        if self.path.exists():
            for text in self.path.read_text("utf-8").splitlines():
                line = json.loads(text)
                self.lines[self.key(line)] = line

    @staticmethod
    def key(line):
        return (line["paper"], line["item"], line["data"], line["setting"], line["arm"], line["measure"])

    def add(self, paper: str, cell: Cell, draws: int, *, keep: bool = False) -> bool:
        """Draw what is missing of a cell; whether something was drawn.

        Values of another source are drawn again, unless they are kept: a line says its source.
        """
        wanted = 1 if cell.once or cell.draw is None else draws
        old = self.lines.get((paper, *cell.key()))
        same = old is not None and old["source"] == self.about["source"]
        if keep and old is not None and len(old["values"]) >= wanted:
            return False
        values = list(old["values"]) if same else []
        if len(values) >= wanted:
            return False
        if cell.draw is None:
            values = [cell.printed]
        else:
            values += [float(cell.draw(seed)) for seed in range(len(values), wanted)]
        line = {
            "paper": paper,
            "item": cell.item,
            "data": cell.data,
            "setting": cell.setting,
            "arm": cell.arm,
            "kind": cell.kind,
            "measure": cell.measure,
            "values": values,
            **self.about,
        }
        self.lines[self.key(line)] = line
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return True

    def forget(self, paper: str, cells: list[Cell]):
        """Leave out lines of the same items and data that no cell stands for any more."""
        known = {(paper, *cell.key()) for cell in cells}
        held = {(paper, cell.item, cell.data) for cell in cells}
        self.gone |= {key for key in self.lines if key[:3] in held and key not in known}

    def compact(self):
        """One line per cell: the newest."""
        self.read()
        for key in self.gone:
            self.lines.pop(key, None)
        text = "".join(json.dumps(line) + "\n" for line in self.lines.values())
        self.path.write_text(text, "utf-8")
