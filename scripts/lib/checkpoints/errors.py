"""The error of this area: one sentence that says what is wrong and what to do."""

from __future__ import annotations

from scripts.lib.base.console import JobError


class CheckpointError(JobError):
    """A checkpoint cannot be made or read; the message names the file and the fix."""
