"""Make or find one checkpoint of a study and write its manifest."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from scripts.lib.base.files import read_json, write_json
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.make import Job, make_checkpoint, size_words
from scripts.lib.checkpoints.maker import read_maker
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.study.models import Checkpoint


def main() -> int:
    """Run the command line; 0: the manifest is written, 1: one sentence says why not."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, _stop)
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"checkpoint {arguments.name}: {text}", file=sys.stderr, flush=True)

    try:
        manifest = make_checkpoint(job_of(arguments, say))
    except CheckpointError as error:
        say(f"error: {error}")
        return 1
    write_json(arguments.output, manifest)
    for sentence in manifest.disagreements:
        say(f"warning: {sentence}")
    seconds = time.monotonic() - start
    say(f"ready in {seconds:.0f} s: {manifest.folder}, {size_words(manifest.real_bytes)}")
    return 0


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="the checkpoint's name in the study")
    parser.add_argument("--spec", type=Path, required=True, help="its spec, as JSON")
    parser.add_argument("--maker", type=Path, help="the environment of the tools, as JSON")
    parser.add_argument("--source-manifest", type=Path, help="of the checkpoint to quantize")
    parser.add_argument("--resources", type=Path, default=Path("resources"))
    parser.add_argument("--output", type=Path, required=True, help="the manifest to write")
    return parser.parse_args()


def job_of(arguments: argparse.Namespace, say: object) -> Job:
    """Read the files that the command line names."""
    source = arguments.source_manifest
    return Job(
        name=arguments.name,
        spec=Checkpoint.model_validate(read_json(arguments.spec)),
        resources=arguments.resources,
        maker=read_maker(arguments.maker),
        source=Manifest.model_validate(read_json(source)) if source else None,
        say=say,  # type: ignore[arg-type]
    )


def _stop(signum: int, frame: FrameType | None) -> None:
    """Turn SIGTERM into an exception, so that what was half made is cleared away."""
    del frame
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
