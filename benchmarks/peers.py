"""Every peer on the same tables, budget and judges, each in an environment of its own (`make peers`).

    python benchmarks/peers.py --environments FOLDER [--data ../shared/data] [--methods a,b]
        [--tables x,y] [--draws 3] [--cpu-seconds 1800] [--wall-factor 3] [--memory-gib 16] [--page]

epsilon = 1, delta = 1e-6, add-remove. A crash, an install that fails or a time-out is a result with its
message; after a time-out a method is not tried on wider tables. One draw where a draw takes longer than
600 s, else --draws. Lines are appended to benchmarks/results/peers.jsonl and what stands there for the
same versions is not run again, unless it ended at a smaller cap than now. At its end the command says
what changed since the results before. --page alone writes docs/benchmarks/peers.md.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from comparison import capped, environments, facts, judges, peers_page, tables
from comparison.peers_page import REVISED

EPSILON, DELTA, LONG = 1.0, 1e-6, 600.0
HERE = Path(__file__).parent / "comparison"
METHODS = {
    "adumbra_moments": "adumbra",
    "adumbra_no_label": "adumbra",
    "smartnoise_mst": "smartnoise-synth",
    "smartnoise_aim": "smartnoise-synth",
    "smartnoise_pacsynth": "smartnoise-synth",
    "dpmm_mst": "dpmm",
    "dpmm_aim": "dpmm",
    "dpmm_privbayes": "dpmm",
    "datasynthesizer_privbayes": "datasynthesizer",
    "opendp_mst": "opendp",
    "opendp_aim": "opendp",
    "mbi_pairs": "mbi",
    "diffprivlib_pca": "diffprivlib",
    "sdv_gaussian_copula": "sdv",
    "dpsynth": "dpsynth",
}
NUMBERS_ONLY = ("diffprivlib_pca",)  # a user would have to invent the handling of codes


class Session:
    """One run: the lines so far, the caps, and what is measured now."""

    def __init__(self, options):
        self.options, self.path = options, options.results / "peers.jsonl"
        self.before = facts.read(self.path)
        self.lines = list(self.before)
        self.own = facts.source_state()["source"]
        self.run = None
        self.caps = capped.Caps(
            cpu_seconds=options.cpu_seconds, wall_seconds=options.wall_factor * options.cpu_seconds,
            memory_gib=options.memory_gib,
        )  # fmt: skip

    def write(self, **line):
        if self.run is None:
            held = facts.read(self.path)  # another method may be run by another process meanwhile
            self.run = f"{1 + sum(line['kind'] == 'run' for line in held)}.{os.getpid()}"
            self._append({"kind": "run", "run": self.run, **facts.stamp(said(self.options))})
        self._append({"run": self.run, **line})

    def _append(self, line):
        facts.append(self.path, line)
        self.lines.append(line)

    def source(self, method):
        """What made a line: our source tree, or the version that pip picked; None: not installed."""
        if METHODS[method] == "adumbra":
            return self.own
        made = environments.make(self.options.environments, METHODS[method])
        held = asdict(made)
        held.pop("versions")
        held.pop("seconds")  # of a download: says more of the network than of the package
        if not any(line["kind"] == "install" and line["made"] == held for line in self.lines):
            self.write(kind="install", peer=METHODS[method], made=held)
        used = f", adapter {REVISED[method]}" if method in REVISED else ""
        return f"{METHODS[method]} {made.version}{used}" if made.ok else None

    def known(self, source, **cell):
        """Lines of this cell that still count: a time-out at a smaller cap does not."""
        if source.endswith("+changes"):
            return [line for line in self.lines if line["run"] == self.run and _matches(line, cell)]
        return [
            line
            for line in self.lines
            if _matches(line, cell) and line.get("source") == source
            and not (line["outcome"] == "time-out" and line["cap_s"] < self.caps.cpu_seconds)
        ]  # fmt: skip


def said(options):
    """The command of a run, without folders of this machine."""
    words = [f"--draws {options.draws}", f"--cpu-seconds {options.cpu_seconds}"]
    words += [f"--wall-factor {options.wall_factor}", f"--memory-gib {options.memory_gib:g}"]
    words += [f"--methods {','.join(options.methods)}"] if options.methods != list(METHODS) else []
    words += [f"--tables {','.join(options.tables)}"] if options.tables != list(tables.LADDER) else []
    return f"python benchmarks/peers.py {' '.join(words)}"


def _matches(line, cell):
    return line["kind"] == "draw" and all(line.get(key) == value for key, value in cell.items())


def limits(session, name):
    """Real rows (the ceiling) and shuffled columns (the floor) before the same judges."""
    from comparison import nist

    for who in ("real rows", "independent columns"):
        cell = {"kind": "draw", "method": who, "table": name}
        if not any(all(line.get(k) == v for k, v in cell.items()) for line in session.lines):
            train, test, schema = tables.load(session.options.data, name)
            table = train if who == "real rows" else nist.independent(train, 0)
            session.write(
                **cell, draw=0, outcome="ok", message="", columns=schema.width, rows=train.num_rows,
                source="", scores=judges.scores(table, test, schema),
            )  # fmt: skip


def one_draw(session, method, name, source, draw):
    """One capped run of one method on one table, judged if it left rows."""
    train, test, schema = tables.load(session.options.data, name)
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        tables.write(folder, train, schema)
        own = METHODS[method] == "adumbra"
        python = (
            sys.executable
            if own
            else environments.python_of(session.options.environments, METHODS[method])
        )
        script = HERE / ("own_adapter.py" if own else "adapters.py")
        out = folder / "out.csv"
        words = [
            python,
            script,
            method,
            folder / "train.csv",
            folder / "public.json",
            out,
            EPSILON,
            DELTA,
        ]
        ended = capped.run(list(map(str, words)), session.caps, folder / "log")
        found = {}
        if ended.outcome == "ok":
            try:
                found = judges.scores(tables.read(out, schema), test, schema)
            except Exception as error:  # noqa: BLE001 - rows that cannot be judged are a result
                ended.outcome, ended.message = "unreadable", f"{type(error).__name__}: {error}"[:240]
    session.write(
        kind="draw", method=method, table=name, draw=draw, source=source, columns=schema.width,
        rows=train.num_rows, epsilon=EPSILON, delta=DELTA, cap_s=session.caps.cpu_seconds,
        cap_gib=session.caps.memory_gib, scores=found, **asdict(ended),
    )  # fmt: skip
    auc = f"{found['lr_auc']:.3f}" if found else ""
    print(
        f"{method:26s} {name:8s} {draw} {ended.outcome} {ended.cpu_s} s {auc} {ended.message}",
        flush=True,
    )
    return session.lines[-1]


def climb(session, method):
    """One method up the ladder, until it times out."""
    source = session.source(method)
    if source is None:
        print(f"{method:26s} not installed", flush=True)
        return
    for name in session.options.tables:
        if method in NUMBERS_ONLY and not name.startswith("num"):
            continue
        held = session.known(source, method=method, table=name)
        while len(held) < session.options.draws:
            if held and (held[-1]["outcome"] != "ok" or held[-1]["cpu_s"] > LONG):
                break
            held.append(one_draw(session, method, name, source, len(held)))
        if held and held[-1]["outcome"] in ("time-out", "memory"):
            break


def options_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, help="a folder for the peers' environments")
    parser.add_argument(
        "--data", type=Path, help="the folder of real tables; without it made-up ones alone"
    )
    parser.add_argument("--methods", default=",".join(METHODS), type=lambda text: text.split(","))
    parser.add_argument("--tables", default=",".join(tables.LADDER), type=lambda text: text.split(","))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--cpu-seconds", type=int, default=1800)
    parser.add_argument(
        "--wall-factor", type=int, default=3, help="wall over processor time; more beside other work"
    )
    parser.add_argument("--memory-gib", type=float, default=16.0)
    parser.add_argument("--results", type=Path, default=facts.RESULTS)
    parser.add_argument("--pages", type=Path, default=facts.PAGES)
    parser.add_argument("--page", action="store_true", help="write the page alone")
    options = parser.parse_args(words)
    unknown = set(options.methods) - set(METHODS) | set(options.tables) - set(tables.LADDER)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not known; methods and tables stand in this folder")
    needs = set(map(METHODS.get, options.methods)) - {"adumbra"}
    if needs and not options.page and options.environments is None:
        parser.error("--environments: give a folder for the peers' environments, or --page")
    if options.data is None:
        options.tables = [name for name in options.tables if name not in tables.REAL]
    return options


def main(words=None):
    options = options_of(words)
    if not options.page:
        session = Session(options)
        for name in options.tables:
            limits(session, name)
        for method in options.methods:
            climb(session, method)
        for line in peers_page.changes(session.before, session.lines[len(session.before) :]):
            print(line, flush=True)
    peers_page.write(options.results, options.pages)


if __name__ == "__main__":
    main()
