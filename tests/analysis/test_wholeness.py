"""Raw records that are lost, cut off or edited are named with the way to get them back."""

import gzip
import shutil
from pathlib import Path

import pytest

from scripts.build_tables import main as build_tables
from scripts.lib.analysis.points.records import load_run
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.base.files import read_json, write_json
from scripts.lib.jobs.study_files import find_lost_records
from scripts.lib.load.results import RECORD_FILES
from scripts.lib.report.archive import ArchiveError, make_archive
from scripts.lib.report.scrub import Machine
from scripts.lib.report.verify import verify_archive
from scripts.summarise_study import main as summarise
from tests import factories

RUN = "runs/bf16/chat/session1"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return factories.write_study(tmp_path_factory.mktemp("study"), factories.Recipe(gpus=1))


@pytest.fixture
def folder(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "results" / "synthetic"))


def delete(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


def drop_lines(path: Path) -> None:
    """Leave a whole gzip file that holds less: what a careless editor, or a copy, leaves."""
    path.write_bytes(gzip.compress("".join(lines_of(path)[:-3]).encode()))


def edit(path: Path) -> None:
    text = "".join(lines_of(path)).replace("5", "6", 1)
    path.write_bytes(gzip.compress(text.encode()))


def forget(load: Path) -> None:
    """Write load.json as a former version did: without hashes."""
    write_json(load, {key: value for key, value in read_json(load).items() if key != "records"})


def tables(folder: Path) -> int:
    return build_tables(["--study", str(folder / "study.json"), "--results", str(folder)])


@pytest.mark.parametrize("damage", [delete, cut, empty, drop_lines, edit])
@pytest.mark.parametrize("name", ["requests.jsonl.gz", "metrics.csv.gz", "gpu.csv.gz"])
def test_a_damaged_record_stops_the_tables_with_the_fix(folder, name, damage, capsys):
    assert set(read_json(folder / RUN / "load.json")["records"]) == {*RECORD_FILES} - {"itl.npz"}
    damage(folder / RUN / name)
    assert tables(folder) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{folder / RUN / name}: ")
    assert ("is missing" if damage is delete else "cut off or edited") in said
    assert said.endswith(f"--cores 1 --forcerun {folder / RUN / 'load.json'}\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize("damage", [delete, cut, empty, drop_lines])
def test_without_hashes_the_counts_tell_what_is_lost(folder, damage, capsys):
    forget(folder / RUN / "load.json")
    damage(folder / RUN / "requests.jsonl.gz")
    assert tables(folder) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{folder / RUN / 'requests.jsonl.gz'}: ")
    assert "--forcerun" in said


def test_a_request_that_is_no_longer_completed_is_told_by_the_counts(folder):
    forget(folder / RUN / "load.json")
    path = folder / RUN / "requests.jsonl.gz"
    text = "".join(lines_of(path)).replace('"ok": true', '"ok": false', 1)
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(RecordError, match="of point 0, 9 of them completed, where .* 10 and 10"):
        load_run(folder / RUN)


def test_results_of_a_former_version_and_imported_ones_still_read(folder, tmp_path):
    forget(folder / RUN / "load.json")
    assert len(load_run(folder / RUN).requests) > 0
    points = [(factories.make_point([factories.record(sent_s=0, first_token_s=1, last_token_s=2,
               input_tokens=1, output_tokens=2)], workload_point=0, repetition=1,
               concurrency=1), [])]  # fmt: skip
    load = factories.write_run(tmp_path, "a", "b", points, with_requests=False)
    assert load_run(load.parent).requests is None


def test_a_lost_record_is_said_before_any_job(folder):
    study = factories.make_study()
    assert list(find_lost_records(study, folder)) == []
    (folder / RUN / "requests.jsonl.gz").unlink()
    (folder / "runs/int8-w8a8/chat/session1/load.json").write_text("[]")
    (problem,) = find_lost_records(study, folder)
    assert problem.startswith(f"{folder / RUN / 'requests.jsonl.gz'} is missing; put it back")
    shutil.move(folder / "runs/bf16", folder / "runs/of-a-former-study")
    assert list(find_lost_records(study, folder)) == []


@pytest.fixture
def reported(folder):
    assert tables(folder) == 0
    words = ["--study", str(folder / "study.json"), "--results", str(folder)]
    assert summarise([*words, "--output", str(folder / "summary.json")]) == 0
    (folder / "report").mkdir()
    (folder / "report/report.html").write_text("<p>report</p>")
    return folder


@pytest.mark.parametrize("damage", [delete, cut, edit])
def test_no_archive_is_made_of_damaged_records(reported, damage, tmp_path):
    damage(reported / RUN / "requests.jsonl.gz")
    with pytest.raises(ArchiveError, match=r"requests\.jsonl\.gz: .*--forcerun"):
        make_archive(reported, tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_records_that_an_archive_cleared_of_paths_still_verify(folder, tmp_path):
    load, path = folder / RUN / "load.json", folder / RUN / "requests.jsonl.gz"
    said = "".join(lines_of(path)).replace('"error": null', '"error": "no /srv/x/study/f"', 1)
    path.write_bytes(gzip.compress(said.encode()))
    write_json(load, factories.note_records(load_run_unchecked(load), load.parent))
    assert tables(folder) == 0
    words = ["--study", str(folder / "study.json"), "--results", str(folder)]
    assert summarise([*words, "--output", str(folder / "summary.json")]) == 0
    (folder / "report").mkdir()
    (folder / "report/report.html").write_text("<p>report</p>")
    machine = Machine(("/srv/x/study",), (), (), (), None)
    findings = verify_archive(make_archive(folder, tmp_path / "out", tmp_path, machine))
    assert findings.problems == []


def load_run_unchecked(load: Path) -> factories.LoadResult:
    return factories.LoadResult.model_validate(read_json(load))
