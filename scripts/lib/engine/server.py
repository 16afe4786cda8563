"""One server from its start to its end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import httpx

KEEPER = Path(__file__).with_name("keeper.py")
POLL_S = 0.2


class ServerFailed(Exception):
    """A server that did not become ready; the message is a sentence with a hint."""

    def __init__(self, message: str, *, kind: str, exit_code: int | None = None) -> None:
        self.kind = kind
        self.exit_code = exit_code
        super().__init__(message)


class Server:
    """A server process group that ends with this object, whatever happens.

    Use it as a context manager. Standard output and error go to ``log``, in full.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log: Path,
        url: str,
        interrupt_grace_s: float = 15,
        terminate_grace_s: float = 10,
        niceness: int = 0,
    ) -> None:
        self.command = list(command)
        self.environment = dict(environment)
        self.log = log
        self.url = url
        self.exit_code: int | None = None
        self._settings = [str(interrupt_grace_s), str(terminate_grace_s), str(niceness)]
        self._keeper: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    def __enter__(self) -> Server:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", str(KEEPER), str(self.log), *self._settings, *self.command],
            stdin=subprocess.PIPE,
            env=self.environment,
            start_new_session=True,
        )
        self._started = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether the server's main process runs."""
        return self._keeper is not None and self._keeper.poll() is None

    def wait_ready(
        self,
        *,
        startup_timeout_s: float,
        silence_timeout_s: float,
        on_wait: Callable[[float], None] = lambda _: None,
    ) -> float:
        """Wait until the server answers; return the seconds since its start.

        Args:
            startup_timeout_s: Give up after so long.
            silence_timeout_s: Give up when the log has not grown for so long.
            on_wait: Called with the seconds since the start, several times a second.

        Raises:
            ServerFailed: it died (kind ``died``), said nothing (``silent``), or took too
                long (``timeout``).
        """
        size, grew = 0, time.monotonic()
        with httpx.Client(timeout=2, trust_env=False) as client:
            while True:
                now = time.monotonic()
                if not self.alive:
                    self.stop()
                    raise ServerFailed(
                        f"the server ended with status {self.exit_code} before it was ready",
                        kind="died",
                        exit_code=self.exit_code,
                    )
                if answers(client, self.url):
                    return time.monotonic() - self._started
                if (new := self.log.stat().st_size) != size:
                    size, grew = new, now
                if now - grew > silence_timeout_s:
                    raise ServerFailed(
                        f"the server's log said nothing for {silence_timeout_s:.0f} s; if loading "
                        "takes that long here, raise engine.silence_timeout_s",
                        kind="silent",
                    )
                if now - self._started > startup_timeout_s:
                    raise ServerFailed(
                        f"the server was not ready after {startup_timeout_s:.0f} s; if that is "
                        "its ordinary time here, raise engine.startup_timeout_s",
                        kind="timeout",
                    )
                on_wait(now - self._started)
                time.sleep(POLL_S)

    def stop(self) -> int | None:
        """End the server and all it started (INT, TERM, KILL); return its exit status."""
        if self._keeper is None:
            return self.exit_code
        keeper, self._keeper = self._keeper, None
        if keeper.stdin:
            keeper.stdin.close()
        status = keeper.wait()
        self.exit_code = 128 - status if status < 0 else status  # a killed keeper takes it along
        return self.exit_code


def answers(client: httpx.Client, url: str) -> bool:
    """Return whether the server at ``url`` is up and knows its model."""
    try:
        return bool(
            client.get(f"{url}/health").is_success and client.get(f"{url}/v1/models").is_success
        )
    except httpx.HTTPError:
        return False
