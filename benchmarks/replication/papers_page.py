"""docs/benchmarks/papers.md and its figures, from the lines of benchmarks/results/papers.jsonl alone."""

from collections import defaultdict
from pathlib import Path

from comparison import facts

from replication.cells import KINDS

PAGE = facts.PAGES / "papers.md"
WIDEST = 8  # settings in one table
LEGEND = {1: 2, 2: 3, 3: 4}  # columns of the legend by columns of panels
LINES = {
    "ours": "-", "as printed": "--", "comparator": ":", "ceiling": "-.", "floor": ":", "printed": "-.",
}  # fmt: skip
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b3294", "#8c510a")
GREYS = ("#404040", "#7a7a7a", "#a6a6a6", "#5c5c5c")
MARKERS = "os^Dv<>P"
THEORY = f"../{(facts.ROOT / 'docs' / 'theory.md').name}"
OPENING = """# The five papers' experiments

Written by `python benchmarks/papers.py --page` from `benchmarks/results/papers.jsonl`; do not edit.
`make papers` draws every cell again. Everything here is compared with private rows: no releases.

- **printed**: a number in the paper's text.
- **as printed**: the paper's mechanism with its own constants, rerun; [not private]({theory}).
- **ours**: the corrected mechanism at the same epsilon.
- **comparator**: a rival that the paper names, on float noise.
- **ceiling**: real rows without privacy. **floor**: what is known without the data.

A mean stands with half of its 95 % interval (Student's t) and the number of draws.

**Your own data.** A small TOML file says where the rows are, their bounds or schema, the task and
its roles. `benchmarks/replication/sets.py` shows each key, `benchmarks/replication/sets` has examples,
and `python benchmarks/papers.py --roles` lists what a data set can serve. Realdisp, Twitter, BMS-POS,
pumsb_star and AOL have theirs: put the Parquet file into the data folder. Others come by `--set FILE`.
"""
RIVALS, BASELINES = "benchmarks/replication/comparators.py", "benchmarks/published/ron_gauss.py"
PEERS = "benchmarks/replication/peer_comparators.py"
COMPARATORS = (  # arm, what it is, source, where
    ("PrivateSVM", "linear SVM with Huber loss by objective perturbation, pure, replace-one",
     "Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 2", RIVALS),
    ("DiffGen", "columns generalised top-down, splits by the exponential mechanism, noisy counts",
     "Mohammed, Chen, Fung, Yu 2011", RIVALS),
    ("PrivBayes", "a Bayesian network by the exponential mechanism, noisy conditional tables",
     "Zhang et al. 2014, in the package DataSynthesizer (Ping, Stoyanovich, Howe 2017)", PEERS),
    ("Bernoulli + identity", "every row through a matrix of random signs, with Laplace noise",
     "Li et al., as RON-Gauss cites it", BASELINES),
    ("PCA + identity", "the same through the leading directions, which are exact: not private",
     "Jiang et al., as RON-Gauss cites it", BASELINES),
    ("exponential", "one of 64 random tables, by the exponential mechanism",
     "Blum et al. in kind", BASELINES),
    ("Gaussian, no projection", "noisy class sums and Gram of the full width", "MODIPS in kind",
     BASELINES),
    ("on each cell", "Laplace noise, or a noisy choice, for every cell", "identity mechanisms",
     "benchmarks/published/components.py"),
)  # fmt: skip


TESTED = (
    "All on float noise, which is no guarantee. Each has a test on data with a known answer; that of "
    "PrivBayes, which needs its package, is `benchmarks/replication/peer_comparators.py`."
)


def comparators():
    """The section about rivals."""
    rows = [f"| {arm} | {what} | {source} | `{where}` |" for arm, what, source, where in COMPARATORS]
    return "\n".join(
        [
            "\n## The comparators\n",
            f"{TESTED}\n",
            "| arm | what it is | source | here |",
            "| --- | --- | --- | --- |",
            *rows,
            "\nPriView and JTree: no kept package offers them.\n",
        ]
    )


def shown(values):
    mean, half, count = facts.interval(values)
    if count == 1:
        return figure(mean, 3)
    return f"{figure(mean, 3)} ± {figure(half, 1)} ({count})"


def figure(value, digits):
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if abs(value) < 9.5 else f"{value:.0f}"


def write(papers, lines):
    """The page; a sentence that says what was written."""
    by_paper = defaultdict(list)
    for line in lines:
        by_paper[line["paper"]].append(line)
    parts, drawn = [OPENING.format(theory=THEORY)], 0
    for paper in papers:
        found = by_paper.get(paper.name, [])
        parts.append(f"\n## {paper.title}\n\n`python benchmarks/papers.py {paper.name} --data FOLDER`\n")
        if not found:
            parts.append("\nNothing has been drawn yet.\n")
        items = dict.fromkeys(line["item"] for line in found)
        about = {experiment.item: experiment.about for experiment in paper.experiments}
        for item in items:
            held = [line for line in found if line["item"] == item]
            text = about.get(item) or next(
                (said for name, said in about.items() if item.split()[-1] in name), ""
            )
            parts.append(f"\n### {item}: {text}\n")
            for measure in dict.fromkeys(line["measure"] for line in held):
                for data in dict.fromkeys(line["data"] for line in held if line["measure"] == measure):
                    chosen = [
                        line for line in held if (line["measure"], line["data"]) == (measure, data)
                    ]
                    parts.append(f"\n{measure}, {data}:\n\n" + table(chosen))
                    drawn += len(chosen)
            name = drawing(paper.name, item, held)
            if name:
                parts.append(
                    f"\n![{item} of {paper.title}: mean over draws with 95 % intervals]({name})\n"
                )
        if paper.missing:
            parts.append("\nNot shown, and why:\n\n" + "".join(f"- {said}\n" for said in paper.missing))
    parts.append(comparators())
    sources = sorted({line["source"] for line in lines if line["kind"] != "printed"})
    if sources:
        trees = ", ".join(f"`{name}`" for name in sources)
        parts.append(f"\nDrawn by the source trees {trees} (`git rev-parse HEAD:src`).\n")
    PAGE.write_text("".join(parts), "utf-8")
    return f"{PAGE.name}: {drawn} cells"


def table(lines):
    """Arms down, by what they are; settings across. Many settings of two parts: a table per first."""
    settings = list(dict.fromkeys(line["setting"] for line in lines))
    if len(settings) > WIDEST and all(", " in setting for setting in settings):
        firsts = dict.fromkeys(setting.split(", ")[0] for setting in settings)
        return "\n".join(
            table([line for line in lines if line["setting"].split(", ")[0] == first])
            for first in firsts
        )
    arms = sorted(
        dict.fromkeys((line["kind"], line["arm"]) for line in lines),
        key=lambda pair: KINDS.index(pair[0]),
    )
    cells = {(line["arm"], line["setting"]): shown(line["values"]) for line in lines}
    head = "| kind | arm | " + " | ".join(settings) + " |\n|" + " --- |" * (2 + len(settings)) + "\n"
    rows = [
        f"| {kind} | {arm} | "
        + " | ".join(cells.get((arm, setting), "") for setting in settings)
        + " |\n"
        for kind, arm in arms
    ]
    return head + "".join(rows)


def panels_of(lines):
    """Points by panel (data set, rest of the setting) and arm, and what is across: the last part."""
    panels, across = defaultdict(lambda: defaultdict(list)), ""
    for line in lines:
        *rest, last = line["setting"].split(", ")
        name, _, value = last.partition("=")
        if line["measure"] == lines[0]["measure"] and value.replace(".", "").isdigit():
            across = name
            panels[", ".join([line["data"], *rest])][line["kind"], line["arm"]].append(
                (float(value), *facts.interval(line["values"])[:2])
            )
    return {name: arms for name, arms in panels.items() if max(map(len, arms.values())) >= 3}, across


def looks(arms):
    """Line, marker and colour of each arm: ours in colours, all else in greys by its kind."""
    told, seen = {}, defaultdict(int)
    for kind, arm in arms:
        number = seen[kind]
        seen[kind] += 1
        if kind == "ours":
            color = COLOURS[number % len(COLOURS)]
        else:
            color = {"ceiling": "black", "floor": "black"}.get(kind, GREYS[number % len(GREYS)])
        marker = MARKERS[number % len(MARKERS)]
        told[kind, arm] = {"color": color, "marker": marker, "ls": LINES[kind]}
    return told


def drawing(paper, item, lines):
    """Means over the last part of the setting, one panel per data set and rest, from three points on."""
    panels, across = panels_of(lines)
    if not panels:
        return None
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "adumbra"
    arms = sorted(
        dict.fromkeys(arm for panel in panels.values() for arm in panel),
        key=lambda pair: KINDS.index(pair[0]),
    )
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = -(-len(panels) // columns)
    legend = 0.24 * -(-len(arms) // LEGEND[columns]) + 0.2
    width = {1: 6.4, 2: 9.0, 3: 13.0}[columns]
    sheet, axes = plt.subplots(
        rows, columns, figsize=(width, 3.0 * rows + legend), squeeze=False, sharey=True,
        layout="constrained",
    )  # fmt: skip
    style = looks(arms)
    drawn = [point for panel in panels.values() for points in panel.values() for point in points]
    values = [mean for _, mean, _ in drawn if mean > 0]
    for axis, (title, panel) in zip(axes.flat, panels.items(), strict=False):
        for arm, points in panel.items():
            x, mean, half = zip(*sorted(points), strict=True)
            bars = [0 if h != h else h for h in half]
            axis.errorbar(x, mean, bars, ms=3.5, lw=1.2, elinewidth=0.7, capsize=2, **style[arm])
        ticks = sorted({x for points in panel.values() for x, _, _ in points})
        axis.set(title=title, xscale="log", xlabel=across)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.3)
        if max(values) > max(10.0, 100 * min(values)):
            axis.set_yscale("log")
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel(lines[0]["measure"])
    handles = [
        plt.Line2D([], [], lw=1.2, ms=4, label=f"{arm}", **style[kind, arm]) for kind, arm in arms
    ]
    sheet.legend(
        handles=handles, loc="outside lower center", ncols=LEGEND[columns], fontsize=8, frameon=False
    )
    name = f"papers_{paper}_{item.lower().replace(' ', '_')}.svg"
    sheet.savefig(PAGE.with_name(name), metadata={"Date": None})
    plt.close(sheet)
    return Path(name).name
