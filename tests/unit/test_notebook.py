"""What a notebook shows: escaped, short, and the text stays as it was."""

import adumbra as ad
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import NOTEBOOK_COLUMNS, Column, Kind, Schema

HOSTILE = "<script>alert(1)</script>"


def _schema(columns):
    named = [
        Column(name=f"{HOSTILE}{i}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for i in range(columns)
    ]
    return Schema(columns=tuple(named), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, rows=1000)


def test_a_schema_shows_its_first_columns_escaped():
    shown = _schema(NOTEBOOK_COLUMNS + 3)._repr_html_()
    assert "<script" not in shown
    assert shown.count("<tr>") == NOTEBOOK_COLUMNS
    assert "and 3 more columns" in shown
    assert "more columns" not in _schema(2)._repr_html_()


def test_a_plan_shows_cost_notes_and_errors_escaped():
    planned = ad.plan(ad.MomentsConfig(epsilon=1.0), _schema(3))
    shown = planned._repr_html_()
    assert "<script" not in shown
    assert "moments costs epsilon=1 at delta=1e-06" in shown
    assert shown.count("<li>") == len(planned.notes)
    assert shown.count("<tr>") == len(planned.expected)


def test_a_guarantee_shows_its_sentence():
    guarantee = ad.plan(ad.MomentsConfig(epsilon=1.0), _schema(3)).guarantee
    assert guarantee._repr_html_() == f"<p>{guarantee.sentence()}</p>"


def test_an_answer_shows_its_interval_and_notes_escaped():
    given = {"interval": (1.0, 3.0), "level": 0.95, "privacy": 1.0, "sampling": 0.0}
    shown = ad.Estimate(
        value=2.0, std_error=1.0, target=HOSTILE, notes=(HOSTILE,), **given
    )._repr_html_()
    assert "2, 95 % interval 1 to 3 (standard error 1)" in shown
    assert "<script" not in shown
    assert shown.count("alert(1)") == 2
    assert "<ul>" not in ad.Estimate(value=2.0, std_error=1.0, target="t", **given)._repr_html_()


def test_a_ledger_shows_its_statements(tmp_path):
    with ad.create_ledger(tmp_path / "l.db") as ledger:
        ledger.register(ad.Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 4.0, 1e-6))
        shown = ledger._repr_html_()
        assert shown.count("<li>") == 1
        assert "people: " in shown
        assert str(tmp_path) not in shown
