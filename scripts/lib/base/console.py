"""What a running job says: one line per state, on the terminal and in the job's log."""

from __future__ import annotations

import errno
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

FULL_DISK = (
    "the disk is full (that of results/, or of the folder of temporary files); make room, then run "
    "the same command again to go on"
)


class Console:
    """Says lines with the time and the job's name before them."""

    def __init__(self, job: str, log: Path | None = None) -> None:
        """Make a console for ``job``; ``log`` is emptied and gets every line as well."""
        self.job = job
        self._log = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._log = log.open("w", encoding="utf-8")

    def say(self, text: str) -> None:
        """Print one line."""
        line = f"[{time.strftime('%H:%M:%S')}] {self.job}: {text}"
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the place that prints
        self.note(line)

    def note(self, text: str) -> None:
        """Write one line to the log only."""
        if self._log is not None:
            self._log.write(text + "\n")
            self._log.flush()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class JobError(Exception):
    """A job that cannot be done; the message is a sentence that says why and what to do."""


def _is_full_disk(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _is_ours(error: BaseException) -> bool:
    return type(error).__module__.startswith("scripts.")


def run_job(console: Console, job: Callable[[], None]) -> int:
    """Run ``job`` and return its exit status: 0 done, 1 with a sentence, 130 interrupted.

    SIGTERM ends it as Ctrl-C does, so that what it started is ended too.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        job()
    except (JobError, ValueError, OSError) as error:
        if _is_full_disk(error):
            console.say(f"stopped: {FULL_DISK}")
            return 1
        if not _is_ours(error):  # ours say all in their sentence; Snakemake shows this log
            console.note(traceback.format_exc())
        console.say(f"stopped: {error}")
        return 1
    except KeyboardInterrupt:
        console.say("interrupted")
        return 130
    except Exception:
        console.note(traceback.format_exc())
        raise
    return 0
