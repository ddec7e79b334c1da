"""What the simulator is told to answer: a list of rules, of which the first that fits a request holds.

    rules:
      - when: {provider: anthropic, contains: weather, results: 0}
        reply: {thinking: "I look it up.", calls: [{name: get_weather, arguments: {city: Bonn}}]}
      - when: {results: 1}
        times: 1
        fault: "429,retry_after=2"

A script is a value, or a file of JSON, TOML or YAML. Law: what it does not understand, it refuses, and says where.
A request that no rule fits is answered by the default script (`default_script.py`).
"""

from __future__ import annotations

import importlib
import os
import re
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.conversation import StopReason, Usage
from toolglot.errors import InputError, quote
from toolglot.jsontext import parse
from toolglot.simulator.ask import Ask
from toolglot.simulator.faults import read_fault

MOST_RULES: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024
LONGEST_TEXT: Final = 20_000
"""Characters of a text that a pattern is tried on."""
MOST_CALLS: Final = 128
LONGEST_PACE: Final = 60.0


class Spec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a script."""


class CallSpec(Spec, frozen=True):
    """A call that the model makes."""

    name: str
    arguments: dict[str, Any] | str | None = None
    """An object; a text that is written as it is, JSON or not; none: made to satisfy the tool's schema."""


class ReplySpec(Spec, frozen=True):
    """What the model answers."""

    text: str | None = None
    thinking: str | None = None
    """Said where the provider has a place for it, signed where it signs."""
    calls: tuple[CallSpec, ...] | int = ()
    """The calls; a number: so many, of the tools that the request has."""
    stop: StopReason | None = None
    """None: as the calls have it."""
    usage: Usage | None = None


class When(Spec, frozen=True):
    """Which requests a rule is for. What is not said holds for all."""

    provider: str | None = None
    model: str | None = None
    """A pattern as of file names: `claude-*`."""
    contains: str | None = None
    """A part of what the user said last, in any case."""
    matches: str | None = None
    """A regular expression that is found in what the user said last."""
    tool: str | None = None
    """The name of a tool that the request has."""
    results: int | None = None
    """How many results there are since the user spoke."""
    turn: int | None = None
    """How often the user has spoken."""
    stream: bool | None = None

    def fits(self, ask: Ask) -> bool:
        return self._fits_place(ask) and self._fits_words(ask) and self._fits_state(ask)

    def _fits_place(self, ask: Ask) -> bool:
        return (
            self.provider in (None, ask.provider, ask.target)
            and (self.model is None or fnmatchcase(ask.model, self.model))
            and self.stream in (None, ask.wants_stream)
        )

    def _fits_words(self, ask: Ask) -> bool:
        said = ask.said[:LONGEST_TEXT]
        return (self.contains is None or self.contains.lower() in said.lower()) and (
            self.matches is None or re.search(self.matches, said) is not None
        )

    def _fits_state(self, ask: Ask) -> bool:
        return (
            self.results in (None, len(ask.results))
            and self.turn in (None, ask.turn)
            and (self.tool is None or any(tool.name == self.tool for tool in ask.conversation.tools))
        )


class Rule(Spec, frozen=True):
    """What is answered to the requests that it fits."""

    when: When = When()
    reply: ReplySpec | None = None
    """None: what the default script says."""
    fault: str = ""
    """What goes wrong, as `faults.py` reads it."""
    times: int | None = None
    """How often the rule may be used; None: always."""


class Script(Spec, frozen=True):
    """Rules, and how answers are given."""

    rules: tuple[Rule, ...] = ()
    seed: int = 0
    """Another one gives other ids and signatures."""
    chunk: int = 24
    """Characters of a delta."""
    pace: float = 0.0
    """Seconds between the events of a stream."""
    bytes: int = 0
    """Bytes of a piece of a stream; 0: an event a piece."""
    keys: tuple[str, ...] = ()
    """API keys that are accepted; none: every key that is not empty."""


def script_of(value: Script | Mapping[str, Any]) -> Script:
    """A script from its plain value, checked."""
    if isinstance(value, Script):
        return _checked(value)
    try:
        script = msgspec.convert(dict(value), Script)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `")
        raise InputError(message, path=place.rstrip("`") or "$", hint="see docs/simulator.md") from None
    return _checked(script)


def _checked(script: Script) -> Script:
    if len(script.rules) > MOST_RULES:
        raise InputError(f"more than {MOST_RULES} rules", path="$.rules")
    if script.chunk < 1 or script.bytes < 0 or not 0 <= script.pace <= LONGEST_PACE:
        hint = f"chunk from 1, bytes from 0, pace from 0 to {LONGEST_PACE:.0f} seconds"
        raise InputError("a number is out of its range", path="$", hint=hint)
    for place, rule in enumerate(script.rules):
        _check_rule(rule, f"$.rules[{place}]")
    return script


def _check_rule(rule: Rule, path: str) -> None:
    if rule.times is not None and rule.times < 1:
        raise InputError("expected a number from 1", path=f"{path}.times")
    if rule.reply is None and not rule.fault:
        raise InputError("a rule has a reply or a fault", path=path)
    calls = rule.reply.calls if rule.reply is not None else 0
    if (calls if isinstance(calls, int) else len(calls)) not in range(MOST_CALLS + 1):
        raise InputError(f"expected at most {MOST_CALLS} calls", path=f"{path}.reply.calls")
    if rule.fault:
        read_fault(rule.fault, path=f"{path}.fault")
    if rule.when.matches is not None:
        try:
            re.compile(rule.when.matches)
        except re.error as error:
            raise InputError(f"not a regular expression: {error}", path=f"{path}.when.matches") from None


# --- files ------------------------------------------------------------------------------------------


def read_script(path: str | os.PathLike[str]) -> Script:
    """The script of a file: JSON, TOML or YAML, by its name."""
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=name) from None
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
        return tomllib.loads(data.decode()) if ending == ".toml" else parse(data).value
    except InputError as error:
        raise InputError(error.message, path=name, hint=error.hint) from None
    except ValueError as error:
        raise InputError(f"cannot be read: {error}", path=name, hint="JSON, or .toml, .yaml by its name") from None


def _yaml(data: bytes, name: str) -> Any:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        hint = "pip install 'toolglot[simulator]', or write the script in JSON or TOML"
        raise InputError("a script in YAML needs PyYAML, which is not installed", path=name, hint=hint) from None
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"not YAML: {reason}", path=name) from None
