from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.load.datasets import describe, open_dataset
from scripts.lib.load.json_stream import read_array
from scripts.lib.load.samples import DatasetError
from scripts.lib.load.synthetic import single_token_words
from scripts.lib.load.tokenizers import load_tokenizer
from scripts.lib.study.models import Workload
from tests.load.conftest import byte_level, metaspace, word_level

PROJECT = Path(__file__).parents[2]


def workload(dataset: dict, **more: object) -> Workload:
    return Workload.model_validate({"dataset": dataset, "concurrency": [1], **more})


def conversations(pairs: list[tuple[str, ...]]) -> list[dict]:
    return [
        {"id": str(i), "conversations": [{"from": "human", "value": text} for text in texts]}
        for i, texts in enumerate(pairs)
    ]


@pytest.mark.parametrize(
    "make",
    [byte_level, word_level, metaspace, lambda: byte_level(bos=True)],
    ids=["byte_level", "word_level", "metaspace", "byte_level_bos"],
)
@pytest.mark.parametrize("length", [1, 2, 32, 300])
def test_random_prompts_have_the_exact_length(make, length):
    tokenizer = make()
    if length == 1 and len(tokenizer.encode("fox").ids) > 1:
        pytest.skip("this tokenizer adds a token of its own to every text")
    spec = workload({"random": {"input_tokens": length, "output_tokens": 5}})
    samples = open_dataset(spec, tokenizer, PROJECT).take(0, 40)
    assert [len(tokenizer.encode(s.prompt).ids) for s in samples] == [length] * 40
    assert {s.input_tokens for s in samples} == {length}
    if length > 2:
        assert len({s.prompt for s in samples}) == 40


def test_random_lengths_vary_within_the_range(tokenizer):
    spec = {"random": {"input_tokens": 100, "output_tokens": 50, "range_ratio": 0.2}}
    samples = open_dataset(workload(spec), tokenizer, PROJECT).take(0, 400)
    inputs, outputs = {s.input_tokens for s in samples}, {s.output_tokens for s in samples}
    assert (min(inputs), max(inputs)) == (80, 120)
    assert (min(outputs), max(outputs)) == (40, 60)


def test_the_seed_decides_the_prompts(tokenizer):
    def prompts(seed: int) -> list[str | None]:
        spec = workload({"random": {"input_tokens": 9, "output_tokens": 5}}, seed=seed)
        return [s.prompt for s in open_dataset(spec, tokenizer, PROJECT).take(0, 9)]

    assert prompts(1) == prompts(1)
    assert prompts(1) != prompts(2)


def test_prefixes_are_shared(tokenizer):
    spec = {"prefix": {"prefix_tokens": 40, "suffix_tokens": 10, "output_tokens": 4, "prefixes": 3}}
    samples = open_dataset(workload(spec), tokenizer, PROJECT).take(0, 60)
    assert {s.input_tokens for s in samples} == {50}
    heads = {tuple(tokenizer.encode(s.prompt).ids[:40]) for s in samples}
    assert len(heads) == 3
    assert len({s.prompt for s in samples}) == 60


def test_words_are_single_tokens(tokenizer):
    words = single_token_words(tokenizer)
    assert len(words) > 16
    for one, two in zip(words, words[1:], strict=False):
        both = tokenizer.encode(f"{one} {two}").ids
        assert len(both) == len(tokenizer.encode(one).ids) + 1


def sharegpt(folder: Path, data: object, tokenizer, **more: object):
    (folder / "chat.json").write_text(json.dumps(data), encoding="utf-8")
    return open_dataset(workload({"sharegpt": "chat.json"}, **more), tokenizer, folder)


def test_sharegpt_follows_vllms_rules(tmp_path, tokenizer):
    def text(word: str, count: int) -> str:
        return " ".join([word] * count)

    words = single_token_words(tokenizer)
    one = next(w for w in words if len(tokenizer.encode(w).ids) == 1)
    data = conversations(
        [
            (text(one, 10), text(one, 20), text(one, 900)),
            (text(one, 3), text(one, 20)),  # prompt too short
            (text(one, 20), text(one, 3)),  # answer too short
            (text(one, 1025), text(one, 20)),  # prompt too long
            (text(one, 1000), text(one, 1049)),  # together too long
            (text(one, 1024), text(one, 1024)),
            (text(one, 50),),  # no answer
        ]
    )
    samples = sharegpt(tmp_path, [*data, {"id": "x"}], tokenizer)
    found = samples.take(0, 2)
    assert {(s.input_tokens, s.output_tokens) for s in found} == {(10, 20), (1024, 1024)}
    assert samples.take(0, 5)[2:4] == found
    info = describe(samples, found, 5)
    assert info["distinct_prompts"] == 2
    assert "2 usable prompts for up to 5 requests" in str(info["warning"])


def test_sharegpt_is_shuffled_as_vllm_does(tmp_path, tokenizer):
    pairs = [
        (f"prompt number {i} about foxes", f"the answer number {i} is here") for i in range(50)
    ]
    samples = sharegpt(tmp_path, conversations(pairs), tokenizer, seed=7)
    expected = list(pairs)
    random.seed(7)
    random.shuffle(expected)
    assert [s.prompt for s in samples.take(0, 50)] == [prompt for prompt, _ in expected]


def test_sharegpt_limits_of_the_workload(tmp_path, tokenizer):
    data = conversations([("fox " * n, "dog " * 30) for n in range(20, 60)])
    samples = sharegpt(tmp_path, data, tokenizer, max_input_tokens=40, max_total_tokens=100)
    drawn = list(islice(samples.source, 1000))
    assert drawn
    assert all(s.input_tokens <= 40 and s.input_tokens + s.output_tokens <= 100 for s in drawn)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[{"conversations": [', "cut off after 0 complete entries"),
        ('[{"a": 1}, {"b": 2}, {"c', "cut off after 2 complete entries"),
        ('[{"a": 1}', "cut off after 1 complete entries"),
        ('[{"a": 1} {"b": 2}]', "entry 2 is not valid JSON"),
        ('{"a": 1}', "not a JSON array"),
        ("", "not a JSON array"),
        ('[{"conversations": [{"x": 1}, {"value": "b"}]}]', "entry 1: its turns need a text"),
        ("[]", "no conversation of two turns"),
    ],
)
def test_bad_sharegpt_files_give_a_sentence(tmp_path, tokenizer, text, sentence):
    (tmp_path / "chat.json").write_text(text)
    samples = open_dataset(workload({"sharegpt": "chat.json"}), tokenizer, tmp_path)
    with pytest.raises(DatasetError, match=sentence):
        samples.take(0, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    values=st.lists(JSON, max_size=8), indent=st.sampled_from([None, 2]), block=st.integers(1, 9)
)
def test_arrays_are_read_as_the_json_module_does(tmp_path_factory, values, indent, block):
    path = tmp_path_factory.getbasetemp() / "array.json"
    path.write_text(json.dumps(values, indent=indent, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scripts.lib.load.json_stream._BLOCK", block)
        assert list(read_array(path)) == values


def test_a_large_array_needs_little_memory(tmp_path):
    import tracemalloc

    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write("[")
        for i in range(20_000):
            file.write(("," if i else "") + json.dumps({"id": i, "text": "x" * 1000}))
        file.write("]")
    assert path.stat().st_size > 20e6
    tracemalloc.start()
    assert sum(1 for _ in read_array(path)) == 20_000
    assert tracemalloc.get_traced_memory()[1] < 6e6
    tracemalloc.stop()


def test_jsonl_prompts_and_messages(tmp_path, tokenizer):
    rows = [
        {"prompt": "the quick fox", "output_tokens": 9},
        {"messages": [{"role": "user", "content": "hello there"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
    ]
    (tmp_path / "own.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    spec = workload({"jsonl": "own.jsonl"}, endpoint="chat", max_output_tokens=7)
    samples = open_dataset(spec, tokenizer, tmp_path).take(0, 3)
    assert [s.output_tokens for s in samples] == [7, 7, 7]
    assert samples[0].prompt == "the quick fox"
    assert samples[1].messages == rows[1]["messages"]
    assert samples[1].input_tokens == len(tokenizer.encode("hello there").ids)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("[1]", "line 1 is not a JSON object"),
        ('{"text": "x"}', "give either prompt"),
        ('{"prompt": "x", "messages": []}', "give either prompt"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "set endpoint: chat"),
        ('{"prompt": "x", "output_tokens": 0}', "output_tokens is 0"),
        ('{"prompt": "x", "output_tokens": "8"}', "output_tokens is '8'"),
    ],
)
def test_bad_lines_give_a_sentence(tmp_path, tokenizer, line, sentence):
    (tmp_path / "own.jsonl").write_text(line)
    samples = open_dataset(workload({"jsonl": "own.jsonl"}), tokenizer, tmp_path)
    with pytest.raises(DatasetError, match=sentence):
        samples.take(0, 1)


def test_trace_needs_time_stamps(tmp_path, tokenizer):
    (tmp_path / "trace.jsonl").write_text('{"input_tokens": 3, "output_tokens": 4}')
    spec = Workload.model_validate({"dataset": {"trace": "trace.jsonl"}})
    with pytest.raises(DatasetError, match="timestamp_s"):
        open_dataset(spec, tokenizer, tmp_path).take(0, 1)


def test_broken_tokenizer_gives_a_sentence(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DatasetError, match=r"tokenizer\.json: not a tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_hub_file_must_have_its_hash(tmp_path, tokenizer, monkeypatch):
    (tmp_path / "x.json").write_text("[]")
    monkeypatch.setattr("scripts.lib.load.datasets._hub_file", lambda _file: tmp_path / "x.json")
    source = {"repo": "a/b", "revision": "0" * 40, "file": "x.json", "sha256": "1" * 64}
    with pytest.raises(DatasetError, match="SHA-256"):
        open_dataset(workload({"sharegpt": source}), tokenizer, tmp_path)
