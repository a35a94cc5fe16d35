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
