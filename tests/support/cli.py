"""Run the installed command as a person would: real files, real exit codes."""

import os
import pty
import subprocess

from typer.testing import CliRunner

from adumbra.cli.main import app
from adumbra.errors import AdumbraError
from support.warm import COMMAND, cold, parent, warm


def adumbra(*arguments, cwd=None, stdin=""):
    """The finished process, with its text; it is forked from one that has loaded the package."""
    return warm([str(COMMAND), *map(str, arguments)], cwd, stdin)


def installed(*arguments, cwd=None, stdin=""):
    """The same from the start, as at a shell."""
    return cold([str(COMMAND), *map(str, arguments)], cwd, stdin)


def at_terminal(*arguments, answer, cwd=None):
    """The same at a terminal, where a person types the answer; what is printed still goes to pipes."""
    person, terminal = pty.openpty()
    os.write(person, answer.encode())
    try:
        return parent().run([str(COMMAND), *map(str, arguments)], cwd, terminal)
    finally:
        os.close(person)
        os.close(terminal)


def in_process(*arguments):
    """The same without a process of its own, where only words and exit codes matter: much faster."""
    command = [str(argument) for argument in arguments]
    done = CliRunner().invoke(app, command)
    if done.exception is None or isinstance(done.exception, SystemExit):
        return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)
    if not isinstance(done.exception, AdumbraError):
        raise done.exception
    code = done.exception.exit_code
    return subprocess.CompletedProcess(command, code, done.stdout, f"error: {done.exception}\n")


def at_hidden_prompts(*arguments, answers, cwd=None):
    """At a terminal whose prompts hide what is typed: each answer goes out when its prompt is there."""
    person, terminal = pty.openpty()
    command = [str(COMMAND), *map(str, arguments)]
    try:
        process = subprocess.Popen(
            command, cwd=cwd, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        seen = b""
        for answer in answers:
            asked = b""
            while not asked.endswith(b": "):
                letter = process.stderr.read(1)
                assert letter, seen + asked
                asked += letter
            seen += asked
            os.write(person, answer.encode())
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(
            command, process.returncode, out.decode(), (seen + err).decode()
        )
    finally:
        os.close(person)
        os.close(terminal)
