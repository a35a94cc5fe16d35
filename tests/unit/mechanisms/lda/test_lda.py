"""LDA publishing: refusals, calibration to the letter, tables in and out, one set of bits."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adumbra import workflow
from adumbra.data.encode import Encoder
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms import box_release
from adumbra.mechanisms.box_release import LARGEST_BITS, calibrate_moments
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.postprocess.greedy import most_rows
from adumbra.postprocess.subspace import class_moments
from adumbra.privacy.conversion import mu_of
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Schema
from adumbra.schema.schema import Kind as ColumnKind
from adumbra.statistics.box_moments import BoxMoments, Kind, shape_of, sigma_factors
from support.components import ADD, REPLACE, draft_of, mixed, released, table

BUDGETS = [{"epsilon": 1.0, "delta": 0.0}, {"epsilon": 1.0, "delta": 1e-6}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": 1.0, "floor": -1.0}, "floor=-1.0"),
        ({"epsilon": 1.0, "loss": "auto"}, "loss='auto': must be one of squared, absolute"),
        ({"epsilon": 1.0, "synthetic_rows": 0}, "synthetic_rows=0"),
        ({"epsilon": 1.0, "expected_rows": 0}, "expected_rows=0"),
    ],
)
def test_a_bad_config_is_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        LDAConfig(**options)


def test_a_schema_without_proof_is_refused():
    config = LDAConfig(epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidInput, match="label is absent"):
        workflow.plan(config, mixed(label=None))
    element = Schema.numeric(2, 0, 1, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    with pytest.raises(Unsupported, match="unit=element"):
        workflow.plan(config, element)


def test_more_rows_than_the_sampler_takes_are_refused_before_anything_is_paid():
    schema = mixed(REPLACE)
    most = most_rows(Encoder(schema).width)
    plan = workflow.plan(LDAConfig(epsilon=1.0, synthetic_rows=most), schema)
    assert plan.details["encoded_columns"] == Encoder(schema).width
    with pytest.raises(
        InvalidInput, match=rf"synthetic_rows={most + 1}: .* at most {most} can be drawn"
    ):
        workflow.plan(LDAConfig(epsilon=1.0, synthetic_rows=most + 1), schema)
    label = Column(name="label", kind=ColumnKind.CATEGORY, categories=("a", "b"))
    numbers = Schema.numeric(300, 0, 1, rows=10**8)
    wide = replace(numbers, columns=(*numbers.columns, label), label="label")
    with pytest.raises(InvalidInput, match=r"synthetic_rows=10000000: with 300 encoded columns"):
        workflow.plan(LDAConfig(epsilon=1.0), wide)


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_the_scale_is_the_sensitivity_over_the_budget(neighbours):
    schema = mixed(neighbours, rows=1000 if neighbours is REPLACE else None)
    encoder = Encoder(schema)
    bound = BoxMoments(shape_of(encoder, classes=3)).sensitivity(neighbours)
    pure = workflow.plan(LDAConfig(epsilon=0.5, delta=0.0), schema).noise[0]
    assert bound.l1 / 0.5 <= pure.scale <= bound.l1 / 0.5 * 1.001
    lines = workflow.plan(LDAConfig(epsilon=0.5, delta=1e-6), schema).noise
    loose = lines[0]
    assert [line.purpose for line in lines[1:]] == [
        "moments, products of two columns",
        "moments, sums",
        "moments, counts",
    ]
    assert lines[1].scale == pytest.approx(loose.scale / 2**0.5)
    assert len(workflow.plan(LDAConfig(epsilon=0.5, delta=0.0), schema).noise) == 1
    assert bound.l2 / mu_of(0.5, 1e-6) <= loose.scale <= bound.l2 / mu_of(0.5, 1e-6) * 1.001
    noise = calibrate_moments(schema, encoder, 0.5, is_pure=True, classes=3)
    assert noise.deviation(Kind.CROSS) == pytest.approx(noise.scale.scale * 2**0.5)
    noise = calibrate_moments(schema, encoder, 0.5, is_pure=False, classes=3)
    assert (
        noise.deviation(Kind.CROSS)
        == noise.scale.scale * sigma_factors(noise.statistic.shape)[Kind.CROSS]
    )


def test_no_number_of_rows_leaves_the_integers():
    few, many = mixed(rows=1000), mixed()
    for schema in (few, many):
        noise = calibrate_moments(schema, Encoder(schema), 1000.0, is_pure=False, classes=3)
        assert schema.row_limit * 2.0**-noise.scale.exponent <= 2.0**LARGEST_BITS


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_tables_come_out_as_they_went_in(budget, neighbours):
    schema, data = mixed(neighbours), table(3000)
    draft = draft_of(data, schema, LDAConfig(**budget, loss="absolute"))
    out = released(draft)
    assert out.column_names == list(schema.names)
    assert out.schema.field("a").type == pa.float64()
    assert out.schema.field("n").type == pa.int64()
    assert out.schema.field("flag").type == pa.bool_()
    assert set(out["city"].to_pylist()) <= {"x", "y", "z", None}
    assert set(out["kind"].to_pylist()) == {"r", "s", "t"}
    a, b = out["a"].to_numpy(), out["b"].to_numpy()
    assert a.min() >= 0
    assert a.max() <= 10
    assert np.abs(b).max() <= 1
    assert (out.num_rows == 3000) == (neighbours is REPLACE)
    assert abs(out.num_rows - 3000) < 600


def test_a_large_budget_gives_the_moments_of_the_table():
    schema, data = mixed(), table(20000)
    draft = draft_of(data, schema, LDAConfig(epsilon=1000.0, delta=1e-6, synthetic_rows=4000))
    out = released(draft).to_pandas()
    real = data.to_pandas()
    for kind in ("r", "s", "t"):
        ours, theirs = out[out.kind == kind], real[real.kind == kind]
        assert ours.a.mean() == pytest.approx(theirs.a.clip(0, 10).fillna(5).mean(), abs=0.1)
        assert ours.flag.astype(float).mean() == pytest.approx(
            theirs.flag.astype(float).mean(), abs=0.02
        )
        assert ours.city.isna().mean() == pytest.approx(theirs.city.isna().mean(), abs=0.02)
    assert out.kind.value_counts(normalize=True)["r"] == pytest.approx(0.5, abs=0.02)
    assert np.linalg.eigvalsh(draft.arrays["second_moment"]).min() >= -1e-12


def test_the_same_bits_on_any_engine_and_layout():
    schema, data, config = mixed(), table(9000), LDAConfig(epsilon=1.0, delta=0.0, synthetic_rows=50)
    first = draft_of(data, schema, config, engine=LocalEngine(threads=1, rows_per_block=4096))
    second = draft_of(data, schema, config, engine=LocalEngine(threads=2, rows_per_block=8192))
    assert released(first).equals(released(second))
    for name in first.arrays:
        assert np.array_equal(first.arrays[name], second.arrays[name])


def test_the_plan_tells_the_error():
    plan = workflow.plan(LDAConfig(epsilon=1.0, delta=0.0), mixed(rows=10**6))
    assert plan.expected["class_mean_error"] < 1e-3
    assert len(plan.notes) == 1
    poor = workflow.plan(LDAConfig(epsilon=0.01, delta=0.0, expected_rows=100), mixed())
    assert "noise alone" in poor.notes[1]
    assert workflow.plan(LDAConfig(epsilon=1.0, delta=0.0), mixed()).expected == {}
    assert plan.purposes == (box_release.PURPOSE,)


def test_covariances_within_two_deviations_of_their_noise_are_taken_for_none():
    rows, sigma = 1000.0, 10.0  # of a sum: 0.01 of an average
    matrix = np.diag([200.0, 200.0, 200.0, rows])
    matrix[0, 1] = matrix[1, 0] = 19.0
    matrix[0, 2] = matrix[2, 0] = 60.0
    low = np.full(3, -0.5)
    moments = class_moments(matrix, rows, low, -low, sigma=sigma, edge=0.0)
    assert moments.second[0, 1] == pytest.approx(0.0, abs=1e-15)
    assert moments.second[0, 2] == pytest.approx(0.06 * (1 - (2 / 6) ** 2))
    assert np.diag(moments.second) == pytest.approx([0.2] * 3)
    lifted = class_moments(matrix, rows, low, -low, sigma=sigma, edge=0.17)
    assert np.linalg.eigvalsh(lifted.second).min() == pytest.approx(0.17)


def test_an_empty_table_is_a_release_too():
    out = released(draft_of(table(0), mixed(ADD), LDAConfig(epsilon=1.0, delta=0.0, synthetic_rows=3)))
    assert out.num_rows == 3
