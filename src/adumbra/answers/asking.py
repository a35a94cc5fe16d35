"""Questions as text, such as `mean age where income=high`: a small grammar, never evaluated as code.

mean COLUMN [where CONDITIONS]               variance COLUMN [where CONDITIONS]
median COLUMN [where CONDITIONS]             quantile Q of COLUMN [where CONDITIONS]
share CONDITIONS [given CONDITIONS]          count [CONDITIONS]
crosstab COLUMN by COLUMN                    compare COLUMN by LABEL
correlation COLUMN and COLUMN                regress COLUMN ~ COLUMN + COLUMN ...
components K                                 distance ROW and ROW
"""

from collections.abc import Callable

from adumbra.answers.conditions import Conditions, Scanner, shown, suggestion
from adumbra.answers.estimate import Answer, Asked
from adumbra.answers.histograms import HistogramAnswers
from adumbra.answers.moments import MomentAnswers
from adumbra.answers.others import FewAnswers, distance
from adumbra.errors import InvalidInput

# What can be asked of a release, with conditions that are read already.
Answers = FewAnswers | HistogramAnswers | MomentAnswers


def ask(answers: Answers, text: str, asked: Asked) -> Answer:
    """The answer to one question."""
    scanner = Scanner(text)
    word = scanner.word(*QUESTIONS)
    if word is None:
        first = scanner.rest().split(" ", maxsplit=1)[0]
        raise InvalidInput(
            f"question {shown(text)}: starts with none of {', '.join(QUESTIONS)}; "
            f"{suggestion(first, list(QUESTIONS))}"
        )
    question = QUESTIONS[word](answers, scanner, asked)
    scanner.end()
    return question()


Later = Callable[[], Answer]  # called once the whole text was understood


def _where(scanner: Scanner) -> Conditions:
    return scanner.conditions() if scanner.word("where") else ()


def _mean(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    name, where = _column_of(scanner), _where(scanner)
    return lambda: answers.mean(name, where, asked)


def _variance(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    name, where = _column_of(scanner), _where(scanner)
    return lambda: answers.variance(name, where, asked)


def _median(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    name, where = _column_of(scanner), _where(scanner)
    return lambda: answers.quantile(name, 0.5, where, asked)


def _quantile(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    q = _number(scanner, "a share such as 0.9")
    name, where = _column_of(scanner), _where(scanner)
    return lambda: answers.quantile(name, q, where, asked)


def _share(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    scanner.word("where", "of")
    where = scanner.conditions()
    given = scanner.conditions() if scanner.word("given") else ()
    return lambda: answers.share(where, given, asked)


def _count(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    scanner.word("where", "of")
    where = scanner.conditions() if scanner.rest() else ()
    return lambda: answers.count(where, asked)


def _crosstab(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    one, other = _pair(scanner)
    return lambda: answers.crosstab(one, other, asked)


def _correlation(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    one, other = _pair(scanner)
    return lambda: answers.correlation(one, other, asked)


def _compare(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    name = _column(scanner)
    if not scanner.word("by"):
        raise InvalidInput(f"compare {shown(name)}: no `by`; write compare {name} by LABEL")
    by = _column(scanner)
    return lambda: answers.compare(name, by, None, asked)


def _regress(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    target = _column(scanner)
    if not scanner.symbol("~"):
        raise InvalidInput(f"regress {shown(target)}: no `~`; write regress {target} ~ COLUMN + COLUMN")
    features = [_column(scanner)]
    while scanner.symbol("+"):
        features.append(_column(scanner))
    return lambda: answers.regress(target, tuple(features), asked)


def _components(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    count = _whole(scanner, "how many components")
    return lambda: answers.principal_components(count, asked)


def _distance(answers: Answers, scanner: Scanner, asked: Asked) -> Later:
    left = _whole(scanner, "the number of a row")
    if not scanner.word("and"):
        scanner.symbol(",")
    right = _whole(scanner, "the number of a second row")
    return lambda: distance(answers, left, right, asked)


def _pair(scanner: Scanner) -> tuple[str, str]:
    one = _column_of(scanner)
    if not scanner.word("by", "and"):
        scanner.symbol(",")
    return one, _column(scanner)


def _column(scanner: Scanner) -> str:
    return scanner.name("a column's name")


def _column_of(scanner: Scanner) -> str:
    """The next name, after an `of` that may stand before it; a column may itself have that name."""
    start = scanner.place
    if scanner.word("of"):
        after = scanner.rest()
        if not after or after.startswith(",") or after.split()[0].lower() in ("where", "and", "by"):
            scanner.place = start
    return _column(scanner)


def _whole(scanner: Scanner, what: str) -> int:
    number = _number(scanner, what)
    if not number.is_integer():  # nor are NaN and infinity
        raise InvalidInput(f"{number:g}: not a whole number; expected {what}")
    return int(number)


def _number(scanner: Scanner, what: str) -> float:
    text = scanner.name(what)
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{shown(text)}: not a number; expected {what}") from None


QUESTIONS: dict[str, Callable[[Answers, Scanner, Asked], Later]] = {
    "mean": _mean,
    "share": _share,
    "count": _count,
    "median": _median,
    "quantile": _quantile,
    "variance": _variance,
    "crosstab": _crosstab,
    "compare": _compare,
    "correlation": _correlation,
    "regress": _regress,
    "components": _components,
    "distance": _distance,
}
