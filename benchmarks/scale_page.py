"""docs/explanation/performance.md from the kept lines of benchmarks/scale.py."""

import json
import math
from pathlib import Path

import numpy as np
from comparison import figures

from adumbra import workflow
from adumbra.mechanisms.methods import method_named
from adumbra.mechanisms.sizes import duration
from adumbra.release.storage import in_words
from adumbra.schema.schema import Schema

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "explanation"
PAGE = FOLDER / "performance.md"
USE = 1.7  # CPU over wall time that the local engine should reach where nothing else runs
AUDIT = Path(__file__).resolve().parent / "results" / "audit.jsonl"
KILLS = "tests/e2e/test_dask.py::test_killed_workers_change_no_byte"
PAPER = ((10**9, 10**3), (10**8, 10**5))  # rows, columns
METHODS = {"dppro": {"n_components": 20}, "moments": {"synthetic_rows": 1000}}
CORES = 64
LEAST_POINTS = 3  # of a slope


def write(kept):
    """The page; of each case its last line."""
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    last = {(line["name"], line.get("axis", ""), str(line.get("config"))): line for line in lines}
    by_axis = {}
    for line in last.values():
        by_axis.setdefault(line.get("axis", ""), []).append(line)
    ratios = [*by_axis.get("", []), *by_axis.get("cluster", [])]
    quiet = {}
    for line in lines:
        if line.get("is_first"):
            quiet.setdefault(line["name"], []).append(line)
    parts = [
        HEAD,
        *map(ratio_row, ratios),
        TAIL,
        QUIET,
        *(quiet_row(name, held) for name, held in quiet.items()),
        *spread_words(ratios),
        *filter(None, map(sums_words, by_axis.get("cluster", []))),
        *kills_words(),
    ]
    if "memory" in by_axis:
        parts += [MEMORY, *map(memory_row, by_axis["memory"])]
    if "start" in by_axis and (slopes := list(growth_rows(by_axis))):
        parts += [GROWTH, *slopes, "", *pictures(by_axis)]
    PAGE.write_text("\n".join([*parts, PAPERS, *paper_rows(ratios), CLOSE]), encoding="utf-8")


def planned(method, config, rows, columns):
    names = [f"x{j}" for j in range(columns)]
    schema = Schema.numeric(columns, -1.0, 1.0, rows=rows, names=names)
    return workflow.plan(method_named(method).config(**config), schema).size


def ratio_row(line):
    ours, wanted = line["ours"], line["target"]
    at_once = f"{ours.get('spent', ours['cpu']) / ours['wall']:.2f}" if "wall" in ours else ""
    is_local, theirs = line.get("engine") == "local", line["theirs"]
    main = f"{ours['main'] / ours['cpu']:.0%}" if is_local and "main" in ours else ""
    net = ""
    if line.get("engine") == "dask" and "started" in ours:
        left = (one["cpu"] - one["started"] for one in (ours, theirs))
        net = f" ({next(left) / next(left):.2f})"
    worker = f"{ours['worker_mb']:.0f}" if line.get("engine") == "dask" else ""
    plan = ["", ""]
    if is_local:
        size = planned(line["method"], line["config"], line["rows"], line["columns"])
        plan = [f"{size.seconds:.1f}", f"{size.memory / 1e6:.0f}"]
    return (
        f"| {line['name']} | {line.get('reference', 'numpy normal').replace('_', ' ')} "
        f"| {ours['cpu']:.2f} | {theirs['cpu']:.2f} | **{line['ratio']:.2f}**{net} "
        f"| {wanted}{missed(line['ratio'] > wanted)} "
        f"| {at_once} | {main} | {ours.get('peak_mb', 0):.0f} | {worker} | {plan[0]} | {plan[1]} "
        f"| {line['load']:.1f}{', first' if line.get('is_first') else ''} |"
    )


def missed(is_missed):
    return " (missed)" if is_missed else ""


def use_of(line):
    return line["ours"]["spent"] / line["ours"]["wall"]


def quiet_row(name, held):
    """The spread of one release over all runs that went before other work: hosts and versions differ."""
    held = [line for line in held if "spent" in line["ours"]]
    ratios, uses = ([round(of(line), 2) for line in held] for of in (lambda one: one["ratio"], use_of))
    wanted = held[-1]["target"]
    met = sum(ratio <= wanted for ratio in ratios), sum(use >= USE for use in uses)
    return (
        f"| {name} | {len(held)} | {min(ratios):.2f} | {np.median(ratios):.2f} | {max(ratios):.2f} "
        f"| {met[0]} of {len(held)} | {min(uses):.2f} | {np.median(uses):.2f} | {max(uses):.2f} "
        f"| {met[1]} of {len(held)} |"
    )


def spread_words(ratios):
    """How the plans' seconds compare with what was measured above."""
    both = []
    for line in ratios:
        if line.get("engine") == "local":
            size = planned(line["method"], line["config"], line["rows"], line["columns"])
            both.append(line["ours"]["cpu"] / size.seconds)
    if not both:
        return []
    return [f"\nMeasured CPU is {min(both):.1f} to {max(both):.1f} times what the plans above say."]


def sums_words(line):
    """Whether a cluster's sums before noise are the local engine's."""
    ours, theirs = (line[side].get("sums", "") for side in ("ours", "theirs"))
    if not ours:
        return ""
    verdict = "the same bits as" if ours == theirs else "NOT the same as"
    links = f" (files of {line['distinct']:,} rows and hard links to them)" if line["distinct"] else ""
    return (
        f"\nAll sums before noise of *{line['name']}*{links},\n"
        f"under one known secret, were {verdict} the local engine's."
    )


def kills_words():
    """Whether the whole grid of killed workers has passed, by the kept evidence."""
    lines = AUDIT.read_text(encoding="utf-8").splitlines() if AUDIT.exists() else []
    held = [line for line in map(json.loads, lines) if line.get("test") == KILLS]
    if not held or held[-1]["outcome"] != "passed":
        return []
    said = "\n200 random kills of workers changed no byte of a release, and lost or doubled no row "
    return [f"{said}(`make crash`,\nlast passed on the code of `{held[-1]['commit'][:12]}`)."]


def memory_row(line):
    ours, config = line["ours"], line["config"]
    size = planned(line["method"], config, line["rows"], line["columns"])
    return (
        f"| {line['method']} | {line['rows']:,} x {line['columns']} | {config['synthetic_rows']:,} "
        f"| {ours['cpu']:.0f} | {ours['peak_mb']:.0f} | {size.seconds:.0f} | {size.memory / 1e6:.0f} |"
    )


def growth_rows(by_axis):
    """Slopes of log CPU, less the CPU of a release of 100 rows, over the logarithm of what grows."""
    start = {line["method"]: line["ours"]["cpu"] for line in by_axis["start"]}
    for axis, wanted in (("rows", 1.05), ("columns", 2.1), ("components", 1.1)):
        for method in dict.fromkeys(line["method"] for line in by_axis.get(axis, [])):
            own = [line for line in by_axis[axis] if line["method"] == method]
            if len(own) < LEAST_POINTS:
                continue
            x = [line["config"]["n_components"] if axis == "components" else line[axis] for line in own]
            cpu = [line["ours"]["cpu"] for line in own]
            more = np.maximum(np.array(cpu) - start[method], 0.01)
            slope = float(np.polyfit(np.log(x), np.log(more), 1)[0])
            shown = ", ".join(f"{one:.2f}" for one in cpu)
            sizes = ", ".join(f"{one:,}" for one in x)
            table = f"{own[0]['rows']:,} x {own[0]['columns']:,}"
            fixed = {"rows": f"{own[0]['columns']} columns", "columns": f"{own[0]['rows']:,} rows"}
            yield (
                f"| {method}, {fixed.get(axis, table)} | {axis} {sizes} | {shown} "
                f"| {start[method]:.2f} | **{slope:.2f}** | {wanted} |"
            )


def pictures(by_axis):
    """CPU and peak memory over what grows, one figure each."""
    for axis in ("rows", "columns", "components"):
        held = {}
        for line in by_axis.get(axis, []):
            x = line["config"]["n_components"] if axis == "components" else line[axis]
            held.setdefault(line["method"], []).append((float(x), line["ours"]))
        if not held:
            continue
        values = {
            what: {m: [(x, o[key], math.nan) for x, o in lines] for m, lines in held.items()}
            for what, key in (("CPU seconds", "cpu"), ("peak memory, MB", "peak_mb"))
        }
        panels = [
            figures.Panel(
                name=what, low=0.0, high=1.1 * max(y for points in of.values() for _, y, _ in points),
                series=[figures.Series(name=m, points=points) for m, points in of.items()],
            )
            for what, of in values.items()
        ]  # fmt: skip
        xs = sorted({x for lines in held.values() for x, _ in lines})
        path = FOLDER / f"performance_{axis}.svg"
        path.write_text(figures.lines(f"What grows with {axis}", panels, xs, axis), encoding="utf-8")
        yield f"![CPU and memory over {axis}]({path.name})"


def paper_rows(ratios):
    """What plans say of tables that nobody read here; a cluster's CPU is more by the measured ratio.

    Released rows all pass through the driver, which reads, hashes and writes them: its rate is at least
    what its main thread did in the largest release of that method.
    """
    for rows, columns in PAPER:
        for method, config in METHODS.items():
            size = planned(method, {"epsilon": 1.0, "delta": 1e-6, **config}, rows, columns)
            clusters = [x for x in ratios if x.get("engine") == "dask" and x["method"] == method]
            together = ""
            if clusters:
                largest = max(clusters, key=lambda line: line["rows"])
                seconds = largest["ratio"] * size.seconds / CORES
                if not largest["config"].get("synthetic_rows"):
                    known = [largest[key] for key in ("method", "config", "rows", "columns")]
                    rate = planned(*known).output / largest["ours"]["main"]
                    seconds = max(seconds, size.output / rate)
                together = duration(seconds)
            yield (
                f"| {method} | 10^{round(math.log10(rows))} x 10^{round(math.log10(columns))} "
                f"| {in_words(8 * rows * columns)} | {duration(size.seconds)} "
                f"| {together} | {in_words(size.memory)} | {in_words(size.output)} |"
            )


HEAD = """# How fast, how large

Whole releases in fresh processes (start, plan, charge, draw, write, load), beside bare references of
the same run on the same files: CPU seconds, one BLAS thread. This page is written by
`python benchmarks/scale.py page` from `benchmarks/results/scale.jsonl`. The machine had two cores and
was shared with other work (*load*: processes that wanted them). So CPU seconds are more than on a quiet
machine, *use* (CPU over wall time, both from our first import on; lines of releases that are not
*first* also count the CPU before it) is the part of two cores that was had, and wall times say
nothing. *main* is the share of CPU on the main thread: the rest runs beside it, so that with two cores
to itself a release cannot have a *use* above 1 / *main*. *plan* is what the plan of the same release
says. A line marked *first* ran at real-time priority, before all other work: its *use* is what our own
threads and the disk allow, at most 1.9 while others wait: this Linux (6.18) keeps 5 % of each core for
them, also under `kernel.sched_rt_runtime_us = -1`, as here. These releases pay from a ledger in a file
that stands before they are timed, as anybody's does; releases not marked so are older lines, and made a
ledger in memory first.

| release | reference | CPU s | its CPU s | ratio | want | use | main | MB | worker | plan s | plan MB \
| load |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""
TAIL = """
*rows*: read, multiply by a matrix of 20 columns, add normal noise, write. *project*: read, project to
as many directions as the release, their Gram. *three reads*: read into matrices three times and sum.
*gram*: read and multiply X'X. *polars*: scan the CSV files and sum. *local*: the same release by the
local engine; the Dask engine has two worker processes of one thread each, and their start is counted
(in brackets the ratio without the CPU of imports and of workers that start, on both sides). *MB* is the
peak of the process that releases, of a Dask release the driver; *worker* that of its largest worker."""
QUIET = f"""
## Run after run

Every line marked *first* so far, of all hosts and versions of the code: the table above shows the
newest alone. Hosts differ: on a fast one both ratio and use are lower, and start, plan and charge, which
one thread does, are a larger part of the time. Wanted: the ratio above, and a use of {USE}.

| release | runs | ratio: least | median | most | met | use: least | median | most | met |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""
MEMORY = """
## Many rows

| method | rows read | rows drawn | CPU s | peak MB | plan CPU s | plan MB |
| --- | --- | --- | --- | --- | --- | --- |"""
GROWTH = """
## Growth

The slope of log(CPU less the CPU of 100 rows) over the logarithm of what grows.

| release | what grows | CPU s | CPU s of 100 rows | exponent | wanted at most |
| --- | --- | --- | --- | --- | --- |"""
PAPERS = f"""
## On paper

Nobody read these tables here. Time is that of the plan on one core, whose rates were set once from
earlier lines like these; memory, an upper bound, is that of a release with two threads. {CORES} cores of
a cluster are counted with the ratio of the largest Dask release of the same
method above. Released rows all pass through its driver, at no more than the rate measured there.

| method | rows x columns | bytes of rows | one core | {CORES} cores of a cluster | memory | output |
| --- | --- | --- | --- | --- | --- | --- |"""
CLOSE = ""
