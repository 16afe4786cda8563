"""Patterns for module names, as quantization settings use them in ``ignore`` and ``targets``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripts.lib.checkpoints.manifest import Scheme


class NamePatterns:
    """Tells if a module is named by one of many patterns.

    ``re:`` patterns match from the start (compressed-tensors), ``*`` stands for anything
    (ModelOpt), a plain name is the module, one around it, or a part of its path.
    Mixture-of-experts checkpoints list tens of thousands of names: plain ones are looked up.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        names = [pattern for pattern in patterns if not _is_expression(pattern)]
        # AQLM names the tensor instead of the module.
        self._plain = {name.removesuffix(".weight") for name in names}
        expressions = [_expression(pattern) for pattern in patterns if _is_expression(pattern)]
        valid = [expression for expression in expressions if expression is not None]
        self._expression = re.compile("|".join(valid)) if valid else None

    def match(self, module: str) -> bool:
        """Say if one of the patterns names ``module``."""
        if self._expression is not None and self._expression.match(module):
            return True
        parts = module.split(".") if self._plain else []
        return any(
            ".".join(parts[start:end]) in self._plain
            for start in range(len(parts))
            for end in range(start + 1, len(parts) + 1)
        )


class SchemeByName:
    """Which part of a scheme applies to a module."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self._ignored = NamePatterns(scheme.ignored)
        self._groups = [(NamePatterns(group.targets), group) for group in scheme.groups]
        rest = [g for g in scheme.groups if not g.targets or "Linear" in g.targets]
        self._rest = rest[0] if rest else scheme

    def ignores(self, module: str) -> bool:
        """Say if the settings leave ``module`` unquantized."""
        return self._ignored.match(module)

    def of(self, module: str) -> Scheme:
        """Return the group that ``module`` belongs to: names before classes of layers."""
        for patterns, group in self._groups:
            if patterns.match(module):
                return group
        return self._rest


def _is_expression(pattern: str) -> bool:
    return pattern.startswith("re:") or "*" in pattern


def _expression(pattern: str) -> str | None:
    """Return a pattern as a regular expression of its own; None: it is not valid."""
    if not pattern.startswith("re:"):
        return f"(?:{re.escape(pattern).replace(chr(92) + '*', '.*')}$)"
    try:
        re.compile(pattern[3:])
    except re.error:
        return None
    return f"(?:{pattern[3:]})"
