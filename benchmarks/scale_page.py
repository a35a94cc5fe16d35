"""docs/explanation/performance.md from the kept lines of benchmarks/scale.py."""

import json
import math
from pathlib import Path

import numpy as np

from adumbra import workflow
from adumbra.mechanisms.methods import method_named
from adumbra.mechanisms.sizes import duration
from adumbra.release.storage import in_words
from adumbra.schema.schema import Schema

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "performance.md"
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
    parts = [
        HEAD,
        *map(ratio_row, ratios),
        TAIL,
        *filter(None, map(sums_words, by_axis.get("cluster", []))),
    ]
    if "memory" in by_axis:
        parts += [MEMORY, *map(memory_row, by_axis["memory"])]
    if "start" in by_axis and (slopes := list(growth_rows(by_axis))):
        parts += [GROWTH, *slopes]
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
        f"| {ours['cpu']:.2f} | {theirs['cpu']:.2f} | **{line['ratio']:.2f}**{net} | {wanted} "
        f"| {at_once} | {main} | {ours.get('peak_mb', 0):.0f} | {worker} | {plan[0]} | {plan[1]} "
        f"| {line['load']:.1f}{', first' if line.get('is_first') else ''} |"
    )


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


def paper_rows(ratios):
    """What plans say of tables that nobody read here; a cluster's CPU is more by the measured ratio."""
    clusters = [line for line in ratios if line.get("engine") == "dask" and line["method"] == "moments"]
    more = max(clusters, key=lambda line: line["rows"])["ratio"] if clusters else 1.0
    for rows, columns in PAPER:
        for method, config in METHODS.items():
            size = planned(method, {"epsilon": 1.0, "delta": 1e-6, **config}, rows, columns)
            yield (
                f"| {method} | 10^{round(math.log10(rows))} x 10^{round(math.log10(columns))} "
                f"| {in_words(8 * rows * columns)} | {duration(size.seconds)} "
                f"| {duration(more * size.seconds / CORES)} | {in_words(size.memory)} "
                f"| {in_words(size.output)} |"
            )


HEAD = """# How fast, how large

Whole releases in fresh processes (start, plan, charge, draw, write, load), beside bare references of
the same run on the same files: CPU seconds, one BLAS thread. This page is written by
`python benchmarks/scale.py page` from `benchmarks/results/scale.jsonl`. The machine had two cores and
was shared with other work (*load*: processes that wanted them). So CPU seconds are more than on a quiet
machine, *use* (CPU over wall time, both from our first import on; lines of releases that are not
*first* also count the CPU before it) is the part of two cores that was had, and wall times say
nothing. *main* is the share of CPU on the main thread: the rest runs beside it, so that with two cores
to itself a release cannot have a *use* above 1 / *main*; a line of the local engine without it is older
than the rest. *plan* is what the plan of the same release says. A line marked *first* ran at
real-time priority, before all other work: its *use* is what our own threads and the disk allow, at
most 1.9 while others wait: this Linux (6.18) keeps 5 % of each core for them, also under
`kernel.sched_rt_runtime_us = -1`, as here. These releases pay from a ledger in a file that stands
before they are timed, as anybody's does; all other lines are older, and made a ledger in memory first.

| release | reference | CPU s | its CPU s | ratio | want | use | main | MB | worker | plan s | plan MB \
| load |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""
TAIL = """
*rows*: read, multiply by a matrix of 20 columns, add normal noise, write. *project*: read, project to
as many directions as the release, their Gram. *three reads*: read into matrices three times and sum.
*gram*: read and multiply X'X. *polars*: scan the CSV files and sum. *local*: the same release by the
local engine; the Dask engine has two worker processes of one thread each, and their start is counted
(in brackets the ratio without the CPU of imports and of workers that start, on both sides). *MB* is the
peak of the process that releases, of a Dask release the driver; *worker* that of its largest worker. A
peak of 475 MB or less may be that of the process which made the rows and started the release: an upper
bound."""
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

Nobody read these tables here. Time and memory are those of the plan, whose rates are fitted to
the lines above; {CORES} cores of a cluster are counted with the ratio of the largest Dask release above.

| method | rows x columns | bytes of rows | one core | {CORES} cores of a cluster | memory | output |
| --- | --- | --- | --- | --- | --- | --- |"""
CLOSE = ""
