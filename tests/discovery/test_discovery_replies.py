"""How discovery reads replies, and compares what it found with a profile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from support.simulator.discovery_results import NO, YES, one_of, result_of, stream
from toolglot import dialects, profiles
from toolglot.conversation import Reply, Text, Thinking, ToolCall, Turn
from toolglot.discovery import (
    PROBES,
    Finding,
    departures,
)
from toolglot.discovery.bodies import RequestStyle, first_tool, messages_of, user, without_ids
from toolglot.discovery.comparison import agrees
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import ProbeCase, protocol_order
from toolglot.discovery.probes.replies import carrier_of, mistyped_arguments
from toolglot.profiles import Overrides

# --- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", protocol_order())
def test_requests_can_be_changed_by_hand_in_every_protocol(protocol: str) -> None:
    target = "openai_compatible" if protocol == "openai_chat" else protocol
    style = RequestStyle(protocol=protocol, target=target, model="m")
    body = style.body(user(), limit=16)
    assert messages_of(body)
    assert first_tool(body)["name"] == "get_weather"
    limited = json.dumps(style.with_limit(body, 7))
    assert ": 7" in limited
    assert "16" not in json.dumps(style.with_limit(json.loads(limited), None))
    assert messages_of({}) == []
    assert without_ids(3) == 3


# --- replies --------------------------------------------------------------------------------------


def test_arguments_of_other_types_are_found() -> None:
    good = {"city": "Bonn", "days": 3, "metric": True, "hours": [9]}
    assert mistyped_arguments(good) == []
    assert mistyped_arguments({**good, "days": "3", "metric": 1}) == ["days (str)", "metric (int)"]
    assert mistyped_arguments({}) == ["city (missing)", "days (missing)", "metric (missing)", "hours (missing)"]


@pytest.mark.parametrize(
    ("message", "carrier"),
    [
        ({"content": "x", "reasoning_content": "y"}, "reasoning_content"),
        ({"content": "x", "reasoning_details": [{}]}, "reasoning_details"),
        ({"content": "x", "reasoning": "y"}, "reasoning"),
        ({"content": "<think>y</think>x"}, "think_tags"),
        ({"content": [{"type": "thinking"}]}, "thinking_chunks"),
        ({"content": [{"type": "text"}]}, ""),
        ({"content": "x"}, ""),
        ({"content": None}, ""),
        (None, ""),
    ],
)
def test_where_thinking_stands_is_seen(message: Any, carrier: str) -> None:
    assert carrier_of("openai_chat", {"choices": [{"message": message}]}, Reply(Turn("assistant"))) == carrier


def test_thinking_of_other_protocols_is_a_block() -> None:
    assert carrier_of("anthropic", {}, Reply(Turn("assistant", (Thinking("x"), Text("y"))))) == "thinking_blocks"
    assert carrier_of("gemini", {}, Reply(Turn("assistant", (Text("y"),)))) == ""
    assert carrier_of("openai_chat", [], Reply(Turn("assistant"))) == ""


def steps_of(name: str, *answers: ParsedReply, protocol: str = "openai_chat", **found: Any) -> list[Finding]:
    probe = next(probe for probe in PROBES if probe.name == name)
    target = "openai_compatible" if protocol == "openai_chat" else protocol
    steps = probe.steps(ProbeCase(style=RequestStyle(protocol=protocol, target=target, model="m"), found=found))
    replies = iter(answers)
    try:
        next(steps)
        while True:
            steps.send(next(replies))
    except StopIteration as ended:
        result: list[Finding] = ended.value
        return result


def replied(*blocks: Any, stop: Any = "stop", value: Any = None) -> ParsedReply:
    return ParsedReply(
        name="r", status=200, verdict="accepted", reply=Reply(Turn("assistant", blocks), stop=stop), value=value
    )


def quirks(found: list[Finding]) -> list[str]:
    return [one.quirk for one in found if one.quirk]


def test_a_model_that_calls_only_when_it_must_is_reported() -> None:
    call = ToolCall("", "get_weather", {"city": "Bonn"})
    found = steps_of("replies.native", replied(Text("Hm.")), replied(call, stop="tool_calls"))
    assert quirks(found) == ["calls come without an id", "it calls only when a tool was required"]
    none = steps_of("replies.native", replied(Text("Hm.")), NO)
    assert (none[0].value, none[0].confidence) == (None, "weak")


def test_calls_that_share_an_id_and_arguments_that_are_objects_are_reported() -> None:
    call = ToolCall("x", "get_weather", {"city": "Bonn"})
    written = {"function": {"name": "get_weather", "arguments": {"city": "Bonn"}}}
    value = {"choices": [{"message": {"tool_calls": [written]}}]}
    found = steps_of("replies.native", replied(call, call, stop="tool_calls", value=value))
    assert quirks(found) == ["calls of one turn share an id", "arguments are an object, not a string"]
    pair = steps_of("replies.parallel", replied(call, replace(call, id="y"), stop="tool_calls"))
    assert (pair[0].value, quirks(pair)) == (True, [])


def test_tools_in_the_prompt_are_tried_where_none_are_accepted_as_such() -> None:
    written = dialects.write_calls((ToolCall("x", "get_weather", {"city": "Bonn"}),), "hermes")
    (seen,) = steps_of("replies.by_prompt", replied(Text(written)))
    assert (seen.key, seen.value, seen.confidence) == ("tools.by_prompt", "hermes", "observed")
    (unseen,) = steps_of("replies.by_prompt", replied(Text("No idea.")))
    assert (unseen.value, unseen.confidence) == ("hermes", "weak")


def test_a_prefill_that_is_continued_is_found() -> None:
    (found,) = steps_of("turns.prefill", replied(Text("me.")))
    assert (found.key, found.value, found.settles) == ("turns.prefill", "yes", True)


def piece(index: Any, id: str, name: str, arguments: Any, reason: str | None = None) -> dict[str, Any]:
    call: dict[str, Any] = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    if index is not None:
        call["index"] = index
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": reason}]}


def test_streams_that_are_written_badly_are_found_out() -> None:
    bad = stream(piece(None, "", "get_weather", {"city": "Bonn"}, "stop"), done=False)
    findings = {(one.key, one.value) for one in steps_of("streams.calls", bad, NO) if one.key}
    assert findings >= {
        ("stream.index", "missing"),
        ("stream.finish_reason", False),
        ("stream.ends_with", ""),
        ("stream.usage", "never"),
    }
    assert {"streamed calls come without an id", "a stream ends without [DONE]"} <= set(
        quirks(steps_of("streams.calls", bad, NO))
    )
    silent = stream(piece(0, "a", "get_weather", '{"city":"Bonn"}'))
    assert "a stream with calls has no finish_reason" in quirks(steps_of("streams.calls", silent, silent))
    words = stream(
        {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}
    )
    assert {one.key for one in steps_of("streams.calls", words)} == {"", "stream.usage", "stream.ends_with"}


def test_what_does_not_stream_is_reported() -> None:
    assert quirks(steps_of("streams.calls", NO)) == ["it does not stream"]
    assert quirks(steps_of("streams.calls", replied(Text("x")))) == ["a request for a stream gets a whole reply"]
    assert steps_of("streams.calls", replace(YES, cut=True))[0].quirk == "a stream does not end"
    other = replace(stream({"type": "x"}), reply=Reply(Turn("assistant", (Text("x"),))), verdict="accepted")
    assert "a stream ends without message_stop" in quirks(steps_of("streams.calls", other, protocol="anthropic"))


# --- comparing ------------------------------------------------------------------------------------


def test_what_a_profile_does_not_say_is_a_departure_only_if_less_is_taken_than_by_default() -> None:
    bare = profiles.get("bare", overrides=Overrides('[profiles.bare]\ntitle = "Says nothing"\n'))
    assert bare.origins == {}
    more = (
        *(one_of("turns.name_field", True), one_of("turns.empty_text", False), one_of("tools.max_count", None)),
        *(one_of("ids.max_length", 200), one_of("request.min_max_tokens", 1), one_of("schema.refused", ("not",))),
        one_of("choice.modes", ("auto", "none", "required")),
    )
    assert departures(result_of(*more), bare) == ()
    less = (
        *(one_of("calls.with_text", False), one_of("ids.max_length", 20), one_of("choice.modes", ("auto",))),
        one_of("tools.max_count", 200),
    )
    differences = departures(result_of(*less), bare)
    assert [(one.key, one.expected, one.stated) for one in differences] == [
        ("calls.with_text", True, False),
        ("ids.max_length", 40, False),
        ("choice.modes", ("auto", "none"), False),
        ("tools.max_count", None, False),
    ]


def test_what_does_not_settle_an_entry_is_no_departure() -> None:
    assert departures(result_of(one_of("ids.required", False, settles=False)), profiles.get("openai")) == ()


def test_an_endpoint_without_a_profile_departs_from_the_profile_of_any_host() -> None:
    host = profiles.get("openai_compatible")
    assert [one.key for one in departures(result_of(one_of("ids.max_length", 30)), host)] == ["ids.max_length"]


@pytest.mark.parametrize(
    ("key", "found", "target", "same"),
    [
        ("ids.pattern", "[A-Za-z0-9_-]+", "openai", True),
        ("ids.pattern", r"\S+", "openai", False),
        ("names.pattern", "[A-Za-z0-9_-]+", "openai", True),
        ("tools.max_count", 128, "openai", True),
        ("tools.max_count", None, "anthropic", True),
        ("tools.strict", "optional", "openai_responses", True),
        ("tools.by_prompt", "hermes", "openai", False),
        ("results.alone", True, "bedrock", True),
        ("schema.refs", True, "ollama", True),
        ("results.name", "optional", "mistral", True),
        ("results.name", "refused", "mistral", False),
        ("turns.last", "any", "llamacpp", True),
        ("turns.prefill", "yes", "llamacpp", True),
        ("schema.refused", (), "openai", True),
        ("schema.formats", ("date-time",), "gemini", False),
        ("reasoning.efforts", (), "openai", False),
    ],
)
def test_entries_are_compared_by_what_they_mean(key: str, found: Any, target: str, same: bool) -> None:
    assert agrees(key, found, profiles.get(target).as_known()) is same
