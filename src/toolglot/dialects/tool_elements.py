"""A call as an XML element: its arguments are attributes, or elements inside it, or inside one called `arguments`.

Values are text until the tool's schema says otherwise. An element that holds elements is an object.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from toolglot import arguments
from toolglot.dialects.argument_writer import ArgumentWriter
from toolglot.dialects.json_calls import arguments_of
from toolglot.dialects.reading import Outcome, Reader
from toolglot.dialects.scanner import Steps, marks
from toolglot.errors import InputError
from toolglot.jsontext import compact

NAMES: Final = ("name", "tool_name", "function")
HOLDERS: Final = ("arguments", "parameters", "args", "input", "params")
_TAG: Final = re.compile(r"[^\W\d][\w.:-]*+")
_NESTED: Final = re.compile(r"\s*<[^\W\d][\w.:-]*+[\s>/]")
LONGEST_TAG: Final = 256


def element_text(reader: Reader, tag: str, most: int) -> Steps[str | None]:
    """What stands before the end of this element, which is read; None if there is no end, or it is too far away."""
    pieces: list[str] = []
    found = yield from reader.scanner.until(marks(f"</{tag}>"), pieces.append)
    text = "".join(pieces)
    return text if found is not None and len(text) <= most else None


class ElementCall:
    """A call whose name is known, and the rest of its element."""

    def __init__(self, reader: Reader, name: str, given: dict[str, str]) -> None:
        self._reader = reader
        self._name = name
        self._given = given
        self._writer = ArgumentWriter(reader, name, "none", "string")

    def read(self, is_closed: bool) -> Steps[Outcome]:
        """Tell it, from behind its first tag or the element that names it."""
        reader, scanner = self._reader, self._reader.scanner
        if not is_closed and not self._given:
            yield from scanner.skip_spaces()
            holder = yield from scanner.one_of(tuple(f"<{each}>" for each in HOLDERS))
            if holder is not None and (yield from scanner.skip_spaces()) == "{":
                outcome = yield from arguments_of(reader, self._name, closers=(f"</{holder[1:]}", "</tool>"))
                yield from scanner.until(marks("</tool>"), _dropped)
                return outcome
        reader.open(self._name)
        for key, value in self._given.items():
            self._writer.begin(key)
            self._writer.add(unescape(value))
            self._writer.end()
        if is_closed or (yield from self._elements()):
            self._writer.finish()
            return reader.close()
        return reader.close(cut=True)

    def _elements(self) -> Steps[bool]:
        """The elements up to the end of the call; False if the text ends inside one."""
        scanner = self._reader.scanner
        while True:
            found = yield from scanner.until(marks("<"), _dropped)
            if found is None:
                return True
            is_end = (yield from scanner.one_of(("/",))) is not None
            tag = yield from scanner.while_in(_TAG, LONGEST_TAG)
            found = yield from scanner.until(marks(">"), _dropped)
            if found is None:
                return False
            if is_end and tag == "tool":
                return True
            if not is_end and tag and tag not in HOLDERS and not (yield from self._argument(tag)):
                return False

    def _argument(self, tag: str) -> Steps[bool]:
        pieces: list[str] = []
        self._writer.begin(tag)
        found = yield from self._reader.scanner.until(marks(f"</{tag}>", "</tool>"), pieces.append)
        if found is None:
            return False
        text = "".join(pieces)
        self._writer.add(_object(text) if _NESTED.match(text) else text)
        self._writer.end()
        if found == "</tool>":
            self._reader.scanner.at -= len(found)
        return True


def _object(text: str) -> str:
    """The JSON of nested elements; the text itself where they are none."""
    try:
        return compact(arguments.parse_xml(text))
    except InputError:
        return text


def _dropped(piece: str) -> None:
    pass
