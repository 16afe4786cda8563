"""What the quality probes of one variant gave (``asked.json``, ``quality.json``)."""

from __future__ import annotations

from pydantic import Field

from scripts.lib.base.schema import SCHEMA_VERSION, Strict


class ItemResult(Strict):
    """One probe item, answered and graded. None: the axis has no such measure."""

    id: str
    axis: str
    task_success: bool | None
    format_ok: bool | None
    tool_success: bool | None
    degenerate: bool
    reason: str
    text: str
    tool_calls: list[dict[str, object]] = Field(default=[], description="As the server sent them.")
    finish_reason: str | None = None
    output_tokens: int | None = None
    duration_s: float | None = Field(default=None, description="From sending to the last byte.")
    error: str | None = Field(default=None, description="The request failed; then not graded.")

    @property
    def passed(self) -> bool | None:
        """The item's main measure: the first of task, tool and format success that exists."""
        for value in (self.task_success, self.tool_success, self.format_ok):
            if value is not None:
                return value
        return None


class AskedProbes(Strict):
    """``asked.json``: how one variant was asked; its answers are in ``completions.jsonl.gz``."""

    schema_version: int = SCHEMA_VERSION
    variant: str
    probe_files: dict[str, str] = Field(description="Probe file -> SHA-256.")
    settings: dict[str, object] = Field(description="temperature, seed, max_tokens, ...")
    not_applicable: str | None = Field(
        default=None, description="Why no quality was measured (dummy weights, start failed)."
    )


class QualityResult(AskedProbes):
    """``quality.json``: how one variant was asked, and all its items, graded."""

    items: list[ItemResult]
