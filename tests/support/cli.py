"""Run the installed command as a person would: real files, real exit codes."""

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
