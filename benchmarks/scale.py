"""Whole releases beside bare references of the same run: CPU, wall time and peak memory, as ratios.

    python benchmarks/scale.py [small|medium|full] [--only dppro] [--folder F] [--repeat 1]
    python benchmarks/scale.py growth            CPU over rows, columns and components, for the exponents
    python benchmarks/scale.py memory            many rows drawn, many rows read
    python benchmarks/scale.py cluster --rows N  N x 100 by two workers beside the local engine
    python benchmarks/scale.py page              docs/explanation/performance.md from the kept lines
    python benchmarks/scale.py all               all of these, then the page (`make scale`)

Each figure is a fresh process with one BLAS thread. A reference does the least that any program must do
to the same file: read it with pyarrow, multiply with numpy, draw numpy's normal numbers, write Parquet.
A line without a reference is a release alone. Lines go to benchmarks/results/scale.jsonl; data are made
in a folder of their own and removed.
"""

import argparse
import hashlib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import types
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "scale.jsonl"
PART_ROWS = 100_000
LINKED_ROWS = 2_000_000  # of the cluster's table, whose other files are links; a multiple of a file's
NOISE = {"numba": 0.8, "numpy": 1.2}  # times numpy's normal numbers that we want
SIZES, OTHERS = ("small", "medium", "full"), ("growth", "memory", "cluster")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One release: its table, method, reference, and the ratio that we want."""

    method: str
    rows: int
    columns: int
    target: float | None = None  # CPU over the reference's
    config: dict = field(default_factory=dict)
    reference: str = ""
    format: str = "parquet"
    engine: str = "local"
    axis: str = ""  # what grows: rows, columns, components; start; memory; cluster
    distinct: int | None = None  # rows that are written; files of the others are hard links to theirs

    @property
    def name(self):
        return f"{self.method} {self.rows:,} x {self.columns:,} {self.format} {self.engine}"


PROJECT = {"n_components": 20, "epsilon": 1.0, "delta": 1e-6}
FEW = {"epsilon": 1.0, "delta": 1e-6, "synthetic_rows": 1000}


def growth_cases():
    """One thing grows in each; cases of one table stand together."""
    usual = {"dppro": PROJECT, "moments": FEW, "ron-gauss": FEW}
    tiny = {"rows": 100, "columns": 10, "axis": "start"}
    made = [Case(method="dppro", config=PROJECT | {"n_components": 5}, **tiny)]
    made += [Case(method=m, config=usual[m], **tiny) for m in ("moments", "ron-gauss")]
    for rows in (125_000, 250_000, 500_000, 1_000_000):
        made += [Case(method=m, rows=rows, columns=100, config=c, axis="rows") for m, c in usual.items()]
    for columns in (125, 250, 500, 1000, 2000):
        made.append(Case(method="moments", rows=20_000, columns=columns, config=FEW, axis="columns"))
    for k in (10, 20, 40, 80, 160):
        config = PROJECT | {"n_components": k}
        made.append(Case(method="dppro", rows=100_000, columns=200, config=config, axis="components"))
    return made


def memory_cases():
    """Ten million rows read, and one and ten million drawn."""
    both = ("moments", "ron-gauss")
    read = {"rows": 10_000_000, "columns": 64, "axis": "memory"}
    drawn = {"rows": 100_000, "columns": 100, "axis": "memory"}
    many = [FEW | {"synthetic_rows": rows} for rows in (10**6, 10**7)]
    made = [Case(method=method, config=FEW, **read) for method in both]
    return made + [Case(method=m, config=config, **drawn) for config in many for m in both]


def cluster_cases(rows):
    table = {"rows": rows, "columns": 100, "config": FEW, "engine": "dask", "axis": "cluster"}
    if rows > LINKED_ROWS and rows % (4 * PART_ROWS) == 0:
        table["distinct"] = LINKED_ROWS
    return [Case(method="moments", target=1.8, reference="local", **table)]


def cases(size):
    n = {"small": 100_000, "medium": 500_000, "full": 2_000_000}[size]
    wide, tall = n // 10, {"small": 500, "medium": 2_000, "full": 5_000}[size]
    project, few = PROJECT, FEW
    laplace = {"n_components": 20, "epsilon": 1.0}
    table = {"rows": n, "columns": 100}
    return [
        Case(method="dppro", target=1.5, config=project, reference="rows", **table),
        Case(method="jl-laplace", target=1.5, config=laplace, reference="rows", **table),
        Case(method="ron-gauss", target=1.6, config=few | {"n_components": 50}, reference="project",
             **table),
        Case(method="moments", target=2.0, config=few, reference="three_reads", **table),
        Case(method="dppro", target=1.8, config=project, reference="local", engine="dask", **table),
        Case(method="moments", target=1.8, config=few, reference="local", engine="dask", **table),
        Case(method="dppro", rows=wide, columns=1000, target=1.5, config=project, reference="rows"),
        Case(method="moments", rows=wide, columns=1000, target=2.0, config=few, reference="three_reads"),
        Case(method="moments", rows=tall, columns=10_000, target=3.0, config=few, reference="gram"),
        Case(method="moments", rows=n // 4, columns=100, target=2.5, config=few, format="csv",
             reference="polars"),
    ]  # fmt: skip


def write_table(case, folder):
    """Uniform numbers from a fixed seed, in files of some row groups."""
    rng, folder = np.random.default_rng(0), Path(folder)
    part = max(1, min(PART_ROWS, 10**7 // case.columns))
    names, written = [f"x{j}" for j in range(case.columns)], case.distinct or case.rows
    for start in range(0, written, 4 * part):
        path = folder / f"{start:012d}.{case.format}"
        writer = None
        for first in range(start, min(start + 4 * part, written), part):
            x = rng.uniform(-1.0, 1.0, (min(part, written - first), case.columns))
            table = pa.table({name: x[:, j] for j, name in enumerate(names)})
            if case.format == "csv":
                import pyarrow.csv as pc

                writer = writer or pc.CSVWriter(path, table.schema)
            else:
                plain = {"compression": "none", "use_dictionary": False}
                writer = writer or pq.ParquetWriter(path, table.schema, **plain)
            writer.write_table(table)
        writer.close()
    for start in range(written, case.rows, 4 * part):
        named = (f"{first:012d}.{case.format}" for first in (start, start % written))
        (folder / next(named)).hardlink_to(folder / next(named))
    return folder


class Tables:
    """The rows of cases in turn: neighbours of one shape share their files, and nothing stays."""

    def __init__(self, folder):
        self._folder, self._shape, self._held = folder, None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._held is not None:
            self._held.cleanup()

    def of(self, case):
        if (shape := (case.rows, case.columns, case.format)) != self._shape:
            self.__exit__()
            self._held, self._shape = tempfile.TemporaryDirectory(dir=self._folder), shape
            (Path(self._held.name) / "rows").mkdir()
            write_table(case, Path(self._held.name) / "rows")
            os.sync()  # else it goes to the disk while the first releases are timed
        return Path(self._held.name) / "rows"


def matrices(folder, rows=65_536):
    """All files as matrices, block by block."""
    for path in sorted(Path(folder).iterdir()):
        file = pq.ParquetFile(path)
        step = max(1, min(rows, 2**21 // file.metadata.num_columns))
        for batch in file.iter_batches(step):
            yield np.column_stack([column.to_numpy() for column in batch.columns])


def reference_rows(case, folder, out):
    rng, k = np.random.default_rng(1), case.config["n_components"]
    matrix = rng.standard_normal((case.columns, k)) / np.sqrt(k)
    schema = pa.schema([(f"y{j}", pa.float64()) for j in range(k)])
    with pq.ParquetWriter(out, schema, compression="zstd", compression_level=1, use_dictionary=False,
                          use_byte_stream_split=True, write_statistics=False) as writer:  # fmt: skip
        for x in matrices(folder):
            y = x @ matrix + rng.standard_normal((len(x), k))
            writer.write_batch(pa.record_batch([pa.array(y[:, j]) for j in range(k)], schema=schema))


def reference_project(case, folder, _out):
    p = case.config["n_components"]  # as many directions as the release has
    matrix = np.linalg.qr(np.random.default_rng(1).standard_normal((case.columns, p)))[0]
    gram = np.zeros((p, p))
    for x in matrices(folder):
        y = x @ matrix
        gram += y.T @ y


def reference_three_reads(case, folder, _out):
    for _ in range(3):
        total = np.zeros(case.columns)
        for x in matrices(folder):
            total += x.sum(axis=0)


def reference_gram(case, folder, _out):
    gram = np.zeros((case.columns, case.columns))
    for x in matrices(folder):
        gram += x.T @ x


def reference_polars(_case, folder, _out):
    import polars as pl

    pl.scan_csv(Path(folder) / "*.csv").sum().collect(engine="streaming")


def note_sums(engine, found):
    """Take a digest of every sum before noise."""
    fold = engine.fold

    def noted(*passed, **named):
        total = fold(*passed, **named)
        found.update(str((total.exponent, total.units.shape)).encode() + total.units.tobytes())
        return total

    engine.fold = noted


def fix_noise():
    """One known secret, so that sums which depend on noisy ones are the same in two releases."""
    from adumbra.privacy import grant

    grant.os = types.SimpleNamespace(urandom=bytes, getpid=os.getpid)


def make_ledger(path):
    """An account that stands before a release is timed, as anybody's does: made in this process."""
    import adumbra as ad

    with ad.create_ledger(path) as ledger:
        ledger.register(ad.Population("people", ad.Unit.ROW, ad.Neighbours.REPLACE_ONE, 100.0, 1e-3))


def run_release(case, folder, out, engine, ledger):
    from contextlib import nullcontext

    import adumbra as ad

    release, schema_of = ad.release, ad.Schema  # loaded by their names, as for anybody
    from adumbra.mechanisms.methods import method_named

    names = [f"x{j}" for j in range(case.columns)]
    schema = schema_of.numeric(case.columns, -1.0, 1.0, names=names)
    schema = schema if case.format == "parquet" else schema_of.parse(
        schema.to_toml().replace("[table]", "[table]\nheader = true", 1))  # fmt: skip
    if case.engine == "dask":  # and of its reference: see `started`
        from adumbra import prepared  # noqa: F401
    if engine == "dask":
        from adumbra.engine.cluster import local_engine

        running = local_engine(2, threads=1, parts=Path(out).parent)
    else:
        running = nullcontext(ad.LocalEngine())
    sums = hashlib.sha256()
    with running as where:
        if case.axis == "cluster":
            fix_noise()
            note_sums(where, sums)
        started = cpu_so_far()
        release(folder, method_named(case.method).config(**case.config), schema=schema,
                         ledger=ledger, population="people", out=out, engine=where)  # fmt: skip
    return started, sums.hexdigest()


def cpu_so_far():
    """CPU seconds of this process and of the workers that it has started."""
    own = psutil.Process()
    times = [one.cpu_times() for one in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def cpu_used():
    """CPU seconds of this process and of its workers that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def own_peak():
    """kB of this program alone; `ru_maxrss` would also know the process that started it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])


def child(what, case, folder, ledger):
    """Run one thing and print what it took of the machine."""
    case = Case(**json.loads(case))
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as scratch:
        out = Path(scratch) / "out"
        before, start, started, sums = cpu_used(), time.perf_counter(), 0.0, ""
        if what in {"local", "dask"}:
            started, sums = run_release(case, folder, out, what, ledger)
        else:
            globals()[f"reference_{what}"](case, folder, out)
        wall, spent = time.perf_counter() - start, cpu_used() - before
    facts = {
        "cpu": cpu_used(),
        "started": started,  # of it, until workers stood; for Dask and its reference imports are in it
        "main": time.thread_time(),  # of it, on the main thread
        "wall": wall,
        "spent": spent,  # of the CPU, in the time that `wall` counts: what comes before is not in it
        "peak_mb": own_peak() / 1e3,
        "worker_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3,
    }
    facts |= {"sums": sums} if case.axis == "cluster" else {}
    print(json.dumps(facts))


def measured(what, case, folder):
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as place:
        ledger = Path(place) / "ledger.db"
        if what in {"local", "dask"}:
            make_ledger(ledger)
        return timed(what, case, folder, ledger)


def timed(what, case, folder, ledger):
    told = ["child", what, json.dumps(asdict(case)), str(folder), str(ledger)]
    command = [sys.executable, str(HERE / "scale.py"), *told]
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "2"}
    environment = {**os.environ, **one}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def goes_first():
    """Whether this process goes before all others (`chrt -r 1 python benchmarks/scale.py ...`)."""
    return os.sched_getscheduler(0) in {os.SCHED_FIFO, os.SCHED_RR}


def run(case, folder, repeat):
    """Ours and the reference if there is one, alternately; the best CPU time of each."""
    whats = [case.engine, *([case.reference] if case.reference else [])]
    turns = [[measured(what, case, folder) for what in whats] for _ in range(repeat)]
    ours, *theirs = (min(side, key=lambda one: one["cpu"]) for side in zip(*turns, strict=True))
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    line = {**asdict(case), **origin(), "name": case.name, "input_mb": size / 1e6, "ours": ours,
            "load": os.getloadavg()[0], "cores": os.cpu_count(), "is_first": goes_first()}  # fmt: skip
    return line | ({"theirs": theirs[0], "ratio": ours["cpu"] / theirs[0]["cpu"]} if theirs else {})


def origin():
    """What made a line: the source tree, the processor and the day."""
    from comparison import facts

    stamp = facts.stamp("python benchmarks/scale.py")
    return {"source": stamp["source"], "processor": stamp["machine"]["processor"], "date": stamp["date"]}


def noise_case(repeat, engine):
    """Gaussian noise on a lattice beside numpy's normal numbers; one thread each."""
    from adumbra.numerics import Lattice
    from adumbra.privacy.guarantee import pure
    from adumbra.privacy.noise import add_gaussian
    from adumbra.privacy.recorded_noise import fixed_grant
    from adumbra.relations import Neighbours, Unit

    os.environ["ADUMBRA_NOISE"] = engine  # a release compiles the kernel once many samples were drawn
    value, rng = Lattice(np.zeros(2**22, np.int64), -20), np.random.default_rng(0)
    amount = pure(1.0, Unit.ROW, Neighbours.REPLACE_ONE)
    grant = fixed_grant(0, amount, tuple(f"p{i}" for i in range(2 * repeat + 4)))
    purposes = iter(grant.purposes)
    add_gaussian(value, 1.0, grant.key(next(purposes)))  # compiled, tables made
    best = [math.inf, math.inf]
    for _ in range(repeat + 3):
        start = time.process_time()
        add_gaussian(value, 1.0, grant.key(next(purposes)))
        middle = time.process_time()
        rng.normal(size=2**22)
        best = [min(best[0], middle - start), min(best[1], time.process_time() - middle)]
    times = {"ours": {"cpu": best[0]}, "theirs": {"cpu": best[1]}, "load": os.getloadavg()[0]}
    facts = {"name": f"gaussian noise, {engine}", "method": "noise", "target": NOISE[engine]}
    return {**facts, **origin(), "ratio": best[0] / best[1], **times}


def main():
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("size", choices=[*SIZES, *OTHERS, "page", "all"], nargs="?", default="small")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--folder", default=None, help="where data are made")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--rows", type=int, default=25_200_000, help="of the cluster's table")
    parser.add_argument(
        "--keep", type=Path, default=None, help="the file of lines; full: results/scale.jsonl"
    )
    asked = parser.parse_args()
    kept = asked.keep or KEPT
    for size in ("full", *OTHERS) if asked.size == "all" else [asked.size]:
        if size != "page":
            measure(size, asked, kept if size != "small" or asked.keep else None)
    if asked.size in {"page", "all"}:
        import scale_page

        scale_page.write(kept)


def measure(size, asked, kept):
    """One grid; each line is printed, and kept where there is a file for it."""
    others = {
        "growth": growth_cases,
        "memory": memory_cases,
        "cluster": lambda: cluster_cases(asked.rows),
    }
    listed = others[size]() if size in others else cases(size)
    jobs = [case for case in listed if asked.only in f"{case.name} {case.axis} {case.config}"]
    jobs += list(NOISE) if asked.only in "gaussian noise" and size in SIZES else []
    with Tables(asked.folder) as tables:
        for case in jobs:
            if isinstance(case, str):
                line = noise_case(asked.repeat, case)
            else:
                line = run(case, tables.of(case), asked.repeat)
            print(json.dumps(line), flush=True)
            if kept is not None:
                with kept.open("a", encoding="utf-8") as sink:
                    sink.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
