"""`adumbra audit`: attack our own claims, or plant known bugs and see them caught. Touches no data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.options import AsJson, Force, print_json, require_new_file
from adumbra.errors import InvalidInput, VerificationFailed, require

if TYPE_CHECKING:
    from adumbra.audit.attack import Attack
    from adumbra.audit.mutants import Verdict
    from adumbra.audit.replay import Replayed

Advance = Callable[[str], None]  # what comes next
RUNS, PAIRS = 100_000, 30


def audit(  # noqa: PLR0913, PLR0917 - one argument per flag
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="Attack one method only: answers, bounds, dppro, jl-laplace, ron-gauss, pca, lda, "
            "moments or top-k. Default: all.",
        ),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", help="The claimed epsilon to attack; planted bugs have their own."),
    ] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="0: pure claims only; above 0: Gaussian ones only; default: both."),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs", min=10, help="Runs on each table (default 100000), or pairs to --replay (30)."
        ),
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Plant known bugs instead. Each must be caught.")
    ] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Freeze the noise instead and change one row: no released byte may differ."
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, max=10**9, help="Seed of the noise that the attacks draw."),
    ] = 0,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Also draw claimed against proven (.svg, .png, .pdf)."),
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Attack every privacy claim of this package on generated tables. Uses none of your data.

    Prints the epsilon that the attack proves: above the claimed one, the claim is refuted.

    On one core the default run takes about one minute, --mutants 15 seconds, --replay two or three
    minutes. More --runs take longer.
    """
    require(not (mutants and replay), "--mutants with --replay: give one of them")
    require(figure is None or not (mutants or replay), "--figure: draws attacks; leave the other out")
    require(seed == 0 or not (mutants or replay), "--seed: is of attacks; leave the other out")
    method = _known(method)
    if mutants:
        verdicts = _try_mutants(method, runs or RUNS, quiet=json)
        _show_verdicts(verdicts, json=json)
        missed = [verdict.mutant for verdict in verdicts if not verdict.caught]
        if missed:
            raise VerificationFailed(f"mutants not caught: {'; '.join(missed)}")
        return
    if replay:
        compared = _replay(method, runs or PAIRS, quiet=json)
        _show_replayed(compared, json=json)
        differing = [one.kind for one in compared if one.differing]
        if differing:
            raise VerificationFailed(f"bytes differ: {'; '.join(differing)}")
        return
    if figure is not None:
        from adumbra.audit.figure import draw_attacks, require_place

        require_place(figure)
        require_new_file("figure", figure, force=force)
    results = _attack(method, epsilon, delta, runs or RUNS, seed, quiet=json)
    _show_results(results, json=json)
    if figure is not None:
        draw_attacks(results, figure)
    refuted = [result.case for result in results if result.violated]
    if refuted:
        raise VerificationFailed(f"refuted claims: {'; '.join(refuted)}")
    blind = [result.case for result in results if result.blind]
    if blind:
        raise VerificationFailed(f"claims of which too little is seen, so a step was missed: {blind}")


def _known(method: str | None) -> str | None:
    """The method as the audit names it."""
    from adumbra.audit.cases import METHODS

    wanted = "topk" if method == "top-k" else method  # as `adumbra methods` names it
    names = ", ".join("top-k" if name == "topk" else name for name in METHODS)
    require(wanted is None or wanted in METHODS, f"method={method}: unknown; choose one of {names}")
    return wanted


def _attack(  # noqa: PLR0913 - as the flags
    method: str | None, epsilon: float, delta: float | None, runs: int, seed: int, *, quiet: bool
) -> "list[Attack]":
    from adumbra.audit.attack import attack
    from adumbra.audit.cases import all_cases

    cases = all_cases(epsilon, delta, method)
    if not cases:
        raise InvalidInput(f"method={method}, delta={delta}: has no such claim; leave --delta out")
    results = []
    with _bar("attacks", len(cases), quiet=quiet) as advance:
        for case in cases:
            advance(case.name)
            results.append(attack(case, runs, seed=seed))
    return results


def _replay(method: str | None, pairs: int, *, quiet: bool) -> "list[Replayed]":
    from adumbra.audit.replay import replay_alone
    from adumbra.audit.replay_kinds import chosen_kinds

    found, compared = [], replay_alone(pairs, method)
    chosen = chosen_kinds(method)
    with _bar("replays", len(chosen), quiet=quiet) as advance:
        for kind in chosen:
            advance(kind.name)
            found.append(next(compared))
        found += compared  # nothing more, unless its process ended badly
    return found


def _try_mutants(method: str | None, runs: int, *, quiet: bool) -> "list[Verdict]":
    from adumbra.audit.mutants import chosen_mutants, try_mutants

    verdicts = []
    with _bar("planted bugs", len(chosen_mutants(method)), quiet=quiet) as advance:
        for verdict in try_mutants(runs, method):
            advance(verdict.mutant)
            verdicts.append(verdict)
    return verdicts


def _show_results(results: "list[Attack]", *, json: bool) -> None:
    if json:
        print_json({"attacks": [result.to_dict() for result in results]})
        return
    from rich.console import Console
    from rich.table import Table

    from adumbra.numerics import figure_lower, figure_upper

    names = ("claim", "path", "runs", "claimed", "proven", "at 99 %", "exact", "with chance")
    table = Table(*names, box=None)
    for one in results:
        lower = (figure_lower(bound, 4) for bound in (one.epsilon_lower, one.epsilon_lower_99))
        numbers = (figure_upper(one.epsilon_claimed), *lower)
        name = f"{one.case}, delta={figure_upper(one.delta)}" if one.delta else one.case
        exact = (figure_lower(one.exact_epsilon, 4), "" if one.delta else f"{one.exact_chance:.2g}")
        table.add_row(name, one.path, f"{one.runs}", *numbers, *exact)
    Console(width=130, highlight=False).print(table)
    typer.echo(
        "proven: epsilon is at least this, wrong once in 10^9 audits. exact: the epsilon of this pair\n"
        "of tables, computed; of a pure claim it shows in outcomes of this chance."
    )
    refuted, blind = sum(one.violated for one in results), sum(one.blind for one in results)
    typer.echo(f"{len(results)} claims attacked, {refuted} refuted, {blind} not seen well enough")


def _show_replayed(found: "list[Replayed]", *, json: bool) -> None:
    pairs, hostile = sum(one.pairs for one in found), sum(one.hostile for one in found)
    differing = sum(len(one.differing) for one in found)
    if json:
        shown = [
            {"kind": one.kind, "pairs": one.pairs, "hostile": one.hostile, "differing": one.differing}
            for one in found
        ]
        facts = {"pairs": pairs, "hostile": hostile, "differing": differing, "kinds": shown}
        print_json(facts)
        return
    for one in found:
        typer.echo(
            f"{one.kind:40} {one.pairs} pairs, {one.hostile} hostile, {len(one.differing)} differ"
        )
    typer.echo(f"{len(found)} kinds, {pairs} pairs, {hostile} of them hostile: {differing} differ")


def _show_verdicts(verdicts: "list[Verdict]", *, json: bool) -> None:
    caught = sum(verdict.caught for verdict in verdicts)
    if json:
        shown = [
            {
                "mutant": one.mutant,
                "case": one.case,
                "caught": one.caught,
                "by": list(one.by),
                "findings": [finding.detail for finding in one.findings],
            }
            for one in verdicts
        ]
        print_json({"caught": caught, "planted": len(shown), "mutants": shown})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("planted bug", "in", "caught by", "finding", box=None)
    for one in verdicts:
        detail = one.findings[0].detail if one.findings else ""
        table.add_row(one.mutant, one.case, ", ".join(one.by) or "NOT CAUGHT", detail[:60])
    Console(width=160, highlight=False).print(table)
    typer.echo(f"{caught} of {len(verdicts)} planted bugs caught")


@contextmanager
def _bar(words: str, total: int, *, quiet: bool) -> "Iterator[Advance]":
    """A bar on stderr that names what is being done."""
    if quiet:
        yield lambda _name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    shown = (MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[name]}"))
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *shown,
        console=Console(stderr=True),
        transient=True,
    ) as bars:
        task = bars.add_task(words, total=total, name="")
        begun = count(0)
        yield lambda name: bars.update(task, completed=next(begun), name=name)
