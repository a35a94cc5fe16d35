"""Every table and figure of a paper that data allow, beside what the paper printed (`make papers`).

    python benchmarks/papers.py PAPER --data FOLDER [--draws 5] [--only "Table 1"] [--set my.toml]
                                [--environments FOLDER]      # for comparators of peers' packages
    python benchmarks/papers.py --roles        # what a data set may serve, for a TOML file of your own
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
from replication.sets import HERE, all_sets, read_set

from adumbra.errors import AdumbraError, InvalidInput

PAPERS = {module.PAPER.name: module.PAPER for module in (dppro, jl, ron_gauss, topk, components)}


def cells_of(experiment, sets):
    """The cells of one experiment on every data set that serves it."""
    if not experiment.takes:
        yield from experiment.cells()
        return
    fitting = [one for one in sets if experiment.takes in one.roles]
    if not fitting:
        print(
            f"{experiment.item}: no file of a data set of role {experiment.takes!r} in the data folder; "
            f"those described are in {HERE.relative_to(HERE.parents[2])}",
            file=sys.stderr,
        )
    for one in fitting:
        print(f"{experiment.item}: {one.name}", file=sys.stderr, flush=True)
        yield from experiment.cells(one)


def roles():
    """What a data set can be declared for, and which tables and figures that serves."""
    found = {}
    for paper in PAPERS.values():
        for experiment in (one for one in paper.experiments if one.takes):
            found.setdefault(experiment.takes, []).append(f"{paper.name} {experiment.item}")
    return {role: ", ".join(served) for role, served in found.items()}


def known_roles(own, folder):
    """Refuse a data set of the user's whose role no experiment has."""
    for path in own:
        one = read_set(path, folder)
        strange = [role for role in one.roles if role not in roles()]
        if strange:
            known = "; ".join(f'"{role}" ({served})' for role, served in roles().items())
            raise InvalidInput(
                f"{path.name}: no experiment takes {', '.join(strange)}; roles are {known}"
            )


def known_items(papers, only):
    """Refuse a table or figure that no paper has."""
    items = [experiment.item for paper in papers for experiment in paper.experiments]
    if only and not any(only in item for item in items):
        raise InvalidInput(f"--only {only}: there is none; there are {', '.join(items)}")


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
    parser.add_argument("--roles", action="store_true", help="list what a data set may serve")
    given = parser.parse_args()
    if given.roles:
        print("\n".join(f"{role}: {served}" for role, served in roles().items()))
        return
    if given.paper is None and not given.page:
        parser.error("name a paper, or give --page")
    warnings.simplefilter("ignore")  # convergence warnings of judges on noise
    store = Store(given.results, {"source": facts.source_state()["source"], "machine": facts.machine()})
    if given.paper is not None:
        if given.data is None:
            parser.error("give --data FOLDER")
        papers = list(PAPERS.values()) if given.paper == "all" else [PAPERS[given.paper]]
        peer_comparators.ENVIRONMENTS = given.environments
        try:
            known_items(papers, given.only)
            known_roles(given.set, given.data)
            sets, absent = all_sets(given.data, given.set)
            if absent:
                print(f"not in the data folder: {', '.join(absent)}", file=sys.stderr)
            for paper in papers:
                measure(paper, sets, store, given)
        except AdumbraError as error:
            parser.error(str(error))
        store.compact()
    if given.page:
        print(papers_page.write(PAPERS.values(), store.lines.values()))


if __name__ == "__main__":
    main()
