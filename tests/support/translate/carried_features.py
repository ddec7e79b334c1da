"""What `convert` carries from each protocol to each other: the table of docs/pairs.md, computed.

A feature is a conversation (or a reply) that has it, and a probe that finds it in one. For a pair, the feature
is written in the source's protocol, converted, read in the target's, and looked for. A feature that the source
itself cannot say is no loss. What is neither carried nor reported is a failure of the tests that read this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from toolglot import (
    Conversation,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Reply,
    Sampling,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
    Usage,
    convert,
    convert_reply,
)
from toolglot.conversation.report import Report
from toolglot.protocols.base import codec

PROTOCOLS = {
    "anthropic": ("anthropic", "claude-sonnet-4-6"),
    "openai_chat": ("openai", "gpt-5.1"),
    "openai_responses": ("openai_responses", "gpt-5.2"),
    "gemini": ("gemini", "gemini-3-pro"),
    "bedrock": ("bedrock", "anthropic.claude-sonnet-4-6"),
    "cohere": ("cohere", "command-a-03-2025"),
    "ollama": ("ollama", "qwen3"),
}
"""Each protocol with the target and the model that stand for it."""

Found = Literal["", "yes", "text", "nearest"]
"""How a feature is there: not at all, in its own form, in words, or as the nearest form that the target has."""

UNSAID = "–"
Cell = Literal["–", "yes", "text", "nearest", "address", "lost"]


class Feature(NamedTuple):
    name: str
    conversation: Conversation
    probe: Callable[[Conversation], Found]
    words: tuple[str, ...]
    """One of these is in the reason of an entry that tells the loss."""


class ReplyFeature(NamedTuple):
    name: str
    reply: Reply
    probe: Callable[[Reply], Found]
    words: tuple[str, ...]


class WireFeature(NamedTuple):
    """Something that a few protocols have fields of their own for: their bodies, and a look at any body."""

    name: str
    bodies: dict[str, dict[str, Any]]
    marks: tuple[str, ...]
    """One of these is in a body that has it."""
    words: tuple[str, ...]
    is_reply: bool = False


PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQK"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = ToolSpec("read", "Reads a file.", SCHEMA)
LIST = ToolSpec("list", "Lists files.", SCHEMA)


def user(*blocks: Text | Media | ToolResult) -> Turn:
    return Turn("user", blocks or (Text("go on"),))


def call(id: str, name: str = "read", path: str = "a") -> ToolCall:
    return ToolCall(id, name, {"path": path})


def talk(*turns: Turn, tools: tuple[ToolSpec, ...] = (), options: Options | None = None) -> Conversation:
    return Conversation(turns or (user(),), tools, options or Options())


def with_result(result: ToolResult, *more: Turn) -> Conversation:
    calling = Turn("assistant", (Text("I will look."), call("toolu_1")))
    return talk(user(), calling, Turn("user", (result,)), *more, tools=(READ,))


def result(content: object, *, is_error: bool = False) -> ToolResult:
    return ToolResult("toolu_1", content, is_error=is_error, name="read", is_complete=True)  # type: ignore[arg-type]


# --- probes -----------------------------------------------------------------------------------------


def texts(conversation: Conversation, *roles: str) -> str:
    return "\n".join(turn.text for turn in conversation.turns if not roles or turn.role in roles)


def says(needle: str, *roles: str) -> Callable[[Conversation], Found]:
    def probe(conversation: Conversation) -> Found:
        if needle in texts(conversation, *roles):
            return "yes"
        return "text" if needle in texts(conversation) else ""

    return probe


def holds(kind: str, role: str = "user") -> Callable[[Conversation], Found]:
    def probe(conversation: Conversation) -> Found:
        media = [
            block
            for turn in conversation.turns
            if turn.role == role
            for block in turn.blocks
            if isinstance(block, Media) and (block.data or block.url)
        ]
        kinds = {kind, "file"} if kind == "document" else {kind}
        if any(block.kind in kinds for block in media):
            return "yes"
        return "text" if f"[{kind}" in texts(conversation, role) else ""

    return probe


def result_holds(kind: str) -> Callable[[Conversation], Found]:
    def probe(conversation: Conversation) -> Found:
        kinds = {kind, "file"} if kind == "document" else {kind}
        for found in results(conversation):
            parts = found.content if isinstance(found.content, tuple) else ()
            if any(isinstance(part, Media) and part.kind in kinds for part in parts):
                return "yes"
        return "nearest" if holds(kind)(conversation) == "yes" else ""

    return probe


def results(conversation: Conversation) -> list[ToolResult]:
    return [found for turn in conversation.turns for found in turn.results]


def calls(conversation: Conversation) -> list[ToolCall]:
    return [found for turn in conversation.turns for found in turn.calls]


def failed(conversation: Conversation) -> Found:
    found = results(conversation)
    if found and found[0].is_error:
        return "yes"
    return "text" if found and "Error: no such file" in found[0].text else ""


def paired(conversation: Conversation) -> Found:
    made, returned = calls(conversation), results(conversation)
    if [c.arguments for c in made] != [{"path": "a"}, {"path": "b"}] or len(returned) != 2:
        return ""
    if all(c.id for c in made):
        return "yes" if [c.id for c in made] == [r.call_id for r in returned] else ""
    return "yes" if [c.name for c in made] == [r.name for r in returned] else ""


def thought(conversation: Conversation) -> Found:
    blocks = [block for turn in conversation.turns for block in turn.blocks if isinstance(block, Thinking)]
    return "yes" if any("deep thought" in block.text for block in blocks) else ""


def signed(conversation: Conversation) -> Found:
    for turn in conversation.turns:
        for block in turn.blocks:
            if isinstance(block, Thinking) and (block.signature or block.redacted):
                return "yes"
    return ""


def option(read: Callable[[Options], object], wanted: object) -> Callable[[Conversation], Found]:
    def probe(conversation: Conversation) -> Found:
        found = read(conversation.options)
        return "yes" if found == wanted else "nearest" if found not in (None, ()) else ""

    return probe


def tool_described(conversation: Conversation) -> Found:
    for tool in conversation.tools:
        if tool.name == "read" and tool.description and tool.parameters:
            return "yes" if "path" in tool.parameters.get("properties", {}) else ""
    return ""


def free_text_tool(conversation: Conversation) -> Found:
    (tool,) = conversation.tools or (None,)
    if tool is not None and tool.type == "custom" and tool.format:
        return "yes"
    grammar = str(tool.parameters) if tool is not None else ""
    return "nearest" if "start: WORD" in grammar else ""


def free_text_call(conversation: Conversation) -> Found:
    (made,) = calls(conversation) or (None,)
    if made is None:
        return ""
    if made.type == "custom":
        return "yes" if made.raw_input == 'a\n"b"\t' else ""
    return "nearest" if made.arguments == {"input": 'a\n"b"\t'} else ""


def namespaced(conversation: Conversation) -> Found:
    (tool,) = conversation.tools or (None,)
    if tool is None:
        return ""
    if tool.namespace == "files":
        return "yes"
    return "nearest" if "files" in tool.name and tool.name.endswith("read") else ""


def chose(mode: str) -> Callable[[Conversation], Found]:
    def probe(conversation: Conversation) -> Found:
        choice = conversation.options.tool_choice
        if choice is not None and choice.mode == mode:
            return "yes"
        if mode == "auto":
            return "yes" if conversation.tools else ""
        if mode == "none" and not conversation.tools:
            return "nearest"
        if mode in ("named", "allowed") and [tool.name for tool in conversation.tools] == ["read"]:
            return "nearest"
        return ""

    return probe


def serial(conversation: Conversation) -> Found:
    choice = conversation.options.tool_choice
    return "yes" if choice is not None and choice.parallel is False else ""


def thinks(conversation: Conversation) -> Found:
    reasoning = conversation.options.reasoning
    if reasoning is None:
        return ""
    return (
        "yes" if reasoning.budget_tokens == 4096 else "nearest" if reasoning.effort or reasoning.budget_tokens else ""
    )


def effort(conversation: Conversation) -> Found:
    reasoning = conversation.options.reasoning
    if reasoning is None:
        return ""
    return "yes" if reasoning.effort == "high" else "nearest" if reasoning.effort or reasoning.budget_tokens else ""


def output_kind(kind: str) -> Callable[[Conversation], Found]:
    def probe(conversation: Conversation) -> Found:
        output = conversation.options.output
        if output is None:
            return ""
        return "yes" if output.kind == kind else "nearest" if output.kind == "json" else ""

    return probe


def choosing(mode: str, *names: str) -> Conversation:
    return talk(tools=(READ, LIST), options=Options(tool_choice=ToolChoice(mode, names)))  # type: ignore[arg-type]


def asking(**sampling: object) -> Conversation:
    return talk(options=Options(sampling=Sampling(**sampling)))  # type: ignore[arg-type]


FREE_TEXT = ToolSpec(
    "patch",
    "Applies a patch.",
    type="custom",
    format={"type": "grammar", "syntax": "lark", "definition": "start: WORD"},
)
PARALLEL = talk(
    user(),
    Turn("assistant", (call("toolu_1"), call("toolu_2", path="b"))),
    Turn(
        "user",
        (
            ToolResult("toolu_1", "one", name="read", is_complete=True),
            ToolResult("toolu_2", "two", name="read", is_complete=True),
        ),
    ),
    tools=(READ,),
)
THINKING = Turn("assistant", (Thinking("deep thought", signature="c2ln"), Text("so")))

FEATURES: tuple[Feature, ...] = (
    Feature(
        "system prompt", talk(Turn("system", (Text("be brief"),)), user()), says("be brief", "system", "developer"), ()
    ),
    Feature(
        "several system prompts",
        talk(Turn("system", (Text("one"),)), Turn("system", (Text("two"),)), user()),
        lambda c: (
            "yes" if "one" in texts(c, "system", "developer") and "two" in texts(c, "system", "developer") else ""
        ),
        (),
    ),
    Feature(
        "developer prompt",
        talk(Turn("developer", (Text("be brief"),)), user()),
        says("be brief", "developer", "system"),
        (),
    ),
    Feature(
        "system prompt in the middle",
        talk(user(), Turn("assistant", (Text("ok"),)), user(), Turn("system", (Text("be brief"),)), user(Text("and?"))),
        says("be brief", "system", "developer"),
        (),
    ),
    Feature("text", talk(user(Text("héllo"))), says("héllo", "user"), ()),
    Feature("image", talk(user(Text("see"), Media("image", "image/png", data=PNG))), holds("image"), ("image",)),
    Feature(
        "image by address",
        talk(user(Text("see"), Media("image", url="https://example.org/a.png"))),
        holds("image"),
        ("image",),
    ),
    Feature(
        "document",
        talk(user(Text("see"), Media("document", "application/pdf", data=PDF, name="a.pdf"))),
        holds("document"),
        ("document",),
    ),
    Feature(
        "audio", talk(user(Text("hear"), Media("audio", "audio/wav", data="UklGRg=="))), holds("audio"), ("audio",)
    ),
    Feature(
        "image in a result",
        with_result(result((Text("here"), Media("image", "image/png", data=PNG)))),
        result_holds("image"),
        ("image",),
    ),
    Feature(
        "document in a result",
        with_result(result((Text("here"), Media("document", "application/pdf", data=PDF, name="a.pdf")))),
        result_holds("document"),
        ("document",),
    ),
    Feature("thinking", talk(user(), THINKING, user()), thought, ("thinking",)),
    Feature("signature of thinking", talk(user(), THINKING, user()), signed, ("thinking",)),
    Feature("calls and results", PARALLEL, paired, ()),
    Feature("error flag", with_result(result("no such file", is_error=True)), failed, ()),
    Feature("tool definition", talk(tools=(READ,)), tool_described, ()),
    Feature(
        "strict tool",
        talk(tools=(ToolSpec("read", "Reads.", {**SCHEMA, "additionalProperties": False}, strict=True),)),
        lambda c: "yes" if c.tools and c.tools[0].strict else "",
        ("strict",),
    ),
    Feature("free-text tool", talk(tools=(FREE_TEXT,)), free_text_tool, ("free-text",)),
    Feature(
        "free-text call",
        talk(
            user(),
            Turn("assistant", (ToolCall("call_1", "patch", type="custom", raw_input='a\n"b"\t'),)),
            Turn("tool", (ToolResult("call_1", "done", name="patch", is_complete=True),)),
            tools=(FREE_TEXT,),
        ),
        free_text_call,
        (),
    ),
    Feature("namespace", talk(tools=(ToolSpec("read", "Reads.", SCHEMA, namespace="files"),)), namespaced, ()),
    *(
        Feature(f"tool_choice {mode}", choosing(mode), chose(mode), (mode, "forbid"))
        for mode in ("auto", "none", "required")
    ),
    Feature("tool_choice of one tool", choosing("named", "read"), chose("named"), ("named",)),
    Feature("tool_choice of some tools", choosing("allowed", "read"), chose("allowed"), ("allowed",)),
    Feature(
        "no parallel calls",
        talk(tools=(READ,), options=Options(tool_choice=ToolChoice(parallel=False))),
        serial,
        ("parallel",),
    ),
    Feature("reasoning effort", talk(options=Options(reasoning=Reasoning(effort="high"))), effort, ("effort",)),
    Feature(
        "reasoning budget", talk(options=Options(reasoning=Reasoning("on", budget_tokens=4096))), thinks, ("budget",)
    ),
    Feature("max tokens", asking(max_tokens=777), option(lambda o: o.sampling.max_tokens, 777), ("max_tokens",)),
    Feature("temperature", asking(temperature=0.5), option(lambda o: o.sampling.temperature, 0.5), ("temperature",)),
    Feature("top_p", asking(top_p=0.5), option(lambda o: o.sampling.top_p, 0.5), ("top_p",)),
    Feature("top_k", asking(top_k=5), option(lambda o: o.sampling.top_k, 5), ("top_k",)),
    Feature("seed", asking(seed=5), option(lambda o: o.sampling.seed, 5), ("seed",)),
    Feature(
        "penalties", asking(presence_penalty=0.5), option(lambda o: o.sampling.presence_penalty, 0.5), ("penalty",)
    ),
    Feature("stop sequences", asking(stop=("END",)), option(lambda o: o.sampling.stop, ("END",)), ("stop",)),
    Feature("JSON output", talk(options=Options(output=OutputFormat("json"))), output_kind("json"), ("output",)),
    Feature(
        "JSON schema output",
        talk(options=Options(output=OutputFormat("json_schema", "answer", SCHEMA))),
        output_kind("json_schema"),
        ("output",),
    ),
    Feature("streaming", talk(options=Options(stream=True)), option(lambda o: o.stream, True), ("stream",)),
    Feature("user id", talk(options=Options(user="u1")), option(lambda o: o.user, "u1"), ("user",)),
)


def replied(*blocks: object, **fields: object) -> Reply:
    stop = fields.pop("stop", "stop")
    return Reply(Turn("assistant", blocks), stop, id="id_1", model="m", **fields)  # type: ignore[arg-type]


def stopped(reason: str) -> Callable[[Reply], Found]:
    return lambda reply: "yes" if reply.stop == reason else ""


def used(read: Callable[[Usage], int | None], wanted: int) -> Callable[[Reply], Found]:
    return lambda reply: "yes" if reply.usage is not None and read(reply.usage) == wanted else ""


def refused(reply: Reply) -> Found:
    if any(isinstance(block, Opaque) and block.kind == "refusal" for block in reply.turn.blocks):
        return "yes"
    return "text" if "I cannot" in reply.turn.text else ""


USAGE = Usage(100, 20, 30, None, 5)
REFUSAL = Reply(Turn("assistant", (Text("I cannot help with that."),)), "filter", id="id_1", model="m")

REPLY_FEATURES: tuple[ReplyFeature, ...] = (
    ReplyFeature("text", replied(Text("hi")), lambda r: "yes" if r.turn.text == "hi" else "", ()),
    ReplyFeature(
        "thinking",
        replied(Thinking("deep thought"), Text("hi")),
        lambda r: "yes" if any(isinstance(b, Thinking) and b.text for b in r.turn.blocks) else "",
        ("thinking",),
    ),
    ReplyFeature(
        "calls",
        replied(call("call_1"), call("call_2", path="b"), stop="tool_calls"),
        lambda r: "yes" if [c.arguments for c in r.turn.calls] == [{"path": "a"}, {"path": "b"}] else "",
        (),
    ),
    ReplyFeature("stop: calls", replied(call("call_1"), stop="tool_calls"), stopped("tool_calls"), ()),
    ReplyFeature("stop: length", replied(Text("hi"), stop="length"), stopped("length"), ("stop reason",)),
    ReplyFeature("stop: filter", replied(Text("hi"), stop="filter"), stopped("filter"), ("stop reason",)),
    ReplyFeature("refusal in words", REFUSAL, refused, ()),
    ReplyFeature("input tokens", replied(Text("hi"), usage=USAGE), used(lambda u: u.input_tokens, 100), ("tokens",)),
    ReplyFeature("output tokens", replied(Text("hi"), usage=USAGE), used(lambda u: u.output_tokens, 20), ("tokens",)),
    ReplyFeature(
        "cached tokens", replied(Text("hi"), usage=USAGE), used(lambda u: u.cache_read_tokens, 30), ("tokens",)
    ),
    ReplyFeature(
        "reasoning tokens", replied(Text("hi"), usage=USAGE), used(lambda u: u.reasoning_tokens, 5), ("tokens",)
    ),
)


MARKED = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
HI = [{"role": "user", "content": "hi"}]
WIRE_FEATURES: tuple[WireFeature, ...] = (
    WireFeature(
        "cache markers",
        {
            "anthropic": {
                "model": "claude-sonnet-4-6",
                "max_tokens": 9,
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
                    }
                ],
            },
            "bedrock": {
                "messages": [{"role": "user", "content": [{"text": "hi"}, {"cachePoint": {"type": "default"}}]}]
            },
        },
        ("cache_control", "cachePoint"),
        ("cache_control", "cachePoint"),
    ),
    WireFeature(
        "metadata",
        {
            "openai_chat": {"model": "gpt-5.1", "messages": HI, "metadata": {"key": "value"}},
            "openai_responses": {"model": "gpt-5.2", "input": "hi", "metadata": {"key": "value"}},
            "bedrock": {
                "messages": [{"role": "user", "content": [{"text": "hi"}]}],
                "requestMetadata": {"key": "value"},
            },
        },
        ('"value"',),
        ("metadata", "requestMetadata"),
    ),
)
WIRE_REPLIES: tuple[WireFeature, ...] = (
    WireFeature(
        "citations",
        {
            "anthropic": {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
                "content": [
                    {
                        "type": "text",
                        "text": "hi",
                        "citations": [{"type": "char_location", "cited_text": "proof", "document_index": 0}],
                    }
                ],
            },
            "openai_chat": {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {
                            "role": "assistant",
                            "content": "hi",
                            "annotations": [{"type": "url_citation", "url_citation": {"title": "proof"}}],
                        },
                    }
                ],
            },
        },
        ("proof",),
        ("citations", "annotations"),
        is_reply=True,
    ),
    WireFeature(
        "logprobs",
        {
            "openai_chat": {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": "hi"},
                        "logprobs": {"content": [{"token": "hi", "logprob": -0.125}]},
                    }
                ],
            },
        },
        ("-0.125",),
        ("logprobs",),
        is_reply=True,
    ),
)


# --- cells ------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    cell: Cell
    report: Report | None = None


def request_outcome(feature: Feature, source: str, target: str) -> Outcome:
    """How a feature of a request comes through."""
    (from_, model), (to, other) = PROTOCOLS[source], PROTOCOLS[target]
    written = codec(source).request.encode(feature.conversation)
    body = {**written, "model": model} if source not in ("gemini", "bedrock") else written
    if not feature.probe(codec(source).request.decode(body)):
        return Outcome("–")
    out = convert(body, source=from_, target=to, model=other)
    if feature.name == "streaming" and out.stream and "stream" not in out.body:
        return Outcome("address", out.report)
    return Outcome(feature.probe(codec(target).request.decode(out.body)) or "lost", out.report)


def reply_outcome(feature: ReplyFeature, source: str, target: str) -> Outcome:
    """How a feature of a provider's reply comes through to a client."""
    body = codec(source).reply.encode(feature.reply)
    if not feature.probe(codec(source).reply.decode(body)):
        return Outcome("–")
    out = convert_reply(body, source=PROTOCOLS[source][0], target=PROTOCOLS[target][0])
    return Outcome(feature.probe(codec(target).reply.decode(out.body)) or "lost", out.report)


def wire_outcome(feature: WireFeature, source: str, target: str) -> Outcome:
    """How something comes through that has no canonical form."""
    body = feature.bodies.get(source)
    if body is None:
        return Outcome("–")
    (from_, _), (to, model) = PROTOCOLS[source], PROTOCOLS[target]
    out = (
        convert_reply(body, source=from_, target=to)
        if feature.is_reply
        else convert(body, source=from_, target=to, model=model)
    )
    written = out.data.decode()
    return Outcome("yes" if any(mark in written for mark in feature.marks) else "lost", out.report)


def is_reported(words: tuple[str, ...], report: Report | None) -> bool:
    return report is not None and any(word in str(entry) for entry in report for word in words)
