"""Progress on stderr: stages, public numbers of blocks, their rate and the time that is left."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Task

    from adumbra.engine.base import Progress


@contextmanager
def progress_bar(*, quiet: bool) -> "Iterator[Progress]":
    """Stages and public block counts as a bar on stderr; never a private count."""
    if quiet:
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):
        """What `rate_words` says."""

        def render(self, task: "Task") -> Text:
            return Text(rate_words(task), style="dim")

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), Rate())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


def rate_words(task: "Task") -> str:
    """Blocks per second and the time that is left, where the number of blocks is public."""
    speed, rest = task.finished_speed or task.speed, task.time_remaining
    if task.total is None or speed is None or rest is None:
        return ""
    return f"{speed:.1f} blocks/s, {rest:.0f} s left"
