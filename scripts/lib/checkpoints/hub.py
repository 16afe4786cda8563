"""Fetch a repository of the Hugging Face hub at one commit, into the hub's own cache."""

from __future__ import annotations

import glob
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import (
    HfApi,
    RepoFile,
    constants,
    get_cached_repo_tree,
    get_token,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.errors import CachedRepoTreeNotFoundError, HFValidationError
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils.tqdm import disable_progress_bars

from scripts.lib.checkpoints.build import weights_of
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.hub_errors import explain
from scripts.lib.checkpoints.manifest import File
from scripts.lib.checkpoints.sizes import require_space, size_words
from scripts.lib.study.models import HubSource

NOT_SERVED = [
    *("*.msgpack", "*.h5", "*.ot", "*.onnx", "*.gguf", "*.tflite", "*.mlmodel", "*.npz", "*.ckpt"),
    *("original/*", "onnx/*", "openvino/*", "coreml/*"),
]
"""Weights for other programs than vLLM: not fetched."""

OLDER_WEIGHTS = ["*.bin", "*.pt", "*.pth"]
REPORT_EVERY_S = 15.0
SHA256 = re.compile(r"[0-9a-f]{64}")

Say = Callable[[str], None]


def fetch_snapshot(source: HubSource, say: Say) -> Path:
    """Return the folder of the repository's files at the commit, fetched where they are missing.

    What was fetched whole is used without asking the hub: a commit never changes. An interrupted
    download continues where it was.

    Raises:
        CheckpointError: It cannot be had; the message says why, and how it could.
    """
    if not sys.stderr.isatty():
        disable_progress_bars()
    folder = _whole_in_cache(source) or _ask_hub(source, say)
    if not weights_of(folder):
        raise CheckpointError(
            f"{source.repo} at {source.revision[:12]} has no weights that vLLM serves "
            "(*.safetensors, *.bin): check repo, revision and allow_patterns"
        )
    return folder


def refuse_damaged(folder: Path, files: list[File]) -> None:
    """Compare the SHA-256 of large files with the hub's, which names them in its cache.

    Raises:
        CheckpointError: One of them differs.
    """
    for file in files:
        blob = (folder / file.path).resolve()
        if SHA256.fullmatch(blob.name) and blob.name != file.sha256:
            raise CheckpointError(
                f"{blob} is damaged (its SHA-256 is not the hub's): delete it and run again"
            )


def _whole_in_cache(source: HubSource) -> Path | None:
    try:
        files = get_cached_repo_tree(source.repo, revision=source.revision)
    except (CachedRepoTreeNotFoundError, HFValidationError):
        return None
    wanted = _wanted(source, files)
    if not wanted or _missing(source, wanted):
        return None
    return _fetched_before(source)


def _ask_hub(source: HubSource, say: Say) -> Path:
    say(f"asking the hub for {source.repo} at {source.revision[:12]}")
    try:
        tree = HfApi().list_repo_tree(source.repo, revision=source.revision, recursive=True)
        files = [entry for entry in tree if isinstance(entry, RepoFile)]
    except Exception as error:  # noqa: BLE001 - the client also raises those of its libraries
        # An older client fetched it, say, and left no list of what is whole.
        folder = _fetched_before(source)
        if folder is None:
            raise CheckpointError(_explain(source, error)) from error
        say("the hub cannot be asked: using what was fetched before")
        return folder
    return _fetch(source, _wanted(source, files), say)


def _fetch(source: HubSource, files: list[RepoFile], say: Say) -> Path:
    missing = _missing(source, files)
    size = sum(file.size or 0 for file in missing)
    if missing:
        cache = Path(constants.HF_HUB_CACHE)
        require_space(cache, size, source.repo, "move the hub's cache (HF_HOME)")
        say(f"fetching {len(missing)} files of {source.repo}, {size_words(size)}")
    try:
        with _saying_progress(source, size, say):
            folder = snapshot_download(
                source.repo,
                revision=source.revision,
                allow_patterns=[glob.escape(file.path) for file in files],
            )
    except Exception as error:  # noqa: BLE001 - the client also raises those of its libraries
        raise CheckpointError(_explain(source, error)) from error
    return Path(folder)


def _wanted(source: HubSource, files: list[RepoFile]) -> list[RepoFile]:
    """Return the files to be fetched: older weights only where there are no safetensors."""
    if source.allow_patterns:
        return [file for file in files if _matches(file, source.allow_patterns)]
    newer = any(file.path.endswith(".safetensors") for file in files)
    left_out = [*NOT_SERVED, *OLDER_WEIGHTS] if newer else NOT_SERVED
    return [file for file in files if not _matches(file, left_out)]


def _matches(file: RepoFile, patterns: list[str]) -> bool:
    return any(fnmatch(file.path, pattern) for pattern in patterns)


def _missing(source: HubSource, files: list[RepoFile]) -> list[RepoFile]:
    def cached(file: RepoFile) -> bool:
        found = try_to_load_from_cache(source.repo, file.path, revision=source.revision)
        return isinstance(found, str)

    return [file for file in files if not cached(file)]


def _fetched_before(source: HubSource) -> Path | None:
    """Return the snapshot's folder in the cache if it holds a checkpoint."""
    try:
        found = try_to_load_from_cache(source.repo, "config.json", revision=source.revision)
    except HFValidationError:
        return None
    return Path(found).parent if isinstance(found, str) else None


def _explain(source: HubSource, error: Exception) -> str:
    return explain(source, error, has_token=get_token() is not None)


@contextmanager
def _saying_progress(source: HubSource, size: int, say: Say) -> Iterator[None]:
    """Say now and then how much has arrived, from the sizes of the files in the cache."""
    folder = repo_folder_name(repo_id=source.repo, repo_type="model")
    blobs = Path(constants.HF_HUB_CACHE) / folder / "blobs"
    before, done = _bytes_in(blobs), threading.Event()

    def watch() -> None:
        while not done.wait(REPORT_EVERY_S):
            say(f"fetched {size_words(_bytes_in(blobs) - before)} of {size_words(size)}")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        try:
            total += path.stat().st_blocks * 512  # unfinished files may be sparse
        except OSError:
            continue  # renamed meanwhile
    return total
