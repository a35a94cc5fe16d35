"""Run the installed command as a person would: real files, real exit codes."""

import os
import pty
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).with_name("adumbra")


def adumbra(*arguments, cwd=None, stdin=""):
    """The finished process, with its text."""
    command = [str(COMMAND), *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=300, check=False
    )


def at_terminal(*arguments, answer, cwd=None):
    """The same at a terminal, where a person types the answer; what is printed still goes to pipes."""
    person, terminal = pty.openpty()
    os.write(person, answer.encode())
    command = [str(COMMAND), *map(str, arguments)]
    try:
        return subprocess.run(
            command, cwd=cwd, stdin=terminal, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(person)
        os.close(terminal)
