"""A configuration file as text and tables: read within limits, checked key by key, with the line of every mistake.

A table is described by a Struct whose fields carry what is allowed (`title`) and what it means (`description`) in their
`Meta`; the checks, the messages and the tables of docs/gateway-config.md all come from there.

Law: whatever the bytes, the result is tables or a `ConfigError`. No message quotes what may be a key.
"""

from __future__ import annotations

import functools
import math
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from toolglot.errors import InputError, UnknownNameError, closest_names, quote
from toolglot.gateway.config.foreign import recognise
from toolglot.masking import mask

MAX_BYTES: Final = 256 * 1024
MAX_LINE: Final = 4000
"""Characters: what a TOML parser does with one key may take quadratic time in its length."""

MAX_MISTAKES: Final = 20
"""Mistakes of one file that are shown at once."""
MAX_DEPTH: Final = 6
"""Parts of a key by which its line is looked for."""

Keys = tuple[str, ...]
Table = TypeVar("Table", bound=Struct)
T = TypeVar("T")

_PART: Final = r"(?:[A-Za-z0-9_-]+|\"[^\"\\]*\"|'[^']*')"
_KEY: Final = re.compile(rf"\s*(\[\[?)?\s*({_PART}(?:\s*\.\s*{_PART})*)\s*[\]=]")
_QUOTED_OR_BARE: Final = re.compile(_PART)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_UNQUOTED: Final = frozenset({"client_keys", "metrics_key", "key", "headers", "proxy", "key_env", "url"})
"""Settings that may contain a key by mistake: their values are not shown."""


class ConfigError(InputError):
    """An invalid configuration; `path` is the file, the line if it is known, and the key."""

    line: int = 0
    others: tuple[ConfigError, ...] = ()
    """Further mistakes of the same file."""

    @property
    def errors(self) -> tuple[ConfigError, ...]:
        """All mistakes of the file, this one first."""
        return (self, *self.others)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *map(str, self.others)])


class Mistakes:
    """Collects the mistakes of a configuration, so that they are shown at once.

    upstreams = mistakes.collect(lambda: read_upstreams(document))      # None: it could not be read
    mistakes.raise_all()
    """

    def __init__(self) -> None:
        self._found: list[ConfigError] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, error: ConfigError) -> None:
        """Add a mistake. After `MAX_MISTAKES` the rest of the file is not read."""
        self._found += error.errors
        if len(self._found) >= MAX_MISTAKES:
            self.raise_all()

    def collect(self, read: Callable[[], T]) -> T | None:
        """What `read` returns; None if it raises."""
        try:
            return read()
        except ConfigError as error:
            self.add(error)
            return None

    def raise_all(self) -> None:
        """One error for all mistakes, in the order of the file."""
        if self._found:
            first, *others = sorted(self._found, key=lambda error: error.line)[:MAX_MISTAKES]
            first.others = tuple(others)
            for other in others:
                other.others = ()
            raise first


class ConfigNameError(ConfigError, UnknownNameError):
    """A configuration that names a provider or a profile that is not known."""


class ConfigText(Struct, frozen=True):
    """The text of a configuration, and what it is called."""

    origin: str
    text: str = ""

    def error(self, message: str, *keys: str, hint: str = "") -> ConfigError:
        """A mistake at a key, with its line."""
        line = line_of(self.text, keys) if keys else 0
        position = f"{self.origin}:{line}" if line else self.origin
        error = ConfigError(message, path=f"{position}: {toml_key(keys)}" if keys else position, hint=hint)
        error.line = line
        return error

    def name_error(self, error: UnknownNameError, *keys: str) -> ConfigNameError:
        """The same for a name that is not known."""
        at = self.error("", *keys)
        message, hint = mask(error.message), error.hint
        found = ConfigNameError(message, path=at.path, hint=hint, name=mask(error.name), suggestions=error.suggestions)
        found.line = at.line
        return found

    def tables(self) -> dict[str, Any]:
        """The tables of the text."""
        try:
            return self._parse()
        except ConfigError:
            foreign = recognise(self.text)
            if foreign is None:
                raise
            message = f"this is a configuration of {foreign.program}, not of toolglot"
            raise self.error(message, hint=foreign.hint) from None

    def _parse(self) -> dict[str, Any]:
        for number, line in enumerate(self.text.split("\n"), 1):
            if len(line) > MAX_LINE:
                raise ConfigError(
                    f"the line has more than {MAX_LINE} characters",
                    path=f"{self.origin}:{number}",
                    hint="split it: a list can have several lines",
                )
        try:
            return tomllib.loads(self.text)
        except RecursionError:
            raise self.error("not TOML: nested too deeply", hint="see docs/gateway-config.md") from None
        except ValueError as error:
            raise self.error(f"not TOML: {error}", hint="see https://toml.io and docs/gateway-config.md") from None


def read_text(path: str | os.PathLike[str]) -> ConfigText:
    """A file as text."""
    origin = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = "check the path, or write a configuration with `toolglot init`"
        raise ConfigError(f"cannot read file: {reason}", path=origin, hint=hint) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES} bytes", path=origin, hint="this is not a configuration of toolglot")
    try:
        return ConfigText(origin, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 at byte {error.start}", path=origin, hint="save it as UTF-8") from None


def toml_key(keys: Keys) -> str:
    """A key as TOML writes it."""
    return ".".join(key if _PLAIN.fullmatch(key) else quote(mask(key)) for key in keys)


def keys_of(key: str) -> Keys:
    """The parts of a key that TOML writes with dots."""
    return tuple(part.strip("\"'") for part in _QUOTED_OR_BARE.findall(key))


def line_of(text: str, keys: Keys) -> int:
    """The line that sets a key, or that begins the innermost table around it; 0: there is none."""
    exact, within = _lines_of(text)
    wanted = keys[:MAX_DEPTH]
    found = within.get(wanted, 0)
    while wanted and not found:
        wanted = wanted[:-1]
        found = exact.get(wanted, 0)
    return found


@functools.lru_cache(maxsize=1)
def _lines_of(text: str) -> tuple[dict[Keys, int], dict[Keys, int]]:
    """The first line that names a key, and the first that names it or something in it."""
    exact: dict[Keys, int] = {}
    within: dict[Keys, int] = {}
    section: Keys = ()
    for number, line in enumerate(text.split("\n"), 1):
        match = _KEY.match(line)
        if match is None:
            continue
        parts = keys_of(match[2])
        if match[1]:
            section = parts
        path = parts if match[1] else section + parts
        exact.setdefault(path, number)
        for length in range(1, min(len(path), MAX_DEPTH) + 1):
            within.setdefault(path[:length], number)
    return exact, within


# --- tables -----------------------------------------------------------------------------------------


def read_table(value: Any, kind: type[Table], text: ConfigText, *at: str) -> Table:
    """A table as a Struct. Unknown keys and invalid values are errors."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    values, mistakes = {}, Mistakes()
    for key, entry in table_of(value, text, *at).items():
        if key not in fields:
            mistakes.add(unknown_key(key, list(fields), text, *at))
        else:
            values[key] = mistakes.collect(functools.partial(_read_value, entry, fields[key], text, *at, key))
    mistakes.raise_all()
    return kind(**values)


def table_of(value: Any, text: ConfigText, *at: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise text.error(f"expected a table, got {_kind(value)}", *at, hint=f"write [{toml_key(at)}], with its keys below")


def unknown_key(key: str, known: list[str], text: ConfigText, *at: str) -> ConfigError:
    """The error for a key that does not exist, with the nearest name."""
    is_table = not at
    what = "table" if is_table else "setting"
    if key.lower().replace("-", "_") in ("key", "api_key", "apikey", "token", "secret") and "key_env" in known:
        hint = 'keys are in environment variables only: write key_env = "NAME_OF_THE_VARIABLE"'
    else:
        close = closest_names(key, known) or tuple(word for word in known if len(word) > 2 and word in key.lower())
        hint = f"did you mean {close[0]}? " if close else ""
        hint += "known: " + ", ".join(f"[{name}]" if is_table else name for name in known)
    return text.error(f"unknown {what}", *at, key, hint=hint)


def allowed_values(kind: Any) -> str:
    """The values that a setting allows, as text; of a number, also its maximum."""
    title = next((meta.title for meta in get_args(kind) if isinstance(meta, Meta) and meta.title), "")
    maximum = _maximum(kind)
    if maximum is None or title.endswith(f" to {maximum}"):
        return title
    return f"{title} to {maximum}" if " from " in title else f"{title}, at most {maximum}"


def _maximum(kind: Any) -> int | float | None:
    """The maximum of a type; None: it is not a number, or has none."""
    for part in get_args(kind):
        found = part.le if isinstance(part, Meta) else _maximum(part)
        if found is not None:
            return found
    return None


def _read_value(value: Any, kind: Any, text: ConfigText, *at: str) -> Any:
    try:
        found = msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError):
        found = math.nan
    if isinstance(found, float) and not math.isfinite(found):
        got = _kind(value) if at[-1] in _UNQUOTED else _shown(value)
        raise text.error(f"expected {allowed_values(kind)}, got {got}", *at)
    return found


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quote(mask(value))
    return quote(value).replace("True", "true").replace("False", "false") if _is_scalar(value) else _kind(value)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


_KINDS: Final = {str: "a string", dict: "a table", list: "a list", bool: "true or false", int: "a whole number"}


def _kind(value: Any) -> str:
    """The kind of a TOML value."""
    return _KINDS.get(type(value), "a number" if isinstance(value, float) else "a date or time")
