"""A script from a plain value, or from a file of JSON, TOML or YAML.

Law: what would be understood in part, or never be used, is told: by an error that says where and what may stand there,
or, where it does no harm, by a note.
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
from toolglot.simulator.replies.faults import LARGEST, number, one_of, read_fault, whole
from toolglot.simulator.scripts.script import LONGEST_PACE, MOST_CALLS, CallSpec, ReplySpec, Script, ScriptRule, When

MOST_RULES: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024

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
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}


def script_from(source: ScriptSource) -> Script:
    """A script, whichever way it is given."""
    return read_script(source) if isinstance(source, str | os.PathLike) else script_of(source)


def script_of(value: Script | Mapping[str, Any]) -> Script:
    """A script from its plain value, checked."""
    if isinstance(value, Script):
        _converted(_plain(value))
        return _checked(value)
    if not isinstance(value, Mapping):
        hint = 'such as {"rules": [{"reply": {"text": "Hello"}}]}, or the name of a file'
        raise InputError(f"expected a script, got {quote(value)}", path="script", hint=hint)
    return _checked(_converted(dict(value)))


def _plain(script: Script) -> Any:
    """Values of any type can be put into a script by hand: as plain values they are checked like any others."""
    try:
        return msgspec.to_builtins(script)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a script has plain values only: {error}") from None


def _converted(value: dict[Any, Any]) -> Script:
    _check_keys(value, Script, "$")
    try:
        return msgspec.convert(value, Script)
    except (msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
        message, _, place = str(error).partition(" - at `")
        path = place.rstrip("`") or "$"
        kind, is_enum, given = message.partition("Invalid enum value ")
        if is_enum and not kind:
            hint = one_of(given.strip("'"), get_args(StopReason))
            raise InputError(f"there is no reason to stop {given}", path=path, hint=hint) from None
        raise InputError(_in_words(message), path=path, hint="see docs/simulator.md") from None


def _in_words(message: str) -> str:
    """The types of an error as people call them."""
    spoken = re.sub(r"`([a-z |]+)`", lambda found: " or ".join(map(_type_in_words, found[1].split(" | "))), message)
    return spoken[:1].lower() + spoken[1:]


def _type_in_words(name: str) -> str:
    return _TYPES.get(name, name)


def _check_keys(value: Any, part: type[Struct], path: str) -> None:
    """Every key is one that is known; types are checked later."""
    known = _KEYS.get(part, part.__struct_fields__)
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        if key not in known:
            raise InputError(f"there is no key {quote(key)} here", path=path, hint=one_of(key, known))
        below = _PARTS.get(part, {}).get(key)
        if below is None:
            continue
        _check_keys(inner, below, f"{path}.{key}")
        for place, entry in enumerate(inner if isinstance(inner, list | tuple) else ()):
            _check_keys(entry, below, f"{path}.{key}[{place}]")


# --- what types do not say --------------------------------------------------------------------------


def _checked(script: Script) -> Script:
    if len(script.rules) > MOST_RULES:
        raise InputError(f"more than {MOST_RULES} rules", path="$.rules")
    whole(script.chunk, "$.chunk", least=1)
    whole(script.bytes, "$.bytes")
    number(script.pace, "$.pace", LONGEST_PACE)
    for place, key in enumerate(script.keys):
        if not key.strip():
            raise InputError("expected a key that is not empty", path=f"$.keys[{place}]")
    for place, rule in enumerate(script.rules):
        _check_rule(rule, f"$.rules[{place}]")
    return script


def _check_rule(rule: ScriptRule, path: str) -> None:
    if rule.times is not None:
        whole(rule.times, f"{path}.times", least=1)
    if rule.reply is None and not rule.replies and rule.fault == "":
        raise InputError("a rule has a reply, replies or a fault", path=path)
    if rule.reply is not None and rule.replies:
        raise InputError("a rule has a reply or replies, not both", path=path)
    if rule.fault != "":
        read_fault(rule.fault, path=f"{path}.fault")
    if rule.reply is not None:
        _check_reply(rule.reply, f"{path}.reply")
    for place, reply in enumerate(rule.replies):
        _check_reply(reply, f"{path}.replies[{place}]")
    _check_when(rule.when, f"{path}.when")


def _check_when(when: When, path: str) -> None:
    for name, count in (("results", when.results), ("turn", when.turn)):
        if count is not None:
            whole(count, f"{path}.{name}")
    if when.provider is not None and when.provider not in _TARGETS:
        meant = _meant(when.provider)
        close = (meant,) if meant in _TARGETS else None
        raise unknown_name("provider", when.provider, _TARGETS, suggestions=close, path=f"{path}.provider")
    if when.matches is not None:
        try:
            re.compile(when.matches)
        except (re.error, RecursionError, OverflowError) as error:
            raise InputError(f"not a regular expression: {error}", path=f"{path}.matches") from None


def _meant(provider: str) -> str:
    """The target that a name stands for elsewhere: `google` is gemini."""
    try:
        return profiles.get(provider).name
    except InputError:
        return provider


def _check_reply(reply: ReplySpec, path: str) -> None:
    calls = reply.calls
    if isinstance(calls, int):
        whole(calls, f"{path}.calls", MOST_CALLS)
    elif len(calls) > MOST_CALLS:
        raise InputError(f"expected at most {MOST_CALLS} calls", path=f"{path}.calls")
    else:
        for place, call in enumerate(calls):
            _check_json(call, f"{path}.calls[{place}].arguments")
    for name in _COUNTS if reply.usage is not None else ():
        count = getattr(reply.usage, name)
        if count is not None:
            whole(count, f"{path}.usage.{name}", LARGEST**2)


def _check_json(call: CallSpec, path: str) -> None:
    """YAML and TOML have values that JSON has not, such as dates; a text is sent as it is."""
    if isinstance(call.arguments, str):
        return
    changes = clone(call.arguments, path=path, text=str).changes
    if changes:
        hint = "put it in quotes, if a text is meant"
        raise InputError(f"not a value of JSON: {changes[0].reason}", path=changes[0].path, hint=hint)


def notes_of(script: Script) -> tuple[str, ...]:
    """What is allowed, but is hardly meant: rules that are never reached."""
    notes: list[str] = []
    holds: dict[When, int] = {}
    for place, rule in enumerate(script.rules):
        before = holds.get(When(), holds.get(rule.when))
        if before is not None:
            fits = "fits every request" if script.rules[before].when == When() else "fits the same requests"
            notes.append(f"rules[{place}] is never reached: rules[{before}] before it {fits}")
        elif rule.times is None:
            holds[rule.when] = place
    return tuple(notes)


# --- files ------------------------------------------------------------------------------------------


def read_script(path: str | os.PathLike[str]) -> Script:
    """The script of a file: JSON, TOML or YAML, by its name."""
    name = str(os.fspath(path))
    try:
        with Path(name).open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = "the name of a file; or give the script as a value, not as a text"
        raise InputError(f"cannot be read: {reason}", path=name, hint=hint) from None
    if len(data) > MOST_BYTES:
        raise InputError(f"larger than {MOST_BYTES} bytes", path=name)
    value = _value(data, name)
    if not isinstance(value, dict):
        raise InputError(f"expected an object with rules, got {quote(value)}", path=name)
    try:
        return script_of(value)
    except InputError as error:
        raise InputError(error.message, path=f"{name}: {error.path}", hint=error.hint) from None


def _value(data: bytes, name: str) -> Any:
    ending = Path(name).suffix.lower()
    try:
        if ending in (".yaml", ".yml"):
            return _yaml(data, name)
        if ending == ".toml":
            return tomllib.loads(data.decode())
        return parse(data, path=name).value
    except InputError as error:
        hint = error.hint if ending in (".yaml", ".yml") else "a script is JSON, or .toml or .yaml by its name"
        raise InputError(error.message, path=error.path, hint=hint) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", path=name, hint="this is not TOML") from None


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
