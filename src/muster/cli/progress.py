"""A progress bar for whatever takes over two seconds, on stderr, and only where a person is looking."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

PATIENCE = 2.0


class Bar:
    """Call it with (done, total); it shows itself once two seconds have passed, and leaves no trace."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._shown: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> "Bar":
        return self

    def __call__(self, done: int, total: int) -> None:
        if self._shown is None:
            if time.monotonic() - self._began < PATIENCE or not sys.stderr.isatty():
                return
            self._show()
        if self._shown is not None:
            self._shown.update(self._task, completed=done, total=total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.stop()

    def _show(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        self._shown = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self._task = self._shown.add_task(self._label, total=None)
        self._shown.start()
