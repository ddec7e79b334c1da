"""A call as an XML element: its arguments are attributes, or elements inside it, or inside one called `arguments`; or
it holds nothing but the text of its one argument.

Values are text until the tool's schema says otherwise. An element that holds elements is an object where the schema
allows one, and text where it does not: a string may be HTML. Elements that are repeated are a list. Arguments are
passed on when the call is whole, since one that is repeated is known only then.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any, Final

import msgspec

from toolglot import arguments
from toolglot.dialects.families.json_calls import arguments_of
from toolglot.dialects.families.shell_tools import command_argument, is_shell_name
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, discard, marks
from toolglot.dialects.values.argument_writer import ArgumentWriter
from toolglot.dialects.values.schema_types import allowed_types, items_schema, property_schema, typed_json
from toolglot.errors import InputError
from toolglot.jsontext import compact

NAMES: Final = ("name", "tool_name", "function")
HOLDERS: Final = ("arguments", "parameters", "args", "input", "params")
NAMED: Final = ("parameter", "param", "argument", "arg")
"""Elements with the name of their argument in an attribute."""
FREE_TEXT: Final = "input"
"""The name of the argument of a call that is only text, if the schema does not name one."""
MAX_HEAD: Final = 65_536
MAX_TAG: Final = 256
MAX_RETRIES: Final = 8
"""How many arguments of a call may hold the opening tag of their own name without its closing tag."""
_ATTRIBUTE: Final = re.compile(r"""([\w:.-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_TAG: Final = re.compile(r"[^\W\d][\w.:-]*+")
_ENDS: Final = {"": re.compile("[>\"']"), '"': re.compile('"'), "'": re.compile("'")}
"""What to look for in a tag: by the quote, inside a quoted value, or outside of one."""
_CDATA: Final = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)


def attributes(head: str) -> dict[str, str]:
    """The attributes of a tag."""
    found = _ATTRIBUTE.finditer(head)
    return {each[1]: unescape(each[2] if each[2] is not None else each[3]) for each in found}


def read_tag(reader: DialectReader) -> Steps[str | None]:
    """The rest of a tag up to its `>`, which does not count inside a quoted attribute; None if there is no end, or it
    is too far away."""
    scanner = reader.scanner
    pieces: list[str] = []
    left, quote, last = MAX_HEAD, "", ""
    while True:
        found = _ENDS[quote].search(scanner.text, scanner.at)
        end = len(scanner.text) if found is None else found.end()
        if end - scanner.at > left:
            return None
        piece = scanner.text[scanner.at : end]
        pieces.append(piece)
        left, scanner.at = left - len(piece), end
        written = (piece if found is None else piece[:-1]).rstrip()
        last = written[-1] if written else last
        if found is None:
            if not (yield from scanner.more()):
                return None
        elif found[0] == ">" and not quote:
            return "".join(pieces)[:-1]
        elif quote:
            quote, last = "", found[0]
        else:
            quote, last = found[0] if last == "=" else "", found[0]  # only behind an equals sign it begins a value


def element_text(reader: DialectReader, tag: str, max_length: int) -> Steps[str | None]:
    """The text before the end of this element, which is read too; None if there is no end, or it is too far away."""
    pieces: list[str] = []
    found = yield from reader.scanner.until(marks(f"</{tag}>"), pieces.append)
    text = "".join(pieces)
    return text if found is not None and len(text) <= max_length else None


class ElementCall:
    """A call whose name is known, and the rest of its element."""

    def __init__(self, reader: DialectReader, name: str, attributes: dict[str, str]) -> None:
        self._reader = reader
        self._name = name
        self._schema = reader.schema(name)
        self._values: dict[str, list[str]] = {key: [value] for key, value in attributes.items()}
        self._fields: dict[str, Any] = {}
        """Arguments that were written as JSON beside attributes."""
        self._retries = 0

    def read(self, is_closed: bool) -> Steps[Outcome]:
        """Read the call, from behind its first tag or the element that names it."""
        reader, scanner = self._reader, self._reader.scanner
        mark = (yield from scanner.skip_spaces()) if not is_closed else ""
        if mark == "<" and not self._values:
            holder = yield from scanner.one_of(tuple(f"<{each}>" for each in HOLDERS))
            if holder is not None and (yield from scanner.skip_spaces()) == "{":
                outcome = yield from arguments_of(reader, self._name, closers=(f"</{holder[1:]}", "</tool>"))
                yield from scanner.until(marks("</tool>"), discard)
                return outcome
            if holder is not None:
                scanner.put_back(holder)
        reader.open(self._name)
        is_whole = is_closed or (yield from (self._elements() if mark == "<" else self._text()))
        if not is_whole:
            return reader.close(cut=True)
        self._write()
        return reader.close()

    # --- text ---------------------------------------------------------------------------------------

    def _text(self) -> Steps[bool]:
        """Read the text that is the whole content of the call; False if it does not end."""
        pieces: list[str] = []
        if (yield from self._reader.scanner.until(marks("</tool>"), pieces.append)) is None:
            return False
        text = "".join(pieces).rstrip()
        if text.startswith("{") and self._values:
            fields = _object(text)
            if fields is not None:
                self._fields = fields
                return True
        if text:
            self._values.setdefault(self._text_argument(), []).append(text)
        return True

    def _text_argument(self) -> str:
        """The name of the argument that is written as the text of the call."""
        if is_shell_name(self._name):
            return command_argument(self._schema)
        properties = self._schema.get("properties") if self._schema is not None else None
        required = self._schema.get("required") if self._schema is not None else None
        for names in (required, properties):
            left = [each for each in names or () if isinstance(each, str) and each not in self._values]
            if len(left) == 1:
                return left[0]
        return FREE_TEXT

    # --- elements -----------------------------------------------------------------------------------

    def _elements(self) -> Steps[bool]:
        """The elements up to the end of the call; False if the text ends before that."""
        scanner = self._reader.scanner
        while True:
            if (yield from scanner.until(marks("<"), discard)) is None:
                return False
            is_end = (yield from scanner.one_of(("/",))) is not None
            tag = yield from scanner.while_in(_TAG, MAX_TAG)
            head = yield from read_tag(self._reader)
            if head is None:
                return False
            if is_end and tag == "tool":
                return True
            if is_end or not tag or (yield from self._is_holder(tag)):
                continue
            name = attributes(head).get("name") if tag in NAMED else None
            if head.rstrip().endswith("/"):
                self._values.setdefault(name or tag, []).append("")
                continue
            value = yield from self._value(tag)
            if value is None:
                return False
            cdata = _CDATA.fullmatch(value)
            self._values.setdefault(name or tag, []).append(value if cdata is None else cdata[1])

    def _is_holder(self, tag: str) -> Steps[bool]:
        """Whether an element only holds the arguments: it has such a name, is not an argument, and elements follow."""
        if tag not in HOLDERS or property_schema(self._schema, tag) is not None:
            return False
        return (yield from self._reader.scanner.peek()) == "<" or (
            (yield from self._reader.scanner.skip_spaces()) == "<"
        )

    def _value(self, tag: str) -> Steps[str | None]:
        """The text of an argument up to its own closing tag, or up to the end of the call; None if there is neither.

        It may hold elements of its own name, and whole calls. An opening tag of its name that is never closed is text.
        """
        scanner = self._reader.scanner
        closer = f"</{tag}>"
        pieces: list[str] = []
        tags, calls, last = 0, 0, -1
        opened = (f"<{tag}>", f"<{tag} ") if self._retries < MAX_RETRIES else ()
        wanted = marks(closer, "</tool>", "<tool>", "<tool ", *opened)
        while True:
            found = yield from scanner.until(wanted, pieces.append)
            if found is None:
                return None
            if found == closer:
                if tags == 0:
                    return "".join(pieces)
                tags, last = tags - 1, len(pieces)
            elif found == "</tool>":
                if calls == 0:
                    break
                calls -= 1
            elif found in opened:
                tags += 1
            else:
                calls += 1
            pieces.append(found)
        self._retries += 1
        rest = found
        if last >= 0:
            rest = "".join(pieces[last + 1 :]) + found
            pieces = pieces[:last]
        scanner.put_back(rest)
        return "".join(pieces)

    # --- writing ------------------------------------------------------------------------------------

    def _write(self) -> None:
        writer = ArgumentWriter(self._reader, self._name, "none", "string")
        for name, values in self._values.items():
            types = allowed_types(property_schema(self._schema, name), self._schema)
            nested = _nested_value(values[0], types) if len(values) == 1 else None
            if nested is not None:
                writer.put(name, compact(nested))
            elif len(values) > 1 or (types == {"array"} and values[0].strip() and values[0].lstrip()[0] != "["):
                writer.put(name, self._list(name, values))
            else:
                writer.begin(name)
                if values[0]:
                    writer.add(values[0])
                writer.end()
        for name, value in self._fields.items():
            if name not in self._values:
                writer.put(name, compact(value))
        writer.finish()

    def _list(self, name: str, values: list[str]) -> str:
        """The values of an argument that is repeated, or that must be a list."""
        items = items_schema(property_schema(self._schema, name), self._schema)
        types = allowed_types(items, self._schema)
        nested = [_nested_value(value, types) for value in values]
        written = [
            typed_json(value, types, "string") if inner is None else compact(inner)
            for value, inner in zip(values, nested, strict=True)
        ]
        return f"[{', '.join(written)}]"


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _nested_value(text: str, types: frozenset[str]) -> Any:
    """What nested elements mean where an object or a list is wanted; None where they mean text."""
    if types.isdisjoint({"object", "array"}) or "string" in types or not text.lstrip().startswith("<"):
        return None
    try:
        found = arguments.parse_xml(text)
    except InputError:
        return None
    if "object" in types:
        return found
    values = [*found.values()]
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values
