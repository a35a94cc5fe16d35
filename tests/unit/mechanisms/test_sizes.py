"""What a plan says of memory and disk: never below what a release takes, and nothing private in it."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adumbra import workflow
from adumbra.cli.engines import require_memory_for
from adumbra.engine.local import AHEAD_BYTES, LocalEngine
from adumbra.errors import InvalidInput, NoSpace, OutOfMemory
from adumbra.mechanisms import box_release, sizes
from adumbra.mechanisms.methods import METHODS, method_named, plan
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.ron_gauss.config import RONGaussConfig
from adumbra.mechanisms.sizes import Size, Work, duration
from adumbra.mechanisms.topk import TopKConfig
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.release import storage
from adumbra.release.card import CARD_LIMIT
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema

CONFIG = DPProConfig(n_components=2, epsilon=0.5)
SCHEMA = Schema.numeric(3, -1.0, 1.0)
SMALL = Size(memory=0, output=0, card=0, rows=1)


@pytest.fixture
def ledger():
    with memory_ledger() as book:
        book.register(Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 2.0, 1e-6))
        yield book


def prepare(ledger, out, check=True):
    return workflow.prepare(
        np.zeros((50, 3)), CONFIG, schema=SCHEMA, ledger=ledger, population="p", out=out, check=check
    )


def with_size(prepared, **sizes):
    plan = replace(prepared.plan, size=replace(SMALL, **sizes))
    return replace(prepared, settled=replace(prepared.settled, plan=plan))


@pytest.mark.parametrize(
    ("sizes", "kind", "words"),
    [
        ({"output": 2**60}, NoSpace, "the release needs up to 1,152,921,505 GB of disk and "),
        ({"memory": 2**50}, OutOfMemory, "memory: the method needs up to 1,125,900 GB and "),
        ({"card": CARD_LIMIT}, InvalidInput, "a card of .* bytes: at most"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_charge(ledger, tmp_path, sizes, kind, words):
    prepared = with_size(prepare(ledger, tmp_path / "out", check=False), **sizes)
    for act in (prepared.check, prepared.commit):
        with pytest.raises(kind, match=words) as caught:
            act()
        assert not hasattr(caught.value, "__notes__")
    assert ledger.show("p")[0].entries == ()
    with_size(prepared).commit()


def test_room_that_is_gone_since_the_question_is_seen(ledger, tmp_path):
    prepared = prepare(ledger, tmp_path / "out")
    with pytest.raises(OutOfMemory):
        with_size(prepared, memory=2**50).commit()
    assert ledger.show("p")[0].entries == ()


def test_a_limit_of_the_process_or_of_its_group_counts(monkeypatch, tmp_path):
    most = storage.free_memory()
    assert 2**20 < most < 2**50
    group = tmp_path / "cg/inner"
    group.mkdir(parents=True)
    (tmp_path / "cg/memory.max").write_text("5000\n")
    (tmp_path / "cg/memory.current").write_text("3000\n")
    (tmp_path / "cg/memory.stat").write_text("anon 2500\ninactive_file 400\n")
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("100\n")
    right = storage._lines

    def lines(path):
        if str(path) == "/proc/self/cgroup":
            return ["0::/inner"]
        text = str(path).replace("/sys/fs/cgroup", str(tmp_path / "cg"))
        return right(type(path)(text))

    monkeypatch.setattr(storage, "_lines", lines)
    assert list(storage._control_groups()) == [2400]
    assert storage.free_memory() == 2400
    monkeypatch.setattr(storage, "_lines", lambda _path: [])  # another system: nobody knows
    assert storage.free_memory() is None
    storage.require_memory(2**60, 0)


def test_300_rows_of_20000_columns_do_not_fit_3_gigabytes(monkeypatch):
    size = workflow.plan(MomentsConfig(epsilon=1.0), Schema.numeric(20_000, 0, 1, rows=300)).size
    monkeypatch.setattr(storage, "free_memory", lambda: 3 * 10**9)
    with pytest.raises(OutOfMemory, match="memory: the method needs up to"):
        storage.require_memory(size.memory, 0)


@pytest.mark.parametrize(
    ("config", "rows", "least", "most"),  # peaks of benchmarks/peaks.py on two cores, and a plan's limit
    [
        (DPProConfig(n_components=200, row_norm=4.0, epsilon=1.0), 300_000, 0.90e9, 2.3e9),
        (DPProConfig(n_components=20, row_norm=4.0, epsilon=1.0), 100_000, 0.80e9, 1.2e9),
        (TopKConfig(k=20, epsilon=1.0), 100_000, 0.78e9, 1.2e9),
    ],
)
def test_item_sets_are_planned_as_sets(monkeypatch, config, rows, least, most):
    """Found in review: projections counted dense rows (10 times the peak), top-k two blocks too few."""
    monkeypatch.setattr(sizes, "workers", lambda: 2)
    spec = ItemSpec(column="items", lower=0, upper=19_999)
    schema = Schema(columns=(), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, items=spec, rows=rows)
    assert least < workflow.plan(config, schema).size.memory < most


def test_a_limit_of_memory_takes_the_place_of_what_is_free(ledger, tmp_path, monkeypatch):
    prepared = prepare(ledger, tmp_path / "out", check=False)
    with pytest.raises(OutOfMemory, match="memory=1.0 MB: the method needs up to"):
        replace(prepared, engine=LocalEngine(memory=10**6)).check()
    monkeypatch.setattr(storage, "free_memory", lambda: 1)
    with pytest.raises(OutOfMemory, match="memory: the method needs up to"):
        prepared.check()
    allowed = replace(prepared, engine=LocalEngine(memory=10**9))
    assert allowed.engine._ahead < AHEAD_BYTES
    allowed.commit()


def test_rows_that_are_not_written_are_held():
    with workflow.prepare_in_memory(workflow.open_source(np.zeros((50, 3)), SCHEMA), CONFIG) as held:
        with pytest.raises(OutOfMemory, match="memory: the method needs up to"):
            with_size(held, output=2**60).draw()
        with_size(held, output=100).draw()


SYNTHETIC = {  # every method with synthetic rows, with the options that it needs here
    "lda": {},
    "moments": {},
    "pca": {"n_components": 5, "output": "sample"},
    "ron-gauss": {},
}


def test_memory_of_synthetic_rows_does_not_grow_with_their_number():
    """Found in review: lda draws block by block, and its plan counted all rows (49 GB of 10^7)."""
    drawing = {one.name for one in METHODS if "synthetic_rows" in one.config.__dataclass_fields__}
    assert drawing == SYNTHETIC.keys()
    for name, options in SYNTHETIC.items():
        schema = Schema.numeric(100, 0, 1, rows=10_000)
        schema = labelled(schema) if name == "lda" else schema
        few, many = (
            plan(
                method_named(name).config(epsilon=1.0, delta=1e-6, synthetic_rows=rows, **options),
                schema,
            ).size
            for rows in (2 * 10**5, 2 * 10**7)
        )
        assert few.memory == many.memory < 1.2 * 10**9
        assert many.output > 50 * few.output
        assert many.seconds > 10 * few.seconds


THIN = DPProConfig(n_components=20, epsilon=1.0)


@pytest.mark.parametrize(
    ("config", "rows", "width", "least", "most"),
    [  # peaks that were measured on two cores, with row groups of 16 to 500 MB, and a limit
        (THIN, 5_000, 10_000, 1.37e9, 1.6e9),
        (JLLaplaceConfig(n_components=20, epsilon=1.0), 5_000, 10_000, 1.05e9, 1.6e9),
        (RONGaussConfig(epsilon=1.0, synthetic_rows=1000), 5_000, 10_000, 1.41e9, 1.6e9),
        (THIN, 20_000, 10_000, 1.67e9, 2.2e9),
        (RONGaussConfig(epsilon=1.0, synthetic_rows=1000), 20_000, 10_000, 1.70e9, 2.4e9),
        (THIN, 200_000, 1_000, 1.24e9, 1.6e9),
        (THIN, 1_000, 100_000, 4.18e9, 5e9),  # of 16 groups, whose footers take 1.8 GB
    ],
)
def test_wide_tables_are_planned_in_slices(config, rows, width, least, most):
    """Found in review: noise blocks were counted whole, four times per thread (4.4 and 7.1 GB)."""
    schema = Schema.numeric(width, -1.0, 1.0, rows=rows)
    assert least < plan(config, schema, threads=2).size.memory < most


@pytest.mark.parametrize("width", [1_000, 100_000])
def test_a_very_long_table_is_planned_as_many_files(width):
    """Its row groups were counted as those of one file: 145 GB for footers of 8 TB."""
    long, longer = (plan(THIN, Schema.numeric(width, 0, 1, rows=rows)).size for rows in (10**7, 10**9))
    assert longer.memory == long.memory < (2e9 if width == 1_000 else 20e9)


def test_memory_follows_the_threads_of_the_engine(ledger, tmp_path):
    """Found in review: a plan counted the cores of its own machine, whatever --threads said."""
    schema = Schema.numeric(1000, -1.0, 1.0, rows=200_000)
    found = [plan(THIN, schema, threads=count).size.memory for count in (1, 2, 8, 16, 64)]
    assert found == sorted(found)
    assert found[0] < 0.7 * found[3]
    assert found[-1] < 1.2 * found[3]  # so many blocks do not fit into what is read ahead
    assert plan(THIN, schema).size.memory == plan(THIN, schema, threads=os.cpu_count()).size.memory
    with pytest.raises(InvalidInput, match="threads=0: must be at least 1"):
        plan(THIN, schema, threads=0)
    planned = [
        workflow.prepare(
            np.zeros((50, 3)),
            CONFIG,
            schema=SCHEMA,
            ledger=ledger,
            population="p",
            out=tmp_path / "out",
            engine=LocalEngine(threads=count),
        ).plan.size.memory
        for count in (1, 40)
    ]
    assert planned[0] < planned[1]
    assert sizes.workers() == os.cpu_count()  # nothing stays


def test_expected_time_is_said_wherever_work_can_be_counted():
    many = Schema.numeric(20, 0, 1, rows=10**6)
    bought = replace(many, columns=tuple(replace(one, private=True) for one in many.columns))
    flags = tuple(Column(name=f"b{i}", kind=Kind.BOOLEAN) for i in range(20))
    cases = {
        "answers": many, "bounds": bought, "dppro": many, "jl-laplace": many, "lda": labelled(many),
        "moments": many, "pca": many, "ron-gauss": many, "top-k": replace(many, columns=flags),
    }  # fmt: skip
    options = {name: {"n_components": 5} for name in ("dppro", "jl-laplace", "pca")}
    options["top-k"] = {"k": 5}
    assert cases.keys() == {one.name for one in METHODS}
    for name, schema in cases.items():
        config = method_named(name).config(epsilon=1.0, **options.get(name, {}))
        few = plan(config, replace(schema, rows=10**5)).size.seconds
        assert 1.0 < few < plan(config, schema).size.seconds < 120.0
    spec = ItemSpec(column="items", lower=0, upper=99)
    sets = Schema(columns=(), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, items=spec, rows=1000)
    planned = plan(TopKConfig(k=5, epsilon=1.0), sets)
    assert planned.size.seconds is None
    assert any("how many items rows have, which is private" in note for note in planned.notes)


@pytest.mark.parametrize(
    ("columns", "rows", "seconds"),  # CPU of whole releases on two cores, by its rows
    [(20, 500_000, 5.3), (100, 100_000, 5.3), (100, 1_500_000, 47.6), (300, 30_000, 8.8)],
)
def test_expected_time_of_the_greedy_sampler_is_what_was_measured(columns, rows, seconds):
    config = method_named("lda").config(epsilon=1.0, delta=1e-6, synthetic_rows=rows)
    planned = plan(config, labelled(Schema.numeric(columns, -1.0, 1.0, rows=5000))).size.seconds
    assert 0.6 * seconds < planned < 1.6 * seconds


def test_expected_time_grows_with_rows_and_is_unknown_without_them():
    config = MomentsConfig(epsilon=1.0, synthetic_rows=1000)
    times = [
        workflow.plan(config, Schema.numeric(100, 0, 1, rows=rows)).size.seconds
        for rows in (10**5, 10**7, 10**9)
    ]
    assert 1.0 < times[0] < times[1] < times[2]
    assert times[2] / times[1] == pytest.approx(100, rel=0.1)
    free = Schema.numeric(5, 0, 1, neighbours=Neighbours.ADD_REMOVE)
    assert Work(passes=1).seconds(free) is None
    assert workflow.plan(config, free).size.to_dict()["cpu_seconds"] is None
    sentence = workflow.plan(config, Schema.numeric(100, 0, 1, rows=10**5)).size.sentence()
    assert sentence.endswith(" s of one core")


@pytest.mark.parametrize(
    ("seconds", "words"), [(1.23, "1.2 s"), (89.0, "89 s"), (300.0, "5 min"), (1e7, "2,800 h")]
)
def test_durations_are_said_in_two_digits(seconds, words):
    assert duration(seconds) == words


@cache
def wide():
    """100,000 columns; made once, it is frozen."""
    return Schema.numeric(100_000, -1.0, 1.0, rows=1000)


def labelled(schema):
    """The same with a class."""
    classes = Column(name="class", kind=Kind.CATEGORY, categories=("a", "b"))
    return replace(schema, columns=(*schema.columns, classes), label="class")


@pytest.mark.parametrize("method", ["pca", "lda"])
def test_products_of_too_many_columns_are_refused_before_they_are_planned(method, monkeypatch):
    monkeypatch.setattr(box_release, "BoxMoments", None)  # nothing of that size is looked at
    schema, options = (labelled(wide()), {}) if method == "lda" else (wide(), {"n_components": 5})
    rule = r"columns: the products of 100,00[12] encoded columns take 961 GB of memory, more than 128 GB"
    with pytest.raises(InvalidInput, match=rule):
        plan(method_named(method).config(epsilon=1.0, **options), schema)


@pytest.mark.parametrize("method", ["dppro", "jl-laplace", "ron-gauss", "moments"])
def test_a_plan_of_very_many_columns_is_refused_with_the_number_where_memory_is_given(method):
    few = {"n_components": 20} if method in ("dppro", "jl-laplace") else {}
    planned = plan(method_named(method).config(epsilon=1.0, **few), wide())
    with pytest.raises(
        OutOfMemory, match=r"memory=2.0 GB: the method needs up to [\d.]+ GB; allow more"
    ):
        require_memory_for(planned, "2GB")
    require_memory_for(planned, "64GB")
    require_memory_for(planned, None)
