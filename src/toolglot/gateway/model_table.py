"""The `[models]` of a configuration: what clients ask for, and who gets it.

    opus = "anthropic/claude-opus-5"                                     one upstream
    fast = ["groq/llama-3.3-70b", "cerebras/llama-3.3-70b"]              the next one where one fails
    even = { to = ["a/gpt-5.5", "b/gpt-5.5"], weights = [3, 1] }         each conversation to one of them, by weight
    turn = { to = ["a/gpt-5.5", "b/gpt-5.5"], each = "request" }         each request to the next one

Law: once it is read, every entry leads to an upstream that exists, or to a stand-in where those are on. Names that
stand for other names are followed here, so that a circle is found when the file is read and not by a request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from toolglot.errors import quote
from toolglot.gateway.config_file import ConfigError, ConfigText, nearest, table_of, unknown
from toolglot.gateway.model_names import (
    ASKED,
    SIMULATED,
    Destination,
    is_pattern,
    is_tier,
    prefixed,
    simulated_prefix,
)
from toolglot.wire.masking import mask

MOST_ENTRIES: Final = 1000
LONGEST_NAME: Final = 200
MOST_TARGETS: Final = 20
_TABLE: Final = ("to", "weights", "each")
MOST_WEIGHT: Final = 1_000_000

Each = Literal["conversation", "request"]
EntryKind = Literal["name", "tier", "pattern", "rest"]
"""`tier`: the name itself, and every name that has it as a word. `rest`: `*`, whatever nothing else serves."""


class ModelEntry(Struct, frozen=True):
    """A line of `[models]`."""

    name: str
    """As it is written there."""
    kind: EntryKind
    destinations: tuple[Destination, ...]
    """The first that answers; at least one."""
    weights: tuple[float, ...] = ()
    """How conversations are spread over the destinations; none: they are asked in their order."""
    each: Each = "conversation"
    """What is spread: whole conversations, or every request for itself."""

    @property
    def destination(self) -> Destination:
        return self.destinations[0]


def read_models(
    value: Any, upstreams: Mapping[str, Collection[str]], *, simulate: bool, text: ConfigText
) -> tuple[ModelEntry, ...]:
    """The entries in the order of the file. `upstreams` are the known ones, with the models that each lists."""
    table = table_of(value, text, "models")
    if len(table) > MOST_ENTRIES:
        raise text.error(f"more than {MOST_ENTRIES} entries", "models", hint="use patterns")
    reader = _Reader(table, upstreams, simulate, text)
    return tuple(reader.entry(name) for name in table)


def kind_of(name: str) -> EntryKind:
    if name == ASKED:
        return "rest"
    if is_pattern(name):
        return "pattern"
    return "tier" if is_tier(name) else "name"


class _Reader:
    """Follows each name to its end."""

    def __init__(
        self, table: dict[str, Any], upstreams: Mapping[str, Collection[str]], simulate: bool, text: ConfigText
    ) -> None:
        self.text = text
        self.upstreams = upstreams
        self.simulate = simulate
        self.targets: dict[str, tuple[str, ...]] = {}
        self.weights: dict[str, tuple[float, ...]] = {}
        self.each: dict[str, Each] = {}
        self.names: dict[str, str] = {}
        """The names of the file by how they are compared."""
        for name, value in table.items():
            targets = self._targets(name, value)
            self._check(name, targets)
            self.targets[name] = targets
            self.names[name.lower()] = name

    def _targets(self, name: str, value: Any) -> tuple[str, ...]:
        """What stands behind a name: one target, a list of them, or a table with their weights."""
        if not isinstance(value, dict):
            return tuple(value) if isinstance(value, list) else (value,)
        for key in value:
            if key not in _TABLE:
                raise unknown(key, list(_TABLE), self.text, "models", name)
        if value.get("each", "conversation") not in get_args(Each):
            raise self.text.error('expected each = "conversation" or "request"', "models", name)
        self.each[name] = value.get("each", "conversation")
        to = value.get("to")
        targets = tuple(to) if isinstance(to, list) else ()
        weights = value.get("weights", [1] * len(targets))
        is_fit = isinstance(weights, list) and len(weights) == len(targets) and all(map(_is_weight, weights))
        if not targets or not is_fit:
            hint = 'write { to = ["a/model", "b/model"], weights = [3, 1] }: a number above 0 for each'
            raise self.text.error("expected targets and as many weights", "models", name, hint=hint)
        self.weights[name] = tuple(map(float, weights))
        return targets

    def _check(self, name: str, targets: tuple[Any, ...]) -> None:
        if not _is_name(name):
            hint = f"at most {LONGEST_NAME} characters, none of them a blank"
            raise self.text.error("this is no name of a model", "models", name, hint=hint)
        if name.lower() in self.names:
            raise self.text.error("this name is there twice: case does not count", "models", name, hint="leave one out")
        if len(targets) > MOST_TARGETS:
            raise self.text.error(f"more than {MOST_TARGETS} targets", "models", name, hint="leave some out")
        if not targets or not all(isinstance(target, str) and _is_name(target) for target in targets):
            hint = f'write it like "openai/gpt-5.5"{self._known()}'
            raise self.text.error("expected the upstream and the model that get it", "models", name, hint=hint)

    def entry(self, name: str) -> ModelEntry:
        ends = dict.fromkeys(self._destination(name, target) for target in self.targets[name])
        weights = self.weights.get(name, ())
        if len(ends) < len(self.targets[name]):
            hint = "the same upstream and model may be there once"
            raise self.text.error("two of these lead to the same", "models", name, hint=hint)
        return ModelEntry(name, kind_of(name), tuple(ends), weights, self.each.get(name, "conversation"))

    def _destination(self, name: str, target: str) -> Destination:
        seen = {name: 0}
        while (following := self.names.get(target.lower())) is not None and not is_pattern(following):
            if following in seen:
                circle = " → ".join(quote(step) for step in [*list(seen)[seen[following] :], following])
                message = f"these names stand for each other: {circle}"
                raise self.text.error(
                    message, "models", name, hint=f"let one of them lead to an upstream: {self._hint()}"
                )
            seen[following] = len(seen)
            if len(self.targets[following]) > 1:
                hint = "write the upstream and the model instead"
                message = f"{quote(following)} leads to several, which only a client may ask for"
                raise self.text.error(message, "models", name, hint=hint)
            (target,) = self.targets[following]
        return self._end(name, target)

    def _end(self, name: str, target: str) -> Destination:
        found = prefixed(target, self.upstreams)
        if found is None and self.simulate:
            found = simulated_prefix(target, self.upstreams)
        if found is None:
            raise self._nowhere(name, target)
        if found.model != ASKED and is_pattern(found.model):
            hint = f'write one model, or "{found.upstream}/*" for the one that was asked for'
            raise self.text.error(f"{_shown(target)} is a pattern and not a model", "models", name, hint=hint)
        return found

    def _nowhere(self, name: str, target: str) -> ConfigError:
        head = target.partition("/")[0]
        if head.lower() == SIMULATED and not self.simulate:
            hint = "set simulate = true in [gateway]"
        elif listing := [known for known, models in self.upstreams.items() if target in models]:
            hint = f'write "{listing[0]}/{target}"'
        else:
            close = nearest(head, list(self.upstreams))
            guess = f"did you mean {close[0]}/…? " if close else ""
            hint = guess + self._hint()
        return self.text.error(f"{_shown(target)} names no upstream", "models", name, hint=hint)

    def _hint(self) -> str:
        return f'a target is written like "openai/gpt-5.5"{self._known()}'

    def _known(self) -> str:
        known = ", ".join(self.upstreams)
        return f"; upstreams of this file: {known}" if known else "; this file has no [upstreams.NAME] yet"


def _is_weight(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_WEIGHT


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and not any(letter.isspace() for letter in name)


def _shown(target: str) -> str:
    return quote(mask(target))
