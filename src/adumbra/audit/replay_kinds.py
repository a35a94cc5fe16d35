"""What is replayed: every kind of release, and neighbouring files, tame and hostile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from adumbra.audit.move_cases import whole_range
from adumbra.audit.pairs import keeping_null, unbounded
from adumbra.audit.person_cases import person_schema, scaled_schema
from adumbra.audit.person_replay import (
    Row,
    changed_persons,
    csv_files,
    parquet_sets,
    split_files,
    usual_persons,
)
from adumbra.mechanisms.methods import method_named
from adumbra.mechanisms.topk.config import SHARES, Algorithm, Step
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Schema
from adumbra.schema.schema import Kind as ColumnKind

NAME, POPULATION = "table", "audit"
ROWS = 12
FAMILY = 25  # neighbours of one table
Family = tuple[bytes, list[tuple[bytes, bool]]]  # a table; its neighbours, and which are hostile
ITEMS = 9
# Which kinds are replayed for persons as well: one of each statistic and each way to choose.
OF_PERSONS = (
    "ron-gauss/", "ron-gauss-mixture/", "pca-sample/", "lda/", "answers/", "bounds/", "bounds-pure/",
    "moments/", "moments-pure/",
    "moments-items/", "moments-tables/", "moments-pairs/", "topk-frefirst/", "topk-em/", "topk-svt/",
    "topk-joint/", "topk-tps-refine/", "topk-gumbel-gaussian/",
)  # fmt: skip
# ... and where all their rows count, at a part of their weight.
SCALED = (
    "ron-gauss/", "lda/", "answers/", "bounds/", "moments/", "moments-items/", "moments-tables/",
    "moments-pairs/",
)  # fmt: skip
# A cell that no careful schema expects; each must become the value that the schema declares for missing.
# Most are as a writer of CSV leaves them: quotes around delimiters, quotes and LF, but not around CR.
HOSTILE_CELLS: tuple[bytes, ...] = (
    b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1e308", b"-1e308", b"1e999", b"", b" ", b"unseen",
    b"=cmd()", b"0x1p3", b"1,5", b"--1", b"\xff\xfe", b"\xc3\x28", b"null", b"9" * 400, b"x" * 200_000,
    b'"quoted, ""twice"""', "\u202e\U0001f600".encode(), b"-0.0", b"5e-324", b"1_000", b"TRUE",
    b"0.5", b"-0.5", b"0.25", b"0", b"1", b"-1", b"9", b"5",
    b"a\rb\rc", b"\r", b"1,no\r", b'"0.5,1,p,yes\n0.5,1,p,yes\r\n"', b'"""\n"""', b'"\n\n"', b'5" pipe',
)  # fmt: skip
# Cells that look like rows, first of all in every kind; the last is longer than a field that is read.
FIRST_CELLS: tuple[bytes, ...] = (
    b"a\rb\rc", b'"0.5,1,p,yes\n0.5,1,p,yes\n"', b'"' + b"0.5,1,p,yes\n" * 90_000 + b'"',
)  # fmt: skip
# A blank line is no row by the format, so a row that becomes one is not a neighbour under replace-one;
# a quote that its row leaves open makes a row of those below, which is more than one row.
HOSTILE_ROWS: tuple[bytes, ...] = (
    b",", b",,,,,,,,,,", b"1", b'"one\n, ""field"""', b"nan,nan,nan,nan", b"\x00\x00",
    b"inf,1e308,zzz,-inf",
)  # fmt: skip
HOSTILE_SETS: tuple[bytes, ...] = (
    b"", b"0 1 2 3 4 5 6 7 8", b"1 1 1 1", b"-5 3", b"999999999999999999999", b"a b c", b"1e3",
    b"3" * 50_000,
)  # fmt: skip
HOSTILE_ITEMS: tuple[bytes, ...] = (b"-5", b"999999999999999999999", b"a", b"1e3", b"nan", b"3" * 50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of release."""

    name: str
    method: str
    schema: Schema
    options: Mapping[str, object] = field(default_factory=dict)
    delta: float = 1e-6

    @property
    def data_name(self) -> str:
        """The file (for persons the folder) that holds the private rows."""
        if self.schema.person is not None:
            return "rows"
        return f"{NAME}.dat" if self.schema.items is not None else f"{NAME}.csv"

    def write(self, place: Path, data: bytes) -> None:
        """Lay out the private rows in a folder."""
        if self.schema.person is None:
            (place / self.data_name).write_bytes(data)
            return
        (place / self.data_name).mkdir()
        suffix = "csv" if self.schema.items is None else "parquet"
        for number, part in enumerate(split_files(data)):
            (place / self.data_name / f"{self.data_name}-{number}.{suffix}").write_bytes(part)

    def config(self) -> Any:  # noqa: ANN401 - each method has its own
        """The mechanism's config."""
        return method_named(self.method).config(delta=self.delta, **{"epsilon": 1.0, **self.options})


def _table(neighbours: Neighbours, unit: Unit = Unit.ROW, label: str | None = "y") -> Schema:
    columns = (
        Column(name="a", kind=ColumnKind.NUMBER, lower=-1.0, upper=1.0),
        Column(name="b", kind=ColumnKind.INTEGER, lower=0.0, upper=9.0),
        Column(name="c", kind=ColumnKind.CATEGORY, categories=("p", "q", "r")),
        Column(name="y", kind=ColumnKind.CATEGORY, categories=("no", "yes")),
    )
    label = label if unit is Unit.ROW else None
    return Schema(columns=columns, unit=unit, neighbours=neighbours, label=label, declared_by="audit")


def _sets(neighbours: Neighbours, unit: Unit = Unit.ROW) -> Schema:
    return Schema(unit=unit, neighbours=neighbours, items=ItemSpec(upper=ITEMS - 1))


def kinds() -> list[Kind]:
    """Every method, unit, relation and currency that a release can have."""
    cells = _table(Neighbours.ONE_ELEMENT, Unit.ELEMENT)
    two: dict[str, object] = {"n_components": 2}
    made = _projected("element", cells, two)
    for word, far in whole_range(cells, cells.names):
        made += _projected(word, far, two)
    labelled: dict[str, object] = {**two, "label": "randomised"}
    made += _projected("element/label", replace(cells, label="y"), labelled)
    made += _projected("row/label", _table(Neighbours.REPLACE_ONE), labelled)
    made += _projected("element/items", _sets(Neighbours.ONE_ELEMENT, Unit.ELEMENT), two)
    for relation in (Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE):
        schema = _table(relation)
        target, sets = _table(relation, label="a"), _sets(relation)
        if relation is Neighbours.REPLACE_ONE:  # row by row: the number of rows is public
            made += [
                *_projected("row", schema, two),
                Kind(name="pca/rows", method="pca", schema=schema, options=two),
                Kind(name="pca/pure/rows", method="pca", schema=schema, options=two, delta=0.0),
                *_projected("row/items", sets, {**two, "row_norm": 2.0}),
            ]
        made += [
            Kind(name=f"{name}/{relation}", method=method, schema=schema, options=options, delta=delta)
            for name, method, schema, options, delta in _synthesizers(schema, target)
        ]
        few: dict[str, object] = {"synthetic_rows": 5}
        made.append(Kind(name=f"moments-items/{relation}", method="moments", schema=sets, options=few))
        for method in Algorithm:
            if method is Algorithm.AUTO:
                continue
            options = {"k": 2, "algorithm": method.value, **_scanned(method)}
            name = f"topk-{method}/{relation}"
            made.append(Kind(name=name, method="top-k", schema=sets, options=options, delta=0.0))
        for method in (Algorithm.FREFIRST, Algorithm.GUMBEL):
            options = {"k": 2, "algorithm": method.value, **_scanned(method)}
            name = f"topk-{method}-gaussian/{relation}"
            made.append(Kind(name=name, method="top-k", schema=sets, options=options))
        few = {"k": 2, "algorithm": Algorithm.FREFIRST.value, "max_length": 4}
        name = f"topk-truths/{relation}"
        made.append(Kind(name=name, method="top-k", schema=_truths(schema), options=few, delta=0.0))
    made += _finer(_table(Neighbours.ADD_REMOVE))
    made += _paired(_table(Neighbours.ADD_REMOVE))
    persons = [_of_persons(kind) for kind in made if kind.name.startswith(OF_PERSONS)]
    return [*made, *persons, *(_scaled(kind) for kind in persons if kind.name.startswith(SCALED))]


def _finer(schema: Schema) -> list[Kind]:
    """Releases that count a whole number in finer cells too; where n is public, few rows have none."""
    columns = (replace(c, upper=999.0) if c.name == "b" else c for c in schema.columns)
    wide = replace(schema, columns=tuple(columns))
    many: dict[str, object] = {"synthetic_rows": 5, "expected_rows": 10**6}
    kept = Kind(
        name="moments-finer/add-remove", method="moments", schema=keeping_null(wide), options=many
    )
    return [kept, replace(kept, name="moments-finer-pure/add-remove", schema=wide, delta=0.0)]


def _paired(schema: Schema) -> list[Kind]:
    """Releases that count a column of two levels by class: epsilon, or the guess of rows, is large."""
    columns = (replace(c, upper=1.0) if c.name == "b" else c for c in schema.columns)
    two = replace(schema, columns=tuple(columns))
    many: dict[str, object] = {"synthetic_rows": 5, "expected_rows": 10**6}
    kept = Kind(name="moments-pairs/add-remove", method="moments", schema=two, options=many)
    public: dict[str, object] = {"synthetic_rows": 5, "numbers": "bins", "epsilon": 500.0}
    relation = Neighbours.REPLACE_ONE
    fixed = replace(two, neighbours=relation)
    return [
        kept,
        replace(kept, name="moments-pairs-pure/add-remove", delta=0.0),
        replace(kept, name=f"moments-pairs/{relation}", schema=fixed, options=public),
    ]


def _projected(part: str, schema: Schema, options: Mapping[str, object]) -> list[Kind]:
    """The same release by a public projection and by a secret one."""
    public = Kind(name=f"dppro/{part}", method="dppro", schema=schema, options=options)
    return [public, replace(public, name=f"jl-laplace/{part}", method="jl-laplace", delta=0.0)]


def _scaled(kind: Kind) -> Kind:
    """The same release of persons all of whose rows count."""
    return replace(kind, name=f"scale-{kind.name}", schema=scaled_schema(kind.schema))


def _of_persons(kind: Kind) -> Kind:
    """The same release, of persons."""
    schema = person_schema(kind.schema)
    name = kind.name.replace(str(kind.schema.neighbours), str(schema.neighbours))
    return replace(kind, name=name, schema=schema)


def _truths(schema: Schema) -> Schema:
    """The same names as columns that are true or false: most cells are neither, so missing."""
    columns = tuple(
        Column(name=name, kind=ColumnKind.INTEGER, lower=0, upper=1, cast=True)
        if place % 2
        else Column(name=name, kind=ColumnKind.BOOLEAN, cast=True)
        for place, name in enumerate(schema.names)
    )
    return replace(schema, columns=columns, label=None)


def _scanned(method: Algorithm) -> dict[str, object]:
    """A short scan of lengths, where the algorithm cuts rows at all."""
    return {"max_length": 4} if Step.COUNTS in SHARES[method] else {}


def chosen_kinds(method: str | None) -> list[Kind]:
    """The kinds of one method, or all."""
    return [kind for kind in kinds() if method in (None, kind.method)]


def _synthesizers(
    schema: Schema, target: Schema
) -> list[tuple[str, str, Schema, dict[str, object], float]]:
    """Name, method, schema, options and delta of everything that sums rows."""
    ron: dict[str, object] = {"n_components": 2, "synthetic_rows": 5}
    # So few rows have tables above the noise at a large epsilon alone.
    tables: dict[str, object] = {"synthetic_rows": 5, "numbers": "bins", "table_share": 0.5}
    tables["epsilon"] = 64.0
    sample: dict[str, object] = {"n_components": 2, "output": "sample", "synthetic_rows": 5}
    return [
        ("ron-gauss", "ron-gauss", schema, ron, 1e-6),
        ("ron-gauss-public", "ron-gauss", schema, {**ron, "centring": "public"}, 0.0),
        ("ron-gauss-mixture", "ron-gauss", schema, {**ron, "mode": "gmm"}, 0.0),
        ("ron-gauss-target", "ron-gauss", target, {**ron, "mode": "supervised"}, 1e-6),
        ("pca-sample", "pca", schema, sample, 1e-6),
        ("lda", "lda", schema, {"synthetic_rows": 5}, 0.0),
        ("answers", "answers", schema, {}, 1e-6),
        ("answers-few", "answers", schema, {"columns": ("b", "c"), "outcome": "b"}, 1e-6),
        ("answers-pure", "answers", schema, {"columns": ("a", "b", "c")}, 0.0),
        ("bounds", "bounds", unbounded(schema), {}, 1e-6),
        ("bounds-pure", "bounds", unbounded(schema), {}, 0.0),
        ("moments", "moments", schema, {"synthetic_rows": 5}, 1e-6),
        ("moments-pure", "moments", schema, {"synthetic_rows": 5, "numbers": "scores"}, 0.0),
        ("moments-null", "moments", keeping_null(schema), {"synthetic_rows": 5}, 1e-6),
        ("moments-tables", "moments", keeping_null(schema), tables, 1e-6),
        ("moments-tables-pure", "moments", schema, tables, 0.0),
    ]


def families(kind: Kind, count: int, seed: int = 0) -> Iterator[Family]:
    """Tables, each with neighbours and whether they are hostile (every other one is); `count` in all."""
    rng = np.random.default_rng(seed)
    make = _set_family if kind.schema.items is not None else _csv_family
    make = make if kind.schema.person is None else _person_family
    for first in range(0, count, FAMILY):
        yield make(kind, rng, range(first, min(first + FAMILY, count)))


def neighbours(kind: Kind, count: int, seed: int = 0) -> Iterator[tuple[bytes, bytes, bool]]:
    """The same as pairs."""
    for first, others in families(kind, count, seed):
        yield from ((first, second, hostile) for second, hostile in others)


def _csv_family(kind: Kind, rng: np.random.Generator, numbers: range) -> Family:
    header = ",".join(kind.schema.names).encode()
    rows = [_row(rng) for _ in range(ROWS)]
    alone = int(rng.integers(ROWS))
    if numbers.start // FAMILY % 3 == 1:  # the only member of its class, which may leave it
        for row in rows:
            row[3] = b"no"
        rows[alone][3] = b"yes"
    if numbers.start // FAMILY % 10 == 9:
        rows = rows[:1]  # one row, or none
        alone = 0
    lines, others = [b",".join(row) for row in rows], []
    for number in numbers:
        hostile = number % 2 == 0
        place = alone if number % 4 == 1 else int(rng.integers(len(rows)))
        changed = _changed(kind, rng, rows, place, hostile=hostile)
        if hostile and number // 2 < len(FIRST_CELLS):
            row = [*rows[place]]
            row[number % 4] = FIRST_CELLS[number // 2]
            changed = b",".join(row)
        at = int(rng.integers(len(lines) + 1))
        grown = [*lines[:at], changed, *lines[at:]]
        swapped = [*lines[:place], changed, *lines[place + 1 :]]
        other = grown if kind.schema.neighbours is Neighbours.ADD_REMOVE else swapped
        others.append((_file(header, other), hostile))
    return _file(header, lines), others


def _changed(
    kind: Kind, rng: np.random.Generator, rows: list[list[bytes]], place: int, *, hostile: bool
) -> bytes:
    """The row that takes another's place, or comes to the others."""
    column, cell = int(rng.integers(4)), HOSTILE_CELLS[int(rng.integers(len(HOSTILE_CELLS)))]
    if kind.schema.unit is Unit.ELEMENT:
        if b"," in cell and not cell.startswith(b'"'):  # would be two cells, more than one element
            cell = b"unseen"
        other = [*rows[place]]
        other[column] = cell if hostile else _row(rng)[column]
        return b",".join(other)
    if hostile and rng.random() < 0.3:
        return HOSTILE_ROWS[int(rng.integers(len(HOSTILE_ROWS)))]
    if not hostile and rng.random() < 0.2:
        return b",".join(rows[int(rng.integers(len(rows)))])  # a duplicate
    other = _row(rng)
    if hostile:
        other[column] = cell
    return b",".join(other)


def _person_family(kind: Kind, rng: np.random.Generator, numbers: range) -> Family:
    """Persons of several rows, one of whom comes, goes or changes; every other one is hostile."""
    persons, relation = usual_persons(rng), kind.schema.reach.neighbours
    if numbers.start // FAMILY % 10 == 9:
        persons = dict([*persons.items()][:1])
    cells = tuple(cell for cell in HOSTILE_CELLS if cell.count(b'"') % 2 == 0)

    def table(chosen: Mapping[str, list[Row]]) -> bytes:
        if kind.schema.items is not None:
            return parquet_sets(rng, chosen)
        return csv_files(rng, ",".join(kind.schema.names).encode(), chosen)

    first, others = table(persons), []
    for number in numbers:
        hostile = number % 2 == 0
        others.append(
            (table(changed_persons(rng, persons, relation, cells if hostile else ())), hostile)
        )
    return first, others


def _set_family(kind: Kind, rng: np.random.Generator, numbers: range) -> Family:
    size = 1 if numbers.start // FAMILY % 10 == 9 else ROWS
    rows, others = [_set(rng) for _ in range(size)], []
    for number in numbers:
        hostile = number % 2 == 0
        place = int(rng.integers(size))
        extra = HOSTILE_SETS[int(rng.integers(len(HOSTILE_SETS)))] if hostile else _set(rng)
        if kind.schema.neighbours is Neighbours.ONE_ELEMENT:
            extra = _one_item(rng, rows[place], hostile=hostile)
        rest = rows[place:] if kind.schema.neighbours is Neighbours.ADD_REMOVE else rows[place + 1 :]
        others.append((_file(None, [*rows[:place], extra, *rest]), hostile))
    return _file(None, rows), others


def _one_item(rng: np.random.Generator, row: bytes, *, hostile: bool) -> bytes:
    """The set with one item more or less, or with one that becomes something no item is."""
    held, item = row.split(), b"%d" % rng.integers(ITEMS)
    rest = [one for one in held if one != item]
    if item not in held:
        rest.append(item)
    if hostile and held:
        strange = HOSTILE_ITEMS[int(rng.integers(len(HOSTILE_ITEMS)))]
        rest = [strange if one == held[-1] else one for one in held]
    return b" ".join(rest)


def _set(rng: np.random.Generator) -> bytes:
    return b" ".join(b"%d" % item for item in np.flatnonzero(rng.random(ITEMS) < 0.4))


def _row(rng: np.random.Generator) -> list[bytes]:
    """A row, some of its cells in quotes."""
    number = b"%.3f" % rng.uniform(-1, 1)
    row = [number, b"%d" % rng.integers(10), b"pqr"[(i := int(rng.integers(3))) : i + 1],
            (b"no", b"yes")[int(rng.integers(2))]]  # fmt: skip
    return [b'"%b"' % cell if rng.integers(4) == 0 else cell for cell in row]


def _file(header: bytes | None, lines: list[bytes]) -> bytes:
    return b"\n".join(([] if header is None else [header]) + lines) + b"\n"
