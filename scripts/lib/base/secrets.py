"""What tokens and keys look like, whatever the place in which they stand."""

from __future__ import annotations

import re

KNOWN_SECRETS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("hugging-face-token", r"\bhf_[A-Za-z0-9]{16,}\b"),
        ("api-key", r"\bsk-(?:proj-|ant-|or-)?[A-Za-z0-9_-]{20,}"),
        ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
        ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{16,}"),
        ("slack-token", r"\bxox[abposr]-[A-Za-z0-9-]{10,}"),
        ("nvidia-key", r"\bnvapi-[A-Za-z0-9_-]{20,}"),
        ("google-key", r"\bAIza[A-Za-z0-9_-]{30,}"),
        ("aws-key-id", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        ("web-token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
        (
            "private-key",
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
        ),
    )
)
"""Kind -> pattern of secrets that are known by their own form."""
