"""`methods`: what each method is for, what it takes, and its options."""

from adumbra.cli.options import AsJson, print_json
from adumbra.cli.planning import print_hanging


def methods(json: AsJson = False) -> None:
    """List the methods: what each is for, and its options with defaults."""
    from adumbra.cli.options import describe_options
    from adumbra.mechanisms.methods import METHODS

    if json:
        facts = {
            method.name: {
                "for": method.purpose,
                "data": method.data,
                "neighbours": method.neighbours,
                "options": [list(row) for row in describe_options(method.config)],
            }
            for method in METHODS
        }
        print_json(facts)
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for method in METHODS:
        console.print(f"[bold]--method {method.name}[/bold]")
        print_hanging(console, f"for {method.purpose}", "  ")
        print_hanging(console, f"takes {method.data}; neighbours {method.neighbours}", "  ")
        table = Table("option", "is", "default", "means", box=None, padding=(0, 1, 0, 2))
        for row in describe_options(method.config):
            table.add_row(*row)
        console.print(table)
