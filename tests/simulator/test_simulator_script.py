"""Scripts: which rule holds, what is answered, what is refused; and the default script."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.schema.strategies import JSON
from support.simulator.asgi_client import Answered, ask, request
from toolglot.errors import InputError
from toolglot.simulator import PROVIDERS, Script, ScriptRule, Simulator, When, read_script, script_of

Body = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str = "get_weather", parameters: Any = None) -> Body:
    return {"type": "function", "function": {"name": name, "parameters": parameters or SCHEMA}}


def chat(*prompts: str, tools: list[Body] | None = None, **more: Any) -> Body:
    messages = [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(prompts)]
    body: Body = {"model": "gpt-4.1", "messages": messages, **more}
    return {**body, "tools": tools} if tools else body


def text(answered: Answered) -> str:
    assert answered.status == 200, answered.data
    return str(answered.json["choices"][0]["message"]["content"])


def calls(answered: Answered) -> list[tuple[str, Any]]:
    assert answered.status == 200, answered.data
    found = answered.json["choices"][0]["message"].get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found]


# --- rules ------------------------------------------------------------------------------------------


def rules(*when_and_text: tuple[Body, str]) -> Simulator:
    return Simulator({"rules": [{"when": when, "reply": {"text": text_}} for when, text_ in when_and_text]})


def test_the_first_rule_that_fits_holds() -> None:
    simulator = rules(({"contains": "WEATHER"}, "one"), ({"matches": r"^\w+\?$"}, "two"), ({}, "three"))
    assert text(ask(simulator, "openai", chat("The weather?"))) == "one"
    assert text(ask(simulator, "openai", chat("What?"))) == "two"
    assert text(ask(simulator, "openai", chat("Well, then."))) == "three"


def test_a_rule_may_be_used_so_often() -> None:
    simulator = Simulator({"rules": [{"times": 2, "reply": {"text": "one"}}, {"reply": {"text": "two"}}]})
    assert [text(ask(simulator, "openai", chat("Hi"))) for _ in range(3)] == ["one", "one", "two"]


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({"provider": "openai"}, True),
        ({"provider": "mistral"}, False),
        ({"model": "gpt-*"}, True),
        ({"model": "claude-*"}, False),
        ({"tool": "get_weather"}, True),
        ({"tool": "get_time"}, False),
        ({"results": 0}, True),
        ({"results": 1}, False),
        ({"turn": 2}, True),
        ({"turn": 1}, False),
        ({"stream": False}, True),
        ({"stream": True}, False),
    ],
)
def test_what_a_rule_can_ask_of_a_request(when: Body, fits: bool) -> None:
    simulator = rules((when, "yes"), ({}, "no"))
    answer = text(ask(simulator, "openai", chat("Hi", "Hello", "Weather?", tools=[tool()])))
    assert answer == ("yes" if fits else "no")


def test_results_are_counted_since_the_user_spoke() -> None:
    simulator = rules(({"results": 0}, "none"), ({"results": 2}, "two"))
    called = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in (1, 2)
        ],
    }
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": "7"} for n in (1, 2)]
    body = chat("Hi", tools=[tool("f")])
    body["messages"] += [called, *results]
    assert text(ask(simulator, "openai", body)) == "two"
    body["messages"] += [{"role": "assistant", "content": "7"}, {"role": "user", "content": "And?"}]
    assert text(ask(simulator, "openai", body)) == "none"


def test_text_beside_results_is_not_a_new_question() -> None:
    simulator = rules(({"results": 1}, "one"), ({}, "other"))
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "7"}
    reminder = {"type": "text", "text": "Remember the time."}
    body = {
        "model": "claude-opus-5",
        "max_tokens": 10,
        "thinking": {"type": "disabled"},
        "tools": [{"name": "f", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result, reminder]},
        ],
    }
    assert ask(simulator, "anthropic", body).json["content"] == [{"type": "text", "text": "one"}]


def test_a_reply_has_all_that_its_rule_has() -> None:
    reply = {
        "text": "I look.",
        "thinking": "Hm.",
        "calls": [{"name": "get_weather", "arguments": {"city": "Ulm"}}, {"name": "unknown", "arguments": "not json"}],
        "stop": "length",
        "usage": {"input_tokens": 7, "output_tokens": 8},
    }
    simulator = Simulator({"rules": [{"reply": reply}]})
    body = {**chat("Hi", tools=[tool()]), "model": "deepseek-chat"}
    answered = ask(simulator, "deepseek", body).json
    message = answered["choices"][0]["message"]
    assert message["content"] == "I look."
    assert message["reasoning_content"] == "Hm."
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"city":"Ulm"}', "not json"]
    assert answered["choices"][0]["finish_reason"] == "length"
    assert answered["usage"]["total_tokens"] == 15


def test_a_call_without_arguments_gets_such_as_satisfy_its_schema() -> None:
    simulator = Simulator({"rules": [{"reply": {"calls": [{"name": "get_weather"}, {"name": "other"}]}}]})
    assert calls(ask(simulator, "openai", chat("Hi", tools=[tool()]))) == [
        ("get_weather", {"city": "Bonn"}),
        ("other", {}),
    ]


def test_thinking_is_left_out_where_the_protocol_has_none() -> None:
    simulator = Simulator({"rules": [{"reply": {"text": "Hi", "thinking": "Hm."}}]})
    assert b"Hm." not in ask(simulator, "openai", chat("Hi")).data


def test_mistral_thinks_in_chunks() -> None:
    simulator = Simulator({"rules": [{"reply": {"text": "Hi", "thinking": "Hm."}}]})
    body = {**chat("Hi"), "model": "magistral-medium-latest"}
    content = ask(simulator, "mistral", body).json["choices"][0]["message"]["content"]
    assert [part["type"] for part in content] == ["thinking", "text"]


@pytest.mark.parametrize(
    ("provider", "body", "path"),
    [
        ("cohere", {"thinking": {"type": "enabled"}}, "thinking"),
        ("ollama", {"think": True, "stream": False}, "thinking"),
    ],
)
def test_thinking_is_shown_where_it_is_requested(provider: str, body: Body, path: str) -> None:
    request = {**chat("Hi"), "model": "m", **body}
    assert path.encode() in ask(Simulator(), provider, request).data


@pytest.mark.parametrize(("effort", "thinks"), [("none", False), ("low", True)])
def test_no_effort_is_no_thinking(effort: str, thinks: bool) -> None:
    body = {"model": "gpt-5.5", "input": "Hi", "reasoning": {"effort": effort}}
    kinds = [item["type"] for item in ask(Simulator(), "openai_responses", body).json["output"]]
    assert ("reasoning" in kinds) is thinks


# --- the default script -----------------------------------------------------------------------------


def test_the_first_suitable_tool_is_called() -> None:
    impossible = tool("impossible", {"type": "object", "properties": {"a": False}, "required": ["a"]})
    answered = ask(Simulator(), "openai", chat("Hi", tools=[impossible, tool(), tool("get_time")]))
    assert calls(answered) == [("get_weather", {"city": "Bonn"})]


def test_without_a_suitable_tool_there_is_a_text() -> None:
    impossible = tool("impossible", {"type": "object", "properties": {"a": False}, "required": ["a"]})
    answer = text(ask(Simulator(), "openai", chat("Hi", tools=[impossible])))
    assert answer == "You said: Hi\nNo tool fits that. I have impossible."
    assert text(ask(Simulator(), "openai", chat("Hi"))) == "You said: Hi"


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ("auto", ["get_weather"]),
        ("none", []),
        ("required", ["get_weather"]),
        ({"type": "function", "function": {"name": "get_time"}}, ["get_time"]),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool("get_time")]}},
            ["get_time"],
        ),
    ],
)
def test_a_choice_is_respected(choice: Any, named: list[str]) -> None:
    answered = ask(Simulator(), "openai", chat("Hi", tools=[tool(), tool("get_time")], tool_choice=choice))
    assert [name for name, _ in calls(answered)] == named


def test_a_forced_choice_holds_after_results_too() -> None:
    body = chat("Hi", tools=[tool()], tool_choice="required")
    first = ask(Simulator(), "openai", body).json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "7"}
    request = {**body, "messages": [*body["messages"], {"role": "assistant", **first}, result]}
    request["messages"][1] = {key: first[key] for key in ("role", "content", "tool_calls")}
    again = ask(Simulator(), "openai", request)
    assert calls(again)
    ids = {call["id"] for call in again.json["choices"][0]["message"]["tool_calls"]}
    assert first["tool_calls"][0]["id"] not in ids


def test_several_calls_on_order_go_round_the_tools() -> None:
    body = chat("Hi", tools=[tool(), tool("get_time")])
    answered = ask(Simulator(), "openai", body, order="calls=3")
    assert [name for name, _ in calls(answered)] == ["get_weather", "get_time", "get_weather"]
    alone = ask(Simulator(), "openai", {**body, "parallel_tool_calls": False}, order="calls=3")
    assert len(calls(alone)) == 1
    assert not calls(ask(Simulator(), "openai", body, order="calls=0"))


def test_structured_output_satisfies_its_schema() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": False}}
    assert json.loads(text(ask(Simulator(), "openai", chat("Hi", response_format=shape)))) == {"city": "Bonn"}
    answer = text(ask(Simulator(), "openai", chat("Say JSON", response_format={"type": "json_object"})))
    assert json.loads(answer) == {"answer": "Say JSON"}


def test_free_text_tools_are_called_with_text() -> None:
    custom = {"type": "custom", "custom": {"name": "patch"}}
    message = ask(Simulator(), "openai", chat("Hi", tools=[custom])).json["choices"][0]["message"]
    assert message["tool_calls"][0]["custom"] == {"name": "patch", "input": "simulated input"}
    body = {"model": "gpt-5.5", "input": "Hi", "tools": [{"type": "custom", "name": "patch"}]}
    items = ask(Simulator(), "openai_responses", body).json["output"]
    assert (items[-1]["type"], items[-1]["input"]) == ("custom_tool_call", "simulated input")


def test_tools_in_a_namespace_are_called_there() -> None:
    function = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": False}
    group = {"type": "namespace", "name": "crm", "description": "Customers", "tools": [function]}
    answered = ask(Simulator(), "openai_responses", {"model": "gpt-5.5", "input": "Hi", "tools": [group]})
    assert answered.json["output"][-1]["namespace"] == "crm"


def test_tools_that_the_provider_runs_are_not_called() -> None:
    body = {"model": "gpt-5.5", "input": "Hi", "tools": [{"type": "web_search"}]}
    assert ask(Simulator(), "openai_responses", body).json["output"][-1]["type"] == "message"


def test_schemas_with_types_in_capitals_are_satisfied() -> None:
    parameters = {"type": "OBJECT", "properties": {"days": {"type": "ARRAY", "items": {"type": "INTEGER"}}}}
    declared = {"name": "f", "parameters": {**parameters, "required": ["days"]}}
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": [{"functionDeclarations": [declared]}]}
    parts = ask(Simulator(), "gemini", body, model="gemini-2.5-pro").json["candidates"][0]["content"]["parts"]
    assert parts[-1]["functionCall"] == {"name": "f", "args": {"days": []}}


def test_ids_have_the_style_of_their_provider() -> None:
    simulator = Simulator()
    body = chat("Hi", tools=[tool()])

    def id_of(provider: str, model: str) -> str:
        message = ask(simulator, provider, {**body, "model": model}).json["choices"][0]["message"]
        return str(message["tool_calls"][0]["id"])

    assert id_of("mistral", "mistral-large-latest").isalnum()
    assert len(id_of("mistral", "mistral-large-latest")) == 9
    assert id_of("kimi", "kimi-k2.5") == "functions.get_weather:0"
    assert id_of("kimi", "kimi-k3").startswith("call_")
    assert id_of("openai", "gpt-4.1").startswith("call_")


def test_the_same_request_gets_the_same_answer_and_another_seed_other_ids() -> None:
    body = chat("Hi", tools=[tool()])

    def at_once(**script: Any) -> Simulator:
        return Simulator(script, clock=lambda: 1.5)

    first, second = (ask(at_once(), "openai", body).data for _ in range(2))
    assert first == second
    assert json.loads(first)["created"] == 1
    assert ask(at_once(seed=3), "openai", body).data != first
    stream = ask(at_once(), "openai", {**body, "stream": True})
    assert stream.chunks[0]["id"] == json.loads(first)["id"]


# --- scripts as values and files --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ({"rule": []}, "$", "unknown key 'rule'"),
        ({3: []}, "$", "unknown key 3"),
        ({"rules": [{"when": {"result": 1}, "reply": {}}]}, "$.rules[0].when", "unknown key 'result'"),
        ({"rules": [{"replies": [{}, {"txt": ""}]}]}, "$.rules[0].replies[1]", "unknown key 'txt'"),
        ({"rules": [{"reply": {"usage": {"extra": 1}}}]}, "$.rules[0].reply.usage", "unknown key 'extra'"),
        ({"rules": [{"reply": {"calls": [{"nam": 1}]}}]}, "$.rules[0].reply.calls[0]", "unknown key 'nam'"),
        ({"rules": [{}]}, "$.rules[0]", "a reply, replies or a fault"),
        ({"rules": [{"reply": {}, "replies": [{}]}]}, "$.rules[0]", "not both"),
        ({"rules": [{"replies": []}]}, "$.rules[0]", "a reply, replies or a fault"),
        ({"rules": [{"reply": {}, "times": 0}]}, "$.rules[0].times", "from 1 to 1000000, got 0"),
        ({"rules": [{"reply": {"calls": 1000}}]}, "$.rules[0].reply.calls", "from 0 to 128, got 1000"),
        ({"rules": [{"reply": {"calls": -1}}]}, "$.rules[0].reply.calls", "from 0 to 128, got -1"),
        ({"rules": [{"reply": {"calls": [{"name": "f"}] * 129}}]}, "$.rules[0].reply.calls", "at most 128 calls"),
        ({"rules": [{"reply": {"stop": "tool_call"}}]}, "$.rules[0].reply.stop", "unknown stop reason 'tool_call'"),
        ({"rules": [{"reply": {"usage": {"input_tokens": -1}}}]}, "$.rules[0].reply.usage.input_tokens", "from 0"),
        (
            {"rules": [{"reply": {"text": 3}}]},
            "$.rules[0].reply.text",
            "expected a string or nothing, got an integer",
        ),
        ({"rules": [{"when": ["x"], "reply": {}}]}, "$.rules[0].when", "expected an object, got a list"),
        ({"rules": {}}, "$.rules", "expected a list, got an object"),
        ({"rules": [{"fault": "nothing"}]}, "$.rules[0].fault", "unknown fault"),
        ({"rules": [{"fault": 428}]}, "$.rules[0].fault", "unknown fault"),
        ({"rules": [{"fault": {"kind": "reset", "after": -1}}]}, "$.rules[0].fault.after", "from 0 to 1000000, got -1"),
        ({"rules": [{"fault": "text_dialect,dialect=x"}]}, "$.rules[0].fault.dialect", "unknown dialect 'x'"),
        ({"rules": [{"reply": {}, "when": {"matches": "("}}]}, "$.rules[0].when.matches", "regular expression"),
        ({"rules": [{"reply": {}, "when": {"results": -1}}]}, "$.rules[0].when.results", "from 0 to 1000000, got -1"),
        ({"rules": [{"reply": {}, "when": {"turn": -1}}]}, "$.rules[0].when.turn", "from 0 to 1000000, got -1"),
        ({"rules": [{"reply": {}, "when": {"provider": "x"}}]}, "$.rules[0].when.provider", "unknown provider 'x'"),
        ({"rules": [{"fault": 500, "when": {"provider": ""}}]}, "$.rules[0].when.provider", "unknown provider ''"),
        ({"chunk": 0}, "$.chunk", "from 1 to 1000000, got 0"),
        ({"bytes": -1}, "$.bytes", "from 0 to 1000000, got -1"),
        ({"pace": 1e9}, "$.pace", "from 0 to 60"),
        ({"keys": ["a", " "]}, r"$.keys[1]", "a key that is not empty"),
        ({"rules": [{"fault": "500"}] * 10_001}, "$.rules", "more than"),
        ([], "script", "expected a script, got a list"),
        (7, "script", "expected a script, got 7"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused_with_its_path(value: Any, path: str, words: str) -> None:
    with pytest.raises(InputError) as found:
        script_of(value)
    assert words in found.value.message
    assert found.value.path == path


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ({"rule": []}, "did you mean rules? one of rules, seed, chunk, pace, bytes, keys"),
        ({"rules": [{"reply": {"stop": "tool_call"}}]}, "did you mean tool_calls? one of stop, tool_calls, length, "),
        ({"rules": [{"reply": {}, "when": {"provider": "antropic"}}]}, "did you mean 'anthropic'? (known: anthropic, "),
        ({"rules": [{"reply": {}, "when": {"provider": "google"}}]}, "did you mean 'gemini'? (known: anthropic, "),
    ],
)
def test_what_was_probably_meant_is_reported_with_all_that_is_allowed(value: Body, hint: str) -> None:
    with pytest.raises(InputError) as found:
        script_of(value)
    assert hint in str(found.value)


def test_every_provider_and_target_can_be_named() -> None:
    for name in (*PROVIDERS, "openai_responses"):
        assert script_of({"rules": [{"when": {"provider": name}, "fault": 500}]}).rules[0].when.provider == name


def test_values_put_into_a_script_by_hand_are_checked_too() -> None:
    wrong: list[tuple[Any, str]] = [
        (Script(rules="none"), "expected a list"),  # type: ignore[arg-type]
        (Script(chunk=0), "from 1"),
        (Script(rules=(object(),)), "plain values only"),  # type: ignore[arg-type]
    ]
    for script, words in wrong:
        with pytest.raises(InputError, match=words):
            Simulator(script)


def test_rules_that_are_never_reached_are_noted() -> None:
    open_rule, weather = {"reply": {"text": "a"}}, {"when": {"contains": "weather"}, "reply": {"text": "b"}}
    assert Simulator({"rules": [weather, open_rule]}).notes == ()
    assert Simulator({"rules": [{**open_rule, "times": 1}, {**weather, "times": 1}, weather]}).notes == ()
    assert Simulator({"rules": [open_rule, weather, open_rule]}).notes == (
        "rules[1] is never reached: rules[0] before it matches every request",
        "rules[2] is never reached: rules[0] before it matches every request",
    )
    assert Simulator({"rules": [weather, weather]}).notes == (
        "rules[1] is never reached: rules[0] before it matches the same requests",
    )


def test_a_script_can_be_built_of_values() -> None:
    script = Script(rules=(ScriptRule(when=When(turn=1), fault="500"),))
    assert script_of(script) is script
    simulator = Simulator(script)
    assert ask(simulator, "openai", chat("Hi")).status == 500
    simulator.use(rules=[{"reply": {"text": "Hello"}}])
    assert text(ask(simulator, "openai", chat("Hi"))) == "Hello"
    with pytest.raises(InputError, match="not both"):
        simulator.use(script, chunk=3)
    simulator.reset()
    assert ask(simulator, "openai", chat("Hi")).status == 500


FILES = {
    "a.json": '{"chunk": 3, "rules": [{"when": {"turn": 1}, "reply": {"text": "Hi"}}]}',
    "a.toml": 'chunk = 3\n[[rules]]\nwhen = {turn = 1}\nreply = {text = "Hi"}\n',
    "a.yaml": "chunk: 3\nrules:\n  - when: {turn: 1}\n    reply: {text: Hi}\n",
    "a.YML": "chunk: 3\nrules:\n  - when: {turn: 1}\n    reply: {text: Hi}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_script_is_json_toml_or_yaml(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], "utf-8")
    assert read_script(path) == script_of(json.loads(FILES["a.json"]))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.json", b"{", "ends before it is complete"),
        ("a.json", b"{]", "not JSON"),
        ("a.yaml", b"rules: &a [*a]", "expected an object, got a list"),
        ("a.yaml", b"rules: [{reply: {calls: [{name: f, arguments: {day: 2026-01-02}}]}}]", "date is not JSON"),
        ("a.toml", b"[[rules]]\n[[rules.reply.calls]]\nname='f'\narguments={t=12:00:00}", "time is not JSON"),
        ("a.json", b"[]", "expected an object with rules"),
        ("a.toml", b"=", "not TOML"),
        ("a.toml", b"\xff", "not TOML"),
        ("a.yaml", b"a: [", "not YAML"),
        ("a.yaml", b"- 1", "expected an object with rules"),
        ("a.json", b'{"chunk": "x"}', "expected an integer, got a string"),
        ("a.json", b" " * (4 * 1024 * 1024 + 1), "larger than"),
    ],
)
def test_a_file_that_is_no_script_is_refused_by_its_name(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=words) as found:
        read_script(path)
    assert name in found.value.path
    assert "send" not in found.value.hint


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read file: No such file"):
        read_script(tmp_path / "nothing.json")
    with pytest.raises(InputError, match="cannot read file") as found:
        Simulator('{"rules": []}')
    assert "not a JSON string" in found.value.hint


def test_a_script_is_a_value_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"rules": [{"reply": {"text": "From a file"}}]}', "utf-8")
    for source in (path, str(path)):
        assert text(ask(Simulator(source), "openai", chat("Hi"))) == "From a file"
    simulator = Simulator()
    simulator.use(path)
    assert text(ask(simulator, "openai", chat("Hi"))) == "From a file"
    with pytest.raises(InputError, match="expected a script, got a list"):
        simulator.use([])  # type: ignore[arg-type]


def test_yaml_without_pyyaml_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(FILES["a.yaml"], "utf-8")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match="needs PyYAML") as found:
        read_script(path)
    assert "pip install '.[simulator]'" in found.value.hint


PARTS = st.sampled_from(["rules", "when", "reply", "replies", "fault", "calls", "arguments", "kind", "after", "stop"])
VALUES = st.recursive(
    JSON | st.sampled_from(["reset", 429, -1, 10**400, float("nan"), "\ud800", b"", object(), {3}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PARTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.law
@given(VALUES)
def test_law_any_script_or_fault_is_taken_or_refused(value: Any) -> None:
    for read in (Simulator, lambda rules: Simulator({"rules": rules}), Simulator().fault):
        with contextlib.suppress(InputError):
            read(value)


# --- other paths ------------------------------------------------------------------------------------

KEY = {"authorization": "Bearer key"}
ANTHROPIC = {"x-api-key": "key", "anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("path", "headers", "where", "value"),
    [
        ("/v1/models", KEY, "object", "list"),
        ("/v1/models/gpt-4.1", KEY, "id", "gpt-4.1"),
        ("/v1/models", ANTHROPIC, "has_more", False),
        ("/anthropic/v1/models/claude-opus-5", ANTHROPIC, "display_name", "claude-opus-5"),
        ("/gemini/v1beta/models/gemini-3-pro", {"x-goog-api-key": "k"}, "name", "models/gemini-3-pro"),
        ("/ollama/api/version", {}, "version", "0.12.6"),
    ],
)
def test_models_and_versions(path: str, headers: dict[str, str], where: str, value: Any) -> None:
    answered = request(Simulator(), path, method="GET", headers=headers)
    assert answered.status == 200
    assert answered.json[where] == value


@pytest.mark.parametrize("path", ["/gemini/v1beta/models", "/cohere/v1/models", "/api/tags"])
def test_lists_of_models(path: str) -> None:
    headers = {**KEY, "x-goog-api-key": "k"}
    assert request(Simulator(), path, method="GET", headers=headers).json["models"][0]["name"]


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/v1/messages/count_tokens", "input_tokens"),
        ("/openai/v1/responses/input_tokens", "input_tokens"),
        ("/v1beta/models/m:countTokens", "totalTokens"),
        ("/bedrock/model/m/count-tokens", "inputTokens"),
    ],
)
def test_tokens_are_counted(path: str, where: str) -> None:
    headers = {**KEY, **ANTHROPIC}
    few, many = (request(Simulator(), path, {"a": "x" * size}, headers=headers).json[where] for size in (4, 400))
    assert 0 < few < many


def test_native_paths_work_without_a_prefix() -> None:
    simulator = Simulator()
    claude = {"model": "claude-opus-5", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}
    assert request(simulator, "/v1/messages", claude, headers=ANTHROPIC).status == 200
    assert request(simulator, "/v1/chat/completions", chat("Hi"), headers=KEY).status == 200
    assert request(simulator, "/v1/responses", {"model": "gpt-5.5", "input": "Hi"}, headers=KEY).status == 200
    assert request(simulator, "/v2/chat", {**chat("Hi"), "model": "m"}, headers=KEY).status == 200
    assert request(simulator, "/api/chat", {**chat("Hi"), "stream": False}).status == 200
    assert request(simulator, "/api/show", {"model": "m"}).json["capabilities"]
    contents = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    assert request(simulator, "/v1beta/models/m:generateContent?key=k", contents).status == 200
    converse = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    assert request(simulator, "/model/arn:aws/m/converse", converse, headers=KEY).status == 200
    assert {recorded.provider for recorded in simulator.requests} == {
        *("anthropic", "openai", "cohere", "ollama", "gemini", "bedrock"),
    }
    assert simulator.requests[-1].model == "arn:aws/m"


@pytest.mark.parametrize("provider", ["xai", "groq", "qwen", "glm", "minimax", "openrouter", "cerebras", "vllm"])
def test_other_hosts_of_chat_completions_are_served_too(provider: str) -> None:
    body = {**chat("Hi", tools=[tool()]), "model": "some-model"}
    assert calls(request(Simulator(), f"/{provider}/v1/chat/completions", body, headers=KEY))


def test_gemini_streams_an_array_to_those_who_do_not_ask_for_events() -> None:
    contents = {"contents": [{"role": "user", "parts": [{"text": "Hello, how are you today?"}]}]}
    path = "/gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent"
    answered = request(Simulator({"chunk": 5}), path, contents, headers={"x-goog-api-key": "k"})
    assert answered.headers["content-type"] == "application/json"
    assert len(answered.json) > 2


def test_ollama_streams_by_default() -> None:
    answered = request(Simulator(), "/api/chat", {**chat("Hi"), "model": "qwen3"})
    lines = [json.loads(line) for line in answered.data.splitlines()]
    assert [line["done"] for line in lines][-1] is True
    assert "".join(line["message"]["content"] for line in lines) == "You said: Hi"


def test_usage_of_a_stream_is_sent_on_request() -> None:
    body = {**chat("Hi"), "stream": True}
    assert not [chunk for chunk in ask(Simulator(), "openai", body).chunks if chunk.get("usage")]
    pending = ask(Simulator(), "openai", {**body, "stream_options": {"include_usage": True}})
    assert pending.chunks[-1]["choices"] == []
    assert pending.chunks[-1]["usage"]["total_tokens"]


def test_anthropic_reports_the_cost_of_the_prompt_when_it_begins() -> None:
    body = {"model": "claude-opus-5", "max_tokens": 10, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    assert ask(Simulator(), "anthropic", body).chunks[0]["message"]["usage"]["input_tokens"] > 0
