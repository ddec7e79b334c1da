"""JSON text to plain Python values, and any Python values to plain JSON values.

Laws: everything is bounded by `Limits`, and time is linear in the input however hostile it is. An error
says where: a character position in text, a JSON path in a value. Repairs are reported. Of duplicate keys in
one object, the last is used, as in other parsers.

The parser (jiter) nests at most `PARSER_DEPTH` deep; a larger `Limits.max_depth` does not raise that for
text. It holds for values.

Imports limits and errors; everything that reads JSON imports it.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

import jiter
import msgspec
from msgspec import Struct

from toolglot.errors import InputError, JSONError, LimitError, TruncatedJSONError, quote, type_name
from toolglot.limits import DEFAULT_LIMITS, Limits

PARSER_DEPTH: Final = 200
LARGE_BYTES: Final = 1024 * 1024
"""For larger text, `ensure_memory` checks first that there is enough memory."""
CIRCULAR: Final = "[circular]"
REPORTED_CHANGES: Final = 100
PATH_CHARACTERS: Final = 200
DUPLICATE_KEY: Final = "a key occurs twice in one object; the last one is used"

_encode: Final = msgspec.json.Encoder().encode

_BOM: Final = b"\xef\xbb\xbf"
_INTEGER_BITS: Final = 14_283
"""Python refuses to write integers of more than 4300 digits; so do we, before it does."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
"""A string or a bracket. An unfinished string matches too, so that no quote is ever tried twice."""

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""One escape, a surrogate pair counting as one. Group 1 is half of a pair."""
_HALF: Final = re.compile("[\ud800-\udfff]")
ID_FIELDS: Final = frozenset({"id", "call_id", "tool_call_id", "tool_use_id", "toolUseId"})
"""Fields that hold ids. Two that differ in half a surrogate pair must not become the same."""
_ID_VALUE: Final = re.compile(
    rb'"(?:id|call_id|tool_call_id|tool_use_id|toolUseId)"\s*+:\s*+"(?:[^"\\]++|\\.)*+"', re.DOTALL
)
_BACKSLASHES: Final = re.compile(rb"\\*+.?", re.DOTALL)
_SLICE: Final = 256 * 1024
"""Bytes that are searched at once: other threads can run in between."""
_MARKS: Final = (b",", b"[", b"{")
_NOT_MARKS: Final = bytes(set(range(256)) - set(b",[{"))
_NOT_OPENING: Final = bytes(set(range(256)) - set(b"[{"))
_STEPS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}

_SHAPE: Final = bytes.maketrans(b"123456789E", b"000000000e")
_LARGE: Final = (b"0e000", b"0" * 200)
"""What a number that overflows must contain once its digits are all written as 0, without a plus."""

_OF_NUMBERS: Final = b"0.e-"
_BEFORE_NUMBERS: Final = (b"", b":", b",", b"[", b" ", b"\t", b"\r", b"\n")
_AFTER_NUMBERS: Final = (b"", b"]", b"}", b",", b" ", b"\t", b"\r", b"\n")
_LONG_NUMBER: Final = 4096

_read: Final = functools.partial(jiter.from_json, allow_inf_nan=False, cache_mode="keys")

_CONTAINERS: Final = (dict, list, tuple, set, frozenset)
_SCALARS: Final[Any] = ((str, str.__str__), (int, int.__int__), (float, float.__float__))


class Parsed(Struct, frozen=True):
    """A value and what had to be repaired to read it."""

    value: Any
    repairs: tuple[str, ...] = ()


class Change(Struct, frozen=True):
    """Where a clone differs from its original, and why."""

    path: str
    reason: str


class Cloned(Struct, frozen=True):
    """A plain JSON value, how it differs from its original, and its size written out."""

    value: Any
    changes: tuple[Change, ...] = ()
    nodes: int = 1
    characters: int = 0


def parse(data: bytes | str, *, limits: Limits = DEFAULT_LIMITS, path: str = "$") -> Parsed:
    """The value of a JSON text. Half surrogate pairs become U+FFFD; nothing else is repaired."""
    encoded, repairs = _encode_text(data, limits, path)
    refuse_many_values(encoded, limits, path)
    try:
        value = _read(encoded, catch_duplicate_keys=True)
    except ValueError:
        # Only a document that fails pays for the search for half pairs. But for those in ids, the replacement is as
        # long as what it replaces, so positions hold.
        halves = encoded
        encoded = _ID_VALUE.sub(lambda found: _ESCAPE.sub(_number_half, found[0]), encoded)
        encoded = _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], encoded)
        try:
            value, duplicates = _read_duplicates(encoded)
        except ValueError as error:
            raise _diagnosis(str(error), encoded, limits, path) from None
        repairs = (
            *repairs,
            *(["escapes of half a surrogate pair became U+FFFD"] if encoded != halves else []),
            *duplicates,
        )
    refuse_deep(encoded, value, limits, path)
    if _may_overflow(encoded.translate(_SHAPE, b"+")):
        # jiter reads 1e400 as infinity, the one thing in a parsed value that a clone would change.
        for change in clone(value, limits=limits, path=path).changes:
            raise InputError("a number is too large", path=change.path, hint="write it as a string")
    return Parsed(value, repairs)


def _may_overflow(shape: bytes) -> bool:
    """Whether a number may be too large. Hashes in strings have digits and an `e` too, but letters beside them."""
    for mark in _LARGE:
        at = shape.find(mark)
        while at >= 0:
            before = shape[max(at - _LONG_NUMBER, 0) : at].rstrip(_OF_NUMBERS)
            rest = shape[at : at + _LONG_NUMBER]
            after = rest.lstrip(_OF_NUMBERS)
            is_long = not after and len(rest) == _LONG_NUMBER
            if is_long or (before[-1:] in _BEFORE_NUMBERS and after[:1] in _AFTER_NUMBERS):
                return True
            at = shape.find(mark, at + len(rest) - len(after))
    return False


def parse_plain(data: bytes | str, *, limits: Limits = DEFAULT_LIMITS, path: str = "$") -> Any:
    """The value of a JSON text in order, by the fastest parser; ValueError or RecursionError for any other, which
    `parse` reads or explains. What is too large is refused as there."""
    refuse_large(data, limits, path)
    if isinstance(data, str):
        data = data.encode()
    refuse_many_values(data, limits, path)
    ensure_memory(data)
    value = msgspec.json.decode(data)
    refuse_deep(data, value, limits, path)
    return value


def ensure_memory(data: bytes) -> None:
    """Raise a MemoryError if there is no memory for the strings of a JSON text.

    msgspec does not check whether it got the memory for a string, and crashes the process. The strings are no longer
    than the text, and memory that is allocated and not touched costs nothing.
    """
    if len(data) > LARGE_BYTES:
        bytes(len(data))


def _number_half(escape: re.Match[bytes]) -> bytes:
    """Half a surrogate pair as U+FFFD and its number; any other escape as it is."""
    half = escape[1]
    return escape[0] if half is None else b"\\ufffd" + half[1:].lower()


def _read_duplicates(encoded: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value, and whether one of its objects names a key twice."""
    try:
        return _read(encoded, catch_duplicate_keys=True), ()
    except ValueError:
        return _read(encoded), (DUPLICATE_KEY,)


def refuse_large(data: bytes | str, limits: Limits, path: str) -> None:
    """Raise if a text is longer than the limit."""
    if len(data) > limits.max_bytes:
        raise limit_error("max_bytes", limits.max_bytes, path)


def limit_error(name: str, allowed: int, path: str, where: str = "") -> LimitError:
    """The error for something that is larger than a limit."""
    hint = f"make it smaller or raise Limits.{name}"
    return LimitError(f"exceeds {name}={allowed}{where}", path=path, hint=hint)


def decode(data: bytes, *, path: str = "$") -> str:
    """UTF-8 bytes as text; a last character that is cut counts as truncation."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        position = len(data[: error.start].decode())
        if error.reason == "unexpected end of data":
            raise _truncated(position, path) from None
        message = f"byte {error.start} is not UTF-8"
        raise JSONError(message, position=position, path=path, hint="send UTF-8") from None


def fix_surrogates(text: str) -> str:
    """The text with half surrogate pairs as U+FFFD and split pairs joined; itself if it has neither."""
    if str.isascii(text):
        return text
    try:
        str.encode(text)
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def fix_surrogates_in_id(text: str) -> str:
    """The id with half surrogate pairs as U+FFFD and their numbers, so that different ids stay different."""
    if fix_surrogates(text) is text:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _HALF.sub(lambda half: f"\ufffd{ord(half[0]):x}", joined)


def compact(value: Any) -> str:
    """A JSON value as text: no spaces, letters as they are, whole numbers of any size."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:  # half a surrogate pair, which a body that was not read from bytes may hold
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:  # which no body that was read from bytes is deep enough for
        raise InputError("nested too deeply to be written as JSON", path="", hint="send it as text") from None
    except ValueError:  # which no number that was read from bytes is long enough for
        raise InputError("a number has too many digits for JSON", path="", hint="send it as text") from None


def json_path(base: str, steps: Iterable[str | int]) -> str:
    """A JSON path of bounded length: `$.todos[0]['odd key']`."""
    parts = [base]
    for step in steps:
        plain = isinstance(step, str) and len(step) <= 80 and step.isidentifier()
        parts.append(f".{step}" if plain else f"[{quote(step) if isinstance(step, str) else step}]")
    whole = "".join(parts)
    return whole if len(whole) <= PATH_CHARACTERS else f"{whole[:100]}…{whole[-99:]}"


def _encode_text(data: bytes | str, limits: Limits, path: str) -> tuple[bytes, tuple[str, ...]]:
    if not isinstance(data, str | bytes):
        raise InputError(f"expected JSON text, got {quote(data)}", path=path, hint="pass str or bytes")
    refuse_large(data, limits, path)
    if isinstance(data, bytes):
        return data.removeprefix(_BOM), ()
    text = fix_surrogates(data)
    encoded = text.encode()
    refuse_large(encoded, limits, path)
    return encoded.removeprefix(_BOM), () if text is data else ("half surrogate pairs became U+FFFD",)


def refuse_many_values(encoded: bytes, limits: Limits, path: str) -> None:
    """Raise if a text has more values than the limit. Only one that might have them is looked at closely."""
    if len(encoded) < 2 * limits.max_nodes or count_marks(encoded) < limits.max_nodes:
        return
    if count_values(encoded, limits.max_nodes) > limits.max_nodes:
        raise limit_error("max_nodes", limits.max_nodes, path)


def count_marks(encoded: bytes) -> int:
    """The commas and opening brackets of a JSON text, those in strings too: it has no more values than that and one."""
    if len(encoded) <= _SLICE:
        return len(encoded.translate(None, _NOT_MARKS))
    starts = range(0, len(encoded), _SLICE)
    return sum([len(encoded[start : start + _SLICE].translate(None, _NOT_MARKS)) for start in starts])


def count_values(encoded: bytes, enough: int) -> int:
    """The values of a JSON text: a comma or an opening bracket outside strings precedes each but the first. Counted
    slice by slice, until there are more than `enough`."""
    values, start, last, is_in_string = 1, 0, b"", False
    while start < len(encoded) and values <= enough:
        stop = start + _SLICE
        if encoded[stop - 1 : stop] == b"\\":  # no escape is cut in two
            run = _BACKSLASHES.match(encoded, stop)
            stop = run.end() if run is not None else stop
        part = encoded[start:stop]
        if b"\\" in part:
            part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
        pieces = part.split(b'"')
        bare = last + b"0".join(pieces[is_in_string::2]).translate(None, b" \t\r\n")
        is_in_string ^= len(pieces) % 2 == 0
        if is_in_string:
            bare += b"0"
        values += sum(map(bare.count, _MARKS)) - bare.count(b"[]") - bare.count(b"{}") - len(last)
        last = bare[-1:] if bare[-1:] in (b"[", b"{") else b""
        start = stop
    return values


def refuse_deep(encoded: bytes, value: Any, limits: Limits, path: str) -> None:
    """Raise if the value of a text nests deeper than the limit. Each level is written with two brackets."""
    if len(encoded) > 2 * limits.max_depth and _nests_deeper(value, limits.max_depth):
        raise _too_deep(encoded, limits, path)


def refuse_deep_text(encoded: bytes, limits: Limits, path: str) -> None:
    """Raise if a text that is parsed later nests deeper than the limit. Only one with more opening brackets, those in
    strings too, is read for that; invalid JSON is left to its parser."""
    if len(encoded) <= 2 * limits.max_depth or len(encoded.translate(None, _NOT_OPENING)) <= limits.max_depth:
        return
    try:
        parse_plain(encoded, limits=limits, path=path)
    except LimitError:
        raise
    except (ValueError, RecursionError):
        try:
            parse(encoded, limits=limits, path=path)
        except LimitError:
            raise
        except InputError:
            return


def _diagnosis(problem: str, encoded: bytes, limits: Limits, path: str) -> InputError:
    """jiter says `<problem> at line <n> column <n>`, counting bytes; we count characters."""
    try:
        text = decode(encoded, path=path)
    except JSONError as error:
        return error
    reason, _, where = problem.rpartition(" at line ")
    if reason.startswith("EOF"):
        return _truncated(len(text), path)
    if reason.startswith("recursion"):
        return _too_deep(encoded, limits, path)
    line, _, column = where.partition(" column ")
    rest = encoded.split(b"\n", int(line) - 1)[-1]
    position = len(encoded[: len(encoded) - len(rest) + int(column) - 1].decode(errors="ignore"))
    message = f"not JSON: {reason} at character {position}"
    return JSONError(message, position=position, path=path, hint="send valid JSON")


def _truncated(position: int, path: str) -> TruncatedJSONError:
    message = f"the JSON text ends before it is complete, at character {position}"
    return TruncatedJSONError(message, position=position, path=path, hint="it was cut off; send all of it")


def _too_deep(encoded: bytes, limits: Limits, path: str) -> LimitError:
    allowed = min(limits.max_depth, PARSER_DEPTH)
    marks = ((token.start(), _STEPS.get(token[0], 0)) for token in _TOKEN.finditer(encoded))
    depths = itertools.accumulate(marks, lambda last, mark: (mark[0], last[1] + mark[1]))
    start = next(start for start, depth in depths if depth > allowed)
    position = len(encoded[:start].decode(errors="ignore"))
    return limit_error("max_depth", allowed, path, f" at character {position}")


def levels(value: Any) -> Iterator[list[Any]]:
    """A plain JSON value, then the values that it holds, then the values that these hold, and so on.

    The garbage collector knows what lists and objects hold and collects it for a whole level in one call: a tenth of
    the time that a step of Python for each value takes.
    """
    level = [value]
    while level:
        yield level
        level = gc.get_referents(*level)


def _nests_deeper(value: Any, allowed: int) -> bool:
    """Whether a freshly parsed value has more than so many objects and arrays inside each other."""
    beyond = next(itertools.islice(levels(value), allowed, None), ())
    return any(type(held) is dict or type(held) is list for held in beyond)


def clone(
    value: object,
    *,
    limits: Limits = DEFAULT_LIMITS,
    path: str = "$",
    text: Callable[[str], str] = fix_surrogates,
) -> Cloned:
    """A plain JSON value that holds what `value` holds, every string passed through `text`.

    Where nothing changes, the clone is the original object itself; it never shares an object that is part
    of a circle. A container met twice is visited once, reported once, and counted twice. Tuples, and
    sets of scalars in sorted order, become lists; subclasses of JSON types become these; anything else
    becomes a string that says so. No method of an unknown object is called.
    """
    return _Cloner(limits, path, text).run(value)


class ChangeLog:
    """Collects changes; beyond `REPORTED_CHANGES` they are only counted."""

    __slots__ = ("_base", "_kept", "_total")

    def __init__(self, base: str) -> None:
        self._base = base
        self._kept: list[Change] = []
        self._total = 0

    def add(self, steps: Iterable[str | int], reason: str) -> None:
        self._total += 1
        if self._total <= REPORTED_CHANGES:
            self._kept.append(Change(json_path(self._base, steps), reason))

    def changes(self) -> tuple[Change, ...]:
        if self._total <= REPORTED_CHANGES:
            return tuple(self._kept)
        return (*self._kept, Change(self._base, f"{self._total - REPORTED_CHANGES} more changes like these"))


class _Frame:
    """A container that is being cloned: `key` is that of the child that is being cloned."""

    __slots__ = ("chars", "entries", "height", "key", "nodes", "out", "own_names", "repeats", "same", "source")

    def __init__(self, source: object, entries: Iterator[tuple[Any, object]], nodes: int, chars: int) -> None:
        self.source = source
        self.entries = entries
        self.same = type(source) is dict or type(source) is list
        self.out: Any = {} if issubclass(type(source), dict) else []
        self.key: Any = 0
        self.height = 1
        self.nodes = nodes
        self.chars = chars
        self.repeats: dict[str, int] = {}
        self.own_names: set[str] | None = None

    def put(self, original: object, result: object) -> None:
        self.same = self.same and result is original
        if type(self.out) is dict:
            self.out[self.key] = result
        else:
            self.out.append(result)

    def distinct(self, name: str, *, is_own: bool) -> str:
        """The name, numbered if another key has it or became it. A key that needs no change keeps its name."""
        if not is_own and self.own_names is None:
            self.own_names = {key for key in dict.keys(cast("Any", self.source)) if type(key) is str}
        taken = () if is_own or self.own_names is None else self.own_names
        free = name
        while free in self.out or free in taken:
            self.repeats[name] = self.repeats.get(name, 1) + 1
            free = f"{name}#{self.repeats[name]}"
        return free


class _Cloner:
    """A depth-first walk with its own stack. `done` remembers each container's clone and its size."""

    def __init__(self, limits: Limits, path: str, text: Callable[[str], str]) -> None:
        self.limits = limits
        self.path = path
        self.text = text
        self.log = ChangeLog(path)
        self.nodes = 1
        self.chars = 0
        self.stack: list[_Frame] = []
        self.active: set[int] = set()
        self.done: dict[int, tuple[object, object, int, int, int]] = {}

    def run(self, value: object) -> Cloned:
        root = _Frame([value], iter([(0, value)]), 0, 0)
        self.stack.append(root)
        while True:
            frame = self.stack[-1]
            opened = self._advance(frame)
            if opened is not None:
                self.stack.append(opened)
            elif frame is root:
                return Cloned(root.out[0], self.log.changes(), self.nodes, self.chars)
            else:
                self.stack.pop()
                self._finish(frame, self.stack[-1])

    def _advance(self, frame: _Frame) -> _Frame | None:
        """Clone children until one is a container to go into, or none is left."""
        keyed = type(frame.out) is dict
        for key, child in frame.entries:
            frame.key = self._name(frame, key) if keyed else key
            if issubclass(type(child), _CONTAINERS):
                opened = self._open(frame, child)
                if opened is not None:
                    return opened
            else:
                plain, reason = self._plain(child)
                if reason:
                    self._report(reason)
                    if keyed and frame.key in ID_FIELDS and type(child) is str and self.text is fix_surrogates:
                        plain = fix_surrogates_in_id(child)
                frame.put(child, plain)
        return None

    def _open(self, parent: _Frame, child: object) -> _Frame | None:
        """The frame of a container met for the first time; any other is put there at once."""
        identity = id(child)
        if identity in self.active:
            self._report("a circular reference was cut")
            parent.put(child, CIRCULAR)
        elif identity in self.done:
            _, result, nodes, chars, height = self.done[identity]
            self._grow(nodes, chars, height)
            parent.height = max(parent.height, height + 1)
            parent.put(child, result)
        elif (contents := _contents(child)) is None:
            plain, reason = _placeholder(type_name(child))
            self._report(reason)
            parent.put(child, plain)
        else:
            entries, length = contents
            frame = _Frame(child, entries, self.nodes, self.chars)
            self._grow(length, 0, 1)
            self.active.add(identity)
            if not frame.same:
                self._report(f"a {type_name(child)} became a plain {type(frame.out).__name__}")
            return frame
        return None

    def _finish(self, frame: _Frame, parent: _Frame) -> None:
        result = frame.source if frame.same else frame.out
        identity = id(frame.source)
        self.active.discard(identity)
        size = (self.nodes - frame.nodes, self.chars - frame.chars, frame.height)
        self.done[identity] = (frame.source, result, *size)
        parent.height = max(parent.height, frame.height + 1)
        parent.put(frame.source, result)

    def _name(self, frame: _Frame, key: object) -> str:
        plain, reason = self._plain(key)
        name = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
        distinct = frame.distinct(name, is_own=name is key)
        if distinct is not key:
            frame.key = distinct
            frame.same = False
            self._report(reason or "a key became the text that JSON can carry")
        return distinct

    def _plain(self, value: Any) -> tuple[object, str]:
        """A scalar as JSON has it, and what was changed."""
        kind = type(value)
        if kind is str:
            self._grow(0, len(value), 0)
            text = self.text(value)
            return text, "" if text is value else "characters that must not be sent were replaced or dropped"
        if kind is bool or value is None:
            return value, ""
        if kind is int:
            fits = value.bit_length() <= _INTEGER_BITS
            return (value, "") if fits else _placeholder("an integer of more than 4300 digits")
        if kind is float:
            return (value, "") if math.isfinite(value) else _placeholder("NaN or infinity")
        for base, exact in _SCALARS:
            if issubclass(kind, base):
                plain, reason = self._plain(exact(value))
                return plain, reason or f"a {type_name(value)} became a plain {base.__name__}"
        return _placeholder(type_name(value))

    def _grow(self, nodes: int, chars: int, height: int) -> None:
        self.nodes += nodes
        self.chars += chars
        limits = self.limits
        if self.nodes > limits.max_nodes:
            raise limit_error("max_nodes", limits.max_nodes, self._where())
        if self.chars > limits.max_bytes:
            raise limit_error("max_bytes", limits.max_bytes, self._where())
        if height and len(self.stack) - 1 + height > limits.max_depth:
            raise limit_error("max_depth", limits.max_depth, self._where())

    def _report(self, reason: str) -> None:
        self.log.add((frame.key for frame in self.stack[1:]), reason)

    def _where(self) -> str:
        return json_path(self.path, (frame.key for frame in self.stack[1:]))


def _contents(value: Any) -> tuple[Iterator[tuple[Any, object]], int] | None:
    """The content of a container, by the methods of its base class: its own may be wrong."""
    base: Any = next(base for base in _CONTAINERS if issubclass(type(value), base))
    if base is dict:
        return iter(dict.items(value)), dict.__len__(value)
    if base is list or base is tuple:
        return enumerate(base.__iter__(value)), base.__len__(value)
    members = list(base.__iter__(value))
    if any(type(member) not in {str, int, float, bool} for member in members):
        return None
    members.sort(key=lambda member: (type(member).__name__, member))
    return enumerate(members), len(members)


def _placeholder(what: str) -> tuple[str, str]:
    what = fix_surrogates(what)
    return f"[not serialisable: {what}]", f"{what} is not JSON"


def local_reference(root: Any, reference: object) -> Any:
    """What a reference inside a JSON document names (`#/a/0`); None for any other, which is never fetched."""
    if type(reference) is not str or not (reference == "#" or reference.startswith("#/")):
        return None
    found: Any = root
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if type(found) is list and key.isdecimal() and int(key[:9]) < len(found):
            found = found[int(key[:9])]
        else:
            found = found.get(key) if type(found) is dict else None
    return found


def has_duplicate_keys(data: bytes | str, value: Any) -> bool:
    """Whether an object of a JSON text, which was read as `value`, has a key more than once.

    As many quotes are written as were read, unless a key occurs twice or a quote is written as a number: so counting
    them settles nearly every text. One that has both may have as many as it needs.
    """
    if isinstance(data, bytes):
        quotes, is_numbered = data.count(b'"'), b"\\u0022" in data
    else:
        quotes, is_numbered = data.count('"'), "\\u0022" in data
    return (is_numbered or quotes != msgspec.json.encode(value).count(b'"')) and bool(duplicate_keys(data, limit=1))


def duplicate_keys(text: str | bytes, *, limit: int = 9) -> list[str]:
    """The keys that an object of a JSON text has more than once, in their order; empty for what is not JSON."""
    found: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs) and len(found) < limit:
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    found[key] = None
                seen.add(key)
        return made

    try:
        json.loads(text, object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return []
    return list(found)[:limit]
