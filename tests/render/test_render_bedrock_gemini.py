"""What Bedrock and Gemini do otherwise: cache markers, names of documents, and calls without ids."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from toolglot import profiles
from toolglot.conversation import Conversation, Media, Opaque, Text, ToolCall, ToolResult, Turn
from toolglot.history.history import History
from toolglot.protocols.ollama.request import encode
from toolglot.render import render

Body = dict[str, Any]

CLAUDE = "anthropic.claude-sonnet-4-5-v1:0"
OPUS = "anthropic.claude-opus-4-1-v1:0"
NOVA = "amazon.nova-pro-v1:0"
LLAMA = "meta.llama3-1-70b-instruct-v1:0"
MODELS = [CLAUDE, NOVA]
"""Families that accept cache markers: one where text may be beside results, and one where it may not."""
MARKER: Body = {"cachePoint": {"type": "default"}}
SCHEMA: Body = {"type": "object", "properties": {"k": {"type": "string"}}}
USER: Body = {"role": "user", "content": [{"text": "hi"}]}
OLD, NEW = "gemini-2.5-pro", "gemini-3-pro-preview"


def use(id: str = "tooluse_1") -> Body:
    return {"toolUse": {"toolUseId": id, "name": "f", "input": {"k": "v"}}}


def answer(id: str = "tooluse_1") -> Body:
    return {"toolResult": {"toolUseId": id, "content": [{"text": "r"}], "status": "success"}}


def message(role: str, *content: Body) -> Body:
    return {"role": role, "content": list(content)}


def converse(*messages: Body, tools: list[Body] | None = None, model: str = CLAUDE, **more: Any) -> Body:
    specs = tools or [{"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}}]
    return {"modelId": model, "messages": list(messages), "toolConfig": {"tools": specs}, **more}


def assert_unchanged(body: Body, target: str, model: str) -> None:
    """A native body is sent as the bytes that came, by every function."""
    raw = json.dumps(body, indent=1).encode()
    repaired = toolglot.repair(raw, target=target, model=model)
    converted = toolglot.convert(raw, source=target, target=target, model=model)
    assert repaired.data == raw, str(repaired.report)
    assert converted.data == raw, str(converted.report)
    assert toolglot.lint(body, target, model=model) == ()


# --- cache markers ----------------------------------------------------------------------------------

MARKED = {
    "behind a result": [USER, message("assistant", use()), message("user", answer(), MARKER)],
    "behind two results": [
        USER,
        message("assistant", use(), use("tooluse_2")),
        message("user", answer(), answer("tooluse_2"), MARKER),
    ],
    "between two results": [
        USER,
        message("assistant", use(), use("tooluse_2")),
        message("user", answer(), MARKER, answer("tooluse_2")),
    ],
    "behind text": [message("user", {"text": "hi"}, MARKER)],
    "behind a call": [USER, message("assistant", use(), MARKER), message("user", answer())],
    "everywhere": [
        message("user", {"text": "hi"}, MARKER),
        message("assistant", {"text": "so"}, use(), MARKER),
        message("user", answer(), MARKER),
        message("assistant", {"text": "done"}),
        message("user", {"text": "more"}, MARKER),
    ],
}
"""With four markers at most, and those with the longer time first: more are refused."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("position", MARKED)
def test_a_native_cache_marker_stays_where_it_is(position: str, model: str) -> None:
    assert_unchanged(converse(*MARKED[position], model=model), "bedrock", model)


@pytest.mark.parametrize("model", MODELS)
def test_a_cache_marker_in_the_system_prompt_stays(model: str) -> None:
    assert_unchanged(converse(USER, model=model, system=[{"text": "s"}, MARKER]), "bedrock", model)


def test_a_marker_in_a_turn_of_its_own_behind_results_stays_there() -> None:
    body = converse(USER, message("assistant", use()), message("user", answer()), message("user", MARKER), model=NOVA)
    out = toolglot.repair(json.dumps(body), target="bedrock", model=NOVA)
    assert out.body == body


def test_text_beside_a_marker_is_still_separate_from_results() -> None:
    body = converse(USER, message("assistant", use()), message("user", answer(), {"text": "x"}, MARKER), model=LLAMA)
    out = toolglot.repair(json.dumps(body), target="bedrock", model=LLAMA)
    assert [message["role"] for message in out.body["messages"][2:]] == ["user", "assistant", "user"]
    assert out.body["messages"][-1] == message("user", {"text": "x"})


SPEC: Body = {"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}}
OTHER: Body = {"toolSpec": {"name": "g", "inputSchema": {"json": SCHEMA}}}
SYSTEM_TOOL: Body = {"systemTool": {"name": "nova_grounding"}}
HOUR: Body = {"cachePoint": {"type": "default", "ttl": "1h"}}
TOOL_LISTS = {
    "behind the last": [SPEC, OTHER, MARKER],
    "between": [SPEC, MARKER, OTHER],
    "before": [MARKER, SPEC],
    "twice": [HOUR, SPEC, HOUR, MARKER],
    "behind a tool of its own": [SPEC, SYSTEM_TOOL, MARKER],
}


@pytest.mark.parametrize("position", TOOL_LISTS)
def test_a_native_cache_marker_among_tools_stays_where_it_is(position: str) -> None:
    body = converse(USER, tools=TOOL_LISTS[position])
    assert_unchanged(body, "bedrock", CLAUDE)
    again = toolglot.convert(body, source="bedrock", target="bedrock", model=OPUS)  # written anew
    assert again.body["toolConfig"]["tools"] == TOOL_LISTS[position]
    assert again.body["modelId"] == OPUS


@pytest.mark.parametrize("position", TOOL_LISTS)
def test_nova_gets_no_cache_marker_among_its_tools_and_all_of_them(position: str) -> None:
    out = toolglot.convert(converse(USER, tools=TOOL_LISTS[position]), source="bedrock", target="bedrock", model=NOVA)
    assert out.body["toolConfig"]["tools"] == [tool for tool in TOOL_LISTS[position] if "cachePoint" not in tool]
    assert out.report.entries
    assert toolglot.lint(out.body, "bedrock", model=NOVA) == ()


@pytest.mark.parametrize(
    ("position", "marked"),
    [("behind the last", {1: None}), ("between", {0: None}), ("before", {0: None}), ("twice", {0: "1h"})],
)
def test_cache_markers_among_tools_are_carried_to_anthropic(position: str, marked: dict[int, str | None]) -> None:
    body = converse(USER, tools=TOOL_LISTS[position])
    out = toolglot.convert(body, source="bedrock", target="anthropic", model="claude-sonnet-4-5")
    tools = out.body["tools"]
    found = {at: tool["cache_control"].get("ttl") for at, tool in enumerate(tools) if "cache_control" in tool}
    assert found == marked
    assert "cachePoint" not in json.dumps(out.body)
    is_reported = any(entry.action == "dropped" for entry in out.report.entries)
    assert is_reported == (position == "twice")


@pytest.mark.parametrize("position", ["behind the last", "between", "before", "twice"])
@pytest.mark.parametrize(("target", "model"), [("openai", "gpt-4.1"), ("gemini", NEW)])
def test_a_foreign_cache_marker_among_tools_is_no_tool_and_is_reported(target: str, model: str, position: str) -> None:
    body = converse(USER, tools=TOOL_LISTS[position])
    out = toolglot.convert(body, source="bedrock", target=target, model=model)
    assert "cachePoint" not in json.dumps(out.body)
    assert [entry.path for entry in out.report.entries if entry.action == "dropped"] == ["$.cachePoint"]


def test_markers_without_any_tool_are_kept_as_they_came() -> None:
    body = converse(USER, tools=[MARKER])
    out = toolglot.convert(body, source="bedrock", target="bedrock", model=NOVA)
    assert out.body["toolConfig"] == {"tools": [MARKER]}
    assert toolglot.convert(body, source="bedrock", target="openai", model="gpt-4.1").body.get("tools") is None


def test_a_field_of_a_tool_that_is_called_like_a_marker_is_not_lost() -> None:
    odd = {"toolSpec": {**SPEC["toolSpec"], "cachePoint": {"odd": 1}}}
    out = toolglot.convert(converse(USER, tools=[odd, MARKER]), source="bedrock", target="bedrock", model=OPUS)
    assert out.body["toolConfig"]["tools"] == [odd, MARKER]


# --- names of documents -----------------------------------------------------------------------------


def document(name: str | None, **source: Any) -> Body:
    named = {} if name is None else {"name": name}
    return {"document": {"format": "pdf", **named, "source": source or {"bytes": "JVBERi0="}}}


def documents_of(body: Body) -> list[str]:
    found: list[str] = []
    for message in body["messages"]:
        for block in message["content"]:
            parts = [block, *block.get("toolResult", {}).get("content", ())]
            found += [part["document"]["name"] for part in parts if "document" in part]
    return found


@pytest.mark.parametrize(
    ("original", "sent"),
    [
        ("report_v1.2.pdf", "report_v1-2-pdf"),
        ("a.pdf", "a-pdf"),
        ("John's  report\t#1.pdf", "John-s report -1-pdf"),
        ("報告", "document"),
        ("...", "document"),
        ("x" * 300, "x" * 200),
        ("fine (2) [x]-y_z", "fine (2) [x]-y_z"),
    ],
)
def test_a_document_gets_a_name_that_bedrock_accepts(original: str, sent: str) -> None:
    file = {"filename": original, "file_data": "data:application/pdf;base64,JVBERi0="}
    content = [{"type": "text", "text": "x"}, {"type": "file", "file": file}]
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": content}]}
    out = toolglot.convert(body, source="openai", target="bedrock", model=CLAUDE)
    assert documents_of(out.body) == [sent]
    assert any(entry.action == "renamed" for entry in out.report.entries) == (sent != original)
    assert toolglot.lint(out.body, "bedrock", model=CLAUDE) == ()


def test_names_within_a_request_are_unique_in_the_order_of_the_conversation() -> None:
    history = History()
    unnamed = Media("document", "application/pdf", data="JVBERi0=")
    for name in (None, "a.pdf", "a-pdf", None, "document (2)"):
        history.append(Turn("user", (Text("read"), with_name(unnamed, name))))
        history.append(Turn("assistant", (Text("ok"),)))
    history.append(Turn("user", (Text("end"),)))
    out = toolglot.request_for(history, target="bedrock", model=CLAUDE)
    assert documents_of(out.body) == ["document", "a-pdf", "a-pdf (2)", "document (2)", "document (2) (2)"]
    assert toolglot.lint(out.body, "bedrock", model=CLAUDE) == ()


def with_name(media: Media, name: str | None) -> Media:
    return Media(media.kind, media.media_type, data=media.data, name=name)


OWN_DOCUMENTS = {
    "data": document("a.pdf"),
    "words": document("a.pdf", text="printed"),
    "words in parts": document("a.pdf", content=[{"text": "printed"}]),
    "no words": document("a.pdf", text=""),
}


@pytest.mark.parametrize("form", OWN_DOCUMENTS)
@pytest.mark.parametrize("is_in_result", [False, True])
def test_a_bad_name_in_a_native_request_is_fixed_and_reported(form: str, is_in_result: bool) -> None:
    block = OWN_DOCUMENTS[form]
    if is_in_result:
        result = {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "r"}, block]}}
        body = converse(USER, message("assistant", use()), message("user", result))
    else:
        body = converse(message("user", {"text": "x"}, block))
    assert {found.key for found in toolglot.lint(body, "bedrock", model=CLAUDE)} == {"turns.document_name"}
    out = toolglot.repair(json.dumps(body), target="bedrock", model=CLAUDE)
    wanted = json.loads(json.dumps(body).replace("a.pdf", "a-pdf"))
    assert out.body == wanted
    assert [entry.action for entry in out.report.entries] == ["renamed"]
    assert "bedrock-document-name" in out.report.entries[0].reason


@pytest.mark.parametrize("form", OWN_DOCUMENTS)
def test_a_good_name_in_an_own_request_stays(form: str) -> None:
    block = json.loads(json.dumps(OWN_DOCUMENTS[form]).replace("a.pdf", "Report 7 (final) [b]-c_d"))
    assert_unchanged(converse(message("user", {"text": "x"}, block)), "bedrock", CLAUDE)


def test_a_second_document_of_one_name_is_numbered_in_a_native_request() -> None:
    body = converse(message("user", {"text": "x"}, document("a"), document("a", text="printed")))
    found = toolglot.lint(body, "bedrock", model=CLAUDE)
    assert [(one.key, one.path) for one in found] == [("turns.document_name", "$.messages[0].content[2]")]
    out = toolglot.repair(json.dumps(body), target="bedrock", model=CLAUDE)
    assert out.body["messages"][0]["content"][1:] == [document("a"), document("a (2)", text="printed")]


@pytest.mark.parametrize("source", [{"bytes": "JVBERi0="}, {"text": "printed"}])
def test_an_own_document_without_a_name_gets_one(source: Body) -> None:
    body = converse(message("user", {"text": "x"}, document(None, **source)))
    assert not {found.key for found in toolglot.lint(body, "bedrock", model=CLAUDE)} & {"turns.document_name"}
    out = toolglot.repair(json.dumps(body), target="bedrock", model=CLAUDE)
    assert documents_of(out.body) == ["document"]
    assert [entry.action for entry in out.report.entries] == ["added"]
    assert toolglot.lint(out.body, "bedrock", model=CLAUDE) == ()


def test_a_document_whose_name_is_no_text_is_left_to_the_form() -> None:
    odd = Opaque("bedrock", {"document": {"name": 7}}, "document")
    turns = (Turn("user", (Text("x"), odd)),)
    profile = profiles.get("bedrock", CLAUDE)
    assert render(Conversation(turns), profile, source=profile).conversation.turns[0].blocks[1] is odd


names = st.one_of(
    st.none(),
    st.text("ab.()[]-_ \t\u3000é'", max_size=8),
    st.sampled_from(["document", "document (2)", "a", "a (2)", "x" * 200, "x" * 201]),
)


@pytest.mark.law
@given(st.lists(names, max_size=8), st.integers(0, 8))
def test_names_of_documents_are_legal_unique_and_stay_as_a_conversation_grows(originals: Any, cut: int) -> None:
    medium = Media("document", "application/pdf", data="JVBERi0=")
    turns: list[Turn] = []
    for name in originals:
        turns += [Turn("user", (Text("read"), with_name(medium, name))), Turn("assistant", (Text("ok"),))]

    def sent(count: int) -> Body:
        whole = Conversation((*turns[: 2 * count], Turn("user", (Text("end"),))))
        return toolglot.request_for(whole, target="bedrock", model=CLAUDE).body

    body = sent(len(originals))
    found = documents_of(body)
    pattern = re.compile(r"[A-Za-z0-9_()\[\] -]{1,200}")
    assert all(pattern.fullmatch(name) and "  " not in name for name in found)
    assert len(set(found)) == len(found) == len(originals)
    assert documents_of(sent(min(cut, len(originals)))) == found[:cut]
    again = toolglot.repair(json.dumps(body), target="bedrock", model=CLAUDE)
    assert again.body == body


# --- calls without ids ------------------------------------------------------------------------------


def gemini(*contents: Body) -> Body:
    parameters = {"type": "OBJECT", "properties": {"k": {"type": "STRING"}}}
    declared = [{"name": name, "description": "d", "parameters": parameters} for name in ("f", "g")]
    return {"contents": list(contents), "tools": [{"functionDeclarations": declared}]}


def parts(role: str, *content: Body) -> Body:
    return {"role": role, "parts": list(content)}


def call(name: str = "f", *, signed: bool = True, **more: Any) -> Body:
    part: Body = {"functionCall": {"name": name, "args": {"k": "v"}, **more}}
    return {**part, "thoughtSignature": "c2ln"} if signed else part


def response(name: str = "f", result: str = "r", **more: Any) -> Body:
    return {"functionResponse": {"name": name, "response": {"result": result}, **more}}


USER_CONTENT = parts("user", {"text": "hi"})
WITHOUT_IDS = {
    "one": [USER_CONTENT, parts("model", call()), parts("user", response())],
    "steps": [
        USER_CONTENT,
        parts("model", call()),
        parts("user", response()),
        parts("model", call()),
        parts("user", response()),
    ],
    "parallel calls of one name": [
        USER_CONTENT,
        parts("model", call(), call(signed=False)),
        parts("user", response(result="1"), response(result="2")),
    ],
    "parallel calls of two names": [
        USER_CONTENT,
        parts("model", call(), call("g", signed=False)),
        parts("user", response(), response("g")),
    ],
    "an id only on the call": [USER_CONTENT, parts("model", call(id="abc")), parts("user", response())],
    "an empty id": [USER_CONTENT, parts("model", call(id="")), parts("user", response(id=""))],
    "one call with an id": [
        USER_CONTENT,
        parts("model", call(id="abc"), call("g", signed=False)),
        parts("user", response(id="abc"), response("g")),
    ],
}


@pytest.mark.parametrize("model", [OLD, NEW])
@pytest.mark.parametrize("form", WITHOUT_IDS)
def test_a_native_gemini_history_without_ids_is_forwarded_byte_for_byte(form: str, model: str) -> None:
    assert_unchanged(gemini(*WITHOUT_IDS[form]), "gemini", model)


def test_a_native_vertex_history_without_ids_is_forwarded_byte_for_byte() -> None:
    for model in (OLD, NEW):
        assert_unchanged(gemini(*WITHOUT_IDS["parallel calls of one name"]), "vertex", model)


def test_a_native_ollama_history_without_ids_is_forwarded_byte_for_byte() -> None:
    one = {"function": {"name": "f", "arguments": {"k": "v"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    results = [{"role": "tool", "tool_name": "f", "content": text} for text in ("1", "2")]
    call_message = {"role": "assistant", "content": "", "tool_calls": [one, one]}
    body = {"model": "qwen3", "messages": [{"role": "user", "content": "hi"}, call_message, *results], "tools": [tool]}
    assert_unchanged(body, "ollama", "qwen3")


def test_a_missing_result_of_a_call_without_an_id_gets_none_either() -> None:
    body = gemini(USER_CONTENT, parts("model", call()), parts("user", {"text": "never mind"}))
    out = toolglot.repair(json.dumps(body), target="gemini", model=NEW)
    assert '"id"' not in json.dumps(out.body)
    assert toolglot.lint(out.body, "gemini", model=NEW) == ()


def test_an_id_of_a_result_stays_where_its_call_has_none() -> None:
    assert_unchanged(gemini(USER_CONTENT, parts("model", call()), parts("user", response(id="other"))), "gemini", OLD)


def test_ids_are_written_where_a_result_names_another_call_than_order_and_name_do() -> None:
    body = gemini(
        USER_CONTENT,
        parts("model", call(id="a"), call()),
        parts("user", response(id="other"), response("f", "b", id="a")),
    )
    out = toolglot.repair(json.dumps(body), target="gemini", model=OLD)
    _, calls, results = out.body["contents"]
    ids = [part["functionCall"]["id"] for part in calls["parts"]]
    assert sorted(part["functionResponse"]["id"] for part in results["parts"]) == sorted(ids)
    assert toolglot.lint(out.body, "gemini", model=OLD) == ()


def test_ids_are_written_where_order_and_name_would_pair_others() -> None:
    """Two calls of one name, the first with an id, and the result of the second before that of the first."""
    profile = profiles.get("ollama", "qwen3")
    calls = (ToolCall("abc", "f", {}), ToolCall("", "f", {}))
    results = (
        ToolResult("", "second", name="f", is_complete=True),
        ToolResult("abc", "first", name="f", is_complete=True),
    )
    turns = (Turn("user", (Text("hi"),)), Turn("assistant", calls), *(Turn("tool", (result,)) for result in results))
    rendered = render(Conversation(turns), profile, source=profile).conversation
    omitted = [call.id_omitted for turn in rendered.turns for call in turn.calls]
    omitted += [result.id_omitted for turn in rendered.turns for result in turn.results]
    assert omitted == [None] * 4


def test_a_rendered_history_without_ids_renders_to_itself() -> None:
    profile = profiles.get("ollama", "qwen3")
    turns = (
        Turn("user", (Text("hi"),)),
        Turn("assistant", (ToolCall("", "f", {}),)),
        Turn("tool", (ToolResult("", "r", name="f", is_complete=True),)),
    )
    once = render(Conversation(turns), profile, source=profile).conversation
    assert once.turns[1].calls[0].id_omitted == "absent"
    again = render(once, profile, source=profile).conversation
    assert encode(again) == encode(once) == encode(Conversation(turns))


def test_ids_are_written_again_where_results_were_reordered() -> None:
    profile = profiles.get("ollama", "qwen3")
    calls = tuple(ToolCall(id, "f", {}, id_omitted="absent") for id in ("call_a", "call_b"))
    results = [ToolResult(call.id, "r", name="f", is_complete=True, id_omitted="absent") for call in calls]
    turns = [Turn("user", (Text("hi"),)), Turn("assistant", calls), *(Turn("tool", (one,)) for one in results)]
    in_order = render(Conversation(tuple(turns)), profile, source=profile).conversation
    assert "call_a" not in json.dumps(encode(in_order))
    turns[2:] = turns[:1:-1]
    messages = encode(render(Conversation(tuple(turns)), profile, source=profile).conversation)["messages"]
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["call_a", "call_b"]
    assert sorted(message["tool_call_id"] for message in messages[2:]) == ["call_a", "call_b"]


@pytest.mark.parametrize("model", [OLD, "gemini-2.0-flash-001", "gemini-1.5-pro"])
def test_vertex_gets_no_ids_for_models_before_gemini_3(model: str) -> None:
    function = {"name": "f", "arguments": '{"k":"v"}'}
    calls = [{"id": id, "type": "function", "function": function} for id in ("call_1", "call_2")]
    messages: list[Body] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_2", "content": "second"},
        {"role": "tool", "tool_call_id": "call_1", "content": "first"},
    ]
    tools = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}]
    out = toolglot.convert(
        {"model": "gpt-4.1", "messages": messages, "tools": tools}, source="openai", target="vertex", model=model
    )
    assert '"id"' not in json.dumps(out.body)
    answered = [part["functionResponse"]["response"] for part in out.body["contents"][2]["parts"]]
    assert answered == [{"output": "first"}, {"output": "second"}]
    assert toolglot.lint(out.body, "vertex", model=model) == ()
    assert out.report.ids.format == "none"


@pytest.mark.parametrize("id", ["abc", ""])
def test_native_ids_that_vertex_refuses_are_left_out_and_reported(id: str) -> None:
    body = gemini(USER_CONTENT, parts("model", call(id=id)), parts("user", response(id=id)))
    found = toolglot.lint(body, "vertex", model=OLD)
    assert {one.rule for one in found} == {"vertex-old-id-refused"}
    out = toolglot.repair(json.dumps(body), target="vertex", model=OLD)
    assert out.body == gemini(USER_CONTENT, parts("model", call()), parts("user", response()))
    entries = [entry for entry in out.report.entries if "vertex-old-id-refused" in entry.reason]
    assert len(entries) == (1 if id else 0)


def test_ids_that_vertex_refuses_are_reported_once() -> None:
    body = gemini(
        USER_CONTENT, *(parts(*one) for id in "ab" for one in (("model", call(id=id)), ("user", response(id=id))))
    )
    out = toolglot.repair(json.dumps(body), target="vertex", model=OLD)
    assert [entry.action for entry in out.report.entries] == ["dropped"]


@pytest.mark.parametrize(("target", "model"), [("vertex", NEW), ("gemini", OLD), ("gemini", NEW)])
def test_ids_stay_where_they_are_accepted(target: str, model: str) -> None:
    assert_unchanged(
        gemini(USER_CONTENT, parts("model", call(id="abc")), parts("user", response(id="abc"))), target, model
    )


@pytest.mark.law
@given(st.lists(st.lists(st.sampled_from("fg"), min_size=1, max_size=3), max_size=4), st.booleans())
def test_every_native_history_without_ids_is_forwarded_byte_for_byte(steps: list[list[str]], is_old: bool) -> None:
    contents = [USER_CONTENT]
    for number, step in enumerate(steps):
        calls = [call(name, signed=position == 0) for position, name in enumerate(step)]
        results = [response(name, f"{number}.{position}") for position, name in enumerate(step)]
        contents += [parts("model", *calls), parts("user", *results)]
    assert_unchanged(gemini(*contents), "gemini", OLD if is_old else NEW)


# --- an empty text with a signature -----------------------------------------------------------------


def test_a_native_empty_text_with_a_signature_is_kept() -> None:
    body = gemini(USER_CONTENT, parts("model", {"text": "a"}, {"text": "", "thoughtSignature": "c2ln"}), USER_CONTENT)
    assert_unchanged(body, "gemini", NEW)


def signed_history() -> History:
    history = History()
    history.append(Turn("user", (Text("hi"),)))
    issuer = toolglot.Issuer("gemini", model=NEW)
    history.append(Turn("assistant", (Text("a"), Text("", signature="c2ln")), issuer=issuer))
    history.append(Turn("user", (Text("more"),)))
    return history


def test_a_native_empty_text_with_a_signature_of_a_history_is_kept() -> None:
    out = toolglot.request_for(signed_history(), target="gemini", model=NEW)
    assert out.body["contents"][1]["parts"] == [{"text": "a"}, {"text": "", "thoughtSignature": "c2ln"}]


def test_a_native_turn_of_nothing_but_a_signature_is_kept() -> None:
    body = gemini(USER_CONTENT, parts("model", {"text": "", "thoughtSignature": "c2ln"}), USER_CONTENT)
    assert_unchanged(copy.deepcopy(body), "gemini", NEW)


@pytest.mark.parametrize(
    ("target", "model"), [("openai", "gpt-4.1"), ("anthropic", "claude-sonnet-4-5"), ("bedrock", NOVA)]
)
def test_an_empty_text_with_a_signature_goes_nowhere_else(target: str, model: str) -> None:
    out = toolglot.request_for(signed_history(), target=target, model=model)
    assert "c2ln" not in json.dumps(out.body)
    assert toolglot.lint(out.body, target, model=model) == ()
