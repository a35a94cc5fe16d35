"""Rules on ACS and adult records: rows that break one before and after, and scores.

    python benchmarks/utility/rules.py --data FOLDER [--rows 1000000] [--seeds 3] [--epsilon 1]
        [--only acs,adult]

On adult a husband is male, a wife female, whoever never married is neither, nobody has both a gain and
a loss, and the years of education follow from its name; scores are the area under the curve of
classifiers that learn from synthetic rows and the total variation of pairs.

Of ACS, FOLDER holds NIST's `nist_crc` (target, schema, judge.py). Codes are those of NIST's schema file;
rules are those of the ACS questionnaire: nobody below 15 has an income, a marital status or an industry;
nobody below 5 is asked about difficulties to walk or remember; the industry group follows from the code.
Releases are scored without rules and with them. With rules a table of --rows rows is drawn, too, and its
broken rows are counted by pandas, apart from the product.
"""

import argparse
import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

sys.path.append(str(Path(__file__).resolve().parents[1]))
from utility.moments_tables import load
from utility.two_way import two_way

from adumbra.data.opening import open_source
from adumbra.evaluate import tstr, utility
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.relations import Neighbours, Unit
from adumbra.schema.row_rules import Derived, Rule
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.workflow import prepare_in_memory

NUMBERS = {"AGEP": (0, 99), "POVPIP": (0, 501), "PINCP": (-20_000, 1_500_000), "DENSITY": (1_000, 4_000)}
NUMBERS |= {"PWGTP": (1, 700), "WGTP": (0, 700)}
GROUPS = {
    "0": (170, 290), "1": (370, 490), "2": (570, 690), "3": (770, 770), "4": (1070, 3990),
    "5": (4070, 4590), "6": (4670, 5790), "7": (6070, 6390), "8": (6470, 6780), "9": (6870, 7190),
    "10": (7270, 7790), "11": (7860, 7890), "12": (7970, 8290), "13": (8370, 8470), "14": (8561, 8690),
    "15": (8770, 9290), "16": (9370, 9590), "17": (9670, 9870), "18": (9920, 9920),
}  # fmt: skip
RULES = (
    {"when": {"AGEP": "<15"}, "then": {"PINCP": "missing"}},
    {"when": {"AGEP": "<15"}, "then": {"PINCP_DECILE": "missing"}},
    {"when": {"AGEP": "<15"}, "then": {"MSP": "missing"}},
    {"when": {"AGEP": "<15"}, "then": {"INDP": "missing"}},
    {"when": {"AGEP": ">=15"}, "then": {"PINCP": {"not": "missing"}}},
    {"when": {"AGEP": ">=15"}, "then": {"PINCP_DECILE": {"not": "missing"}}},
    {"when": {"AGEP": ">=15"}, "then": {"MSP": {"not": "missing"}}},
    {"when": {"AGEP": "<5"}, "then": {"DPHY": "missing"}},
    {"when": {"AGEP": "<5"}, "then": {"DREM": "missing"}},
    {"when": {"AGEP": ">=5"}, "then": {"DPHY": {"not": "missing"}}},
    {"when": {"AGEP": ">=5"}, "then": {"DREM": {"not": "missing"}}},
    {"when": {"AGEP": "<3"}, "then": {"EDU": "missing"}},
    {"when": {"AGEP": ">=3"}, "then": {"EDU": {"not": "missing"}}},
    {"when": {"AGEP": "<17"}, "then": {"DVET": "missing"}},
)


def target(folder):
    """The records, as NIST stores them: text, N for what does not apply."""
    return pd.read_csv(folder / "ma2019/ma2019.csv.gz", dtype=str, keep_default_na=False)


def declared(folder, frame):
    """The schema that NIST's public file gives; a null code is a missing value of its own."""
    codes = json.loads((folder / "ma2019/ma2019.json").read_text())["schema"]
    columns, data = [], {}
    for name in frame:
        can_miss = bool(codes[name].get("has_null"))
        texts = [None if value == "N" else value for value in frame[name]]
        if name in NUMBERS:
            low, high = NUMBERS[name]
            kind = Kind.NUMBER if name == "DENSITY" else Kind.INTEGER
            own = {"missing": "null"} if can_miss else {}
            columns.append(Column(name=name, kind=kind, lower=low, upper=high, **own))
            data[name] = pa.array([None if t is None else float(t) for t in texts])
        else:
            levels = [str(value) for value in codes[name]["values"] if str(value) != "N"]
            own = {"missing": "category"} if can_miss else {}
            columns.append(Column(name=name, kind=Kind.CATEGORY, categories=tuple(levels), **own))
            data[name] = pa.array(texts, pa.string())
    schema = Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    return pa.table(data), schema


def ruled(schema):
    """The schema with rules; the industry group is derived from the industry's code."""
    codes = next(column.categories for column in schema.columns if column.name == "INDP")
    members = {
        name: [code for code in codes if low <= int(code) <= high]
        for name, (low, high) in GROUPS.items()
    }
    group = Derived.read({"name": "INDP_CAT", "map": "INDP", "values": members})
    columns = tuple(column for column in schema.columns if column.name != "INDP_CAT")
    return replace(schema, columns=columns, rules=tuple(map(Rule.of, RULES)), derived=(group,))


def broken(frame):
    """Rows that break a rule, by pandas alone: nothing of the product reads the rules here."""
    age = frame["AGEP"].astype(float)
    bad = {}
    for name, since in (
        ("PINCP", 15),
        ("PINCP_DECILE", 15),
        ("MSP", 15),
        ("DPHY", 5),
        ("DREM", 5),
        ("EDU", 3),
    ):
        bad[f"{name} from {since}"] = (frame[name].isna()) != (age < since)
    bad["INDP below 15"] = (age < 15) & frame["INDP"].notna()
    bad["DVET below 17"] = (age < 17) & frame["DVET"].notna()
    code = frame["INDP"].astype(float)
    group = pd.Series(np.nan, index=frame.index)
    for name, (low, high) in GROUPS.items():
        group[(code >= low) & (code <= high)] = float(name)
    said = pd.to_numeric(frame["INDP_CAT"].astype(object))
    bad["INDP_CAT follows INDP"] = ~((said == group) | (said.isna() & group.isna()))
    counts = {name: int(rows.sum()) for name, rows in bad.items()}
    counts["any"] = int(np.logical_or.reduce([rows.to_numpy() for rows in bad.values()]).sum())
    return counts


def draw(table, schema, epsilon, seed, rows=None):
    config = MomentsConfig(epsilon=epsilon, delta=1e-6, sample_seed=seed, synthetic_rows=rows)
    return prepare_in_memory(open_source(table, schema), config).draw()


def score(folder, frame, made):
    """NIST's K-marginal score of a synthetic table, by the judge that lies beside the target."""
    spec = importlib.util.spec_from_file_location("judge", folder / "judge.py")
    judge = importlib.util.module_from_spec(spec)
    sys.modules["judge"] = judge
    spec.loader.exec_module(judge)
    schema = json.loads((folder / "ma2019/ma2019.json").read_text())["schema"]
    text = made[list(frame)].astype(object)
    text = text.where(text.notna(), "N").map(
        lambda v: str(int(v)) if v == v and isinstance(v, float) else str(v)
    )
    text["DENSITY"] = made["DENSITY"].astype(str)
    return judge.Judge(frame, text, schema, "PUMA").score()


YEARS = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
ADULT_RULES = (
    {"when": {"relationship": "Husband"}, "then": {"sex": "Male"}},
    {"when": {"relationship": "Wife"}, "then": {"sex": "Female"}},
    {
        "when": {"marital-status": "Never-married"},
        "then": {"relationship": {"not": ["Husband", "Wife"]}},
    },
    {"never": {"capital-gain": ">0", "capital-loss": ">0"}},
)


def ruled_adult(schema):
    """The schema with rules; the years of education are derived from its name."""
    members = {str(place + 1): [name] for place, name in enumerate(YEARS)}
    years = Derived.read({"name": "education-num", "map": "education", "values": members})
    columns = tuple(column for column in schema.columns if column.name != "education-num")
    return replace(schema, columns=columns, rules=tuple(map(Rule.of, ADULT_RULES)), derived=(years,))


def broken_adult(frame):
    """Rows that break a rule, by pandas alone."""
    years = frame["education"].astype(str).map({name: place + 1 for place, name in enumerate(YEARS)})
    kin, sex = frame["relationship"].astype(str), frame["sex"].astype(str)
    single = frame["marital-status"].astype(str) == "Never-married"
    bad = {
        "husband is male": (kin == "Husband") & (sex != "Male"),
        "wife is female": (kin == "Wife") & (sex != "Female"),
        "never married": single & kin.isin(["Husband", "Wife"]),
        "gain or loss": (frame["capital-gain"] > 0) & (frame["capital-loss"] > 0),
        "years follow education": pd.to_numeric(frame["education-num"].astype(str)) != years,
    }
    counts = {name: int(rows.sum()) for name, rows in bad.items()}
    counts["any"] = int(np.logical_or.reduce([rows.to_numpy() for rows in bad.values()]).sum())
    return counts


def adult(given):
    """Before and after on adult."""
    train, test, schema = load(given.data, "adult")
    print("adult, real rows that break a rule:", broken_adult(train.to_pandas()))
    kinds = {"without rules": schema, "with rules": ruled_adult(schema)}
    for name, kind in kinds.items():
        for seed in range(given.seeds):
            frame = draw(train, kind, given.epsilon, seed).table().to_pandas()
            frame["education-num"] = pd.to_numeric(frame["education-num"].astype(str))
            rows = pa.Table.from_pandas(frame[list(schema.names)], preserve_index=False)
            codes = [utility.table_codes(one.select(list(schema.names)), schema) for one in (rows, test)]
            scores = {
                "LR AUC": tstr.logistic(rows, test, schema).auc,
                "GB AUC": tstr.boosted(rows, test, schema).auc,
                "two-way TV": two_way(*codes),
            }
            shown = ", ".join(f"{key} {value:.4f}" for key, value in scores.items())
            print(f"adult {name}, seed {seed}: {shown}; broken", broken_adult(frame), flush=True)
    frame = draw(train, kinds["with rules"], given.epsilon, 0, rows=given.rows).table().to_pandas()
    print(f"adult, {given.rows:,} rows with rules:", broken_adult(frame))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", default="acs,adult")
    given = parser.parse_args()
    if "adult" in given.only:
        adult(given)
    if "acs" in given.only:
        acs(given)


def acs(given):
    """Before and after on ACS."""
    folder = given.data / "nist_crc"
    frame = target(folder)
    table, schema = declared(folder, frame)
    kinds = {"without rules": schema, "with rules": ruled(schema)}
    print("real rows that break a rule:", broken(frame.replace("N", np.nan)))
    for name, kind in kinds.items():
        for seed in range(given.seeds):
            made = draw(table, kind, given.epsilon, seed)
            rows = made.table().to_pandas()
            print(f"{name}, seed {seed}: score {score(folder, frame, rows):.1f}; broken", broken(rows))
            print("   moved", {k: v for k, v in made.facts.items() if "rules" in k}, flush=True)
    made = draw(table, kinds["with rules"], given.epsilon, 0, rows=given.rows)
    print(f"{given.rows:,} rows with rules:", broken(made.table().to_pandas()))


if __name__ == "__main__":
    main()
