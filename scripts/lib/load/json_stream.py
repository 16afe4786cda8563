"""Reads the elements of a JSON array of any size, one by one, in little memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.lib.load.samples import DatasetError

_BLOCK = 1 << 20
_MAX_ELEMENT = 256 * 2**20
_SPACE = " \t\n\r"
TOO_DEEP = "its JSON is nested too deeply to be read; flatten it, or take it out"


def read_array(path: Path) -> Iterator[Any]:
    """Yield the elements of the JSON array in ``path``.

    Only the element at hand is in memory (and one block of 1 MiB).

    Raises:
        DatasetError: The file is missing, no JSON array, or cut off; the message says where.
    """
    try:
        file = path.open(encoding="utf-8")
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read ({problem.strerror})") from problem
    with file:
        try:
            yield from _Reader(file, path).elements()
        except UnicodeDecodeError as problem:
            raise DatasetError(f"{path}: not UTF-8 text ({problem.reason})") from problem


class _Reader:
    def __init__(self, file: Any, path: Path) -> None:  # noqa: ANN401 - a text file
        self._file = file
        self._path = path
        self._text = ""
        self._at = 0
        self._read = 0
        self._ended = False
        self._decoder = json.JSONDecoder()

    def elements(self) -> Iterator[Any]:
        self._at = 0
        if self._peek().lstrip("\ufeff") == "":
            self._at += 1
        if self._peek() != "[":
            raise DatasetError(f"{self._path}: not a JSON array of conversations")
        self._at += 1
        if self._peek() == "]":
            return
        count = 0
        while True:
            yield self._element(count)
            count += 1
            mark = self._peek()
            self._at += 1
            if mark == "]":
                return
            if mark != ",":
                raise self._broken(count)

    def _peek(self) -> str:
        """Return the next character that is no white space; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return "\0"

    def _element(self, count: int) -> Any:  # noqa: ANN401 - any JSON value
        self._peek()
        wanted = _BLOCK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError as problem:
                if self._ended or len(self._text) - self._at > _MAX_ELEMENT:
                    raise self._broken(count) from problem
                self._grow(wanted)
                wanted *= 2  # a long element is tried again only each time it has doubled
                continue
            except RecursionError:
                raise DatasetError(f"{self._path}: entry {count + 1}: {TOO_DEEP}") from None
            bare = not isinstance(value, dict | list | str)
            if bare and end == len(self._text) and self._more():
                continue  # a number may go on in the next block
            self._at = end
            return value

    def _grow(self, size: int) -> None:
        target = len(self._text) - self._at + size
        while len(self._text) - self._at < target and self._more():
            pass

    def _more(self) -> bool:
        block = self._file.read(_BLOCK)
        if not block:
            self._ended = True
            return False
        self._text = self._text[self._at :] + block
        self._read += len(block)
        self._at = 0
        return True

    def _broken(self, count: int) -> DatasetError:
        if self._ended:
            return DatasetError(
                f"{self._path}: the file is cut off after {count} complete entries "
                f"({self._read:,} characters): download it again"
            )
        return DatasetError(f"{self._path}: entry {count + 1} is not valid JSON")
