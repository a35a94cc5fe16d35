"""Run a part of the audit in a process of its own, and take its reports one at a time.

A planted bug changes the code of a whole process, and so does watching its stdout: a release in another
thread would be made by the wrong code. So neither is done here. `python -m adumbra.audit` is the process
that does (`__main__`); it reads no data and ends with the audit.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from adumbra.errors import VerificationFailed

SHOWN = 2_000  # bytes of a broken process's last words


def reports(*arguments: object) -> Iterator[Any]:
    """What `python -m adumbra.audit` reports for these arguments; raises if it does not end well."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as lines:
            try:
                child = _started(writing, arguments, out, err)
            finally:
                os.close(writing)
            try:
                for line in lines:
                    yield json.loads(line)
                code = child.wait()
            finally:
                child.kill()  # whoever stops listening ends it
                child.wait()
        if code != 0:
            raise VerificationFailed(f"the auditor's own process ended with code {code}: {_last(err)}")


def _started(
    writing: int, arguments: tuple[object, ...], out: IO[bytes], err: IO[bytes]
) -> subprocess.Popen[bytes]:
    # -P: no module is taken from the folder that the audit happens to run in
    command = [sys.executable, "-P", "-m", "adumbra.audit", str(writing), *map(str, arguments)]
    return subprocess.Popen(  # noqa: S603 - our own module
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=(writing,)
    )


def _last(err: IO[bytes]) -> str:
    size = err.seek(0, os.SEEK_END)
    err.seek(max(0, size - SHOWN))
    return err.read().decode(errors="backslashreplace").strip()
