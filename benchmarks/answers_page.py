"""docs/benchmarks/answers.md from the lines of `answers_coverage.py`."""

import json
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/benchmarks/answers.md"
HEAD = """# Coverage of answers

Made by `python benchmarks/answers_coverage.py FOLDER`, then `--page`; do not edit. Exact statistics of
each table are fixed; noise of the release's law is drawn {draws} times, and every question is asked of
every draw. [How intervals are made](../explanation/answers.md).

- *answered*: the share of draws that tell the answer; the others say *hidden by noise*. *never*:
  questions that no draw told.
- *coverage*: of nominal 95 % intervals, per answer, among the draws that tell it: the mean and the least
  over the answers that 1 % of the draws or more tell. *least, all draws*: hidden answers, which
  exclude nothing (of a variance: little), count as covered.
- *below*: answers whose coverage is below 0.94, over all draws or among the told, by a binomial
  test with Bonferroni's correction (5 % per table and epsilon). *above*: beyond 0.97 by the same test,
  and not marked conservative in half of the draws. *marked*: the share of told answers that say so.
- *noise / sampling*: the standard error of the noise over that of an analyst of the table itself (no
  privacy), median over answers.
- Tables: adult, Massachusetts of NIST's CRC (acs_ma2019, people with a known income), pol; `300` and
  `1000`: generated numbers, 100,000 rows; `1000 wide`: 10^6 rows and 1,000 declared columns. Answers are
  of an `answers` release; *(counts)*: of a `moments` release.

"""
ORDER = ("adult", "acs_ma2019", "pol", "300", "1000", "1000 wide")
COLUMNS = (
    "table", "epsilon", "answer", "of", "answered", "never", "coverage, mean", "least",
    "least, all draws", "below", "above", "marked", "noise / sampling",
)  # fmt: skip
WHOLE = """
## Whole releases

Releases through a ledger, loaded and asked: means of five numbers and a regression on them. Beside it,
rows of `moments` releases taken for data (mean ± 1.96 sd/√n, OLS with its own errors): how often they
cover the same truths of the table, mean and least over columns.

"""
BESIDE = (
    "table", "epsilon", "releases", "told", "coverage among the told", "rows as data: means", "least",
    "coefficients", "least",
)  # fmt: skip


def head(names: tuple[str, ...]) -> str:
    """The first two lines of a table."""
    return "| " + " | ".join(names) + " |\n|" + " --- |" * len(names) + "\n"


def write(results: Path) -> None:
    """The page of the newest line of each cell."""
    newest = {}
    for text in results.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        key = (line["part"], line["table"], line["epsilon"], line.get("answer"))
        newest.pop(key, None)
        newest[key] = line
    lines = sorted(newest.values(), key=lambda line: (ORDER.index(line["table"]), line["epsilon"]))
    draws = [line for line in lines if line["part"] == "draws"]
    least = min(line["draws"] for line in draws)
    text = HEAD.replace("{draws}", f"{least:,}") + head(COLUMNS) + "".join(map(_row, draws))
    below, above = (sum(line[key] for line in draws) for key in ("below", "above"))
    asked = sum(line["of"] for line in draws)
    text += (
        f"\nOf {asked:,} answers {below} are below 0.94 by the test, and {above} above 0.97 and not "
        "marked conservative.\n"
    )
    text += (
        WHOLE
        + head(BESIDE)
        + "".join(
            _whole(line, newest.get(("naive", line["table"], line["epsilon"], None)))
            for line in lines
            if line["part"] == "releases"
        )
    )
    text += "\nNot measured: rows of `moments` releases of the generated tables.\n"
    for line in lines:
        if line["part"] == "seconds":
            mean, (name, fit) = line["mean"], next((k, v) for k, v in line.items() if "regr" in k)
            text += (
                f"\n## Time\n\nOn sums of 101 of 1,000 columns: one mean {1000 * mean:.1f} ms, one "
                f"{name} columns {1000 * fit:.0f} ms (middle of five, on a busy machine).\n"
            )
    PAGE.write_text(text, encoding="utf-8")


def _row(line: dict) -> str:
    ratio = "-" if line["ratio"] is None else f"{line['ratio']:.2g}"
    figures = [f"{line[key]:.3f}" for key in ("mean", "least", "least_all")]
    cells = [
        line["table"], f"{line['epsilon']:g}", line["answer"], line["of"], f"{line['answered']:.2f}",
        line["refused"], *("-" if one == "nan" else one for one in figures), line["below"],
        line["above"], f"{line['marked']:.2f}", ratio,
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _whole(line: dict, naive: dict | None) -> str:
    told = line["told"] / line["asked"]
    cover = line["hits"] / max(line["told"], 1)
    beside = [] if naive is None else [*naive["means"], *naive["coefficients"]]
    cells = [line["table"], f"{line['epsilon']:g}", str(line["releases"]), f"{told:.2f}", f"{cover:.3f}"]
    return "| " + " | ".join([*cells, *([f"{one:.2f}" for one in beside] or ["-"] * 4)]) + " |\n"
