"""Calls of the Gemma family: `call:ls{p:<|"|>/<|"|>,n:3,deep:{k:[true]}}`. Strings have marks around them; other
values have none.

Strings are passed on while they come. A bare value has the type of the tool's schema, or of what it can be read as.
Quotes as in JSON or Python, which the format does not have, are read too.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from toolglot.dialects.dialect import Read, skip_closer
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Sink, Steps, discard, marks
from toolglot.dialects.values.json_text import MAX_SCALAR, End, json_string, unescape
from toolglot.dialects.values.python_text import MAX_DEPTH, number_as_json, pass_literal
from toolglot.dialects.values.schema_types import Untyped, allowed_types, is_string_only, property_schema, typed_json

_NAME: Final = re.compile(r"[^\s{}()<>:,]+")
_KEY: Final = re.compile(r"[^:=,{}\[\]<\"'\n]+")
_BARE: Final = re.compile(r"[^,{}\[\]<]+")
_NUMBERS: Final = frozenset({"integer", "number"})


class GemmaStyle(NamedTuple):
    """The marks of one dialect of the family."""

    quote: str
    closer: str
    response: str
    """What the model may begin to write behind its calls, where it should have stopped."""
    quoted: Untyped
    """What a string is that no schema describes: a string, or whatever it can be read as."""
    ends: tuple[str, ...] = ()
    """What else a call may be closed with."""
    words: tuple[str, ...] = ()
    """Openers that a name follows at once."""


def gemma_in(style: GemmaStyle) -> Read:
    """Reads the calls up to the closer, which may be missing. A closer alone behind a call is dropped."""

    def read(reader: DialectReader, opener: str) -> Steps[Outcome]:
        if opener == style.closer:
            return "passed"
        outcome: Outcome = "none"
        while True:
            latest = yield from _Call(reader, style).read(is_named=outcome == "none" and opener in style.words)
            if latest in ("none", "unfinished"):
                return latest if outcome == "none" else outcome
            outcome = latest
            found = yield from skip_closer(reader, style.closer, *style.ends, "call:")
            if found != "call:":
                break
            reader.scanner.at -= len("call:")
        if found is not None:
            yield from skip_closer(reader, style.response)
        return outcome

    return read


class _Call:
    """Reads one call, from behind the opener."""

    def __init__(self, reader: DialectReader, style: GemmaStyle) -> None:
        self._reader = reader
        self._style = style
        self._root: dict[str, Any] | None = None

    def read(self, *, is_named: bool = False) -> Steps[Outcome]:
        reader, scanner = self._reader, self._reader.scanner
        yield from scanner.skip_spaces()
        if not is_named and (yield from scanner.one_of(("call:", ":call:", ":"))) is None:
            return "unfinished" if scanner.is_over and scanner.at == len(scanner.text) else "none"
        yield from scanner.skip_spaces()
        name = yield from scanner.while_in(_NAME, MAX_NAME + 1)
        mark = yield from scanner.skip_spaces()
        if mark != "{" and not (name and (yield from self._is_closed())):
            return "unfinished" if mark == "" else "none"
        if not reader.accepts(name):
            return "none"
        reader.open(name)
        self._root = reader.schema(name)
        if mark != "{":
            reader.input("{}")
            return reader.close()
        end = yield from self._table(reader.input, self._root, 0)
        if end == "whole":
            return reader.close()
        reader.close(cut=True)
        if end == "broken" and (yield from scanner.until(marks(self._style.closer), discard)) is not None:
            scanner.at -= len(self._style.closer)  # the reader of the section reads its end
        return "cut"

    def _is_closed(self) -> Steps[bool]:
        """Whether the closer comes here, before what was expected."""
        scanner, closer = self._reader.scanner, self._style.closer
        if (yield from scanner.peek()) == closer[0]:
            yield from scanner.need(len(closer))
        return scanner.text.startswith(closer, scanner.at)

    # --- values -------------------------------------------------------------------------------------

    def _table(self, sink: Sink, schema: Any, depth: int) -> Steps[End]:
        scanner = self._reader.scanner
        scanner.at += 1
        lead = "{"
        while True:
            mark = yield from scanner.skip_spaces()
            if mark == "":
                return "open"
            if mark == "," and lead != "{":
                scanner.at += 1
                continue
            if mark == "}" or (yield from self._is_closed()):
                scanner.at += mark == "}"
                sink("{}" if lead == "{" else "}")
                return "whole"
            key = yield from self._key(mark)
            if key is None:
                return "open" if scanner.is_over and scanner.at == len(scanner.text) else "broken"
            sink(f"{lead}{json_string(key)}: ")
            lead = ", "
            end = yield from self._value(sink, property_schema(schema, key), depth + 1)
            if end != "whole":
                return end

    def _key(self, mark: str) -> Steps[str | None]:
        """The name of a field, and the colon behind it; None if there is none."""
        scanner = self._reader.scanner
        pieces: list[str] = []
        is_quoted = True
        if mark in "\"'":
            yield from pass_literal(scanner, pieces.append)
            pieces = [unescape("".join(pieces)) or ""]
        elif (yield from scanner.one_of((self._style.quote,))) is not None:
            yield from scanner.until(marks(self._style.quote), pieces.append)
        else:
            pieces = [(yield from scanner.while_in(_KEY, MAX_NAME)).strip()]
            is_quoted = False
        key = "".join(pieces)
        if (yield from scanner.skip_spaces()) not in (":", "=") or not (key or is_quoted):
            return None
        scanner.at += 1
        return key

    def _list(self, sink: Sink, schema: Any, depth: int) -> Steps[End]:
        scanner = self._reader.scanner
        scanner.at += 1
        items = schema.get("items") if isinstance(schema, dict) else None
        lead = "["
        while True:
            mark = yield from scanner.skip_spaces()
            if mark == "":
                return "open"
            if mark == "," and lead != "[":
                scanner.at += 1
                continue
            if mark in "]}" or (yield from self._is_closed()):  # a brace ends the object around the list
                scanner.at += mark == "]"
                sink("[]" if lead == "[" else "]")
                return "whole"
            sink(lead)
            lead = ", "
            end = yield from self._value(sink, items, depth + 1)
            if end != "whole":
                return end

    def _value(self, sink: Sink, schema: Any, depth: int) -> Steps[End]:
        scanner = self._reader.scanner
        mark = yield from scanner.skip_spaces()
        if mark == "" or depth > MAX_DEPTH:
            return "open" if mark == "" else "broken"
        if mark == "{":
            return (yield from self._table(sink, schema, depth))
        if mark == "[":
            return (yield from self._list(sink, schema, depth))
        if mark in "\"'":
            return (yield from pass_literal(scanner, sink, (self._style.closer,)))
        types = allowed_types(schema, self._root)
        if (yield from scanner.one_of((self._style.quote,))) is not None:
            return (yield from self._string(sink, types, self._style.quoted if depth == 1 else "string"))
        text = (yield from scanner.while_in(_BARE, MAX_SCALAR)).strip()
        if scanner.is_over and scanner.at == len(scanner.text):
            return "open"
        if not text and (yield from scanner.peek()) not in (",", "}", "]"):
            return "broken"
        sink(_bare(text, types))
        return "whole"

    def _string(self, sink: Sink, types: frozenset[str], untyped: Untyped) -> Steps[End]:
        scanner, quote = self._reader.scanner, marks(self._style.quote)
        if is_string_only(types, untyped) or "string" in types:
            sink('"')
            found = yield from scanner.until(quote, lambda piece: sink(json_string(piece)[1:-1]))
            if found is not None:
                sink('"')
            return "open" if found is None else "whole"
        pieces: list[str] = []
        if (yield from scanner.until(quote, pieces.append)) is None:
            return "open"
        sink(typed_json("".join(pieces), types, "json"))
        return "whole"


def _bare(text: str, types: frozenset[str]) -> str:
    """The JSON of a value without quotes."""
    if text == "null":
        return text
    number = number_as_json(text)
    is_number = number is not None and (not types or types & _NUMBERS)
    return typed_json(number if number is not None and is_number else text, types, "json")
