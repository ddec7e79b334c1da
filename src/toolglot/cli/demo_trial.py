"""What `toolglot demo` shows: one broken conversation, tried on five strict simulated providers.

The conversation is real as far as it can be offline: its first turn, with signed thinking, is a reply of the simulated
Anthropic. Each provider gets it twice: as it is, in the provider's own protocol and with nothing repaired, and as
toolglot renders it.

Law: no network, no clock and no randomness; the same on every machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.conversation import (
    Conversation,
    Issuer,
    Options,
    Reasoning,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.conversation.report import Report
from toolglot.history.history import History
from toolglot.protocols.base import codec
from toolglot.referee import lint
from toolglot.simulator.answering import Responder, SimulatedOutcome, SimulatedRequest
from toolglot.simulator.scripts.script import CallSpec, ReplySpec, Script, ScriptRule, When
from toolglot.translate.requests import request_for

OK: Final = 200
_NOON: Final = 1_767_268_800.0
_KEYS: Final = {
    "x-api-key": "demo",
    "authorization": "Bearer demo",
    "x-goog-api-key": "demo",
    "anthropic-version": "2023-06-01",
}
QUESTION: Final = "What is in a.txt and in b.txt?"
STOP: Final = "Stop, b.txt is huge. What is in c.txt?"
LAST: Final = "Compare a.txt and c.txt."
_CANCELLED: Final = "Cancelled by the user."
_KIMI_ID: Final = "functions.read_file:0"
_LIMITS: Final = {"anthropic": {"max_tokens": 1000}}
"""What a request must have besides, so that the conversation itself is what is refused."""
_RULE_ID: Final = re.compile(r" \([a-z0-9]+(?:-[a-z0-9]+)+\)")
_SCRIPT: Final = Script(
    rules=(
        ScriptRule(
            when=When(turn=1),
            reply=ReplySpec(
                thinking="I read both files.",
                calls=tuple(CallSpec(name="read_file", arguments={"path": path}) for path in ("a.txt", "b.txt")),
            ),
        ),
        ScriptRule(reply=ReplySpec(text="One is a greeting, the other one wishes a good morning.")),
    )
)
_TOOL: Final = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


class DemoProvider(Struct, frozen=True):
    """A provider that the demo sends to."""

    title: str
    target: str
    model: str
    path: str


CLAUDE: Final = DemoProvider("Anthropic", "anthropic", "claude-opus-5", "/anthropic/v1/messages")
_BEDROCK_MODEL: Final = "anthropic.claude-sonnet-4-5-20250929-v1:0"
PROVIDERS: Final = (
    CLAUDE,
    DemoProvider("OpenAI", "openai_responses", "gpt-5.5", "/openai/v1/responses"),
    DemoProvider("Gemini", "gemini", "gemini-3-pro", "/gemini/v1beta/models/gemini-3-pro:generateContent"),
    DemoProvider("Mistral", "mistral", "mistral-large-latest", "/mistral/v1/chat/completions"),
    DemoProvider("Bedrock", "bedrock", _BEDROCK_MODEL, f"/bedrock/model/{_BEDROCK_MODEL}/converse"),
)


class Trial(Struct, frozen=True, kw_only=True):
    """What became of the conversation at one provider."""

    provider: str
    model: str
    status: int
    message: str
    """The provider's own words, where it refused."""
    violations: int = 0
    """How many things were wrong, of which a provider names one."""
    changes: tuple[str, ...] = ()
    """What toolglot made of the conversation, in plain words."""

    @property
    def is_accepted(self) -> bool:
        return self.status == OK


class Demo:
    """The conversation, and the simulated providers that it is sent to."""

    def __init__(self) -> None:
        self._desk = Responder(_SCRIPT, lambda: _NOON)
        self.turns = self._talk()

    def _talk(self) -> tuple[Turn, ...]:
        """Claude calls two tools, of which the user cancels one; the next question goes to Kimi."""
        begun = Conversation(
            turns=(Turn("user", (Text(QUESTION),)),),
            tools=(_TOOL,),
            options=Options(reasoning=Reasoning(mode="adaptive")),
        )
        asked = request_for(begun, target=CLAUDE.target, model=CLAUDE.model)
        reply = codec("anthropic").reply.decode(json.loads(self._send(CLAUDE, asked.body).pieces[0]))
        return (
            begun.turns[0],
            msgspec.structs.replace(reply.turn, issuer=Issuer("anthropic", model=CLAUDE.model)),
            Turn("tool", (ToolResult(reply.turn.calls[0].id, "hello"),)),
            Turn("user", (Text(STOP),)),
            Turn("assistant", (ToolCall(_KIMI_ID, "read_file", {"path": "c.txt"}),), issuer=Issuer("kimi")),
            Turn("tool", (ToolResult(_KIMI_ID, "good morning"),)),
            Turn("user", (Text(LAST),)),
        )

    def _history(self) -> History:
        """The same, as an agent keeps it with toolglot: the call that the user stopped is cancelled in order."""
        history = History(provider="anthropic")
        history.extend(self.turns[:3])
        pending = [interaction.id for interaction in history.ledger if interaction.status == "pending"]
        history.cancel(*pending, reason=_CANCELLED)
        history.extend(self.turns[3:])
        return history

    def send_as_it_is(self, provider: DemoProvider) -> Trial:
        """The conversation in the provider's own protocol, with nothing repaired."""
        protocol = profiles.get(provider.target, provider.model).protocol
        conversation = Conversation(turns=self.turns, tools=(_TOOL,), model=provider.model)
        body = {**codec(protocol).request.encode(conversation), **_LIMITS.get(protocol, {})}
        found = lint(body, provider.target, provider.model)
        return _trial(provider, self._send(provider, body), violations=len(found))

    def send_through_toolglot(self, provider: DemoProvider) -> Trial:
        out = request_for(self._history(), target=provider.target, model=provider.model, tools=(_TOOL,))
        changes = (*self._kept(json.dumps(out.body)), *_changes(self._native_ids(), out.report))
        return _trial(provider, self._send(provider, out.body), changes=changes)

    def _kept(self, sent: str) -> Iterator[str]:
        """What the provider gets that it did not get as the conversation is."""
        if _CANCELLED in sent:
            yield f"the cancelled call has a result: {_CANCELLED!r}"
        signatures = [block.signature for block in self.turns[1].blocks if isinstance(block, Thinking)]
        if any(signature is not None and signature in sent for signature in signatures):
            yield "the signed thinking goes back to its own model unchanged"

    def _native_ids(self) -> list[str]:
        return [call.id for turn in self.turns for call in turn.calls]

    def _send(self, provider: DemoProvider, body: dict[str, Any]) -> SimulatedOutcome:
        data = json.dumps(body).encode()
        return self._desk.answer(
            SimulatedRequest(method="POST", path=provider.path, headers=_KEYS, query={}, body=data)
        )


def _trial(
    provider: DemoProvider, outcome: SimulatedOutcome, *, violations: int = 0, changes: tuple[str, ...] = ()
) -> Trial:
    return Trial(
        provider=provider.title,
        model=provider.model,
        status=outcome.status,
        message=outcome.error,
        violations=violations,
        changes=changes,
    )


def _changes(native: list[str], report: Report) -> Iterator[str]:
    """What was changed, without the ids of rules, and each thing once."""
    renamed = [(old, new) for old, new in zip(native, report.ids.calls, strict=True) if old != new]
    if renamed:
        old, new = renamed[-1]
        more = f", and {len(renamed) - 1} more" if len(renamed) > 1 else ""
        yield f"ids: {old} -> {new}{more}"
    entries = [f"{entry.action}: {_RULE_ID.sub('', entry.reason)}" for entry in report.entries]
    for entry in dict.fromkeys(entries):
        count = entries.count(entry)
        yield entry + (f" ({count} times)" if count > 1 else "")
