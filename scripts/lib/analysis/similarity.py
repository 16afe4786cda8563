"""How alike two answers are, letter by letter."""

from __future__ import annotations

from difflib import SequenceMatcher


def similarity(a: str, b: str) -> float:
    """Return the share of characters in common blocks, 0 to 1 (Ratcliff and Obershelp)."""
    return SequenceMatcher(None, a, b, autojunk=False).ratio()
