"""Uses every name of `toolglot.__all__` as its users would, for the type checkers: mypy and pyright, strict.

It is never run; `test_types.py` has it checked, and sees to it that no name is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_type

import toolglot
from toolglot import (
    ArgumentsError,
    EmptyConversationError,
    HistoryError,
    InputError,
    JSONError,
    LimitError,
    ModelProtocolError,
    ProfileError,
    ProviderError,
    RefusedError,
    RenderError,
    ServerToolError,
    StoredHistoryError,
    ToolError,
    ToolglotError,
    ToolProtocolError,
    TruncatedArgumentsError,
    TruncatedJSONError,
    UnknownNameError,
    VersionError,
)
from toolglot.runtime import FunctionTool, RunResult, UpstreamModels
from toolglot.simulator import Simulator, upstreams
from toolglot.upstream import AsgiTransport, HttpTransport, Transport

ERRORS: tuple[type[ToolglotError], ...] = (
    *(ArgumentsError, EmptyConversationError, HistoryError, InputError, JSONError, LimitError),
    *(ModelProtocolError, ProfileError),
    *(ProviderError, RefusedError, RenderError, ServerToolError, StoredHistoryError, ToolError, ToolProtocolError),
    *(TruncatedArgumentsError, TruncatedJSONError, UnknownNameError, VersionError),
)

BODY: Mapping[str, Any] = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hello"}]}


@toolglot.tool(idempotent=True)
def read_file(path: str, lines: int = 7) -> str:
    return path * lines


@toolglot.tool
async def write_file(path: str, text: str, context: toolglot.ToolContext) -> int:
    context.progress(path)
    return len(text)


def use_tools() -> None:
    assert_type(read_file("a.txt", lines=2), str)
    assert_type(read_file.name, str)
    defined: toolglot.Tool = read_file
    made: FunctionTool[[int], list[int]] = toolglot.tool(lambda_free)
    assert_type(made(1), list[int])
    toolglot.ToolBox([defined, write_file, made])


def lambda_free(number: int) -> list[int]:
    return [number]


def find_transport(is_simulated: bool) -> Transport:
    return AsgiTransport(Simulator()) if is_simulated else HttpTransport()


async def run_a_session() -> None:
    models = UpstreamModels(upstreams())
    async with toolglot.Session(
        model="anthropic/claude-opus-5", tools=[read_file, write_file], models=models
    ) as session:
        answer = await session.run("Hello")
        assert_type(answer, RunResult)
        assert_type(answer.text, str)
        session.switch("openai/gpt-5.5")
        async for event in session.stream("And?"):
            event_name: str = type(event).__name__
            print(event_name)  # noqa: T201
        assert_type(session.history, toolglot.History)
        assert_type(session.usage, toolglot.Usage)
        assert_type(session.report, toolglot.Report)
    scheduler = toolglot.Scheduler(toolglot.ToolBox([read_file]))
    assert_type(await scheduler.run([toolglot.ToolCall("call_1", "read_file", {})]), tuple[toolglot.ToolResult, ...])
    assert toolglot.runtime.Session is toolglot.Session


def convert_requests() -> None:
    out = toolglot.convert(BODY, source="openai", target="anthropic", model="claude-opus-5")
    assert_type(out, toolglot.ConvertedRequest)
    converted: toolglot.Converted = out
    assert_type(converted.data, bytes)
    back = toolglot.convert_reply(b"{}", source="anthropic", target="openai", request=out)
    assert_type(back, toolglot.ConvertedReply)
    failed = toolglot.convert_error(429, b"{}", source="anthropic", target="openai")
    refused = toolglot.error_for(InputError("no"), target="openai")
    assert_type(refused, toolglot.ConvertedError)
    received = toolglot.read_request(BODY, source="openai")
    assert_type(received, toolglot.ReceivedRequest)
    assert_type(received.for_target("mistral", model="mistral-large-latest"), toolglot.ConvertedRequest)
    assert_type(toolglot.repair(BODY, target="openai"), toolglot.ConvertedRequest)
    assert_type(toolglot.lint(BODY, "openai"), tuple[toolglot.Violation, ...])
    entries: Iterable[toolglot.Entry] = out.report.entries
    print(failed, entries)  # noqa: T201


def build_conversations() -> toolglot.Conversation:
    blocks: list[toolglot.Block] = [
        toolglot.Text("Hello"),
        toolglot.Thinking("Hm"),
        toolglot.Media("image", media_type="image/png", data="AAAA"),
        toolglot.ToolCall("call_1", "read_file", {"path": "a.txt"}, metadata=toolglot.ToolMetadata()),
        toolglot.ToolResult("call_1", "hello"),
        toolglot.ServerTool("anthropic", "call", {}),
        toolglot.Compaction("The user wants …", protocol="anthropic"),
        toolglot.ToolChange(added=(toolglot.ToolReference("read_file"),)),
    ]
    role: toolglot.Role = "user"
    turn = toolglot.Turn(role, tuple(blocks), metadata=toolglot.TurnMetadata())
    spec = toolglot.ToolSpec("read_file", "Reads a file.", {"type": "object"})
    conversation = toolglot.Conversation((turn,), (spec,))
    assert_type(toolglot.load(toolglot.dump(conversation)), toolglot.Conversation)
    history = toolglot.History(conversation, provider="openai", limits=toolglot.Limits())
    ledger: toolglot.Ledger = history.ledger
    pending: tuple[toolglot.Interaction, ...] = ledger.pending
    for interaction in pending:
        status: toolglot.Status = interaction.status
        aside: tuple[toolglot.SetAside, ...] = interaction.set_aside
        print(status, aside)  # noqa: T201
    flight: toolglot.TurnInFlight = history.begin_turn("openai")
    flight.cancel()
    out = toolglot.request_for(history, target="openai", model="gpt-4.1", policy=toolglot.Policy())
    reader = toolglot.StreamReader(source="openai", request=out)
    attempt = toolglot.Attempt(history, provider="openai", model="gpt-4.1")
    attempt.add(reader.feed(b""))
    shown: toolglot.Shown = attempt.shown
    translator = toolglot.StreamTranslator(source="openai", target="anthropic", request=out)
    assert_type(translator.feed(b""), bytes)
    print(shown, toolglot.ToolCallAccumulator("openai"))  # noqa: T201
    return conversation


def read_text() -> None:
    parsed: toolglot.ParsedText = toolglot.parse_text("Hello", tools=[{"name": "ls"}])
    assert_type(parsed.calls[0].name, str)
    stream = toolglot.TextToolStream(tools=[{"name": "ls"}])
    stream.feed("Hello")
    detection: toolglot.Detection = toolglot.detect("Hello")
    print(detection.dialect, toolglot.detect_format("Hello"), toolglot.dialects.names())  # noqa: T201
    toolglot.to_prompt([{"name": "ls"}], build_conversations(), "hermes")
    assert_type(toolglot.write_calls([toolglot.ToolCall("", "ls", {})], "hermes"), str)


def register(dialect: toolglot.Dialect, parser: toolglot.ToolParser) -> None:
    toolglot.register_dialect(dialect)
    toolglot.register_parser("mine", parser)
    found: toolglot.ToolParser | toolglot.ReplyParser = toolglot.get_parser("openai")
    calls = [toolglot.validate_tool_call(call, provider="openai") for call in found.parse({})]
    assert_type(calls[0].name, str)


def use_middleware(step: toolglot.ToolMiddleware) -> None:
    chain = toolglot.MiddlewareChain([step, toolglot.ToolingMiddleware()])
    request = toolglot.Request(model="gpt-4.1", provider_id="openai", messages=[], tools=[])
    chain.process_request(request)
    response = toolglot.Response({}, provider_id="openai", request=request)
    chain.process_response(response)
    assert_type(toolglot.SchemaTranslator().anthropic_to_openai([]), list[dict[str, Any]])


def read_values(
    reply: toolglot.Reply, opaque: toolglot.Opaque, turn: toolglot.Turn, extra: toolglot.Extra
) -> toolglot.Options:
    failure = toolglot.Failure("rate_limit", "slow down")
    kind: toolglot.FailureKind = failure.kind
    issuer: toolglot.Issuer | None = turn.issuer
    known: toolglot.Capabilities = toolglot.get_capabilities("openai")
    toolglot.register_capabilities("acme", known)
    print(kind, issuer, reply, opaque, extra, known)  # noqa: T201
    print(toolglot.profiles.get("openai").name, toolglot.ids.to_openai("toolu_1"))  # noqa: T201
    print(toolglot.arguments.parse("{}").arguments)  # noqa: T201
    return toolglot.Options(
        tool_choice=toolglot.ToolChoice("auto"),
        sampling=toolglot.Sampling(),
        reasoning=toolglot.Reasoning(),
        output=toolglot.OutputFormat("text"),
    )


def use_session_files(path: str) -> None:
    session = toolglot.agent_files.read(path)
    assert_type(session.conversation, toolglot.Conversation)
    written = toolglot.agent_files.write(session.conversation, "codex", source=session.agent, dry_run=True)
    assert_type(written.command, tuple[str, ...])
    for fault in toolglot.agent_files.check(path):
        assert_type(fault.line, int)


def use_clients() -> None:
    with toolglot.client() as http_client:
        print(http_client)  # noqa: T201
    print(toolglot.async_client())  # noqa: T201
