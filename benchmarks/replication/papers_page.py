"""docs/benchmarks/papers.md and its figures, from the lines of benchmarks/results/papers.jsonl alone."""

from collections import defaultdict
from pathlib import Path

from comparison import facts

from replication.cells import KINDS

PAGE = facts.PAGES / "papers.md"
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
"""


def shown(values):
    mean, half, count = facts.interval(values)
    if count == 1:
        return figure(mean, 3)
    return f"{figure(mean, 3)} ± {figure(half, 1)} ({count})"


def figure(value, digits):
    return (
        f"{value:,.0f}"
        if abs(value) >= 1000
        else f"{value:.{digits}g}"
        if abs(value) < 10
        else f"{value:.0f}"
    )


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
    sources = sorted({line["source"] for line in lines if line["kind"] != "printed"})
    if sources:
        trees = ", ".join(f"`{name}`" for name in sources)
        parts.append(f"\nDrawn by the source trees {trees} (`git rev-parse HEAD:src`).\n")
    PAGE.write_text("".join(parts), "utf-8")
    return f"{PAGE.name}: {drawn} cells"


def table(lines):
    """Arms down, settings across; arms by what they are."""
    settings = list(dict.fromkeys(line["setting"] for line in lines))
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


def drawing(paper, item, lines):
    """Means over epsilon, one panel per data set and setting, where there are three points or more."""
    panels = defaultdict(lambda: defaultdict(list))
    for line in lines:
        *rest, last = line["setting"].split(", ")
        if last.startswith("epsilon=") and line["measure"] == lines[0]["measure"]:
            panels[", ".join([line["data"], *rest])][line["kind"], line["arm"]].append(
                (float(last[8:]), *facts.interval(line["values"])[:2])
            )
    panels = {name: arms for name, arms in panels.items() if max(map(len, arms.values())) >= 3}
    if not panels:
        return None
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "adumbra"
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    sheet, axes = plt.subplots(
        down, across, figsize=(4.6 * across, 3.2 * down), squeeze=False, sharey=True
    )
    style = {
        "ours": "-",
        "as printed": "--",
        "comparator": ":",
        "ceiling": "-.",
        "floor": "-.",
        "printed": "-.",
    }
    for axis, (title, arms) in zip(axes.flat, panels.items(), strict=False):
        for (kind, arm), points in arms.items():
            x, mean, half = zip(*sorted(points), strict=True)
            bars = [0 if h != h else h for h in half]
            axis.errorbar(x, mean, bars, ls=style[kind], marker="o", ms=3, lw=1, capsize=2, label=arm)
        axis.set(title=title, xscale="log", xlabel="epsilon")
        axis.title.set_fontsize(8)
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(lines[0]["measure"])
    sheet.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7
    )
    sheet.tight_layout(rect=(0, 0.12, 1, 1))
    name = f"papers_{paper}_{item.lower().replace(' ', '_')}.svg"
    sheet.savefig(PAGE.with_name(name), metadata={"Date": None})
    plt.close(sheet)
    return Path(name).name
