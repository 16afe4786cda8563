"""What files are made of before anything is read from them."""

import gzip

import pytest

from scripts import inspect_server_log, read_benchmark, read_metrics
from scripts.lib.base.printed_text import decode, plain

COMMANDS = {
    "inspect_server_log": inspect_server_log,
    "read_benchmark": read_benchmark,
    "read_metrics": read_metrics,
}
SCRAPE = 'vllm:num_requests_running{model_name="m"} 3.0\n'


@pytest.fixture(params=COMMANDS.values(), ids=COMMANDS)
def command(request):
    return request.param


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (gzip.compress(SCRAPE.encode()), "packed with gzip"),
        (b"PK\x03\x04" + b"x" * 40, "packed with zip"),
        (bytes(range(256)) * 9, "binary"),
    ],
    ids=["nothing", "blank", "gzip", "zip", "binary"],
)
def test_what_is_no_text_is_refused_in_one_sentence(command, data, reason, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_bytes(data)
    assert command.main([str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert reason in said.err
    assert said.err.startswith(f"{file}: ")


def test_a_file_that_is_not_there(command, tmp_path, capsys):
    assert command.main([str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'none'}: no such file or directory\n"
    assert command.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path}: is a directory\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_of_other_systems(encoding, tmp_path, capsys):
    assert decode(SCRAPE.encode(encoding), "a scrape") == SCRAPE
    file = tmp_path / "scrape"
    file.write_bytes(SCRAPE.encode(encoding))
    assert read_metrics.main([str(file)]) == 0
    assert '"running": 3.0' in capsys.readouterr().out


def test_plain_text_stays_what_it_is():
    text = "a [12] {b} | c\n[1;2] d 0m\n"
    assert plain(text) == text
