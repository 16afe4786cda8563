"""A stand-in for the maker's Python: it writes what the real tools would write, in small."""

import sys
from pathlib import Path

from scripts.lib.checkpoints.maker import Maker

PROGRAM = """#!{python}
import json, os, shutil, sys, time
from pathlib import Path
sys.path.insert(0, {project!r})
from scripts.lib.checkpoints.dummy import write_sparse
from tests.checkpoints import tiny

tool, arguments = Path(sys.argv[1]).name, sys.argv[2:]
with open({runs!r}, "a") as runs:
    runs.write(json.dumps([os.getpid(), tool, arguments]) + "\\n")
value = lambda name: arguments[arguments.index(name) + 1]
output = Path(value("--output"))
print("made by", tool, flush=True)
{body}
"""

WHOLE = """
if tool == "unpack_gguf.py":
    assert Path(value("--gguf")).read_bytes() == b"GGUF"
    tensors, config = tiny.plain(), tiny.CONFIG
else:
    parts = lambda rows, columns: tiny.eight_bit_parts(rows, columns, "I8")
    tensors = tiny.quantized(parts)
    weights = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
    group = {"targets": ["Linear"], "weights": weights,
             "input_activations": {**weights, "strategy": "token", "dynamic": True}}
    settings = {"quant_method": "compressed-tensors", "format": "int-quantized",
                "config_groups": {"group_0": group}, "ignore": ["lm_head"]}
    config = {**tiny.CONFIG, "quantization_config": settings}
write_sparse(output / "model.safetensors", tensors)
(output / "config.json").write_text(json.dumps(config))
"""
FAILS = "raise ValueError('group size 128 does not divide 576')"
KILLED = "os.kill(os.getpid(), 9)"
HANGS = "(output / 'half').write_text('half a checkpoint'); time.sleep(60)"


def fake_maker(folder: Path, body: str = WHOLE, **versions: str) -> Maker:
    """Return a maker whose tools do ``body`` and write each call to ``folder/runs``."""
    program = folder / "python"
    project = str(Path(__file__).resolve().parents[2])
    values = {"python": sys.executable, "project": project, "runs": str(folder / "runs")}
    program.write_text(PROGRAM.format(body=body, **values))
    program.chmod(0o755)
    return Maker(python=str(program), versions=versions or {"llmcompressor": "0.14.0.1"})


def runs_of(folder: Path) -> list[str]:
    """Return the calls of the fake maker's tools."""
    path = folder / "runs"
    return path.read_text().splitlines() if path.exists() else []
