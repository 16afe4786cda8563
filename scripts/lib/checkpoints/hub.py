"""Fetch a repository of the Hugging Face hub at one commit, into the hub's own cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import (
    HfApi,
    RepoFile,
    constants,
    get_token,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.file_download import repo_folder_name

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

Say = Callable[[str], None]


@dataclass(frozen=True)
class Snapshot:
    """The files of a repository at one commit, in the hub's cache."""

    folder: Path
    sha256: dict[str, str] = field(default_factory=dict)  # as the hub has them; large files only


def fetch_snapshot(source: HubSource, say: Say) -> Snapshot:
    """Return the repository's files at the commit, fetched where they are missing.

    Without a connection (or with HF_HUB_OFFLINE) a snapshot that was fetched before will do.
    An interrupted download continues where it was.

    Raises:
        CheckpointError: It cannot be had; the message says why, and how it could.
    """
    try:
        files = _list_files(source)
    except Exception as error:  # noqa: BLE001 - the client also raises those of its libraries
        snapshot = Snapshot(_fetched_before(source, error))
        say("the hub cannot be asked: using the snapshot that was fetched before")
    else:
        snapshot = _fetch(source, files, say)
    if not weights_of(snapshot.folder):
        raise CheckpointError(
            f"{source.repo} at {source.revision[:12]} has no weights that vLLM serves "
            "(*.safetensors, *.bin): check repo, revision and allow_patterns"
        )
    return snapshot


def refuse_damaged(snapshot: Snapshot, files: list[File]) -> None:
    """Compare the files' hashes with the hub's.

    Raises:
        CheckpointError: One of them differs.
    """
    for file in files:
        if snapshot.sha256.get(file.path, file.sha256) != file.sha256:
            blob = (snapshot.folder / file.path).resolve()
            raise CheckpointError(
                f"{blob} is damaged (its SHA-256 is not the hub's): delete it and run again"
            )


def _list_files(source: HubSource) -> list[RepoFile]:
    tree = HfApi().list_repo_tree(source.repo, revision=source.revision, recursive=True)
    return [entry for entry in tree if isinstance(entry, RepoFile)]


def _fetch(source: HubSource, files: list[RepoFile], say: Say) -> Snapshot:
    allowed, ignored = source.allow_patterns or None, _ignored(source, [f.path for f in files])
    wanted = [file for file in files if _wanted(file.path, allowed, ignored)]
    missing = [file for file in wanted if not _cached(source, file.path)]
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
                allow_patterns=allowed,
                ignore_patterns=ignored,
            )
    except Exception as error:  # noqa: BLE001 - the client also raises those of its libraries
        raise CheckpointError(_explain(source, error)) from error
    return Snapshot(Path(folder), {f.path: f.lfs.sha256 for f in wanted if f.lfs is not None})


def _ignored(source: HubSource, names: list[str] | None) -> list[str] | None:
    """Return what is not fetched: older weights too where there are safetensors."""
    if source.allow_patterns:
        return None
    if names is not None and not any(name.endswith(".safetensors") for name in names):
        return NOT_SERVED
    return [*NOT_SERVED, *OLDER_WEIGHTS]


def _wanted(name: str, allowed: list[str] | None, ignored: list[str] | None) -> bool:
    """Say if the hub's client would fetch this file."""
    if allowed and not any(fnmatch(name, pattern) for pattern in allowed):
        return False
    return not any(fnmatch(name, pattern) for pattern in ignored or [])


def _cached(source: HubSource, name: str) -> bool:
    found = try_to_load_from_cache(source.repo, name, revision=source.revision)
    return isinstance(found, str)


def _fetched_before(source: HubSource, error: Exception) -> Path:
    """Return the whole snapshot in the cache, or say why the hub could not be asked."""
    try:
        return Path(
            snapshot_download(
                source.repo,
                revision=source.revision,
                allow_patterns=source.allow_patterns or None,
                ignore_patterns=_ignored(source, None),
                local_files_only=True,
            )
        )
    except Exception:  # noqa: BLE001 - the first error is the one that matters
        raise CheckpointError(_explain(source, error)) from error


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
