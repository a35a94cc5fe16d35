"""What a long grid has shown, kept in a file: it can be run in pieces, stopped, and taken up again.

    pytest tests/audit --evidence FILE

Each test that ends leaves one line: its outcome, its figures, its processor time, and the commit that
last changed what it depends on: the code, its own file, and everything in `tests` that is not a file of
tests (`support`, `conftest.py`, data). Files of tests do not load each other; a test checks. What passed
at that commit is not run again. A later run of a test replaces its line, so the file says of every test
when it was last run, and how it went.
"""

import json
import os
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What a result depends on, beside the file of its test.
CODE = ("src", "tests", "pyproject.toml", "constraints.txt", ":(exclude,glob)tests/**/test_*.py")
PASSED, CPU = "passed", "cpu"


def stamp(tests: str, root: Path = ROOT) -> str:
    """The commit that last changed what a file of tests depends on; `changed` where it is not committed.

    An exclusion holds for the whole command, so the file of tests is asked for by itself.
    """

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    parts = (CODE, (tests,))
    if any(git("status", "--porcelain", "--", *part) for part in parts):
        return "changed"
    found = {commit for part in parts if (commit := git("rev-list", "-1", "HEAD", "--", *part))}
    return git("rev-list", "-1", "--topo-order", *found)


def read(path: Path) -> dict[str, dict]:
    """The last line of each test."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = (json.loads(line) for line in lines)
    return {one["test"]: one for one in found}


class Evidence:
    """Leaves lines of finished tests, and leaves out tests that have theirs."""

    def __init__(self, path: Path, *, is_writer: bool) -> None:
        self.path, self.is_writer = path, is_writer
        self.stamps = dict[str, str]()  # of each file of tests
        self.before = 0.0  # processor time when the test began

    def commit_of(self, test: str) -> str:
        """The commit that last changed what a test depends on."""
        tests = test.partition("::")[0]
        if tests not in self.stamps:
            self.stamps[tests] = stamp(tests)
        return self.stamps[tests]

    def is_now(self, one: dict) -> bool:
        """Whether a line is of the code as it is now."""
        return one["commit"] == self.commit_of(one["test"]) != "changed"

    def passed(self) -> dict[str, dict]:
        """What this code has shown so far."""
        known = read(self.path)
        return {
            name: one for name, one in known.items() if one["outcome"] == PASSED and self.is_now(one)
        }

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Run what is not shown yet."""
        shown = self.passed()
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in shown])
        items[:] = [item for item in items if item.nodeid not in shown]

    def pytest_runtest_logstart(self) -> None:
        """A test begins in this process."""
        self.before = _processor_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo):
        """Hand its processor time over with its report."""
        report = yield
        if call.when == "call":
            used = round(_processor_time() - self.before, 2)
            report.user_properties = [*report.user_properties, (CPU, used)]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave the line of a test, as soon as it has ended."""
        if not self.is_writer or (report.when != "call" and report.outcome == PASSED):
            return
        told = [pair for pair in report.user_properties if pair[0] != CPU]
        line = {"test": report.nodeid, "outcome": report.outcome}
        line["commit"] = self.commit_of(report.nodeid)
        line |= {CPU: dict(report.user_properties).get(CPU, 0.0), "figures": told}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_sessionfinish(self) -> None:
        """Keep one line per test, in the order of their names."""
        if self.is_writer:
            lines = [json.dumps(one) + "\n" for _, one in sorted(read(self.path).items())]
            self.path.write_text("".join(lines), encoding="utf-8")


def _processor_time() -> float:
    """Seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def figures(config: pytest.Config, terminalreporter) -> dict[str, list]:
    """By name, what the passed tests recorded: those of the evidence, or those of this run alone."""
    told = defaultdict(list)
    kept: Evidence | None = config.pluginmanager.get_plugin("evidence")
    if kept is None:
        reports = [each for each in terminalreporter.getreports(PASSED) if each.when == "call"]
        pairs = [pair for report in reports for pair in report.user_properties]
    else:
        pairs = [pair for one in kept.passed().values() for pair in one["figures"]]
    for name, value in pairs:
        told[name].append(value)
    return told


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option."""
    parser.addoption("--evidence", type=Path, help="keep what passed in this file, and run the rest")


def pytest_configure(config: pytest.Config) -> None:
    """Only where it is asked for."""
    if config.option.evidence is not None:
        if os.environ.get("ADUMBRA_FULL") != "1":
            raise pytest.UsageError("--evidence: is of the whole grids; set ADUMBRA_FULL=1")
        is_writer = not hasattr(config, "workerinput")
        config.pluginmanager.register(Evidence(config.option.evidence, is_writer=is_writer), "evidence")


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """How much of the evidence is there."""
    kept = config.pluginmanager.get_plugin("evidence")
    if kept is None:
        return
    known = read(kept.path)
    now = kept.passed()
    failed = Counter(one["outcome"] for one in known.values() if kept.is_now(one))["failed"]
    cpu = sum(one[CPU] for one in now.values()) / 60
    older = len(known) - len(now) - failed
    terminalreporter.section("evidence", sep="=")
    terminalreporter.line(
        f"{kept.path}: {len(now)} tests passed on the code as it is now, {failed} failed, {cpu:.1f} "
        f"minutes of processor time; {older} others are of older code"
    )
