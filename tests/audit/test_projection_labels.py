"""Replay labels beside projected rows on neighbours: together they spend at most what was paid."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adumbra import workflow
from adumbra.data.opening import open_source
from adumbra.mechanisms.base import Calibrated
from adumbra.mechanisms.projection import labels
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.privacy.conversion import compose_mu, pure_to_mu
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant, replaying_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.methods import draw, released

CONFIGS = [DPProConfig, JLLaplaceConfig]
CLASSES = {"two": ("no", "yes"), "three": ("r", "s", "t")}


def schema(name, unit):
    pair = Neighbours.REPLACE_ONE if unit is Unit.ROW else Neighbours.ONE_ELEMENT
    numbers = [Column(name=f"x{i}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for i in range(5)]
    label = Column(name="class", kind=Kind.CATEGORY, categories=CLASSES[name])
    return Schema(columns=(*numbers, label), unit=unit, neighbours=pair, label="class")


def tables(name, unit):
    """Neighbours: under the row unit all of one row changes, else its label or one feature alone."""
    rng = np.random.default_rng(2)
    cells = rng.choice([0.0, 1.0], (4, 5))
    codes = [CLASSES[name][0]] * 4

    def made(values, classes):
        return pa.table({**{f"x{i}": values[:, i] for i in range(5)}, "class": classes})

    other, last = cells.copy(), [*codes[:-1], CLASSES[name][-1]]
    if unit is Unit.ROW:
        other[3] = 1.0 - other[3]
        return [(made(cells, codes), made(other, last))]
    other[3, 2] = 1.0 - other[3, 2]
    return [(made(cells, codes), made(cells, last)), (made(cells, codes), made(other, codes))]


def replayed(config, name, unit):
    """The pairs of exact values of each noise call, and whether the released tables agree."""
    declared = schema(name, unit)
    for first, second in tables(name, unit):
        record = NoiseRecord()
        planned = workflow.plan(config, declared)
        options = (1, planned.guarantee, planned.purposes)
        grants = recording_grant(record, *options), replaying_grant(record, *options)
        out = [
            released(draw(open_source(table, declared), config, grant=grant))
            for table, grant in zip((first, second), grants, strict=True)
        ]
        yield record.pairs, out[0].equals(out[1]), planned.guarantee


def spent(pairs, guarantee):
    """The share of the claim that the changes take, in its own currency."""
    losses = []
    for pair in pairs:
        if pair.l1() == 0.0:
            continue
        scale = float(np.max(pair.first.scale))
        gaussian = pair.first.kind == "gaussian"
        loss = pair.l2() / scale if gaussian else pair.l1() / scale
        losses.append(loss if gaussian or guarantee.is_pure else pure_to_mu(loss))
    if guarantee.is_pure:
        return sum(losses) / guarantee.pure_epsilon
    return compose_mu(*losses) / guarantee.mu if losses else 0.0


@pytest.mark.parametrize("unit", [Unit.ROW, Unit.ELEMENT])
@pytest.mark.parametrize("name", sorted(CLASSES))
@pytest.mark.parametrize("kind", CONFIGS)
def test_label_and_row_together_spend_at_most_what_was_paid(kind, name, unit):
    config = kind(n_components=5, epsilon=1.0, label="randomised", family="identity")
    for pairs, same, guarantee in replayed(config, name, unit):
        assert same
        assert {pair.purpose for pair in pairs} == {"rows", "label"}
        share = spent(pairs, guarantee)
        assert 0.4 < share <= 1.0 + 1e-9
        if unit is Unit.ELEMENT:  # one cell: the label or a feature, each at the whole budget
            assert share > 0.95
            assert sum(pair.l1() > 0 for pair in pairs) == 1


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_label_that_goes_around_its_noise_is_caught(kind, monkeypatch):
    right = labels.noisy_label

    def plain(label, encoder, batch, key):
        right(label, encoder, batch, key)
        return labels.public_label(label, encoder, batch)

    monkeypatch.setattr(labels, "noisy_label", plain)
    config = kind(n_components=2, epsilon=1.0, label="randomised")
    assert [same for _, same, _ in replayed(config, "two", Unit.ROW)] == [False]


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_public_label_is_no_secret_and_the_replay_says_so(kind):
    config = kind(n_components=2, epsilon=1.0, label="public")
    assert [same for _, same, _ in replayed(config, "two", Unit.ROW)] == [False]
    assert [same for _, same, _ in replayed(replace(config, label="left-out"), "two", Unit.ROW)] == [
        True
    ]


def test_a_label_at_the_whole_budget_under_the_row_unit_is_caught(monkeypatch):
    def whole(config, unit):
        return config.epsilon, config.epsilon

    monkeypatch.setattr(labels, "_amounts", whole)
    config = JLLaplaceConfig(n_components=5, epsilon=1.0, label="randomised", family="identity")
    ((pairs, _, guarantee),) = replayed(config, "two", Unit.ROW)
    assert spent(pairs, guarantee) > 1.2


def test_label_noise_of_half_the_scale_is_caught(monkeypatch):
    right = labels.label_noise

    def half(epsilon, levels):
        noise = right(epsilon, levels)
        return Calibrated(scale=noise.scale / 2, sensitivity=noise.sensitivity, exponent=noise.exponent)

    monkeypatch.setattr(labels, "label_noise", half)
    config = JLLaplaceConfig(n_components=2, epsilon=1.0, label="randomised")
    (label, _) = replayed(config, "two", Unit.ELEMENT)
    assert spent(label[0], label[2]) == pytest.approx(2.0)
    left_out = workflow.plan(replace(config, label="left-out"), schema("two", Unit.ELEMENT))
    assert labels.LABEL not in left_out.purposes
