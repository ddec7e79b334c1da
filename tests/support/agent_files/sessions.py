"""A conversation with everything that is hard to carry, and minimal files of each agent, written by hand.

The minimal files are those that the real agents resumed; the tests with agents resume what is made of them here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from toolglot import (
    Compaction,
    Conversation,
    Issuer,
    Media,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    agent_files,
)
from toolglot.agent_files import AgentHome

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SUMMARY: Final = "The user wants the folder listed; two files were written before."
SIGNATURE: Final = "c2lnbmF0dXJlLW9mLWEtbW9kZWwtdGhhdC1pcy1sb25nLWVub3VnaC10by1iZS1vbmU="
IDS: Final = {
    "claude_code": "11111111-1111-4111-8111-111111111111",
    "codex": "22222222-2222-4222-8222-222222222222",
    "gemini_cli": "33333333-3333-4333-8333-333333333333",
    "pi": "44444444-4444-4444-8444-444444444444",
    "qwen_code": "55555555-5555-4555-8555-555555555555",
    "copilot_cli": "77777777-7777-4777-8777-777777777777",
}
"""The ids of the minimal sessions of the agents whose files are checked."""
TIME: Final = "2026-11-15T10:00:00.000Z"
FOLDER: Final = "/home/me/proj"


def full_conversation(
    *, compacted: bool = True, issuer: str = "anthropic", model: str = "claude-opus-5"
) -> Conversation:
    """Parallel calls, an error result, an image, a unicode name, a cancelled call, thinking, and a compaction."""
    made_by = Issuer(issuer, model=model)
    head = [Turn("user", (Compaction(summary=SUMMARY),))] if compacted else []
    return Conversation(
        (
            *head,
            Turn("user", (Text("What is in größe.txt? Grüße, 你好"), Media("image", "image/png", data=PNG))),
            Turn(
                "assistant",
                (
                    Thinking("I look first.", signature=SIGNATURE),
                    Text("I look."),
                    ToolCall("toolu_first", "Bash", {"command": "ls größe.txt"}),
                    ToolCall("functions.Bash:1", "Bash", {"command": "cat größe.txt"}),
                ),
                issuer=made_by,
            ),
            Turn(
                "user",
                (
                    ToolResult("toolu_first", "größe.txt 你好"),
                    ToolResult("functions.Bash:1", "no such file", is_error=True),
                ),
            ),
            Turn(
                "assistant",
                (Text("Once more."), ToolCall("call_x|fc_y", "größe_lesen", {"name": "größe"})),
                issuer=made_by,
            ),
            Turn("user", (Text("Stop, do not do that. What did you find?"),)),
            Turn("assistant", (Text("One file was found."),), issuer=made_by),
        )
    )


def home_in(folder: Path, **environ: str) -> AgentHome:
    return AgentHome(folder=folder, environ=environ)


def write_file(path: Path, records: Iterable[Mapping[str, Any] | bytes]) -> Path:
    """A file of lines: an object, or bytes as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in records]
    path.write_bytes(b"".join(lines))
    return path


# --- minimal files ----------------------------------------------------------------------------------


def claude_record(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message = {"id": f"msg_{number}", "type": "message", "model": "claude-opus-5", **message}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    return {
        "type": kind,
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number else None,
        "timestamp": f"2026-11-15T10:00:{number:02}.000Z",
        "sessionId": IDS["claude_code"],
        "cwd": FOLDER,
        "version": "2.1.325",
        "isSidechain": False,
        "userType": "external",
        "message": message,
        **more,
    }


def use(id: str, command: str = "ls") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}


def answer(id: str, content: str = "a.txt") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def claude_records() -> list[dict[str, Any]]:
    return [
        claude_record(0, "user", "What is here?"),
        claude_record(1, "assistant", [{"type": "text", "text": "Look."}, use("toolu_1"), use("toolu_2", "pwd")]),
        claude_record(2, "user", [answer("toolu_1"), answer("toolu_2", "/x")]),
        claude_record(3, "assistant", [{"type": "text", "text": "There is a.txt."}]),
        claude_record(4, "user", "And now?"),
        claude_record(5, "assistant", [{"type": "text", "text": "Nothing more."}]),
    ]


def codex_line(kind: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload, **more}


def codex_message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_line("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})


def codex_call(id: str, command: str = "ls") -> dict[str, Any]:
    arguments = json.dumps({"cmd": command})
    return codex_line(
        "response_item", {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": id}
    )


def codex_output(id: str, output: str = "a.txt") -> dict[str, Any]:
    return codex_line("response_item", {"type": "function_call_output", "call_id": id, "output": output})


def codex_meta(**more: Any) -> dict[str, Any]:
    meta = {"id": IDS["codex"], "timestamp": TIME, "cwd": FOLDER, "originator": "codex_exec", "cli_version": "0.166.0"}
    return codex_line("session_meta", {**meta, "source": "cli", **more})


def codex_lines() -> list[dict[str, Any]]:
    return [
        codex_meta(),
        codex_line("event_msg", {"type": "user_message", "message": "What is here?"}),
        codex_message("user", "What is here?"),
        codex_message("assistant", "Look."),
        codex_call("call_1"),
        codex_call("call_2", "pwd"),
        codex_output("call_1"),
        codex_output("call_2", "/x"),
        codex_message("assistant", "There is a.txt."),
    ]


def gemini_call(id: str, command: str = "ls", output: str | None = "a.txt") -> dict[str, Any]:
    call: dict[str, Any] = {"id": id, "name": "run_shell_command", "args": {"command": command}}
    if output is None:
        return {**call, "status": "cancelled", "timestamp": TIME}
    response = {"id": id, "name": "run_shell_command", "response": {"output": output}}
    return {**call, "status": "success", "timestamp": TIME, "result": [{"functionResponse": response}]}


def gemini_header() -> dict[str, Any]:
    return {
        "sessionId": IDS["gemini_cli"],
        "projectHash": "0" * 64,
        "startTime": TIME,
        "lastUpdated": TIME,
        "kind": "main",
    }


def gemini_message(number: int, kind: str, text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    more = {"model": "gemini-2.5-flash"} if kind == "gemini" else {}
    message = {"id": f"m{number}", "timestamp": TIME, "type": kind, "content": [{"text": text}], **more}
    return {**message, "toolCalls": list(calls)} if calls else message


def gemini_lines() -> list[dict[str, Any]]:
    return [
        gemini_header(),
        gemini_message(0, "user", "What is here?"),
        gemini_message(1, "gemini", "Look.", gemini_call("c1"), gemini_call("c2", "pwd", "/x")),
        gemini_message(2, "gemini", "There is a.txt."),
    ]


def qwen_record(number: int, kind: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    role = "model" if kind == "assistant" else "user"
    return {
        "uuid": f"q{number}",
        "parentUuid": f"q{number - 1}" if number else None,
        "sessionId": IDS["qwen_code"],
        "timestamp": TIME,
        "type": kind,
        "cwd": FOLDER,
        "version": "0.15.10",
        "message": {"role": role, "parts": list(parts)},
        **more,
    }


def qwen_use(id: str, command: str = "ls") -> dict[str, Any]:
    return {"functionCall": {"id": id, "name": "run_shell_command", "args": {"command": command}}}


def qwen_answer(id: str, output: str = "a.txt") -> dict[str, Any]:
    return {"functionResponse": {"id": id, "name": "run_shell_command", "response": {"output": output}}}


def qwen_records() -> list[dict[str, Any]]:
    return [
        qwen_record(0, "user", {"text": "What is here?"}),
        qwen_record(1, "assistant", {"text": "Look."}, qwen_use("c1"), qwen_use("c2", "pwd"), model="qwen3"),
        qwen_record(2, "tool_result", qwen_answer("c1")),
        qwen_record(3, "tool_result", qwen_answer("c2", "/x")),
        qwen_record(4, "assistant", {"text": "There is a.txt."}, model="qwen3"),
    ]


def pi_entry(number: int, role: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": list(content), "timestamp": 1794736800000}
    if role == "assistant":
        cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
        usage = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": cost}
        message |= {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-5"}
        message |= {"usage": usage, "stopReason": "toolUse"}
    message |= more
    parent = f"aaaa{number - 1:04}" if number else None
    return {"type": "message", "id": f"aaaa{number:04}", "parentId": parent, "timestamp": TIME, "message": message}


def pi_use(id: str, command: str = "ls") -> dict[str, Any]:
    return {"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": command}}


def pi_result(number: int, id: str, text: str = "a.txt") -> dict[str, Any]:
    words = {"type": "text", "text": text}
    return pi_entry(number, "toolResult", words, toolCallId=id, toolName="bash", isError=False)


def pi_lines() -> list[dict[str, Any]]:
    return [
        {"type": "session", "version": 3, "id": IDS["pi"], "timestamp": TIME, "cwd": "/"},
        pi_entry(0, "user", {"type": "text", "text": "What is here?"}),
        pi_entry(1, "assistant", {"type": "text", "text": "Look."}, pi_use("toolu_1"), pi_use("toolu_2", "pwd")),
        pi_result(2, "toolu_1"),
        pi_result(3, "toolu_2", "/x"),
        pi_entry(4, "assistant", {"type": "text", "text": "There is a.txt."}, stopReason="stop"),
    ]


def copilot_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def copilot_event(number: int, kind: str, **data: Any) -> dict[str, Any]:
    parent = copilot_id(number - 1) if number else None
    return {"type": kind, "data": data, "id": copilot_id(number), "timestamp": TIME, "parentId": parent}


def copilot_done(number: int, id: str, text: str = "a.txt") -> dict[str, Any]:
    return copilot_event(number, "tool.execution_complete", toolCallId=id, success=True, result={"content": text})


def copilot_events() -> list[dict[str, Any]]:
    uses = [
        {"toolCallId": id, "name": "bash", "arguments": {"command": command}, "type": "function"}
        for id, command in (("toolu_1", "ls"), ("toolu_2", "pwd"))
    ]
    start = {"sessionId": IDS["copilot_cli"], "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.102"}
    return [
        copilot_event(0, "session.start", **start, startTime=TIME, context={"cwd": FOLDER}),
        copilot_event(1, "user.message", content="What is here?", transformedContent="What is here?"),
        copilot_event(2, "assistant.message", messageId="m1", content="Look.", toolRequests=uses),
        copilot_event(3, "tool.execution_start", toolCallId="toolu_1", toolName="bash", arguments={"command": "ls"}),
        copilot_done(4, "toolu_1"),
        copilot_event(5, "tool.execution_start", toolCallId="toolu_2", toolName="bash", arguments={"command": "pwd"}),
        copilot_done(6, "toolu_2", "/x"),
        copilot_event(7, "assistant.message", messageId="m2", content="There is a.txt.", toolRequests=[]),
    ]


def minimal(agent: str) -> list[dict[str, Any]]:
    """The lines of a small, sound session with two parallel calls."""
    made = {
        "claude_code": claude_records,
        "codex": codex_lines,
        "gemini_cli": gemini_lines,
        "qwen_code": qwen_records,
        "pi": pi_lines,
        "copilot_cli": copilot_events,
    }
    return made[agent]()


def place(agent: str, home: AgentHome, directory: str = FOLDER) -> Path:
    """Where the minimal file of an agent belongs."""
    empty = Conversation((Turn("user", (Text("x"),)),))
    made = agent_files.write(empty, agent, home=home, directory=directory, id=IDS[agent], now=1794736800, dry_run=True)
    return made.path


# --- what a conversation says ----------------------------------------------------------------------


def calls_of(conversation: Conversation) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for turn in conversation.turns for call in turn.calls]


def results_by_call(conversation: Conversation) -> list[tuple[Any, str]]:
    """For each call its arguments, and the words of its result."""
    results = {result.call_id: result for turn in conversation.turns for result in turn.results}
    return [
        (call.arguments, results[call.id].text if call.id in results else "-")
        for turn in conversation.turns
        for call in turn.calls
    ]


def texts_of(conversation: Conversation) -> str:
    return "\n".join(block.text for turn in conversation.turns for block in turn.blocks if isinstance(block, Text))
