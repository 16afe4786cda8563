from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

TEXTS = [
    "The quick brown fox jumps over the lazy dog while the server answers every request",
    "A client must never decide a comparison between two variants of one model",
    "Weights are read from memory once per step and every stream shares that cost",
    "Numbers that were not measured are unknown and are never shown as zero anywhere",
]


def byte_level(texts: list[str] = TEXTS, *, bos: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|begin|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts * 5, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|begin|> $A", special_tokens=[("<|begin|>", 0)]
        )
    return tokenizer


def word_level() -> Tokenizer:
    words = sorted({word for text in TEXTS for word in text.split()})
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(["<unk>", *words])}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def metaspace() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 5, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return byte_level()


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
