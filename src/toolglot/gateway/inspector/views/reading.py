"""A capture as canonical values: the request, how it is sent, and the reply.

    read = read_capture(captured, overrides)
    read.conversation, read.out, read.names

What was sent is known from the capture; what the canonical ids are, and which call became which, is found by rendering
the request again.

Laws: pure. A capture is untrusted: what of it cannot be read is None, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct

from toolglot.conversation import Conversation, Reply, ToolCall
from toolglot.errors import ToolglotError
from toolglot.gateway.inspector.views.blocks import CallNames, SentCall
from toolglot.limits import Limits
from toolglot.profiles import Overrides
from toolglot.protocols.errors.failures import ProviderError
from toolglot.translate.converted import profile_named
from toolglot.translate.replies import convert_reply
from toolglot.translate.requests import ConvertedRequest, ReceivedRequest, read_request
from toolglot.translate.streams import StreamTranslator

T = TypeVar("T")

MAX_BYTES: Final = 512 * 1024 * 1024
LIMITS: Final = Limits(max_bytes=MAX_BYTES)


class ReadRequest(Struct):
    """The request of a capture."""

    received: ReceivedRequest
    source: str
    """The protocol of the client."""
    out: ConvertedRequest | None
    """As it is rendered for the target of the capture; None: it cannot be."""
    names: CallNames
    tool_names: dict[str, str]
    """The names of tools that were sent under another name."""

    @property
    def conversation(self) -> Conversation:
        return self.received.conversation


def text_of(captured: Mapping[str, Any], name: str) -> str:
    """A field of a capture that is text; empty: it is not there."""
    value = captured.get(name)
    return value if isinstance(value, str) else ""


def receive(captured: Mapping[str, Any], overrides: Overrides | None) -> ReceivedRequest | None:
    """The client's request; None: there is none, or it is not one."""
    body, source = text_of(captured, "request"), text_of(captured, "protocol")
    if not body or not source:
        return None
    received = _tried(lambda: read_request(_bytes(body), source=source, overrides=overrides, limits=LIMITS))
    if received is not None and not received.conversation.model:
        received.address(model=text_of(captured, "model"))
    return received


def read_capture(captured: Mapping[str, Any], overrides: Overrides | None = None) -> ReadRequest | None:
    """The request of a capture; None: there is none, or it cannot be read."""
    received = receive(captured, overrides)
    if received is None:
        return None
    target, model = text_of(captured, "target"), text_of(captured, "sent_model")
    out = _tried(lambda: received.for_target(target, model=model)) if target else None
    names, tool_names = CallNames(), {}
    if out is not None:
        _name_calls(received.conversation, out, names)
        tool_names = _changed_names(received.conversation, out)
    protocol = profile_named(text_of(captured, "protocol"), "", overrides, "source").protocol
    return ReadRequest(received, protocol, out, names, tool_names)


def _name_calls(conversation: Conversation, out: ConvertedRequest, names: CallNames) -> None:
    """Find what became of each call: its canonical id, and how it was sent."""
    own = [call for turn in conversation.turns for call in turn.calls]
    sent = [call for turn in out.rendered.conversation.turns for call in turn.calls]
    canonical = _tried(lambda: out.report.ids.canonical) or ()
    known: Mapping[str, str] = dict(zip([call.id for call in sent], canonical, strict=False))
    pairs = zip(own, sent, strict=True) if len(own) == len(sent) else _paired(own, sent)
    for call, other in pairs:
        name = other.name if other.namespace is None else f"{other.namespace}.{other.name}"
        names.add(call.id, SentCall(known.get(other.id, call.id), other.id or None, name))


def _paired(own: list[ToolCall], sent: list[ToolCall]) -> list[tuple[ToolCall, ToolCall]]:
    """Calls with what became of them, if some were left out: by id, otherwise by their arguments."""
    by_id = {call.id: call for call in sent}
    by_arguments = {id(call.arguments): call for call in sent if call.arguments is not None}
    found = [(call, by_id.get(call.id) or by_arguments.get(id(call.arguments))) for call in own]
    return [(call, other) for call, other in found if other is not None]


def _changed_names(conversation: Conversation, out: ConvertedRequest) -> dict[str, str]:
    """The tools that were sent under another name."""
    table = out.rendered.tools
    pairs = ((tool.name, table.emitted_name((tool.namespace, tool.name))) for tool in conversation.tools)
    return {name: sent for name, sent in pairs if name != sent}


class ReadReply(Struct, frozen=True):
    """The reply of a capture."""

    provider: Reply
    """With the provider's names and ids."""
    client: Reply
    """With the client's."""


def read_reply(captured: Mapping[str, Any], read: ReadRequest, overrides: Overrides | None = None) -> ReadReply | None:
    """The reply of a capture, whole or of a stream; None: there is none, or it cannot be read."""
    data, target = _bytes(text_of(captured, "reply")), text_of(captured, "target")
    if not data or not target or read.out is None:
        return None
    settings: dict[str, Any] = {
        "source": target,
        "target": text_of(captured, "protocol"),
        "request": read.out,
        "overrides": overrides,
        "limits": LIMITS,
    }
    if captured.get("stream") is True and data.lstrip()[:1] != b"{":
        return _tried(lambda: _read_stream(data, settings))
    found = _tried(lambda: convert_reply(data, **settings))
    return ReadReply(found.provider_reply, found.reply) if found is not None else None


def _read_stream(data: bytes, settings: dict[str, Any]) -> ReadReply:
    translator = StreamTranslator(**settings)
    translator.feed(data)
    translator.finish()
    return ReadReply(translator.provider_reply, translator.reply)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _tried(work: Callable[[], T]) -> T | None:
    """The result of work on what cannot be trusted; None: it cannot be read."""
    try:
        return work()
    except (ToolglotError, ProviderError, RecursionError):
        return None
