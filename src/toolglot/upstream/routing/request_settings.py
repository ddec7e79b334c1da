"""The settings of a route, applied to a request: defaults for what the client left out, settings that replace the
client's, and a system prompt before the client's.

    conversation, entries = apply_settings(conversation, route.settings)

Laws: pure. If nothing changes, the same object is returned, so that the request is sent unchanged (3). Every change is
an entry (10). The renderer treats the result like any request of a client: what the target does not support becomes
the nearest thing that it does, and that is reported too (1).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict, replace

from toolglot.conversation import Conversation, Options, Reasoning, Text, ToolChoice, Turn
from toolglot.conversation.report import Action, Entry
from toolglot.errors import quote
from toolglot.upstream.settings import RequestSettings, RouteSettings

_SAMPLING: Final = (
    *("max_tokens", "temperature", "top_p", "top_k", "stop", "seed"),
    *("presence_penalty", "frequency_penalty"),
)
_REASONING: Final = {"reasoning_mode": "mode", "reasoning_effort": "effort", "reasoning_budget_tokens": "budget_tokens"}
_TOOLS: Final = {"tool_choice": "mode", "parallel_tool_calls": "parallel"}


def apply_settings(conversation: Conversation, settings: RouteSettings) -> tuple[Conversation, list[Entry]]:
    """The conversation with the settings, and what was changed."""
    entries: list[Entry] = []
    options = conversation.options
    for kind, wanted in (("default", settings.default), ("force", settings.force)):
        changes = _Changes(settings.name, kind, entries)
        options = _with_sampling(options, wanted, changes)
        options = _with_reasoning(options, wanted, changes)
        if conversation.tools:
            options = _with_choice(options, wanted, changes)
    turns = conversation.turns
    if settings.system:
        turns = (Turn("system", (Text(settings.system),)), *turns)
        entries.append(_system_entry(settings))
    if not entries:
        return conversation, []
    return replace(conversation, options=options, turns=turns), entries


def _system_entry(settings: RouteSettings) -> Entry:
    length = len(settings.system)
    reason = f"[models] {quote(settings.name)} puts a system prompt of {length} characters before the client's"
    return Entry(action="added", reason=reason, fault="policy", path="$.system")


class _Changes:
    """Reports the changes of one table of an entry."""

    def __init__(self, name: str, kind: str, entries: list[Entry]) -> None:
        self.is_forced = kind == "force"
        self._name = name
        self._kind = kind
        self._entries = entries

    def report(self, key: str, value: Any, was: Any) -> None:
        instead = f" instead of {quote(_plain(was))}" if was is not None else ", which the client does not set"
        reason = f"[models] {quote(self._name)} has {self._kind}.{key} = {quote(_plain(value))}{instead}"
        action: Action = "replaced" if was is not None else "added"
        self._entries.append(Entry(action=action, reason=reason, fault="policy", path=f"$.{key}"))

    def applies(self, value: Any, was: Any) -> bool:
        """Whether a setting changes the client's value."""
        return value is not None and value != was and (self.is_forced or was is None)


def _plain(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, tuple) else value


def _with_sampling(options: Options, wanted: RequestSettings, changes: _Changes) -> Options:
    values: dict[str, Any] = {}
    for name in _SAMPLING:
        value, was = getattr(wanted, name), getattr(options.sampling, name)
        was = None if was == () else was
        if changes.applies(value, was):
            values[name] = value
            changes.report(name, value, was)
    return replace(options, sampling=replace(options.sampling, **values)) if values else options


def _with_reasoning(options: Options, wanted: RequestSettings, changes: _Changes) -> Options:
    """Mode, effort and budget are set together: a client's budget means nothing beside an effort that was set here."""
    values = {field: getattr(wanted, name) for name, field in _REASONING.items() if getattr(wanted, name) is not None}
    before = options.reasoning
    if not values or (before is not None and not changes.is_forced):
        return options
    original = _values(before)
    if values == original:
        return options
    for name, field in _REASONING.items():
        value = values.get(field)
        if value is not None and value != original.get(field):
            changes.report(name, value, original.get(field))
        elif value is None and field in original:
            changes.report(name, "unset", original[field])
    after = Reasoning(**values, summary=before.summary if before is not None else None)
    return replace(options, reasoning=after)


def _values(reasoning: Reasoning | None) -> dict[str, Any]:
    found = asdict(reasoning) if reasoning is not None else {}
    return {field: found[field] for field in _REASONING.values() if found.get(field) is not None}


def _with_choice(options: Options, wanted: RequestSettings, changes: _Changes) -> Options:
    before = options.tool_choice
    original = before if before is not None else ToolChoice()
    after = original
    mode = wanted.tool_choice
    was = before.mode if before is not None and not _is_unset(before) else None
    if mode is not None and changes.applies(mode, was):
        changes.report("tool_choice", mode, was)
        after = ToolChoice(mode, parallel=after.parallel)
    parallel = wanted.parallel_tool_calls
    if parallel is not None and changes.applies(parallel, after.parallel):
        changes.report("parallel_tool_calls", parallel, after.parallel)
        after = ToolChoice(after.mode, after.names, parallel)
    return options if after is original else replace(options, tool_choice=after)


def _is_unset(choice: ToolChoice) -> bool:
    """Whether the client only set `parallel_tool_calls`."""
    return choice.form is not None and choice.form.is_mode_unset
