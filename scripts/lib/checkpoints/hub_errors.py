"""Why a repository could not be fetched from the hub, in one sentence with the fix."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from scripts.lib.study.models import HubSource

HOW_TO_GIVE = "set HF_TOKEN, or run `hf auth login`"
UNREACHABLE = ("connect", "timeout", "network", "proxy", "ssl", "gaierror")


def explain(source: HubSource, error: BaseException, *, has_token: bool) -> str:
    """Return the sentence for an error of the hub's client.

    Args:
        source: What was asked for.
        error: As raised; its causes are looked at as well.
        has_token: Whether a token was sent.
    """
    repo = source.repo
    if isinstance(error, GatedRepoError):
        if has_token:
            return f"{repo} is gated, and your token may not read it: accept its terms on its page"
        return f"{repo} is gated: accept its terms on its page, then give a token ({HOW_TO_GIVE})"
    if isinstance(error, RevisionNotFoundError):
        return f"{repo} has no commit {source.revision}: copy the full commit from its page"
    if isinstance(error, RepositoryNotFoundError):
        told = "that may read it" if has_token else f"if it is private ({HOW_TO_GIVE})"
        return f"{repo} is not on the hub for you: check the name, or give a token {told}"
    if isinstance(error, DisabledRepoError):
        return f"{repo} has been disabled by the hub: use another repository"
    if isinstance(error, HFValidationError):
        return f'hub.repo is "{repo}", which is no "owner/name": {_first_line(error)}'
    if isinstance(error, HfHubHTTPError):
        return _explain_status(source, error, has_token=has_token)
    return _explain_other(source, error)


def _explain_status(source: HubSource, error: HfHubHTTPError, *, has_token: bool) -> str:
    status = error.response.status_code
    if status in (401, 403):
        token = "does not accept your token: renew it" if has_token else "wants a token"
        return f"the hub {token} for {source.repo} ({HOW_TO_GIVE})"
    if status == 429:
        return f"the hub limits the rate of requests for {source.repo}: wait, or {HOW_TO_GIVE}"
    if status >= 500:
        return f"the hub answers {status} for {source.repo}: it is out of order, try again later"
    return f"the hub answers {status} for {source.repo}: {_first_line(error)}"


def _explain_other(source: HubSource, error: BaseException) -> str:
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, OSError) and cause.errno == errno.ENOSPC:
            return f"the disk is full while {source.repo} is fetched: free some space, run again"
        if isinstance(cause, OfflineModeIsEnabled):
            return (
                f"{source.repo} at {source.revision[:12]} was not fetched before, and "
                "HF_HUB_OFFLINE forbids to fetch it now: unset it, or give a path source"
            )
    names = " ".join(f"{type(cause).__name__} {cause}".lower() for cause in chain)
    if any(word in names for word in UNREACHABLE):
        return (
            f"the hub cannot be reached for {source.repo}, and it was not fetched before "
            f"({_first_line(error)}): connect this machine, name a mirror in HF_ENDPOINT, or "
            "copy the files here and give a path source"
        )
    return f"{source.repo} cannot be fetched: {type(error).__name__}: {_first_line(error)}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
