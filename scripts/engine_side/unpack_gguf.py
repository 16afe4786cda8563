"""Unpack a GGUF file to a safetensors checkpoint with its tokenizer and chat template.

Runs under the maker's Python (transformers 5, gguf, accelerate, torch), not the workflow's.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PretrainedConfig,
    PreTrainedTokenizerFast,
)

DIGITS_APART = {"smollm", "starcoder", "refact", "command-r", "codeshell"}
"""Values of ``tokenizer.ggml.pre`` that mean: GPT-2's rule, after each digit stands alone."""


def main() -> None:
    """Unpack the file named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--dtype", choices=["bfloat16", "float16"], default="bfloat16")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    config = unpack_model(arguments.gguf, arguments.dtype, arguments.output)
    unpack_tokenizer(arguments.gguf, config.max_position_embeddings, arguments.output)


def unpack_model(gguf: Path, dtype: str, output: Path) -> PretrainedConfig:
    """Write config.json and the weights, every tensor in ``dtype``; return the config."""
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=getattr(torch, dtype),
        # Without this, transformers 5 keeps the blocks of the GGUF file packed.
        quantization_config=GgufConfig(dequantize=True),
    )
    others = {str(p.dtype) for p in model.parameters()} - {f"torch.{dtype}"}
    if others:
        raise SystemExit(f"{gguf.name}: some tensors came out as {', '.join(others)}, not {dtype}")
    # The model's title, which the conversion takes for a path.
    vars(model.config).pop("_model_name_or_path", None)
    model.save_pretrained(output)
    return model.config


def unpack_tokenizer(gguf: Path, max_length: int, output: Path) -> None:
    """Write the tokenizer and the chat template, as the fields of the GGUF file say."""
    converted = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    fields = read_tokenizer_fields(gguf)
    backend = converted.backend_tokenizer
    if fields["model"] == "gpt2":
        repair_byte_level(backend, fields["pre"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
        **fields["special"],
    )
    tokenizer.chat_template = fields["chat_template"] or converted.chat_template
    tokenizer.save_pretrained(output)
    tidy_tokenizer_config(output / "tokenizer_config.json")


def read_tokenizer_fields(gguf: Path) -> dict[str, Any]:
    """Return the fields that the conversion by transformers loses or gets wrong.

    It writes its own defaults for the special tokens (seen: ``eos_token`` is ``<|im_start|>``
    for SmolLM2, where the file says ``<|im_end|>``): the ids of the file decide.
    """
    reader = GGUFReader(gguf)

    def field(name: str) -> object:
        found = reader.get_field(f"tokenizer.{name}")
        return None if found is None else found.contents()

    tokens = reader.get_field("tokenizer.ggml.tokens")
    special = {}
    for kind, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        index = field(f"ggml.{key}_token_id")
        if index is not None and tokens is not None:
            special[f"{kind}_token"] = tokens.contents(int(index))
    return {
        "model": field("ggml.model"),
        "pre": field("ggml.pre"),
        "chat_template": field("chat_template"),
        "special": special,
    }


def repair_byte_level(backend: Tokenizer, pre: str | None) -> None:
    """Give a byte-level BPE its own decoder, and split digits where ``pre`` means that."""
    backend.decoder = decoders.ByteLevel()
    if pre in DIGITS_APART:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )


def tidy_tokenizer_config(path: Path) -> None:
    """Name a class that transformers 4 and 5 both have, and drop what describes this run."""
    config = json.loads(path.read_text(encoding="utf-8"))
    for key in ("backend", "is_local", "local_files_only"):
        config.pop(key, None)
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
