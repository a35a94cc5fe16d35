"""A plan, its price and a finished release, in words for people and as values for scripts."""

import hashlib
import json as json_module
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from adumbra.mechanisms.base import Plan
    from adumbra.privacy.ledger import Quote
    from adumbra.release.artifact import Release


def plan_facts(planned: "Plan") -> dict[str, object]:
    """A plan as plain values."""
    return {
        "method": planned.method,
        "guarantee": planned.guarantee.to_dict(),
        "sentence": planned.guarantee.sentence(),
        "noise": [noise.to_dict() for noise in planned.noise],
        "expected": dict(planned.expected),
        "notes": list(planned.notes),
        "details": planned.details,
    }


def show_plan(planned: "Plan") -> None:
    """Print a plan for a person."""
    from rich.console import Console
    from rich.table import Table

    from adumbra.report.words import expected_words

    console = Console(highlight=False)
    console.print(f"[bold]{planned.method}[/bold]  costs {planned.guarantee.sentence()}")
    table = Table("noise for", "law", "scale", "sensitivity", box=None, padding=(0, 3, 0, 0))
    for noise in planned.noise:
        numbers = (f"{noise.scale:.6g}", f"{noise.sensitivity:.6g}")
        table.add_row(noise.purpose, noise.distribution, *numbers)
    console.print(table)
    for name, value in planned.expected.items():
        print_hanging(console, f"expected {expected_words(name)}: {value:.4g}", "  ")
    for note in planned.notes:
        print_hanging(console, note, "- ")


def print_hanging(console: "Console", text: str, mark: str, style: str = "") -> None:
    """Print a sentence whose further lines start below its first letter."""
    from rich.text import Text

    lines = textwrap.wrap(
        text,
        console.width,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_on_hyphens=False,
    )
    console.print(Text("\n".join(lines), style=style), soft_wrap=True)


def show_price(quotes: "Sequence[Quote]", instead: "Quote | None", *, err: bool) -> None:
    """Print what each account pays, and what a Gaussian release would cost the first one."""
    from rich.console import Console

    from adumbra.numerics import figure_upper

    console = Console(highlight=False, stderr=err)
    for quoted in quotes:
        print_hanging(console, quoted.sentence(), "price     ")
    if instead is not None:
        takes, pure = figure_upper(instead.takes, 12), figure_upper(quotes[0].takes, 12)
        words = f"--delta {instead.delta!r} would take epsilon={takes} of it, not {pure}, with"
        print_hanging(console, f"{words} Gaussian noise", "instead   ")


def show_release(made: "Release", out: Path, *, json: bool, quotes: "Sequence[Quote]" = ()) -> None:
    """Print where a release is."""
    if json:
        facts = {
            "out": str(out),
            "entry": made.card["ledger"]["entry"],
            "digest": hashlib.sha256((out / "card.json").read_bytes()).hexdigest(),
            "guarantee": made.guarantee.to_dict(),
            "price": [quoted.to_dict() for quoted in quotes],
            "contents": made.card["contents"],
        }
        typer.echo(json_module.dumps(facts, indent=2))
        return
    typer.echo(f"released  {out}  ({made.guarantee.sentence()})")
    typer.echo(f"page      {out / 'card.html'}")
    typer.echo(f"check     adumbra verify {out}")
