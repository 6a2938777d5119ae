"""What tests counted while they ran is printed at the end, also when they ran in other processes."""

import pytest
from hypothesis import settings

# No test is about speed: other work may share the machine. The same examples every time, so that a red run is
# about the change it checks; `--hypothesis-profile explore` looks further.
settings.register_profile("shared", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("shared")

FIRED = "fired"
"""Name of the property under which a test records how often something happened, as `name: count` words."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        f"{report.nodeid.rpartition('::')[2]}: {value}"
        for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
        for name, value in report.user_properties
        if name == FIRED
    ]
    if lines:
        terminalreporter.section("how often each action fired")
        for line in lines:
            terminalreporter.write_line(line)
