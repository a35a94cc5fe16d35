"""PrivBayes as DataSynthesizer has it, in an environment of its own. NOT FOR RELEASE.

DataSynthesizer (Ping, Stoyanovich, Howe 2017), correlated attribute mode: a Bayesian network by the
exponential mechanism with at most two parents, then noisy conditional tables (PrivBayes: Zhang,
Cormode, Procopiuc, Srivastava, Xiao 2014). Pure epsilon, whole row, by its own claim. It runs through
`comparison/adapters.py`, as `make peers` runs it.

    python benchmarks/replication/peer_comparators.py FOLDER      # a check on rows with a known answer
"""

import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow as pa
from comparison import capped, environments, tables

from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

ENVIRONMENTS: Path | None = None  # set by papers.py
PEER, METHOD = "datasynthesizer", "datasynthesizer_privbayes"
CAPS = capped.Caps(cpu_seconds=600, wall_seconds=3600, memory_gib=8.0)
ADAPTERS = Path(__file__).resolve().parents[1] / "comparison" / "adapters.py"


def privbayes(x, y, epsilon):
    """Synthetic rows and classes for rows of 0 and 1 with a class of 0 or 1."""
    if ENVIRONMENTS is None:
        raise InvalidInput("PrivBayes: give --environments FOLDER")
    made = environments.make(ENVIRONMENTS, PEER)
    if not made.ok:
        raise InvalidInput(f"{PEER}: could not be installed: {made.message}")
    names = [*(f"v{j}" for j in range(x.shape[1])), "y"]
    columns = tuple(Column(name=name, kind=Kind.CATEGORY, categories=("a", "b")) for name in names)
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label="y")
    cells = np.where(np.column_stack([x, y]), "b", "a")
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        train = pa.table({name: cells[:, j] for j, name in enumerate(names)})
        tables.write(folder, train, schema)
        out = folder / "out.csv"
        python = environments.python_of(ENVIRONMENTS, PEER)
        told = [folder / "train.csv", folder / "public.json", out, epsilon, 0.0]
        words = [python, ADAPTERS, METHOD, *told]
        ended = capped.run(list(map(str, words)), CAPS, folder / "log")
        if ended.outcome != "ok":
            raise InvalidInput(f"{METHOD}: {ended.outcome}: {ended.message}")
        drawn = tables.read(out, schema)
    print(f"{METHOD}: {ended.cpu_s} s of one core", file=sys.stderr, flush=True)
    rows = np.column_stack([np.array(drawn[name].to_pylist()) == "b" for name in names])
    return rows[:, :-1], rows[:, -1]


def known_answer():
    """The shares that a copied class keeps: near 1 at a large epsilon, near a guess at a tiny one."""
    rng = np.random.default_rng(0)
    x = rng.random((2000, 3)) < 0.5
    kept = {}
    for epsilon in (100.0, 1e-3):
        rows, classes = privbayes(x, x[:, 1], epsilon)
        kept[epsilon] = float(np.mean(rows[:, 1] == classes))
    return kept


if __name__ == "__main__":
    ENVIRONMENTS = Path(sys.argv[1])
    found = known_answer()
    print("a class that copies a column stays that column in this share of rows:", found)
    sys.exit(0 if found[100.0] > 0.95 and found[1e-3] < 0.9 else 1)
