"""What tests cost, in processor time: a busy machine changes it little, unlike `--durations`.

    pytest tests -n 2 --costs 20

Prints the dearest tests and files, the sum of each folder, and when each process had nothing left to do.
A test's cost is that of its process and of the processes that it has waited for, from its set-up to its
teardown: the first test that asks for a shared fixture pays for it.
"""

import os
from collections import defaultdict
from pathlib import PurePosixPath

import pytest

COST = "cost"


def processor_time() -> float:
    """Seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


class Costs:
    """Takes the time of every test, and sums it up."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.before = 0.0
        self.tests = dict[str, float]()
        self.ends = dict[str, float]()  # when each process ended its last test

    def pytest_runtest_logstart(self) -> None:
        """A test begins in this process."""
        self.before = processor_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo):
        """Hand its processor time over with its last report."""
        report = yield
        if call.when == "teardown":
            used = processor_time() - self.before
            report.user_properties = [*report.user_properties, (COST, used)]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test has cost."""
        if report.when == "teardown":
            self.tests[report.nodeid] = dict(report.user_properties).get(COST, 0.0)
            self.ends[getattr(report, "worker_id", "main")] = report.stop

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """The dearest first."""
        by_file, by_folder = defaultdict(float), defaultdict(float)
        for name, cost in self.tests.items():
            file = name.partition("::")[0]
            by_file[file] += cost
            by_folder["/".join(PurePosixPath(file).parts[:2])] += cost
        line = terminalreporter.line
        terminalreporter.section("processor time", sep="=")
        tables = ((self.tests, self.count), (by_file, self.count), (by_folder, len(by_folder)))
        for costs, count in tables:
            for name, cost in sorted(costs.items(), key=lambda one: -one[1])[:count]:
                line(f"{cost:7.1f} s  {name}")
            line("")
        last = max(self.ends.values(), default=0.0)
        idle = ", ".join(f"{name} {last - end:.0f} s" for name, end in sorted(self.ends.items()))
        line(f"{sum(self.tests.values()):7.1f} s  {len(self.tests)} tests; idle at the end: {idle}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option."""
    parser.addoption("--costs", type=int, metavar="N", help="print the N dearest tests and files")


def pytest_configure(config: pytest.Config) -> None:
    """Only where it is asked for."""
    if config.option.costs is not None:
        config.pluginmanager.register(Costs(config.option.costs), "costs")
