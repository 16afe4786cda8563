"""Takes free GPUs for one server and keeps others from taking them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pynvml
from filelock import FileLock, Timeout

FREE_SHARE = 0.95
"""A GPU is free when this share of its memory is: the driver itself holds a little."""


@contextmanager
def reserve_gpus(count: int, say: Callable[[str], None]) -> Iterator[list[int]]:
    """Hold a lock on ``count`` free GPUs; yields their indices, or [] where there are none.

    Waits, saying so once, while other jobs hold them. Indices are as in
    ``CUDA_VISIBLE_DEVICES``; a list there (SLURM sets one) limits the choice.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield []
        return
    with ExitStack() as stack:
        stack.callback(pynvml.nvmlShutdown)
        yield _take(count, stack, say)


def _take(count: int, stack: ExitStack, say: Callable[[str], None]) -> list[int]:
    told = False
    while True:
        with ExitStack() as attempt:
            taken = [gpu for gpu in _allowed() if _is_free(gpu) and _lock(gpu, attempt)][:count]
            if len(taken) == count:
                stack.push(attempt.pop_all())
                return taken
        if count > len(_allowed()):
            raise ValueError(
                f"this variant needs {count} GPUs and {len(_allowed())} can be used here; lower "
                "its tensor_parallel_size, or use a larger machine"
            )
        if not told:
            say(f"waiting for {count} free GPU(s)")
            told = True
        time.sleep(2)


def _allowed() -> list[int]:
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    everything = list(range(pynvml.nvmlDeviceGetCount()))
    if listed is None:
        return everything
    by_uuid = {}
    for index in everything:
        uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index))
        by_uuid[uuid if isinstance(uuid, str) else uuid.decode()] = index
    names = [name.strip() for name in listed.split(",") if name.strip()]
    found = [int(name) if name.isdigit() else by_uuid.get(name, -1) for name in names]
    return [index for index in found if index in everything]


def _is_free(gpu: int) -> bool:
    memory = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(gpu))
    return bool(memory.free >= FREE_SHARE * memory.total)


def _lock(gpu: int, stack: ExitStack) -> bool:
    lock = FileLock(Path(tempfile.gettempdir()) / f"serving-study-gpu{gpu}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    stack.callback(lock.release)
    return True
