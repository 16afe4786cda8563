"""Calls and plain values between the evaluator and the candidate.

One JSON text a line. What is not a plain value stays where it is and passes as a reference;
the other side may use the reference only in the ways its owner serves.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import IO, Any

LONGEST_LINE = 16 * 1024 * 1024
DEEPEST = 60


class BrokenWire(Exception):
    """The other side has gone, or does not keep to the protocol."""


class RemoteError(Exception):
    """The other side raised an exception that is none of Python's own ordinary ones."""


class Remote:
    """An object of the other side. It equals no plain value, whatever it says itself."""

    def __init__(self, peer: Peer, number: int) -> None:
        object.__setattr__(self, "_remote", (peer, number))

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401 - any value
        """Call the object where it lives."""
        return self._remote[0].ask("call", self, args, kwargs)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any value
        return self._remote[0].ask("getattr", self, (name,))

    def __setattr__(self, name: str, value: object) -> None:
        self._remote[0].ask("setattr", self, (name, value))

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401 - any value
        return self._remote[0].ask("getitem", self, (key,))

    def __setitem__(self, key: object, value: object) -> None:
        self._remote[0].ask("setitem", self, (key, value))

    def __len__(self) -> int:
        return int(self._remote[0].ask("len", self))

    def __bool__(self) -> bool:
        return self._remote[0].ask("bool", self) is True

    def __str__(self) -> str:
        return str(self._remote[0].ask("str", self))

    def __repr__(self) -> str:
        return str(self._remote[0].ask("repr", self))

    def __iter__(self) -> Iterator[Any]:
        inner = self._remote[0].ask("iter", self)
        while True:
            try:
                yield self._remote[0].ask("next", inner)
            except StopIteration:
                return

    def __next__(self) -> Any:  # noqa: ANN401 - any value
        return self._remote[0].ask("next", self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remote):
            return False
        return self._remote[0].ask("eq", self, (other,)) is True

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Remote):
            return NotImplemented
        return self._remote[0].ask("lt", self, (other,)) is True

    def __add__(self, other: object) -> Any:  # noqa: ANN401 - any value
        if not isinstance(other, Remote):
            return NotImplemented
        return self._remote[0].ask("add", self, (other,))

    def __hash__(self) -> int:
        return hash(self._remote[1])


OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda target, *args, **kwargs: target(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "len": len,
    "bool": bool,
    "str": str,
    "repr": repr,
    "iter": iter,
    "next": next,
    "eq": operator.eq,
    "lt": operator.lt,
    "add": operator.add,
}
CALLBACKS = {"call": OPERATIONS["call"]}
"""All that the evaluator serves: the candidate may call a function that was passed to it."""


class Peer:
    """One end of the wire."""

    def __init__(
        self, reader: IO[bytes], writer: IO[bytes], operations: dict[str, Callable[..., Any]]
    ) -> None:
        """Use the two ends of a pipe; ``operations`` are those that the other side may ask for."""
        self._reader, self._writer, self._operations = reader, writer, operations
        self._kept: list[object] = []

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        try:
            self._writer.write(json.dumps(message).encode() + b"\n")
            self._writer.flush()
        except (OSError, ValueError) as error:
            raise BrokenWire(str(error)) from None

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        try:
            line = self._reader.readline(LONGEST_LINE)
            message = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError, RecursionError) as error:
            raise BrokenWire(str(error)) from None
        if not isinstance(message, dict):
            raise BrokenWire("it ended")
        return message

    def ask(
        self, operation: str, target: Remote, args: tuple[Any, ...] = (), kwargs: object = None
    ) -> Any:  # noqa: ANN401 - any value
        """Have the other side do ``operation`` on an object of its own; return the result.

        Lists, dicts and sets among ``args`` are brought up to date: the other side works on
        copies, but a function may be tested for what it does to its argument.
        """
        wired = [self.encode(value) for value in args]
        named = {key: self.encode(value) for key, value in dict(kwargs or {}).items()}  # type: ignore[call-overload]
        number = target._remote[1]
        self.send({"ask": operation, "of": number, "args": wired, "kwargs": named})
        while "ask" in (reply := self.receive()):
            self.serve(reply)
        self._update(args, reply.get("args"))
        if "error" in reply:
            raise _exception(reply)
        return self._decode_or_break(reply.get("value"))

    def serve(self, request: dict[str, Any]) -> None:
        """Do what the other side asks for, and reply."""
        args: list[Any] = []
        try:
            operation = self._operations[request["ask"]]
            target = self._kept[request["of"]]
            args = [self.decode(value) for value in request["args"]]
            kwargs = {key: self.decode(value) for key, value in request["kwargs"].items()}
            reply: dict[str, Any] = {"value": self.encode(operation(target, *args, **kwargs))}
        except BrokenWire:
            raise
        except BaseException as error:  # SystemExit too: it must not end the process
            reply = {
                "error": [c.__name__ for c in type(error).__mro__],
                "message": str(error)[:500],
            }
        self.send(reply | {"args": [self._state(value) for value in args]})

    def _state(self, value: object) -> Any:  # noqa: ANN401 - encoded value
        try:
            return self.encode(value) if isinstance(value, list | dict | set) else None
        except (ValueError, RecursionError):
            return None

    def _update(self, args: tuple[Any, ...], states: object) -> None:
        if not isinstance(states, list):
            return
        for value, state in zip(args, states, strict=False):
            if state is None or type(value) not in (list, dict, set):
                continue
            new = self._decode_or_break(state)
            if type(new) is type(value):
                value.clear()
                (value.extend if isinstance(value, list) else value.update)(new)

    def keep(self, value: object) -> int:
        """Keep an object of this side for the other; return its number."""
        self._kept.append(value)
        return len(self._kept) - 1

    def encode(self, value: Any, depth: int = 0) -> list[Any]:  # noqa: ANN401 - any value
        """Return ``value`` as JSON; subclasses of plain types pass as those."""
        if depth > DEEPEST:
            raise ValueError("the value is nested too deeply")
        if isinstance(value, Remote):
            return ["back", value._remote[1]]
        scalar = _encode_scalar(value)
        if scalar is not None:
            return scalar
        for kind, name in (
            (list, "list"),
            (tuple, "tuple"),
            (set, "set"),
            (frozenset, "frozenset"),
        ):
            if isinstance(value, kind):
                return [name, [self.encode(part, depth + 1) for part in value]]
        if isinstance(value, dict):
            pairs = value.items()
            return [
                "dict",
                [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in pairs],
            ]
        return ["remote", self.keep(value)]

    def _decode_or_break(self, wired: object) -> Any:  # noqa: ANN401 - any value
        try:
            return self.decode(wired)
        except (
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise BrokenWire(f"unreadable value: {error}") from None

    def decode(self, wired: Any) -> Any:  # noqa: ANN401 - encoded and any value
        """Return the value that ``encode`` made JSON: always of a plain built-in type."""
        kind, body = wired
        if kind == "remote":
            return Remote(self, int(body))
        if kind == "back":
            return self._kept[int(body)]
        if kind == "dict":
            return {self.decode(key): self.decode(value) for key, value in body}
        if kind in _CONTAINERS:
            return _CONTAINERS[kind](self.decode(part) for part in body)
        return _SCALARS[kind](body)


def _encode_scalar(value: Any) -> list[Any] | None:  # noqa: ANN401 - any value
    if value is None or isinstance(value, bool):
        return ["constant", value]
    if isinstance(value, int):
        return ["int", format(int(value), "x")]
    if isinstance(value, float):
        return ["float", float.hex(value)]
    if isinstance(value, str):
        return ["str", str.__str__(value)]
    if isinstance(value, bytes | bytearray):
        return [type(value).__name__ if type(value) is bytearray else "bytes", bytes(value).hex()]
    if isinstance(value, complex):
        return ["complex", [value.real, value.imag]]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    if isinstance(value, Decimal):
        return ["decimal", str(value)]
    if isinstance(value, Fraction):
        return ["fraction", [value.numerator, value.denominator]]
    return None


_CONTAINERS: dict[str, Callable[..., Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_SCALARS: dict[str, Callable[..., Any]] = {
    "constant": lambda body: {None: None, True: True, False: False}[body],
    "int": lambda body: int(body, 16),
    "float": float.fromhex,
    "str": str,
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": lambda body: complex(*body),
    "range": lambda body: range(*body),
    "decimal": Decimal,
    "fraction": lambda body: Fraction(*body),
}


def _exception(reply: dict[str, Any]) -> Exception:
    """Return the ordinary built-in exception nearest to the one the other side raised."""
    message = str(reply.get("message"))
    for name in map(str, reply["error"]):
        kind = getattr(builtins, name, None)
        if not isinstance(kind, type) or not issubclass(kind, Exception) or kind is Exception:
            continue
        with contextlib.suppress(TypeError):  # UnicodeDecodeError and the like want more
            return kind(message)
    return RemoteError(f"{reply['error'][0]}: {message}")
