"""Opens the data set of a workload and describes what was sampled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from scripts.lib.base.files import sha256_of
from scripts.lib.load.lengths import spread
from scripts.lib.load.prompt_files import jsonl_samples, sharegpt_samples, trace_samples
from scripts.lib.load.samples import DatasetError, Sample, Samples
from scripts.lib.load.synthetic import prefix_samples, random_samples
from scripts.lib.study.models import HubFile, Workload


def open_dataset(workload: Workload, tokenizer: Tokenizer, project: Path) -> Samples:
    """Return the workload's samples, not drawn yet.

    Args:
        workload: Names the data set and the length limits.
        tokenizer: The served model's.
        project: Relative file names start here.

    Raises:
        DatasetError: A file is missing or not what it should be.
    """
    dataset = workload.dataset
    if dataset.random is not None:
        source = random_samples(tokenizer, dataset.random, workload.seed)
        return Samples(source, "random", {"kind": "random", **dataset.random.model_dump()})
    if dataset.prefix is not None:
        source = prefix_samples(tokenizer, dataset.prefix, workload.seed)
        return Samples(source, "prefix", {"kind": "prefix", **dataset.prefix.model_dump()})
    if dataset.sharegpt is not None:
        return _from_file("sharegpt", dataset.sharegpt, workload, tokenizer, project)
    if dataset.jsonl is not None:
        return _from_file("jsonl", dataset.jsonl, workload, tokenizer, project)
    assert dataset.trace is not None
    return _from_file("trace", dataset.trace, workload, tokenizer, project)


_READERS = {"sharegpt": sharegpt_samples, "jsonl": jsonl_samples, "trace": trace_samples}


def _from_file(
    kind: str, name: str | HubFile, workload: Workload, tokenizer: Tokenizer, project: Path
) -> Samples:
    path = _hub_file(name) if isinstance(name, HubFile) else project / name
    if not path.is_file():
        raise DatasetError(f"{path}: no such file (workload: dataset.{kind})")
    digest = sha256_of(path)
    if isinstance(name, HubFile) and digest != name.sha256:
        raise DatasetError(
            f"{path}: SHA-256 is {digest}, the study says {name.sha256}: another file, or cut off"
        )
    info: dict[str, object] = {
        "kind": kind,
        "file": name.model_dump() if isinstance(name, HubFile) else name,
        "sha256": digest,
        "bytes": path.stat().st_size,
    }
    return Samples(_READERS[kind](path, tokenizer, workload), str(path), info)


def _hub_file(file: HubFile) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        found = hf_hub_download(file.repo, file.file, revision=file.revision, repo_type="dataset")
    except Exception as problem:  # the library raises many kinds
        raise DatasetError(
            f"{file.repo}: {file.file} could not be fetched ({problem}); download it and give its "
            "path instead"
        ) from problem
    return Path(found)


def describe(samples: Samples, used: Sequence[Sample], requests: int) -> dict[str, object]:
    """Return what load.json says of the data set: its file, hash, lengths, and cycles."""
    info = dict(samples.info)
    info["distinct_prompts"] = len({id(sample) for sample in used})
    info["input_tokens"] = spread([sample.input_tokens for sample in used])
    info["output_tokens_asked"] = spread([sample.output_tokens for sample in used])
    if samples.exhausted and requests > len(samples.drawn):
        info["warning"] = (
            f"the data set has {len(samples.drawn)} usable prompts for up to {requests} requests "
            "of a point: they are used in cycles"
        )
    return info
