"""docs/benchmarks/peers.md and its figures, from the lines of results/peers.jsonl; and what changed."""

import math
from collections.abc import Iterator
from pathlib import Path

from comparison import facts, figures, tables, throughput_page

OURS, UNTOLD, NOT_PRIVATE = "adumbra_moments", "adumbra_no_label", "sdv_gaussian_copula"
LIMITS = ("real rows", "independent columns")
NAMES = {
    OURS: "**adumbra** `moments`", UNTOLD: "**adumbra**, label not told",
    "smartnoise_mst": "smartnoise MST",
    "smartnoise_aim": "smartnoise AIM",
    "smartnoise_pacsynth": "smartnoise PAC-synth", "dpmm_mst": "dpmm MST", "dpmm_aim": "dpmm AIM",
    "dpmm_privbayes": "dpmm PrivBayes", "datasynthesizer_privbayes": "DataSynthesizer PrivBayes",
    "opendp_mst": "OpenDP MST", "opendp_aim": "OpenDP AIM", "mbi_pairs": "mbi, label pairs",
    "diffprivlib_pca": "diffprivlib PCA + Gaussians", NOT_PRIVATE: "SDV GaussianCopula (not private)",
    "dpsynth": "google dpsynth",
    "real rows": "*real rows (not private)*",
    "independent columns": "*independent columns (not private)*",
}  # fmt: skip
SCORES = {
    "lr_auc": "LR AUC", "trees_auc": "trees AUC", "one_way_tv": "1-way TV", "two_way_tv": "2-way TV",
    "three_way_tv": "3-way TV", "rare_levels": "rare levels",
}  # fmt: skip


# How often the way in which a peer is used has changed: its lines of an earlier way count no more.
REVISED = {
    "smartnoise_pacsynth": 2,
    "datasynthesizer_privbayes": 2,
    "opendp_mst": 2,
    "opendp_aim": 2,
    "mbi_pairs": 2,
}


def label(name: str) -> str:
    return NAMES.get(name, name)


def is_current(line: facts.Line) -> bool:
    """Whether a line is a draw by the way in which its method is used now."""
    revision = REVISED.get(str(line.get("method")))
    return line["kind"] == "draw" and (
        revision is None or str(line["source"]).endswith(f", adapter {revision}")
    )


class Results:
    """The newest draws of every method and table."""

    def __init__(self, lines: list[facts.Line]) -> None:
        self.runs = {line["run"]: line for line in lines if line["kind"] == "run"}
        self.cells = facts.newest([x for x in lines if is_current(x)], "method", "table")
        for key, held in self.cells.items():  # an end at an older, smaller cap gives way
            cap = held[-1].get("cap_s", 0)
            self.cells[key] = [x for x in held if x["outcome"] == "ok" or x.get("cap_s", 0) >= cap]
        self.installs = {line["peer"]: line["made"] for line in lines if line["kind"] == "install"}
        self.tables = [t for t in tables.LADDER if any(key[1] == t for key in self.cells)]
        ran = {method for method, _ in self.cells} - set(LIMITS)
        self.methods = [m for m in NAMES if m in ran]

    def mean(self, method: str, table: str, score: str) -> tuple[float, float, int]:
        held = self.cells.get((method, table), [])
        return facts.interval(x["scores"][score] for x in held if score in x["scores"])

    def used(self, method: str, table: str, what: str) -> float:
        held = [x[what] for x in self.cells.get((method, table), []) if what in x]
        return sum(held) / len(held) if held else math.nan

    def finished(self, method: str) -> list[str]:
        return [
            t for t in self.tables if any(x["outcome"] == "ok" for x in self.cells.get((method, t), []))
        ]

    def stop(self, method: str) -> str:
        """The first table that a method did not finish, and how it ended there."""
        for table in self.tables:
            held = self.cells.get((method, table), [])
            if held and held[-1]["outcome"] != "ok":
                return f"{table}: {held[-1]['outcome']}, {held[-1]['message']}"
        return ""


def cell(found: Results, method: str, table: str, score: str) -> str:
    mean, half, count = found.mean(method, table, score)
    if not count:
        return ""
    short = f"{mean:.3f}".replace("0.", ".", 1) if mean < 1 else f"{mean:.2f}"
    return short if math.isnan(half) else f"{short} ± {half:.3f}".replace("± 0.", "± .")


def far(found: Results) -> str:
    lines = [
        "| method | version | widest table finished | CPU s there | stopped by |",
        "| --- | --- | --- | --- | --- |",
    ]
    for method in found.methods:
        done = found.finished(method)
        widest = done[-1] if done else ""
        held = [line for (m, _), lines in found.cells.items() if m == method for line in lines]
        seconds = f"{found.used(method, widest, 'cpu_s'):.0f}" if widest else ""
        columns = f"{widest} ({tables.LADDER[widest]} columns)" if widest else "none"
        is_own = method in (OURS, UNTOLD)
        version = f"tree `{held[-1]['source']}`" if is_own else str(held[-1]["source"])
        version = version.partition(", adapter")[0]
        lines.append(f"| {label(method)} | {version} | {columns} | {seconds} | {found.stop(method)} |")
    for peer, made in found.installs.items():
        if not made["ok"]:
            lines.append(f"| {peer} | | none | | install: {made['message']} |")
    return "\n".join(lines)


def table_of(found: Results, table: str) -> str:
    shown = [s for s in SCORES if any(found.mean(m, table, s)[2] for m in (*LIMITS, *found.methods))]
    head = ["method", "draws", *(SCORES[s] for s in shown), "CPU s", "wall s", "peak MB"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for method in (*found.methods, *LIMITS):
        held = found.cells.get((method, table), [])
        if not held:
            continue
        last = held[-1]
        if last["outcome"] != "ok" and not any(x["outcome"] == "ok" for x in held):
            words = [f"{last['outcome']}: {last['message']}", *[""] * (len(shown) - 1)]
        else:
            words = [cell(found, method, table, s) for s in shown]
        draws = str(sum(x["outcome"] == "ok" for x in held))
        costs = [found.used(method, table, what) for what in ("cpu_s", "wall_s", "peak_mb")]
        costs = [
            "" if math.isnan(cost) else f"{cost:.1f}" if cost < 10 else f"{cost:.0f}" for cost in costs
        ]
        lines.append("| " + " | ".join([label(method), draws, *words, *costs]) + " |")
    return "\n".join(lines)


def installs(found: Results) -> str:
    lines = [
        "| package | version | MB | packages | fresh install |",
        "| --- | --- | --- | --- | --- |",
    ]
    for peer, made in found.installs.items():
        state = "works" if made["ok"] and not made["message"] else str(made["message"])
        state += f"; works after `{made['remedy']}`" if made["remedy"] and made["ok"] else ""
        lines.append(
            f"| {peer} | {made['version']} | {made['megabytes']:.0f} | {made['packages']} | {state} |"
        )
    constraints = sorted({made["constraint"] for made in found.installs.values() if made["constraint"]})
    if constraints:
        lines.append(f"\nInstalled with pip's constraint `{', '.join(constraints)}` (no GPU libraries).")
    return "\n".join(lines)


def private(found: Results, table: str) -> list[str]:
    """Ours and the private rivals that finished a table."""
    others = (UNTOLD, NOT_PRIVATE)
    return [m for m in found.methods if m not in others and found.mean(m, table, "lr_auc")[2]]


def reading(found: Results) -> str:
    """Sentences that the lines decide: where we win and where we do not."""
    said = [standing(found, score) for score in SCORES]
    alone = [t for t in found.tables if private(found, t) == [OURS]]
    if alone:
        said += without_rivals(found, alone)
    ratios = [
        (found.used(m, t, "cpu_s") / found.used(OURS, t, "cpu_s"), m, t)
        for t in found.tables
        for m in private(found, t)
        if m != OURS and OURS in private(found, t)
    ]
    if ratios:
        least, most = min(ratios), max(ratios)
        said.append(
            f"- Processor time: peers that finish take {least[0]:.1f} ({label(least[1])}, {least[2]}) "
            f"to {most[0]:.0f} times ({label(most[1])}, {most[2]}) ours."
        )
    return "\n".join([*said, *age(found)])


def standing(found: Results, score: str) -> str:
    """On which tables ours is the best private mean by one score, and on which not.

    A lead or a lag within our own interval says little, and is marked.
    """
    first, behind = [], []
    sign = 1 if score.endswith("auc") else -1
    for table in found.tables:
        rivals = [m for m in private(found, table) if m != OURS and found.mean(m, table, score)[2]]
        mean, half, _ = found.mean(OURS, table, score)
        if math.isnan(mean) or not rivals:
            continue
        best = max(rivals, key=lambda m: sign * found.mean(m, table, score)[0])
        gap = sign * (found.mean(best, table, score)[0] - mean)
        is_close = not math.isnan(half) and abs(gap) <= half
        if gap > 0:
            within = ", within our interval" if is_close else ""
            behind.append(f"{table} ({label(best)} better by {gap:.3f}{within})")
        else:
            first.append(f"{table} (within our interval)" if is_close else table)
    name = f"- **{SCORES[score]}**, among private methods that finished: "
    return f"{name}first on {', '.join(first) or 'none'}; behind on {', '.join(behind) or 'none'}."


def age(found: Results) -> list[str]:
    """Which source made our own figures, so that a reader sees whether they are older than the code."""
    own = [line for (method, _), held in found.cells.items() if method == OURS for line in held]
    trees = " and ".join(f"`{tree}`" for tree in sorted({str(line["source"]) for line in own}))
    if not own:
        return []
    words = (
        f"- Our own figures are of the source tree {trees}. Where `git rev-parse HEAD:src` begins "
        "otherwise, they are older than the code; [outside](outside.md) and "
        "[utility](../explanation/utility.md) name their trees too."
    )
    return [words]


def without_rivals(found: Results, alone: list[str]) -> list[str]:
    """Tables that only we finished: because others failed there, or because nobody has been tried."""
    rivals = [m for m in found.methods if m not in (OURS, UNTOLD, NOT_PRIVATE)]
    tried = [t for t in alone if any((m, t) in found.cells or late(found, m, t) for m in rivals)]
    said = (
        [f"- Tried by others, finished by no other private method: {', '.join(tried)}."] if tried else []
    )
    rest = [t for t in alone if t not in tried]
    return said + (
        [f"- Not tried with any other private method yet: {', '.join(rest)}."] if rest else []
    )


def late(found: Results, method: str, table: str) -> bool:
    """Has a method timed out on a narrower table?"""
    before = list(tables.LADDER)[: list(tables.LADDER).index(table)]
    return any(
        found.cells[method, t][-1]["outcome"] in ("time-out", "memory")
        for t in before
        if (method, t) in found.cells
    )


def not_run(found: Results) -> str:
    """Every cell without a line, with the reason that the lines give."""
    lines = []
    for method in [m for m in NAMES if m not in LIMITS]:
        absent, late = [], ""
        for table in tables.LADDER:
            held = found.cells.get((method, table), [])
            if held and held[-1]["outcome"] in ("time-out", "memory"):
                late = f"after the {held[-1]['outcome']} on {table}"
            if not held:
                absent.append((table, late or "not in these runs"))
        if method == "diffprivlib_pca":
            absent = [(t, why) for t, why in absent if t.startswith("num")]
        if method == "dpsynth":
            lines.append(f"- {label(method)}: nothing; its install fails.")
        elif absent:
            by = {}
            for table, why in absent:
                by.setdefault(why, []).append(table)
            lines.append(
                f"- {label(method)}: "
                + "; ".join(f"{', '.join(held)} ({why})" for why, held in by.items())
                + "."
            )
    return "\n".join(lines)


def over_columns(found: Results) -> str:
    widths = [tables.LADDER[t] for t in found.tables]

    def series(value) -> list[figures.Series]:
        made = []
        for method in found.methods:
            points = [(float(tables.LADDER[t]), *value(method, t)) for t in found.finished(method)]
            points = [p for p in points if not math.isnan(p[1])]
            if points:
                name = label(method).replace("*", "").replace("`", "")
                made.append(figures.Series(name=name, points=points, stops=found.stop(method)))
        return made

    panels = [
        figures.Panel(name="LR AUC (more is better)", low=0.5, high=1.0,
                      series=series(lambda m, t: found.mean(m, t, "lr_auc")[:2])),
        figures.Panel(name="2-way total variation (less is better)", low=0.0, high=0.6,
                      series=series(lambda m, t: found.mean(m, t, "two_way_tv")[:2])),
        figures.Panel(name="processor seconds", low=0.5, high=2000.0, log_y=True,
                      series=series(lambda m, t: (found.used(m, t, "cpu_s"), math.nan))),
        figures.Panel(name="peak memory, MB", low=50.0, high=20000.0, log_y=True,
                      series=series(lambda m, t: (found.used(m, t, "peak_mb"), math.nan))),
    ]  # fmt: skip
    return figures.lines(
        "Beside the peers, ε = 1: × where a method stops",
        panels,
        widths or [10, 100],
        "columns (every width is another table)",
    )


def over_seconds(found: Results) -> str:
    panels = []
    for table in [t for t in found.tables if len(private(found, t)) > 1][:6]:
        made = []
        for method in found.methods:
            error = found.mean(method, table, "two_way_tv")[0]
            seconds = found.used(method, table, "cpu_s")
            if not (math.isnan(error) or math.isnan(seconds)):
                name = label(method).replace("*", "").replace("`", "")
                made.append(figures.Series(name=name, points=[(max(seconds, 1.0), error, math.nan)]))
        top = max(s.points[0][1] for s in made) * 1.15
        panels.append(
            figures.Panel(name=f"{table}: 2-way total variation", series=made, low=0.0, high=top)
        )
    return figures.lines(
        "Error over processor time, ε = 1", panels, [1, 10, 100, 1000, 2000], "processor seconds"
    )


def changes(before: list[facts.Line], now: list[facts.Line]) -> Iterator[str]:
    """What the lines of this run say differently from those before, cell by cell."""
    old = Results(before) if before else None
    new = facts.newest([line for line in now if line["kind"] == "draw"], "method", "table")
    said = 0
    for (method, table), held in new.items():
        past = old.cells.get((method, table)) if old else None
        if not past or method in LIMITS:
            continue
        states = [past[-1]["outcome"], held[-1]["outcome"]]
        if states[0] != states[1]:
            said += 1
            yield f"changed: {method} on {table}: {states[0]} -> {states[1]} {held[-1]['message']}"
            continue
        for score in ("lr_auc", "two_way_tv"):
            pair = [
                facts.interval(x["scores"][score] for x in lines if score in x["scores"])[0]
                for lines in (past, held)
            ]
            if abs(pair[1] - pair[0]) > 0.005:
                said += 1
                yield f"changed: {method} on {table}: {SCORES[score]} {pair[0]:.3f} -> {pair[1]:.3f}"
        costs = [sum(x["cpu_s"] for x in lines) / len(lines) for lines in (past, held)]
        if max(costs) > 1.25 * min(costs) + 1:
            said += 1
            yield f"changed: {method} on {table}: CPU {costs[0]:.0f} -> {costs[1]:.0f} s"
    yield f"{len(new)} cells measured, {said} changes against the results before"


def origin(found: Results) -> str:
    used = {line["run"] for held in found.cells.values() for line in held}
    order = sorted(used, key=lambda run: (int(run.partition(".")[0]), run))
    return "\n".join(facts.origin(found.runs[name] for name in order))


def page(found: Results, speeds: list[facts.Line]) -> str:
    parts = [
        facts.words("peers_head"),
        "## Reading\n\n" + reading(found),
        facts.words("peers_why"),
        "## How far each one gets\n\n" + far(found),
    ]
    parts += [
        "![Scores and costs over columns](peers_columns.svg)",
        "![Error over processor time](peers_seconds.svg)",
    ]
    for table in found.tables:
        rows = found.cells["real rows", table][-1]["rows"] if ("real rows", table) in found.cells else 0
        parts.append(
            f"## {table}: {rows:,} rows, {tables.LADDER[table]} columns\n\n" + table_of(found, table)
        )
    parts += ["## Installing\n\n" + installs(found)] if found.installs else []
    parts += throughput_page.parts(speeds)
    parts += ["## Not run\n\n" + not_run(found), facts.words("peers_rules")]
    command = (
        "```sh\nPIP_CONSTRAINT=no-gpu.txt make peers DATA=../shared/data "
        "ENVIRONMENTS=/path/for/environments\n```\n\n"
        "`no-gpu.txt` holds the constraint that *Installing* names."
    )
    folded = f"<details><summary>Every run</summary>\n\n{origin(found)}\n\n</details>"
    parts.append(f"## Command, versions, date\n\n{command}\n\n{folded}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def write(results: Path, folder: Path) -> None:
    """The page and its figures, from the folder of results."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Results(facts.read(results / "peers.jsonl"))
    (folder / "peers_columns.svg").write_text(over_columns(found), encoding="utf-8")
    (folder / "peers_seconds.svg").write_text(over_seconds(found), encoding="utf-8")
    (folder / "peers.md").write_text(
        page(found, facts.read(results / "throughput.jsonl")), encoding="utf-8"
    )
