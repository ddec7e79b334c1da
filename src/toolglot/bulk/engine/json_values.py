"""A file of JSON that is not one value to a line: a list of rows, or documents that go over several lines.

    [{…}, {…}]            the items of the list
    {                     each document, such as an ATIF trajectory as Harbor writes it
      …
    }

Law: every value is a row, also a number or a text that no format can read: it is set aside like any other. Memory
depends on the longest value, and each byte is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS

MAX_VALUE: Final = DEFAULT_LIMITS.max_bytes
_BRACKETS: Final = re.compile(rb'[{}\[\]"]')
_STRING_END: Final = re.compile(rb'["\\]')


def split_values(pieces: Iterator[bytes], path: str = "") -> Iterator[bytes]:
    """The items of a JSON list, or the documents of a file, that comes in pieces: each as it is written."""
    splitter = _Splitter(path)
    for piece in pieces:
        yield from splitter.feed(piece)
    yield from splitter.finish()


class _Splitter:
    """Where the values begin and end: how deep the brackets are, and whether a string is open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._data = b""
        self._at = 0
        self._item = 0
        """Where what is not complete begins: a value, or what is between two of them."""
        self._depth = 0
        self._level = 0
        """How deep the values are: 1 within a list."""
        self._has_begun = False
        self._in_string = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        self._data, self._at, self._item = self._data[self._item :] + piece, self._at - self._item, 0
        while (found := (_STRING_END if self._in_string else _BRACKETS).search(self._data, self._at)) is not None:
            if found[0] == b"\\":
                if found.end() == len(self._data):
                    self._at = found.start()  # what it escapes comes with the next piece
                    return
                self._at = found.end() + 1
                continue
            self._at = found.end()
            if found[0] == b'"':
                yield from self._quote(found.start())
            elif found[0] in (b"{", b"["):
                yield from self._open(found[0], found.start())
            else:
                yield from self._close(found.start())
        self._at = len(self._data)
        if self._depth == self._level and not self._in_string:
            yield from self._between(max(self._data.rfind(b",", self._item) + 1, self._item))
        if self._at - self._item > MAX_VALUE:
            raise InputError(f"a value is longer than {MAX_VALUE} bytes", path=self._path, hint="is it a list of rows?")

    def _quote(self, at: int) -> Iterator[bytes]:
        self._in_string = not self._in_string
        if self._depth == self._level:
            yield from self._between(at) if self._in_string else self._value()

    def _open(self, mark: bytes, at: int) -> Iterator[bytes]:
        if mark == b"[" and not self._has_begun and not self._data[:at].strip(b" \t\r\n\xef\xbb\xbf"):
            self._level = 1
            self._item = self._at
        elif self._depth == self._level:
            yield from self._between(at)
        self._has_begun = True
        self._depth += 1

    def _close(self, at: int) -> Iterator[bytes]:
        if self._depth > self._level:
            self._depth -= 1
            if self._depth == self._level:
                yield from self._value()
            return
        yield from self._between(at)
        if self._level:  # the end of the list: what follows is none of its items
            self._level = self._depth = 0
            self._item = self._at

    def _value(self) -> Iterator[bytes]:
        """The value that ends here."""
        self._has_begun = True
        yield self._data[self._item : self._at]
        self._item = self._at

    def _between(self, end: int) -> Iterator[bytes]:
        """What stands between two values: commas, and values without brackets and quotes."""
        for piece in self._data[self._item : end].split(b","):
            value = piece.strip().removeprefix(b"\xef\xbb\xbf")
            if value:
                yield value
        self._item = end

    def finish(self) -> Iterator[bytes]:
        if self._depth != 0 or self._in_string:
            raise InputError(
                "the JSON ends before it is complete", path=self._path, hint="it was cut off; write all of it"
            )
        yield from self._between(len(self._data))
