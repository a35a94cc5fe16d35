"""Relations with an amount, from schema and ledger to the card: what is hidden, and what is not."""

import dataclasses
import json

import numpy as np
import pytest

import adumbra as ad
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.methods import METHODS
from adumbra.privacy.guarantee import promise
from adumbra.privacy.ledger import Population, create_ledger
from adumbra.relations import Moved, Moves, Neighbours, Unit, relation_of
from adumbra.release.promise import card_faults, words_for
from adumbra.schema.facts import schema_of
from support.cli import in_process

SCHEMA = """
format = "adumbra-schema/2"
[table]
unit = "{unit}"
neighbours = "{word}"
amount = {amount}
[[groups]]
match = "x{{0..7}}"
kind = "integer"
lower = 0
upper = 16
"""
ROWS = np.random.default_rng(0).integers(0, 17, size=(60, 8))


def run(command):
    done = in_process(*command.split())
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(folder, word, amount="1"):
    unit = "element" if word == "cell-moves" else "row"
    schema, data = folder / "schema.toml", folder / "rows.csv"
    schema.write_text(SCHEMA.format(unit=unit, word=word, amount=amount))
    lines = [",".join(f"x{j}" for j in range(8)), *(",".join(map(str, row)) for row in ROWS)]
    data.write_text("\n".join(lines) + "\n")
    return unit, schema, data


@pytest.mark.parametrize("word", ["cell-moves", "row-moves"])
@pytest.mark.parametrize("method", ["dppro", "jl-laplace"])
def test_from_the_command_line_to_the_card(tmp_path, word, method):
    unit, schema, data = written(tmp_path, word)
    ledger, out = tmp_path / "l.db", tmp_path / "out"
    run(f"ledger init {ledger}")
    budget = "" if method == "dppro" else "--delta 0"
    relation = f"--unit {unit} --neighbours {word} --amount 1"
    run(f"ledger register people --ledger {ledger} --epsilon 8 {relation} {budget}")
    options = f"--method {method} --epsilon 4 -o n_components=4"
    options += " --delta 1e-6" if method == "dppro" else ""
    told = " ".join(run(f"plan --schema {schema} {options}").split())
    hidden = "in one cell, not any change" if word == "cell-moves" else "in L2, not any change"
    assert hidden in told
    run(
        f"release {data} --schema {schema} {options} --ledger {ledger} --population people "
        f"--out {out} --yes"
    )
    run(f"verify {out}")
    card = json.loads((out / "card.json").read_text())
    assert card["unit"]["neighbours"] == f"{word} 1.0"
    assert hidden in card["unit"]["sentence"]
    assert "on values as read" in card["unit"]["sentence"]
    assert hidden in " ".join((out / "card.html").read_text().split())
    assert schema_of(card["public_inputs"]["schema"]).neighbours == Moves(Moved(word), 1.0)
    forged = json.loads(json.dumps(card))
    forged["unit"]["neighbours"] = f"{word} 16.0"  # a larger amount than was paid for
    assert card_faults(forged)
    forged["guarantee"]["value"]["neighbours"] = f"{word} 16.0"
    assert card_faults(forged)


@pytest.mark.parametrize("word", list(Moved))
def test_unequal_amounts_never_add(tmp_path, word):
    unit = Unit.ELEMENT if word is Moved.CELL else Unit.ROW
    whole = Neighbours.ONE_ELEMENT if word is Moved.CELL else Neighbours.REPLACE_ONE
    one, two = (promise(1.0, 0.0, unit, Moves(word, amount)) for amount in (1.0, 2.0))
    with pytest.raises(Unsupported, match="unlike guarantees do not compose"):
        one.compose(two)
    with create_ledger(tmp_path / "l.db") as ledger:
        ledger.register(Population("people", unit, Moves(word, 1.0), 4.0))
        ledger.quote("people", one)
        for other in (two, promise(1.0, 0.0, unit, whole)):
            with pytest.raises(Unsupported, match="unlike guarantees do not add"):
                ledger.quote("people", other)
        with pytest.raises(Unsupported, match="register it with the parent's unit and relation"):
            ledger.register(Population("some", unit, Moves(word, 2.0), 4.0, parent="people"))
        assert ledger.show("people")[0].population.neighbours == Moves(word, 1.0)


def test_other_methods_refuse_it():
    for word, unit in ((Moved.CELL, Unit.ELEMENT), (Moved.ROW, Unit.ROW)):
        schema = ad.Schema.numeric(4, 0.0, 1.0, unit=unit, neighbours=Moves(word, 0.5), rows=100)
        for method in METHODS:
            needed = {"n_components": 2} if method.name in ("dppro", "jl-laplace", "pca") else {}
            needed |= {"k": 2} if method.name == "top-k" else {}
            delta = 0.0 if method.name == "jl-laplace" else 1e-6
            config = method.config(epsilon=1.0, delta=delta, **needed)
            if method.name in ("dppro", "jl-laplace"):
                assert method.settle(config, schema).plan.noise
                continue
            with pytest.raises(InvalidInput):
                method.settle(config, schema)


def test_only_numbers_move():
    number = ad.Column(name="a", kind=ad.Kind.NUMBER, lower=0, upper=1)
    truth, level = (
        ad.Column(name="t", kind=ad.Kind.BOOLEAN),
        ad.Column(name="c", kind=ad.Kind.CATEGORY, categories=("p", "q", "r")),
    )
    day = ad.Column(name="d", kind=ad.Kind.DATE, lower="2020-01-01", upper="2021-01-01")
    config = ad.JLLaplaceConfig(n_components=2, epsilon=1.0)
    moves = {"unit": Unit.ELEMENT, "neighbours": Moves(Moved.CELL, 1)}
    for other in (truth, level, day):
        with pytest.raises(Unsupported, match="does not move by an amount"):
            ad.plan(config, ad.Schema(columns=(number, other), **moves))
    labelled = ad.Schema(columns=(number, number_named("b"), level), label="c", **moves)
    assert any("left out" in note for note in ad.plan(config, labelled).notes)
    assert ad.plan(dataclasses.replace(config, label="public"), labelled).noise
    with pytest.raises(Unsupported, match="a class does not move by an amount"):
        ad.plan(dataclasses.replace(config, label="randomised"), labelled)
    with pytest.raises(Unsupported, match="shortening a row"):
        ad.plan(dataclasses.replace(config, row_norm=1.0), ad.Schema(columns=(number,), **moves))
    with pytest.raises(InvalidInput, match="item sets have no cells that move"):
        ad.Schema(items=ad.ItemSpec(upper=9), **moves)


def number_named(name):
    return ad.Column(name=name, kind=ad.Kind.NUMBER, lower=0, upper=1)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('unit = "element"\nneighbours = "cell-moves"', "amount is absent; declare how far one cell"),
        ('unit = "element"\nneighbours = "cell-moves"\namount = 0', "amount=0: must be a number from"),
        ('unit = "element"\nneighbours = "cell-moves"\namount = "1"', "amount='1': must be a number"),
        ('unit = "row"\nneighbours = "cell-moves"\namount = 1', "not legal with unit=row"),
        ('unit = "row"\nneighbours = "replace-one"\namount = 1', "amount: replace-one has none"),
    ],
)
def test_faults_of_a_declared_amount(text, fault):
    column = '[[columns]]\nname = "a"\nkind = "number"\nlower = 0\nupper = 1\n'
    with pytest.raises(InvalidInput) as caught:
        ad.Schema.parse(f'format = "adumbra-schema/2"\n[table]\n{text}\n{column}')
    assert fault in str(caught.value)


def test_a_relation_is_written_and_read_letter_by_letter():
    relation = Moves(Moved.ROW, 0.1)
    assert str(relation) == "row-moves 0.1"
    assert relation_of("row-moves 0.1") == relation
    schema = ad.Schema.numeric(3, 0.0, 1.0, neighbours=relation)
    assert ad.Schema.parse(schema.to_toml()) == schema
    assert schema.format == "adumbra-schema/2"
    for text in (
        "row-moves",
        "row-moves 1",
        "row-moves  1.0",
        "row-moves -1.0",
        "row-moves nan",
        "moves",
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - the messages are Python's own in part
            relation_of(text)
    for amount in (0.0, -1.0, float("nan"), float("inf"), True, "1"):
        with pytest.raises(InvalidInput, match="must be a number from"):
            Moves(Moved.CELL, amount)
    assert words_for(Moves(Moved.CELL, 1), item_sets=False).hides == (
        "a change of at most 1 in one cell, not any change"
    )


def test_noise_follows_the_amount_and_the_rounding_is_said():
    config = ad.JLLaplaceConfig(n_components=4, epsilon=1.0)

    def planned(amount):
        cells = {"unit": Unit.ELEMENT, "neighbours": Moves(Moved.CELL, amount)}
        return ad.plan(config, ad.Schema.numeric(8, 0.0, 16.0, **cells))

    scales = [planned(amount).noise[0].scale for amount in (1.0, 4.0, 16.0, 64.0)]
    assert scales == pytest.approx([1 / 16, 1 / 4, 1.0, 1.0], rel=1e-3)  # no more than any change costs
    assert "up to 16 such changes" in planned(1.0).notes[0]
    assert any("the rounding sets the noise" in note for note in planned(1e-6).notes)
