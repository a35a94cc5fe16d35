"""What top-k's `auto` takes, and how far it stays behind the best of the arms it chooses from.

    python benchmarks/topk_choice.py --data FOLDER [--runs 8] [--out FILE.jsonl] [--sets retail tafeng]
    python benchmarks/topk_choice.py --from FILE.jsonl     # the tables of a stored run

Pure epsilon, add-remove, the number of rows declared as a guess. F-score is the share of the true k
columns that were found. The rule's constants were chosen on the first four tables, that for tables of
truths on the other four.
NOT FOR RELEASE: F-scores compare with the private truth.
"""

import argparse
import json
import statistics
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from published import topk as published
from utility.topk import KeptEngine, load, our_columns

from adumbra.data.opening import open_source
from adumbra.mechanisms.topk import TopKConfig
from adumbra.mechanisms.topk.choice import settled_config
from adumbra.mechanisms.topk.zone import as_sets
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.statistics.counts import ItemCounts, item_rows

SETS = ("bms_webview1", "kosarak_head", "retail", "tafeng")
TRUTHS = ("accidents_111", "pumsb_star_163", "jester", "plants")
KS = (10, 30, 50, 100, 200)
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
ARMS = ("frefirst", "tps-refine", "joint")


def source_of(path):
    """Item sets, or a table of columns that are true or false, and the number of rows."""
    if "items" in pq.read_schema(path).names:
        return load(path, Neighbours.ADD_REMOVE), pq.read_metadata(path).num_rows
    frame = pq.read_table(path).to_pandas().select_dtypes(["number", "bool"])
    table = pa.table({name: frame[name].to_numpy() > 0.5 for name in frame})
    columns = tuple(Column(name=name, kind=Kind.BOOLEAN) for name in frame)
    schema = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, columns=columns)
    return open_source(table, schema), table.num_rows


def measure(given):
    """One line per (table, k, epsilon): all F-scores of the arms, and what auto takes."""
    with given.out.open("w", encoding="utf-8") as file:
        for name in given.sets:
            (source, rows), engine = source_of(given.data / f"{name}.parquet"), KeptEngine()
            sets, width = as_sets(source), source.schema.width
            counts = engine.fold(sets, item_rows, ItemCounts(width=width), stage="count").units
            for k in (k for k in KS if k < 0.95 * width):
                exact = published.true_columns(counts, k)
                for epsilon in EPSILONS:
                    asked = TopKConfig(k=k, epsilon=epsilon, delta=0.0, expected_rows=rows)
                    line = {"data": name, "columns": width, "rows": rows, "k": k}
                    line |= {
                        "epsilon": epsilon,
                        "auto": str(settled_config(asked, source.schema).chosen),
                    }
                    for arm in ARMS:
                        draws = (
                            our_columns(source, engine, k, epsilon, arm, 0.0) for _ in range(given.runs)
                        )
                        line[arm] = [round(published.f_score(exact, one), 5) for one in draws]
                    file.write(json.dumps(line) + "\n")
                    file.flush()


def behind(line):
    """By how much auto's mean is below the best arm's, and half of the difference's 95 % interval."""
    mean = {arm: statistics.mean(line[arm]) for arm in ARMS}
    best = max(mean, key=mean.get)
    spread = sum(statistics.variance(line[arm]) / len(line[arm]) for arm in (line["auto"], best))
    return mean[best] - mean[line["auto"]], 2.0 * spread**0.5, best


def show(lines):
    """One table per group of data: cells, and how often and how far each policy is behind."""
    print("| tables | cells | policy | mean F | behind the best arm beyond the interval | at worst |")
    print("| --- | --- | --- | --- | --- | --- |")
    groups = {"item sets": SETS, "tables of truths": TRUTHS}
    for group, names in groups.items():
        held = [line for line in lines if line["data"] in names]
        before = {"auto": None, "frefirst": "frefirst", "tps-refine": "tps-refine"}
        for policy, arm in before.items() if held else ():
            taken = [line if arm is None else {**line, "auto": arm} for line in held]
            found = [behind(line) for line in taken]
            clear = sum(gap > half for gap, half, _ in found)
            mean = statistics.mean(statistics.mean(line[line["auto"]]) for line in taken)
            worst = max(gap for gap, _, _ in found)
            print(f"| {group} | {len(held)} | {policy} | {mean:.3f} | {clear} | {worst:.3f} |")
    print("\n| table | k | epsilon | auto | its F | best arm | its F | behind | interval |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for line in lines:
        gap, half, best = behind(line)
        if gap > half:
            told = [line["data"], line["k"], f"{line['epsilon']:g}", line["auto"]]
            told += [f"{statistics.mean(line[line['auto']]):.3f}", best]
            told += [f"{statistics.mean(line[best]):.3f}", f"{gap:.3f}", f"{half:.3f}"]
            print("| " + " | ".join(map(str, told)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("topk_choice.jsonl"))
    parser.add_argument("--sets", nargs="*", default=[*SETS, *TRUTHS])
    parser.add_argument("--from", dest="stored", nargs="*", type=Path)
    given = parser.parse_args()
    if not given.stored:
        if given.data is None:
            parser.error("give --data FOLDER, or --from a stored run")
        measure(given)
    paths = given.stored or [given.out]
    show([json.loads(text) for path in paths for text in path.read_text("utf-8").splitlines()])


if __name__ == "__main__":
    main()
