"""docs/benchmarks/outside.md and its figures, from the lines of results/outside.jsonl alone."""

import math
from pathlib import Path

from comparison import facts, figures, nist

OURS, FLOOR, CEILING = "adumbra moments", "independent columns", "half sample"
SHORT = {name: name.split("-")[0] for name in nist.SETS}


def score(value: float, half: float = math.nan) -> str:
    return f"{value:.0f}" if math.isnan(half) else f"{value:.0f} ± {half:.1f}"


class Results:
    """The newest lines of every cell, and the tables that are made of them."""

    def __init__(self, lines: list[facts.Line]) -> None:
        self.runs = {line["run"]: line for line in lines if line["kind"] == "run"}
        marginal = [line for line in lines if line["kind"] == "k-marginal"]
        self.cells = facts.newest(marginal, "target", "set", "epsilon", "who", "name")
        self.metrics = facts.newest(
            [line for line in lines if line["kind"] == "sdmetrics"],
            "target",
            "set",
            "epsilon",
            "who",
            "name",
        )
        self.targets = [name for name in nist.TARGETS if any(key[0] == name for key in self.cells)]
        self.sets = [name for name in nist.SETS if any(key[1] == name for key in self.cells)]

    def mean(
        self, target: str, chosen: str, epsilon: float | None, who: str
    ) -> tuple[float, float, int]:
        lines = self.cells.get((target, chosen, epsilon, who, who), [])
        return facts.interval(line["score"] for line in lines)

    def others(self, target: str, chosen: str, epsilon: float) -> list[tuple[str, float]]:
        """The submitted tables of a cell, best first."""
        found = [
            (key[4], line["score"])
            for key, lines in self.cells.items()
            if key[:4] == (target, chosen, epsilon, "submitted")
            for line in {held["file"]: held for held in lines}.values()
        ]
        return sorted(found, key=lambda pair: -pair[1])

    def judged(self, epsilon: float) -> list[tuple[str, str]]:
        return [
            (target, chosen)
            for target in self.targets
            for chosen in self.sets
            if self.mean(target, chosen, epsilon, OURS)[2]
        ]


def rank(ours: float, others: list[tuple[str, float]]) -> int:
    return 1 + sum(held > ours for _, held in others)


def table(found: Results, epsilon: float) -> str:
    lines = [
        "| target | features | adumbra | rank | best two submitted | floor | ceiling | CPU s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for target, chosen in found.judged(epsilon):
        mean, half, draws = found.mean(target, chosen, epsilon, OURS)
        others = found.others(target, chosen, epsilon)
        best = ", ".join(f"{name} {score(held)}" for name, held in others[:2])
        floor, ceiling = (found.mean(target, chosen, None, who)[0] for who in (FLOOR, CEILING))
        held = found.cells[target, chosen, epsilon, OURS, OURS]
        seconds = sum(line["cpu_s"] for line in held) / len(held)
        place = f"{rank(mean, others)} of {1 + len(others)}"
        lines.append(
            f"| {nist.TARGETS[target]} | {SHORT[chosen]} ({held[-1]['columns']}) "
            f"| {score(mean, half)} ({draws}) "
            f"| {place} | {best} | {score(floor)} | {score(ceiling)} | {seconds:.1f} |"
        )
    return "\n".join(lines)


def reading(found: Results) -> str:
    """Where we are first and where not, in sentences that the lines decide."""
    said = []
    for epsilon in nist.EPSILONS:
        cells = found.judged(epsilon)
        behind, first, even = [], 0, []
        for target, chosen in cells:
            mean, half, _ = found.mean(target, chosen, epsilon, OURS)
            others = found.others(target, chosen, epsilon)
            if not others or mean > others[0][1]:
                first += 1
                if others and mean - (0 if math.isnan(half) else half) <= others[0][1]:
                    even.append(f"{nist.TARGETS[target]} {SHORT[chosen]}")
            else:
                gap = others[0][1] - mean
                behind.append(
                    f"{nist.TARGETS[target]} {SHORT[chosen]} ({gap:.0f} behind {others[0][0]})"
                )
        if cells:
            text = f"- **ε = {epsilon:g}: first in {first} of {len(cells)}.**"
            text += f" Not first: {', '.join(behind)}." if behind else ""
            text += f" First by less than the interval: {', '.join(even)}." if even else ""
            said.append(text)
    said += [text for text in (bias(found), below_floor(found), older(found)) if text]
    return "\n".join(said)


def bias(found: Results) -> str:
    """What more budget would bring: the part of the loss that is the model's, not the noise's."""
    gains = [
        found.mean(target, chosen, 100.0, OURS)[0] - found.mean(target, chosen, 10.0, OURS)[0]
        for target, chosen in found.judged(100.0)
        if found.mean(target, chosen, 10.0, OURS)[2]
    ]
    if not gains:
        return ""
    return (
        f"- From ε = 10 to 100 our scores move by {min(gains):+.0f} to {max(gains):+.0f} points. "
        "What is still missing there is the bias of the model, not noise."
    )


def below_floor(found: Results) -> str:
    under = []
    for epsilon in nist.EPSILONS:
        for target, chosen in found.judged(epsilon):
            if found.mean(target, chosen, epsilon, OURS)[0] < found.mean(target, chosen, None, FLOOR)[0]:
                under.append(f"{nist.TARGETS[target]} {SHORT[chosen]} at ε = {epsilon:g}")
    if under:
        return f"- By K-marginal below the floor of independent columns: {', '.join(under)}."
    return "- By K-marginal no release at ε = 1 or 10 is below the floor of independent columns."


def older(found: Results) -> str:
    """Which of our figures are of an earlier source than the last ones."""
    own = {key[:3]: held[-1] for key, held in found.cells.items() if key[3] == OURS}
    if not own:
        return ""
    newest = max(own.values(), key=lambda line: int(line["run"]))["source"]
    old = []
    for epsilon in sorted({key[2] for key in own}):
        held = {key: line for key, line in own.items() if key[2] == epsilon}
        late = [key for key, line in held.items() if line["source"] != newest]
        names = ", ".join(f"{nist.TARGETS[target]} {SHORT[chosen]}" for target, chosen, _ in late)
        if late:
            old.append(f"ε = {epsilon:g}" if len(late) == len(held) else f"ε = {epsilon:g} ({names})")
    judged = any(
        key[3] == OURS and newest not in str(held[-1]["source"]) for key, held in found.metrics.items()
    )
    old += ["some of SDMetrics"] if judged else []
    return f"- Measured with an earlier source than the others: {', '.join(old)}." if old else ""


def metrics_table(found: Results) -> str:
    """SDMetrics: overall quality (shapes of columns, trends of pairs) and the diagnostic score."""
    lines = [
        "| target | features | table | ε | quality | column shapes | pair trends | diagnostic |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    keys = ("quality", "quality: Column Shapes", "quality: Column Pair Trends", "diagnostic")
    order = sorted(
        found.metrics,
        key=lambda key: (key[0], nist.SETS.index(key[1]), key[2] or math.inf, key[4] != OURS),
    )
    for key in order:
        target, chosen, epsilon, _, name = key
        line = found.metrics[key][-1]
        cells = [f"{line[k]:.3f}" if k in line else "" for k in keys]
        if "error" in line:
            cells[0] = str(line["error"])
        budget = f"{epsilon:g}" if epsilon else "not private"
        lines.append(
            f"| {nist.TARGETS[target]} | {SHORT[chosen]} | {name} | {budget} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def metrics_reading(found: Results) -> str:
    """Where SDMetrics' quality puts us first, where it does not, and where we are below the floor."""
    cells, behind, under = 0, [], []
    for key in sorted(found.metrics, key=lambda key: (key[0], nist.SETS.index(key[1]), key[2] or 0.0)):
        target, chosen, epsilon, _, name = key
        ours = quality(found, key)
        if name != OURS or ours is None:
            continue
        where = f"{nist.TARGETS[target]} {SHORT[chosen]} at ε = {epsilon:g}"
        rivals = [
            (held, other[4])
            for other in found.metrics
            if other[:3] == key[:3] and other[3] == "submitted"
            and (held := quality(found, other)) is not None
        ]  # fmt: skip
        if rivals:
            cells += 1
            most, rival = max(rivals)
            if ours <= most:
                behind.append(f"{where} ({ours:.3f}; {rival} {most:.3f})")
        floor = quality(found, (target, chosen, None, FLOOR, FLOOR))
        if floor is not None and ours < floor:
            under.append(f"{where} ({ours:.3f}; floor {floor:.3f})")
    text = (
        "SDMetrics' overall quality of one of our releases is above that of the two submitted tables "
        f"that NIST's measure ranks first in {cells - len(behind)} of {cells} cells "
        "(one release each, so no interval). "
    )
    text += f"Not above: {', '.join(behind)}. " if behind else ""
    text += f"Below the floor: {', '.join(under)}. " if under else "None of ours is below the floor. "
    return text + (
        "It weighs one-way shapes and pairs alike, so the floor (exact shapes, no relation) scores high "
        "too: read it beside the floor."
    )


def quality(found: Results, key: tuple) -> float | None:
    """SDMetrics' overall quality of a table, if it was judged."""
    held = found.metrics.get(key)
    return held[-1].get("quality") if held else None


def strips(found: Results, target: str) -> str:
    panels = []
    for epsilon in nist.EPSILONS:
        rows = []
        for _, chosen in (cell for cell in found.judged(epsilon) if cell[0] == target):
            mean, half, _ = found.mean(target, chosen, epsilon, OURS)
            floor, ceiling = (found.mean(target, chosen, None, who)[0] for who in (FLOOR, CEILING))
            rows.append(
                figures.Row(
                    name=chosen, ours=mean, half=half, others=found.others(target, chosen, epsilon),
                    floor=floor, ceiling=ceiling,
                )
            )  # fmt: skip
        panels.append((f"ε = {epsilon:g}", rows))
    return figures.strip(f"K-marginal, {nist.TARGETS[target]}", panels, 700, 1000)


def over_epsilon(found: Results) -> str:
    panels = []
    values = sorted({key[2] for key in found.cells if key[3] == OURS})
    for target in found.targets:
        for chosen in found.sets:
            ours = [(e, *found.mean(target, chosen, e, OURS)[:2]) for e in values
                    if found.mean(target, chosen, e, OURS)[2]]  # fmt: skip
            best = [(e, found.others(target, chosen, e)[0][1], math.nan) for e in (1.0, 5.0, 10.0)
                    if found.others(target, chosen, e)]  # fmt: skip
            limits = [
                (e, found.mean(target, chosen, None, FLOOR)[0], math.nan)
                for e in (values[0], values[-1])
            ]
            panels.append(
                figures.Panel(
                    name=f"{nist.TARGETS[target]}, {chosen}", low=650, high=1000,
                    series=[
                        figures.Series(name="adumbra", points=ours),
                        figures.Series(name="best submitted", points=best),
                        figures.Series(name="floor: independent columns", points=limits),
                    ],
                )
            )  # fmt: skip
    return figures.lines("K-marginal over ε", panels, [0.1, 1, 10, 100], "ε")


def origin(found: Results) -> str:
    """At which commit, on which machine and with which versions the figures were made."""
    used = {
        line["run"] for (_, _, _, who, _), held in found.cells.items() if who == OURS for line in held
    }
    judges = sorted({str(line["judge"]) for held in found.cells.values() for line in held})
    judges += sorted({str(held[-1]["source"]).split(",")[0] for held in found.metrics.values()})
    last = f"- Judges: {', '.join(judges)} (of judge.py: the first 12 digits of its SHA-256)"
    return "\n".join([*facts.origin(found.runs[name] for name in sorted(used, key=int)), last])


def page(found: Results) -> str:
    parts = [
        facts.words("outside_head").format(
            targets=" and ".join(nist.TARGETS[name] for name in found.targets)
        )
    ]
    parts.append("## Reading\n\n" + reading(found))
    parts += [f"![K-marginal, {nist.TARGETS[name]}](outside_{name}.svg)" for name in found.targets]
    for epsilon in nist.EPSILONS:
        parts.append(
            f"## K-marginal at ε = {epsilon:g}\n\nMean ± half interval (draws).\n\n"
            + table(found, epsilon)
        )
    parts.append("## Score over ε\n\n![K-marginal over epsilon](outside_epsilon.svg)")
    if found.metrics:
        parts.append("## SDMetrics\n\n" + metrics_reading(found) + "\n\n" + metrics_table(found))
    command = "```sh\nmake outside DATA=../shared/data ENVIRONMENTS=/path/for/environments\n```"
    parts += [
        facts.words("outside_rules"),
        f"## Command, versions, date\n\n{command}\n\n{origin(found)}",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


START, END = "<!-- outside: written by make outside -->", "<!-- /outside -->"


def readme(found: Results) -> str:
    """The small table of the README: our score, the best submitted one and the floor."""
    heads = [f"{nist.TARGETS[t]}, ε = {e:g}" for t in found.targets for e in nist.EPSILONS]
    lines = ["| features | " + " | ".join(heads) + " |", "|" + " --- |" * (1 + len(heads))]
    for chosen in found.sets:
        cells = []
        for target in found.targets:
            for epsilon in nist.EPSILONS:
                mean, _, draws = found.mean(target, chosen, epsilon, OURS)
                others = found.others(target, chosen, epsilon)
                if not draws or not others:
                    cells.append("")
                    continue
                floor = found.mean(target, chosen, None, FLOOR)[0]
                cells.append(f"**{score(mean)}** / {score(others[0][1])} / {score(floor)}")
        lines.append(f"| {SHORT[chosen]} | " + " | ".join(cells) + " |")
    return "\n".join([START, *lines, END])


def write_readme(found: Results, path: Path) -> None:
    """The block between the two marks, made anew; a README without them is left alone."""
    text = path.read_text(encoding="utf-8")
    if START in text and END in text:
        before, rest = text.split(START, 1)
        path.write_text(before + readme(found) + rest.split(END, 1)[1], encoding="utf-8")


def write(lines: list[facts.Line], folder: Path) -> None:
    found = Results(lines)
    folder.mkdir(parents=True, exist_ok=True)
    for target in found.targets:
        (folder / f"outside_{target}.svg").write_text(strips(found, target), encoding="utf-8")
    (folder / "outside_epsilon.svg").write_text(over_epsilon(found), encoding="utf-8")
    (folder / "outside.md").write_text(page(found), encoding="utf-8")
