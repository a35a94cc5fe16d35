"""Write docs/reference/{cli,methods}.md from the commands: `python tools/cli_reference.py`."""

from pathlib import Path
from typing import Any  # the command classes are typer's own

import typer

from adumbra.cli.main import app
from adumbra.cli.options import describe_options
from adumbra.mechanisms import methods

REFERENCE = Path(__file__).resolve().parent.parent / "docs/reference"
PAGE, METHODS = REFERENCE / "cli.md", REFERENCE / "methods.md"
HEAD = """# The command line

Exit codes: 0 done, 2 bad input or usage, 3 refused by the budget, 4 verification failed, 5 no space left
(disk or quota), 6 a place is read-only or not permitted, 7 not enough memory, 8 the ledger cannot be
written, 9 workers of a cluster were lost, 130 stopped by Ctrl-C and 143 by SIGTERM (the message
says what stays charged), 1 anything else. `--json` prints one JSON object on stdout; progress and errors
go to stderr. This page is written by `python tools/cli_reference.py`.
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
        need = "required" if parameter.required else ""
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


METHODS_HEAD = """# The methods and their options

On the command line an option is `-o name=value`; in Python it is a keyword of the method's config. All
of them are public and stand on the card. This page is written by `python tools/cli_reference.py`.
"""


def methods_page() -> str:
    """A table of options for each method."""
    lines = [METHODS_HEAD]
    for method in methods.METHODS:
        lines += [
            f"## {method.name}\n",
            f"`adumbra.{method.config.__name__}`: {method.purpose}.\n",
            f"Takes {method.data}; neighbours {method.neighbours}.\n",
            "| option | is | default | means |",
        ]
        lines += ["| --- | --- | --- | --- |"]
        lines += [
            f"| `{name}` | {kind} | {default} | {words} |"
            for name, kind, default, words in describe_options(method.config)
        ]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write both pages."""
    METHODS.write_text(methods_page(), encoding="utf-8")
    PAGE.write_text(HEAD + "\n".join(walk(typer.main.get_command(app))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
