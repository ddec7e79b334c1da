"""A request as a name of `[models]` wants it: settings that the client left open, settings that it does not decide, and
a system prompt before its own.

    conversation, entries = changed(conversation, route.settings)

Laws: pure. What changes nothing gives back the very conversation that came, so that it is sent as it came (3). Every
change is an entry (10). What is asked for here goes through the renderer like what a client asks for: where the target
does not take it, it becomes the nearest thing, and that is told too (1).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict, replace

from toolglot.conversation import Conversation, Options, Reasoning, Text, ToolChoice, Turn
from toolglot.conversation.report import Action, Entry
from toolglot.errors import quote
from toolglot.gateway.config.route_table import RequestSettings, RouteSettings

_SAMPLING: Final = (
    *("max_tokens", "temperature", "top_p", "top_k", "stop", "seed"),
    *("presence_penalty", "frequency_penalty"),
)
_REASONING: Final = {"reasoning_mode": "mode", "reasoning_effort": "effort", "reasoning_budget_tokens": "budget_tokens"}
_TOOLS: Final = {"tool_choice": "mode", "parallel_tool_calls": "parallel"}


def changed(conversation: Conversation, settings: RouteSettings) -> tuple[Conversation, list[Entry]]:
    """The conversation as it is to be sent, and what was changed."""
    entries: list[Entry] = []
    options = conversation.options
    for kind, wanted in (("default", settings.default), ("force", settings.force)):
        told = _Teller(settings.name, kind, entries)
        options = _with_sampling(options, wanted, told)
        options = _with_reasoning(options, wanted, told)
        if conversation.tools:
            options = _with_choice(options, wanted, told)
    turns = conversation.turns
    if settings.system:
        turns = (Turn("system", (Text(settings.system),)), *turns)
        entries.append(_added(settings))
    if not entries:
        return conversation, []
    return replace(conversation, options=options, turns=turns), entries


def _added(settings: RouteSettings) -> Entry:
    length = len(settings.system)
    reason = f"[models] {quote(settings.name)} puts a system prompt of {length} characters before the client's own"
    return Entry(action="added", reason=reason, fault="policy", path="$.system")


class _Teller:
    """Tells of the changes by one table of an entry."""

    def __init__(self, name: str, kind: str, entries: list[Entry]) -> None:
        self.is_forced = kind == "force"
        self._name = name
        self._kind = kind
        self._entries = entries

    def tell(self, key: str, value: Any, was: Any) -> None:
        instead = f" instead of {quote(_plain(was))}" if was is not None else ", of which the client says nothing"
        reason = f"[models] {quote(self._name)} has {self._kind}.{key} = {quote(_plain(value))}{instead}"
        action: Action = "replaced" if was is not None else "added"
        self._entries.append(Entry(action=action, reason=reason, fault="policy", path=f"$.{key}"))

    def takes(self, value: Any, was: Any) -> bool:
        """Whether a setting changes what the client says."""
        return value is not None and value != was and (self.is_forced or was is None)


def _plain(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, tuple) else value


def _with_sampling(options: Options, wanted: RequestSettings, told: _Teller) -> Options:
    changes: dict[str, Any] = {}
    for name in _SAMPLING:
        value, was = getattr(wanted, name), getattr(options.sampling, name)
        was = None if was == () else was
        if told.takes(value, was):
            changes[name] = value
            told.tell(name, value, was)
    return replace(options, sampling=replace(options.sampling, **changes)) if changes else options


def _with_reasoning(options: Options, wanted: RequestSettings, told: _Teller) -> Options:
    """Mode, effort and budget say one thing together, so they are taken together: a client's budget means nothing
    beside an effort that was set here."""
    asked = {field: getattr(wanted, name) for name, field in _REASONING.items() if getattr(wanted, name) is not None}
    before = options.reasoning
    if not asked or (before is not None and not told.is_forced):
        return options
    said = _said(before)
    if asked == said:
        return options
    for name, field in _REASONING.items():
        value = asked.get(field)
        if value is not None and value != said.get(field):
            told.tell(name, value, said.get(field))
        elif value is None and field in said:
            told.tell(name, "unset", said[field])
    after = Reasoning(**asked, summary=before.summary if before is not None else None)
    return replace(options, reasoning=after)


def _said(reasoning: Reasoning | None) -> dict[str, Any]:
    found = asdict(reasoning) if reasoning is not None else {}
    return {field: found[field] for field in _REASONING.values() if found.get(field) is not None}


def _with_choice(options: Options, wanted: RequestSettings, told: _Teller) -> Options:
    before = options.tool_choice
    after = before if before is not None else ToolChoice()
    mode = wanted.tool_choice
    was = before.mode if before is not None and not _is_unsaid(before) else None
    if mode is not None and told.takes(mode, was):
        told.tell("tool_choice", mode, was)
        after = ToolChoice(mode, parallel=after.parallel)
    parallel = wanted.parallel_tool_calls
    if parallel is not None and told.takes(parallel, after.parallel):
        told.tell("parallel_tool_calls", parallel, after.parallel)
        after = ToolChoice(after.mode, after.names, parallel)
    return (
        options
        if after is before or (before is None and after == ToolChoice())
        else replace(options, tool_choice=after)
    )


def _is_unsaid(choice: ToolChoice) -> bool:
    """Whether the client only said something of parallel calls."""
    return any("~unsaid" in fields for fields in (choice.extra or {}).values())
