"""Commands without their start-up: a process that has loaded the package, and forks for each command.

A forked command is a process of its own with its own streams, folder, variables and exit code, and runs
the entry point of the installed script. It is spared the second that loading takes, so what is no part
of its claim: how the package is loaded, and what loading prints. For that there is `cold`.

The parent only loads modules and puts the options of commands together. It runs no command and starts
no thread, so that nothing of one command is known to the next.
"""

import atexit
import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path

COMMAND = Path(sys.executable).with_name("adumbra")
# What a command of each kind loads when it runs.
LOADED = (
    "adumbra.cli.main", "adumbra.cli.comparing", "adumbra.cli.engines", "adumbra.prepared",
    "adumbra.mechanisms.methods", "adumbra.report.page", "adumbra.answers.askable", "adumbra.evaluate",
    "adumbra.data.sources", "adumbra.privacy.ledger", "adumbra.release.artifact", "pandas", "numba",
    "scipy.special", "scipy.sparse", "pyarrow.parquet", "jsonschema", "sqlalchemy.dialects.sqlite",
    "matplotlib.figure",
)  # fmt: skip
LONGEST = 2**15  # of a text on stdin: a pipe holds it
TIMEOUT = 300


class Parent:
    """The process that forks, seen from the tests."""

    def __init__(self, source: Path | None = None) -> None:
        """A process of the installed package, or of another source tree."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(TIMEOUT)
        self._turn = threading.Lock()
        tests = Path(__file__).resolve().parent.parent
        path = os.pathsep.join(str(place) for place in (tests, source) if place is not None)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from support import warm; warm.start({theirs.fileno()})"],
                env=os.environ | {"PYTHONPATH": path}, cwd=tests, pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        atexit.register(self.close)

    def close(self) -> None:
        """It ends when nobody can ask any more."""
        self._ours.close()
        self._process.wait(timeout=TIMEOUT)

    def run(self, command, cwd, stdin: int) -> subprocess.CompletedProcess:
        """The finished command, which reads from an open file."""
        request = json.dumps([command, str(cwd or Path.cwd()), dict(os.environ)]).encode()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with self._turn:
                socket.send_fds(self._ours, [request], [stdin, out.fileno(), err.fileno()])
                try:
                    code = json.loads(self._ours.recv(64))
                except TimeoutError:
                    self._process.kill()
                    raise
            texts = [(file.seek(0), file.read().decode())[1] for file in (out, err)]
        return subprocess.CompletedProcess(command, code, *texts)


@cache
def parent() -> Parent:
    """The one of this test process."""
    return Parent()


def warm(command, cwd, stdin) -> subprocess.CompletedProcess:
    """The finished command, forked."""
    text = stdin.encode()
    if len(text) > LONGEST:
        return cold(command, cwd, stdin)
    reading, writing = os.pipe()
    try:
        os.write(writing, text)
        os.close(writing)
        return parent().run(command, cwd, reading)
    finally:
        os.close(reading)


def cold(command, cwd, stdin) -> subprocess.CompletedProcess:
    """The finished command, started as at a shell."""
    return subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def serve(number: int) -> bool:
    """Fork for each request; true in the fork, which has become the command, false at the end."""
    with socket.socket(fileno=number) as requests:
        while True:
            request, streams, _, _ = socket.recv_fds(requests, 2**20, 3)
            if not request:
                return False
            child = os.fork()
            if not child:
                break
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(child, 0)
            requests.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())
    become(*json.loads(request), streams)
    return True


def become(command, cwd, variables, streams) -> None:
    """Arguments, folder, variables and streams of the command."""
    sys.argv = command
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (
        open(target, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115 - to the end
        for target, mode, errors in (
            (0, "r", "strict"),
            (1, "w", "strict"),
            (2, "w", "backslashreplace"),
        )
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def start(number: int) -> None:
    """Load the package, then fork for each request; a fork ends as the command does."""
    for name in LOADED:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(name)
    for method in import_module("adumbra.mechanisms.methods").METHODS:
        method.steps()
    import_module("adumbra.cli.main").command()
    gc.collect()
    gc.freeze()  # what is loaded stays shared with the forks: no collection writes to it
    if not serve(number):
        return
    code = 1
    try:
        sys.exit(import_module("adumbra.cli.main").main())
    except SystemExit as done:
        code = done.code
    except BaseException:  # noqa: BLE001 - what nobody caught is shown, as at the end of a process
        traceback.print_exc()
    finally:
        threading._shutdown()  # as at the end of a process: threads, then what is registered
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # and no taking down of every module, which would copy all that is shared
