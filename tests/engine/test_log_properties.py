"""Whatever a log goes through on its way, the reader neither breaks nor makes something up."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.lib.engine.log_lines import read_blocks, unwrap, wrapped_width
from scripts.lib.engine.log_reader import LogReader, read_log, read_log_text
from tests.engine import log_texts

SHARED = Path(__file__).parents[3] / "shared"
FILES = sorted([*SHARED.glob("corpus/logs/*.txt"), *SHARED.glob("reference/h200/*/server.log")])
FACTS = (*log_texts.FACTS, "degraded")
SCALARS = [key for key in FACTS if key not in {"kernels", "kernel_family", "scheme", "degraded"}]

pytestmark = pytest.mark.skipif(not FILES, reason="the shared corpus is not beside the project")
few = settings(max_examples=25, suppress_health_check=list(HealthCheck))


def facts(text):
    found = read_log_text(text).model_dump()
    return {key: found[key] for key in FACTS} | {"failure": (found["failure"] or {}).get("kind")}


def short(text):
    """Leave out the progress bars: they are half of some files and hold no fact."""
    return (
        "\n".join(line for line in text.splitlines() if "Capturing CUDA graphs" not in line) + "\n"
    )


TEXTS = {path.parent.name + "/" + path.name: short(path.read_text()) for path in FILES}
WHOLE = {}


def whole(name):
    if name not in WHOLE:
        WHOLE[name] = facts(TEXTS[name])
    return WHOLE[name]


names = st.sampled_from(sorted(TEXTS))
whole_lines = st.sampled_from(sorted(name for name in TEXTS if "terminal_wrapped" not in name))
prefixes = st.one_of(
    st.sampled_from(
        [
            "vllm-1  | ",
            "> ",
            "    ",
            "2026-01-02T03:04:05.1234567Z ",
            "Nov 30 07:21:49 host vllm[1015]: ",
            "[pod/vllm-0/vllm] ",
            "\x1b[36mserver-1  |\x1b[0m ",
            "[2026-01-02 03:04:05 UTC] 12:01:02 ",
            "| ",
        ]
    ),
    st.text(
        st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters='{"'),
        max_size=20,
    ).map(lambda text: text + " "),
)


@few
@given(whole_lines, prefixes)
def test_a_prefix_before_every_line_changes_nothing(name, prefix):
    text = "".join(prefix + line + "\n" for line in TEXTS[name].splitlines())
    assert facts(text) == whole(name)


@few
@given(names, st.floats(0, 1))
def test_a_cut_file_says_less_and_nothing_else(name, share):
    text = TEXTS[name]
    data = text.encode()
    cut = data[: max(1, int(share * len(data)))]
    try:
        found = read_log_text(cut.decode("utf-8", errors="ignore"))
    except ValueError:
        assert not cut.strip()
        return
    full = whole(name)
    for key in SCALARS:
        value = getattr(found, key)
        if value not in (None, False) and value != full[key]:
            # Several starts or ranks: then the text holds this value too.
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            assert shown in text or str(value) in text
    assert set(found.kernels) <= set(full["kernels"])


@few
@given(names, st.integers(0, 2**32))
def test_interleaved_processes_change_nothing(name, seed):
    """Lines of one process keep their order; those of others come between them."""
    lines = TEXTS[name].splitlines()
    ranks = {}
    for line in lines:
        if rank := re.match(r"(?:\x1b\[[\d;]*m)?\((?:VllmWorker|Worker|EngineCore)[^)]*\)", line):
            ranks.setdefault(rank[0], []).append(line)
    queues = list(ranks.values())
    if len(queues) < 2 or name.endswith("fail_then_ok.txt"):
        return
    dice = random.Random(seed)
    place = next(i for i, line in enumerate(lines) if any(line in queue for queue in queues))
    mixed = lines[:place]
    others = [line for line in lines[place:] if not any(line in queue for queue in queues)]
    queues = [list(queue) for queue in queues]
    while queues:
        queue = dice.choice(queues)
        mixed.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    mixed += others
    found = read_log_text("\n".join(mixed) + "\n")
    full = whole(name)
    for key in ("weights_gib", "kv_cache_tokens", "gpu_blocks", "max_concurrency", "kernels"):
        assert getattr(found, key) == full[key]


@few
@given(names, st.sampled_from([80, 118, 132, 211]))
def test_a_terminal_that_wraps_lines_changes_nothing(name, width):
    text = TEXTS[name].replace("\x1b[1;36m", "").replace("\x1b[0;36m", "").replace("\x1b[0;0m", "")
    lines = [
        line[start : start + width]
        for line in text.replace("\x1b[0m", "").splitlines()
        for start in range(0, max(len(line), 1), width)
    ]
    assert facts("\n".join(lines) + "\n") == whole(name)


@few
@given(whole_lines)
def test_carriage_returns_and_windows_line_ends_change_nothing(name):
    assert facts(TEXTS[name].replace("\n", "\r\n")) == whole(name)
    bar = "Loading:  33%|###   | 1/3 [00:00<00:01,  1.42it/s]\r"
    assert facts("".join(bar + line + "\n" for line in TEXTS[name].splitlines())) == whole(name)


@few
@given(names, st.integers(200, 5000))
def test_the_size_of_blocks_changes_nothing(name, size):
    data = TEXTS[name].encode()
    reader, rest = LogReader(), b""
    for start in range(0, len(data), size):
        rest += data[start : start + size]
        cut = rest.rfind(b"\n") + 1
        reader.feed(rest[:cut])
        rest = rest[cut:]
    found = reader.facts()
    assert {key: getattr(found, key) for key in FACTS} == {key: whole(name)[key] for key in FACTS}


@settings(max_examples=60)
@given(st.text(min_size=1))
def test_any_text_is_read_or_refused(text):
    try:
        found = read_log_text(text)
    except ValueError:
        return
    assert found.kernels == []
    assert found.kv_cache_tokens is None


def test_utf16_of_powershell(tmp_path):
    name = next(name for name in TEXTS if "039_" in name)
    file = tmp_path / "server.log"
    file.write_text(TEXTS[name], encoding="utf-16")
    found = read_log(file)
    assert {key: getattr(found, key) for key in FACTS} == {key: whole(name)[key] for key in FACTS}


def test_wrapping_is_undone_exactly(tmp_path):
    text = (
        "INFO 01-02 03:04:05 [a.py:1] " + "abcdefghi " * 40 + "\nINFO 01-02 03:04:06 [a.py:1] end\n"
    )
    lines = [
        line[start : start + 80] for line in text.splitlines() for start in range(0, len(line), 80)
    ]
    wrapped = ("\n".join(lines) + "\n").encode()
    assert wrapped_width(wrapped) == 80
    assert unwrap(wrapped, 80).decode() == text
    file = tmp_path / "server.log"
    file.write_bytes(wrapped)
    assert b"".join(read_blocks(file)).decode() == text
