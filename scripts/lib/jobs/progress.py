"""A load session's progress on a job's console: states also go to the job's log."""

from __future__ import annotations

from scripts.lib.base.console import Console
from scripts.lib.load.progress import ConsoleProgress


class JobProgress(ConsoleProgress):
    """Bars on the terminal; lines through the console."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        self._console.say(text)
