"""Train on synthetic, test on real; total variation of marginals."""

import numpy as np
import pyarrow as pa
import pytest
from utility.two_way import two_way

from adumbra.errors import InvalidInput
from adumbra.evaluate import tstr, utility
from adumbra.schema.schema import Schema
from support.moments import items_schema, mixed_schema, mixed_table, numbers_schema


def test_a_table_is_no_distance_from_itself_and_some_from_a_shuffled_one():
    schema, table = mixed_schema(), mixed_table(1000)
    codes = utility.table_codes(table, schema)
    rng = np.random.default_rng(0)
    shuffled = np.column_stack([rng.permutation(codes[:, j]) for j in range(codes.shape[1])])
    assert utility.one_way(codes, codes) == 0.0
    assert two_way(codes, codes) == 0.0
    assert utility.one_way(codes, shuffled) < 1e-9
    assert two_way(codes, shuffled) > 0.05
    assert two_way(codes, shuffled, most_pairs=3) > 0.0
    assert utility.total_variation(np.array([0, 0]), np.array([1, 1])) == 1.0
    assert utility.total_variation(np.array([0, 1]), np.empty(0, np.int64)) == 0.5
    assert utility.table_codes(table.slice(0, 0), schema).shape == (0, 6)
    with pytest.raises(InvalidInput, match="two columns"):
        two_way(codes[:, :1], codes[:, :1])
    with pytest.raises(InvalidInput, match="give a table of columns"):
        utility.table_codes(table, items_schema(3))


def test_classifiers_learn_from_like_rows_and_not_from_shuffled_ones():
    schema = mixed_schema()
    train, test = mixed_table(2000, seed=1), mixed_table(2000, seed=2)
    rng = np.random.default_rng(0)
    shuffled = train.set_column(5, "risk", train["risk"].take(pa.array(rng.permutation(2000))))
    for learner in (tstr.logistic, tstr.boosted):
        like = learner(train, test, schema)
        assert like.auc > 0.9
        assert like.balanced_accuracy > 0.8
        # A weak direction may rank rows either way, but it names no class.
        assert learner(shuffled, test, schema).balanced_accuracy < 0.6
    constant = train.set_column(5, "risk", pa.array(["low"] * 2000))
    assert tstr.logistic(constant, test, schema).balanced_accuracy == 0.5
    assert tstr.logistic(train, constant, schema).auc == 0.5
    assert tstr.STAMP == utility.STAMP == "NOT FOR RELEASE"


def test_a_class_that_synthetic_rows_lack_counts_against_them():
    schema = numbers_schema(2, classes=3)
    rng = np.random.default_rng(3)
    y = rng.integers(1, 4, 600)
    x = np.clip(rng.normal(size=(600, 2)) * 0.1 + np.stack([y == 2, y == 3], 1) * 0.5, -1, 1)
    real = pa.table({"x0": x[:, 0], "x1": x[:, 1], "y": y})
    lacking = real.filter(pa.array(y < 3))
    assert tstr.logistic(real, real, schema).balanced_accuracy > 0.95
    assert tstr.logistic(lacking, real, schema).balanced_accuracy < 0.7


def test_a_numeric_target_is_regressed():
    plain = numbers_schema(3)
    schema = Schema(columns=plain.columns, unit=plain.unit, neighbours=plain.neighbours, label="x2")
    x = np.random.default_rng(4).uniform(-0.4, 0.4, size=(500, 2))
    table = pa.table({"x0": x[:, 0], "x1": x[:, 1], "x2": x[:, 0] - x[:, 1]})
    assert tstr.ridge(table, table, schema) > 0.99
    with pytest.raises(InvalidInput, match="label is absent"):
        tstr.matrix(table, plain)
