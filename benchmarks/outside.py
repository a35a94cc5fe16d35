"""Our releases before judges that others wrote: NIST's K-marginal and SDMetrics (`make outside`).

    python benchmarks/outside.py --data ../shared/data/nist_crc [--draws 5] [--targets ma2019,tx2019]
        [--sets all-features,...] [--epsilons 1,10] [--environments FOLDER] [--label PUMA] [--page]

Every release goes through plan, grant, engine and noise with fresh noise: add-remove, unit row, no
label, delta = 1e-6, what NIST's dictionary declares and nothing else. It is scored beside the private
tables that others submitted, the floor (each column shuffled) and the ceiling (half of the rows). With
--environments SDMetrics is installed there in an environment of its own and judges too. With --label our
releases declare that column as the label: printed and kept, beside the page.

Lines are appended to benchmarks/results/outside.jsonl; what this source tree has measured already is not
measured again. --page alone writes docs/benchmarks/outside.md from the lines. Data stays where it is.
"""

import argparse
import hashlib
import json
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from comparison import environments, facts, nist, outside_page

from adumbra.data.opening import open_source
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.workflow import prepare_in_memory

DELTA = 1e-6
CURVE = (0.1, 5.0, 100.0)  # further points of the figure over epsilon, two draws each
OURS, FLOOR, CEILING = "adumbra moments", "independent columns", "half sample"


def release(rows, schema, epsilon):
    """One release of the default method, nothing tuned, with as many rows as the target has."""
    known = {"synthetic_rows": rows.num_rows, "expected_rows": rows.num_rows}
    config = MomentsConfig(epsilon=epsilon, delta=DELTA, **known)
    return prepare_in_memory(open_source(rows, schema), config).draw().table()


class Session:
    """One run: what is known already, what is measured now, and where both are written."""

    def __init__(self, options):
        self.options, self.results = options, options.results / "outside.jsonl"
        self.judges = nist.Judges(options.data)
        self.lines = facts.read(self.results)
        self.state = facts.source_state()["source"]
        self.run = None
        judge = options.data / "judge.py"
        self.judged_by = "judge.py " + digest(judge) if judge.exists() else "second implementation"

    def known(self, **cell):
        if str(cell["source"]).endswith("+changes"):
            cell["run"] = self.run or ""
        return [line for line in self.lines if all(line.get(k) == v for k, v in cell.items())]

    def write(self, **line):
        if self.run is None:
            self.run = f"{1 + sum(line['kind'] == 'run' for line in self.lines)}"
            command = f"make outside (draws {self.options.draws})"
            self._append({"kind": "run", "run": self.run, **facts.stamp(command)})
        self._append({"run": self.run, **line})

    def _append(self, line):
        facts.append(self.results, line)
        self.lines.append(line)

    def measure(self, target, name, make, **cell):
        """One K-marginal score, unless it is known; gives back the table if it was made."""
        cell = {"kind": "k-marginal", "target": target.name, **cell}
        if self.known(**cell):
            return None
        start = time.process_time()
        table = make()
        seconds = time.process_time() - start
        score, dropped = self.judges.score(target, cell["set"], table)
        self.write(
            **cell, name=name, score=round(score, 3), dropped=dropped, rows=table.num_rows,
            columns=table.num_columns, cpu_s=round(seconds, 2), judge=self.judged_by,
        )  # fmt: skip
        print(f"{target.name} {cell['set']:20s} {cell['epsilon']} {name:28s} {score:.1f}", flush=True)
        return table


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def references(session, target, feature_set):
    """Submitted files, floor and ceiling: they change with the judge alone."""
    source = session.judged_by
    for epsilon in sorted({*session.options.epsilons, *session.options.curve}):
        for given in target.submissions(feature_set, epsilon):
            cell = {"set": feature_set, "epsilon": epsilon, "who": "submitted", "file": given.file}
            name = f"{given.algorithm} ({given.library})"
            session.measure(target, name, lambda: target.read(given.file), **cell, source=source)  # noqa: B023
            scored = session.known(kind="k-marginal", target=target.name, **cell, source=source)
            if abs(scored[-1]["score"] - given.score) > 0.01:
                raise SystemExit(
                    f"{given.file}: scored {scored[-1]['score']}, leaderboard {given.score}"
                )
    text = target.table.select(target.columns(feature_set))
    for draw in range(session.options.draws):
        for who, make in ((FLOOR, nist.independent), (CEILING, nist.half)):
            cell = {"set": feature_set, "epsilon": None, "who": who, "draw": draw}
            session.measure(target, who, lambda: make(text, draw), **cell, source=source)  # noqa: B023


def ours(session, target, feature_set):
    rows, schema = target.rows(feature_set), target.schema(feature_set)
    label = session.options.label
    if label is not None and label not in schema.names:
        return
    schema, who = replace(schema, label=label), OURS if label is None else f"{OURS}, label {label}"
    for epsilon in (*session.options.epsilons, *session.options.curve):
        draws = session.options.draws if epsilon in session.options.epsilons else 2
        for draw in range(min(draws, session.options.draws)):
            cell = {"set": feature_set, "epsilon": epsilon, "who": who, "draw": draw}
            make = lambda: release(rows, schema, epsilon)  # noqa: B023, E731
            session.measure(target, who, make, **cell, source=session.state)


def sdmetrics(session, target, feature_set):
    """SDMetrics on one release per epsilon, the two best submitted files, and the limits."""
    folder = session.options.environments
    installed = environments.make(folder, "sdmetrics")
    version = f"sdmetrics {installed.version}"
    cells = {}
    text = target.table.select(target.columns(feature_set))
    for who, make in ((FLOOR, nist.independent), (CEILING, nist.half)):
        cells[who, who, None, version] = lambda make=make: make(text, 0)
    for epsilon in session.options.epsilons:
        best = sorted(target.submissions(feature_set, epsilon), key=lambda given: -given.score)[:2]
        for given in best:
            name = f"{given.algorithm} ({given.library})"
            cells["submitted", name, epsilon, version] = lambda given=given: target.read(given.file)
        key = (OURS, OURS, epsilon, f"{version}, {session.state}")
        cells[key] = lambda epsilon=epsilon: release(
            target.rows(feature_set), target.schema(feature_set), epsilon
        )
    fixed = {"kind": "sdmetrics", "target": target.name, "set": feature_set}
    wanted = {
        key: make
        for key, make in cells.items()
        if not session.known(**fixed, name=key[1], epsilon=key[2], source=key[3])
    }
    if not wanted:
        return
    if not installed.ok:
        session.write(
            **fixed, who="judge", name="sdmetrics", epsilon=None, source=version, error=installed.message
        )
        return
    for key, line in zip(wanted, judged(session, target, feature_set, wanted.values()), strict=True):
        who, name, epsilon, source = key
        session.write(**fixed, who=who, name=name, epsilon=epsilon, source=source, **line)
        print(f"{target.name} {feature_set:20s} {epsilon} {name:28s} {line}", flush=True)


def judged(session, target, feature_set, makers):
    """Tables through files to SDMetrics' own environment, and its lines back."""
    schema = target.schema(feature_set)
    kinds = {c.name: {"sdtype": "numerical" if c.is_numeric else "categorical"} for c in schema.columns}
    python = environments.python_of(session.options.environments, "sdmetrics")
    script = Path(__file__).parent / "comparison" / "sdmetrics_report.py"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(target.rows(feature_set), folder / "real.parquet")
        (folder / "metadata.json").write_text(json.dumps({"columns": kinds}), encoding="utf-8")
        paths = []
        for number, make in enumerate(makers):
            paths.append(folder / f"{number}.parquet")
            pq.write_table(typed(make().select(schema.names), schema), paths[-1])
        command = [python, script, folder / "real.parquet", folder / "metadata.json", *paths]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    missing = len(paths) - len(lines)
    return lines + [{"error": environments.last_line(done.stderr)}] * missing


def typed(table, schema):
    """Numbers as numbers and codes as text, whatever a submitter wrote (`3.0` is `3`)."""
    from comparison import kmarginal

    text = kmarginal.texts(table)
    return pa.table(
        {
            c.name: pa.array(kmarginal.numbers(text[c.name]), from_pandas=True)
            if c.is_numeric
            else pa.array(
                [kmarginal.code_of(cell) if c.name != "PUMA" else cell for cell in text[c.name]]
            )
            for c in schema.columns
        }
    )


def numbers(text):
    return tuple(float(word) for word in text.split(",") if word)


def options_of(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of NIST's targets")
    parser.add_argument("--targets", default=",".join(nist.TARGETS))
    parser.add_argument("--sets", default=",".join(nist.SETS))
    parser.add_argument("--epsilons", type=numbers, default=nist.EPSILONS)
    parser.add_argument("--curve", type=numbers, default=CURVE, help="further epsilons, two draws each")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--environments", type=Path, help="a folder for SDMetrics' environment")
    parser.add_argument("--label", help="a column that our releases declare as the label")
    parser.add_argument("--results", type=Path, default=facts.RESULTS)
    parser.add_argument("--pages", type=Path, default=facts.PAGES)
    parser.add_argument("--page", action="store_true", help="write the page alone")
    options = parser.parse_args(words)
    if not options.page and options.data is None:
        parser.error("--data: give the folder of NIST's targets, or --page for the page alone")
    return options


def main(words=None):
    options = options_of(words)
    if not options.page:
        session = Session(options)
        for name in options.targets.split(","):
            target = nist.Target(options.data, name)
            for feature_set in options.sets.split(","):
                references(session, target, feature_set)
                ours(session, target, feature_set)
        if options.environments is not None:
            for name in options.targets.split(","):
                for feature_set in options.sets.split(","):
                    sdmetrics(session, nist.Target(options.data, name), feature_set)
    lines = facts.read(options.results / "outside.jsonl")
    outside_page.write(lines, options.pages)
    if options.pages == facts.PAGES:
        outside_page.write_readme(outside_page.Results(lines), facts.ROOT / "README.md")


if __name__ == "__main__":
    main()
