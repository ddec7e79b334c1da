"""What a native request keeps (the start of a reply, a paused turn), and what is fixed in it: forms that the provider
refuses, words that would run together, changes that were not reported."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from support.translate.conversion_checks import (
    CLAUDE,
    GPT,
    MISTRAL,
    RESPONSES,
    Fields,
    Target,
    assert_accepted,
    convert_checked,
    entries_about,
)
from toolglot import (
    ConvertedRequest,
    History,
    Media,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    convert,
    lint,
    repair,
    request_for,
)
from toolglot.protocols.fields.result_messages import one_text

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
OLLAMA = ("ollama", "qwen3:8b")
COHERE = ("cohere", "command-a-03-2025")
OPUS = ("anthropic", "claude-opus-4-8")
USER_MESSAGE: Fields = {"role": "user", "content": "go"}
MORE: Fields = {"role": "user", "content": "more"}
SEARCH: Fields = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: Fields = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
MARK: Fields = {"type": "ephemeral"}


def claude(*messages: Fields, **more: Any) -> Fields:
    return {"model": OPUS[1], "max_tokens": 100, "messages": list(messages), **more}


def chat(*messages: Fields, **more: Any) -> Fields:
    return {"model": "m", "messages": list(messages), **more}


def responses(*items: Fields) -> Fields:
    return {"model": RESPONSES[1], "input": list(items)}


def repair_checked(body: Fields, target: Target) -> ConvertedRequest:
    """The repaired request, after every judge has accepted it."""
    out = repair(msgspec.json.encode(body), target=target[0], model=target[1])
    assert_accepted(out, target)
    return out


def assert_kept(body: Fields, target: Target) -> None:
    """A valid request to its own provider goes through byte for byte (law 3)."""
    written = msgspec.json.format(msgspec.json.encode({**body, "model": target[1]}), indent=1)
    out = repair(written, target=target[0], model=target[1])
    assert out.data == written
    assert not out.report.entries
    assert lint(body, *target) == ()


# --- turns that the model goes on with --------------------------------------------------------------


@pytest.mark.parametrize("model", [OPUS[1], CLAUDE[1], "claude-sonnet-4-5"])
@pytest.mark.parametrize("blocks", [(SEARCH,), (SEARCH, FOUND), (SEARCH, FOUND, {"type": "text", "text": "So:"})])
def test_a_turn_that_was_paused_amid_a_server_tool_is_sent_again_as_it_is(
    model: str, blocks: tuple[Fields, ...]
) -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    assert_kept(claude(USER_MESSAGE, {"role": "assistant", "content": list(blocks)}, tools=tools), ("anthropic", model))


def test_a_turn_of_words_alone_is_still_followed_by_the_user() -> None:
    out = repair_checked(claude(USER_MESSAGE, {"role": "assistant", "content": "So:"}), OPUS)
    assert out.body["messages"][-1]["role"] == "user"
    assert entries_about(out, "must speak last", action="added")


@pytest.mark.parametrize(
    ("target", "mark"),
    [
        (MISTRAL, "prefix"),
        (("kimi", "kimi-k2-0905-preview"), "partial"),
        (("deepseek", "deepseek-chat"), "prefix"),
        (("qwen", "qwen3-max"), "partial"),
    ],
)
def test_the_marked_start_of_an_answer_stays_last(target: Target, mark: str) -> None:
    assert_kept(chat(USER_MESSAGE, {"role": "assistant", "content": "{", mark: True}), target)


@pytest.mark.parametrize("mark", [{}, {"prefix": False}, {"prefix": None}, {"prefix": "true"}])
def test_an_answer_that_is_not_marked_as_a_start_is_followed_by_the_user(mark: Fields) -> None:
    body = chat(USER_MESSAGE, {"role": "assistant", "content": "{", **mark})
    out = repair(body, target=MISTRAL[0], model=MISTRAL[1])
    assert out.body["messages"][-1]["role"] == "user"


def test_a_prefix_mark_means_nothing_to_other_providers() -> None:
    body = chat(USER_MESSAGE, {"role": "assistant", "content": "{", "prefix": True})
    assert convert_checked(body, "mistral", OPUS).body["messages"][-1]["role"] == "user"
    assert convert_checked(body, "mistral", ("groq", "x")).body["messages"][-1]["role"] == "user"


# --- words that would run together ------------------------------------------------------------------


def history_with_image(*more: Turn) -> History:
    """A history with a tool result that has an image, and the turns after it."""
    history = History(provider="openai")
    history.append(Turn("user", (Text("go"),)))
    called = history.append(Turn("assistant", (ToolCall("call_a", "shot", {}),)))
    history.record(ToolResult(called.calls[0].id, (Text("done"), Media("image", "image/png", data=PNG))))
    for turn in more:
        history.append(turn)
    return history


def messages_for(history: History, target: Target) -> list[Fields]:
    out = request_for(history, target=target[0], model=target[1])
    assert_accepted(out, target)
    messages: list[Fields] = out.body["messages"]
    return messages


def test_the_heading_of_a_moved_image_and_the_users_words_are_set_apart() -> None:
    last = messages_for(history_with_image(Turn("user", (Text("delete everything"),))), OLLAMA)[-1]
    assert last["content"] == "[From the tool results:]\n\ndelete everything"
    assert last["images"] == [PNG]


def test_thinking_between_the_words_of_two_turns_does_not_bring_them_together() -> None:
    history = History(provider="ollama")
    history.append(Turn("user", (Text("go"),)))
    history.append(Turn("assistant", (Text("One"),)))
    history.append(Turn("assistant", (Thinking("hm"), Text("Two"))))
    history.append(Turn("user", (Text("A"),)))
    messages = messages_for(history, OLLAMA)
    assert [message["content"] for message in messages] == ["go", "One\n\nTwo", "A"]
    assert messages[1]["thinking"] == "hm"


@pytest.mark.parametrize("words", [(Media("image", "image/png", data=PNG),), (Text("x"),)])
def test_turns_are_joined_without_a_seam_where_one_has_no_words(words: tuple[Media | Text, ...]) -> None:
    history = History(provider="openai")
    history.append(Turn("user", (Media("image", "image/png", data=PNG),)))
    history.append(Turn("user", words))
    (message,) = messages_for(history, OLLAMA)
    assert message["content"] == "".join(block.text for block in words if isinstance(block, Text))


@pytest.mark.parametrize("target", [OLLAMA, COHERE])
def test_two_texts_of_a_user_are_on_two_lines_and_those_of_an_assistant_as_they_came(target: Target) -> None:
    history = History(provider="openai")
    history.append(Turn("user", (Text("A"), Text("B"))))
    history.append(Turn("assistant", (Text("It is "), Text("warm"), Text(", they say."))))
    history.append(Turn("user", (Text("C\n"), Text("D"), Text(" E"))))
    assert [message["content"] for message in messages_for(history, target)] == [
        "A\nB",
        "It is warm, they say.",
        "C\nD E",
    ]


def test_empty_texts_put_no_line_between_others() -> None:
    assert one_text(["", "A", "", "B", ""], "user") == "A\nB"
    assert one_text([], "user") == ""


# --- forms that the provider refuses ----------------------------------------------------------------

CALL: Fields = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
FREE: Fields = {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "x"}
OUTPUT: Fields = {"type": "function_call_output", "call_id": "call_1", "output": "r"}


@pytest.mark.parametrize("call", [CALL, FREE], ids=["function", "custom"])
def test_B5_an_item_id_of_another_kind_is_left_out_of_a_native_request_too(call: Fields) -> None:
    output = OUTPUT if call is CALL else {**OUTPUT, "type": "custom_tool_call_output"}
    out = repair_checked(responses(USER_MESSAGE, {**call, "id": "call_1"}, output), RESPONSES)
    assert "id" not in out.body["input"][1]
    assert out.body["input"][1]["call_id"] == "call_1"
    (entry,) = entries_about(out, "of another kind")
    assert entry.path == "$.input[1].id"


def test_B5_an_item_id_of_its_kind_stays() -> None:
    assert_kept(responses(USER_MESSAGE, {**CALL, "id": "fc_1"}, OUTPUT), RESPONSES)


def test_texts_of_the_other_side_get_the_type_of_their_own() -> None:
    body = responses(
        {"role": "user", "content": [{"type": "output_text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "input_text", "text": "b"}]},
        MORE,
    )
    out = repair(body, target=RESPONSES[0], model=RESPONSES[1])
    # The SDK's definitions want an id and annotations of such a message; the API does not.
    assert lint(out.body, *RESPONSES) == ()
    assert repair(out.data, target=RESPONSES[0], model=RESPONSES[1]).data == out.data
    assert [item["content"][0]["type"] for item in out.body["input"][:2]] == ["input_text", "output_text"]
    assert len(entries_about(out, "was read as")) == 2


@pytest.mark.parametrize("choice", [{}, {"tool_choice": "auto"}])
def test_an_empty_list_of_tools_is_left_out_where_it_is_refused(choice: Fields) -> None:
    out = repair_checked(chat(USER_MESSAGE, tools=[], **choice), GPT)
    assert "tools" not in out.body
    assert "tool_choice" not in out.body
    assert entries_about(out, "an empty list of tools")


def test_an_empty_list_of_tools_stays_where_it_is_taken() -> None:
    assert_kept(chat(USER_MESSAGE, tools=[]), MISTRAL)


WITHOUT_CONTENT: list[Fields] = [
    {"role": "assistant", "content": None},
    {"role": "assistant", "content": None, "refusal": None},
    {"role": "assistant"},
    {"role": "assistant", "content": []},
    {"role": "user", "content": []},
]


@pytest.mark.parametrize("nothing", WITHOUT_CONTENT, ids=str)
def test_C8_a_message_without_content_is_refused_and_read_as_empty(nothing: Fields) -> None:
    body = chat(USER_MESSAGE, nothing, MORE)
    assert "openai-null-content" in [violation.rule for violation in lint(body, *GPT)]
    out = repair_checked(body, GPT)
    assert out.body["messages"][1]["content"] == ""
    assert entries_about(out, "read as empty")


@pytest.mark.parametrize("nothing", WITHOUT_CONTENT, ids=str)
def test_C8_what_becomes_of_an_empty_turn_is_the_targets_rule(nothing: Fields) -> None:
    contents = [
        message["content"] for message in repair_checked(chat(USER_MESSAGE, nothing, MORE), MISTRAL).body["messages"]
    ]
    texts = [content if isinstance(content, str) else content[0]["text"] for content in contents]
    assert texts == (["go", "more"] if nothing["role"] == "assistant" else ["go", "[empty message]", "more"])


@pytest.mark.parametrize(
    "beside", [{"content": None, "refusal": "no"}, {"audio": {"id": "audio_1"}}, {"content": ""}], ids=str
)
def test_C8_a_message_with_other_fields_than_content_stays(beside: Fields) -> None:
    assert_kept(chat(USER_MESSAGE, {"role": "assistant", **beside}, MORE), GPT)


# --- cache markers ----------------------------------------------------------------------------------


def marked(text: str) -> Fields:
    return {"type": "text", "text": text, "cache_control": MARK}


IN_RESULT = "$.messages[2].content[0].content[0].cache_control"


def crowded(**more: Any) -> Fields:
    """Markers in tools, system, a result, what is in it, and words."""
    return claude(
        USER_MESSAGE,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [marked("r")], "cache_control": MARK},
                marked("more"),
            ],
        },
        system=[marked("s")],
        tools=[{"name": "f", "input_schema": {"type": "object"}, "cache_control": MARK}],
        **more,
    )


def test_of_too_many_cache_markers_those_of_tools_and_system_and_the_last_of_messages_stay() -> None:
    out = repair_checked(crowded(), OPUS)
    assert [entry.path for entry in entries_about(out, "cache markers")] == [IN_RESULT]
    assert out.data.count(b"cache_control") == 4


def test_the_marker_of_the_whole_request_counts() -> None:
    out = repair_checked(crowded(cache_control=MARK), OPUS)
    paths = [entry.path for entry in entries_about(out, "cache markers")]
    assert paths == [IN_RESULT, "$.messages[2].content[0].cache_control"]


def test_markers_of_blocks_that_only_the_provider_knows_count() -> None:
    blocks = [{**SEARCH, "cache_control": MARK}, {**FOUND, "cache_control": MARK}]
    tools = [{"type": "web_search_20250305", "name": "web_search", "cache_control": MARK}]
    words = {"role": "user", "content": [marked("a"), marked("b")]}
    out = repair_checked(claude(words, {"role": "assistant", "content": blocks}, MORE, tools=tools), OPUS)
    assert out.data.count(b"cache_control") == 4


def test_four_cache_markers_stay_and_the_referee_counts_them() -> None:
    words = {"role": "user", "content": [marked(text) for text in "abcd"]}
    assert_kept(claude(words), OPUS)
    (violation,) = lint(claude(words, system=[marked("s")]), *OPUS)
    assert violation.rule == "anthropic-cache-max-markers"
    assert violation.path == "$.system[0].cache_control"


# --- reported changes, and requests that are not empty ----------------------------------------------


@pytest.mark.parametrize("before", [(), (USER_MESSAGE, {"role": "assistant", "content": "a"})], ids=["head", "inside"])
def test_a_converted_developer_prompt_is_reported(before: tuple[Fields, ...]) -> None:
    out = convert_checked(
        chat(*before, {"role": "developer", "content": "rules"}, USER_MESSAGE), "openai", ("deepseek", "deepseek-chat")
    )
    written = {"role": "user", "content": "<system>\nrules\n</system>"} if before else None
    assert (written or {"role": "system", "content": "rules"}) in out.body["messages"]
    reason = "a developer prompt is refused here" if before else "no developer role"
    assert len(entries_about(out, reason, action="converted")) == 1


@pytest.mark.parametrize("target", [RESPONSES, OPUS, ("gemini", "gemini-2.5-pro")])
def test_a_prompt_alone_is_followed_by_a_word_of_the_user(target: Target) -> None:
    out = convert_checked(chat({"role": "system", "content": "rules"}), "openai", target)
    (message,) = out.body.get("input") or out.body.get("contents") or out.body["messages"]
    assert message["role"] == "user"
    assert entries_about(out, "must speak", action="added")


def test_a_native_prompt_alone_stays_alone() -> None:
    assert_kept(chat({"role": "system", "content": "rules"}), GPT)
    stored = {"model": RESPONSES[1], "instructions": "rules", "prompt": {"id": "pmpt_1"}}
    out = repair(stored, target=RESPONSES[0])
    assert out.body == stored
    assert [entry.gravity for entry in out.report.entries] == ["housekeeping"], "the stored prompt was not seen"


@pytest.mark.parametrize(("target", "model"), [("ollama", "qwen3"), ("bedrock", "anthropic.claude-sonnet-4-5")])
def test_law_9_turns_of_one_speaker_are_joined_in_one_look_at_each(target: str, model: str) -> None:
    """Counted, not timed: ten times the turns are ten times the work."""

    def steps(count: int) -> int:
        body = {"model": "m", "messages": [{"role": "user", "content": f"x{number}"} for number in range(count)]}
        taken = 0

        def count_lines(frame: Any, event: str, arg: Any) -> Any:
            nonlocal taken
            taken += 1
            return count_lines

        before = sys.gettrace()
        sys.settrace(count_lines)
        try:
            convert(body, source="openai", target=target, model=model)
        finally:
            sys.settrace(before)
        return taken

    steps(10)
    assert steps(1000) < 11 * steps(100)


def test_calls_join_all_the_answers_before_them_where_calls_may_not_follow_words() -> None:
    texts = [{"role": "model", "parts": [{"text": str(number)}]} for number in range(3)]
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "go"}]}, *texts, call, result]}
    out = repair(body, target="gemini", model="gemini-3-pro")
    assert lint(out.body, "gemini", "gemini-3-pro") == ()
    parts = out.body["contents"][1]["parts"]
    assert [part.get("text") for part in parts] == ["0", "1", "2", None]
