"""Tiny checkpoint folders: a config.json and safetensors files of a header and a hole."""

import json

import pytest

from scripts.lib.checkpoints.dummy import write_sparse
from tests.checkpoints.tiny import CONFIG


@pytest.fixture
def make_folder(tmp_path):
    """Write a checkpoint folder: config, tensors (one file, or so many shards), more files."""

    def make(config=None, tensors=None, *, shards=1, files=None, name="model"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({**CONFIG, **(config or {})}))
        for file, content in (files or {}).items():
            (folder / file).write_text(json.dumps(content))
        names = sorted(tensors or {})
        if shards == 1 and names:
            write_sparse(folder / "model.safetensors", tensors)
        elif names:
            weight_map = {}
            for shard in range(shards):
                file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
                part = {n: tensors[n] for n in names[shard::shards]}
                write_sparse(folder / file, part)
                weight_map |= dict.fromkeys(part, file)
            index = {"metadata": {}, "weight_map": weight_map}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder

    return make
