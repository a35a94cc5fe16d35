"""Write docs/reference/cli.md from the commands themselves: `python tools/cli_reference.py`."""

from pathlib import Path
from typing import Any  # the command classes are typer's own

import typer

from adumbra.cli.main import app

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/cli.md"
HEAD = """# The command line

Exit codes: 0 done, 2 bad input or usage, 3 refused by the budget, 4 verification failed, 1 anything
else. `--json` prints one JSON object on stdout; progress and errors go to stderr. This page is written
by `python tools/cli_reference.py`.
"""


def describe(words: tuple[str, ...], command: Any) -> list[str]:
    """One command: its help and a table of its parameters."""
    lines = [f"\n## adumbra {' '.join(words)}\n", (command.help or "").strip(), ""]
    rows = []
    for parameter in command.params:
        if parameter.name == "help":
            continue
        name = (
            ", ".join(parameter.opts)
            if parameter.param_type_name == "option"
            else (parameter.name or "").upper()
        )
        need = "needed" if parameter.required else ""
        text = " ".join((getattr(parameter, "help", "") or "").split())
        rows.append(f"| `{name}` | {need} | {text} |")
    if rows:
        lines += ["| | | |", "| --- | --- | --- |", *rows]
    return lines


def walk(group: Any, prefix: tuple[str, ...] = ()) -> list[str]:
    """All commands below a group, by name."""
    lines: list[str] = []
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            lines += walk(command, (*prefix, name))
        else:
            lines += describe((*prefix, name), command)
    return lines


def main() -> None:
    """Write the page."""
    PAGE.write_text(HEAD + "\n".join(walk(typer.main.get_command(app))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
