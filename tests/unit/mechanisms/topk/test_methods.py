"""Every method on easy data, on edges, and on both relations."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.topk import Algorithm, TopKConfig, svt
from adumbra.mechanisms.topk.counting import NoisyCounts, count_noise
from adumbra.mechanisms.topk.methods import filled, midway, pfm, zones
from adumbra.mechanisms.topk.release import prepare_run
from adumbra.numerics import Lattice
from adumbra.privacy.recorded_noise import NoiseRecord, fixed_grant, recording_grant
from adumbra.relations import Neighbours, Reach
from adumbra.statistics.counts import Norm
from adumbra.workflow import plan
from support.methods import settled_on
from support.topk import DirectEngine, item_source, market, release_of

METHODS = [(method.value, 0.0) for method in Algorithm] + [("frefirst", 1e-6), ("gumbel", 1e-6)]
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE]
COUNTED = {"auto", "frefirst", "tps-em", "tps-pfm", "tps-refine"}


def items_of(draft):
    return draft.tables["data"]["item"].to_pylist()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("method", "delta"), METHODS)
def test_with_a_large_budget_the_true_columns_come_out(method, delta, relation):
    rows = [
        [j for j in range(12) if i % (j + 1) == 0] for i in range(2000)
    ]  # item j in about 1/(j+1) of rows
    config = TopKConfig(k=5, epsilon=200.0, delta=delta, algorithm=method, length=None)
    draft = release_of(item_source(rows, 12, relation), config)
    assert sorted(items_of(draft)) == [0, 1, 2, 3, 4]
    assert draft.tables["data"]["rank"].to_pylist() == [1, 2, 3, 4, 5]
    has_counts = "count" in draft.tables["data"].column_names
    by_rule = method == "auto" and relation is Neighbours.REPLACE_ONE  # few of many rows: joint
    assert has_counts == (method in COUNTED and not by_rule)
    if has_counts:
        errors = draft.tables["data"]["standard_error"].to_numpy()
        exact = np.array([sum(j in row for row in rows) for j in items_of(draft)])
        assert (np.abs(draft.tables["data"]["count"].to_numpy() - exact) < 40 * errors + 1).all()


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1000.0])
@pytest.mark.parametrize("k", [1, 7, 30])
@pytest.mark.parametrize(("method", "delta"), METHODS)
def test_always_k_distinct_columns(method, delta, k, epsilon):
    config = TopKConfig(k=k, epsilon=epsilon, delta=delta, algorithm=method)
    for seed, rows in enumerate((market(60, 30), [], [[1, 1, 1], []], [list(range(30))] * 3)):
        items = items_of(release_of(item_source(rows, 30), config, seed, engine=DirectEngine()))
        assert len(items) == len(set(items)) == k
        assert set(items) <= set(range(30))


def test_joint_refuses_what_floats_cannot_hold():
    config = TopKConfig(k=5000, epsilon=1e-4, delta=0.0, algorithm="joint")
    with pytest.raises(
        Unsupported, match=r"k=5000, epsilon=0.0001, 1000000 columns: too fine for the joint"
    ):
        plan(config, item_source([], 10**6).schema)


@pytest.mark.parametrize("method", [method.value for method in Algorithm])
def test_a_universe_of_one_column(method):
    config = TopKConfig(k=1, epsilon=1.0, delta=0.0, algorithm=method)
    assert items_of(release_of(item_source([[0], []], 1), config)) == [0]


@pytest.mark.parametrize("method", sorted(COUNTED))
def test_a_public_length_costs_no_scan(method):
    source = item_source(market(), 30)
    config = TopKConfig(k=5, epsilon=1.0, delta=0.0, algorithm=method, length=3)
    draft = release_of(source, config)
    assert draft.facts["length"] == 3
    assert "length" not in plan(config, source.schema).purposes
    assert release_of(source, TopKConfig(k=5, epsilon=1.0, delta=0.0, length=500)).facts["length"] == 30


def test_every_purpose_of_a_plan_is_drawn_and_no_other():
    source = item_source(market(400, 30), 30)
    for method, delta in METHODS:
        config = TopKConfig(k=8, epsilon=0.5, delta=delta, algorithm=method)
        public = plan(config, source.schema)
        record = NoiseRecord()
        release_of(source, config, grant=recording_grant(record, 3, public.guarantee, public.purposes))
        assert {purpose for purpose, _ in record.calls} == set(public.purposes)


def test_names_come_from_the_public_dictionary(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text('item,name\n100,bread\n\n101,"milk, fresh"\n')
    source = item_source([[0, 1]] * 50 + [[0]] * 50, 3, lower=100, dictionary=str(path))
    draft = release_of(source, TopKConfig(k=3, epsilon=100.0, delta=0.0, all_counts=True))
    assert draft.tables["data"].select(["item", "name"]).to_pylist() == [
        {"item": 100, "name": "bread"},
        {"item": 101, "name": "milk, fresh"},
        {"item": 102, "name": None},
    ]
    assert draft.tables["counts"].num_rows == 3
    assert draft.tables["data"].schema.field("name").type == pa.string()


@pytest.mark.parametrize(
    ("content", "message"),
    [("bread\n", r"line 1: must read item,name"), ("1,a\n2\t\n", r"line 2: must read item,name")],
)
def test_a_bad_dictionary_is_refused_before_any_row(tmp_path, content, message):
    path = tmp_path / "items.csv"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=message):
        release_of(item_source([[0]], 3, dictionary=str(path)), TopKConfig(k=1, epsilon=1.0, delta=0.0))


def test_an_absent_or_unreadable_dictionary_is_refused_by_the_plan(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("1,caf\xe9\n".encode("latin-1"))
    config = TopKConfig(k=1, epsilon=1.0, delta=0.0)
    for name, fault in (("nowhere.csv", "no such file"), (str(path), "cannot be read as UTF-8")):
        source = item_source([[0]], 3, dictionary=name)
        with pytest.raises(InvalidInput, match=f"{fault}; give a public file of item,name lines"):
            plan(config, source.schema)


def test_all_counts_hold_every_column_once():
    draft = release_of(
        item_source(market(), 30), TopKConfig(k=4, epsilon=1.0, delta=0.0, all_counts=True)
    )
    counts = draft.tables["counts"]
    assert sorted(counts["item"].to_pylist()) == list(range(30))
    assert counts["count"].to_pylist() == sorted(counts["count"].to_pylist(), reverse=True)
    assert draft.tables["data"].equals(counts.slice(0, 4))


def noisy(values, scale):
    calibrated = count_noise(1, 1 / scale, Reach(Neighbours.ADD_REMOVE), norm=Norm.L1)
    units = (np.array(values) * 2**calibrated.bits).astype(np.int64)
    return NoisyCounts(lattice=Lattice(units, -calibrated.bits), noise=calibrated)


def test_zones_are_safe_near_and_far():
    safe, near = zones(noisy([100, 50, 49, 48, 51, 10], 1.0), 3)
    assert safe.tolist() == [0]
    assert near.tolist() == [4, 1, 2, 3]
    safe, near = zones(noisy([5, 5, 5, 5], 1.0), 2)  # ties go by number
    assert (safe.tolist(), near.tolist()) == ([], [0, 1, 2, 3])


def test_the_draft_states_the_noise_that_was_drawn():
    source = item_source(market(), 30)
    for method in ("frefirst", "tps-refine"):
        config = TopKConfig(k=5, epsilon=1.0, delta=0.0, algorithm=method)
        draft = release_of(source, config)
        drawn = {part.purpose: part for part in draft.noise}
        assert [part.purpose for part in draft.noise] == list(plan(config, source.schema).purposes)
        assert drawn["counts"].scale == draft.facts["scale"]
        assert drawn["counts"].sensitivity == draft.facts["length"]


def recorded(source, config, seed=3):
    """A draft, and the scales that were drawn, by purpose in order."""
    public, record = plan(config, source.schema), NoiseRecord()
    grant = recording_grant(record, seed, public.guarantee, public.purposes)
    draft = release_of(source, config, grant=grant)
    scales = {}
    for (purpose, _), (call, _) in record.calls.items():
        scales.setdefault(purpose, []).append(float(call.scale))
    return draft, scales


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "method", [method.value for method in Algorithm if method is not Algorithm.AUTO]
)
def test_the_card_s_scales_are_those_that_were_drawn(method, relation):
    source = item_source(market(), 30, relation)
    config = TopKConfig(k=5, epsilon=0.1, delta=0.0, algorithm=method)
    draft, scales = recorded(source, config)
    assert [part.purpose for part in draft.noise] == list(plan(config, source.schema).purposes)
    assert {part.purpose for part in draft.noise} == set(scales)
    for part in draft.noise:
        if part.purpose == "select-depth":  # drawn at scale 1 from utilities already weighed
            continue
        assert part.scale == scales[part.purpose][0]
        unlike = [scale for scale in scales[part.purpose] if scale != part.scale]
        assert not unlike or method == "tps-pfm"  # whose scales follow the labels


def test_a_zone_s_selection_is_for_fewer_columns_than_k():
    rows = [[0]] * 4000 + [[1]] * 3000 + [[2], [3], [4], [5]] * 20
    for method in ("tps-em", "tps-pfm"):
        config = TopKConfig(k=4, epsilon=1.0, delta=0.0, algorithm=method)
        source = item_source(rows, 6)
        draft, scales = recorded(source, config)
        assert draft.facts["zone_wanted"] == 2
        assert draft.facts["zone_columns"] > 2
        entry = next(part for part in draft.noise if part.purpose == "select")
        asked = next(part for part in plan(config, source.schema).noise if part.purpose == "select")
        assert entry.scale == scales["select"][0] < 0.6 * asked.scale


def test_midway_and_filling():
    exact = np.array([3, 9, 4, 9])
    assert [midway(exact, k) for k in (1, 2, 3, 4)] == [18, 13, 7, 6]
    assert filled(np.array([5, 2]), np.array([1, 2, 3, 5]), 4).tolist() == [5, 2, 1, 3]


def test_a_budget_that_ends_inside_a_block_is_filled_up_in_noisy_order(monkeypatch):
    """One acceptance, then a refusal while one column is left to find: it takes all that remains."""
    spent = []

    def silent(_grant, purpose):
        def draw(halves, epsilon):
            spent.append((purpose, epsilon, len(halves)))
            return halves

        return draw

    monkeypatch.setattr(svt, "drawing", silent)
    source = item_source(market(), 30)
    config = TopKConfig(k=2, epsilon=1.0, delta=0.0, algorithm="tps-pfm")
    run = prepare_run(
        settled_on(source, config), source, DirectEngine(), fixed_grant(0, None, ("unused",))
    )
    exact, zone = np.array([10, 0, 9, 8]), np.array([7, 3, 5, 1])
    accepted = pfm(run, exact, midway(exact, 2), zone, 2)
    assert accepted.tolist() == [7]  # 9 and 8 lie above the threshold too, and are never looked at
    assert filled(accepted, zone, 2).tolist() == [7, 3]
    threshold, _, last = [epsilon for _, epsilon, _ in spent]
    assert len(spent) == 3
    assert threshold + last == Fraction(run.budget["select"])  # to the last bit, and no more


def test_pfm_and_refine_spend_nothing_on_a_zone_that_is_exact():
    rows = [[0, 1]] * 5000 + [[2]] * 10
    source = item_source(rows, 3)
    for method, unused in (("tps-em", "select"), ("tps-pfm", "select"), ("tps-refine", "zone-counts")):
        config = TopKConfig(k=2, epsilon=1.0, delta=0.0, algorithm=method)
        public = plan(config, source.schema)
        record = NoiseRecord()
        draft = release_of(
            source, config, grant=recording_grant(record, 3, public.guarantee, public.purposes)
        )
        assert sorted(items_of(draft)) == [0, 1]
        assert unused not in {purpose for purpose, _ in record.calls}
        assert {part.purpose for part in draft.noise} == {purpose for purpose, _ in record.calls}
        assert draft.facts["zone_columns"] == draft.facts["zone_wanted"]
