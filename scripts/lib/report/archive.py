"""One zip file that holds a study's report and all of its evidence, the same bytes each time."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.lib.analysis.points.records import find_runs
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.analysis.summary import Summary
from scripts.lib.base.files import canonical_json
from scripts.lib.base.git import git
from scripts.lib.base.model_files import ModelError, read_model
from scripts.lib.base.schema import SCHEMA_VERSION
from scripts.lib.report.scrub import Machine, Scrubber
from scripts.lib.study.specs import read_study

SUMS = "SHA256SUMS"
MANIFEST = "ARCHIVE.json"
KEPT = (
    ".json", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".npz", ".log", ".log.gz", ".txt", ".md",
    ".html", ".svg", ".yaml", ".yml", ".prom",
)  # fmt: skip
"""Kinds of file that are evidence. Weights are none, whatever they are called."""
RAW = ("requests.jsonl.gz", "completions.jsonl.gz", "quality.json")
"""Records of prompts and answers: a model's words stay as they were said."""
LARGEST_DIFF = 2 * 1024 * 1024
_DATE = (1980, 1, 1, 0, 0, 0)


class ArchiveError(Exception):
    """The archive was not written; the message says why and what to do."""


def make_archive(
    results: Path, output: Path, project: Path, machine: Machine | None = None
) -> Path:
    """Write ``<study>-<hash>.zip`` of ``results`` into ``output``; return its path.

    The same content gives the same bytes and the same name. An archive of this study with
    another hash stays where it is.

    Raises:
        ArchiveError: if something is missing or damaged, or a machine path or secret would be
            left in it.
    """
    summary = _summary(results)
    _refuse_damaged_records(results)
    scrubber = Scrubber(machine or Machine.here(project), _own_names(summary))
    members, changed, left_out = _study_members(results, scrubber)
    members |= _lock_members(project, scrubber)
    members |= _git_members(project, scrubber)
    manifest = _manifest(summary, changed, left_out, members)
    members[MANIFEST] = scrubber.scrub(canonical_json(manifest)).encode()
    members["README.txt"] = _readme(summary.study).encode()
    _refuse_leaks(members, scrubber)
    sums = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(members.items())
    )
    members[SUMS] = sums.encode()
    identity = hashlib.sha256(sums.encode()).hexdigest()[:12]
    path = output / f"{summary.study}-{identity}.zip"
    _write_zip(path, f"{summary.study}-{identity}", members)
    return path


def _summary(results: Path) -> Summary:
    path = results / "summary.json"
    if not path.is_file():
        raise ArchiveError(f"{path} is missing; make the report first: snakemake --cores 1 report")
    try:
        return read_model(path, Summary, "make the report again with this version")
    except ModelError as error:
        raise ArchiveError(str(error)) from None


def _refuse_damaged_records(results: Path) -> None:
    try:
        study = read_study(results / "study.json")
        for run in find_runs(results, study.measures):  # reading checks it
            del run
    except (ModelError, RecordError) as error:
        raise ArchiveError(str(error)) from None


def _own_names(summary: Summary) -> set[str]:
    names = {summary.study, *(engine.name for engine in summary.engines)}
    names |= {variant.name for variant in summary.variants}
    names |= {variant.checkpoint for variant in summary.variants}
    return {name.lower() for name in names | {one.name for one in summary.workloads}}


def _study_members(
    results: Path, scrubber: Scrubber
) -> tuple[dict[str, bytes], list[dict[str, str]], list[str]]:
    """Return the study's files, which of them were changed, and which were left out."""
    members: dict[str, bytes] = {}
    changed: list[dict[str, str]] = []
    left_out: list[str] = []
    for path in _files(results):
        name = path.relative_to(results).as_posix()
        if path.is_symlink() or not name.endswith(KEPT):
            left_out.append(name)
            continue
        before = path.read_bytes()
        after = _scrubbed(name, before, scrubber)
        if after != before:
            changed.append(
                {"file": name, "sha256_before": _sha256(before), "sha256": _sha256(after)}
            )
        members[name] = after
    return members, changed, left_out


def _files(results: Path) -> Iterator[Path]:
    for path in sorted(results.rglob("*")):
        parts = path.relative_to(results).parts
        if parts[0] == "archive" or any(part.startswith(".") for part in parts):
            continue
        if path.is_symlink() or path.is_file():
            yield path


def _scrubbed(name: str, data: bytes, scrubber: Scrubber) -> bytes:
    """Return a member's bytes without machine paths and secrets; the same bytes if it had none."""
    if name.endswith(".npz"):
        return data
    raw = name.endswith(RAW)
    text = _text(name, data)
    clean = scrubber.scrub(text, raw)
    if clean == text:
        return data
    encoded = clean.encode("utf-8", "surrogateescape")
    return gzip.compress(encoded, mtime=0) if name.endswith(".gz") else encoded


def _text(name: str, data: bytes) -> str:
    if name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ArchiveError(
                f"{name} is not a whole gzip file ({error}); measure that variant again"
            ) from error
    return data.decode("utf-8", "surrogateescape")


def _lock_members(project: Path, scrubber: Scrubber) -> dict[str, bytes]:
    return {
        f"envs/{path.name}": scrubber.scrub(path.read_text(encoding="utf-8")).encode()
        for path in sorted((project / "envs").glob("*.txt"))
    }


def _git_members(project: Path, scrubber: Scrubber) -> dict[str, bytes]:
    """Return the commit and what differs from it, so that the code can be had again."""
    commit = git(project, "rev-parse", "HEAD")
    if commit is None:
        state: dict[str, Any] = {"commit": None, "why": "the project is not in a git repository"}
        return {"git/state.json": canonical_json(state).encode()}
    status = (git(project, "status", "--porcelain") or "").splitlines()
    state = {"commit": commit.strip(), "dirty": bool(status), "status": status}
    members = {}
    diff = git(project, "diff", "--no-ext-diff", "--no-color", "HEAD") or ""
    if len(diff) > LARGEST_DIFF:
        state["diff"] = f"left out: {len(diff):,} characters"
    elif diff:
        members["git/changes.diff"] = scrubber.scrub(diff).encode("utf-8", "surrogateescape")
        state["diff"] = "git/changes.diff"
    members["git/state.json"] = scrubber.scrub(canonical_json(state)).encode()
    return members


def _manifest(
    summary: Summary,
    changed: list[dict[str, str]],
    left_out: list[str],
    members: dict[str, bytes],
) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "study": summary.study,
        "study_hash": summary.provenance.study_hash,
        "measured_with": summary.provenance.model_dump(mode="json"),
        "host": summary.host.model_dump(mode="json"),
        "engines": [engine.model_dump(mode="json") for engine in summary.engines],
        "scrubbed": changed,
        "left_out": left_out,
        "not_here": sorted(path for path in summary.files if path not in members),
    }


def _readme(study: str) -> str:
    return (
        f"Evidence of the study {study}.\n\n"
        "report/report.html   the report; open it in a browser, nothing else is needed\n"
        "summary.json         everything the report says, for programs\n"
        "tables/              the tables as CSV\n"
        "runs/, quality/      raw records, server logs and start-up facts\n"
        "study.json, specs/   the resolved configuration\n"
        "envs/                locked requirements of every environment\n"
        "git/                 the commit of the code, and what differed from it\n"
        f"{MANIFEST}         host, versions, and which files were cleared of machine paths\n"
        f"{SUMS}           the SHA-256 of every file: sha256sum --check {SUMS}\n\n"
        "To compute every table again from the raw records, in the project's folder:\n"
        "python -m scripts.verify_archive FILE.zip\n"
    )


def _refuse_leaks(members: dict[str, bytes], scrubber: Scrubber) -> None:
    for name, data in sorted(members.items()):
        texts = _npz_texts(name, data) if name.endswith(".npz") else [_text(name, data)]
        for text in texts:
            left = scrubber.left(text, raw=name.endswith((*RAW, ".npz")))
            if left:
                raise ArchiveError(
                    f"{name} would still say {left[0]!r}; nothing was written. Take it out of "
                    "that file, or out of the study that put it there"
                )


def _npz_texts(name: str, data: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as arrays:
            return [arrays.read(member).decode("latin-1") for member in arrays.namelist()]
    except zipfile.BadZipFile as error:
        raise ArchiveError(
            f"{name} is not a whole .npz file; measure that variant again"
        ) from error


def _write_zip(path: Path, top: str, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, data in sorted(members.items()):
                info = zipfile.ZipInfo(f"{top}/{name}", _DATE)
                info.external_attr = 0o644 << 16
                info.create_system = 3
                packed = name.endswith((".gz", ".npz"))
                info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
                archive.writestr(info, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
