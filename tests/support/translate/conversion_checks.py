"""The checks that every converted request must pass: the referee, the providers' own judges, pairing.

`convert_checked` converts and checks at once; a test then looks at its own class of failure.
"""

from __future__ import annotations

import copy
from typing import Any, Final

import msgspec
import pytest
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import MistralRequestValidatorV11, ValidationMode

from sdk.definitions import refuse_invalid
from support.conversations.broken_conversations import TARGETS
from support.protocols.request_parts import RequestParts, read_parts
from support.referee.sdk_judges import refuses
from toolglot import ConvertedRequest, Entry, convert, lint, profiles, repair

Fields = dict[str, Any]
Target = tuple[str, str]

CLAUDE: Final = ("anthropic", "claude-sonnet-4-6")
GPT: Final = ("openai", "gpt-4.1")
RESPONSES: Final = ("openai_responses", "gpt-5.2")
GEMINI: Final = ("gemini", "gemini-2.5-pro")
NOVA: Final = ("bedrock", "amazon.nova-pro-v1:0")
MISTRAL: Final = ("mistral", "mistral-large-latest")
GEMINI_3: Final = ("gemini", "gemini-3-pro")
KIMI: Final = ("kimi", "kimi-k2-0905-preview")

every_target: Final = pytest.mark.parametrize("target", TARGETS, ids=["/".join(target) for target in TARGETS])

_FAULTS: Final = ("canonical", "renderer", "projection", "policy", "loss")
_MISTRAL: Final = MistralRequestValidatorV11(ValidationMode.serving)
_SDK_NAMES: Final = {"anthropic": "anthropic", "openai": "openai", "azure": "openai"}


def protocol_of(target: Target) -> str:
    return profiles.get(*target).protocol


def parts_of(out: ConvertedRequest, target: Target) -> RequestParts:
    return read_parts(protocol_of(target), out.body)


def convert_checked(body: Fields, source: str, target: Target, **options: Any) -> ConvertedRequest:
    """The request for a target, after every judge has accepted it."""
    out = convert(body, source=source, target=target[0], model=target[1], **options)
    assert_accepted(out, target)
    return out


def assert_accepted(out: ConvertedRequest, target: Target) -> None:
    assert [str(violation) for violation in lint(out.body, *target)] == [], out.data.decode()
    assert refusal(out.body, target) == ""
    is_native = out.source.name == out.target.name
    assert_paired(parts_of(out, target), target, may_be_apart=is_native and not out.target.results.adjacent)
    assert_reported_ids(out, target)
    again = repair(out.data, target=target[0], model=target[1])
    assert again.data == out.data, "what was rendered is rendered as it is (law 7)"


def refusal(body: Fields, target: Target) -> str:
    """What the provider's own definitions or validator say against a body."""
    protocol = protocol_of(target)
    if target[0] == "mistral":
        return _mistral_refusal(body)
    if target[0] in _SDK_NAMES:
        refuse_invalid(_SDK_NAMES[target[0]], msgspec.json.decode(msgspec.json.encode(body)))
        return ""
    if protocol == "ollama":
        return refuses(protocol, _without_ids(body))
    if protocol in ("openai_responses", "gemini", "bedrock", "cohere"):
        return refuses(protocol, copy.deepcopy(body))
    return ""


def _without_ids(body: Fields) -> Fields:
    """A body of Ollama's without the ids and types of calls, which the server has and the SDK's definitions lack."""
    body = copy.deepcopy(body)
    for message in body["messages"]:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            call.pop("id", None)
            call.pop("type", None)
    return body


def _mistral_refusal(body: Fields) -> str:
    known = {key: body[key] for key in ("model", "messages", "tools", "tool_choice") if key in body}
    known = copy.deepcopy(known)
    for message in known["messages"]:
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part["type"] == "thinking":  # a list of texts on the wire, one text to the validator
                part["thinking"] = "".join(text["text"] for text in part["thinking"])
    try:
        _MISTRAL.validate_request(ChatCompletionRequest.model_validate(known))
    except (MistralCommonException, ValueError) as error:
        return str(error)
    return ""


def assert_paired(parts: RequestParts, target: Target, *, may_be_apart: bool = False) -> None:
    """Every call answered once, by results that follow it with nothing but results between; ids are unique.

    What the target's own client wrote in between may stay there, where the target pairs by ids alone.
    """
    calls = [call.id for call in parts.calls]
    assert len(calls) == len(set(calls)), calls
    open_calls: list[str] = []
    for one in parts:
        if one.kind == "call":
            open_calls.append(one.id)
        elif one.kind == "result":
            assert one.id in open_calls, f"{one.id} answers no call that is open: {parts}"
            open_calls.remove(one.id)
        else:
            is_same_turn = one.speaker == "assistant" and one.kind in ("text", "thinking")
            assert not open_calls or is_same_turn or may_be_apart, f"{one} stands between calls and results"
    assert not open_calls


def assert_reported_ids(out: ConvertedRequest, target: Target) -> None:
    """A report lists the ids that were emitted (law 10)."""
    parts = parts_of(out, target)
    ids = out.report.ids
    assert len(ids.canonical) == len(ids.calls) == len(parts.calls)
    assert len(ids.results) == len(parts.results)
    written = [*(call.id for call in parts.calls), *(result.id for result in parts.results)]
    for listed, id in zip((*ids.calls, *ids.results), written, strict=True):
        assert id == listed or id.startswith("#")  # sent without an id
    assert all(id.startswith("hist_tool_") for id in ids.canonical)
    assert ids.format


def entries_about(out: ConvertedRequest, *words: str, action: str = "", fault: str = "") -> list[Entry]:
    """The report entries whose reason has all these words."""
    return [
        entry
        for entry in out.report
        if (not action or entry.action == action)
        and (not fault or entry.fault == fault)
        and all(word in entry.reason for word in words)
    ]


def assert_reported(out: ConvertedRequest, *words: str, action: str = "", fault: str = "") -> None:
    assert entries_about(out, *words, action=action, fault=fault), (
        f"not reported: {words} {action} {fault}\n{out.report}"
    )
    assert all(entry.fault in _FAULTS and entry.reason for entry in out.report)


def assert_forwarded(body: Fields, target: Target) -> None:
    """A valid request to its own provider goes through byte for byte, and the report is clean (law 3)."""
    data = msgspec.json.encode(body)
    assert lint(body, *target) == ()
    out = repair(data, target=target[0], model=target[1])
    assert out.data is data, str(out.report)
    assert not out.report.entries
