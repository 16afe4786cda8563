"""Make or find one checkpoint of a study and write its manifest."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import read_json, write_json
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.checkpoints.maker import read_maker
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.checkpoints.sizes import size_words
from scripts.lib.study.models import Checkpoint


def main() -> int:
    """Run the command line; 0: the manifest is written, 1: one sentence says why not."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, _stop)
    console = Console(f"checkpoint {arguments.name}", arguments.log)
    return run_job(console, lambda: make(arguments, console))


def make(arguments: argparse.Namespace, console: Console) -> None:
    """Make the checkpoint and write its manifest."""
    start = time.monotonic()
    source = arguments.source_manifest
    job = Job(
        name=arguments.name,
        spec=Checkpoint.model_validate(read_json(arguments.spec)),
        resources=arguments.resources,
        maker=read_maker(arguments.maker),
        source=Manifest.model_validate(read_json(source)) if source else None,
        say=console.say,
    )
    manifest = make_checkpoint(job)
    write_json(arguments.output, manifest)
    for sentence in manifest.disagreements:
        console.say(f"warning: {sentence}")
    seconds = time.monotonic() - start
    size = size_words(manifest.real_bytes)
    console.say(f"ready in {seconds:.0f} s: {manifest.folder}, {size}, {manifest.scheme.words}")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="the checkpoint's name in the study")
    parser.add_argument("--spec", type=Path, required=True, help="its spec, as JSON")
    parser.add_argument("--maker", type=Path, help="the environment of the tools, as JSON")
    parser.add_argument("--source-manifest", type=Path, help="of the checkpoint to quantize")
    parser.add_argument("--resources", type=Path, default=Path("resources"))
    parser.add_argument("--output", type=Path, required=True, help="the manifest to write")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    return parser.parse_args()


def _stop(signum: int, frame: FrameType | None) -> None:
    """Turn SIGTERM into an exception, so that what was half made is cleared away."""
    del frame
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
