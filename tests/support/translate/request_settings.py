"""What a request sets, read from its raw JSON: sampling, thinking, the form of the output, tools and their choice.

The reading shares no code with what is judged. Settings are read by a table of paths for each protocol.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

Fields = dict[str, Any]


class Tool(NamedTuple):
    name: str
    description: str
    schema: Any
    namespace: str = ""


_PATHS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "temperature": {"*": ("temperature",), "gemini": ("generationConfig", "temperature")},
    "top_p": {"*": ("top_p",), "gemini": ("generationConfig", "topP"), "cohere": ("p",)},
    "top_k": {"*": ("top_k",), "gemini": ("generationConfig", "topK"), "cohere": ("k",)},
    "seed": {"*": ("seed",), "gemini": ("generationConfig", "seed")},
    "presence_penalty": {"*": ("presence_penalty",), "gemini": ("generationConfig", "presencePenalty")},
    "frequency_penalty": {"*": ("frequency_penalty",), "gemini": ("generationConfig", "frequencyPenalty")},
    "parallel": {"*": ("parallel_tool_calls",)},
    "user": {"*": ("user",), "anthropic": ("metadata", "user_id")},
}
INFERENCE: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxTokens",
    "stop": "stopSequences",
}
LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def field_at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def read_options(protocol: str, body: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    config = body.get("generationConfig") or {}
    if protocol == "bedrock":
        inference = body.get("inferenceConfig") or {}
        found = {name: inference.get(field) for name, field in INFERENCE.items()}
        more = body.get("additionalModelRequestFields") or {}
        found |= {"top_k": more.get("top_k")}
    elif protocol == "ollama":
        own = body.get("options") or {}
        names = ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty", "stop")
        found = {name: own.get(name) for name in names} | {"max_tokens": own.get("num_predict")}
    else:
        for name, paths in _PATHS.items():
            found[name] = field_at(body, paths.get(protocol, paths["*"]))
        found["seed"] = body.get("random_seed") if found["seed"] is None else found["seed"]  # Mistral's name
        found["max_tokens"] = next((body[field] for field in LIMITS if body.get(field) is not None), None)
        found["stop"] = body.get("stop") or body.get("stop_sequences")
    if protocol == "gemini":
        found |= {"max_tokens": config.get("maxOutputTokens"), "stop": config.get("stopSequences")}
    if isinstance(found.get("stop"), str):
        found["stop"] = [found["stop"]]
    if protocol == "anthropic" and (body.get("tool_choice") or {}).get("disable_parallel_tool_use"):
        found["parallel"] = False
    found["parallel"] = False if found.get("parallel") is False else None
    found["output"] = _output(protocol, body)
    found["thinking"] = _requested_thinking(protocol, body)
    return {name: value for name, value in found.items() if value is not None and value != []}


class ThinkingRequest(NamedTuple):
    """What is requested of thinking: whether (`off`, `on`, an unknown word), how hard, with how many tokens."""

    state: str | None = None
    effort: str | None = None
    budget: int | None = None


_STATES: Final = {"enabled": "on", "disabled": "off", "adaptive": "on", True: "on", False: "off"}


def _requested_thinking(protocol: str, body: Fields) -> ThinkingRequest | None:
    """What a request says of thinking, in whichever of the forms that hosts have for it."""
    if protocol == "bedrock":
        body = body.get("additionalModelRequestFields") or {}
    config = field_at(body, ("generationConfig", "thinkingConfig")) if protocol == "gemini" else None
    config = {camel_case(name): value for name, value in config.items()} if isinstance(config, dict) else {}
    thinking: Fields = next(
        (body[name] for name in ("thinking", "reasoning_config") if isinstance(body.get(name), dict)),
        {},
    )
    reasoning: Any = body.get("reasoning")
    reasoning = reasoning if isinstance(reasoning, dict) else {}
    think = body.get("think")
    efforts = (
        *(field_at(body, ("output_config", "effort")), body.get("reasoning_effort"), reasoning.get("effort")),
        *(config.get("thinkingLevel"), think, thinking.get("maxReasoningEffort")),
    )
    budgets = (
        *(thinking.get("budget_tokens"), thinking.get("token_budget"), body.get("thinking_budget")),
        *(reasoning.get("max_tokens"), config.get("thinkingBudget")),
    )
    switches = (thinking.get("type"), body.get("enable_thinking"), reasoning.get("enabled"), bool(think) or think)
    effort = next((one.lower() for one in efforts if isinstance(one, str)), None)
    budget = next((int(one) for one in budgets if isinstance(one, int | float) and type(one) is not bool), None)
    state = next((_STATES.get(one, str(one)) for one in switches if isinstance(one, str | bool)), None)
    if effort == "none" or budget == 0 or state == "off":
        state, effort, budget = "off", None, None
    elif state is None and (effort is not None or budget is not None):
        state = "on"
    budget = None if budget is not None and budget < 0 else budget  # as much as the model likes
    requested = ThinkingRequest(state, effort, budget)
    return None if requested == ThinkingRequest() else requested


def _output(protocol: str, body: Fields) -> str | None:
    """The kind of output that is requested."""
    if protocol == "gemini":
        config = body.get("generationConfig") or {}
        if plain_schema(config.get("responseSchema") or config.get("responseJsonSchema")):
            return "json_schema"
        return "json" if config.get("responseMimeType") == "application/json" else None
    if protocol == "ollama":
        form = body.get("format")
        return "json" if form == "json" or not plain_schema(form or {"a": 1}) else "json_schema" if form else None
    form = {
        "openai_chat": body.get("response_format"),
        "cohere": body.get("response_format"),
        "openai_responses": field_at(body, ("text", "format")),
        "anthropic": field_at(body, ("output_config", "format")) or body.get("output_format"),
        "bedrock": field_at(body, ("outputConfig", "textFormat")),
    }[protocol]
    kind = form.get("type") if isinstance(form, dict) else None
    schema = field_at(form, ("json_schema", "schema")) or field_at(form, ("structure", "jsonSchema", "schema"))
    schema = json.loads(schema) if isinstance(schema, str) else schema or form.get("schema") if kind else None
    if kind == "json_schema" and not plain_schema(schema):
        return "json"
    if kind == "json_object":
        return "json_schema" if plain_schema(form.get("json_schema") or form.get("schema")) else "json"
    return kind if kind != "text" else None


SCHEMA_FIELDS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")


def declared_tools(body: Fields) -> Iterator[Fields]:
    """Each declared function as the object that names it, with what stands around that; those that the turns define
    behind the others."""
    yield from _tools_of(body.get("tools") or body.get("functions") or field_at(body, ("toolConfig", "tools")))
    items = body.get("input")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            yield from _tools_of(item.get("tools"))


def _tools_of(declared: Any) -> Iterator[Fields]:
    if isinstance(declared, dict):
        declared = [declared]
    for tool in declared if isinstance(declared, list) else ():
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == "namespace":
            yield from ({**inner, "namespace": tool.get("name")} for inner in _tools_of(tool.get("tools")))
            continue
        inner = tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]
        for one in inner:
            held = one.get("function") or one.get("custom") or one.get("toolSpec") or one
            if isinstance(held, dict) and "name" in held:
                yield {**one, **held}


def read_tools(body: Fields) -> Iterator[Tool]:
    for tool in declared_tools(body):
        schema = next((tool[name] for name in SCHEMA_FIELDS if name in tool), None)
        if isinstance(schema, dict) and set(schema) == {"json"}:
            schema = schema["json"]
        namespace = str(tool.get("namespace") or "")
        yield Tool(str(tool["name"]), str(tool.get("description") or ""), schema, namespace)


_MODES: Final = {"any": "required", "ANY": "required", "AUTO": "auto", "NONE": "none", "REQUIRED": "required"}
_MODES_KNOWN: Final = ("auto", "none", "required", "named", "allowed", "validated", "VALIDATED")


def read_choice(body: Fields) -> tuple[str, tuple[str, ...]]:
    config = body.get("toolConfig") or {}
    calling = config.get("functionCallingConfig") or {}
    choice = body.get("tool_choice", body.get("function_call", config.get("toolChoice")))
    if calling:
        names = tuple(calling.get("allowedFunctionNames") or ())
        mode = _MODES.get(str(calling.get("mode")).upper(), "auto")
        return ("named" if len(names) == 1 and mode == "required" else mode, names)
    if isinstance(choice, str):
        return _MODES.get(choice, choice), ()
    if not isinstance(choice, dict):
        return "auto", ()
    for mode in ("auto", "any", "tool"):
        if mode in choice:
            return ("named", (str(choice["tool"].get("name")),)) if mode == "tool" else (_MODES.get(mode, mode), ())
    kind = str(choice.get("type", "function"))
    allowed = choice.get("allowed_tools", choice)
    if kind == "allowed_tools":
        names = tuple((tool.get("function") or tool).get("name") for tool in allowed.get("tools") or ())
        mode = allowed.get("mode", "auto")
        return ("named" if mode == "required" and len(names) == 1 else mode, names)
    name = choice.get("name") or (choice.get("function") or choice.get("custom") or {}).get("name")
    return ("named", (name,)) if name else (_MODES.get(kind, kind), ())


def plain_schema(schema: Any) -> Any:
    """A schema without what says nothing: an empty object in any of its forms; types in small letters."""
    if isinstance(schema, dict):
        kept = {name: plain_schema(value) for name, value in schema.items()}
        if isinstance(kept.get("type"), str):
            kept["type"] = kept["type"].lower()
        kept = {name: value for name, value in kept.items() if value not in ({}, [], None)}
        return kept if kept != {"type": "object"} else None
    if isinstance(schema, list):
        return [plain_schema(value) for value in schema]
    return schema


_CAMEL: Final = ("generationConfig", "toolConfig", "functionCallingConfig", "systemInstruction")


def camel_case(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def with_camel_case(value: Any) -> Any:
    """Settings of Gemini in the one of its two spellings that is read here; the texts are left as they are."""
    if not isinstance(value, dict):
        return value
    return {
        camel_case(name): with_camel_case(inner) if camel_case(name) in _CAMEL else inner
        for name, inner in value.items()
    }
