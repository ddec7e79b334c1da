"""Cache markers are carried to every target that has them, within its limits, and mark what they marked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from support.counted_work import steps_of
from support.law_examples import SOME
from toolglot import Policy, convert, lint, profiles, repair

Fields = dict[str, Any]

MARK: Fields = {"type": "ephemeral"}
HOUR: Fields = {"type": "ephemeral", "ttl": "1h"}
SCHEMA = {"type": "object", "properties": {}}
CLAUDE = ("anthropic", "claude-opus-5")
BEDROCK = ("bedrock", "anthropic.claude-opus-5-v1:0")
NOVA = ("bedrock", "amazon.nova-pro-v1:0")
OPENROUTER = ("openrouter", "anthropic/claude-opus-5")
GEMINI = ("openrouter", "google/gemini-2.5-pro")
VERTEX = ("vertex_claude", "claude-opus-5")
OLD_VERTEX = ("vertex_claude", "claude-3-5-sonnet-v2@20241022")
MARKED = (CLAUDE, BEDROCK, NOVA, OPENROUTER, GEMINI, VERTEX, OLD_VERTEX)
"""Targets that have markers."""
UNMARKED = (("openai", "gpt-4.1"), ("gemini", "gemini-2.5-pro"), ("mistral", "mistral-large-latest"), ("cohere", "c"))
FIELDS = ("cache_control", "cachePoint")


# --- reading what was sent --------------------------------------------------------------------------


def pieces(body: Fields) -> Iterator[tuple[str, str, Any]]:
    """A prompt in its order: the section, what it says, and the marker behind it. Independent of the codecs."""
    tools = body.get("toolConfig", body).get("tools", [])
    yield from with_points("tools", tools)
    if isinstance(body.get("system"), list):
        yield from with_points("system", body["system"])
    elif body.get("system") is not None:
        yield "system", body["system"], None
    for message in body["messages"]:
        yield from message_pieces(message)
    if body.get("cache_control") is not None:
        yield "messages", "", body["cache_control"]


def message_pieces(message: Fields) -> Iterator[tuple[str, str, Any]]:
    section = "system" if message["role"] == "system" else "results" if message["role"] == "tool" else "messages"
    content = message.get("content") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    found = [*with_points(section, parts), *with_points(section, message.get("tool_calls", []))]
    if message.get("cache_control") is not None:
        last = found[-1]
        found[-1] = (last[0], last[1], message["cache_control"])
    yield from found


def with_points(section: str, blocks: list[Fields]) -> Iterator[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    for block in blocks:
        if "cachePoint" in block:
            found[-1] = (*found[-1][:2], block["cachePoint"])
            continue
        is_result = "toolResult" in block or block.get("type") == "tool_result"
        inner = [part.get("cache_control") for part in block.get("content", []) if isinstance(part, dict)]
        inner.append(block.get("function", {}).get("cache_control"))
        marker = block.get("cache_control") or next((mark for mark in reversed(inner) if mark), None)
        found.append(("results" if is_result else section, words_in(block), marker))
    yield from found


def words_in(block: Fields) -> str:
    """The words of a block, which are the same in every protocol: they begin with `@`."""
    return " ".join(re.findall(r"@\w+", json.dumps(block)))


def prefixes(body: Fields) -> list[tuple[str, str, str | None]]:
    """What each marker marks: the section of its piece, all words of the prompt up to it, and its time."""
    said: list[str] = []
    found: list[tuple[str, str, str | None]] = []
    for section, words, marker in pieces(body):
        said += words.split()
        if marker is not None:
            found.append((section, " ".join(said), marker.get("ttl")))
    return found


# --- requests ---------------------------------------------------------------------------------------

marks = st.sampled_from([None, None, MARK, {**MARK, "ttl": "5m"}, HOUR, {**MARK, "ttl": "9d"}, {**MARK, "scope": "x"}])


@st.composite
def claude_bodies(draw: st.DrawFn) -> Fields:
    """A request of Anthropic's protocol, with markers wherever they are understood, also too many."""
    number = iter(range(1000))

    def marked(block: Fields) -> Fields:
        mark = draw(marks)
        return block if mark is None else {**block, "cache_control": mark}

    def text() -> Fields:
        return marked({"type": "text", "text": f"@word{next(number)}"})

    messages: list[Fields] = [{"role": "user", "content": [text()]}]
    for step in range(draw(st.integers(0, 4))):
        calls = [f"toolu_{step}{index}" for index in range(draw(st.integers(0, 2)))]
        said = [text() for _ in range(draw(st.integers(0 if calls else 1, 1)))]
        used = [marked({"type": "tool_use", "id": id, "name": "f", "input": {"x": "@" + id}}) for id in calls]
        messages.append({"role": "assistant", "content": said + used})
        results: list[Fields] = []
        for id in calls:
            content: Any = f"@result{id}" if draw(st.booleans()) else [text()]
            results.append(marked({"type": "tool_result", "tool_use_id": id, "content": content}))
        messages.append({"role": "user", "content": results + ([text()] if draw(st.booleans()) or not calls else [])})
    body: Fields = {"model": CLAUDE[1], "max_tokens": 100, "messages": messages}
    tools = [marked({"name": name, "description": f"@{name}", "input_schema": SCHEMA}) for name in ("f", "g")]
    body["tools"] = tools
    if draw(st.booleans()):
        body["system"] = [text() for _ in range(draw(st.integers(1, 2)))]
    if draw(st.integers(0, 5)) == 0:
        body["cache_control"] = MARK
    return body


@st.composite
def chat_bodies(draw: st.DrawFn) -> Fields:
    """The same as users of LiteLLM and OpenRouter write it: on parts, on messages and on tools."""
    body = convert(draw(claude_bodies()), source="anthropic", target="openrouter", model="openai/gpt-5").body
    body.pop("cache_control", None)
    for message in body["messages"]:
        mark, place = draw(marks), draw(st.booleans())
        if mark is not None and (place or not isinstance(message.get("content"), str)):
            message["cache_control"] = mark
        elif mark is not None:
            message["content"] = [{"type": "text", "text": message["content"], "cache_control": mark}]
    for tool in body["tools"]:
        mark = draw(marks)
        if mark is not None:
            (tool if draw(st.booleans()) else tool["function"])["cache_control"] = mark
    return body


@st.composite
def bedrock_bodies(draw: st.DrawFn) -> Fields:
    plain = convert(draw(claude_bodies()), source="anthropic", target="bedrock", model="meta.llama3-1-8b-instruct-v1:0")
    body = plain.body
    lists = [body["toolConfig"]["tools"], body.get("system", []), *[each["content"] for each in body["messages"]]]
    for blocks in lists:
        for at in range(len(blocks), 0, -1):
            mark = draw(marks)
            if mark is not None:
                blocks.insert(at, {"cachePoint": {**mark, "type": "default"}})
    return body


@st.composite
def vertex_bodies(draw: st.DrawFn) -> Fields:
    """The same at the path of Vertex AI: the model is in the path, the version in the body."""
    body = draw(claude_bodies())
    body = {name: value for name, value in body.items() if name not in ("model", "cache_control")}
    return {"anthropic_version": "vertex-2023-10-16", **body}


requests = st.one_of(
    st.tuples(st.just("anthropic"), claude_bodies()),
    st.tuples(st.just("vertex_claude"), vertex_bodies()),
    st.tuples(st.just("openai"), chat_bodies()),
    st.tuples(st.just("bedrock"), bedrock_bodies()),
)


# --- laws -------------------------------------------------------------------------------------------


@pytest.mark.law
@SOME
@given(requests, st.sampled_from(MARKED))
def test_laws_1_7_and_10_markers_are_within_the_limits_and_mark_what_was_marked(
    request: tuple[str, Fields], target: tuple[str, str]
) -> None:
    source, body = request
    name, model = target
    assume(name != source or "scope" not in json.dumps(body))  # which no provider takes
    rules = profiles.get(name, model).cache
    before = prefixes(body)
    out = convert(json.dumps(body), source=source, target=name, model=model)
    after = prefixes(out.body)
    note(json.dumps([source, target, body, out.body]))

    assert [str(found) for found in lint(out.body, name, model=model)] == []
    assert len(after) <= rules.max_markers
    assert {section for section, _, _ in after} <= set(rules.positions) or name == source
    ranks = [0 if ttl is None else rules.ttls.index(ttl) for _, _, ttl in after]
    assert ranks == sorted(ranks, reverse=True)
    longest = max((prefix for _, prefix, _ in before), key=len, default="")
    assert all(longest.startswith(prefix) for _, prefix, _ in after), "nothing more is cached than was marked"
    if [mark[1:] for mark in before] != [mark[1:] for mark in after]:
        assert any("cache marker" in entry.reason for entry in out.report), (source, target, body, out.body)
    for entry in out.report:
        assert "cache" not in entry.reason or "cache_control" in entry.path or entry.gravity == "housekeeping"
    assert repair(out.data, target=name, model=model).data == out.data
    if not any("cache marker" in entry.reason and entry.action in ("moved", "dropped") for entry in out.report):
        reasons = [entry.reason for entry in out.report if entry.action == "converted"]
        assert {prefix for _, prefix, _ in after} == {prefix for _, prefix, _ in before} or "at most 4" in str(reasons)


def unmarked(value: Any) -> Any:
    """A body without markers, and with every text alone in its list as a string, as it can be written unmarked."""
    if isinstance(value, list):
        found = [unmarked(item) for item in value if not (isinstance(item, dict) and item.keys() == {"cachePoint"})]
        is_text = len(found) == 1 and isinstance(found[0], dict) and found[0].keys() == {"type", "text"}
        return found[0]["text"] if is_text else found
    if not isinstance(value, dict):
        return value
    return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}


def without_markers(value: Any) -> Any:
    """The same request of a client that sets no markers."""
    if isinstance(value, list):
        return [without_markers(item) for item in value if not (isinstance(item, dict) and "cachePoint" in item)]
    if not isinstance(value, dict):
        return value
    return {key: without_markers(item) for key, item in value.items() if key != "cache_control"}


@pytest.mark.law
@SOME
@given(requests, st.sampled_from((*MARKED, *UNMARKED)))
def test_law_5_a_marker_changes_nothing_but_itself(request: tuple[str, Fields], target: tuple[str, str]) -> None:
    """A client moves its markers from request to request; what it says must stay the same prompt."""
    source, body = request
    name, model = target
    policy = Policy(cache_markers="carry")
    marked = convert(json.dumps(body), source=source, target=name, model=model, policy=policy)
    bare = convert(json.dumps(without_markers(body)), source=source, target=name, model=model, policy=policy)
    note(json.dumps([source, target, marked.body, bare.body]))
    assert unmarked(marked.body) == unmarked(bare.body)


@pytest.mark.law
@SOME
@given(requests, st.sampled_from(UNMARKED))
def test_a_target_without_markers_gets_none_and_the_report_says_why(
    request: tuple[str, Fields], target: tuple[str, str]
) -> None:
    source, body = request
    name, model = target
    out = convert(json.dumps(body), source=source, target=name, model=model)
    assert not any(field in out.data.decode() for field in FIELDS)
    told = [entry for entry in out.report if "cache marker" in entry.reason or "cache_control" in entry.path]
    assert bool(told) == bool(prefixes(body))
    assert not any("has no place" in entry.reason for entry in told)


@pytest.mark.law
@SOME
@given(claude_bodies())
def test_law_3_a_valid_request_to_its_own_provider_stays(body: Fields) -> None:
    data = json.dumps(body, indent=1).encode()
    if not lint(data, *CLAUDE[:1], model=CLAUDE[1]):
        assert convert(data, source="anthropic", target="anthropic").data is data


# --- examples ---------------------------------------------------------------------------------------


def claude(**more: Any) -> Fields:
    """A step of an agent, marked as Claude Code marks it."""
    return {
        "model": CLAUDE[1],
        "max_tokens": 100,
        "system": [{"type": "text", "text": "@rules", "cache_control": MARK}],
        "tools": [{"name": "f", "description": "@f", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": "@hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "@r", "cache_control": MARK}],
            },
        ],
        **more,
    }


def test_claude_code_on_bedrock() -> None:
    out = convert(claude(), source="anthropic", target="bedrock", model=BEDROCK[1])
    point = {"cachePoint": {"type": "default"}}
    assert out.body["system"] == [{"text": "@rules"}, point]
    assert out.body["messages"][2]["content"][1:] == [point]
    assert not [entry for entry in out.report if "cache" in entry.reason]


def test_claude_code_on_openrouter() -> None:
    out = convert(claude(), source="anthropic", target="openrouter", model=OPENROUTER[1])
    first, *_, last = out.body["messages"]
    assert first["content"] == [{"type": "text", "text": "@rules", "cache_control": MARK}]
    assert last["content"] == [{"type": "text", "text": "@r", "cache_control": MARK}]
    assert not [entry for entry in out.report if "cache" in entry.reason]


@pytest.mark.parametrize("there", [BEDROCK, OPENROUTER, VERTEX])
@pytest.mark.parametrize("back", [CLAUDE, BEDROCK, OPENROUTER, VERTEX])
def test_markers_come_back_as_they_were(there: tuple[str, str], back: tuple[str, str]) -> None:
    """Through every host of Claude to every other one, with their times."""
    body = claude(system=[{"type": "text", "text": "@rules", "cache_control": HOUR}])
    out = convert(body, source="anthropic", target=there[0], model=there[1])
    returned = convert(out.data, source=there[0], target=back[0], model=back[1])
    assert prefixes(returned.body) == prefixes(body)
    assert lint(returned.body, back[0], model=back[1]) == ()


def test_the_marker_of_the_request_itself_is_one_on_its_last_block_at_vertex() -> None:
    """Only Anthropic chooses by itself where it is."""
    body = {**claude(), "cache_control": HOUR}
    del body["system"][0]["cache_control"]
    del body["messages"][2]["content"][0]["cache_control"]
    assert [each.rule for each in lint({**vertex(body), "cache_control": HOUR}, *VERTEX)] == [
        "vertex-claude-refused-fields"
    ]
    for out in (
        convert(body, source="anthropic", target=VERTEX[0], model=VERTEX[1]),
        repair({**vertex(body), "cache_control": HOUR}, target=VERTEX[0], model=VERTEX[1]),
    ):
        assert "cache_control" not in out.body
        assert [(section, ttl) for section, _, ttl in prefixes(out.body)] == [("results", "1h")]


def vertex(body: Fields) -> Fields:
    """A body of Anthropic as Vertex AI takes it."""
    plain = {name: value for name, value in body.items() if name not in ("model", "cache_control")}
    return {"anthropic_version": "vertex-2023-10-16", **plain}


@pytest.mark.parametrize("target", [BEDROCK, OPENROUTER, VERTEX])
def test_a_marker_of_the_request_is_not_lost_where_the_content_is_a_string(target: tuple[str, str]) -> None:
    body = {
        "model": CLAUDE[1],
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "@hi"}],
        "cache_control": HOUR,
    }
    out = convert(body, source="anthropic", target=target[0], model=target[1])
    assert [mark[1:] for mark in prefixes(out.body)] == [("@hi", "1h")]


@pytest.mark.parametrize(
    "written", [{"type": "ephemeral", "ttl": 5}, {"type": "ephemeral", "ttl": []}, {"ttl": "1h"}, {}, [], "x", True, 7]
)
@pytest.mark.parametrize("target", [CLAUDE, BEDROCK, OPENROUTER, VERTEX])
def test_a_malformed_marker_of_the_own_client_is_written_anew(target: tuple[str, str], written: Any) -> None:
    name, model = target
    if name == "bedrock":
        body: Fields = {"messages": [{"role": "user", "content": [{"text": "@hi"}, {"cachePoint": written}]}]}
    else:
        block = {"type": "text", "text": "@hi", "cache_control": written}
        body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}
        body = vertex(body) if name == "vertex_claude" else body
    out = repair(body, target=name, model=model)
    assert lint(out.body, name, model=model) == ()
    assert [words for _, words, _ in prefixes(out.body)] == ["@hi"]
    assert any("malformed cache marker" in entry.reason for entry in out.report)


def test_what_users_of_litellm_write() -> None:
    function = {"name": "f", "description": "@f", "parameters": SCHEMA}
    body = {
        "model": "gpt-4.1",
        "tools": [{"type": "function", "function": {**function, "cache_control": HOUR}}],
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "@rules", "cache_control": MARK}]},
            {"role": "user", "content": "@hi", "cache_control": MARK},
        ],
    }
    out = convert(body, source="openai", target="anthropic", model=CLAUDE[1])
    assert out.body["tools"][0]["cache_control"] == HOUR
    assert out.body["system"] == [{"type": "text", "text": "@rules", "cache_control": MARK}]
    assert out.body["messages"][0]["content"] == [{"type": "text", "text": "@hi", "cache_control": MARK}]
    bedrock = convert(body, source="openai", target="bedrock", model=BEDROCK[1]).body
    assert bedrock["toolConfig"]["tools"][1:] == [{"cachePoint": {"type": "default", "ttl": "1h"}}]


def test_a_time_that_the_target_does_not_have_becomes_its_own() -> None:
    body = claude(system=[{"type": "text", "text": "@rules", "cache_control": HOUR}])
    out = convert(body, source="anthropic", target=NOVA[0], model=NOVA[1])
    assert out.body["system"][1] == {"cachePoint": {"type": "default"}}
    assert any("cannot ask for '1h' (bedrock-nova-cache-ttls)" in entry.reason for entry in out.report)


def test_a_target_that_caches_by_itself_is_named_as_the_reason() -> None:
    out = convert(claude(), source="anthropic", target="openai", model="gpt-4.1")
    (entry,) = [entry for entry in out.report if "cache" in entry.reason]
    assert "openai caches prompts by itself" in entry.reason
    assert "(openai-cache-style)" in entry.reason
    assert entry.gravity == "housekeeping"


def test_markers_of_the_own_client_that_are_refused_are_repaired() -> None:
    body = claude(system=[{"type": "text", "text": "@rules", "cache_control": MARK}])
    body["messages"][2]["content"][0]["cache_control"] = HOUR
    (violation,) = lint(body, "anthropic")
    assert violation.rule == "anthropic-cache-ttls"
    out = repair(body, target="anthropic")
    assert not lint(out.body, "anthropic")
    assert [ttl for _, _, ttl in prefixes(out.body)] in ([None, None], [None, "5m"])


def test_of_too_many_markers_those_stay_that_save_most() -> None:
    texts = [{"type": "text", "text": f"@{number}", "cache_control": MARK} for number in range(5)]
    body = {
        "model": "gpt-4.1",
        "messages": [{"role": "system", "content": texts[:2]}, {"role": "user", "content": texts}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}, "cache_control": MARK}],
    }
    out = convert(body, source="openai", target="anthropic", model=CLAUDE[1])
    assert [section for section, _, _ in prefixes(out.body)] == ["tools", "system", "messages", "messages"]
    assert prefixes(out.body)[-1][1].endswith("@4")
    assert any("at most 4 cache markers" in e.reason and "(4 times)" in e.reason for e in out.report)


@pytest.mark.parametrize("target", [CLAUDE, BEDROCK, VERTEX])
@pytest.mark.parametrize("is_on_request", [False, True])
def test_of_too_many_markers_of_anthropics_client_those_stay_that_save_most(
    target: tuple[str, str], *, is_on_request: bool
) -> None:
    """What other conversations share, tools and system prompt, stays marked, as for other clients."""
    body = claude()
    body["tools"][0]["cache_control"] = MARK
    words = [{"type": "text", "text": f"@{number}", "cache_control": MARK} for number in range(5)]
    body["messages"][2]["content"] += words
    if is_on_request:
        body["cache_control"] = MARK
    out = convert(body, source="anthropic", target=target[0], model=target[1])
    found = prefixes(out.body)
    assert [section for section, _, _ in found][:2] == ["tools", "system"]
    assert {section for section, _, _ in found[2:]} == {"messages"}
    assert len(found) == 4 - (is_on_request and target != CLAUDE)
    assert found[-1][1].endswith("@4")
    assert lint(out.body, *target) == ()


def test_the_marker_of_a_message_that_becomes_tagged_text_stays() -> None:
    """Claude Code marks the last of the system messages between the others."""
    body = claude()
    del body["messages"][2]["content"][0]["cache_control"]
    words = [{"type": "text", "text": "@left", "cache_control": MARK}]
    body["messages"].append({"role": "system", "content": words})
    out = convert(body, source="anthropic", target="bedrock", model=BEDROCK[1])
    *_, said, point = out.body["messages"][-1]["content"]
    assert "@left" in said["text"]
    assert point == {"cachePoint": {"type": "default"}}


def test_the_marker_of_a_server_tool_is_no_part_of_its_text() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}, "cache_control": MARK}
    body = claude()
    body["messages"] = [
        {"role": "user", "content": "@hi"},
        {"role": "assistant", "content": [call]},
        body["messages"][0],
    ]
    for target, model in (BEDROCK, ("openai", "gpt-4.1")):
        out = convert(body, source="anthropic", target=target, model=model)
        assert "cache_control" not in out.data.decode()
        assert (out.data.count(b"cachePoint") == 2) == (target == "bedrock")


def test_a_marker_of_a_client_of_nova_behind_a_result_stays() -> None:
    """Whether Nova takes one there is not known; it is content of a message."""
    body = convert(claude(), source="anthropic", target="bedrock", model=BEDROCK[1]).body | {"modelId": NOVA[1]}
    data = json.dumps(body).encode()
    assert repair(data, target="bedrock").data == data


def test_the_work_on_markers_grows_with_the_request() -> None:
    """Many markers, moved, dropped and written: counted in steps, not timed."""

    def steps(count: int) -> int:
        words = [{"type": "text", "text": f"@{number}", "cache_control": MARK} for number in range(count)]
        points = [piece for number in range(count) for piece in ({"text": "@"}, {"cachePoint": {"type": "default"}})]
        chat = {"model": "gpt-4.1", "messages": [{"role": "user", "content": words}]}
        alone = [{"role": "assistant", "content": [points[1]]}, {"role": "user", "content": [points[1]]}] * count
        converse = {"modelId": BEDROCK[1], "messages": [{"role": "user", "content": points}, *alone]}
        jobs = (
            lambda: convert(chat, source="openai", target="bedrock", model=BEDROCK[1]),
            lambda: convert(converse, source="bedrock", target="anthropic", model=CLAUDE[1]),
            lambda: repair(converse, target="bedrock"),
        )
        return sum(map(steps_of, jobs))

    assert steps(800) < 4.8 * steps(200)
