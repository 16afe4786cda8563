"""Make or find one checkpoint of a study and write its manifest."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import read_model
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.checkpoints.maker import read_maker
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.checkpoints.sizes import size_words
from scripts.lib.study.models import Checkpoint


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 0: the manifest is written, 1: one sentence says why not."""
    options = parse_arguments(arguments)
    console = Console(f"checkpoint {options.name}", options.log)
    return run_job(console, lambda: make(options, console))


def make(options: argparse.Namespace, console: Console) -> None:
    """Make the checkpoint and write its manifest."""
    start = time.monotonic()
    source = options.source_manifest
    job = Job(
        name=options.name,
        spec=read_model(options.spec, Checkpoint),
        resources=options.resources,
        maker=read_maker(options.maker),
        source=read_model(source, Manifest) if source else None,
        say=console.say,
    )
    manifest = make_checkpoint(job)
    write_json(options.output, manifest)
    for sentence in manifest.disagreements:
        console.say(f"warning: {sentence}")
    seconds = time.monotonic() - start
    size = size_words(manifest.real_bytes)
    console.say(f"ready in {seconds:.0f} s: {manifest.folder}, {size}, {manifest.scheme.words}")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m scripts.make_checkpoint", description=__doc__)
    parser.add_argument("--name", required=True, help="the checkpoint's name in the study")
    parser.add_argument("--spec", type=Path, required=True, help="its spec, as JSON")
    parser.add_argument("--maker", type=Path, help="the environment of the tools, as JSON")
    parser.add_argument("--source-manifest", type=Path, help="of the checkpoint to quantize")
    parser.add_argument(
        "--resources", type=Path, default=Path("resources"), help="where checkpoints are kept"
    )
    parser.add_argument("--output", type=Path, required=True, help="the manifest to write")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    run_main(main)
