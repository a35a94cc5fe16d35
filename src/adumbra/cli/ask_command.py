"""`ask`: one question to a release, with its error bar, offline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.options import AsJson, print_json
from adumbra.cli.release_views import Folder
from adumbra.errors import visible

if TYPE_CHECKING:
    from adumbra.answers.estimate import Estimate

Question = Annotated[
    str,
    typer.Argument(
        help="mean COLUMN, share COLUMN=VALUE, count COLUMN=VALUE, median COLUMN, quantile Q of COLUMN, "
        "variance COLUMN, crosstab COLUMN by COLUMN, compare COLUMN by LABEL, correlation COLUMN and "
        "COLUMN, regress COLUMN ~ COLUMN + COLUMN, components K, distance ROW and ROW; after a "
        "column `where COLUMN=VALUE and ...`, after a share `given ...`. Quote names and values that "
        "have spaces."
    ),
]
Level = Annotated[float, typer.Option("--level", help="Confidence level of the interval.")]
Population = Annotated[
    bool, typer.Option("--population", help="Treat the rows as a sample and add sampling error.")
]


def ask(
    folder: Folder,
    question: Question,
    level: Level = 0.95,
    population: Population = False,
    json: AsJson = False,
) -> None:
    """Answer a question from a release with a confidence interval. Spends no budget."""
    from adumbra.answers.askable import load
    from adumbra.answers.estimate import Estimate

    answer = load(Path(folder)).ask(question, level=level, population=population)
    named = {"": answer} if isinstance(answer, Estimate) else dict(answer)
    if json:
        facts = {name: one.to_dict() for name, one in named.items()}
        print_json(facts.get("", facts))
        return
    for name, one in named.items():
        typer.echo(visible(f"{name}: {one}" if name else one))
    for line in _small_print(list(named.values())):
        typer.echo(visible(f"  {line}"))


def _small_print(answers: "list[Estimate]") -> list[str]:
    """What the bars are about and what they leave out, each sentence once."""
    if not answers:
        return []
    about = [f"about: {answers[0].target}"] if len(answers) == 1 else []
    notes = dict.fromkeys(note for one in answers for note in one.notes)
    sources = [
        f"error: {one.privacy:.2g} privacy noise, {one.sampling:.2g} sampling"
        for one in answers
        if len(answers) == 1 and not one.is_hidden
    ]
    return [*about, *sources, *notes]
