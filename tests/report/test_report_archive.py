"""The archive: whole, the same bytes each time, without machine paths or secrets, verifiable."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import zipfile

import pytest

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.analysis.tables import write_tables
from scripts.lib.base.files import sha256_of
from scripts.lib.report import archive as archiving
from scripts.lib.report.archive import ArchiveError, make_archive
from scripts.lib.report.scrub import Machine, Scrubber
from scripts.lib.report.verify import UnreadableError, same_but_for_rounding, verify_archive
from scripts.lib.study.specs import read_study
from scripts.make_archive import main as make_archive_main
from scripts.summarise_study import main as summarise
from scripts.verify_archive import main as verify_main
from tests.factories import OOM, Recipe, write_study

ROOT_HOME = "/" + "root"
MACHINE = Machine(
    projects=("/srv/projects/study",),
    homes=("/home/ada", ROOT_HOME),
    temporary=("/tmp", "/scratch/tmp"),
    hosts=("gpu-box-7.example.org", "gpu-box-7"),
    user="adalovelace",
)
TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUv"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a finished synthetic study's folder; its report is a stand-in."""
    root = tmp_path_factory.mktemp("project")
    folder = write_study(root, Recipe(failures={"int4-w4a16": OOM}, levels=[1, 2], repetitions=1))
    write_tables(folder / "tables", analyse_study(read_study(folder / "study.json"), folder))
    words = ["--study", str(folder / "study.json"), "--results", str(folder)]
    assert summarise([*words, "--output", str(folder / "summary.json")]) == 0
    (folder / "report").mkdir()
    (folder / "report" / "report.html").write_text("<p>report</p>")
    return folder


@pytest.fixture
def study(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "project" / "results" / "synthetic")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "envs").mkdir(parents=True)
    (folder / "envs" / "workflow.txt").write_text("snakemake==9.27.1\n")
    (folder / "envs" / "workflow.in").write_text("snakemake\n")
    return folder


@pytest.fixture(scope="module")
def packed(finished, tmp_path_factory):
    output = tmp_path_factory.mktemp("archive")
    return make_archive(finished, output, output, MACHINE)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {n.split("/", 1)[1]: archive.read(n) for n in archive.namelist()}


def repack(path, target, change):
    """Write the archive again with its members changed; sums stay as they were."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    top = next(iter(held)).split("/")[0]
    change({name.split("/", 1)[1]: data for name, data in held.items()}, held, top)
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data)
    return target


def test_it_holds_the_evidence(study, project):
    (study / "logs.bin").write_bytes(b"x")
    (study / "model.safetensors").write_bytes(b"w" * 100)
    (study / "link.json").symlink_to(study / "study.json")
    (study / "archive").mkdir()
    (study / "archive" / "old.zip").write_bytes(b"old")
    held = members(make_archive(study, project / "out", project, MACHINE))
    for name in (
        "report/report.html", "summary.json", "study.json", "tables/points.csv", "SHA256SUMS",
        "envs/workflow.txt", "git/state.json", "ARCHIVE.json", "README.txt", "host.json",
    ):  # fmt: skip
        assert name in held
    runs = [name for name in held if name.startswith("runs/bf16")]
    assert {name.rsplit("/", 1)[1] for name in runs} >= {"load.json", "requests.jsonl.gz"}
    assert not [n for n in held if n.endswith((".safetensors", ".bin", ".zip", ".in", "link.json"))]
    manifest = json.loads(held["ARCHIVE.json"])
    assert manifest["left_out"] == ["link.json", "logs.bin", "model.safetensors"]
    assert manifest["host"]["cpu"]["model"]
    assert manifest["not_here"] == []


def test_sums_are_those_of_the_files(packed):
    held = members(packed)
    lines = held["SHA256SUMS"].decode().splitlines()
    assert len(lines) == len(held) - 1
    for line in lines:
        digest, name = line.split("  ", 1)
        assert hashlib.sha256(held[name]).hexdigest() == digest


def test_the_same_study_gives_the_same_bytes(finished, packed, tmp_path):
    again = make_archive(finished, tmp_path, packed.parent, MACHINE)
    assert again.name == packed.name
    assert re.fullmatch(r"synthetic-[0-9a-f]{12}\.zip", again.name)
    assert sha256_of(again) == sha256_of(packed)


def test_another_study_gives_another_name(study, packed, project):
    (study / "tables" / "points.csv").write_text("changed\n")
    assert make_archive(study, project / "out", project, MACHINE).name != packed.name


LINES = {
    "model /srv/projects/study/resources/x": "model <project>/resources/x",
    "file:///srv/projects/study/a": "file://<project>/a",
    "/srv/projects/study-2/a": "/srv/projects/study-2/a",
    "cache /home/ada/.cache/hf": "cache <home>/.cache/hf",
    "runs/tmp/x and /tmp/torch_1": "runs/tmp/x and <tmp>/torch_1",
    "/scratch/tmp/y": "<tmp>/y",
    "host gpu-box-7.example.org up": "host <host> up",
    "on GPU-BOX-7: pid 1": "on <host>: pid 1",
    "user=adalovelace": "user=<user>",
    f"{ROOT_HOME}/.bashrc, the root cause": "<home>/.bashrc, the root cause",
    f"token {TOKEN} used": "token <secret:hugging-face-token> used",
    "Authorization: Bearer abcdefgh12345678": "Authorization: Bearer <secret>",
    "--api-key my-key-1 --port 1": "--api-key <secret> --port 1",
    "api_key='abcdef123'": "api_key='<secret>'",
    '"HF_TOKEN": "something-secret"': '"HF_TOKEN": "<secret>"',
    "AWS_SECRET_ACCESS_KEY=abcd/efgh+ij": "AWS_SECRET_ACCESS_KEY=<secret>",
    "AKIA" + "ABCDEFGHIJKLMNOP": "<secret:aws-key-id>",
    "http://me:pass@proxy:80": "http://me:<secret>@proxy:80",
    "sk-" + "a" * 30: "<secret:api-key>",
    "glpat-" + "a" * 20: "<secret:gitlab-token>",
    "max_tokens=256 tokenizer=x api_key=None": "max_tokens=256 tokenizer=x api_key=None",
    '"X_TOKEN": 123456': '"X_TOKEN": 123456',
    "risk-averse and task-oriented": "risk-averse and task-oriented",
}


@pytest.mark.parametrize("line", LINES)
def test_machine_and_secrets_are_replaced(line):
    scrubber = Scrubber(MACHINE)
    clean = scrubber.scrub(line)
    assert clean == LINES[line]
    assert scrubber.left(clean) == []
    assert scrubber.scrub(clean) == clean
    if clean != line:
        assert scrubber.left(line)


def test_a_private_key_goes_whole():
    key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"
    assert Scrubber(MACHINE).scrub(f"a {key} b") == "a <secret:private-key> b"


def test_a_models_words_stay_but_not_what_names_this_machine():
    scrubber = Scrubber(MACHINE)
    answer = f"open('/tmp/x'); password = 'letmein1'; cd {ROOT_HOME}; cd /home/ada"
    assert scrubber.scrub(answer, raw=True) == answer.replace("/home/ada", "<home>")


def test_the_studys_own_names_stay():
    machine = Machine((), (), (), ("bf16-box",), "int8-w8a8")
    assert Scrubber(machine, {"int8-w8a8"}).scrub("int8-w8a8 on bf16-box") == "int8-w8a8 on <host>"


def test_files_are_cleared_and_the_archive_says_which(study, project):
    log = study / "runs" / "bf16" / "chat" / "session1" / "server.log"
    log.write_text(f"model='/srv/projects/study/resources/m' HF_TOKEN={TOKEN}\n/tmp/abc\n")
    before = sha256_of(log)
    packed = gzip.compress(b'{"error": "no /home/ada/x", "text": "/tmp/ok"}\n', mtime=5)
    raw = study / "quality" / "bf16" / "completions.jsonl.gz"
    raw.write_bytes(packed)
    held = members(make_archive(study, project / "out", project, MACHINE))
    text = held["runs/bf16/chat/session1/server.log"].decode()
    assert text == "model='<project>/resources/m' HF_TOKEN=<secret:hugging-face-token>\n<tmp>/abc\n"
    line = json.loads(gzip.decompress(held["quality/bf16/completions.jsonl.gz"]))
    assert line == {"error": "no <home>/x", "text": "/tmp/ok"}
    changed = {one["file"]: one for one in json.loads(held["ARCHIVE.json"])["scrubbed"]}
    assert changed["runs/bf16/chat/session1/server.log"]["sha256_before"] == before
    assert set(changed) >= {"quality/bf16/completions.jsonl.gz"}


def test_what_cannot_be_cleared_is_refused(study, project, monkeypatch):
    import numpy

    numpy.savez_compressed(study / "quality" / "bf16" / "logprobs.npz", a=numpy.array([1]),
                           b=numpy.array([b"/home/ada/secret"]))  # fmt: skip
    with pytest.raises(ArchiveError, match=r"logprobs\.npz would still say '/home/ada'"):
        make_archive(study, project / "out", project, MACHINE)
    assert not list((project / "out").glob("*"))


def test_a_leak_in_any_member_is_refused(study, project, monkeypatch):
    monkeypatch.setattr(archiving, "_readme", lambda _: "made in /home/ada/x")
    with pytest.raises(ArchiveError, match=r"README\.txt would still say"):
        make_archive(study, project / "out", project, MACHINE)


def test_the_git_state_and_changes_are_kept(study, project):
    def git(*words):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *words], cwd=project, check=True, capture_output=True)

    (project / ".gitignore").write_text("results/\nout/\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    held = members(make_archive(study, project / "out", project, MACHINE))
    state = json.loads(held["git/state.json"])
    assert len(state["commit"]) == 40
    assert state["dirty"] is False
    assert "git/changes.diff" not in held
    (project / "envs" / "workflow.txt").write_text("snakemake==9.27.2\n")
    held = members(make_archive(study, project / "out", project, MACHINE))
    assert b"+snakemake==9.27.2" in held["git/changes.diff"]
    assert json.loads(held["git/state.json"])["dirty"] is True


def test_without_git_it_says_so(packed):
    state = json.loads(members(packed)["git/state.json"])
    assert state == {"commit": None, "why": "the project is not in a git repository"}


def test_a_whole_archive_is_ok(packed, capsys):
    assert verify_main([str(packed)]) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(
        r"OK: \d+ files are unchanged, and 9 tables follow from the raw records\.\n", out
    )


def problems(path):
    return verify_archive(path).problems


def test_a_changed_number_is_found(packed, tmp_path):
    def change(names, held, top):
        held[f"{top}/tables/points.csv"] = names["tables/points.csv"].replace(b"bf16", b"bf17", 1)

    found = problems(repack(packed, tmp_path / "x.zip", change))
    assert found == ["tables/points.csv was changed: its SHA-256 is not the one in SHA256SUMS."]


def test_missing_and_added_files_are_found(packed, tmp_path):
    def change(_, held, top):
        del held[f"{top}/host.json"]
        held[f"{top}/extra.txt"] = b"more"

    found = problems(repack(packed, tmp_path / "x.zip", change))
    assert found == [
        "host.json is missing from the archive.",
        "extra.txt is not listed in SHA256SUMS.",
    ]


def test_tables_with_new_sums_but_other_raw_records_are_found(study, project):
    path = study / "tables" / "points.csv"
    rows = list(csv.reader(path.open()))
    rows[1][rows[0].index("output_throughput_tok_s")] = "999.5"
    with path.open("w") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    found = problems(make_archive(study, project / "out", project, MACHINE))
    assert len(found) == 1
    assert found[0].startswith(
        "tables/points.csv differs: line 2, column output_throughput_tok_s says '999.5', "
        "the raw records give '"
    )


def retold(study, factor):
    """Tell every fraction in tables and summary ``factor`` times as large."""

    def other(match):
        return repr(float(match[0]) * factor)

    for path in [*(study / "tables").iterdir(), study / "summary.json"]:
        text = path.read_text()
        path.write_text(re.sub(r"(?<![\w.:-])\d+\.\d{6,}(?![\w.:])", other, text))


def test_the_last_digits_of_another_machine_are_no_change(study, project):
    """Another Python or numpy adds up in another order, or more exactly."""
    before = (study / "tables" / "points.csv").read_text()
    retold(study, 1 + 1e-13)
    assert (study / "tables" / "points.csv").read_text() != before
    assert problems(make_archive(study, project / "out", project, MACHINE)) == []


def test_digits_that_matter_are_a_change(study, project):
    retold(study, 1 + 1e-7)
    found = problems(make_archive(study, project / "out", project, MACHINE))
    assert any(line.startswith("tables/points.csv differs: line 2, column ") for line in found)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a 0.1", "a 0.10000000000000002", True),
        ("a 1e-7 b", "a 1.0000000000000002e-07 b", True),
        ("0", "0.0", True),
        ("10000000001", "10000000002", False),  # counts are exact
        ("0.1", "0.1000001", False),
        ("0.1 b", "0.1 c", False),
        ("1,2", "1,2,3", False),
        ("sha 12ab", "sha 13ab", False),
        ("0.0", "-0.0000001", False),
    ],
)
def test_what_counts_as_the_same(one, other, same):
    assert same_but_for_rounding(one, other) is same


def test_a_summary_that_says_something_else_is_found(study, project):
    path = study / "summary.json"
    summary = json.loads(path.read_text())
    summary["boundaries"][0]["words"] = "passes up to 900"
    path.write_text(json.dumps(summary))
    found = problems(make_archive(study, project / "out", project, MACHINE))
    assert found == ["summary.json: boundaries are not those of tables/analysis.json."]


def test_prompts_that_were_cleared_in_the_tables_do_not_count_as_changes(study, project):
    path = study / "quality" / "int8-w8a8" / "quality.json"
    data = json.loads(path.read_text())
    for item in data["items"]:
        item["text"] = f"see /tmp/x and {ROOT_HOME}/y"
        if item["id"].endswith("0"):
            item["task_success"] = False
    path.write_text(json.dumps(data))
    write_tables(study / "tables", analyse_study(read_study(study / "study.json"), study))
    words = ["--study", str(study / "study.json"), "--results", str(study)]
    assert summarise([*words, "--output", str(study / "summary.json")]) == 0
    packed = make_archive(study, project / "out", project, MACHINE)
    assert b"<tmp>/x" in members(packed)["tables/analysis.json"]
    assert problems(packed) == []


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_a_truncated_file_gets_a_sentence(packed, tmp_path, capsys, share):
    cut = tmp_path / "cut.zip"
    data = packed.read_bytes()
    cut.write_bytes(data[: int(len(data) * share)])
    assert verify_main([str(cut)]) == 2
    error = capsys.readouterr().err
    assert str(cut) in error
    assert "Traceback" not in error
    assert error.endswith(".\n")


def test_a_flipped_byte_is_found(packed, tmp_path):
    data = bytearray(packed.read_bytes())
    data[len(data) // 2] ^= 0xFF
    bad = tmp_path / "bad.zip"
    bad.write_bytes(bytes(data))
    assert verify_main([str(bad)]) in (1, 2)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../../evil.txt", "outside its folder"),
        ("/etc/evil", "no single top folder"),
        ("other/x", "no single top folder"),
    ],
)
def test_members_outside_the_folder_are_refused(packed, tmp_path, name, words):
    def change(_, held, top):
        held[f"{top}/{name}" if name.startswith("..") else name] = b"x"

    with pytest.raises(UnreadableError, match=words):
        verify_archive(repack(packed, tmp_path / "x.zip", change))
    assert not (tmp_path.parent / "evil.txt").exists()


def test_other_files_are_refused(tmp_path, capsys):
    assert verify_main([str(tmp_path / "none.zip")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a/b.txt", "x")
    assert verify_main([str(tmp_path / "other.zip")]) == 2
    assert "has no SHA256SUMS" in capsys.readouterr().err


def test_without_a_summary_there_is_a_sentence(tmp_path, capsys):
    words = ["--results", str(tmp_path), "--output", str(tmp_path), "--project", str(tmp_path)]
    assert make_archive_main(words) == 2
    assert "make the report first" in capsys.readouterr().err
