"""Prompts from files: ShareGPT conversations, JSON lines, traces with time stamps."""

from __future__ import annotations

import json
import random
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from scripts.lib.load.json_stream import TOO_DEEP, read_array
from scripts.lib.load.samples import DatasetError, Sample
from scripts.lib.load.synthetic import WordMaker
from scripts.lib.load.tokenizers import count_tokens
from scripts.lib.study.models import Workload

MIN_TOKENS = 4
SHAREGPT_MAX_INPUT, SHAREGPT_MAX_TOTAL = 1024, 2048
DEFAULT_OUTPUT_TOKENS = 256
"""Length of an answer for which a JSON line names none."""
NO_CONVERSATION = (
    "no conversation of two turns; ShareGPT format is a list of objects with "
    '"conversations": [{"from": ..., "value": ...}, ...]'
)
LOOKED_AT = 1000
"""So many entries of a file are looked at before anything runs: all of most files."""

_BATCH = 64
_SPOOL_BYTES = 32 * 2**20


def check_prompt_file(kind: str, path: Path, endpoint: str) -> None:
    """Look at the first entries of a file as a measurement will, without a tokenizer.

    Raises:
        DatasetError: It is not of its kind (sharegpt, jsonl or trace); the message says where.
    """
    if kind == "sharegpt":
        if not list(islice(_first_turns(path), LOOKED_AT)):
            raise DatasetError(f"{path}: {NO_CONVERSATION}")
        return
    rows = list(islice(_rows(path), LOOKED_AT))
    if not rows:
        raise DatasetError(f"{path}: holds no line; give one JSON object a line")
    for number, row in rows:
        if kind == "trace":
            _check_time(row, path, number)
        if kind == "trace" and not ("prompt" in row or "messages" in row):
            _positive(row, "input_tokens", path, number)
            _positive(row, "output_tokens", path, number)
        else:
            _check_prompt(row, path, number, endpoint)


def sharegpt_samples(path: Path, tokenizer: Tokenizer, workload: Workload) -> Iterator[Sample]:
    """Yield the first two turns of each conversation, by the rules of vLLM's benchmark.

    Conversations of fewer than two turns are left out, the rest shuffled with the seed; then
    prompts or answers under 4 tokens, prompts over 1024 and pairs over 2048 tokens are dropped
    (the workload may set other limits). The answer's length becomes the request's.

    Raises:
        DatasetError: The file is cut off, or is not in ShareGPT's format.
    """
    pairs = _Spool(_first_turns(path))
    if not len(pairs):
        raise DatasetError(f"{path}: {NO_CONVERSATION}")
    order = list(range(len(pairs)))
    random.Random(workload.seed).shuffle(order)  # the order vLLM shuffles its entries into
    max_input = workload.max_input_tokens or SHAREGPT_MAX_INPUT
    max_total = workload.max_total_tokens or SHAREGPT_MAX_TOTAL
    for start in range(0, len(order), _BATCH):
        batch = [pairs[index] for index in order[start : start + _BATCH]]
        prompts = count_tokens(tokenizer, [prompt for prompt, _ in batch])
        answers = count_tokens(tokenizer, [answer for _, answer in batch])
        for (prompt, _), inputs, outputs in zip(batch, prompts, answers, strict=True):
            if inputs < MIN_TOKENS or outputs < MIN_TOKENS:
                continue
            if inputs > max_input or inputs + outputs > max_total:
                continue
            yield Sample(input_tokens=inputs, output_tokens=outputs, prompt=prompt)


def _first_turns(path: Path) -> Iterator[tuple[str, str]]:
    for number, entry in enumerate(read_array(path), 1):
        turns = entry.get("conversations") if isinstance(entry, dict) else None
        if not isinstance(turns, list) or len(turns) < 2:
            continue
        texts = [turn.get("value") if isinstance(turn, dict) else None for turn in turns[:2]]
        if not isinstance(texts[0], str) or not isinstance(texts[1], str):
            raise DatasetError(
                f'{path}: entry {number}: its turns need a text under "value" (ShareGPT format)'
            )
        yield texts[0], texts[1]


class _Spool:
    """Pairs of texts that can be read in any order; large ones lie in a temporary file."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115
        self._offsets = array("Q")
        for pair in pairs:
            self._offsets.append(self._file.tell())
            self._file.write(json.dumps(pair).encode() + b"\n")

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, index: int) -> tuple[str, str]:
        self._file.seek(self._offsets[index])
        prompt, answer = json.loads(self._file.readline())
        return prompt, answer


def jsonl_samples(path: Path, tokenizer: Tokenizer, workload: Workload) -> Iterator[Sample]:
    """Yield the lines ``{prompt | messages, output_tokens?}`` in the file's order.

    Raises:
        DatasetError: Naming the line that is wrong.
    """
    for number, row in _rows(path):
        yield from _within(_file_sample(row, path, number, tokenizer, workload), workload)


def trace_samples(path: Path, tokenizer: Tokenizer, workload: Workload) -> Iterator[Sample]:
    """Yield the requests of a trace in the order of their time stamps.

    Lines are ``{timestamp_s, input_tokens, output_tokens}`` (random words of that length) or
    ``{timestamp_s, prompt | messages, output_tokens}``. Times count from the first one.

    Raises:
        DatasetError: Naming the line that is wrong.
    """
    rows = list(_rows(path))
    for number, row in rows:
        _check_time(row, path, number)
    rows.sort(key=lambda item: float(item[1]["timestamp_s"]))
    first = float(rows[0][1]["timestamp_s"]) if rows else 0.0
    rng, maker = np.random.default_rng(workload.seed), None
    for number, row in rows:
        if "prompt" in row or "messages" in row:
            sample = _file_sample(row, path, number, tokenizer, workload)
        else:
            maker = maker or WordMaker(tokenizer)
            text, count = maker.text(rng, _positive(row, "input_tokens", path, number))
            outputs = _positive(row, "output_tokens", path, number)
            sample = Sample(count, _cut(outputs, workload), prompt=text)
        at_s = float(row["timestamp_s"]) - first
        for kept in _within(sample, workload):
            yield Sample(kept.input_tokens, kept.output_tokens, kept.prompt, kept.messages, at_s)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        file = path.open(encoding="utf-8")
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read ({problem.strerror})") from problem
    with file:
        try:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _row(line, path, number)
        except UnicodeDecodeError as problem:
            raise DatasetError(f"{path}: not UTF-8 text ({problem.reason})") from problem


def _row(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as problem:
        raise DatasetError(f"{path}: line {number} is not JSON ({problem})") from problem
    except RecursionError:
        raise DatasetError(f"{path}: line {number}: {TOO_DEEP}") from None
    if not isinstance(row, dict):
        raise DatasetError(f"{path}: line {number} is not a JSON object")
    return row


def _check_time(row: dict[str, Any], path: Path, number: int) -> None:
    if not isinstance(row.get("timestamp_s"), int | float):
        raise DatasetError(f"{path}: line {number}: timestamp_s (seconds) is missing")


def _check_prompt(row: dict[str, Any], path: Path, number: int, endpoint: str) -> None:
    prompt, messages = row.get("prompt"), row.get("messages")
    given = [value for value in (prompt, messages) if value is not None]
    if len(given) != 1 or not isinstance(given[0], str if messages is None else list):
        raise DatasetError(f"{path}: line {number}: give either prompt (text) or messages (list)")
    if not all(isinstance(message, dict) for message in messages or []):
        raise DatasetError(
            f"{path}: line {number}: messages holds what is no message; give objects such as "
            '{"role": "user", "content": "Hello"}'
        )
    if messages is not None and endpoint == "completions":
        raise DatasetError(
            f"{path}: line {number} has messages; set endpoint: chat in the workload"
        )
    if "output_tokens" in row:
        _positive(row, "output_tokens", path, number)


def _file_sample(
    row: dict[str, Any], path: Path, number: int, tokenizer: Tokenizer, workload: Workload
) -> Sample:
    _check_prompt(row, path, number, workload.endpoint)
    prompt, messages = row.get("prompt"), row.get("messages")
    text = prompt if isinstance(prompt, str) else messages_text(messages or [])
    outputs = (
        _positive(row, "output_tokens", path, number)
        if "output_tokens" in row
        else workload.max_output_tokens or DEFAULT_OUTPUT_TOKENS
    )
    inputs = count_tokens(tokenizer, [text])[0]
    return Sample(inputs, _cut(outputs, workload), prompt=prompt, messages=messages)


def messages_text(messages: list[dict[str, Any]]) -> str:
    """Return the text of OpenAI messages, one line a message; images have none."""
    return "\n".join(_content(message.get("content")) for message in messages)


def _content(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _positive(row: dict[str, Any], key: str, path: Path, number: int) -> int:
    value = row.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DatasetError(f"{path}: line {number}: {key} is {value!r}; give a whole number from 1")
    return value


def _cut(outputs: int, workload: Workload) -> int:
    return min(outputs, workload.max_output_tokens or outputs)


def _within(sample: Sample, workload: Workload) -> Iterator[Sample]:
    too_long = workload.max_input_tokens and sample.input_tokens > workload.max_input_tokens
    total = sample.input_tokens + sample.output_tokens
    if not too_long and not (workload.max_total_tokens and total > workload.max_total_tokens):
        yield sample
