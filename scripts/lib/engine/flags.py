"""The command line and the environment that serve one variant."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from scripts.lib.engine.environment import SERVER_MODULE, EngineInfo
from scripts.lib.study.models import Engine, Flags, FlagValue, Variant

TYPED_FLAGS = (
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "max_model_len",
    "gpu_memory_utilization",
    "speculative_config",
    "enable_prefix_caching",
)
SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
LOAD_FORMAT, RANDOM = "load-format", "dummy"
OUR_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # allows /reset_prefix_cache; the server listens on loopback
}


def serving_flags(variant: Variant, engine: Engine) -> list[str]:
    """Return the flags that a variant adds to the server's command, as words.

    The variant's own ``engine_args`` replace flags of the same name from ``engine.args``.
    """
    typed: dict[str, FlagValue] = {
        name: value for name in TYPED_FLAGS if (value := getattr(variant, name)) is not None
    }
    typed |= {name: value for name in SIZES if (value := getattr(variant, name)) > 1}
    if variant.enable_expert_parallel:
        typed["enable_expert_parallel"] = True
    common, own = engine.args, variant.engine_args
    if isinstance(common, dict) and isinstance(own, dict):
        named = {_flag(key): value for key, value in common.items()}
        named |= {_flag(key): value for key, value in {**typed, **own}.items()}
        return words(named)
    return [*words(common), *words(typed), *words(own)]


def words(flags: Flags) -> list[str]:
    """Return flags as command-line words: true gives the bare flag, false its ``--no-`` form."""
    if isinstance(flags, list):
        return [str(word) for word in flags]
    found: list[str] = []
    for key, value in flags.items():
        flag = _flag(key)
        if value is True:
            found.append(flag)
        elif value is False:
            found.append(f"--no-{flag.removeprefix('--')}")
        elif isinstance(value, list):
            found += [flag, *(str(item) for item in value)]
        elif isinstance(value, dict):
            found += [flag, json.dumps(value)]
        else:
            found += [flag, str(value)]
    return found


def read_flags(words: list[str]) -> dict[str, str]:
    """Read ``--flag value``, ``--flag=value`` and bare flags; a later one wins, as in argparse."""
    found: dict[str, str] = {}
    name: str | None = None
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            name = name.replace("_", "-")
            found[name] = value
        elif name is not None and not found[name]:
            found[name] = word
    return found


def asks_for_random_weights(variant: Variant, engine: Engine) -> bool:
    """Say if the flags have the server make random weights, whatever the checkpoint holds."""
    return read_flags(serving_flags(variant, engine)).get(LOAD_FORMAT) == RANDOM


def server_command(
    engine: Engine,
    info: EngineInfo,
    variant: Variant,
    *,
    model: Path,
    served_name: str,
    port: int,
    random_weights: bool = False,
) -> list[str]:
    """Return the command that serves ``variant`` from the folder ``model`` on loopback.

    ``random_weights``: the folder holds none, so the engine makes them unless the flags name
    another format.
    """
    start = engine.command or [str(info.python), "-m", SERVER_MODULE]
    flags = serving_flags(variant, engine)
    if random_weights and LOAD_FORMAT not in read_flags(flags):
        flags += [f"--{LOAD_FORMAT}", RANDOM]
    return [
        *start,
        *("--model", str(model), "--served-model-name", served_name),
        *("--host", "127.0.0.1", "--port", str(port)),
        *flags,
    ]


def server_environment(
    engine: Engine, variant: Variant, *, gpus: list[int], base: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the whole environment of the server's process."""
    return {**base, **set_variables(engine, variant, gpus=gpus)}


def set_variables(engine: Engine, variant: Variant, *, gpus: list[int]) -> dict[str, str]:
    """Return only the variables that we set: the report names them."""
    ours = {**OUR_ENVIRONMENT, "HF_HUB_OFFLINE": "1"}
    if gpus:
        ours["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu) for gpu in gpus)
    given = {**engine.env, **variant.env}
    return {**ours, **{key: str(value) for key, value in given.items()}}


def _flag(key: str) -> str:
    return "--" + key.lstrip("-").replace("_", "-")
