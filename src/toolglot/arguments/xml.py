"""Arguments that a model wrote as XML elements.

Law: a scanner written by hand, without an XML library. Expat does not accept bare siblings and cannot distinguish
a cut from a mistake. There is no code for document types, processing instructions or custom entities. Linear time,
bounded depth and size.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from toolglot import jsontext
from toolglot.errors import ArgumentsError, TruncatedArgumentsError, quote
from toolglot.jsontext import fix_surrogates, limit_error
from toolglot.limits import DEFAULT_LIMITS, Limits

TEXT_KEY: Final = "#text"
"""Where the text of an element goes that also has attributes or elements."""

_NAME = r"[^\W\d][\w.:-]*+"
_ATTRIBUTE = re.compile(rf"""\s++({_NAME})\s*+=\s*+(?:"([^"<]*+)"|'([^'<]*+)')""")
_OPENING = re.compile(rf"""<({_NAME})((?:\s++{_NAME}\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+)\s*+(/?)>""")
_CLOSING = re.compile(rf"</({_NAME})\s*+>")
_UNFINISHED = re.compile(r"""<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+(?:"[^"]*+|'[^']*+)?""")
_CHARACTER = re.compile(r"#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


def parse_xml(text: str, *, limits: Limits = DEFAULT_LIMITS, path: str = "$") -> dict[str, Any]:
    """Elements as an object: `<city>Oslo</city><n>5</n>`, or the same inside one element.

    Repeated elements become a list, nested ones an object, attributes keys beside them; text stays text.
    Only an element that is not closed shows a cut: bare siblings that end between two are complete.
    """
    if not isinstance(text, str):
        raise ArgumentsError(f"expected a string, got {quote(text)}", path=path, hint="pass str")
    jsontext.refuse_large(text, limits, path)
    fields = _XmlReader(fix_surrogates(text), limits, path).read()
    only = next(iter(fields.values())) if len(fields) == 1 else None
    return only if isinstance(only, dict) else fields


class _XmlReader:
    """`stack` holds, from the outside in, each open element's name, fields and text."""

    def __init__(self, text: str, limits: Limits, path: str) -> None:
        self.text = text
        self.limits = limits
        self.path = path
        self.nodes = 0
        self.stack: list[tuple[str, dict[str, Any], list[str]]] = [("", {}, [])]

    def read(self) -> dict[str, Any]:
        position = 0
        while (at := self.text.find("<", position)) >= 0:
            self._take_text(self._unescape(position, at), position)
            position = self._take_markup(at)
        if len(self.stack) > 1:
            raise truncation_error(len(self.text), self.path)
        self._take_text(self._unescape(position, len(self.text)), position)
        if not self.nodes:
            self._refuse("no XML element", 0)
        return self.stack[0][1]

    def _take_text(self, text: str, at: int) -> None:
        if len(self.stack) > 1:
            self.stack[-1][2].append(text)
        elif text.strip():
            self._refuse("text outside of an element", at)

    def _take_markup(self, at: int) -> int:
        """Read a tag, a comment or a CDATA section; return where it ends."""
        for start, end in (("<!--", "-->"), ("<![CDATA[", "]]>")):
            if self.text.startswith(start, at):
                stop = self.text.find(end, at + len(start))
                if stop < 0:
                    raise truncation_error(len(self.text), self.path)
                if start != "<!--":
                    self._take_text(self.text[at + len(start) : stop], at)
                return stop + len(end)
        if tag := _OPENING.match(self.text, at):
            self._open(tag)
        elif tag := _CLOSING.match(self.text, at):
            if tag[1] != self.stack[-1][0]:
                self._refuse(f"a closing tag {quote(tag[1])} without its opening tag", at)
            self._close()
        elif _UNFINISHED.fullmatch(self.text, at):
            raise truncation_error(len(self.text), self.path)
        else:
            self._refuse("not a tag (declarations and processing instructions are refused)", at)
        return tag.end()

    def _open(self, tag: re.Match[str]) -> None:
        self.nodes += 1
        if len(self.stack) > self.limits.max_depth:
            raise limit_error("max_depth", self.limits.max_depth, self.path, f" at character {tag.start()}")
        if self.nodes > self.limits.max_nodes:
            raise limit_error("max_nodes", self.limits.max_nodes, self.path)
        fields: dict[str, Any] = {}
        for attribute in _ATTRIBUTE.finditer(self.text, tag.start(2), tag.end(2)):
            group = 2 if attribute[3] is None else 3
            _put(fields, attribute[1], self._unescape(attribute.start(group), attribute.end(group)))
        self.stack.append((tag[1], fields, []))
        if tag[3]:
            self._close()

    def _close(self) -> None:
        name, fields, texts = self.stack.pop()
        text = "".join(texts)
        if fields and text.strip():
            _put(fields, TEXT_KEY, text)
        _put(self.stack[-1][1], name, fields or text)

    def _unescape(self, start: int, end: int) -> str:
        parts: list[str] = []
        while (at := self.text.find("&", start, end)) >= 0:
            stop = self.text.find(";", at, min(at + 12, end))
            parts += (self.text[start:at], self._character(self.text[at + 1 : max(stop, at)], at))
            start = stop + 1
        return "".join((*parts, self.text[start:end]))

    def _character(self, entity: str, at: int) -> str:
        if entity in _ENTITIES:
            return _ENTITIES[entity]
        number = _CHARACTER.fullmatch(entity)
        code = (int(number[1], 16) if number[1] else int(number[2])) if number else 0
        if code not in {9, 10, 13} and not 0x20 <= code < 0xD800 and not 0xE000 <= code <= 0x10FFFF:
            self._refuse("an entity that is not one of the five of XML or a character number", at)
        return chr(code)

    def _refuse(self, problem: str, at: int) -> NoReturn:
        message = f"failed to parse tool arguments: not XML: {problem} at character {at}"
        raise ArgumentsError(message, path=self.path, hint="write <name>value</name> for each argument")


def _put(fields: dict[str, Any], name: str, value: object) -> None:
    """Add a field; the values of one that is repeated become a list."""
    if name not in fields:
        fields[name] = value
    elif type(fields[name]) is list:
        fields[name].append(value)
    else:
        fields[name] = [fields[name], value]


def truncation_error(position: int, path: str) -> TruncatedArgumentsError:
    message = f"tool arguments end before they are complete, at character {position}"
    hint = "do not run the call; repeat the request with a larger output limit"
    return TruncatedArgumentsError(message, position=position, path=path, hint=hint)
