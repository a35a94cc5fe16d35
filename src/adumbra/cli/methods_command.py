"""`methods`: what each method is for, what it takes, and its options."""

import json as json_module

import typer

from adumbra.cli.flags import AsJson
from adumbra.cli.plan_views import print_hanging


def methods(json: AsJson = False) -> None:
    """List the methods: what each is for, and its options with their choices, defaults and meaning."""
    from adumbra.cli.option_words import PURPOSES, TAKES
    from adumbra.cli.options import config_classes, describe_options

    described = {name: describe_options(name) for name in config_classes()}
    if json:
        facts = {
            name: {
                "for": PURPOSES[name],
                "data": TAKES[name][0],
                "neighbours": TAKES[name][1],
                "options": [list(row) for row in rows],
            }
            for name, rows in described.items()
        }
        typer.echo(json_module.dumps(facts, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for name, rows in described.items():
        console.print(f"[bold]--method {name}[/bold]")
        print_hanging(console, f"for {PURPOSES[name]}", "  ")
        print_hanging(console, f"takes {TAKES[name][0]}; neighbours {TAKES[name][1]}", "  ")
        table = Table("option", "is", "default", "means", box=None, padding=(0, 1, 0, 2))
        for row in rows:
            table.add_row(*row)
        console.print(table)
