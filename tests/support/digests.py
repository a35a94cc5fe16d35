"""Digests of everything that each kind of release draws under a known secret, from public rows.

    noise    what every noise call returned: integers on a lattice, or places
    array    dtype, shape and bytes
    table    names, types and values of the columns, the values in Python's exact text

Noise and most arrays are exact on any machine. Where floats are summed after the noise (covariances,
eigenvectors, rows sampled from them), the last bits follow the kernels that BLAS and numpy choose for
the processor, and an eigenvector may change its sign with them, so no rounding of values helps. So the
digests are computed in a process of its own, held to kernels that every x86-64 processor has.
A part (of a method, by name) is marked `kernel` if the bits of any kind differ under the kernels of 2013
or of the processor at hand, else `exact`.

    python tools/digests.py            compare
    python tools/digests.py --write    rewrite the file, after a change of released values that is meant
"""

import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.digest_kinds import DigestKind, all_kinds
from support.drawing import Drawn, draw_file

TESTS = Path(__file__).resolve().parent.parent
FILE = TESTS / "e2e" / "digests.json"
EXACT, KERNEL = "exact:", "kernel:"
LIBRARIES = ("numpy", "scipy", "pyarrow", "scikit-learn")
# Kernels that need no more than SSE3, and those of 2013. Our own loops run compiled where they can: they
# give the same bits as numpy's, as other tests show, in a third of the time.
PINNED = {
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
    "ARROW_USER_SIMD_LEVEL": "NONE",
}
OTHER = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F",
    "ARROW_USER_SIMD_LEVEL": "AVX2",
}
LOOPS = "numba" if importlib.util.find_spec("numba") else "numpy"
ALWAYS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ADUMBRA_NOISE": LOOPS}


def rows_file(kind: DigestKind, folder: Path) -> Path:
    """Rows from a public seed: CSV with cells that cannot be read or pass the bounds, or item sets."""
    rng = np.random.default_rng(7)
    schema = kind.schema
    if schema.items is not None:
        chance = 1 / (np.arange(schema.width) + 2)
        draws = rng.random((kind.rows, schema.width))
        sets = [np.flatnonzero(row < chance) + schema.items.lower for row in draws]
        lines = [" ".join(map(str, items)) for items in sets]
        path = folder / "rows.dat"
        if schema.person is not None:
            named = {
                schema.items.column: [one.tolist() for one in sets],
                schema.person.column: _ids(kind),
            }
            pq.write_table(pa.table(named), path.with_suffix(".parquet"))
            return path.with_suffix(".parquet")
    else:
        hidden = rng.random(kind.rows)
        columns = [_cells(column, hidden, rng) for column in schema.columns]
        names = list(schema.names)
        if schema.person is not None:
            columns.append(_ids(kind))
            names.append(schema.person.column)
        lines = [",".join(names), *(",".join(row) for row in zip(*columns, strict=True))]
        path = folder / "rows.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _ids(kind: DigestKind) -> list[str]:
    """Whose rows they are: three rows per person, and a few rows of nobody."""
    return [f"p{at // 3}" if at % 50 else "" for at in range(kind.rows)]


def _cells(column, hidden, rng) -> list[str]:
    """Cells that follow a hidden number; some are empty, some outside of the bounds."""
    level = 0.6 * hidden + 0.4 * rng.random(len(hidden))
    empty = rng.random(len(hidden)) < 0.05
    if column.is_numeric:
        lower, upper = column.limits
        values = (lower + (upper - lower) * (1.2 * level - 0.1)).tolist()
        text = [f"{one:.4f}" if column.kind == "number" else str(round(one)) for one in values]
    else:
        words = column.categories or ("false", "true")
        text = [words[int(one * len(words))] for one in level.tolist()]
    return ["" if none else one for one, none in zip(text, empty.tolist(), strict=True)]


def parts_of(drawn: Drawn) -> dict[str, str]:
    """The digest of each part, by kind of part and name."""
    found = {f"table {name}": table_digest(one) for name, one in drawn.tables.items()}
    found |= {f"array {name}": array_digest(one) for name, one in drawn.arrays.items()}
    return found | {f"noise {name}": array_digest(*blocks) for name, blocks in drawn.noise.items()}


def table_digest(table: pa.Table) -> str:
    """SHA-256 over names, types and values; Python writes a float with all of its bits."""
    whole = hashlib.sha256()
    for field, column in zip(table.schema, table.columns, strict=True):
        whole.update(repr((field.name, str(field.type), column.to_pylist())).encode())
    return whole.hexdigest()


def array_digest(*arrays: np.ndarray) -> str:
    """SHA-256 over dtype, shape and bytes of each."""
    whole = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        whole.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    return whole.hexdigest()


def digests_here(kinds: list[DigestKind]) -> dict[str, str]:
    """The digests of some kinds, in this process and with its kernels."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            drawn = draw_file(rows_file(kind, Path(folder)), kind.schema, kind.config)
            found |= {f"{kind.name} {part}": digest for part, digest in parts_of(drawn).items()}
    return found


def digests_under(kernels: dict[str, str]) -> dict[str, str]:
    """The digests of all kinds, in a process that is held to these kernels."""
    environment = {**os.environ, **ALWAYS, **kernels, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "support.digests"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def made_with() -> dict[str, str]:
    """What the bits of a `kernel` part may depend on."""
    libraries = {name: version(name) for name in LIBRARIES}
    return {"machine": f"{platform.system()} {platform.machine()}", **libraries}


def write() -> None:
    """Compute all digests and write the file: one line for each kind and part, sorted."""
    pinned, *others = (digests_under(kernels) for kernels in (PINNED, OTHER, {}))
    method = {kind.name: type(kind.config).__name__ for kind in all_kinds()}
    group = {name: (method[name.split(" ")[0]], name.split(" ", 1)[1]) for name in pinned}
    loose = {group[name] for name in pinned if any(one[name] != pinned[name] for one in others)}
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in made_with().items()]
    parts = [
        f'  {json.dumps(name)}: "{KERNEL if group[name] in loose else EXACT}{digest}"'
        for name, digest in sorted(pinned.items())
    ]
    text = '{"made with": {\n' + ",\n".join(lines) + '\n},\n"parts": {\n' + ",\n".join(parts) + "\n}}\n"
    FILE.write_text(text, encoding="utf-8")


def differences(found: dict[str, str]) -> tuple[list[str], int]:
    """What is not as the file says, and how many parts were compared.

    Elsewhere than on the libraries and the machine that the file names, `kernel` parts may differ by
    right: there the `exact` ones are compared, which hold all noise.
    """
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    alike = kept["made with"] == made_with()
    compared = {
        name: value.partition(":")[2]
        for name, value in kept["parts"].items()
        if alike or value.startswith(EXACT)
    }
    faults = [f"{name}: not drawn any more" for name in kept["parts"] if name not in found]
    faults += [f"{name}: no digest is kept" for name in found if name not in kept["parts"]]
    faults += [
        f"{name}: differs" for name in compared if found.get(name, compared[name]) != compared[name]
    ]
    return sorted(faults), len(compared)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests_here(all_kinds())))
