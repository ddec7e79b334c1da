"""Streams of the simulator, in order and with every fault, for the clients of every protocol."""

from __future__ import annotations

from typing import Any

import pytest

from support.conversations.event_grammar import check
from support.simulator.asgi_client import ask
from support.simulator.good_requests import BODIES, MODELS
from toolglot import StreamReader, StreamTranslator, ToolCall, profiles
from toolglot.conversation.events import BlockEnded, Event, Failed, Finished
from toolglot.simulator import Simulator
from toolglot.simulator.replies.faults import CHAT_ONLY

PROTOCOLS = ("anthropic", "openai_chat", "openai_responses", "gemini", "ollama", "bedrock", "cohere")
FAULTS = (
    "",
    "reset",
    "no_end",
    "truncated_call",
    "malformed_arguments",
    "malformed_event",
    "wrong_stop",
    "index_zero",
    "no_index",
    "repeated_names",
    "empty_ids",
    "error_event",
    "empty",
)
BROKEN = frozenset({"reset", "error_event"})
"""Faults after which there is no whole answer."""


def simulated_stream(provider: str, order: str) -> tuple[bytes, bool]:
    """What a provider streams, and whether its connection broke."""
    body: dict[str, Any] = {**BODIES[provider]}
    path = provider
    if provider in ("gemini", "bedrock"):
        path = f"{provider}_stream"
    else:
        body["stream"] = True
    found = ask(Simulator(), path, body, model=MODELS.get(provider, ""), order=order)
    assert found.status == 200 or "malformed_arguments" in order, found.data
    return found.data, found.is_broken or found.status != 200


def source_of(provider: str) -> str:
    return profiles.get(provider).name


def events_of(data: bytes, protocol: str) -> list[Event]:
    reader = StreamReader(source=protocol)
    return [*reader.feed(data), *reader.finish()]


ORDERED = [
    (provider, fault)
    for provider in sorted(BODIES)
    for fault in FAULTS
    if fault not in CHAT_ONLY or profiles.get(provider).protocol == "openai_chat"
]


@pytest.mark.parametrize(("provider", "fault"), ORDERED)
def test_whatever_a_provider_does_every_client_gets_a_legal_stream(provider: str, fault: str) -> None:
    protocol = profiles.get(provider).protocol
    order = f"fault={fault}, calls=2" if fault else "calls=2"
    data, is_broken = simulated_stream(provider, order)
    for target in PROTOCOLS:
        translator = StreamTranslator(source=source_of(provider), target=target)
        output = b"".join(translator.feed(data[start : start + 50]) for start in range(0, len(data), 50))
        output += translator.fail() if is_broken else translator.finish()
        assert translator.is_over
        events = events_of(output, target)
        check(events)
        shown = [event for event in events if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall)]
        runnable = [event.block for event in shown if not event.cut]
        whole = tuple(call for call in translator.reply.turn.calls if call not in translator.cut)
        assert [call.arguments for call in runnable if call.arguments is not None] == [  # type: ignore[union-attr]
            call.arguments for call in whole if call.arguments is not None
        ]
        assert translator.calls == (whole if translator.failure is None else ())
        if fault in BROKEN:
            assert isinstance(events[-1], Failed), (target, events[-1])
        elif fault in ("", "wrong_stop", "index_zero", "no_index", "repeated_names", "empty_ids"):
            assert isinstance(events[-1], Finished)
            assert (events[-1].stop, len(runnable)) == ("tool_calls", 2), target
            if target != protocol:  # within one protocol, calls may have none
                assert len({call.id for call in runnable}) == 2  # type: ignore[union-attr]
        elif fault == "truncated_call":
            assert len(runnable) < 2
            assert not isinstance(events[-1], Finished) or events[-1].stop == "length"
