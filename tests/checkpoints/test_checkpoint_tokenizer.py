"""Fingerprints: equal for tokenizers that work alike, however they were written."""

import json

from scripts.lib.checkpoints.tokenizer import chat_template_fingerprint, tokenizer_fingerprint

TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [{"id": 0, "content": "<s>", "special": True, "lstrip": False}],
    "model": {"type": "BPE", "vocab": {"a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]},
}


def folder_with(tmp_path, name, files):
    folder = tmp_path / name
    folder.mkdir()
    for file, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / file).write_text(text)
    return folder


def fingerprint(tmp_path, name, content):
    return tokenizer_fingerprint(folder_with(tmp_path, name, {"tokenizer.json": content}))


def test_the_way_of_writing_does_not_count(tmp_path):
    old = {**TOKENIZER, "padding": {"strategy": "BatchLongest"}, "normalizer": None}
    old["model"] = {**TOKENIZER["model"], "merges": ["a b"], "byte_fallback": False}
    first = fingerprint(tmp_path, "first", TOKENIZER)
    assert first is not None
    assert fingerprint(tmp_path, "second", old) == first


def test_another_merge_or_special_token_counts(tmp_path):
    first = fingerprint(tmp_path, "first", TOKENIZER)
    merges = {**TOKENIZER, "model": {**TOKENIZER["model"], "merges": []}}
    special = {**TOKENIZER, "added_tokens": []}
    assert fingerprint(tmp_path, "merges", merges) != first
    assert fingerprint(tmp_path, "special", special) != first


def test_older_tokenizer_files(tmp_path):
    first = folder_with(tmp_path, "first", {"vocab.json": "{}", "merges.txt": "a b"})
    second = folder_with(tmp_path, "second", {"vocab.json": "{}", "merges.txt": "b a"})
    assert tokenizer_fingerprint(first) not in (None, tokenizer_fingerprint(second))
    assert tokenizer_fingerprint(folder_with(tmp_path, "none", {})) is None


def test_chat_template_is_the_same_wherever_it_is_kept(tmp_path):
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    places = [
        {"chat_template.jinja": template + "\n"},
        {"tokenizer_config.json": {"chat_template": template}},
        {"chat_template.json": {"chat_template": template}},
    ]
    found = {
        chat_template_fingerprint(folder_with(tmp_path, str(number), files))
        for number, files in enumerate(places)
    }
    assert len(found) == 1
    assert found != {None}


def test_named_and_missing_chat_templates(tmp_path):
    named = {"chat_template": [{"name": "tool_use", "template": "x"}]}
    folder = folder_with(tmp_path, "named", {"tokenizer_config.json": named})
    assert chat_template_fingerprint(folder) is not None
    empty = folder_with(tmp_path, "empty", {"tokenizer_config.json": {}})
    assert chat_template_fingerprint(empty) is None
