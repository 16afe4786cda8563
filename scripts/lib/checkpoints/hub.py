"""Fetch a repository of the Hugging Face hub at one commit."""

from __future__ import annotations

from pathlib import Path

import httpx
from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from scripts.lib.checkpoints.build import weights_of
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.study.models import HubSource

NOT_FOR_SERVING = ["*.pth", "*.onnx", "*.msgpack", "*.h5", "*.gguf", "*.ot", "original/*"]


def fetch_snapshot(source: HubSource, say: object = None) -> Path:
    """Return the folder of the repository's files in the hub's cache, fetched if need be."""
    del say
    try:
        folder = Path(
            snapshot_download(
                source.repo,
                revision=source.revision,
                allow_patterns=source.allow_patterns or None,
                ignore_patterns=None if source.allow_patterns else NOT_FOR_SERVING,
            )
        )
    except GatedRepoError:
        raise CheckpointError(
            f"{source.repo} is gated: accept its terms on its page, then give a token "
            "(HF_TOKEN, or `hf auth login`)"
        ) from None
    except RevisionNotFoundError:
        raise CheckpointError(
            f"{source.repo} has no commit {source.revision}: copy the full commit from its page"
        ) from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"{source.repo} is not on the hub, or is private: check the name, or give a token "
            "that may read it (HF_TOKEN)"
        ) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, httpx.HTTPError, OSError) as error:
        raise CheckpointError(f"{source.repo} cannot be fetched: {error}") from None
    if not weights_of(folder):
        raise CheckpointError(f"{folder} holds no weights")
    return folder
