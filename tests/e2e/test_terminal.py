"""Comforts of the terminal: completion, no colours on demand, attacks with another seed."""

import contextlib
import json
import os
import pty
import re
import subprocess

import pytest

from adumbra.audit import cases
from support.cli import COMMAND, adumbra, in_process, installed


def completed(words):
    asked = {"COMP_WORDS": words, "COMP_CWORD": "1", "_ADUMBRA_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [COMMAND], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_shell_completes_commands():
    assert completed("adumbra eval") == ["evaluate"]
    assert completed("adumbra re") == ["release", "report"]


@pytest.mark.parametrize(
    "words", ["--version", "methods --json", "release", "verify none", "key fingerprint -"]
)
def test_a_forked_command_is_the_installed_one(words, tmp_path):
    """Other tests may fork, and so be spared the start-up: code, words and faults are the same."""
    forked, started = (run(*words.split(), cwd=tmp_path, stdin="x\n") for run in (adumbra, installed))
    assert forked.args == started.args
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode, started.stdout, started.stderr,
    )  # fmt: skip


def test_an_audit_takes_another_seed(monkeypatch):
    every = cases.all_cases
    monkeypatch.setattr(cases, "all_cases", lambda *given: every(*given)[:1])  # one claim is enough
    flags = ("audit", "--method", "jl-laplace", "--delta", "0", "--runs", "200", "--json")
    found = {}
    for seed in ("0", "0", "7"):
        done = in_process(*flags, "--seed", seed)
        assert done.returncode == 0, done.stderr
        found.setdefault(seed, []).append(json.loads(done.stdout)["attacks"])
    assert found["0"][0] == found["0"][1]
    assert found["7"][0] != found["0"][0]
    refused = in_process("audit", "--replay", "--seed", "1")
    assert (refused.returncode, "--seed" in refused.stderr) == (2, True)


def shown_at_terminal(**environment):
    """What a terminal with colours gets of `--help`."""
    person, terminal = pty.openpty()
    given = {**os.environ, "TERM": "xterm-256color", **environment}
    with subprocess.Popen([COMMAND, "--help"], stdout=terminal, stderr=terminal, env=given) as process:
        os.close(terminal)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal is closed with its last reader
            while part := os.read(person, 65536):
                seen += part
    os.close(person)
    assert process.returncode == 0
    return seen


def test_no_color_is_heeded(monkeypatch):
    colour = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colour.search(shown_at_terminal())
    assert not colour.search(shown_at_terminal(NO_COLOR="1"))
