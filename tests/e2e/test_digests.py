"""Released values under a known secret stay as they are, for every method, mode, unit and relation.

The strings and laws that derive noise, the lattices, the order of columns and the sampling of synthetic
rows are all in these values: a refactoring leaves every digest as it is. What a digest covers, and why
the float parts are compared under pinned kernels and not after a rounding, is in support/digests.py.
"""

import dataclasses
import json
import typing

import numpy as np
import pyarrow as pa
import pytest

from support.digest_kinds import all_kinds
from support.digests import (
    EXACT,
    FILE,
    PINNED,
    array_digest,
    differences,
    digests_here,
    digests_under,
    table_digest,
)
from support.drawing import CONFIGS, KEY_STRING, WORDS

KEPT = json.loads(FILE.read_text(encoding="utf-8"))
PLAN_ONLY = ("distance_guess", "expected_rows")  # options that no released value follows
FIXED = ("JLLaplaceConfig.delta",)  # options with one value that is allowed
# What moments measures last is chosen by what rows of its model show: floats of the processor's kernels.
AFTER_A_MODEL = {"choices", "tables"}
ONE_OF_EACH = (
    "dppro/row/sphere", "jl-laplace/element/sparse", "ron-gauss/tied/pure", "pca/rows/share",
    "lda/floor", "answers/few", "bounds/add-remove/pure",
    "moments/guess", "topk/em/replace-one/pure",
)  # fmt: skip


def chosen(*names):
    return [kind for kind in all_kinds() if kind.name in names]


def test_every_release_is_what_it_was(record_property):
    faults, compared = differences(digests_under(PINNED))
    assert not faults, f"{faults[:20]} ({len(faults)} in all); if meant: python tools/digests.py --write"
    assert compared >= sum(value.startswith(EXACT) for value in KEPT["parts"].values())
    record_property("figure", f"digests: {compared} of {len(KEPT['parts'])} released parts compared")


def test_noise_is_exact_on_every_machine():
    noise = {name: value for name, value in KEPT["parts"].items() if " noise " in name}
    loose = {name.split(" ")[-1] for name, value in noise.items() if not value.startswith(EXACT)}
    assert loose <= AFTER_A_MODEL
    assert {name.split(" ")[-1] for name in noise} > AFTER_A_MODEL
    assert {name.split(" ")[0] for name in KEPT["parts"]} == {kind.name for kind in all_kinds()}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_option_of_every_config_has_a_digest(config):
    made = [kind.config for kind in all_kinds() if isinstance(kind.config, config)]
    hints = typing.get_type_hints(config)
    for field in dataclasses.fields(config):
        used = {getattr(one, field.name) for one in made}
        literal = [
            choice
            for part in (hints[field.name], *typing.get_args(hints[field.name]))
            if typing.get_origin(part) is typing.Literal
            for choice in typing.get_args(part)
        ]
        wanted = {True, False} if hints[field.name] is bool else {*literal, *WORDS.get(field.name, ())}
        assert used >= wanted, f"{config.__name__}.{field.name}: {wanted - used}"
        has_choice = f"{config.__name__}.{field.name}" not in FIXED and field.name not in PLAN_ONLY
        assert len(used) > has_choice, f"{config.__name__}.{field.name}: one value only"


def test_another_key_string_changes_every_method(monkeypatch):
    """The comparison has power: all noise, and every table that follows it, is another."""
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")  # nothing to compile for a few small tables
    before = digests_here(chosen(*ONE_OF_EACH))
    monkeypatch.setattr(*KEY_STRING, b"another string")
    after = digests_here(chosen(*ONE_OF_EACH))
    assert before.keys() == after.keys()
    assert {name.split(" ")[0] for name in before} == set(ONE_OF_EACH)
    same = {name for name in before if before[name] == after[name]}
    assert not {name for name in same if " noise " in name or " table " in name}
    noise = sorted(name for name in before if " noise " in name)
    faults, _ = differences(after)
    assert {f"{name}: differs" for name in noise} <= set(faults)


def test_a_part_that_comes_or_goes_is_a_fault():
    drawn = {name: value.partition(":")[2] for name, value in KEPT["parts"].items()}
    assert differences(drawn)[0] == []
    first, *_ = drawn
    renamed = {name + "s" if name == first else name: value for name, value in drawn.items()}
    assert differences(renamed)[0] == [f"{first}: not drawn any more", f"{first}s: no digest is kept"]


def test_a_digest_sees_names_types_values_gaps_and_signs():
    base = pa.table({"a": pa.array([0.0, 1.0])})
    others = [
        pa.table({"b": pa.array([0.0, 1.0])}),
        pa.table({"a": pa.array([0.0, 1.0], pa.float32())}),
        pa.table({"a": pa.array([0, 1])}),
        pa.table({"a": pa.array([-0.0, 1.0])}),
        pa.table({"a": pa.array([0.0, 1.0 + 2.0**-52])}),
        pa.table({"a": pa.array([None, 1.0])}),
        pa.table({"a": pa.array([1.0, 0.0])}),
    ]
    assert len({table_digest(one) for one in [base, *others]}) == len(others) + 1
    assert table_digest(base) == table_digest(pa.concat_tables([base[:1], base[1:]]))
    zeros = np.zeros((2, 3))
    arrays = [zeros, zeros.T, zeros.ravel(), zeros.astype(np.int64), -zeros]
    assert len({array_digest(one) for one in arrays}) == len(arrays)
