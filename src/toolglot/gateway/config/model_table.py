"""The `[models]` of a configuration: the names that clients use, and the upstreams that get them.

    opus = "anthropic/claude-opus-5"                                     one upstream
    fast = ["groq/llama-3.3-70b", "cerebras/llama-3.3-70b"]              the next one if one fails
    even = { to = ["a/gpt-5.5", "b/gpt-5.5"], weights = [3, 1] }         each conversation to one of them, by weight
    turn = { to = ["a/gpt-5.5", "b/gpt-5.5"], each = "request" }         each request to the next one
    calm = { to = "a/gpt-5.5", force = { temperature = 0 } }             with settings of its own (`route_table.py`)

Law: after reading, every entry leads to an upstream that exists, or to a simulated model that it names. Names that lead
to other names are followed here, so that a circle is an error of the file and not of a request.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, Final, get_args

from toolglot.errors import closest_names, quote
from toolglot.gateway.config.file import ConfigError, Mistakes, table_of, unknown_key
from toolglot.gateway.config.route_table import NOTHING, ROUTE_SETTINGS, CheckedTable, RouteReader
from toolglot.masking import mask
from toolglot.simulator.simulated_upstreams import SIMULATED_NAMES
from toolglot.upstream.routing.model_names import (
    REQUESTED,
    SIMULATED,
    Destination,
    is_pattern,
    is_tier,
    split_prefix,
)
from toolglot.upstream.routing.routes import Each, EntryKind, ModelEntry

MAX_ENTRIES: Final = 1000
MAX_NAME_LENGTH: Final = 200
MAX_TARGETS: Final = 20
_SPREAD: Final = ("weights", "each")
_TABLE: Final = ("to", *_SPREAD, *ROUTE_SETTINGS)
_TARGET: Final = ("to", *ROUTE_SETTINGS)
MAX_WEIGHT: Final = 1_000_000


def read_models(
    value: Any, upstreams: Mapping[str, Collection[str]], *, simulate: bool, routes: RouteReader
) -> tuple[ModelEntry, ...]:
    """The entries in the order of the file. `upstreams` are the known ones, with the models that each lists."""
    text = routes.text
    table = table_of(value, text, "models")
    if len(table) > MAX_ENTRIES:
        raise text.error(f"more than {MAX_ENTRIES} entries", "models", hint="use patterns")
    reader = _Reader(table, upstreams, simulate, routes)
    mistakes = Mistakes()
    entries = [mistakes.collect(functools.partial(reader.entry, name)) for name in table]
    mistakes.raise_all()
    return tuple([entry for entry in entries if entry is not None])


def kind_of(name: str) -> EntryKind:
    if name == REQUESTED:
        return "rest"
    if is_pattern(name):
        return "pattern"
    return "tier" if is_tier(name) else "name"


class _Reader:
    """Reads all entries, and follows each name to its destination."""

    def __init__(
        self, table: dict[str, Any], upstreams: Mapping[str, Collection[str]], simulate: bool, routes: RouteReader
    ) -> None:
        self.text = routes.text
        self.routes = routes
        self.upstreams = upstreams
        self.simulate = simulate
        self.targets: dict[str, tuple[str, ...]] = {}
        self.weights: dict[str, tuple[float, ...]] = {}
        self.each: dict[str, Each] = {}
        self.route_tables: dict[str, tuple[CheckedTable, ...]] = {}
        """The settings of each name, for each of its targets."""
        self.names: dict[str, str] = {}
        """The names of the file by their lowercase form."""
        mistakes = Mistakes()
        for name, value in table.items():
            mistakes.collect(functools.partial(self._read, name, value))
        mistakes.raise_all()

    def _read(self, name: str, value: Any) -> None:
        self._check_name(name)
        targets = self._targets(name, value)
        self._check(name, targets)
        self.targets[name] = targets
        self.names[name.lower()] = name

    def _targets(self, name: str, value: Any) -> tuple[Any, ...]:
        """The targets of a name: one, a list of them, or a table with `to`."""
        table = value if isinstance(value, dict) else {"to": value}
        self._check_keys(table, _TABLE, "models", name)
        to = table.get("to")
        own = self.routes.read({key: value for key, value in table.items() if key in ROUTE_SETTINGS}, "models", name)
        found = [self._target(name, each) for each in (to if isinstance(to, list) else [to])]
        self.route_tables[name] = tuple([more.over(own) for _, more in found])
        if isinstance(to, list) and any(key in table for key in _SPREAD):
            self._read_weights(name, table, len(found))
        elif any(key in table for key in _SPREAD):
            hint = 'write to = ["a/model", "b/model"]'
            raise self.text.error("weights and each need several targets", "models", name, hint=hint)
        return tuple([target for target, _ in found])

    def _target(self, name: str, value: Any) -> tuple[Any, CheckedTable]:
        """One target, and its own settings."""
        if not isinstance(value, dict):
            return value, NOTHING
        self._check_keys(value, _TARGET, "models", name)
        settings = self.routes.read({key: each for key, each in value.items() if key != "to"}, "models", name)
        return value.get("to"), settings

    def _read_weights(self, name: str, table: dict[str, Any], count: int) -> None:
        if table.get("each", "conversation") not in get_args(Each):
            raise self.text.error('expected each = "conversation" or "request"', "models", name)
        self.each[name] = table.get("each", "conversation")
        weights = table.get("weights", [1] * count)
        if not (isinstance(weights, list) and len(weights) == count and all(map(_is_weight, weights))):
            hint = 'write { to = ["a/model", "b/model"], weights = [3, 1] }: a number above 0 for each, '
            hint += f"at most {MAX_WEIGHT}"
            raise self.text.error("expected one weight for each target", "models", name, hint=hint)
        self.weights[name] = tuple(map(float, weights))

    def _check_keys(self, table: dict[str, Any], known: tuple[str, ...], *at: str) -> None:
        for key in table:
            if key not in known:
                raise unknown_key(key, list(known), self.text, *at)

    def _check_name(self, name: str) -> None:
        if not _is_name(name):
            hint = f"at most {MAX_NAME_LENGTH} characters, without spaces"
            raise self.text.error("not the name of a model", "models", name, hint=hint)
        if name.lower() in self.names:
            raise self.text.error(
                "duplicate name: upper and lower case are the same", "models", name, hint="remove one"
            )

    def _check(self, name: str, targets: tuple[Any, ...]) -> None:
        if len(targets) > MAX_TARGETS:
            raise self.text.error(f"more than {MAX_TARGETS} targets", "models", name, hint="remove some")
        if not targets or not all(isinstance(target, str) and _is_name(target) for target in targets):
            hint = f'write it like "openai/gpt-5.5"{self._known()}'
            raise self.text.error("expected an upstream and a model", "models", name, hint=hint)

    def entry(self, name: str) -> ModelEntry:
        followed = [self._follow(name, *each) for each in zip(self.targets[name], self.route_tables[name], strict=True)]
        ends = [end for end, _ in followed]
        if len(set(ends)) < len(ends):
            hint = "list each upstream and model once"
            raise self.text.error("two targets lead to the same model", "models", name, hint=hint)
        settings = tuple([table.settings(name, self.routes.policy) for _, table in followed])
        return ModelEntry(
            name,
            kind_of(name),
            tuple(ends),
            self.weights.get(name, ()),
            self.each.get(name, "conversation"),
            settings if any(settings) else (),
        )

    def _follow(self, name: str, target: str, table: CheckedTable) -> tuple[Destination, CheckedTable]:
        """The destination of a target, and its settings."""
        seen = {name: 0}
        while (following := self.names.get(target.lower())) is not None and not is_pattern(following):
            if following in seen:
                circle = " → ".join(quote(step) for step in [*list(seen)[seen[following] :], following])
                message = f"these names lead to each other: {circle}"
                raise self.text.error(
                    message, "models", name, hint=f"let one of them lead to an upstream: {self._hint()}"
                )
            seen[following] = len(seen)
            if len(self.targets[following]) > 1:
                hint = "write the upstream and the model instead"
                message = f"{quote(following)} has several targets, so that only clients can use it"
                raise self.text.error(message, "models", name, hint=hint)
            (target,), (more,) = self.targets[following], self.route_tables[following]
            table = table.over(more)
        return self._destination(name, target), table

    def _destination(self, name: str, target: str) -> Destination:
        found = split_prefix(target, self.upstreams)
        if found is None and self.simulate:
            found = SIMULATED_NAMES.model(target)
        if found is None:
            raise self._unknown_target(name, target)
        if found.model != REQUESTED and is_pattern(found.model):
            hint = f'write one model, or "{found.upstream}/*" for the model that the client names'
            raise self.text.error(f"{_shown(target)} is a pattern, not a model", "models", name, hint=hint)
        return found

    def _unknown_target(self, name: str, target: str) -> ConfigError:
        head = target.partition("/")[0]
        if head.lower() == SIMULATED and not self.simulate:
            hint = "simulate = false in [gateway] forbids simulated models"
        elif head.lower() == SIMULATED:
            hint = f'a simulated model is written like "{SIMULATED}/openai/gpt-5.5"'
        elif listing := [known for known, models in self.upstreams.items() if target in models]:
            hint = f'write "{listing[0]}/{target}"'
        else:
            close = closest_names(head, self.upstreams)
            guess = f"did you mean {close[0]}/…? " if close else ""
            hint = guess + self._hint()
            if self.simulate and SIMULATED_NAMES.provider(head):
                hint += f'; a simulated model is written "{SIMULATED}/{target}"'
        return self.text.error(f"{_shown(target)} names no upstream", "models", name, hint=hint)

    def _hint(self) -> str:
        return f'a target is written like "openai/gpt-5.5"{self._known()}'

    def _known(self) -> str:
        known = ", ".join(self.upstreams)
        return f"; upstreams of this file: {known}" if known else "; this file has no [upstreams.NAME] yet"


def _is_weight(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_WEIGHT


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_LENGTH and name.isprintable() and not any(letter.isspace() for letter in name)


def _shown(target: str) -> str:
    return quote(mask(target))
