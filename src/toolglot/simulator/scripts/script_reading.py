"""A script from a plain value, or from a file of JSON, TOML or YAML.

Law: what cannot be understood in full, or is never used, is reported: by an error that says where and what is possible
there, or by a note if it does no harm.
"""

from __future__ import annotations

import importlib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.conversation import StopReason, Usage
from toolglot.errors import InputError, how_to_install, quote, unknown_name
from toolglot.jsontext import clone, parse
from toolglot.simulator.providers import PROVIDERS
from toolglot.simulator.replies.faults import MAX_NUMBER, integer, names_hint, number, read_fault
from toolglot.simulator.scripts.script import MAX_CALLS, MAX_PACE, CallSpec, ReplySpec, Script, ScriptRule, When

MAX_RULES: Final = 10_000
MAX_WINDOW: Final = 100_000_000
MAX_BYTES: Final = 4 * 1024 * 1024

ScriptSource = Script | Mapping[str, Any] | str | os.PathLike[str]
"""A script, its plain value, or the name of a file that has it."""

_TARGETS: Final = tuple(
    dict.fromkeys(
        (*PROVIDERS, *(route.target for provider in PROVIDERS.values() for route in provider.routes if route.target))
    )
)
"""What `when.provider` can name."""
_PARTS: Final[dict[type[Struct], dict[str, type[Struct]]]] = {
    Script: {"rules": ScriptRule},
    ScriptRule: {"when": When, "reply": ReplySpec, "replies": ReplySpec},
    ReplySpec: {"calls": CallSpec, "usage": Usage},
}
"""Which keys hold further parts, alone or in a list."""
_COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))
_KEYS: Final[dict[type[Struct], tuple[str, ...]]] = {Usage: _COUNTS}
"""The keys of a part, where they are not all of its fields."""
_TYPES: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}


def script_from(source: ScriptSource) -> Script:
    """A script from any of its sources."""
    return read_script(source) if isinstance(source, str | os.PathLike) else script_of(source)


def script_of(value: Script | Mapping[str, Any]) -> Script:
    """A script from its plain value, checked."""
    if isinstance(value, Script):
        _convert(_plain(value))
        _check(value)
        return value
    if not isinstance(value, Mapping):
        hint = 'such as {"rules": [{"reply": {"text": "Hello"}}]}, or the name of a file'
        raise InputError(f"expected a script, got {quote(value)}", path="script", hint=hint)
    script = _convert(dict(value))
    _check(script)
    return script


def _plain(script: Script) -> Any:
    """A script made in code can have values of any type. As plain values they are checked like any others."""
    try:
        return msgspec.to_builtins(script)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a script has plain values only: {error}") from None


def _convert(value: dict[Any, Any]) -> Script:
    _check_keys(value, Script, "$")
    try:
        return msgspec.convert(value, Script)
    except (msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
        message, _, where = str(error).partition(" - at `")
        path = where.rstrip("`") or "$"
        before, is_enum, name = message.partition("Invalid enum value ")
        if is_enum and not before:
            hint = names_hint(name.strip("'"), get_args(StopReason))
            raise InputError(f"unknown stop reason {name}", path=path, hint=hint) from None
        raise InputError(_in_words(message), path=path, hint="see docs/simulator.md") from None


def _in_words(message: str) -> str:
    """The message, with plain words for the types."""
    text = re.sub(r"`([a-z |]+)`", lambda found: " or ".join(map(_type_in_words, found[1].split(" | "))), message)
    return text[:1].lower() + text[1:]


def _type_in_words(name: str) -> str:
    return _TYPES.get(name, name)


def _check_keys(value: Any, part: type[Struct], path: str) -> None:
    """Refuse unknown keys; types are checked later."""
    known = _KEYS.get(part, part.__struct_fields__)
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        if key not in known:
            raise InputError(f"unknown key {quote(key)}", path=path, hint=names_hint(key, known))
        below = _PARTS.get(part, {}).get(key)
        if below is None:
            continue
        _check_keys(inner, below, f"{path}.{key}")
        for index, entry in enumerate(inner if isinstance(inner, list | tuple) else ()):
            _check_keys(entry, below, f"{path}.{key}[{index}]")


# --- what types cannot check ------------------------------------------------------------------------


def _check(script: Script) -> None:
    if len(script.rules) > MAX_RULES:
        raise InputError(f"more than {MAX_RULES} rules", path="$.rules")
    integer(script.chunk, "$.chunk", minimum=1)
    integer(script.bytes, "$.bytes")
    number(script.pace, "$.pace", MAX_PACE)
    for index, key in enumerate(script.keys):
        if not key.strip():
            raise InputError("expected a key that is not empty", path=f"$.keys[{index}]")
    for pattern, tokens in script.windows.items():
        integer(tokens, f"$.windows.{pattern}", maximum=MAX_WINDOW, minimum=1)
    for index, rule in enumerate(script.rules):
        _check_rule(rule, f"$.rules[{index}]")


def _check_rule(rule: ScriptRule, path: str) -> None:
    if rule.times is not None:
        integer(rule.times, f"{path}.times", minimum=1)
    if rule.reply is None and not rule.replies and rule.fault == "":
        raise InputError("a rule needs a reply, replies or a fault", path=path)
    if rule.reply is not None and rule.replies:
        raise InputError("a rule can have a reply or replies, not both", path=path)
    if rule.fault != "":
        read_fault(rule.fault, path=f"{path}.fault")
    if rule.reply is not None:
        _check_reply(rule.reply, f"{path}.reply")
    for index, reply in enumerate(rule.replies):
        _check_reply(reply, f"{path}.replies[{index}]")
    _check_when(rule.when, f"{path}.when")


def _check_when(when: When, path: str) -> None:
    for name, count in (("results", when.results), ("turn", when.turn)):
        if count is not None:
            integer(count, f"{path}.{name}")
    if when.provider is not None and when.provider not in _TARGETS:
        target = _resolve(when.provider)
        close = (target,) if target in _TARGETS else None
        raise unknown_name("provider", when.provider, _TARGETS, suggestions=close, path=f"{path}.provider")
    if when.matches is not None:
        try:
            re.compile(when.matches)
        except (re.error, RecursionError, OverflowError) as error:
            raise InputError(f"not a regular expression: {error}", path=f"{path}.matches") from None


def _resolve(provider: str) -> str:
    """The target that a name is an alias of: `google` is gemini."""
    try:
        return profiles.get(provider).name
    except InputError:
        return provider


def _check_reply(reply: ReplySpec, path: str) -> None:
    calls = reply.calls
    if isinstance(calls, int):
        integer(calls, f"{path}.calls", MAX_CALLS)
    elif len(calls) > MAX_CALLS:
        raise InputError(f"expected at most {MAX_CALLS} calls", path=f"{path}.calls")
    else:
        for index, call in enumerate(calls):
            _check_json(call, f"{path}.calls[{index}].arguments")
    for name in _COUNTS if reply.usage is not None else ():
        count = getattr(reply.usage, name)
        if count is not None:
            integer(count, f"{path}.usage.{name}", MAX_NUMBER**2)


def _check_json(call: CallSpec, path: str) -> None:
    """Refuse values that YAML and TOML have and JSON has not, such as dates; a string is sent as it is."""
    if isinstance(call.arguments, str):
        return
    changes = clone(call.arguments, path=path, text=str).changes
    if changes:
        hint = "put it in quotes if it should be a string"
        raise InputError(f"not a JSON value: {changes[0].reason}", path=changes[0].path, hint=hint)


def notes_of(script: Script) -> tuple[str, ...]:
    """What is allowed, but probably a mistake: rules that are never reached."""
    notes: list[str] = []
    reached: dict[When, int] = {}
    for index, rule in enumerate(script.rules):
        before = reached.get(When(), reached.get(rule.when))
        if before is not None:
            reason = "matches every request" if script.rules[before].when == When() else "matches the same requests"
            notes.append(f"rules[{index}] is never reached: rules[{before}] before it {reason}")
        elif rule.times is None:
            reached[rule.when] = index
    return tuple(notes)


# --- files ------------------------------------------------------------------------------------------


def read_script(path: str | os.PathLike[str]) -> Script:
    """The script of a file: JSON, TOML or YAML, by its name."""
    name = str(os.fspath(path))
    try:
        with Path(name).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = "check the path; in Python, a script is a file or a dict, not a JSON string"
        raise InputError(f"cannot read file: {reason}", path=name, hint=hint) from None
    if len(data) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES} bytes", path=name)
    value = _parse(data, name)
    if not isinstance(value, dict):
        raise InputError(f"expected an object with rules, got {quote(value)}", path=name)
    try:
        return script_of(value)
    except InputError as error:
        raise InputError(error.message, path=f"{name}: {error.path}", hint=error.hint) from None


def _parse(data: bytes, name: str) -> Any:
    suffix = Path(name).suffix.lower()
    try:
        if suffix in (".yaml", ".yml"):
            return _yaml(data, name)
        if suffix == ".toml":
            return tomllib.loads(data.decode())
        return parse(data, path=name).value
    except InputError as error:
        hint = (
            error.hint
            if suffix in (".yaml", ".yml")
            else "a script is JSON, or TOML or YAML if its name ends in .toml or .yaml"
        )
        raise InputError(error.message, path=error.path, hint=hint) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", path=name, hint="see https://toml.io") from None


def _yaml(data: bytes, name: str) -> Any:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        hint = f"{how_to_install('simulator')}, or write the script in JSON or TOML"
        raise InputError("a script in YAML needs PyYAML, which is not installed", path=name, hint=hint) from None
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"not YAML: {reason}", path=name) from None
