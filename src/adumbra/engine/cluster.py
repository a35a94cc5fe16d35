"""Workers for the Dask engine: processes of this machine, or a cluster that is there already.

Whoever can talk to a Dask scheduler can run code on its workers, so every channel is TLS with
certificates on both sides. A local cluster makes its own, in memory, for one run. To another host
nothing goes without TLS (channels.py); its files are those that Dask's own configuration names.
"""

import ast
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import dask
from distributed import Client, LocalCluster
from distributed.security import Security

from adumbra.engine.channels import require_safe
from adumbra.engine.dask import DaskEngine
from adumbra.engine.local import Progress, silent
from adumbra.errors import ClusterFailed, require

MEMORY = dict.fromkeys(("target", "spill", "pause", "terminate"), False)  # no row and no key on a disk
CONNECT, START = 30, 300  # seconds, to a scheduler and for processes of our own
HERE = "127.0.0.1:0"  # Dask listens for HTTP in any case: not to others, and without a page


def local_engine(
    workers: int | None = None,
    *,
    threads: int | None = None,
    parts: str | Path | None = None,
    memory: int | None = None,
    progress: Progress = silent,
) -> DaskEngine:
    """An engine on worker processes of this machine; use it as a context manager, or `close` it.

    `memory` is the most, in bytes, that this process and each worker may take: a release that needs more
    is refused before the charge. Until the engine is closed Dask's settings of this process are those of
    a cluster that keeps nothing on disk. In a script, call it below `if __name__ == "__main__":`.
    """
    cores = os.cpu_count() or 1
    count = workers if workers is not None else cores
    require(count >= 1, f"workers={workers}: must be at least 1")
    each = threads if threads is not None else max(1, cores // count)
    require(each >= 1, f"threads={threads}: must be at least 1")
    require_guard()
    fault = ""
    try:
        client, close = _started(count, each)
    except (OSError, RuntimeError) as error:  # TimeoutError is an OSError
        fault = type(error).__name__
    if fault:  # outside the handler: what Dask says may name files
        remedy = "ask for fewer by --workers or workers=..., or look at the machine's memory and load"
        rule = f"did not all start within {START} seconds ({fault})"
        raise ClusterFailed(f"workers={count}: {rule}; {remedy} (nothing was charged)")
    return DaskEngine(client, close=close, parts=_path(parts), memory=memory, progress=progress)


def _started(count: int, threads: int) -> tuple[Client, Callable[[], None]]:
    """A client of a new cluster whose workers are there, and what ends both."""
    settings = {
        "distributed.worker.memory": {**dask.config.get("distributed.worker.memory", {}), **MEMORY},
        "distributed.worker.profile.enabled": False,
        "distributed.deploy.lost-worker-timeout": "1h",  # one that was killed is started again
        "distributed.admin.tick.interval": "1s",  # nobody looks at how busy its loops are, ...
        "distributed.admin.system-monitor.interval": "1h",  # ... or at the machine
        "distributed.scheduler.http.routes": [],  # no pages, and (below) no dashboard
        "distributed.worker.http.routes": [],
    }
    with ExitStack() as held:
        held.enter_context(dask.config.set(settings))
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=threads,
            processes=True,
            host="127.0.0.1",
            security=Security.temporary(),
            scheduler_kwargs={"dashboard": False, "dashboard_address": HERE},
            worker_dashboard_address=HERE,
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        )
        held.callback(cluster.close)
        cluster.new_spec["options"]["dashboard"] = False
        cluster.scale(count)
        client = Client(cluster, direct_to_workers=True, set_as_default=False)
        held.callback(client.close)
        client.wait_for_workers(count, timeout=START)
        return client, held.pop_all().close


def require_guard() -> None:
    """Refuse a script whose own statement would start the engine again in every worker.

    A worker process imports the script that started it. Unless the statement stands below
    `if __name__ == "__main__":`, each worker would make workers of its own and none would be ready.
    """
    if dask.config.get("distributed.worker.multiprocessing-method", "spawn") == "fork":
        return
    guard = 'if __name__ == "__main__":'
    rule = f"it would run again in every worker; put what starts it below `{guard}`"
    is_worker = getattr(multiprocessing.current_process(), "_inheriting", False)
    line = None if is_worker else _unguarded_line()
    where = "the script" if line is None else f"line {line} of the script"
    require(not is_worker and line is None, f"local_engine in {where}: {rule}")


def _unguarded_line() -> int | None:
    """The line of the running script that a worker would run, too; None if there is none."""
    main = sys.modules.get("__main__")
    path, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if path is None or (spec is not None and spec.name.rpartition(".")[2] == "__main__"):
        return None  # a worker imports neither a session nor a package that runs by `-m`
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  (the only way to the statement that runs)
    line = None
    while frame is not None:
        is_script = frame.f_code.co_name == "<module>" and frame.f_globals is vars(main)
        line, frame = frame.f_lineno if is_script else line, frame.f_back
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    guards = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _names_main(node.test)]
    inside = any(
        node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)
        for node in guards
        if line is not None
    )
    return None if inside else line


def _names_main(test: ast.expr) -> bool:
    """Whether a condition looks at `__name__`."""
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


def connect(
    scheduler: str,
    *,
    parts: str | Path | None = None,
    memory: int | None = None,
    progress: Progress = silent,
) -> DaskEngine:
    """An engine on the workers of a scheduler, by its address: tls://host:port.

    `memory` is the most, in bytes, that this process and each worker may take.
    """
    require_safe(scheduler)
    security = Security(require_encryption=True) if scheduler.startswith("tls://") else None
    client = None
    try:
        client = Client(
            scheduler, security=security, direct_to_workers=True, set_as_default=False, timeout=CONNECT
        )
        client.wait_for_workers(1, timeout=CONNECT)
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError):
        if client is not None:
            client.close()
        client = None
    if client is None:  # outside the handler: what it says may name files
        remedy = "check the address, that workers run, and Dask's distributed.comm.tls settings"
        raise ClusterFailed(f"scheduler={scheduler}: cannot be reached, or has no workers; {remedy}")
    try:
        for worker in client.nthreads():
            require_safe(worker, "worker")
    except BaseException:
        client.close()
        raise
    return DaskEngine(client, close=client.close, parts=_path(parts), memory=memory, progress=progress)


def _path(folder: str | Path | None) -> Path | None:
    return None if folder is None else Path(folder)
