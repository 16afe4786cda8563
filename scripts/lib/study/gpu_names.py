"""The names of the GPUs that a study can be planned for, spelt as people or NVML spell them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import yaml

from scripts.lib.study.sentences import show, suggest

TABLE = Path(__file__).parents[3] / "config" / "reference" / "gpus.yaml"
BRANDS = ("nvidia", "amd", "instinct", "geforce", "tesla", "gpu")


def table_name(name: str) -> str | None:
    """Return the name that our table has for a GPU; None: it is not in it."""
    wanted = _plain(name)
    return next((row for row, known in _spellings().items() if wanted in known), None)


def gpu_problem(name: str) -> str | None:
    """Return why ``host.gpu`` cannot be planned for, with the GPUs that can; None: it can."""
    if table_name(name):
        return None
    wanted, names = _plain(name), list(_spellings())
    near = [row for row in names if wanted and _plain(row).startswith(wanted)]
    if near:
        fix = f"stands for several GPUs; give one of {', '.join(near)}"
    else:
        begins = [row for row in names if len(row) > 2 and wanted.startswith(_plain(row))]
        guess = f'did you mean "{max(begins, key=len)}"?' if begins else ""
        fix = f"is not in the table of GPUs; {guess or suggest(name, names, kind='GPUs')}"
    return f"host.gpu is {show(name)}, which {fix} (config/reference/gpus.yaml)"


@cache
def _spellings() -> dict[str, set[str]]:
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {
        row["name"]: {_plain(n) for n in (row["name"], *row.get("aliases", []))} for row in rows
    }


def _plain(name: str) -> str:
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "".join(word for word in words if word not in BRANDS)
