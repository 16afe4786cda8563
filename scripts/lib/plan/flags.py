"""The settings of a variant that decide memory and kernels, wherever they were given."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.lib.engine.flags import read_flags, serving_flags
from scripts.lib.study.models import Engine, Study, Variant

LOCKED = re.compile(r"^vllm(?:-cpu)?==(\S+)", re.MULTILINE)


class Settings:
    """The resolved serving flags and environment variables of one variant."""

    def __init__(self, variant: Variant, engine: Engine) -> None:
        """Resolve them as the server's command line would."""
        flags = read_flags(serving_flags(variant, engine))
        self.flags = {ALIASES.get(key, key): value for key, value in flags.items()}
        self.environment = {k: str(v) for k, v in {**engine.env, **variant.env}.items()}
        self.tensor_parallel = self.whole("tensor-parallel-size") or 1
        self.pipeline_parallel = self.whole("pipeline-parallel-size") or 1
        self.data_parallel = self.whole("data-parallel-size") or 1
        self.quantization = self.text("quantization")
        self.dtype = self.text("dtype")
        self.kv_cache_dtype = self.text("kv-cache-dtype")
        self.eager = "enforce-eager" in self.flags

    @property
    def gpus(self) -> int:
        """How many GPUs it occupies."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    def text(self, flag: str) -> str | None:
        """Return a flag's value as text; "auto" and an absent flag are None."""
        value = self.flags.get(flag)
        return None if value in (None, "auto", "") else value

    def whole(self, flag: str) -> int | None:
        """Return a flag's value as a whole number; as in vLLM ``8k`` is 8000, ``8K`` is 8192."""
        value = self.text(flag)
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG]?)", value or "")
        if not match:
            return None
        scale = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
        return int(float(match[1]) * scale[match[2]])

    def number(self, flag: str) -> float | None:
        """Return a flag's value as a number."""
        try:
            return float(self.text(flag) or "")
        except ValueError:
            return None


def engine_version(study: Study, variant: str) -> str | None:
    """Return the vLLM version that the variant's locked environment pins; None: not known yet."""
    lock = study.engine_of(variant).environment
    if not lock or not Path(lock).is_file():
        return None
    found = LOCKED.search(Path(lock).read_text(encoding="utf-8"))
    return found[1] if found else None


ALIASES = {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "q": "quantization"}
