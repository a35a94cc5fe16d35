"""A figure of synthetic rows, taken again from releases of the release: no private row is read."""

import numpy as np
import pytest

import adumbra as ad
from adumbra.errors import InvalidInput, Unsupported
from adumbra.privacy.ledger import Population, memory_ledger
from support.moments import mixed_schema, mixed_table

ROWS = 300


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place, schema = tmp_path_factory.mktemp("redrawn"), mixed_schema()
    ledger = memory_ledger()
    ledger.register(Population("p", schema.unit, schema.neighbours, epsilon=90.0, delta=1e-4))
    pay = {"schema": schema, "ledger": ledger, "population": "p"}
    configs = {
        "moments": ad.MomentsConfig(epsilon=8.0),
        "lda": ad.LDAConfig(epsilon=4.0, synthetic_rows=50),
        "sample": ad.PCAConfig(n_components=2, epsilon=4.0, output="sample", synthetic_rows=50),
        "rows": ad.PCAConfig(n_components=2, epsilon=4.0),
        "answers": ad.AnswersConfig(epsilon=1.0),
    }
    return {
        name: ad.release(mixed_table(ROWS), config, **pay, out=place / name)
        for name, config in configs.items()
    }


def mean_income(rows):
    """Of fractions: two draws of 300 rows agree to the last of 40 bits or more with a chance of 1e-12.

    Ages are whole numbers, and their means agreed once in a hundred runs.
    """
    return np.mean(rows["income"].to_numpy())


def test_the_spread_is_that_of_fresh_releases_and_says_that_it_is_approximate(folders):
    found = ad.bootstrap(folders["moments"], mean_income, draws=5)
    assert found.value == mean_income(folders["moments"].data)
    assert len(set(found.draws)) == 5  # every draw has its own noise
    assert found.spread == pytest.approx(np.std(found.draws, ddof=1))
    assert found.bias == pytest.approx(np.mean(found.draws) - found.value)
    assert found.value not in found.draws
    assert "approximate" in str(found)
    assert "no 95 % interval" in found.notes[0]


@pytest.mark.parametrize("name", ["lda", "sample"])
def test_every_method_of_synthetic_rows_is_redrawn(folders, name):
    found = ad.bootstrap(folders[name], lambda rows: rows.num_rows, draws=2)
    assert found.draws == (50.0, 50.0)


@pytest.mark.parametrize("name", ["rows", "answers"])
def test_what_has_no_synthetic_rows_is_refused(folders, name):
    with pytest.raises(Unsupported, match="no synthetic rows to release again"):
        ad.bootstrap(folders[name], mean_income)


def test_figures_and_draws_must_be_numbers(folders):
    with pytest.raises(InvalidInput, match="no finite number"):
        ad.bootstrap(folders["lda"], lambda _: float("nan"), draws=2)
    for draws in (0, 1, 10**6):
        with pytest.raises(InvalidInput, match="draws="):
            ad.bootstrap(folders["lda"], mean_income, draws=draws)
