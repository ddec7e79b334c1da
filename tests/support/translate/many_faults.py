"""Bodies that hold n of one fault each, for tests of linear work: a request with many faults costs as much as they are.

Each entry is named after the fault's class in the reference of failures (A: pairing, B: ids, C: roles, D: thinking,
E: tools, F: arguments, G: results and media).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Body = dict[str, Any]
Make = Callable[[int], Body]

FAULTS: Final[dict[str, tuple[str, Make]]] = {}
"""The client's protocol, and how a body with n faults is made, by the fault's name."""


def _fault(name: str, source: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        FAULTS[name] = (source, make)
        return make

    return register


def _anthropic(messages: list[Body], **more: Any) -> Body:
    tools = [{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 4096, "messages": messages, "tools": tools} | more


def _chat(messages: list[Body], **more: Any) -> Body:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    return {"model": "gpt-4.1", "messages": messages, "tools": tools} | more


def _responses(items: list[Body], **more: Any) -> Body:
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
    return {"model": "gpt-4.1", "input": items, "tools": tools} | more


def _gemini(contents: list[Body], **more: Any) -> Body:
    return {"contents": contents, "tools": [{"functionDeclarations": [{"name": "f"}]}]} | more


def _use(id: object, arguments: object = None, name: object = "f") -> Body:
    return {"type": "tool_use", "id": id, "name": name, "input": {} if arguments is None else arguments}


def _result(id: object, content: object = "r") -> Body:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def _call(id: object, arguments: object = "{}", name: object = "f") -> Body:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _user(content: object = "hi") -> Body:
    return {"role": "user", "content": content}


def _assistant(content: object = "ok") -> Body:
    return {"role": "assistant", "content": content}


def _tool(id: object, content: object = "r") -> Body:
    return {"role": "tool", "tool_call_id": id, "content": content}


def _calling(calls: list[Body]) -> Body:
    return {"role": "assistant", "content": None, "tool_calls": calls}


@_fault("A1 calls without results in one turn", "anthropic")
def _(n: int) -> Body:
    return _anthropic([_user(), _assistant([_use(f"toolu_{i}") for i in range(n)]), _user()])


@_fault("A1 a call without its result in each turn", "anthropic")
def _(n: int) -> Body:
    pairs = [[_assistant([_use(f"toolu_{i}")]), _user("go on")] for i in range(n)]
    return _anthropic([_user(), *(each for pair in pairs for each in pair)])


@_fault("A2 results without calls in one turn", "anthropic")
def _(n: int) -> Body:
    return _anthropic([_user([_result(f"toolu_{i}") for i in range(n)])])


@_fault("A2 a result without its call in each turn", "anthropic")
def _(n: int) -> Body:
    return _anthropic([each for i in range(n) for each in (_user([_result(f"toolu_{i}")]), _assistant())] + [_user()])


@_fault("A3 many results of one call", "anthropic")
def _(n: int) -> Body:
    return _anthropic([_user(), _assistant([_use("toolu_1")]), _user([_result("toolu_1", f"r{i}") for i in range(n)])])


@_fault("A3 two results of each call", "openai")
def _(n: int) -> Body:
    results = [_tool(f"call_{i}", text) for i in range(n) for text in ("one", "two")]
    return _chat([_user(), _calling([_call(f"call_{i}") for i in range(n)]), *results])


@_fault("A4 a message between call and result", "openai")
def _(n: int) -> Body:
    between = [[_calling([_call(f"call_{i}")]), _user("wait"), _tool(f"call_{i}")] for i in range(n)]
    return _chat([_user(), *(each for three in between for each in three)])


@_fault("A4 results far behind their calls", "openai")
def _(n: int) -> Body:
    calls = [_calling([_call(f"call_{i}")]) for i in range(n)]
    return _chat([_user(), *calls, *(_tool(f"call_{i}") for i in range(n))])


@_fault("A4 results in the order against their calls", "openai")
def _(n: int) -> Body:
    calls = [_call(f"call_{i}") for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool(f"call_{i}") for i in reversed(range(n)))])


@_fault("A5 results without calls in Chat", "openai")
def _(n: int) -> Body:
    return _chat([_user(), *(_tool(f"call_{i}") for i in range(n))])


@_fault("A6 outputs without a call id", "openai_responses")
def _(n: int) -> Body:
    return _responses([_user(), *({"type": "function_call_output", "output": f"r{i}"} for i in range(n))])


@_fault("A6 outputs with an id that no call has", "openai_responses")
def _(n: int) -> Body:
    outputs = [{"type": "function_call_output", "call_id": f"call_{i}", "output": "r"} for i in range(n)]
    return _responses([_user(), *outputs])


@_fault("A7 an empty message between call and output", "openai_responses")
def _(n: int) -> Body:
    items: list[Body] = [_user()]
    for i in range(n):
        items.append({"type": "function_call", "call_id": f"call_{i}", "name": "f", "arguments": "{}"})
        items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]})
        items.append({"type": "function_call_output", "call_id": f"call_{i}", "output": "r"})
    return _responses(items)


@_fault("A8 fewer responses than calls", "gemini")
def _(n: int) -> Body:
    calls = [{"functionCall": {"name": "f", "args": {"a": str(i)}}} for i in range(n)]
    answers = [{"functionResponse": {"name": "f", "response": {"r": i}}} for i in range(n // 2)]
    first = {"role": "user", "parts": [{"text": "hi"}]}
    return _gemini([first, {"role": "model", "parts": calls}, {"role": "user", "parts": answers}])


@_fault("A9 responses without calls", "gemini")
def _(n: int) -> Body:
    answers = [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": i}}}]} for i in range(n)]
    return _gemini(answers)


@_fault("B1 ids with characters that are refused", "openai")
def _(n: int) -> Body:
    calls = [_call(f"functions.f:{i}") for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool(f"functions.f:{i}") for i in range(n))])


@_fault("B2 ids that are too long", "openai")
def _(n: int) -> Body:
    ids = [f"{i:0450d}" for i in range(n)]
    return _chat([_user(), _calling([_call(id) for id in ids]), *map(_tool, ids)])


@_fault("B6 one id for every call", "openai")
def _(n: int) -> Body:
    pairs = [[_calling([_call("call_0", f'{{"a":"{i}"}}')]), _tool("call_0", f"r{i}")] for i in range(n)]
    return _chat([_user(), *(each for pair in pairs for each in pair)])


@_fault("B6 one id for the calls of one turn", "openai")
def _(n: int) -> Body:
    calls = [_call("call_0", f'{{"a":"{i}"}}') for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool("call_0", f"r{i}") for i in range(n))])


@_fault("B7 calls and results without ids", "openai")
def _(n: int) -> Body:
    calls = [_call("", f'{{"a":"{i}"}}') for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool("", f"r{i}") for i in range(n))])


@_fault("B7 ids that are numbers", "openai")
def _(n: int) -> Body:
    return _chat([_user(), _calling([_call(i) for i in range(n)]), *(_tool(i) for i in range(n))])


@_fault("B9 state inside ids", "openai")
def _(n: int) -> Body:
    ids = [f"call_{i}__thought__QUJD" for i in range(n)]
    return _chat([_user(), _calling([_call(id) for id in ids]), *map(_tool, ids)])


@_fault("C1 a user turn after each result", "openai")
def _(n: int) -> Body:
    threes = [[_calling([_call(f"call_{i}")]), _tool(f"call_{i}"), _user("next")] for i in range(n)]
    return _chat([_user(), *(each for three in threes for each in three)])


@_fault("C3 results behind texts", "anthropic")
def _(n: int) -> Body:
    results = [each for i in range(n) for each in ({"type": "text", "text": f"t{i}"}, _result(f"toolu_{i}"))]
    return _anthropic([_user(), _assistant([_use(f"toolu_{i}") for i in range(n)]), _user(results)])


@_fault("C5 many turns of one speaker", "anthropic")
def _(n: int) -> Body:
    return _anthropic([_user(f"hi {i}") for i in range(n)])


@_fault("C6 exchanges inside an exchange", "openai")
def _(n: int) -> Body:
    inner = [[_calling([_call(f"call_{i}")]), _tool(f"call_{i}")] for i in range(n)]
    flat = [each for pair in inner for each in pair]
    return _chat([_user(), _calling([_call("call_outer")]), *flat, _tool("call_outer")])


@_fault("C7 empty texts", "anthropic")
def _(n: int) -> Body:
    return _anthropic(
        [_user(), _assistant([{"type": "text", "text": ""}] * n), _user([{"type": "text", "text": ""}] * n)]
    )


@_fault("C7 empty turns", "openai")
def _(n: int) -> Body:
    return _chat([each for _ in range(n) for each in (_user(""), _assistant(""))] + [_user()])


@_fault("C10 many calls in one turn", "openai")
def _(n: int) -> Body:
    return _chat([_user(), _calling([_call(f"call_{i}") for i in range(n)]), *(_tool(f"call_{i}") for i in range(n))])


@_fault("D2 thinking between the calls", "anthropic")
def _(n: int) -> Body:
    blocks: list[Body] = []
    for i in range(n):
        blocks.append({"type": "thinking", "thinking": f"t{i}", "signature": "QUJD"})
        blocks.append(_use(f"toolu_{i}"))
    return _anthropic([_user(), _assistant(blocks), _user([_result(f"toolu_{i}") for i in range(n)])])


@_fault("D3 signed thinking in each turn", "anthropic")
def _(n: int) -> Body:
    thinking = {"type": "thinking", "thinking": "t", "signature": "QUJD"}
    turns = [[_assistant([thinking, {"type": "text", "text": f"ok {i}"}]), _user("next")] for i in range(n)]
    budget = {"type": "enabled", "budget_tokens": 2000}
    return _anthropic([_user(), *(each for pair in turns for each in pair)], thinking=budget)


@_fault("D9 reasoning items without followers", "openai_responses")
def _(n: int) -> Body:
    items = [{"type": "reasoning", "id": f"rs_{i}", "summary": [], "encrypted_content": "QUJD"} for i in range(n)]
    return _responses([_user(), *items, _user("next")], store=False)


@_fault("D11 cache marks everywhere", "anthropic")
def _(n: int) -> Body:
    marked = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}
    return _anthropic([_user([marked] * n)])


@_fault("E2 keywords that are refused", "openai")
def _(n: int) -> Body:
    schema = {"type": "object", "properties": {f"p{i}": {"type": ["string", "null"], "const": "x"} for i in range(n)}}
    return _chat([_user()], tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}])


@_fault("E3 tools with unions at the root", "openai")
def _(n: int) -> Body:
    schema = {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}]}
    tools = [{"type": "function", "function": {"name": f"f{i}", "parameters": schema}} for i in range(n)]
    return _chat([_user()], tools=tools)


@_fault("E4 names that are refused", "openai")
def _(n: int) -> Body:
    tools = [{"type": "function", "function": {"name": f"dot.{i}/slash {'x' * 80}"}} for i in range(n)]
    calls = [_call(f"call_{i}", name=f"dot.{i}/slash {'x' * 80}") for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool(f"call_{i}") for i in range(n))], tools=tools)


@_fault("E5 tools of one name", "openai")
def _(n: int) -> Body:
    tools = [{"type": "function", "function": {"name": "f", "description": f"d{i}"}} for i in range(n)]
    return _chat([_user()], tools=tools)


@_fault("E6 calls of tools that are not offered", "openai")
def _(n: int) -> Body:
    calls = [_call(f"call_{i}", name=f"gone_{i}") for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool(f"call_{i}") for i in range(n))], tools=[])


@_fault("F1 arguments that are cut off", "openai")
def _(n: int) -> Body:
    calls = [_call(f"call_{i}", '{"a": "b') for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool(f"call_{i}") for i in range(n))])


@_fault("F2 arguments encoded twice", "openai")
def _(n: int) -> Body:
    calls = [_call(f"call_{i}", '"{\\"a\\":\\"b\\"}"') for i in range(n)]
    return _chat([_user(), _calling(calls), *(_tool(f"call_{i}") for i in range(n))])


@_fault("F3 arguments that are no object", "anthropic")
def _(n: int) -> Body:
    calls = [_use(f"toolu_{i}", [1, "x"]) for i in range(n)]
    return _anthropic([_user(), _assistant(calls), _user([_result(f"toolu_{i}") for i in range(n)])])


@_fault("F6 calls without names", "anthropic")
def _(n: int) -> Body:
    calls = [_use(f"toolu_{i}", name="") for i in range(n)]
    return _anthropic([_user(), _assistant(calls), _user([_result(f"toolu_{i}") for i in range(n)])])


@_fault("G1 images inside results", "anthropic")
def _(n: int) -> Body:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    calls = [_use(f"toolu_{i}") for i in range(n)]
    return _anthropic([_user(), _assistant(calls), _user([_result(f"toolu_{i}", [image]) for i in range(n)])])


@_fault("G3 results that are empty errors", "anthropic")
def _(n: int) -> Body:
    results = [_result(f"toolu_{i}", "") | {"is_error": True} for i in range(n)]
    return _anthropic([_user(), _assistant([_use(f"toolu_{i}") for i in range(n)]), _user(results)])


@_fault("G4 half characters", "openai")
def _(n: int) -> Body:
    return _chat([each for i in range(n) for each in (_user(f"\ud83d{i}"), _assistant(f"\ude00{i}"))] + [_user()])


@_fault("G5 server tools without results", "anthropic")
def _(n: int) -> Body:
    uses = [{"type": "server_tool_use", "id": f"srvtoolu_{i}", "name": "web_search", "input": {}} for i in range(n)]
    return _anthropic([_user(), _assistant(uses), _user()])
