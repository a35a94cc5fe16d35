"""The tables of docs/explanation/utility.md, made anew from the results of `moments.py`."""

import math
from collections import defaultdict
from statistics import median

from comparison import facts
from utility import others_page
from utility.moments_tables import NAMES, TUNED

START, END = "<!-- measured: written by benchmarks/utility/moments.py -->", "<!-- /measured -->"
BALANCED = ("gfe_user_a", "mnist_5k", "sylva", "isolet_1560")  # judged by balanced accuracy
MAIN = ("LR AUC", "GB AUC", "LR AUC, undeclared", "GB AUC, undeclared", "ridge R2")
ERRORS = ("one-way TV", "two-way TV", "three-way TV")
RIVALS = ("ron-gauss", "lda")  # shown in tables where any line has them
LEARNT = 0.6  # an area under the curve of real rows from which on a part of it is a figure
LITTLE, MUCH = 1.0, 8.0  # epsilons: with more budget nothing should be worse


def write(lines, path):
    """The block between the two marks."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(START, 1)
    path.write_text(before + START + "\n" + page(lines) + END + rest.split(END, 1)[1], encoding="utf-8")


def short(value):
    return f"{value:.3f}".replace("0.", ".", 1)


def cells_of(lines):
    """{(data, method, epsilon, score): (mean, half interval, draws)}, of the source measured last."""
    held = facts.newest(
        [line for line in lines if line["kind"] == "utility"], "data", "method", "epsilon"
    )
    found = {}
    for key, runs in held.items():
        values = defaultdict(list)
        for one in runs:
            for score, value in one["scores"].items():
                values[score].append(value)
        found |= {(*key, score): facts.interval(held) for score, held in values.items()}
    return found


def shown(cell, *, draws=False):
    if cell is None:
        return ""
    mean, half, count = cell
    spread = "" if count < 3 else f" ± {short(half)}"
    return f"{short(mean)}{spread}" + (f" ({count})" if draws else "")


def page(lines):
    cells = cells_of(lines)
    epsilons = sorted({key[2] for key in cells if key[1] == "moments"})
    runs = [line for line in lines if line["kind"] == "run"]
    used = {
        line["source"]
        for one in facts.newest(
            [line for line in lines if line["kind"] == "utility"], "data", "method", "epsilon"
        ).values()
        for line in one
    }
    where = facts.origin(run for run in runs if run["source"] in used)
    measured = [name for name in NAMES if (name, "moments", 1.0, "CPU s") in cells]
    parts = []
    for title, names in (
        ("Held out: nothing was chosen on these", [n for n in measured if n not in TUNED]),
        ("Seen while rules and constants were chosen (in-sample)", [n for n in measured if n in TUNED]),
    ):
        count = f"{len(names)} of {len(measured)} tables."
        said = (below(cells, names, epsilons), more_is_worse(cells, names))
        parts.append(f"### {title}\n\n{count}\n\n{in_short(cells, names, epsilons)}\n")
        parts.append(f"{whole(cells, names, epsilons)}\n")
        parts += [f"{words}\n\n" for words in said]
    parts.append(others_page.section(lines, shown, short))
    return f"{trees(lines)}\n\n" + "".join(parts) + "\n".join(where) + "\n"


def in_short(cells, names, epsilons):
    """All tables in few lines: errors over those of the floor, and parts of what real rows predict."""
    head = ["all tables", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
    lines = [head, ["---"] * len(head)]
    for score in ERRORS:
        row = [f"{score}, our mean over the floor's: median (tables above 1)"]
        for epsilon in epsilons:
            pairs = [
                [cells.get((n, m, epsilon, score)) for m in ("moments", "independent")] for n in names
            ]
            ratios = [ours[0] / floor[0] for ours, floor in pairs if ours and floor]
            above = f"({sum(ratio > 1.0 for ratio in ratios)} of {len(ratios)})"
            row.append(f"{short(median(ratios))} {above}" if ratios else "")
        lines.append(row)
    for score in MAIN[:4]:
        row = [f"{score}: median part of what real rows have above .5 (tables)"]
        for epsilon in epsilons:
            pairs = [
                [cells.get(key) for key in ((n, "moments", epsilon, score), (n, "real", None, score))]
                for n in names
            ]
            parts = [
                (ours[0] - 0.5) / (real[0] - 0.5)
                for ours, real in pairs
                if ours and real and real[0] > LEARNT
            ]
            row.append(f"{short(median(parts))} ({len(parts)})" if parts else "")
        lines.append(row)
    note = f"Predictions: tables whose real rows have an area of more than {short(LEARNT)}."
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{note}\n"


def whole(cells, names, epsilons):
    """One table of data sets; rivals have a column where at least one line has a figure of theirs."""
    rivals = [rival for rival in RIVALS if any((n, rival) == key[:2] for key in cells for n in names)]
    budgets = [word for epsilon in epsilons for word in (f"ε = {epsilon:g}", "floor")]
    head = ["data", "score", *budgets, *rivals, "real", "CPU s, largest"]
    lines = [head, ["---"] * len(head)]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return text + "".join(table(cells, name, epsilons, rivals) for name in names)


def below(cells, names, epsilons):
    """Where the mean of our draws is worse than the floor, which spends all of its budget on columns."""
    found = []
    for name in names:
        for epsilon in epsilons:
            listed = [_against_floor(cells, name, epsilon, score) for score in ERRORS]
            own = [words for words in listed if words]
            if own:
                found.append(f"`{name}` at ε = {epsilon:g}: {', '.join(own)}")
    if not found:
        return "No mean of our draws is worse than the floor."
    return (
        "Worse than the floor (in brackets) in the mean of our draws, in bold where the difference is "
        "larger than its 95 % interval: " + "; ".join(found) + "."
    )


def _against_floor(cells, name, epsilon, score):
    """Our error, if it is above the floor's; and that of real rows, if these are above it, too."""
    ours, floor = (cells.get((name, m, epsilon, score)) for m in ("moments", "independent"))
    if ours is None or floor is None or short(ours[0]) <= short(floor[0]):
        return ""
    is_sure = ours[0] - floor[0] > facts.half_of_difference(ours, floor)
    words = f"{score[:-3]} {shown(ours)} ({short(floor[0])})"
    real = cells.get((name, "real", None, score))
    more = f", real rows {short(real[0])}" if real is not None and real[0] > floor[0] else ""
    return (f"**{words}**" if is_sure else words) + more


def more_is_worse(cells, names):
    """Where more budget made our draws worse, by more than the interval of the difference."""
    found, compared = [], 0
    for name in names:
        own = []
        for score in scores_of(cells, name, (LITTLE, MUCH)):
            less, more = (cells.get((name, "moments", e, score)) for e in (LITTLE, MUCH))
            if less is None or more is None:
                continue
            half = facts.half_of_difference(less, more)
            compared += half < math.inf
            if (more[0] - less[0]) * (1.0 if "TV" in score else -1.0) > half:
                own.append(f"{score.replace('R2', 'R²')} {shown(more)} ({shown(less)})")
        if own:
            found.append(f"`{name}`: {', '.join(own)}")
    if not found:
        return f"More budget, worse: in none of {compared} scores with an interval."
    return (
        f"More budget, worse: ε = {MUCH:g} beside ε = {LITTLE:g} (in brackets), where the difference is "
        f"larger than its 95 % interval, of {compared} scores with an interval: {'; '.join(found)}."
    )


def trees(lines):
    """Which tables were measured on which tree of `src` at which budget, the newest tree first."""
    held = [line for line in lines if line["kind"] == "utility" and line["method"] == "moments"]
    cells = {(line["data"], line["epsilon"]): line["source"] for line in held}  # files grow at their end
    order = list(dict.fromkeys(line["source"] for line in reversed(held)))
    parts = []
    for source in order:
        listed = [words for name in NAMES if (words := _of_tree(cells, name, source))]
        if listed:
            parts.append(f"`{source}` ({', '.join(listed)})")
    return (
        f"Trees of `src` that `moments` was last measured on, the newest first: {'; '.join(parts)}. "
        "Where `git rev-parse HEAD:src` begins otherwise, the code is newer than the figures."
    )


def _of_tree(cells, name, source):
    """The name of a table that this tree was the last to measure; with its budgets, if not at all."""
    epsilons = sorted(epsilon for held, epsilon in cells if held == name)
    own = [f"{epsilon:g}" for epsilon in epsilons if cells[name, epsilon] == source]
    if not own:
        return ""
    return f"`{name}`" + ("" if len(own) == len(epsilons) else f" at ε = {' and '.join(own)}")


def scores_of(cells, name, epsilons):
    """The scores that a data set is judged by, where it has any."""
    scores = ("LR balanced accuracy", *ERRORS) if name in BALANCED else (*MAIN, *ERRORS)
    return [s for s in scores if any((name, "moments", epsilon, s) in cells for epsilon in epsilons)]


def table(cells, name, epsilons, rivals=()):
    """The lines of one data set."""
    text, is_first = "", True
    for score in scores_of(cells, name, epsilons):
        row = [name if is_first else "", score.replace("R2", "R²")]
        for epsilon in epsilons:
            row.append(shown(cells.get((name, "moments", epsilon, score)), draws=is_first))
            floor = cells.get((name, "independent", epsilon, score))
            row.append(short(floor[0]) if floor is not None and "TV" in score else "")
        row += [shown(cells.get((name, rival, 1.0, score))) for rival in rivals]
        real = cells.get((name, "real", None, score))
        spent = [cells[key][0] for e in epsilons if (key := (name, "moments", e, "CPU s")) in cells]
        row += [short(real[0]) if real else "", f"{max(spent):.1f}" if spent and is_first else ""]
        text, is_first = text + "| " + " | ".join(row) + " |\n", False
    return text
