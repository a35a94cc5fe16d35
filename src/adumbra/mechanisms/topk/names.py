"""Names of items from a public dictionary: a text file of `item,name` lines (a tab serves too)."""

from pathlib import Path

from adumbra.data.schema import ItemSpec
from adumbra.errors import InvalidInput, require

HEADER = "item"  # a first line that starts with this word is a heading


def read_names(spec: ItemSpec) -> dict[int, str] | None:
    """The name of each item in the dictionary; None if the schema declares no dictionary."""
    if spec.dictionary is None:
        return None
    path = Path(spec.dictionary)
    require(
        path.is_file(),
        f"dictionary={spec.dictionary}: no such file; give a public file of item,name lines",
    )
    names: dict[int, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        first, _, name = line.partition("\t" if "\t" in line else ",")
        if not line.strip() or (number == 1 and first.strip().lower() == HEADER):
            continue
        if not (first.strip().isdecimal() and name.strip()):
            raise InvalidInput(f"dictionary={spec.dictionary}, line {number}: must read item,name")
        names[int(first)] = name.strip().strip('"')
    return names
