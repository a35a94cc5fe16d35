"""kill -9 at a named place of the protocol, again and again, and a look at what is left each time.

Run as a script with one JSON object on its command line; it prints counts as JSON. Each run forks a
child, which replaces `files.checkpoint` by one that sends itself SIGKILL at the place under
test, and makes one release. The parent then opens the ledger as a stranger would.
"""

import hashlib
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from adumbra.errors import AdumbraError, LedgerError
from adumbra.privacy.guarantee import promise
from adumbra.privacy.ledger import (
    Ledger,
    Population,
    State,
    create_ledger,
    files,
    open_ledger,
    tree_digest,
)
from adumbra.relations import Neighbours, Unit

PROTOCOL, WORKFLOW = "protocol", "workflow"  # the ledger alone, or `workflow.release` with real files
RANDOM = "at a random moment"
RESUME = "resume: checked"
POINTS = (
    "reserve: before",
    "reserve: charged, not committed",
    "reserve: chained, not committed",
    "reserve: written, not committed",
    "reserve: committed",
    "draw: before",
    "draw: written, not committed",
    "draw: committed, no secret yet",
    "writer: noise drawn",
    "writer: half written",
    "writer: written",
    "seal: before the flush",
    "seal: flushed",
    "seal: written, not committed",
    "seal: committed",
    "publish: before",
    "publish: written, not committed",
    "publish: committed, not moved",
    "publish: moved, not flushed",
    "publish: moved and flushed",
    "commit: before",
    "commit: written, not committed",
    "commit: committed",
    RESUME,
    RANDOM,
)
UNPAID, TWICE = "planted: released unpaid", "planted: drawn twice"  # wrong on purpose: must be seen
EPSILON = 0.001


def die_at(place: str):
    """A checkpoint that kills its process at one place."""

    def checkpoint(name: str) -> None:
        if name == place:
            os.kill(os.getpid(), signal.SIGKILL)

    return checkpoint


def real_release(location: str, folder: Path) -> None:
    """The whole product: a small table through `workflow.release`, with its card and page."""
    from dataclasses import replace

    from adumbra import prepared, workflow
    from adumbra.mechanisms import methods
    from adumbra.mechanisms.projection.config import JLLaplaceConfig
    from adumbra.schema.schema import Schema

    def before_and_after(act, before: str, after: str):
        def wrapped(*arguments, **keywords):
            files.checkpoint(before)
            made = act(*arguments, **keywords)
            files.checkpoint(after)
            return made

        return wrapped

    right = methods.method_named("jl-laplace")
    draw = before_and_after(right.draw, "writer: noise drawn", "writer: half written")
    stopped = replace(right, steps=lambda: replace(right.steps(), draw=draw))
    methods.METHODS = tuple(stopped if one is right else one for one in methods.METHODS)
    prepared.write_staged = before_and_after(prepared.write_staged, "writer: staging", "writer: written")
    rows = np.random.default_rng(0).uniform(-1, 1, (64, 3))
    config = JLLaplaceConfig(n_components=2, epsilon=EPSILON, row_norm=1.0)
    name = f"release-{os.getpid()}-{time.monotonic_ns()}"
    schema = Schema.numeric(3, -1.0, 1.0)
    workflow.release(
        rows, config, schema=schema, ledger=location, population="people", out=folder / name
    )


def release_digest(folder: Path) -> str:
    """What the ledger knows a real release by."""
    from adumbra.release.artifact import verify

    return verify(folder).digest


DIGESTS = {PROTOCOL: tree_digest, WORKFLOW: release_digest}


def one_release(ledger: Ledger, folder: Path) -> None:
    """reserve to commit, with bytes that are the noise of this grant."""
    guarantee = promise(EPSILON, 0.0, Unit.ROW, Neighbours.REPLACE_ONE)
    entry = ledger.reserve("people", guarantee, request={"method": "crash"}, source_pin="pin")
    grant = ledger.draw(entry, ("rows",))
    noise = grant.key("rows").words("crash", 512).tobytes()
    with (folder / "draws.log").open("a") as log:  # what an observer of the noise has seen
        log.write(f"{entry} {hashlib.sha256(noise).hexdigest()}\n")
    files.checkpoint("writer: noise drawn")
    staged = folder / f".{entry}.staged"
    staged.mkdir()
    (staged / "rows.bin").write_bytes(noise)
    files.checkpoint("writer: half written")
    (staged / "card.json").write_text(json.dumps({"entry": entry}))
    files.checkpoint("writer: written")
    ledger.seal(entry, staged=staged, digest=tree_digest(staged))
    ledger.publish(entry, folder / f"release-{entry}")
    ledger.commit(entry)


def release_once(driver: str, location: str, folder: Path) -> None:
    """One release by one of the two ways."""
    if driver == WORKFLOW:
        real_release(location, folder)
    else:
        with open_ledger(location) as ledger:
            one_release(ledger, folder)


def child(driver: str, place: str, location: str, folder: Path) -> None:
    """Die on the way; a child that survives says so by its exit code."""
    if place == RESUME:
        files.checkpoint = die_at("publish: committed, not moved")
        pid = os.fork()
        if pid == 0:
            release_once(driver, location, folder)
            os._exit(0)
        os.waitpid(pid, 0)
        ledger = open_ledger(location)
        files.checkpoint = die_at(place)
        ledger.resume(ledger.show("people")[0].stranded[-1].id, digest_of=DIGESTS[driver])
    elif place == UNPAID:
        (folder / "release-unpaid").mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
    elif place == TWICE:
        release_once(driver, location, folder)
        log = folder / "draws.log"
        log.write_text(log.read_text() + log.read_text().split()[0] + " othernoise\n")
        os.kill(os.getpid(), signal.SIGKILL)
    elif place == RANDOM:
        while True:
            release_once(driver, location, folder)
    else:
        files.checkpoint = die_at(place)
        release_once(driver, location, folder)


def kill_one(driver: str, place: str, location: str, folder: Path, delay: float) -> bool:
    """Fork, let it die, and say whether it was killed."""
    pid = os.fork()
    if pid == 0:
        try:
            child(driver, place, location, folder)
        finally:
            os._exit(0)
    if place == RANDOM:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def inspect(driver: str, ledger: Ledger, folder: Path, counts: Counter[str]) -> list:
    """What must hold whatever happened; returns the stranded entries."""
    try:
        ledger.verify()
    except AdumbraError:
        counts["corrupt"] += 1
    statement = ledger.show("people")[0]
    entries = {entry.id: entry for entry in statement.entries}
    for release in folder.glob("release-*"):
        found = [entry for entry in entries.values() if entry.target == str(release)]
        paid = len(found) == 1 and found[0].state in (State.PUBLISHING, State.PUBLISHED)
        if not paid or DIGESTS[driver](release) != found[0].digest:
            counts["uncharged"] += 1
    log = folder / "draws.log"
    draws = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    counts["redraws"] += len(draws) - len({entry for entry, _ in draws})
    counts["redraws"] += len(draws) - len({noise for _, noise in draws})
    for entry, _ in draws:
        if entry not in entries or entries[entry].state in (State.RESERVED, State.VOID):
            counts["uncharged"] += 1
    live = sum(entry.state is not State.VOID for entry in entries.values())
    if statement.spent_units != live * 10**9:
        counts["wrong sums"] += 1
    open_ids = {
        entry.id for entry in entries.values() if entry.state not in (State.PUBLISHED, State.VOID)
    }
    counts["unlisted"] += len(open_ids ^ {entry.id for entry in statement.stranded})
    return list(statement.stranded)


def copy_of(location: str, folder: Path) -> Path | None:
    """What `cp` makes of a SQLite ledger as the crash left it: the one file, nothing beside it."""
    if "://" in location:
        return None
    copy = folder / "copy.db"
    shutil.copy(location, copy)
    copy.chmod(0o600)
    return copy


def inspect_copy(ledger: Ledger, copy: Path, counts: Counter[str]) -> None:
    """A copy is whole and has every spend where the ledger has it (or further), or `verify` says no."""
    order = list(State)
    try:
        with open_ledger(copy) as copied:
            copied.verify()
            found = {entry.id: entry.state for entry in copied.show("people")[0].entries}
        counts["whole copies"] += 1
    except AdumbraError:
        counts["refused copies"] += 1
        return
    finally:
        copy.unlink()
    for entry in ledger.show("people")[0].entries:
        state = found.get(entry.id)
        counts["forgotten"] += state is None or order.index(state) < order.index(entry.state)


def recover(driver: str, ledger: Ledger, folder: Path, stranded: list, counts: Counter[str]) -> None:
    """A steward's morning: resume what was sealed, void some of what was only reserved."""
    for entry in stranded:
        counts["stranded"] += 1
        if entry.state is not State.RESERVED:
            try:
                ledger.draw(entry.id, ("rows",))
                counts["redraws"] += 1
            except LedgerError:
                counts["redraws refused"] += 1
        if entry.state in (State.SEALED, State.PUBLISHING):
            place = folder / f"release-{entry.id}"
            target = ledger.resume(entry.id, place, digest_of=DIGESTS[driver])
            counts["other bytes"] += DIGESTS[driver](target) != entry.digest
            counts["resumed"] += 1
        elif entry.state is State.RESERVED:
            ledger.void(entry.id, "stranded by a crash")
            counts["voided"] += 1
        else:
            counts["lost"] += 1


def grid(driver: str, place: str, location: str, folder: Path, runs: int) -> Counter[str]:
    """So many kills at one place, on one ledger."""
    counts: Counter[str] = Counter(
        dict.fromkeys(("uncharged", "corrupt", "redraws", "unlisted", "wrong sums", "forgotten"), 0)
    )
    rng = np.random.default_rng(sum(map(ord, place)))
    with create_ledger(location) as ledger:
        ledger.register(Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 1000.0, 0.0))
    lost: set[str] = set()
    for _ in range(runs):
        counts["kills"] += kill_one(driver, place, location, folder, float(rng.uniform(0.001, 0.08)))
        copy = copy_of(location, folder)
        with open_ledger(location) as ledger:
            if copy is not None:
                inspect_copy(ledger, copy, counts)
            stranded = [
                entry for entry in inspect(driver, ledger, folder, counts) if entry.id not in lost
            ]
            recover(driver, ledger, folder, stranded, counts)
            lost |= {entry.id for entry in stranded if entry.state is State.DRAWN}
            left = inspect(driver, ledger, folder, counts)
            counts["unlisted"] += {entry.id for entry in left} != lost
        for old in folder.glob("release-*"):
            shutil.rmtree(old)
            counts["released"] += 1
    return counts


def main() -> None:
    """`{"driver", "runs", "jobs": [[place, location, folder], ...]}` in, counts by place out."""
    work = json.loads(sys.argv[1])
    driver = work.get("driver", PROTOCOL)
    found = {
        place: grid(driver, place, location, Path(folder), work["runs"])
        for place, location, folder in work["jobs"]
    }
    print(json.dumps(found))  # noqa: T201  the report


if __name__ == "__main__":
    main()
