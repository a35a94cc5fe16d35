"""Every table and figure of a paper that data allow, beside what the paper printed (`make papers`).

    python benchmarks/papers.py PAPER --data FOLDER [--draws 5] [--only "Table 1"] [--set my.toml]
                                [--environments FOLDER]      # for comparators of peers' packages
    python benchmarks/papers.py --page         # write docs/benchmarks/papers.md from what is stored

PAPER: dppro, jl, ron-gauss, top-k, components or all. Each cell is one JSON line in
benchmarks/results/papers.jsonl as soon as it is drawn. What stands there for the same source is not
drawn again, so a run that was stopped goes on; `--keep` keeps what another source drew as well.
Data sets are TOML files in benchmarks/replication/sets.
NOT FOR RELEASE: everything here is compared with private rows.
"""

import argparse
import sys
import warnings
from pathlib import Path

from comparison import facts
from replication import components, dppro, jl, papers_page, peer_comparators, ron_gauss, topk
from replication.cells import Store
from replication.sets import all_sets

from adumbra.errors import AdumbraError

PAPERS = {module.PAPER.name: module.PAPER for module in (dppro, jl, ron_gauss, topk, components)}


def cells_of(experiment, sets):
    """The cells of one experiment on every data set that serves it."""
    if not experiment.takes:
        yield from experiment.cells()
        return
    fitting = [one for one in sets if experiment.takes in one.roles]
    if not fitting:
        print(
            f"{experiment.item}: no data set of role {experiment.takes!r} in the data folder",
            file=sys.stderr,
        )
    for one in fitting:
        print(f"{experiment.item}: {one.name}", file=sys.stderr, flush=True)
        yield from experiment.cells(one)


def measure(paper, sets, store, given):
    for experiment in paper.experiments:
        if given.only and given.only not in experiment.item:
            continue
        drawn, seen = 0, []
        for cell in cells_of(experiment, sets):
            seen.append(cell)
            if not cell.needs or given.environments is not None:
                drawn += store.add(paper.name, cell, given.draws, keep=given.keep)
        store.forget(paper.name, seen)
        print(f"{paper.name}, {experiment.item}: {drawn} cells drawn", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", nargs="?", choices=[*PAPERS, "all"])
    parser.add_argument("--data", type=Path, help="folder with the data sets' files")
    parser.add_argument(
        "--set", type=Path, action="append", default=[], help="a TOML file of a data set of your own"
    )
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--environments", type=Path, help="a folder for peers' environments (PrivBayes)")
    parser.add_argument("--keep", action="store_true", help="keep what another source drew")
    parser.add_argument("--only", help='one table or figure, such as "Table 1"')
    parser.add_argument("--results", type=Path, default=facts.RESULTS / "papers.jsonl")
    parser.add_argument("--page", action="store_true", help="write the page from what is stored")
    given = parser.parse_args()
    if given.paper is None and not given.page:
        parser.error("name a paper, or give --page")
    warnings.simplefilter("ignore")  # convergence warnings of judges on noise
    store = Store(given.results, {"source": facts.source_state()["source"], "machine": facts.machine()})
    if given.paper is not None:
        if given.data is None:
            parser.error("give --data FOLDER")
        try:
            sets, absent = all_sets(given.data, given.set)
        except AdumbraError as error:
            parser.error(str(error))
        if absent:
            print(f"not in the data folder: {', '.join(absent)}", file=sys.stderr)
        peer_comparators.ENVIRONMENTS = given.environments
        for paper in PAPERS.values() if given.paper == "all" else [PAPERS[given.paper]]:
            measure(paper, sets, store, given)
        store.compact()
    if given.page:
        print(papers_page.write(PAPERS.values(), store.lines.values()))


if __name__ == "__main__":
    main()
