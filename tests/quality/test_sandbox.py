"""Code under test: what passes, what cannot pass, and what it cannot do."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from grading_helpers import all_at_once, grade, item
from pydantic import ValidationError

from scripts.lib.quality.graders.python_code import candidates
from scripts.lib.quality.sandbox import runner, seccomp
from scripts.lib.quality.sandbox.runner import SandboxError, run_tests

ADD = "def add(a, b):\n    return a + b\n"
TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]
PYTHON = {"kind": "python", "entry_point": "add", "tests": TESTS}

CHEATS = {
    "wrong": "def add(a, b):\n    return a - b",
    "exits when loaded": ADD + "import sys\nsys.exit(0)",
    "exits at once": ADD + "import os\nos._exit(0)",
    "raises SystemExit": "def add(a, b):\n    raise SystemExit(0)",
    "equals everything": (
        "class E(int):\n    __eq__ = lambda self, other: True\n    __hash__ = None\n"
        "def add(a, b):\n    return E(5)"
    ),
    "equals everything, no number": (
        "class E:\n    __eq__ = lambda self, other: True\n    __hash__ = None\n"
        "def add(a, b):\n    return E()"
    ),
    "changes built-ins": (
        "import builtins\nbuiltins.AssertionError = ValueError\nbuiltins.all = lambda _: True\n"
        "builtins.__dict__['compile'] = None\ndef add(a, b):\n    return 9"
    ),
    "changes the wire": (
        "import scripts.lib.quality.sandbox.wire as w\n"
        "w.Peer.encode = lambda self, value, depth=0: ['constant', True]\n"
        "def add(a, b):\n    return 9"
    ),
    "prints a verdict": (
        "import os, sys\nline = '{\"failure\": null}\\n'\nprint(line)\nsys.stderr.write(line)\n"
        "for fd in range(20):\n    try:\n        os.write(fd, line.encode())\n"
        "    except OSError:\n        pass\ndef add(a, b):\n    return 9"
    ),
    "forges replies": (
        'import os\nreply = b\'{"value": ["constant", true], "args": []}\\n\' * 50\n'
        "for fd in range(3, 20):\n    try:\n        os.write(fd, reply)\n"
        "    except OSError:\n        pass\ndef add(a, b):\n    return 9"
    ),
    "closes everything": "import os\nos.closerange(0, 30)\n" + ADD,
    "looks for the tests in frames": (
        "import sys\ndef add(a, b):\n    frame = sys._getframe()\n    while frame:\n"
        "        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:\n"
        "            if isinstance(value, str) and 'assert add(1, 2)' in value:\n"
        "                return int(value.rpartition(' ')[2])\n"
        "        frame = frame.f_back\n    return 9"
    ),
    "allocates too much": "def add(a, b):\n    data = bytearray(10**10)\n    return a + b",
    "recurses for ever": "def add(a, b):\n    return add(a, b)",
    "is not Python": "def add(a, b) return a + b",
    "defines something else": "def sub(a, b):\n    return a - b",
    "kills its parent": "import os\ndef add(a, b):\n    os.kill(os.getppid(), 9)\n    return a + b",
    "kills everybody": "import os\nos.kill(-1, 9)\n" + ADD,
    "forks": "import os\nwhile True:\n    os.fork()\n" + ADD,
    "starts threads": (
        "import threading\ndef add(a, b):\n"
        "    threading.Thread(target=print).start()\n    return a + b"
    ),
    "starts a program": "import subprocess\nsubprocess.run(['true'])\n" + ADD,
    "opens a socket": "import socket\nsocket.socket()\n" + ADD,
    "loads a C library": "import ctypes\nctypes.CDLL(None)\n" + ADD,
    "writes a file": "open('x', 'w').write('x')\n" + ADD,
    "removes a folder": "import shutil\nshutil.rmtree('.')\n" + ADD,
    "needs a package": "import numpy\n" + ADD,
}


@pytest.fixture(scope="module")
def cheats():
    verdicts = all_at_once(lambda code: run_tests(code, "add", TESTS, timeout_s=5), CHEATS.values())
    return dict(zip(CHEATS, verdicts, strict=True))


@pytest.mark.parametrize("name", CHEATS)
def test_what_cannot_pass(cheats, name):
    assert cheats[name] is not None


@pytest.mark.parametrize(
    "code", ["def add(a, b):\n    while True:\n        pass", "import time\ntime.sleep(60)\n" + ADD]
)
def test_what_does_not_end_is_ended(code):
    begin = time.monotonic()
    assert "not done after" in str(run_tests(code, "add", TESTS, timeout_s=0.5))
    assert time.monotonic() - begin < 15


PASSING = [
    ADD,
    "add = lambda a, b: a + b",
    "def add(a, b):\n    print('x' * 10**6)\n    return a + b",
    ADD + "if __name__ == '__main__':\n    print(add(int(input()), 1))",
    "from operator import add",
    "import math, re, collections, itertools\n" + ADD,
]

VALUES = [
    ("def f(g, x):\n    return g(g(x))", "f", ["assert f(lambda v: v + 1, 3) == 5"]),
    ("def f(x):\n    x.sort()", "f", ["v = [3, 1]\nf(v)\nassert v == [1, 3]"]),
    ("def f(n):\n    yield from range(n)", "f", ["assert list(f(3)) == [0, 1, 2]"]),
    (
        "def f():\n    return {(1, 'a'): {2.5, None}}",
        "f",
        ["assert f() == {(1, 'a'): {2.5, None}}"],
    ),
    (
        "def f():\n    return float('nan'), 10**50",
        "f",
        ["a, b = f()\nassert math.isnan(a) and b == 10**50"],
    ),
    (
        "class Stack:\n    def __init__(self):\n        self.x = []\n"
        "    def push(self, v):\n        self.x.append(v)\n"
        "    def __len__(self):\n        return len(self.x)",
        "Stack",
        ["s = Stack()\ns.push(4)\nassert len(s) == 1 and s.x[0] == 4"],
    ),
    (
        "def f(x):\n    raise ValueError('no')",
        "f",
        ["try:\n    f(1)\n    done = 1\nexcept ValueError:\n    done = 0\nassert not done"],
    ),
    ("def sum(x):\n    return 7", "sum", ["assert sum([]) == 7"]),
    (
        "def f():\n    return helper\ndef helper():\n    return 3",
        "f",
        ["assert f()() == helper() == 3"],
    ),
]


@pytest.fixture(scope="module")
def passing():
    cases = [*((code, "add", TESTS) for code in PASSING), *VALUES]
    return all_at_once(lambda case: run_tests(*case), cases)


@pytest.mark.parametrize("number", range(len(PASSING)))
def test_what_passes(passing, number):
    assert passing[number] is None


@pytest.mark.parametrize("number", range(len(VALUES)), ids=[code for code, _, _ in VALUES])
def test_values_that_tests_may_use(passing, number):
    assert passing[len(PASSING) + number] is None


def test_the_failed_test_is_named():
    failure = run_tests("def add(a, b):\n    return 3", "add", TESTS)
    assert failure == "failed: assert add(-1, 1) == 0"


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(runner.tempfile, "tempdir", str(tmp_path))
    run_tests("def add(a, b):\n    while True:\n        pass", "add", TESTS, timeout_s=0.3)
    assert list(tmp_path.iterdir()) == []
    mine = [
        path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path) in _cwd(path.parent)
    ]
    assert mine == []


def _cwd(process: Path) -> str:
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return ""


def test_a_broken_sandbox_is_no_wrong_answer(monkeypatch):
    monkeypatch.setattr(runner, "_command", lambda module: [sys.executable, "-c", "1/0"])
    with pytest.raises(SandboxError, match="ZeroDivisionError"):
        run_tests(ADD, "add", TESTS)


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_the_filter_holds_without_pythons_own_watch(tmp_path):
    """What the audit hook refuses is refused by the kernel as well."""
    attempts = """
import os, socket, sys
from scripts.lib.quality.sandbox import seccomp
if not seccomp.forbid():
    sys.exit(77)
def refused(do):
    try:
        do()
    except OSError:
        return True
    return False
attempts = [
    lambda: os.fork(), lambda: os.kill(os.getppid(), 0), lambda: socket.socket(),
    lambda: open("x", "w"), lambda: os.mkdir("y"), lambda: os.remove("kept"),
    lambda: os.execv(sys.executable, [sys.executable]), lambda: os.setsid(),
]
sys.exit(0 if all([refused(a) for a in attempts]) and open("kept").read() == "k" else 1)
"""
    (tmp_path / "kept").write_text("k")
    environment = {"PYTHONPATH": str(Path(seccomp.__file__).parents[4])}
    done = subprocess.run([sys.executable, "-c", attempts], cwd=tmp_path, env=environment)
    if done.returncode == 77:
        pytest.skip("this kernel or machine has no system call filter")
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


ANSWERS = [
    ADD,
    f"```python\n{ADD}```",
    f"```py\n{ADD}",
    f"Sure!\n\n~~~\n{ADD}~~~\nThat is it.",
    f"Here is the function:\n\n{ADD}\nIt adds two numbers.",
    "Here it is: def add(a, b): return a + b",
    "Use `add = lambda a, b: a + b` for that.",
    f"1. Like this:\n\n   ```python\n   {ADD.replace(chr(10), chr(10) + '   ')}\n   ```",
    f"```python\ndef add(a, b):\n    return 0\n```\nWrong. Better:\n```python\n{ADD}```",
    "```python\ndef helper(a, b):\n    return a + b\n```\nand\n```python\n"
    "def add(a, b):\n    return helper(a, b)\n```",
    f"```bash\npip install x\n```\n```python\n{ADD}```",
    ">>> def add(a, b):\n...     return a + b\n>>> add(1, 2)\n3",
    f"<think>def add(a, b): return 0</think>\n```python\n{ADD}```",
    ADD.replace("    ", "\t"),
    ADD.replace("\n", "\r\n"),
]


@pytest.fixture(scope="module")
def graded():
    return all_at_once(lambda text: grade(PYTHON, text).task_success, ANSWERS)


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_code_is_found(graded, number):
    assert graded[number] is True, ANSWERS[number]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot.",
        "Use a + b.",
        "```python\nprint(add(1, 2))\n```",
        "class S:\n    def add(a, b): 1",
    ],
)
def test_no_code(text):
    result = grade(PYTHON, text)
    assert result.task_success is False
    assert "no code" in result.reason


def test_no_text_makes_the_search_slow():
    begin = time.monotonic()
    list(candidates("def add(a, b):\n    return (\n" * 300, "add"))
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tests": ["add(1, 2) == 3"]}, "asserts nothing"),
        ({"tests": ["assert add(1,"]}, "not Python"),
        ({"tests": []}, "at least 1"),
        ({"entry_point": "a b"}, "pattern"),
    ],
)
def test_unusable_tests_are_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        item(PYTHON | change)
