"""The diff with the request before, the timeline, the targets, the code, and the explanation of a rule."""

from __future__ import annotations

import json
import shlex
import subprocess
from decimal import Decimal
from typing import Any, Final

import pytest

from support.inspector.captured_requests import captured, captured_body, talk
from toolglot.errors import InputError, UnknownNameError
from toolglot.gateway.inspector.views.code import FORMS, code_of
from toolglot.gateway.inspector.views.explanation import explanation_of
from toolglot.gateway.inspector.views.prefix_diff import common_length, diff_of
from toolglot.gateway.inspector.views.target_table import on_target, overview
from toolglot.gateway.inspector.views.timeline import MAX_EVENTS, timeline_of
from toolglot.protocols.base import get, names
from toolglot.upstream.prices import Price
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.model_names import matches

PRICE: Final = Price(Decimal(10), Decimal(50), cache_read=Decimal(1))

# --- diff -------------------------------------------------------------------------------------------


def test_a_request_that_only_grew_keeps_its_prefix() -> None:
    found = diff_of(captured(talk(2), id="2"), captured(talk(1), id="1"), price=PRICE)
    assert (found["previous"], found["prefix_kept"], found["first_difference"]) == ("1", True, None)
    assert (found["lost_tokens"], found["lost_usd"]) == (0, 0.0)
    assert [turn["role"] for turn in found["added"]] == ["assistant", "user"]
    assert found["removed"] == found["changed"] == []
    assert found["prefix_bytes"] > 100


def test_a_changed_message_breaks_the_prefix_there() -> None:
    before, after = talk(3), talk(4)
    after[1] = {"role": "assistant", "content": "Something else."}
    after[2] = {"role": "user", "content": "Why?"}
    found = diff_of(captured(after), captured(before), price=PRICE)
    assert not found["prefix_kept"]
    difference = found["first_difference"]
    assert difference["path"] == "$.input[1]"
    assert "I look, 0." in difference["before"]
    assert "Something else." in difference["after"]
    assert (
        captured(before)["rendered"]
        .encode()[difference["offset"] :]
        .startswith(difference["before"][difference["at"] :].encode())
    )
    assert found["lost_tokens"] > 0
    assert found["lost_usd"] == pytest.approx(found["lost_tokens"] * 9 / 1e6)
    assert [turn["index"] for turn in found["removed"]] == [2, 3]


@pytest.mark.parametrize(("field", "path"), [("system", "$.instructions"), ("tools", "$.tools")])
def test_a_changed_system_prompt_or_tool_breaks_all_of_it(field: str, path: str) -> None:
    value: Any = "Be brief." if field == "system" else []
    found = diff_of(captured(talk(2), **{field: value}), captured(talk(1)), price=PRICE)
    assert not found["prefix_kept"]
    assert found["first_difference"]["path"] == path
    assert path in found["changed"]
    assert found["lost_tokens"] == found["prefix_bytes"] // 4


def test_a_turn_that_was_changed_is_shown_alone() -> None:
    before, after = talk(3), talk(4)
    after[2]["content"][1]["text"] = "Another question."
    found = diff_of(captured(after, system="Be brief."), captured(before))
    assert [turn["index"] for turn in found["removed"]] == [0, 3]
    assert [turn["index"] for turn in found["added"]] == [0, 3, 8, 9]
    inserted = [
        before[0],
        {"role": "assistant", "content": "More."},
        {"role": "user", "content": "Go on."},
        *before[1:],
    ]
    found = diff_of(captured(inserted), captured(before))
    assert ([turn["index"] for turn in found["added"]], found["removed"]) == ([2, 3], [])


def test_a_setting_that_is_no_part_of_the_prompt_breaks_nothing() -> None:
    before = captured_body(
        {"model": "a", "max_tokens": 5, "messages": talk(1)}, source="anthropic", target="anthropic", model="a"
    )
    after = captured_body(
        {"model": "a", "max_tokens": 9, "messages": talk(2)}, source="anthropic", target="anthropic", model="a"
    )
    assert diff_of(after, before)["prefix_kept"]


def test_a_cache_marker_that_moves_breaks_nothing() -> None:
    def marked(rounds: int) -> dict[str, Any]:
        messages = talk(rounds)
        messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return captured_body(
            {"model": "claude-opus-5", "max_tokens": 5, "messages": messages},
            source="anthropic",
            target="anthropic",
            model="claude-opus-5",
        )

    assert diff_of(marked(3), marked(2))["prefix_kept"]


@pytest.mark.parametrize(("more", "kept"), [({"type": "text", "text": "and now?"}, True), (None, False)])
def test_a_last_message_that_got_more_blocks_keeps_the_prefix(more: dict[str, Any] | None, kept: bool) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}
    first = [{"role": "user", "content": "look"}, {"role": "assistant", "content": [call]}]
    before = {"messages": [*first, {"role": "user", "content": [result]}]}
    after = {
        "messages": [*first, {"role": "user", "content": [result, more] if more else [{**result, "content": "y"}]}]
    }
    captures = [
        {"id": str(index), "protocol": "anthropic", "target": "anthropic", "request": json.dumps(each)}
        for index, each in enumerate((before, after))
    ]
    found = diff_of(
        {**captures[1], "rendered": captures[1]["request"]}, {**captures[0], "rendered": captures[0]["request"]}
    )
    assert found["prefix_kept"] == kept


def test_what_the_provider_counted_is_in_the_diff() -> None:
    lost = {"tokens": 900, "cause": "changed", "cost_usd": 0.1}
    before, after = captured(talk(1), id="1"), captured(talk(2), id="2")
    assert diff_of({**after, "cache_lost": lost}, before)["counted"] == lost
    assert diff_of({**after, "cache_lost": "x"}, before)["counted"] is None


def test_another_target_has_no_prefix_to_keep() -> None:
    found = diff_of(captured(talk(2), target="mistral", model="mistral-large-latest"), captured(talk(1)))
    assert found["same_target"] is False
    assert len(found["added"]) == 2


def test_the_first_request_has_nothing_before_it() -> None:
    assert diff_of(captured(), None)["previous"] is None


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_equal_beginnings_are_measured_exactly(size: int) -> None:
    assert common_length("x" * size + "a", "x" * size + "b") == size
    assert common_length("x" * size, "x" * size + "b") == size


# --- timeline ---------------------------------------------------------------------------------------


def chunk(delta: dict[str, Any], **fields: Any) -> str:
    """An event of a stream of Chat Completions."""
    choice = {"index": 0, "delta": delta, **fields}
    return f"data: {json.dumps({'id': '1', 'model': 'm', 'choices': [choice]})}\n\n"


CALL: Final = {"index": 0, "id": "abcdefgh1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
STREAM: Final = (
    chunk({"role": "assistant", "content": "Hel"}),
    chunk({"content": "lo"}),
    chunk({"tool_calls": [CALL]}) + chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "Rome'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"}'}}]}),
    chunk({}, finish_reason="tool_calls") + "data: [DONE]\n\n",
)


def streamed(pieces: tuple[str, ...] = STREAM, times: tuple[float, ...] = (0.5, 0.6, 4.0, 4.1, 4.2)) -> dict[str, Any]:
    """The capture of a stream whose second half is late."""
    received = [[at, "received", len(piece.encode())] for at, piece in zip(times, pieces, strict=True)]
    pings = [[2.0, "sent", 9], [3.0, "sent", 9]]
    return {
        **captured(target="mistral", model="mistral-large-latest"),
        "stream": True,
        "seconds": 4.5,
        "reply": "".join(pieces),
        "response": ": ping ok" * 2,
        "pieces": sorted([*received, *pings], key=lambda piece: float(str(piece[0]))),
        "attempts": [
            {"upstream": "first", "at": 0.01, "failed_at": 0.2, "failure": "overloaded", "retried": "it was busy"},
            {"upstream": "second", "at": 0.25},
        ],
        "usage": {"input_tokens": 10, "output_tokens": 3},
    }


def test_the_timeline_shows_what_came_when() -> None:
    found = timeline_of(streamed())
    shown = [(event["at"], event["kind"]) for event in found["events"]]
    assert shown == [
        (0.0, "request"),
        (0.01, "upstream"),
        (0.2, "failed"),
        (0.2, "retried"),
        (0.25, "upstream"),
        (0.5, "first_byte"),
        (0.5, "text"),
        (0.6, "text"),
        (0.6, "gap"),
        (2.0, "keep_alive"),
        (3.0, "keep_alive"),
        (4.0, "call_open"),
        (4.0, "arguments"),
        (4.1, "arguments"),
        (4.2, "call_close"),
        (4.2, "stop"),
        (4.5, "usage"),
        (4.5, "end"),
    ]
    by_kind = {event["kind"]: event for event in found["events"]}
    assert by_kind["failed"]["label"] == "first: overloaded"
    assert by_kind["retried"]["label"] == "it was busy"
    assert by_kind["gap"]["until"] == 4.0
    assert by_kind["call_open"]["label"] == "get_weather"
    assert [event["at"] for event in found["events"]] == sorted(event["at"] for event in found["events"])


def test_a_long_stream_is_joined() -> None:
    piece = 'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    count = 3 * MAX_EVENTS
    found = timeline_of(streamed((piece,) * count, tuple(0.5 + n / 1000 for n in range(count))))
    assert len(found["events"]) <= MAX_EVENTS
    assert sum(event["size"] for event in found["events"] if event["kind"] == "text") == count


@pytest.mark.parametrize("pieces", [None, 3, [1], [["x", "received", 1]], [[1.0, "received", -5]], [[0.1, "sent"]]])
def test_pieces_that_make_no_sense_are_left_out(pieces: Any) -> None:
    found = timeline_of({**streamed(), "pieces": pieces})
    assert not [event for event in found["events"] if event["kind"] in ("text", "first_byte", "keep_alive")]


# --- targets ----------------------------------------------------------------------------------------


def test_every_target_has_a_verdict() -> None:
    rows = {row["name"]: row for row in overview(captured(talk(2), stop_sequences=["x"]))}
    assert rows["anthropic"]["verdict"] == "ok"
    assert rows["anthropic"]["losses"] == 0
    assert rows["mistral"]["verdict"] == "ok"
    assert rows["mistral"]["changes"] >= 1
    assert rows["openai_responses"]["losses"] >= 1
    assert rows["openai_responses"]["model"] == "gpt-5.5"
    assert all(row["message"] for row in rows.values() if row["verdict"] != "ok")


def test_a_target_is_shown_with_a_model_of_its_own() -> None:
    rows = {
        row["name"]: row["model"] for row in overview({**captured(), "model": "mistral-large-latest", "target": "vllm"})
    }
    for name, provider in PROVIDERS.items():
        if provider.models:
            assert matches(rows[name], provider.models), name
    assert (rows["azure"], rows["vertex"]) == (rows["openai"], rows["gemini"])


def test_one_target_has_the_body_the_report_and_the_verdict() -> None:
    found = on_target(captured(), "mistral", "")
    assert json.loads(found["body"])["model"] == found["model"] == "mistral-large-latest"
    assert any(report["rule"] == "mistral-name-charset" for report in found["reports"])
    assert (found["violations"], found["refused"]) == ([], None)


def test_a_target_that_cannot_take_it_says_why() -> None:
    found = on_target(captured(), "openai", "gpt-5.5")
    assert found["body"] is None
    assert "openai_responses" in found["refused"]


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(UnknownNameError):
        on_target(captured(), "mistrall", "")


def test_without_bodies_there_is_no_verdict() -> None:
    assert {row["verdict"] for row in overview({**captured(), "request": None})} == {"refused"}


# --- code -------------------------------------------------------------------------------------------

EVIL: Final = "it's\nEOF\n$(touch /nowhere) `id` \"\"\" ''' \\ </script> \u2028"


@pytest.mark.parametrize("protocol", names())
def test_the_code_of_every_protocol_is_python(protocol: str) -> None:
    assert get(protocol).sdk_example
    target = get(protocol).provider
    capture = captured([{"role": "user", "content": EVIL}], target=target, model="m-1", tools=[])
    for stream in (False, True):
        for form in FORMS[1:]:
            code = code_of({**capture, "stream": stream}, form)
            compile(code, "code", "exec")
            assert "<" not in code.split("body = ")[0]


def test_the_body_survives_in_python() -> None:
    code = code_of(captured([{"role": "user", "content": EVIL}]), "python_client")
    scope: dict[str, Any] = {}
    exec(code[code.index("body = ") : code.index("\nclient = ")], scope)  # noqa: S102 - our own literal
    assert scope["body"]["messages"][0]["content"] == EVIL


def test_the_body_survives_in_the_shell() -> None:
    capture = captured([{"role": "user", "content": EVIL}])
    capture["request"] = json.dumps(json.loads(capture["request"]), indent=1, ensure_ascii=False) + "\nEOF\n$(id)"
    code = code_of(capture, "curl")
    script = code.replace("curl -sS", "print_body() { cat; }; print_body")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == capture["request"] + "\n"


def test_a_path_cannot_leave_its_quotes() -> None:
    code = code_of({**captured(), "path": "/v1/'; rm -rf x; '\n"}, "curl")
    assert shlex.split(code.splitlines()[1].removesuffix("\\"))[2] == "$TOOLGLOT_URL/v1/%27; rm -rf x; %27%0A"


def test_keys_are_variables() -> None:
    capture = captured()
    assert "$TOOLGLOT_KEY" in code_of(capture, "curl")
    assert 'os.environ.get("TOOLGLOT_KEY"' in code_of(capture, "python_client")
    assert 'os.environ["OPENAI_API_KEY"]' in code_of(capture, "python_provider")
    with pytest.raises(InputError, match="unknown form"):
        code_of(capture, "perl")


# --- rules ------------------------------------------------------------------------------------------


def test_a_rule_is_explained() -> None:
    found = explanation_of("mistral-id-nine")
    assert (found["title"], found["value"], found["confidence"]) == ("ids.pattern", "[A-Za-z0-9]{9}", "documented")
    assert found["source"]
    assert explanation_of("default:ids.pattern")["confidence"] == "default"
    with pytest.raises(InputError, match="mistral-id-nine"):
        explanation_of("mistral-id-nin")
