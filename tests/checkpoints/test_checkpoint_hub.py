"""The hub source against a server on loopback that speaks the hub's API."""

import errno
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError

from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.hub_errors import explain
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.study.models import Checkpoint, HubSource
from tests.checkpoints import tiny
from tests.checkpoints.fake_hub import COMMIT, FakeHub

REPO = "someone/tiny"


@pytest.fixture
def hub(make_folder):
    """A hub with one repository: the tiny model in two shards, and much that is not served."""
    folder = make_folder(tensors=tiny.plain(), shards=2, name="upstream")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    files |= {"README.md": b"# tiny", "pytorch_model.bin": b"x" * 50, "original/a.pth": b"y" * 50}
    server = FakeHub()
    server.repos[REPO] = files
    yield server
    server.close()


class Client:
    """Makes the checkpoint with an empty cache of its own, and remembers what was said."""

    def __init__(self, hub, tmp_path, monkeypatch):
        self.folder, self.monkeypatch, self.said = tmp_path, monkeypatch, ""
        cache = str(tmp_path / "hf/hub")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", cache)
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        files = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def make(self, repo=REPO, revision=COMMIT, allow_patterns=(), offline=False):
        source = {"repo": repo, "revision": revision, "allow_patterns": list(allow_patterns)}
        spec = Checkpoint.model_validate({"hub": source})
        said = []
        job = Job("tiny", spec, self.folder / "resources", say=said.append)
        self.monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        try:
            return make_checkpoint(job)
        except CheckpointError as error:
            said.append(str(error))
            return None
        finally:
            self.said = "\n".join(said)


@pytest.fixture
def client(hub, tmp_path, monkeypatch):
    return Client(hub, tmp_path, monkeypatch)


def test_fetch_then_use_again_with_and_without_the_hub(hub, client, tmp_path):
    manifest = client.make()
    assert manifest is not None, client.said
    assert "fetching 5 files of someone/tiny" in client.said
    names = {file.path for file in manifest.files}
    shards = {f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}
    index = "model.safetensors.index.json"
    assert names == {"README.md", "config.json", index, *shards}
    assert manifest.tensors.parameters == tiny.PARAMETERS
    folder = Path(manifest.folder)
    assert folder.is_relative_to(tmp_path / "resources")
    assert (folder / "config.json").is_file()

    count = len(hub.fetched)
    assert client.make() == manifest
    assert len(hub.fetched) == count, "nothing was fetched again"
    assert "fetching" not in client.said

    assert client.make(offline=True) == manifest
    hub.close()
    assert client.make() == manifest


def test_only_what_was_asked_for(client):
    manifest = client.make(allow_patterns=["*.safetensors", "*.json"])
    assert "README.md" not in {file.path for file in manifest.files}


def test_older_weights_where_there_are_no_others(hub, client):
    files = hub.repos[REPO]
    hub.repos[REPO] = {n: c for n, c in files.items() if "safetensors" not in n}
    manifest = client.make()
    assert manifest.real_bytes == 50
    assert manifest.tensors is None


def test_a_cut_download_continues(hub, client):
    shard = "model-00001-of-00002.safetensors"
    hub.cut.add(shard)
    assert client.make() is not None, client.said
    assert [name for name, _ in hub.fetched].count(shard) == 2


def test_a_damaged_file_is_found(hub, client):
    hub.damaged.add("model-00002-of-00002.safetensors")
    assert client.make() is None
    assert "is damaged (its SHA-256 is not the hub's): delete it and run again" in client.said
    assert client.make() is None, "it stays damaged until it is deleted"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"repo": "someone/else"}, "someone/else is not on the hub for you: check the name"),
        ({"revision": "f" * 40}, f"someone/tiny has no commit {'f' * 40}: copy the full commit"),
        ({"allow_patterns": ["*.md"]}, "has no weights that vLLM serves"),
        (
            {"offline": True},
            "someone/tiny at 0123456789ab was not fetched before, and HF_HUB_OFFLINE forbids",
        ),
    ],
)
def test_what_cannot_be_fetched(client, request_, message):
    assert client.make(**request_) is None
    assert message in client.said


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (None, "is gated: accept its terms on its page, then give a token (set HF_TOKEN"),
        ("other", "is gated, and your token may not read it: accept its terms"),
        ("the-right-one", None),
    ],
)
def test_gated(hub, client, monkeypatch, token, message):
    hub.gated.add(REPO)
    hub.token = "the-right-one"
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    manifest = client.make()
    assert (manifest is None) == (message is not None), client.said
    assert (message or "fetching") in client.said
    assert token is None or token not in client.said


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (418, "the hub answers 418 for someone/tiny"),
        (403, "the hub wants a token for someone/tiny (set HF_TOKEN"),
    ],
)
def test_a_hub_that_refuses(hub, client, status, message):
    hub.status = status
    assert client.make() is None
    assert message in client.said


# The client tries for half a minute before it gives up on these: they are made here.


def error_of_status(status):
    request = httpx2.Request("GET", "http://hub/api/models/someone/tiny")
    return HfHubHTTPError("no", response=httpx2.Response(status, request=request))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            httpx2.ConnectError("Connection refused"),
            "the hub cannot be reached for someone/tiny, and it was not fetched before "
            "(Connection refused): connect this machine",
        ),
        (httpx2.ReadTimeout("timed out"), "the hub cannot be reached"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (error_of_status(503), "the hub answers 503 for someone/tiny: it is out of order"),
        (error_of_status(429), "the hub limits the rate of requests for someone/tiny"),
        (error_of_status(401), "the hub wants a token for someone/tiny"),
        (RuntimeError("something new"), "cannot be fetched: RuntimeError: something new"),
    ],
)
def test_errors_in_words(error, message):
    source = HubSource(repo=REPO, revision=COMMIT)
    assert message in explain(source, error, has_token=False)


def test_a_refused_token():
    source = HubSource(repo=REPO, revision=COMMIT)
    text = explain(source, error_of_status(401), has_token=True)
    assert text.startswith("the hub does not accept your token: renew it")
