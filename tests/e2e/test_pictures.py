"""Every method's page shows what was released, at the draw and again from the folder."""

import dataclasses
import re

import numpy as np
import pytest

from adumbra.audit.replay_kinds import families, kinds
from adumbra.mechanisms.base import Published
from adumbra.mechanisms.methods import METHODS, method_of
from adumbra.mechanisms.pictured import pictures_of, pictures_of_release
from adumbra.postprocess.pictures import NOTHING
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.release.artifact import load, verify
from adumbra.report.page import render
from adumbra.workflow import release
from support.page import Page

KINDS = {kind.name: kind for kind in kinds()}
SHOWN = {  # words that only the picture of this kind has
    "moments/replace-one": ("Values of", "Classes of y", "Correlations"),
    "moments/add-remove": ("Values of", "Classes of y"),
    "moments-items/replace-one": ("Most frequent items",),
    "lda/replace-one": ("Classes of y", "Class "),
    "answers/replace-one": ("Shares of rows", "Means, in parts", "is an interval"),
    "pca/rows": ("Direction 1, variance",),
    "dppro/row": ("Error of distances",),
    "jl-laplace/row": ("Error of distances",),
}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_pictures_of_a_folder_are_those_of_its_page(tmp_path, name):
    kind = KINDS[name]
    config, schema = kind.config(), kind.schema
    data = tmp_path / kind.data_name
    kind.write(tmp_path, next(iter(families(kind, 1)))[0])
    ledger = memory_ledger()
    ledger.register(
        Population(
            name="p",
            unit=schema.unit,
            neighbours=schema.neighbours,
            epsilon=config.epsilon,
            delta=config.delta,
        )
    )
    made = release(data, config, schema=schema, ledger=ledger, population="p", out=tmp_path / "r")
    verify(tmp_path / "r")
    source = (tmp_path / "r" / "card.html").read_text()
    page = Page(source)
    assert page.faults() == []
    method = method_of(config)
    settled = method.settle(config, made.schema)
    tables = dict(made.tables) if method.name == "top-k" else {}
    own = method.steps().pictures(
        settled, Published(arrays=made.arrays, tables=tables)
    )  # fails where it fails
    assert ("What it shows" in page.text) == bool(own)
    said = method.steps().words(settled, Published(arrays=made.arrays, tables=tables))
    for part in (*made.tables, *made.arrays):
        assert said[part] in page.text, part
    for words in SHOWN.get(name, ()):
        assert words in page.text, words
    again = render({**made.card, "files": {}}, pictures_of_release(load(tmp_path / "r")))
    assert _section(again) == _section(source)


def _section(source):
    found = re.search(r'<section aria-labelledby="shown">.*?</section>', source, re.DOTALL)
    return found[0] if found else None


def test_every_method_shows_something():
    assert set(SHOWN) <= set(KINDS)
    silent = [one.name for one in METHODS if None in (one.steps().pictures, one.steps().words)]
    assert silent == []


def test_a_picture_that_fails_costs_no_release():
    kind = KINDS["moments/replace-one"]
    method = method_of(kind.config())
    settled = method.settle(kind.config(), kind.schema)
    broken = Published(arrays={"marginals": np.zeros(3)}, tables={})
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is
        method.steps().pictures(settled, broken)

    def with_steps(**changed):
        return dataclasses.replace(method, steps=lambda: dataclasses.replace(method.steps(), **changed))

    silent = with_steps(words=None)
    assert pictures_of(silent, settled, broken) is NOTHING
    assert pictures_of(with_steps(words=None, pictures=None), settled, broken) is NOTHING
    assert not pictures_of(method, settled, broken)
    assert "Synthetic rows" in pictures_of(method, settled, broken).words["data"]
    loud = with_steps(words=lambda *_: 1 / 0)
    assert pictures_of(loud, settled, broken) is NOTHING
