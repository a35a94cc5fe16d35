"""A folder alone can be asked, in Python and on the command line; a method that cannot says so."""

import json

import numpy as np
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.errors import InvalidInput, Unsupported
from adumbra.release.artifact import Release
from support.cli import adumbra
from support.moments import ADD, mixed_schema, mixed_table

FRAME = mixed_table(4000).to_pandas()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, schema = tmp_path_factory.mktemp("asked"), mixed_schema()
    with ad.create_ledger(place / "ledger.db") as book:
        book.register(ad.Population("p", schema.unit, schema.neighbours, epsilon=900.0, delta=1e-4))
        pay = {"schema": schema, "ledger": book, "population": "p"}
        config = ad.MomentsConfig(epsilon=4.0, numbers="bins")
        made = ad.release(mixed_table(4000), config, **pay, out=place / "moments")
        assert isinstance(made, ad.AskableRelease)
        others = {
            "lda": ad.LDAConfig(epsilon=4.0, synthetic_rows=10),
            "lda-pure": ad.LDAConfig(epsilon=8.0, delta=0.0, synthetic_rows=10),
            "pca": ad.PCAConfig(n_components=2, epsilon=4.0, output="sample", synthetic_rows=10),
            "dppro": ad.DPProConfig(n_components=2, epsilon=1.0),
            "answers": ad.AnswersConfig(epsilon=4.0),
            "answers-pure": ad.AnswersConfig(epsilon=40.0, delta=0.0),  # noise hides no spread
        }
        for name, config in others.items():
            ad.release(mixed_table(4000), config, **pay, out=place / name)
    return place


def test_a_loaded_release_is_a_release_that_answers(folder):
    release = ad.load(folder / "moments")
    assert isinstance(release, Release)
    assert release.data.num_rows == 4000
    answer = release.mean("age")
    assert isinstance(answer, ad.Estimate)
    # what cells leave open is nothing here; a normal error passes 6.2 deviations once in 1e9
    assert abs(answer.value - FRAME.age.mean()) < 6.2 * answer.std_error
    share = release.share({"region": "a"}, given="risk=low")
    truth = (FRAME.region[FRAME.risk == "low"] == "a").mean()
    assert abs(share.value - truth) < 6.2 * share.std_error
    assert release.ask("mean age") == answer
    assert release.count().value == 4000
    low, high = release.quantile("age", level=1 - 1e-9).interval
    assert low <= np.quantile(FRAME.age, 0.5, method="inverted_cdf") <= high
    assert set(release.crosstab("job", "risk")) == {
        f"job={job} and risk={risk}" for job in "xyz" for risk in ("low", "high")
    }
    assert list(release.compare("job", by="risk")) == [
        f"share of job={job}, risk=high less risk=low" for job in "xyz"
    ]
    assert release.variance("age").interval[0] > 0
    for refused in (
        lambda: release.regress("age", ["income"]),
        lambda: release.correlation("age", "income"),
        lambda: release.principal_components(2),
    ):
        with pytest.raises(Unsupported, match="shortened rows"):
            refused()


def test_the_noise_is_that_of_the_card(folder):
    release = ad.load(folder / "moments")
    noise = {line["purpose"]: line["scale"] for line in release.card["mechanisms"]}
    one_cell = release.count("smoker=yes").privacy
    twice = noise["marginals"] ** -2 / 2 + noise["one_way"] ** -2  # in two classes, and over both
    both = twice**-0.5
    assert one_cell == pytest.approx(both * np.sqrt(0.5), rel=0.01)  # one of two cells, total known


def test_a_method_without_sums_says_what_would_answer(folder):
    with pytest.raises(Unsupported, match=r"method=dppro: .* by answers or moments or lda would answer"):
        ad.load(folder / "dppro").mean("age")


@pytest.mark.parametrize("name", ["moments", "lda", "pca", "answers"])
def test_the_page_shows_answers_and_says_what_a_bar_means(folder, name):
    page = (folder / name / "card.html").read_text(encoding="utf-8")
    assert "95 of 100 releases that could have been made" in page
    assert "±" in page


def test_projected_rows_answer_distances(folder):
    release = ad.load(folder / "dppro")
    answer = release.distance(3, 7)
    assert answer == release.ask("distance 3 and 7")
    assert 0 <= answer.interval[0] <= answer.value <= answer.interval[1]
    assert any("projection" in note for note in answer.notes)
    assert release.count().interval == (4000.0, 4000.0)
    for left, right, said in ((3, 3, "two rows"), (3, 4000, "rows 0 to 3999")):
        with pytest.raises(InvalidInput, match=said):
            release.distance(left, right)
    with pytest.raises(Unsupported, match="not a sample"):
        release.ask("distance 3 and 7", population=True)
    with pytest.raises(Unsupported, match="by dppro or jl-laplace would answer"):
        ad.load(folder / "lda").distance(3, 7)
    for words in ("mean age", "variance age", "median age", "share smoker=yes", "count smoker=yes",
                  "crosstab job by risk", "compare age by risk", "correlation age and income",
                  "regress income ~ age", "components 2"):  # fmt: skip
        with pytest.raises(Unsupported, match=r"method=dppro: .* would answer"):
            release.ask(words)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_counts_of_all_items_answer_and_picked_ones_do_not(tmp_path, delta):
    """The limit is 15 deviations of a Laplace law, passed less than once in 1e9."""
    rng = np.random.default_rng(2)
    baskets = [[0, 1, *rng.choice(np.arange(2, 20), 2, replace=False).tolist()] for _ in range(3000)]
    table = pa.table({"items": pa.array(baskets, pa.list_(pa.int64()))})
    schema = ad.Schema.parse(
        'format = "adumbra-schema/1"\n[table]\nunit = "row"\nneighbours = "replace-one"\n'
        '[items]\ncolumn = "items"\nuniverse = 20\n'
    )
    with ad.create_ledger(tmp_path / "ledger.db") as book:
        book.register(ad.Population("p", schema.unit, schema.neighbours, epsilon=9.0, delta=1e-4))
        pay = {"schema": schema, "ledger": book, "population": "p"}
        common = {"epsilon": 1.0, "delta": delta, "k": 3, "algorithm": "frefirst", "length": 4}
        whole = ad.release(table, ad.TopKConfig(**common, all_counts=True), **pay, out=tmp_path / "a")
        picked = ad.release(table, ad.TopKConfig(**common), **pay, out=tmp_path / "b")
    answer = whole.count("item=1")
    assert answer == ad.load(tmp_path / "a").ask("count item=1")
    assert abs(answer.value - 3000) < 15 * answer.std_error
    assert whole.share("item=1").value == pytest.approx(min(answer.value / 3000, 1.0))
    assert "at most 4 of its items" in answer.notes[0]
    assert whole.count("item=1", population=True).sampling > 0 == answer.sampling
    with pytest.raises(Unsupported, match="all_counts=true"):
        picked.count("item=1")
    with pytest.raises(InvalidInput, match="is not in this release"):
        whole.count("item=77")
    with pytest.raises(InvalidInput, match="one at a time"):
        whole.count("item=1 and item=2")
    with pytest.raises(Unsupported, match=r"method=top-k: .* would answer"):
        whole.mean("item")
    with pytest.raises(InvalidInput, match="averaged"):
        ad.combine([whole, whole])


@pytest.mark.parametrize("name", ["lda", "lda-pure", "pca"])
def test_sums_of_products_answer_what_counts_cannot(folder, name):
    """6.2 standard errors: a normal error passes them once in 1e9; 15 of a Laplace error, likewise."""
    release = ad.load(folder / name)
    mean, both = release.mean("age"), release.share("region=b and job=x")
    limit = 6.2 if name != "lda-pure" else 15.0
    assert abs(mean.value - FRAME.age.mean()) < limit * mean.std_error
    truth = ((FRAME.region == "b") & (FRAME.job == "x")).mean()
    assert abs(both.value - truth) < limit * both.std_error
    slopes = release.regress("income", ["age"])
    assert list(slopes) == ["(constant)", "age"]
    assert release.ask("regress income ~ age") == slopes or slopes["age"].is_hidden
    correlation = release.correlation("age", "income")
    assert -1 <= correlation.interval[0] <= correlation.interval[1] <= 1
    wrong = abs(correlation.value - FRAME.age.corr(FRAME.income))
    assert correlation.is_hidden or wrong < limit * correlation.std_error
    if name != "pca":
        (difference,) = release.compare("age", by="risk").values()
        high = FRAME.risk == "high"
        truth = FRAME.age[high].mean() - FRAME.age[~high].mean()
        assert abs(difference.value - truth) < limit * difference.std_error
    with pytest.raises(Unsupported, match="not counts of values"):
        release.quantile("age")


@pytest.mark.parametrize("name", ["answers", "answers-pure"])
def test_a_release_made_for_answers_answers_all(folder, name):
    """Of capped numbers: 6.2 standard errors pass once in 1e9, 15 of a Laplace error likewise.

    No spread is hidden: of the pure one, even at the widest cap, it is over 30 standard errors (4 do).
    """
    release, limit = ad.load(folder / name), 6.2 if name == "answers" else 15.0
    capped = FRAME.copy()
    for column, (low, high) in release.card["facts"]["caps"].items():
        capped[column] = capped[column].clip(low, high)
    high = capped.risk == "high"
    truths = [
        (release.mean("age"), capped.age.mean()),
        (release.mean("income"), capped.income.mean()),
        (release.variance("income"), capped.income.var(ddof=0)),
        (release.correlation("age", "income"), capped.age.corr(capped.income)),
        (release.share("region=b and job=x"), ((capped.region == "b") & (capped.job == "x")).mean()),
        (release.mean("age", "risk=high"), capped.age[high].mean()),
        (next(iter(release.compare("age", by="risk").values())),
         capped.age[high].mean() - capped.age[~high].mean()),
        (release.regress("age", ["risk"])["risk=high"],
         capped.age[high].mean() - capped.age[~high].mean()),
        (release.share("age > 40"), (FRAME.age > 40).mean()),
    ]  # fmt: skip
    for answer, truth in truths:
        # rows are rounded to 2^-15 of the range between caps
        assert abs(answer.value - truth) < limit * answer.std_error + 1e-4 * abs(truth), answer.target
        assert not answer.is_hidden
    low, top = release.quantile("age", level=1 - 1e-9).interval
    assert low <= np.quantile(FRAME.age, 0.5, method="inverted_cdf") <= top
    note = "age: capped at {:.12g}..{:.12g}".format(*release.card["facts"]["caps"]["age"])
    assert any(note in line for line in release.mean("age").notes)
    wide, thin = (release.variance("age", population=flag) for flag in (True, False))
    assert wide.sampling > 0 == thin.sampling
    assert wide.interval[0] < thin.interval[0] < thin.interval[1] < wide.interval[1]
    spread = ((capped.age - capped.age.mean()) ** 2).std() / np.sqrt(len(capped))
    assert spread / 2 < wide.sampling < 4 * spread  # the fourth moment is that of noisy cells
    assert release.data["column"].to_pylist()[:2] == ["age", "income"]


def test_releases_for_answers_combine_only_with_equal_caps(folder):
    release = ad.load(folder / "answers")
    joined = ad.combine([release, release]).mean("age")
    assert joined.value == pytest.approx(release.mean("age").value)
    assert joined.std_error == pytest.approx(release.mean("age").std_error / np.sqrt(2.0))
    with pytest.raises(InvalidInput, match="other columns, caps or outcomes"):
        ad.combine([release, ad.load(folder / "answers-pure")])


def test_a_card_that_does_not_describe_its_cells_is_not_guessed(folder):
    release = ad.load(folder / "moments")
    facts = {name: value for name, value in release.card["facts"].items() if name != "number_cells"}
    release.card["facts"] = facts
    with pytest.raises(Unsupported, match="an older version"):
        release.mean("age")
    release.card["facts"] = facts | {"number_cells": 7}
    with pytest.raises(ad.InvalidInput, match="does not fit"):
        release.mean("age")


def test_the_command_answers(folder):
    done = adumbra("ask", folder / "moments", "mean age where risk=high")
    assert done.returncode == 0, done.stderr
    first, about, *_ = done.stdout.splitlines()
    expected = ad.load(folder / "moments").mean("age", "risk=high")
    assert first == str(expected)
    assert about.strip() == f"about: {expected.target}"
    done = adumbra("ask", folder / "moments", "compare job by risk", "--json", "--level", "0.9")
    answers = json.loads(done.stdout)
    assert len(answers) == 3
    assert {answer["level"] for answer in answers.values()} == {0.9}
    done = adumbra("ask", folder / "moments", "share region=a", "--json", "--population")
    assert json.loads(done.stdout)["sampling"] > 0


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("mean agee", "did you mean 'age'"),
        ("meen age", "did you mean 'mean'"),
        ("__import__('os')", "starts with none of"),
        ("regress age ~ income", "shortened rows"),
        ("share region=a and job=x", "together"),
    ],
)
def test_the_command_refuses_in_one_line(folder, question, said):
    done = adumbra("ask", folder / "moments", question)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_private_number_of_rows_is_an_estimate(tmp_path):
    schema = mixed_schema(ADD)
    with ad.create_ledger(tmp_path / "ledger.db") as book:
        book.register(ad.Population("p", schema.unit, schema.neighbours, epsilon=9.0, delta=1e-5))
        made = ad.release(
            mixed_table(4000), ad.MomentsConfig(epsilon=4.0, synthetic_rows=10), schema=schema,
            ledger=book, population="p", out=tmp_path / "out",
        )  # fmt: skip
    count = made.count()
    assert count.privacy > 0
    assert abs(count.value - 4000) < 6.2 * count.privacy


def test_releases_of_the_same_rows_answer_together(tmp_path):
    """Two alike have 1/sqrt(2) of the noise of one; the value is their mean, and the truth is near."""
    schema = mixed_schema()
    with ad.create_ledger(tmp_path / "ledger.db") as book:
        book.register(ad.Population("p", schema.unit, schema.neighbours, epsilon=900.0, delta=1e-4))
        pay = {"schema": schema, "ledger": book, "population": "p"}
        made = {
            name: ad.release(mixed_table(4000), config, **pay, out=tmp_path / name)
            for name, config in {
                "first": ad.MomentsConfig(epsilon=4.0, numbers="bins"),
                "second": ad.MomentsConfig(epsilon=4.0, numbers="bins"),
                "scores": ad.MomentsConfig(epsilon=4.0, numbers="scores"),
                "lda": ad.LDAConfig(epsilon=4.0, synthetic_rows=10),
                "other lda": ad.LDAConfig(epsilon=2.0, synthetic_rows=10),
            }.items()
        }
    one, two = made["first"].mean("age"), made["second"].mean("age")
    both = ad.combine([made["first"], made["second"]]).mean("age")
    assert both.value == pytest.approx((one.value + two.value) / 2)
    assert both.std_error == pytest.approx(one.std_error / np.sqrt(2))
    assert abs(both.value - FRAME.age.mean()) < 6.2 * both.std_error
    assert str(ad.combine([made["first"]]).mean("age")) == str(one)
    sharp, dull = (made[name].mean("age") for name in ("lda", "other lda"))
    joined = ad.combine([made["lda"], made["other lda"]])
    assert joined.mean("age").std_error == pytest.approx(
        (sharp.std_error**-2 + dull.std_error**-2) ** -0.5
    )
    assert joined.ask("count").value == 4000
    for wrong, said in (
        ([], "at least one"),
        ([made["first"], made["scores"]], "different cells"),
        ([made["first"], made["lda"]], "different things"),
        (["first"], "what `load` returned"),
    ):
        with pytest.raises(ad.InvalidInput, match=said):
            ad.combine(wrong)
