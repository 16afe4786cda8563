"""How every command line ends: with its status, also when nobody reads its output any more."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn


def run_main(main: Callable[[], int]) -> NoReturn:
    """Run ``main`` and leave with its status.

    A reader that went away (``| head -1``) ends it quietly with the status of SIGPIPE (141), as
    it ends ``cat``; Ctrl-C with 130.
    """
    try:
        try:
            status = main()
        finally:
            sys.stdout.flush()  # here, not at Python's end, where it could not be caught
    except BrokenPipeError:
        status = 128 + signal.SIGPIPE
        _silence()
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    sys.exit(status)


def _silence() -> None:
    """Send what is still buffered nowhere, so that Python does not complain as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
