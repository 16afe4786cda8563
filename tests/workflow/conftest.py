"""A copy of the project with a study on the fake engine, run by the real Snakemake."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from filelock import FileLock
from tokenizers import Tokenizer, models, pre_tokenizers

PROJECT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")


def copy_project(target: Path) -> None:
    """Copy what is, or could be, committed, apart from what no job reads; bytecode too."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        if not name.startswith(("tests/", "docs/", "benchmarks/")) and (PROJECT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, target / name)
    for cache in (PROJECT / "scripts").rglob("__pycache__"):
        target_cache = target / cache.relative_to(PROJECT)
        # Another test process may be writing one: under a name of its own, renamed when whole.
        shutil.copytree(cache, target_cache, ignore=shutil.ignore_patterns("*.pyc.*"))


def make_checkpoint(folder: Path) -> None:
    """Write a checkpoint with a tiny BF16 model and a word tokenizer."""
    folder.mkdir(parents=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "vocab_size": 300,
        "max_position_embeddings": 2048,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(config))
    names = [
        "model.embed_tokens.weight",
        *(f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkvo"),
        *(f"model.layers.0.mlp.{part}_proj.weight" for part in ("gate", "up", "down")),
        "lm_head.weight",
    ]
    size = 16 * 16 * 2
    header = {
        name: {"dtype": "BF16", "shape": [16, 16], "data_offsets": [i * size, (i + 1) * size]}
        for i, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    body = bytes(size * len(names))
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    vocabulary = {"[UNK]": 0} | {f"w{i}": i for i in range(1, 300)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))


class Snakemake:
    """The real Snakemake, a fresh process for each run; see ``snakemake_server.py``."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(
        self, arguments: list[str], cwd: Path, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; what it printed is text."""
        if self.process is None:
            server = Path(__file__).with_name("snakemake_server.py")
            self.process = subprocess.Popen(
                [sys.executable, str(server)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            files = {name: str(Path(folder, name)) for name in ("stdout", "stderr")}
            request = {"arguments": arguments, "cwd": str(cwd), "env": env, **files}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            status = int(self.process.stdout.readline())
            texts = [Path(files[name]).read_text() for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(["snakemake", *arguments], status, *texts)

    def close(self) -> None:
        """End the process, if one was needed."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(10)


SNAKEMAKE_RUNS = Snakemake()


@pytest.fixture(scope="session", autouse=True)
def _end_snakemake():
    yield
    SNAKEMAKE_RUNS.close()


class Workspace:
    """One copy of the project and what one can do in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config/study.yaml"
        self.results = root / "results/fake"

    def study(self) -> dict:
        return yaml.safe_load(self.config.read_text())

    def change(self, **changes: object) -> None:
        """Set keys of the study; ``a__b=c`` sets the key b of the section a."""
        study = self.study()
        for path, value in changes.items():
            *parents, last = path.split("__")
            here = study
            for key in parents:
                here = here[key]
            here[last] = value
        self.config.write_text(yaml.safe_dump(study, sort_keys=False))

    def command(self, *arguments: str) -> list[str]:
        return [str(SNAKEMAKE), "--configfile", "config/study.yaml", "--cores", "1", *arguments]

    def snakemake(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return SNAKEMAKE_RUNS.run(
            self.command(*arguments)[1:], self.root, {**os.environ, **environment}
        )

    def planned(self, *arguments: str) -> dict[str, int]:
        """Return which rules a dry run would run, and how often; targets left out."""
        done = self.snakemake("-n", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        jobs: dict[str, int] = {}
        in_table = False
        for line in done.stdout.splitlines():
            words = line.split()
            if words[:2] == ["job", "count"]:
                in_table = True
            elif in_table and len(words) == 2 and words[1].isdigit():
                jobs[words[0]] = int(words[1])
            elif in_table and not words:
                break
        return {rule: n for rule, n in jobs.items() if rule not in ("total", "report")}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def processes(self) -> list[int]:
        """Return the living processes that belong to this copy."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    here = (entry / "cwd").readlink() == self.root
                except OSError:
                    continue
                if here and state != "Z":
                    found.append(int(entry.name))
        return found

    def kill_everything(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)


def build(root: Path) -> Workspace:
    copy_project(root)
    make_checkpoint(root / "model")
    probes = root / "config/probes/tiny.jsonl"
    item = {"axis": "arithmetic", "max_tokens": 8, "grader": {"kind": "number", "expected": 4}}
    for name in ("fact", "arithmetic"):
        (root / "config/probes" / f"{name}.jsonl").unlink(missing_ok=True)
    probes.write_text(
        "".join(
            json.dumps({"id": f"sum-{i}", "messages": [{"role": "user", "content": q}], **item})
            + "\n"
            for i, q in enumerate(("2 + 2?", "What is 1 + 3?", "3 + 1 = ?"))
        )
    )
    workspace = Workspace(root)
    study = {
        "study": "fake",
        "baseline": "one",
        "engine": {
            "command": [sys.executable, str(PROJECT / "tests/fakes/engine.py")],
            "env": {"FAKE_START_S": "0.2", "VLLM_CPU_KVCACHE_SPACE": "1"},
        },
        "checkpoints": {"tiny": {"path": "model"}},
        "variants": {
            "one": {"checkpoint": "tiny"},
            "two": {"checkpoint": "tiny", "max_model_len": 512},
        },
        "workloads": {
            "short": {
                "dataset": {"random": {"input_tokens": 8, "output_tokens": 8}},
                "concurrency": [1, 4],
                "requests_per_point": 8,
            }
        },
        "slo": {"ttft_mean_ms": 500},
        "quality": {"probes": ["config/probes/tiny.jsonl"]},
        "price": {"usd_per_hour": 1.0},
    }
    workspace.config.write_text(yaml.safe_dump(study, sort_keys=False))
    return workspace


@pytest.fixture
def workspace(tmp_path):
    """A fresh copy in which nothing has run yet."""
    made = build(tmp_path / "project")
    yield made
    made.kill_everything()


@pytest.fixture(scope="session")
def finished_root(tmp_path_factory, worker_id):
    """A copy whose report has been made, one for all test processes; copy it before you change it.

    The folder that all workers of pytest-xdist share is the parent of a worker's own.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    root = shared / "finished" / "project"
    with FileLock(shared / "finished.lock"):
        if not root.exists():
            done = build(root).snakemake("--cores", "2")
            assert done.returncode == 0, done.stdout + done.stderr
    assert (root / "results/fake/report/report.html").exists(), "another test process says why"
    return root


@pytest.fixture
def finished(finished_root, tmp_path):
    """A copy of the finished project, dates kept."""
    root = tmp_path / "project"
    shutil.copytree(finished_root, root, symlinks=True)
    made = Workspace(root)
    yield made
    made.kill_everything()
