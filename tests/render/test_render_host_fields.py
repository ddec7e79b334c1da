"""Fields that a host added to its protocol return to that host only: by the source, and by each turn's issuer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import (
    Attempt,
    Conversation,
    History,
    Issuer,
    Policy,
    StreamReader,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    convert,
    convert_reply,
    lint,
    profiles,
    request_for,
)
from toolglot.render import render
from toolglot.render.content.foreign import lineage

Fields = dict[str, Any]

SIGNATURE = "c2lnbmF0dXJl"
READ = ToolSpec("read")
DETAILS = [{"type": "reasoning.text", "text": "hm", "signature": SIGNATURE, "format": "f", "index": 0}]
SIGNED_CALL = {"extra_content": {"google": {"thought_signature": SIGNATURE}}}
CHAT_HOSTS = {
    "openai": "gpt-4.1",
    "mistral": "mistral-large-latest",
    "groq": "openai/gpt-oss-120b",
    "kimi": "kimi-k2.5",
    "deepseek": "deepseek-chat",
    "cerebras": "gpt-oss-120b",
    "xai": "grok-4",
    "minimax": "MiniMax-M2",
    "vllm": "Qwen/Qwen3-32B",
    "openai_compatible": "m",
}


def answer(message: Fields | None = None, call: Fields | None = None) -> Fields:
    made_call = {"id": "call_a", "type": "function", "function": {"name": "read", "arguments": "{}"}, **(call or {})}
    made = {"role": "assistant", "content": None, "tool_calls": [made_call], **(message or {})}
    return {"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": made}]}


def history(issuer: str, message: Fields | None = None, call: Fields | None = None) -> History:
    """One question, the answer of a host as it came, and the result of its call."""
    kept = History()
    kept.append(Turn("user", (Text("go"),)))
    reply = convert_reply(answer(message, call), source=issuer, target=issuer).reply
    turn = kept.append(reply.turn, provider=issuer)
    kept.record(ToolResult(turn.calls[0].id, "R"))
    return kept


def render_for(kept: History | Conversation, target: str) -> tuple[Fields, list[str]]:
    """The model's message as the target gets it, and the reasons of dropped fields."""
    out = request_for(kept, target=target, model=CHAT_HOSTS.get(target, ""), tools=(READ,))
    assert isinstance(out.body, dict)
    assert not lint(out.body, target, model=CHAT_HOSTS.get(target, ""))
    return out.body["messages"][1], [entry.reason for entry in out.report.entries if entry.action == "dropped"]


# --- by the issuer of a turn ------------------------------------------------------------------------


@pytest.mark.parametrize("target", [host for host in CHAT_HOSTS if host != "openai"])
def test_empty_fields_of_openai_are_left_out_elsewhere_without_a_report(target: str) -> None:
    message, dropped = render_for(history("openai", {"refusal": None, "annotations": []}), target)
    assert message.keys() <= {"role", "content", "tool_calls", "reasoning_content"}
    assert dropped == []


@pytest.mark.parametrize("target", list(CHAT_HOSTS))
def test_law_12_what_a_host_signed_goes_to_no_other_host_and_is_reported(target: str) -> None:
    message, dropped = render_for(history("openrouter", {"reasoning_details": DETAILS}, SIGNED_CALL), target)
    assert SIGNATURE not in json.dumps(message)
    assert {"reasoning_details is not known to be accepted here", "extra_content is not known to be accepted here"} <= {
        *dropped
    }


@pytest.mark.parametrize(
    ("issuer", "field", "value"),
    [
        ("groq", "executed_tools", [{"type": "x"}]),
        ("minimax", "audio_content", "YQ=="),
        ("openai", "annotations", [{"type": "url_citation"}]),
        ("openai_compatible", "verdict", "fine"),
    ],
)
def test_a_field_of_one_host_is_not_sent_to_another_one(issuer: str, field: str, value: object) -> None:
    for target in CHAT_HOSTS.keys() - {issuer}:
        message, dropped = render_for(history(issuer, {field: value}), target)
        assert field not in message
        assert f"{field} is not known to be accepted here" in dropped


def test_a_field_is_reported_once_with_its_count() -> None:
    kept = history("groq", {"executed_tools": [1]})
    reply = convert_reply(answer({"executed_tools": [2]}, {"id": "call_b"}), source="groq", target="groq").reply
    turn = kept.append(reply.turn, provider="groq")
    kept.record(ToolResult(turn.calls[0].id, "R"))
    _, dropped = render_for(kept, "openai")
    assert dropped == ["executed_tools is not known to be accepted here (2 times)"]


@pytest.mark.parametrize("issuer", ["openai", "groq", "openrouter", "minimax", "openai_compatible"])
def test_for_its_own_host_a_turn_keeps_everything(issuer: str) -> None:
    kept = history(issuer, {"reasoning_details": DETAILS, "further": 1}, SIGNED_CALL)
    out = request_for(kept, target=issuer, tools=(READ,))
    assert isinstance(out.body, dict)
    message = out.body["messages"][1]
    assert (message["reasoning_details"], message["further"]) == (DETAILS, 1)
    assert message["tool_calls"][0]["extra_content"] == SIGNED_CALL["extra_content"]


def test_a_host_that_extends_the_issuer_gets_its_fields() -> None:
    message, dropped = render_for(history("openai", {"annotations": [{"type": "url_citation"}]}), "azure")
    assert message["annotations"] == [{"type": "url_citation"}]
    assert dropped == []


def test_turns_without_an_issuer_or_of_an_unknown_one_stay_as_they_are() -> None:
    extra = {"openai_chat": {"further": 1}}
    for issuer in (None, Issuer("unknown")):
        turn = Turn("assistant", (Text("a"),), issuer=issuer, extra=extra)
        out = request_for(Conversation((Turn("user", (Text("go"),)), turn, Turn("user", (Text("on"),)))), target="groq")
        assert isinstance(out.body, dict)
        assert out.body["messages"][1]["further"] == 1


def test_what_a_user_wrote_for_one_host_goes_to_one_that_ignores_what_it_does_not_know() -> None:
    named = Turn("user", (Text("go"),), issuer=Issuer("openai"), extra={"openai_chat": {"name": "ann"}})
    for target, kept in (("openrouter", "ann"), ("groq", None)):
        out = request_for(Conversation((named,)), target=target)
        assert isinstance(out.body, dict)
        assert out.body["messages"][0].get("name") == kept


def test_fields_of_another_protocol_than_the_issuers_are_not_its_own() -> None:
    turn = Turn("user", (Text("go"),), issuer=Issuer("anthropic"), extra={"openai_chat": {"name": "ann"}})
    out = request_for(Conversation((turn,)), target="groq")
    assert isinstance(out.body, dict)
    assert out.body["messages"][0]["name"] == "ann"


def test_a_turn_of_the_target_keeps_its_fields_in_a_conversation_of_another_host() -> None:
    own = Turn("assistant", (Text("a"),), issuer=Issuer("minimax"), extra={"openai_chat": {"reasoning_details": [1]}})
    other = Turn("assistant", (Text("b"),), extra={"openai_chat": {"annotations": [1]}})
    user = Turn("user", (Text("go"),))
    source, target = profiles.get("openai", "gpt-4.1"), profiles.get("minimax", "MiniMax-M2")
    rendered = render(Conversation((user, own, user, other, user)), target, policy=Policy(), source=source)
    extras = [turn.extra for turn in rendered.conversation.turns if turn.role == "assistant"]
    assert extras == [own.extra, None]


def test_a_conversation_that_holds_no_fields_of_the_protocol_is_left_as_it_is() -> None:
    turns = tuple(Turn(role, (Text("a"),), issuer=Issuer("openai")) for role in ("user", "assistant", "user"))
    rendered = render(Conversation(turns), profiles.get("groq"), policy=Policy())
    assert [turn.blocks for turn in rendered.conversation.turns] == [turn.blocks for turn in turns]
    assert not rendered.entries


# --- beside the blocks of a reply -------------------------------------------------------------------


def chunks(*deltas: Fields) -> bytes:
    all_deltas = [*deltas, {}]
    return b"".join(
        b"data: "
        + json.dumps(
            {
                "id": "x",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [
                    {"index": 0, "delta": delta, "finish_reason": None if index < len(deltas) else "tool_calls"}
                ],
            }
        ).encode()
        + b"\n\n"
        for index, delta in enumerate(all_deltas)
    ) + (b"data: [DONE]\n\n")


CALL = {
    "tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
}


def message_after_stream(data: bytes, provider: str) -> Fields:
    """The message that a host gets back of what it streamed, after an attempt was committed."""
    kept = History()
    kept.append(Turn("user", (Text("go"),)))
    reader = StreamReader(source=provider)
    attempt = Attempt(kept, provider=provider)
    attempt.add(reader.feed(data))
    attempt.add(reader.finish())
    turn = attempt.commit()
    assert reader.reply.turn.extra == attempt.reply.turn.extra == turn.extra
    kept.record(ToolResult(turn.calls[0].id, "R"))
    out = request_for(kept, target=provider, tools=(READ,))
    assert isinstance(out.body, dict)
    message: Fields = out.body["messages"][1]
    return message


@pytest.mark.parametrize("provider", ["openrouter", "minimax"])
def test_an_attempt_keeps_the_fields_beside_the_blocks_of_a_whole_reply(provider: str) -> None:
    kept = History()
    kept.append(Turn("user", (Text("go"),)))
    reply = convert_reply(answer({"reasoning_details": DETAILS}), source=provider, target=provider).reply
    attempt = Attempt(kept, provider=provider)
    attempt.add_reply(reply)
    assert attempt.reply.turn.extra == reply.turn.extra
    assert attempt.commit().extra == reply.turn.extra


@pytest.mark.parametrize("provider", ["openrouter", "minimax"])
def test_streamed_reasoning_details_return_to_their_host(provider: str) -> None:
    first = {"type": "reasoning.text", "text": "h", "format": "f", "index": 0}
    rest = {"type": "reasoning.text", "text": "m", "signature": SIGNATURE, "format": "f", "index": 0}
    message = message_after_stream(
        chunks({"reasoning_details": [first]}, {"reasoning_details": [rest]}, CALL), provider
    )
    assert message["reasoning_details"] == DETAILS


def test_a_stream_without_fields_beside_its_blocks_has_a_plain_turn() -> None:
    reader = StreamReader(source="openrouter")
    reader.feed(chunks(CALL))
    reader.finish()
    assert reader.reply.turn.extra is None


def test_entries_of_another_id_are_others_and_a_signature_that_comes_again_is_one() -> None:
    def entry(**more: Any) -> Fields:
        return {"reasoning_details": [{"type": "reasoning.encrypted", "index": 0, **more}]}

    message = message_after_stream(
        chunks(
            entry(id="a", data="1"),
            entry(data="2", signature="s"),
            entry(signature="s"),
            entry(id="b", data="3", signature="x"),
            entry(id="b", signature="y"),
            CALL,
        ),
        "openrouter",
    )
    assert message["reasoning_details"] == [
        {"type": "reasoning.encrypted", "index": 0, "id": "a", "data": "12", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 0, "id": "b", "data": "3", "signature": "xy"},
    ]


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@pytest.mark.law
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_law_8_details_that_come_in_pieces_are_those_of_the_whole_reply(entries: list[list[str]]) -> None:
    whole = [{"type": "reasoning.text", "index": index, "text": "".join(texts)} for index, texts in enumerate(entries)]
    pieces = [
        {"reasoning_details": [{"type": "reasoning.text", "index": index, "text": text}]}
        for index, texts in enumerate(entries)
        for text in texts
    ]
    reader = StreamReader(source="openrouter")
    reader.feed(chunks(*pieces, CALL))
    reader.finish()
    at_once = convert_reply(answer({"reasoning_details": whole}), source="openrouter", target="openrouter").reply
    extra = at_once.turn.extra
    assert extra is not None
    fields = {field: value for field, value in extra["openai_chat"].items() if value is not None}
    assert reader.reply.turn.extra == {"openai_chat": fields}


def test_law_8_calls_keep_their_order_though_one_has_no_name() -> None:
    def piece(index: int, **fields: Any) -> Fields:
        return {"tool_calls": [{"index": index, **fields}]}

    nameless = piece(0, id="a", type="function", function={"name": "", "arguments": "{}"})
    named = piece(1, id="b", type="function", function={"name": "read", "arguments": '{"k":'})
    rest = piece(1, function={"arguments": "1}"})
    third = piece(2, id="c", type="function", function={"name": "list", "arguments": "{}"})
    for late, first in (({}, ""), (piece(0, function={"name": "find"}), "find")):
        reader = StreamReader(source="openai")
        reader.feed(chunks(nameless, named, late, rest, third))
        reader.finish()
        names = [block.name if isinstance(block, ToolCall) else "" for block in reader.reply.turn.blocks]
        assert names == [first, "read", "list"], "what has no name is no call, and stands where it stood"
        assert [call.arguments for call in reader.reply.turn.calls][-2:] == [{"k": 1}, {}]


# --- the model that a name means --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5@20250929"),
        ("gpt-5", "gpt-5-2025-08-07"),
        ("gemini-2.5-flash", "gemini-2.5-flash-001"),
        ("gemini-2.5-flash-preview", "gemini-2.5-flash-preview-09-2025"),
        ("gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("gemini-2.5-pro", "publishers/google/models/gemini-2.5-pro"),
        ("gemini-2.5-pro", "projects/p/locations/l/publishers/google/models/gemini-2.5-pro"),
        ("anthropic.claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("eu.amazon.nova-pro-v1:0", "apac.amazon.nova-pro-v1:0"),
        ("global.anthropic.claude-sonnet-4", "anthropic.claude-sonnet-4-20250514-v1:0"),
    ],
)
def test_a_model_is_the_same_in_every_version_and_spelling_of_its_name(one: str, other: str) -> None:
    assert lineage(one) == lineage(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-5", "gpt-5-mini"),
        ("gpt-5-2025-08-07", "gpt-5-mini-2025-08-07"),
        ("gpt-5", "gpt-5.5"),
        ("gemini-2.5-pro", "gemini-2.5-flash"),
        ("models/gemini-2.5-pro", "google/gemini-2.5-flash-001"),
        ("claude-sonnet-4", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929"),
        ("us.amazon.nova-pro-v1:0", "us.amazon.nova-lite-v1:0"),
        ("grok-4", "grok-40"),
    ],
)
def test_other_models_stay_others(one: str, other: str) -> None:
    assert lineage(one) != lineage(other)


# --- fields that cross from Responses to Chat -------------------------------------------------------

SHARED = {
    "store": True,
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "metadata": {"a": "b"},
    "service_tier": "auto",
}


@pytest.mark.parametrize("target", ["openai", "azure", "openrouter", "vllm"])
def test_openais_fields_cross_to_who_knows_or_ignores_them(target: str) -> None:
    body = {"model": "gpt-5", "input": "hi", **SHARED}
    out = convert(body, source="openai_responses", target=target, model="gpt-4.1")
    assert isinstance(out.body, dict)
    assert {field: out.body.get(field) for field in SHARED} == SHARED


@pytest.mark.parametrize(
    "target", ["mistral", "groq", "cerebras", "deepseek", "kimi", "xai", "glm", "openai_compatible"]
)
def test_fields_of_openai_are_dropped_elsewhere_and_reported_from_either_protocol(target: str) -> None:
    common = profiles.get(target).request.common_fields
    bodies = {
        "openai_responses": {"model": "gpt-5", "input": "hi", **SHARED},
        "openai": {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}], **SHARED},
    }
    for source, body in bodies.items():
        out = convert(body, source=source, target=target, model=CHAT_HOSTS.get(target, "glm-4.6"))
        assert isinstance(out.body, dict)
        assert {field: out.body.get(field) for field in SHARED if field in common} == {
            field: value for field, value in SHARED.items() if field in common
        }
        unknown = {field for field in SHARED if field not in common}
        assert not unknown & out.body.keys()
        dropped = {entry.path for entry in out.report.entries if entry.action == "dropped"}
        assert {path for path in dropped if path.removeprefix("$.") in SHARED} == {f"$.{field}" for field in unknown}


@pytest.mark.parametrize(("tier", "is_known"), [("flex", True), ("on_demand", False)])
def test_a_service_tier_of_another_host_is_not_sent_to_openai(tier: str, is_known: bool) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "service_tier": tier}
    sent = convert(body, source="groq", target="openai_responses", model="gpt-5.2")
    assert ("service_tier" in sent.body) is is_known
    assert ("service_tier" in str(sent.report)) is not is_known
    assert lint(sent.body, "openai_responses") == ()


@pytest.mark.parametrize("source", ["own", "openai", "openai_compatible"])
@pytest.mark.parametrize("target", ["mistral", "groq", "cerebras"])
@pytest.mark.parametrize(
    "fields",
    [{"refusal": None}, {"refusal": None, "audio": None, "annotations": []}, {"refusal": "No."}, {"new": None}],
)
def test_a_message_that_a_client_sends_back_has_only_the_fields_of_its_host(
    fields: Fields, target: str, source: str
) -> None:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    made = {"role": "assistant", "content": "", "tool_calls": [call], **fields}
    turns = [{"role": "user", "content": "Hi"}, made, {"role": "tool", "tool_call_id": "abcdefghi", "content": "ok"}]
    body = {
        "model": "m",
        "messages": turns,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}],
    }
    model = CHAT_HOSTS[target]
    out = convert(body, source=target if source == "own" else source, target=target, model=model)
    assert not lint(out.body, target=target, model=model)
    sent = out.body["messages"][1]
    assert sent.keys() <= {"role", "content", "tool_calls"}
    assert (sent["content"] or "") == (fields.get("refusal") or "")
