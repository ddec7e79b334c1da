"""Which tool a simulated model calls for a prompt, and with which arguments.

It is the tool that shares the largest number of words with the prompt: in its name, which counts more, and in the
beginning of its description. A tool that changes something is called only if the prompt wants a change, one that
starts other agents only if the prompt names it. Arguments come from the prompt if possible (`prompt_cues.py`),
else from the schema (`sample_arguments.py`): required ones always get a value, optional ones only on a cue.

Law: arguments agree with their schema; the same prompt and tools give the same calls; work is bounded by the number of
tools and `MAX_TRIED` schemas.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from toolglot.arguments import Validator
from toolglot.conversation import ToolSpec
from toolglot.errors import InputError
from toolglot.jsontext import local_reference
from toolglot.simulator.scripts import prompt_cues
from toolglot.simulator.scripts.prompt_cues import MAX_VALUES, UserPrompt
from toolglot.simulator.scripts.sample_arguments import Schema, kind_of, sample

MAX_TRIED: Final = 8
"""Tools whose arguments are tried, the best first."""
MAX_ARGUMENTS: Final = 48
"""Properties of a schema that are filled from a prompt."""
DESCRIPTION: Final = 200
"""Characters of a description that are read: its beginning says what the tool is for."""
_NAME_WEIGHT: Final = 24
_SHELL_SCORE: Final = 15
"""A shell comes before a tool whose name matches by half, and after one whose name matches."""
_ENOUGH_WORDS: Final = 2
"""Words that prompt and description must share if prompt and name share none."""
_SIMILAR: Final = frozenset(map(prompt_cues.stem, ("write", "edit")))
"""Either may do the work of the other."""


class FilledArguments(Struct, frozen=True):
    """Arguments for a tool."""

    arguments: dict[str, Any]
    guessed: tuple[str, ...] = ()
    """Required ones that the prompt does not have, and that are not a number, a boolean or a default."""


class Picker:
    """Chooses among the tools of a request for one prompt."""

    def __init__(self, prompt: UserPrompt, directory: str) -> None:
        self.prompt = prompt
        self.directory = directory

    def rank(self, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
        """The tools that fit the prompt, the best first."""
        scored = [(self._score(tool), tool) for tool in tools]
        return [tool for score, tool in sorted(scored, key=lambda pair: -pair[0]) if score > 0]

    def _score(self, tool: ToolSpec) -> int:
        if prompt_cues.starts_agents(tool.name) and not self._is_named(tool.name):
            return 0
        words = self.prompt.words
        name = prompt_cues.words_of(tool.name[:DESCRIPTION])
        shared = len(name & words)
        described = len(prompt_cues.words_of((tool.description or "")[:DESCRIPTION]) & words)
        if f" {tool.name} " in f" {self.prompt.wanted} ":
            return _NAME_WEIGHT * (len(name) + 1) + described
        if self._does_otherwise(tool.name):
            return 0
        score = _NAME_WEIGHT * shared * shared // max(len(name), 1)
        if self.prompt.command and _takes_command(tool):
            score = max(score, _SHELL_SCORE)
        return score + described if score or described >= _ENOUGH_WORDS else 0

    def _is_named(self, name: str) -> bool:
        """Whether the prompt has the name of a tool: as it is written, or all its words if there are several."""
        if re.search(rf"(?<!\w){re.escape(name[:DESCRIPTION])}(?![\w:])", self.prompt.plain):
            return True
        words = prompt_cues.words_of(name[:DESCRIPTION])
        return len(words) > 1 and words <= prompt_cues.words_of(self.prompt.plain)

    def _does_otherwise(self, name: str) -> bool:
        """Whether a tool changes something and the prompt only reads, or the other way round."""
        does, wanted = prompt_cues.actions_of(name), self.prompt.actions
        does |= _SIMILAR if does & _SIMILAR else frozenset()
        return bool(does) and not does & wanted and bool((does | wanted) & prompt_cues.CHANGES)

    def fill(self, schema: Schema | None) -> list[FilledArguments]:
        """Arguments for a schema, one set for each file or URL of the prompt; none if nothing satisfies it."""
        arguments = sample(schema)
        if arguments is None:
            return []
        return list(self._fill_each(schema or {}, arguments))

    def _fill_each(self, schema: Schema, arguments: dict[str, Any]) -> Iterator[FilledArguments]:
        values = _Values(self.prompt, schema, self.directory)
        required = [name for name in arguments if name in _names(schema.get("required"))]
        try:
            validator = Validator(schema)
            found = values.fill(arguments, required, validator)
        except InputError:
            yield FilledArguments(arguments)
            return
        guessed = tuple(name for name in required if name not in found and values.is_free(name))
        yield FilledArguments(arguments, guessed)
        for one in values.others(found):
            other = {**arguments, **one}
            if not validator.mismatches(other):
                yield FilledArguments(other, guessed)


class _Values:
    """Values for the arguments of one tool."""

    def __init__(self, prompt: UserPrompt, schema: Schema, directory: str) -> None:
        self.prompt = prompt
        self.directory = directory
        self.root = schema
        table = schema.get("properties")
        properties = table if isinstance(table, dict) else {}
        self.properties = {name: self._resolve(part) for name, part in list(properties.items())[:MAX_ARGUMENTS]}
        self._used: set[str] = set()

    def fill(self, arguments: dict[str, Any], required: Sequence[str], validator: Validator) -> set[str]:
        """Put values of the prompt into arguments if the schema allows them. Returns the names of these arguments."""
        found: set[str] = set()
        order = [*(name for name in required if name in self.properties), *self.properties]
        for name in dict.fromkeys(order):
            for value in self._candidates(name, is_required=name in required):
                if not validator.mismatches({**arguments, name: value}):
                    arguments[name] = value
                    self._used |= {value} if isinstance(value, str) else set()
                    found.add(name)
                    break
        return found

    def others(self, found: set[str]) -> Iterator[dict[str, Any]]:
        """The same argument for each further file or URL: several calls of a tool that takes one."""
        for cues, values in ((prompt_cues.PATH, self.prompt.paths), (prompt_cues.URL, self.prompt.urls)):
            names = [name for name in found if prompt_cues.last_word(name) in cues and self._is(name, "string")]
            if len(names) == 1 and not any(self._is(name, "array") for name in found):
                paths = {self._full_path(names[0], value): value for value in values}
                yield from ({names[0]: whole} for whole, value in paths.items() if not {whole, value} & self._used)

    def is_free(self, name: str) -> bool:
        """Whether a guess for it would add something that the user did not write."""
        schema = self.properties.get(name, {})
        is_known = any(key in schema for key in ("const", "enum", "default"))
        return not is_known and not ({"number", "integer", "boolean", "null"} & set(_kinds(schema)))

    def _is(self, name: str, kind: str) -> bool:
        return kind in _kinds(self.properties[name])

    # --- values of each kind ------------------------------------------------------------------------

    def _candidates(self, name: str, *, is_required: bool) -> Iterator[Any]:
        schema = self.properties[name]
        kinds = _kinds(schema)
        named = self.prompt.named_value(name)
        choices = _choices(schema)
        if choices:
            words = prompt_cues.words_of(self.prompt.text) | {named.lower()}
            yield from (choice for choice in choices if _is_chosen(choice, words, self.prompt.wanted))
            return
        if "boolean" in kinds:
            yield from self._booleans(name, named, is_required=is_required)
        if "number" in kinds or "integer" in kinds:
            yield from self._numbers(name, is_required=is_required)
        if "array" in kinds:
            yield from self._arrays(name, is_required=is_required)
        if "string" in kinds:
            yield from [named] if named else []
            yield from (text for text in self._strings(name, is_required=is_required) if text not in self._used)

    def _booleans(self, name: str, named: str, *, is_required: bool) -> Iterator[bool]:
        if named.lower() in ("true", "yes", "on", "false", "no", "off"):
            yield named.lower() in ("true", "yes", "on")
        words = prompt_cues.words_of(name)
        if words and words <= prompt_cues.words_of(self.prompt.wanted):
            yield True
        if is_required or (words and words <= prompt_cues.words_of(self.prompt.text)):
            yield False

    def _numbers(self, name: str, *, is_required: bool) -> Iterator[int | float]:
        beside = self.prompt.number_beside(name)
        if beside is not None:
            yield beside
        if is_required:
            yield from self.prompt.numbers

    def _arrays(self, name: str, *, is_required: bool) -> Iterator[list[Any]]:
        if not is_required:
            return
        items = self.properties[name].get("items")
        kinds = _kinds(self._resolve(items) if isinstance(items, dict) else {})
        cue = prompt_cues.last_word(name)
        if cue in prompt_cues.COMMAND and self.prompt.command:
            with contextlib.suppress(ValueError):  # an open quote
                yield shlex.split(self.prompt.command)
        elif "string" in kinds:
            values = [*dict.fromkeys(self._strings(name, is_required=True))][:MAX_VALUES]
            yield from ([values] if values else [])
        elif "number" in kinds or "integer" in kinds:
            yield from ([list(self.prompt.numbers), list(self.prompt.numbers[-1:])] if self.prompt.numbers else [])

    def _strings(self, name: str, *, is_required: bool) -> Iterator[str]:
        prompt, cue = self.prompt, prompt_cues.last_word(name)
        cues = {cue, *prompt_cues.words_of(name)} if cue == "path" else {cue}
        if cue in prompt_cues.COMMAND:
            yield from filter(None, [prompt.command])
        elif cues & prompt_cues.FOLDER:
            yield from (self._full_path(name, path) for path in prompt.paths)
            yield from [self._full_path(name, ".")] if is_required else []
        elif cue in prompt_cues.PATH:
            yield from (self._full_path(name, path) for path in prompt.paths)
        elif cue in prompt_cues.URL:
            yield from prompt.urls
        elif is_required:
            yield from (text for text in prompt.quoted if text not in prompt.paths)
            yield from filter(None, self._unquoted(cue))

    def _unquoted(self, cue: str) -> Iterator[str]:
        """Parts of the prompt that are not in quotes."""
        prompt = self.prompt
        if cue in prompt_cues.FORMULA:
            yield prompt.formula
        elif cue in prompt_cues.CONTENT:
            yield prompt.written
        elif cue in prompt_cues.QUERY:
            yield prompt.after("for", "about")
            yield prompt.wanted.strip().rstrip("?!. ")
        elif cue == "pattern":
            yield prompt.after("for")
        elif cue in prompt_cues.ORIGIN:
            yield prompt.after("from")
        elif cue in prompt_cues.GOAL:
            yield prompt.after("to")
        elif cue not in prompt_cues.QUOTED_ONLY:
            yield from prompt.names
            yield prompt.after("in", "for", "of", "about", "at", "on")

    def _full_path(self, name: str, path: str) -> str:
        """A path for an argument: absolute if its name or description says so."""
        description = self.properties[name].get("description")
        is_absolute = "absolute" in name.lower() or (
            isinstance(description, str) and "absolute" in description[:DESCRIPTION].lower()
        )
        return prompt_cues.join_path(self.directory, path) if is_absolute else path

    def _resolve(self, schema: Any) -> Schema:
        if isinstance(schema, dict) and "$ref" in schema:
            schema = local_reference(self.root, schema["$ref"])
        return schema if isinstance(schema, dict) else {}


def _takes_command(tool: ToolSpec) -> bool:
    properties = (tool.parameters or {}).get("properties")
    return isinstance(properties, dict) and any(name in prompt_cues.COMMAND for name in properties)


def _names(value: Any) -> frozenset[str]:
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()


def _kinds(schema: Schema) -> tuple[str, ...]:
    """The types that a schema allows, if it names them directly."""
    branches = [part for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list) for part in schema[key]]
    if branches and "type" not in schema:
        return tuple(kind_of(part) for part in branches[:MAX_VALUES] if isinstance(part, dict))
    types = schema.get("type")
    return tuple(str(kind) for kind in types[:MAX_VALUES]) if isinstance(types, list) else (kind_of(schema),)


def _choices(schema: Schema) -> list[Any]:
    found = schema.get("enum")
    return found[: MAX_VALUES * 8] if isinstance(found, list) else []


def _is_chosen(choice: Any, words: frozenset[str], text: str) -> bool:
    if not isinstance(choice, str) or not choice:
        return False
    parts = prompt_cues.words_of(choice)
    return choice in text.split() or (bool(parts) and parts <= words)
