"""Prompts of an exact number of tokens, made of random words of the model's vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from scripts.lib.load.samples import DatasetError, Sample
from scripts.lib.study.models import PrefixDataset, RandomDataset

_BATCH = 256
_MIN_WORDS = 16
_TRIES = 24
_PROBE = 4096


class WordMaker:
    """Makes texts that the tokenizer splits into exactly so many tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._words = single_token_words(tokenizer)

    def text(self, rng: np.random.Generator, tokens: int, prefix: str = "") -> tuple[str, int]:
        """Return a text and its token count, special tokens of the tokenizer included.

        Words that are one token alone rarely merge with their neighbours; where they do, the
        text is made longer or shorter until the count is right.

        Args:
            rng: Where the words come from.
            tokens: The count wanted for ``prefix`` and the new words together.
            prefix: Text that the result begins with.
        """
        count = max(1, tokens)
        best = (prefix, len(self._tokenizer.encode(prefix).ids)) if prefix else None
        words = self._draw(rng, count)
        for _ in range(_TRIES):
            text = " ".join(filter(None, [prefix, *words]))
            found = len(self._tokenizer.encode(text).ids)
            if found == tokens:
                return text, found
            if best is None or abs(found - tokens) < abs(best[1] - tokens):
                best = (text, found)
            if found > tokens and len(words) > 1:
                words = words[: max(1, len(words) - (found - tokens))]
            elif found < tokens:
                words = words + self._draw(rng, tokens - found)
            else:
                words = self._draw(rng, 1)
        assert best is not None
        return best

    def _draw(self, rng: np.random.Generator, count: int) -> list[str]:
        return [self._words[index] for index in rng.integers(len(self._words), size=count)]


def single_token_words(tokenizer: Tokenizer) -> list[str]:
    """Return the words that are one token after a space, sorted; plain letters if enough.

    Raises:
        DatasetError: The vocabulary has no usable word at all.
    """
    ids = sorted(tokenizer.get_vocab().values())
    special = {index for index, token in tokenizer.get_added_tokens_decoder().items()}
    texts = [
        tokenizer.decode([index], skip_special_tokens=False).strip()
        for index in ids
        if index not in special
    ]
    alphabetic = sorted({text for text in texts if text.isalpha()})
    latin = [text for text in alphabetic if text.isascii() and len(text) > 1]
    for candidates in (latin, alphabetic, sorted({text for text in texts if text})):
        words = _single(tokenizer, candidates)
        if len(words) >= _MIN_WORDS:
            return words
    words = _single(tokenizer, sorted({text for text in texts if text}))
    if not words:
        raise DatasetError("the tokenizer's vocabulary has no word to make random prompts of")
    return words


def _single(tokenizer: Tokenizer, words: list[str]) -> list[str]:
    """Keep the words that add exactly one token to a text that ends with another word."""
    found = []
    for start in range(0, len(words), _PROBE):
        batch = words[start : start + _PROBE]
        anchors = tokenizer.encode_batch(batch, add_special_tokens=False)
        doubled = tokenizer.encode_batch([f"{w} {w}" for w in batch], add_special_tokens=False)
        found += [
            word
            for word, one, two in zip(batch, anchors, doubled, strict=True)
            if len(two.ids) == len(one.ids) + 1
        ]
    return found


def random_samples(tokenizer: Tokenizer, dataset: RandomDataset, seed: int) -> Iterator[Sample]:
    """Yield prompts of random words without end; lengths uniform in +- ``range_ratio``."""
    rng = np.random.default_rng(seed)
    maker = WordMaker(tokenizer)
    while True:
        inputs = _lengths(rng, dataset.input_tokens, dataset.range_ratio)
        outputs = _lengths(rng, dataset.output_tokens, dataset.range_ratio)
        for wanted, output in zip(inputs, outputs, strict=True):
            text, count = maker.text(rng, int(wanted))
            yield Sample(input_tokens=count, output_tokens=int(output), prompt=text)


def _lengths(rng: np.random.Generator, mean: int, ratio: float) -> NDArray[np.int64]:
    low, high = max(1, math.floor(mean * (1 - ratio))), math.ceil(mean * (1 + ratio))
    return rng.integers(low, high + 1, size=_BATCH)


def prefix_samples(tokenizer: Tokenizer, dataset: PrefixDataset, seed: int) -> Iterator[Sample]:
    """Yield prompts that begin with one of ``prefixes`` shared texts, without end."""
    rng = np.random.default_rng(seed)
    maker = WordMaker(tokenizer)
    prefixes = [maker.text(rng, dataset.prefix_tokens)[0] for _ in range(dataset.prefixes)]
    total = dataset.prefix_tokens + dataset.suffix_tokens
    while True:
        for index in rng.integers(len(prefixes), size=_BATCH):
            text, count = maker.text(rng, total, prefix=prefixes[index])
            yield Sample(input_tokens=count, output_tokens=dataset.output_tokens, prompt=text)
