"""Checks an archive: are its files unchanged, and do its tables follow from its raw records?"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.analysis.tables import Analysis, TableError, write_tables
from scripts.lib.report.archive import MANIFEST, SUMS
from scripts.lib.report.scrub import Machine, Scrubber
from scripts.lib.study.specs import read_study

NEEDED = (MANIFEST, "summary.json", "study.json", "report/report.html")
MOST_BYTES = 64 * 1024**3
RELATIVE, ABSOLUTE = 1e-9, 1e-12
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_SUM_LINE = re.compile(r"^([0-9a-f]{64}) [ *](.+)$")


class UnreadableError(Exception):
    """The file is no archive that could be checked; the message says why."""


@dataclass
class Findings:
    """What a check found."""

    files: int = 0
    tables: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.problems


def verify_archive(path: Path) -> Findings:
    """Check every sum of the archive and compute its tables again from its raw records.

    Raises:
        UnreadableError: if the file is not a whole zip file with a list of sums.
    """
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="verify-") as folder:
        root = _unpack(path, Path(folder), findings)
        _check_needed(root, findings)
        # Tables of a file that was tampered with would only repeat the news.
        if findings.ok:
            _check_tables(root, findings)
            _check_summary(root, findings)
    return findings


def _unpack(path: Path, folder: Path, findings: Findings) -> Path:
    """Unpack what the sums vouch for; return the folder of the study's files."""
    try:
        with zipfile.ZipFile(path) as archive:
            top, members = _members(path, archive)
            sums = _sums(path, archive, members)
            findings.problems += [
                f"{name} is missing from the archive." for name in sorted(set(sums) - set(members))
            ]
            findings.problems += [
                f"{name} is not listed in {SUMS}."
                for name in sorted(set(members) - set(sums) - {SUMS})
            ]
            for name in sorted(set(sums) & set(members)):
                _unpack_one(archive, members[name], folder / top / name, sums[name], findings)
    except FileNotFoundError as error:
        raise UnreadableError(f"{path}: there is no such file.") from error
    except (zipfile.BadZipFile, EOFError) as error:
        raise UnreadableError(
            f"{path} is not a whole zip file ({error}); copy it again from its source."
        ) from error
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror or error}.") from error
    return folder / top


def _members(path: Path, archive: zipfile.ZipFile) -> tuple[str, dict[str, zipfile.ZipInfo]]:
    infos = [info for info in archive.infolist() if not info.is_dir()]
    if sum(info.file_size for info in infos) > MOST_BYTES:
        raise UnreadableError(f"{path} would unpack to more than {MOST_BYTES // 1024**3} GiB.")
    tops = {PurePosixPath(info.filename).parts[0] for info in infos if info.filename}
    if len(tops) != 1:
        raise UnreadableError(f"{path} is not an archive of ours: it has no single top folder.")
    top = tops.pop()
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        parts = PurePosixPath(info.filename).parts
        if (
            info.filename.startswith("/")
            or ".." in parts
            or "\\" in info.filename
            or len(parts) < 2
        ):
            raise UnreadableError(f"{path} holds a file outside its folder: {info.filename!r}.")
        name = "/".join(parts[1:])
        if name in members:
            raise UnreadableError(f"{path} holds {name} twice.")
        members[name] = info
    return top, members


def _sums(
    path: Path, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, str]:
    if SUMS not in members:
        raise UnreadableError(f"{path} is not an archive of ours: it has no {SUMS}.")
    try:
        text = archive.read(members[SUMS]).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path}: {SUMS} cannot be read ({error}).") from error
    sums = {}
    for line in text.splitlines():
        found = _SUM_LINE.match(line)
        if not found:
            raise UnreadableError(f"{path}: {SUMS} has a line that is no sum: {line[:80]!r}.")
        sums[found[2]] = found[1]
    return sums


def _unpack_one(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    target: Path,
    expected: str,
    findings: Findings,
) -> None:
    name = "/".join(PurePosixPath(info.filename).parts[1:])
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        with archive.open(info) as source, target.open("wb") as copy:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                copy.write(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        findings.problems.append(f"{name} cannot be unpacked: {error}.")
        return
    findings.files += 1
    if digest.hexdigest() != expected:
        findings.problems.append(f"{name} was changed: its SHA-256 is not the one in {SUMS}.")


def _check_needed(root: Path, findings: Findings) -> None:
    findings.problems += [
        f"{name} is missing from the archive and from its list."
        for name in NEEDED
        if not (root / name).is_file() and not any(name in one for one in findings.problems)
    ]


def _check_tables(root: Path, findings: Findings) -> None:
    kept = _tables(root)
    if not kept:
        findings.problems.append("The archive holds no tables/*.csv to compare with.")
        return
    for path in (root / "tables").iterdir():
        path.unlink()
    if not _rebuild(root, findings):
        return
    made = _tables(root)
    for name in sorted(kept.keys() | made.keys()):
        if name not in made:
            findings.problems.append(f"tables/{name} does not follow from the raw records.")
        elif name not in kept:
            findings.problems.append(f"tables/{name} follows from the raw records but is missing.")
        elif made[name] != kept[name] and not same_but_for_rounding(
            _clean(kept[name]), _clean(made[name])
        ):
            findings.problems.append(
                f"tables/{name} differs: {_first_difference(kept[name], made[name])}."
            )
        else:
            findings.tables += 1


def _check_summary(root: Path, findings: Findings) -> None:
    """The report shows summary.json: its tables must be the ones that were just computed."""
    summary, analysis = (
        json.loads(_clean((root / name).read_bytes()))
        for name in ("summary.json", "tables/analysis.json")
    )
    findings.problems += [
        f"summary.json: {key} are not those of tables/analysis.json."
        for key in Analysis.model_fields
        if key != "schema_version"
        and not same_but_for_rounding(json.dumps(summary.get(key)), json.dumps(analysis.get(key)))
    ]


def same_but_for_rounding(one: str, other: str) -> bool:
    """Say if two texts are the same, their fractions to ``RELATIVE`` of their size.

    Another version of Python, numpy or pandas adds up in another order or more exactly, so the
    last of 16 digits is no sign of a change. Whole numbers are counts: they must be equal.
    """
    if one == other:
        return True
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(_same_number(a, b) for a, b in pairs if a != b)


def _same_number(one: str, other: str) -> bool:
    if one.lstrip("-").isdigit() and other.lstrip("-").isdigit():
        return int(one) == int(other)
    return math.isclose(float(one), float(other), rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _tables(root: Path) -> dict[str, bytes]:
    folder = root / "tables"
    paths = sorted([*folder.glob("*.csv"), *folder.glob("analysis.json")])
    return {path.name: path.read_bytes() for path in paths}


def _clean(table: bytes) -> str:
    """Return a table as the archive would hold it: prompts are scrubbed in it, not in the raw."""
    return Scrubber(Machine.any()).scrub(table.decode("utf-8", "surrogateescape"))


def _rebuild(root: Path, findings: Findings) -> bool:
    """Build the tables from the unpacked records as ``scripts.build_tables`` does; say if so."""
    try:
        study = read_study(root / "study.json")
        write_tables(root / "tables", analyse_study(study, root, _scrubbed(root)))
    except (RecordError, TableError, ValueError, OSError) as error:
        reason = " ".join(str(error).replace(f"{root}/", "").split())
        findings.problems.append(f"The tables could not be computed again: {reason}")
        return False
    return True


def _scrubbed(root: Path) -> set[str]:
    """Return the files that the archive says it holds without machine paths."""
    manifest = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    return {entry["file"] for entry in manifest.get("scrubbed", [])}


def _first_difference(kept: bytes, made: bytes) -> str:
    """Return the first cell (of a JSON file: line) that differs, in words."""
    old, new = (
        list(csv.reader(data.decode("utf-8", "replace").splitlines())) for data in (kept, made)
    )
    if old[:1] != new[:1]:
        return "its columns are not the same"
    for number, (before, after) in enumerate(zip(old[1:], new[1:], strict=False), start=2):
        for column, was, becomes in zip(old[0], before, after, strict=False):
            if not same_but_for_rounding(was, becomes):
                return (
                    f"line {number}, column {column} says {was!r}, the raw records give {becomes!r}"
                )
    return f"it has {len(old)} lines, the raw records give {len(new)}"
