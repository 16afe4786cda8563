"""Quantize a checkpoint with llm-compressor.

Runs under the maker's Python (llmcompressor, torch), not the workflow's.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.quantization import preset_name_to_scheme
from datasets import Dataset
from llmcompressor import oneshot
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from llmcompressor.modifiers.transform.awq import AWQModifier
from llmcompressor.pipelines.cache import IntermediatesCache
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

COPIED = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "chat_template*",
    "generation_config.json",
)
"""Files that quantization does not concern: copied byte for byte."""

ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant"}


def main() -> None:
    """Quantize as the command line says."""
    arguments = parse_arguments()
    random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    if not torch.accelerator.is_available():
        # AWQ pins its cache for faster copies to the accelerator, which fails without one.
        IntermediatesCache.pin_memory = lambda *_, **__: None
    model = AutoModelForCausalLM.from_pretrained(arguments.source, dtype="auto")
    oneshot(model=model, recipe=recipe_of(arguments), **calibration_of(arguments))
    model.save_pretrained(arguments.output, save_compressed=True)
    for pattern in COPIED:
        for file in sorted(arguments.source.glob(pattern)):
            shutil.copyfile(file, arguments.output / file.name)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--scheme", required=True)
    parser.add_argument("--method", choices=["rtn", "gptq", "awq"], default="rtn")
    parser.add_argument("--group-size", type=int)
    parser.add_argument("--ignore", nargs="*", default=["lm_head"])
    parser.add_argument("--calibration", type=Path)
    parser.add_argument("--calibration-samples", type=int, default=128)
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


def recipe_of(arguments: argparse.Namespace) -> list[Any]:
    """Return llm-compressor's modifiers for the method and the scheme."""
    scheme = preset_name_to_scheme(arguments.scheme, ["Linear"])
    if arguments.group_size is not None:
        scheme.weights.group_size = arguments.group_size
    settings = {"config_groups": {"group_0": scheme}, "ignore": arguments.ignore}
    if arguments.method == "gptq":
        return [GPTQModifier(**settings)]
    smoothing = [AWQModifier()] if arguments.method == "awq" else []
    return [*smoothing, QuantizationModifier(**settings)]


def calibration_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return ``oneshot``'s data arguments; none without a calibration file."""
    if arguments.calibration is None:
        return {}
    conversations = json.loads(arguments.calibration.read_text(encoding="utf-8"))
    random.Random(arguments.seed).shuffle(conversations)
    tokenizer = AutoTokenizer.from_pretrained(arguments.source)
    rows = []
    for conversation in conversations:
        tokens = tokenize(tokenizer, conversation, arguments.max_tokens)
        if len(tokens) > 1:
            rows.append({"input_ids": tokens, "attention_mask": [1] * len(tokens)})
        if len(rows) == arguments.calibration_samples:
            break
    if not rows:
        raise SystemExit(f"{arguments.calibration}: no conversation with text in it")
    if len(rows) < arguments.calibration_samples:
        print(f"{arguments.calibration} has only {len(rows)} usable conversations: all are used")
    return {
        "dataset": Dataset.from_list(rows),
        "num_calibration_samples": len(rows),
        "shuffle_calibration_samples": False,
        "max_seq_length": arguments.max_tokens,
    }


def tokenize(
    tokenizer: PreTrainedTokenizerBase, conversation: dict[str, Any], max_tokens: int
) -> list[int]:
    """Return the token ids of a ShareGPT conversation, in the model's chat format if it has one."""
    messages = [
        {"role": ROLES.get(turn.get("from", ""), "system"), "content": turn.get("value", "")}
        for turn in conversation.get("conversations", [])
    ]
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    else:
        text = "\n\n".join(message["content"] for message in messages)
    ids: list[int] = tokenizer(text, add_special_tokens=not tokenizer.chat_template)["input_ids"]
    return ids[:max_tokens]


if __name__ == "__main__":
    main()
