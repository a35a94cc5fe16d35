"""What is replayed: every kind of release, and neighbouring files, tame and hostile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adumbra.data.schema import Column, ItemSpec, Schema
from adumbra.data.schema import Kind as ColumnKind
from adumbra.mechanisms import dppro, jl_laplace, lda, pca, ron_gauss, topk
from adumbra.mechanisms.moments_plan import MomentsConfig
from adumbra.relations import Neighbours, Unit

NAME, POPULATION = "table", "audit"
CONFIGS: Mapping[str, Any] = {
    "dppro": dppro.DPProConfig,
    "jl-laplace": jl_laplace.JLLaplaceConfig,
    "ron-gauss": ron_gauss.RONGaussConfig,
    "pca": pca.PCAConfig,
    "lda": lda.LDAConfig,
    "moments": MomentsConfig,
    "topk": topk.TopKConfig,
}
ROWS = 12
ITEMS = 9
# A cell that no careful schema expects; each must become the value that the schema declares for missing.
HOSTILE_CELLS: tuple[bytes, ...] = (
    b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1e308", b"-1e308", b"1e999", b"", b" ", b"unseen",
    b"=cmd()", b"0x1p3", b"1,5", b"--1", b"\xff\xfe", b"\xc3\x28", b"null", b"9" * 400, b"x" * 200_000,
    b'"quoted, ""twice"""', "\u202e\U0001f600".encode(), b"-0.0", b"5e-324", b"1_000", b"TRUE",
)  # fmt: skip
# A blank line is no row by the format, so a row that becomes one is not a neighbour under replace-one.
HOSTILE_ROWS: tuple[bytes, ...] = (
    b",", b",,,,,,,,,,", b"1", b'"never closed', b"nan,nan,nan,nan", b"\x00\x00", b"inf,1e308,zzz,-inf",
)  # fmt: skip
HOSTILE_SETS: tuple[bytes, ...] = (
    b"", b"0 1 2 3 4 5 6 7 8", b"1 1 1 1", b"-5 3", b"999999999999999999999", b"a b c", b"1e3",
    b"3" * 50_000,
)  # fmt: skip


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
        """The file that holds the private rows."""
        return f"{NAME}.dat" if self.schema.items is not None else f"{NAME}.csv"

    def config(self) -> Any:  # noqa: ANN401 - each method has its own
        """The mechanism's config."""
        return CONFIGS[self.method](epsilon=1.0, delta=self.delta, **self.options)


def _table(neighbours: Neighbours, unit: Unit = Unit.ROW) -> Schema:
    columns = (
        Column(name="a", kind=ColumnKind.NUMBER, lower=-1.0, upper=1.0),
        Column(name="b", kind=ColumnKind.INTEGER, lower=0.0, upper=9.0),
        Column(name="c", kind=ColumnKind.CATEGORY, categories=("p", "q", "r")),
        Column(name="y", kind=ColumnKind.CATEGORY, categories=("no", "yes")),
    )
    label = "y" if unit is Unit.ROW else None
    return Schema(columns=columns, unit=unit, neighbours=neighbours, label=label, declared_by="audit")


def kinds() -> list[Kind]:
    """Every method, unit and relation that a release can have.

    Not top-k `joint`: it never releases the depth that it draws first, among a private number of depths,
    so a frozen draw means nothing there. It is attacked through whole releases instead.
    """
    replace, add = _table(Neighbours.REPLACE_ONE), _table(Neighbours.ADD_REMOVE)
    cells = _table(Neighbours.ONE_ELEMENT, Unit.ELEMENT)
    sets = {
        relation: Schema(unit=Unit.ROW, neighbours=relation, items=ItemSpec(upper=ITEMS - 1))
        for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE)
    }
    ron = {"n_components": 2, "synthetic_rows": 5}
    made = [
        Kind(name="dppro/row", method="dppro", schema=replace, options={"n_components": 2}),
        Kind(name="dppro/element", method="dppro", schema=cells, options={"n_components": 2}),
        Kind(
            name="jl-laplace/row",
            method="jl-laplace",
            schema=replace,
            options={"n_components": 2},
            delta=0.0,
        ),
        Kind(
            name="jl-laplace/element",
            method="jl-laplace",
            schema=cells,
            options={"n_components": 2},
            delta=0.0,
        ),
        Kind(name="pca/rows", method="pca", schema=replace, options={"n_components": 2}),
    ]
    for schema in (replace, add):
        tail = str(schema.neighbours)
        made += [
            Kind(name=f"ron-gauss/{tail}", method="ron-gauss", schema=schema, options=ron),
            Kind(name=f"ron-gauss-mixture/{tail}", method="ron-gauss", schema=schema,
                 options={**ron, "mode": "gmm"}, delta=0.0),
            Kind(name=f"pca-sample/{tail}", method="pca", schema=schema,
                 options={"n_components": 2, "output": "sample", "synthetic_rows": 5}),
            Kind(name=f"lda/{tail}", method="lda", schema=schema,
                 options={"synthetic_rows": 5}, delta=0.0),
            Kind(name=f"moments/{tail}", method="moments", schema=schema, options={"sample_rows": 5}),
        ]  # fmt: skip
    for relation, schema in sets.items():
        for method in ("frefirst", "svt", "em"):
            options = {"k": 2, "method": method, "max_length": 4}
            made.append(
                Kind(
                    name=f"topk-{method}/{relation}",
                    method="topk",
                    schema=schema,
                    options=options,
                    delta=0.0,
                )
            )
    return made


def neighbours(kind: Kind, count: int, seed: int = 0) -> Iterator[tuple[bytes, bytes, bool]]:
    """Pairs of neighbouring files, and whether the pair is hostile; every other one is."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        hostile = number % 2 == 0
        make = _set_pair if kind.schema.items is not None else _csv_pair
        first, second = make(kind, rng, hostile=hostile, turn=number // 2)
        yield first, second, hostile


def _csv_pair(kind: Kind, rng: np.random.Generator, *, hostile: bool, turn: int) -> tuple[bytes, bytes]:
    header = ",".join(kind.schema.names).encode()
    rows = [_row(rng) for _ in range(ROWS)]
    place = int(rng.integers(ROWS))
    if kind.schema.neighbours is Neighbours.ONE_ELEMENT:
        column = turn % 4
        cell = HOSTILE_CELLS[turn % len(HOSTILE_CELLS)] if hostile else _row(rng)[column]
        if b"," in cell or b'"' in cell:  # would become two cells, which is more than one element
            cell = b"unseen"
        other = [*rows[place]]
        other[column] = cell
        changed = b",".join(other)
    elif hostile and turn % 3 == 0:
        changed = HOSTILE_ROWS[turn // 3 % len(HOSTILE_ROWS)]
    elif hostile:
        other = _row(rng)
        other[turn % 4] = HOSTILE_CELLS[turn % len(HOSTILE_CELLS)]
        changed = b",".join(other)
    else:
        changed = b",".join(
            rows[turn % ROWS] if turn % 5 == 0 else _row(rng)
        )  # a duplicate, or another row
    if turn % 7 == 6:  # the only member of its class leaves it
        for row in rows:
            row[3] = b"no"
        rows[place][3] = b"yes"
    lines = [b",".join(row) for row in rows]
    if kind.schema.neighbours is Neighbours.ADD_REMOVE:
        return _file(header, lines), _file(header, [*lines, changed])
    return _file(header, lines), _file(header, [*lines[:place], changed, *lines[place + 1 :]])


def _set_pair(kind: Kind, rng: np.random.Generator, *, hostile: bool, turn: int) -> tuple[bytes, bytes]:
    rows = [
        b" ".join(b"%d" % item for item in np.flatnonzero(rng.random(ITEMS) < 0.4)) for _ in range(ROWS)
    ]
    extra = (
        HOSTILE_SETS[turn % len(HOSTILE_SETS)]
        if hostile
        else b"%d %d" % (turn % ITEMS, (turn + 3) % ITEMS)
    )
    if kind.schema.neighbours is Neighbours.ADD_REMOVE:
        return _file(None, rows), _file(None, [*rows, extra])
    return _file(None, rows), _file(None, [extra, *rows[1:]])


def _row(rng: np.random.Generator) -> list[bytes]:
    number = b"%.3f" % rng.uniform(-1, 1)
    return [number, b"%d" % rng.integers(10), b"pqr"[(i := int(rng.integers(3))) : i + 1],
            (b"no", b"yes")[int(rng.integers(2))]]  # fmt: skip


def _file(header: bytes | None, lines: list[bytes]) -> bytes:
    return b"\n".join(([] if header is None else [header]) + lines) + b"\n"
