"""Faults of session files, each made in a minimal file: the table of what agents leave behind.

A fault is a change of the lines, the kind that the doctor gives it, and what must be in the session once it is healed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from support.agent_files.sessions import (
    answer,
    claude_record,
    codex_line,
    codex_output,
    copilot_done,
    gemini_call,
    gemini_message,
    minimal,
    pi_result,
    qwen_record,
)

Lines = list[Any]
"""Objects, or bytes that are written as they are."""


class FileFault(NamedTuple):
    """A fault, and what is left of the calls once it is healed."""

    agent: str
    name: str
    make: Callable[[Lines], Lines]
    kind: str
    results: tuple[str, ...] = ("a.txt", "/x")
    """How the results of the calls begin, in their order."""
    is_asked: bool = False
    """It is fixed only on request."""

    @property
    def id(self) -> str:
        return f"{self.agent}-{self.name}"

    def lines(self) -> Lines:
        return self.make(copy.deepcopy(minimal(self.agent)))


def _data(value: Any) -> bytes:
    return json.dumps(value).encode()


def _set(index: int, *path: Any, to: Any) -> Callable[[Lines], Lines]:
    """The lines with one value replaced."""

    def change(lines: Lines) -> Lines:
        at = lines[index]
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to
        return lines

    return change


def _without(index: int, *path: Any) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        at = lines[index]
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]
        return lines

    return change


def _insert(index: int, *more: Any) -> Callable[[Lines], Lines]:
    return lambda lines: [*lines[:index], *more, *lines[index:]]


def _drop(index: int) -> Callable[[Lines], Lines]:
    return lambda lines: [*lines[:index], *lines[index + 1 :]]


_MISSING: Final = "[No result"
_CONTENT: Final = ("message", "content")
_BIG: Final = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 5_300_000}}


def _reparented(lines: Lines, line: int, to: int | None) -> Lines:
    lines[line]["parentUuid"] = lines[to]["uuid"] if to is not None else None
    return lines


CLAUDE: Final = [
    FileFault("claude_code", "cut-last-line", lambda lines: [*lines[:-1], _data(lines[-1])[:-30]], "cut-line"),
    FileFault("claude_code", "nul-bytes", lambda lines: [*lines, b"\0" * 64 + b"\n"], "broken-line"),
    FileFault(
        "claude_code",
        "two-objects-on-a-line",
        lambda lines: [*lines[:2], _data(lines[2]) + _data(lines[3]) + b"\n", *lines[4:]],
        "broken-line",
    ),
    FileFault("claude_code", "no-line-feed", lambda lines: [*lines[:-1], _data(lines[-1])], "no-line-feed"),
    FileFault(
        "claude_code",
        "lone-surrogate",
        lambda lines: [*lines[:3], _data(lines[3]).replace(b"There is", b"\\ud83d is") + b"\n", *lines[4:]],
        "bad-characters",
    ),
    FileFault(
        "claude_code",
        "not-utf-8",
        lambda lines: [*lines[:3], _data(lines[3]).replace(b"There is", b"\xff\xfe is") + b"\n", *lines[4:]],
        "bad-characters",
    ),
    FileFault("claude_code", "no-timestamp", _without(1, "timestamp"), "no-timestamp"),
    FileFault("claude_code", "no-uuid", lambda lines: _without(3, "uuid")(_reparented(lines, 4, 2)), "no-id"),
    FileFault("claude_code", "no-message-id", _without(1, "message", "id"), "no-message-id"),
    FileFault("claude_code", "dangling-parent", _set(3, "parentUuid", to="gone"), "dangling-parent"),
    FileFault("claude_code", "lost-record", _drop(3), "dangling-parent"),
    FileFault("claude_code", "second-start", _set(4, "parentUuid", to=None), "second-start", is_asked=True),
    FileFault(
        "claude_code",
        "hole-beside-a-branch",
        lambda lines: [
            *lines[:4],
            {**claude_record(9, "user", "other"), "parentUuid": lines[3]["uuid"]},
            {**claude_record(10, "assistant", [{"type": "text", "text": "o"}]), "parentUuid": "gone"},
            *[{**each} for each in lines[4:]],
        ],
        "dangling-parent",
    ),
    FileFault("claude_code", "cycle", lambda lines: _reparented(lines, 0, 3), "cycle"),
    FileFault("claude_code", "same-record-twice", lambda lines: [*lines[:4], lines[3], *lines[4:]], "duplicate-record"),
    FileFault(
        "claude_code",
        "same-uuid-twice",
        lambda lines: _set(3, "uuid", to=lines[1]["uuid"])(_reparented(lines, 4, 1)),
        "duplicate-id",
    ),
    FileFault(
        "claude_code",
        "call-without-result",
        lambda lines: (lines[2]["message"]["content"].pop(), lines)[1],
        "dangling-call",
        ("a.txt", _MISSING),
    ),
    FileFault(
        "claude_code",
        "calls-without-results",
        lambda lines: _drop(2)(_reparented(lines, 3, 1)),
        "dangling-call",
        (_MISSING, _MISSING),
    ),
    FileFault(
        "claude_code",
        "result-far-from-its-call",
        lambda lines: (lines[4]["message"].update(content=[lines[2]["message"]["content"].pop()]), lines)[1],
        "misplaced-result",
    ),
    FileFault(
        "claude_code", "result-without-call", _set(4, *_CONTENT, to=[answer("toolu_9", "lost words")]), "orphan-result"
    ),
    FileFault(
        "claude_code",
        "result-twice",
        lambda lines: (lines[2]["message"]["content"].append(answer("toolu_1", "again")), lines)[1],
        "orphan-result",
    ),
    FileFault(
        "claude_code",
        "same-call-id-twice",
        lambda lines: _set(2, *_CONTENT, 1, "tool_use_id", to="toolu_1")(
            _set(1, *_CONTENT, 2, "id", to="toolu_1")(lines)
        ),
        "repeated-call-id",
    ),
    FileFault(
        "claude_code",
        "id-of-another-provider",
        lambda lines: _set(2, *_CONTENT, 0, "tool_use_id", to="functions.Bash:0")(
            _set(1, *_CONTENT, 1, "id", to="functions.Bash:0")(lines)
        ),
        "illegal-id",
    ),
    FileFault("claude_code", "illegal-name", _set(1, *_CONTENT, 1, "name", to="größe lesen"), "illegal-name"),
    FileFault("claude_code", "arguments-as-text", _set(1, *_CONTENT, 1, "input", to="ls"), "bad-arguments"),
    FileFault(
        "claude_code",
        "unsigned-thinking",
        lambda lines: (lines[1]["message"]["content"].insert(0, {"type": "thinking", "thinking": "hm"}), lines)[1],
        "unsigned-thinking",
    ),
    FileFault(
        "claude_code",
        "only-unsigned-thinking",
        _set(5, *_CONTENT, to=[{"type": "thinking", "thinking": "hm"}]),
        "unsigned-thinking",
    ),
    FileFault("claude_code", "empty-text", _set(3, *_CONTENT, 0, "text", to=""), "empty-text"),
    FileFault(
        "claude_code", "large-image", _set(4, *_CONTENT, to=[{"type": "text", "text": "See"}, _BIG]), "large-image"
    ),
    FileFault(
        "claude_code",
        "large-image-in-a-result",
        _set(2, *_CONTENT, 0, "content", to=[{"type": "text", "text": "a.txt"}, _BIG]),
        "large-image",
    ),
]


def _paginated(lines: Lines) -> Lines:
    numbered = [{**line, "ordinal": number} for number, line in enumerate(lines)]
    numbered[0]["payload"]["history_mode"] = "paginated"
    return numbered


CODEX: Final = [
    FileFault("codex", "cut-last-line", lambda lines: [*lines[:-1], _data(lines[-1])[:-30]], "cut-line"),
    FileFault("codex", "nul-bytes", lambda lines: [*lines, b"\0" * 64 + b"\n"], "broken-line"),
    FileFault("codex", "no-session-meta", _drop(0), "no-header"),
    FileFault("codex", "session-meta-behind", lambda lines: [lines[1], lines[0], *lines[2:]], "no-header"),
    FileFault("codex", "broken-first-line", lambda lines: [_data(lines[0])[:40] + b"\n", *lines[1:]], "no-header"),
    FileFault("codex", "incomplete-session-meta", _without(0, "payload", "cli_version"), "bad-header"),
    FileFault("codex", "another-id", _set(0, "payload", "id", to="99999999-9999-4999-8999-999999999999"), "wrong-id"),
    FileFault("codex", "unknown-history-mode", _set(0, "payload", "history_mode", to="folded"), "unknown-mode"),
    FileFault("codex", "unknown-provider", _set(0, "payload", "model_provider", to="gone"), "unknown-provider"),
    FileFault("codex", "ordinal-missing", lambda lines: _without(4, "ordinal")(_paginated(lines)), "ordinals"),
    FileFault("codex", "ordinal-twice", lambda lines: _set(4, "ordinal", to=3)(_paginated(lines)), "ordinals"),
    FileFault("codex", "ordinal-skipped", lambda lines: _drop(1)(_paginated(lines)), "ordinals"),
    FileFault("codex", "output-without-call", _insert(9, codex_output("call_9", "lost words")), "orphan-result"),
    FileFault(
        "codex",
        "output-before-its-call",
        lambda lines: [*lines[:3], codex_output("call_3", "early"), *lines[3:]],
        "orphan-result",
    ),
    FileFault("codex", "output-twice", _insert(8, codex_output("call_1", "again")), "orphan-result"),
    FileFault(
        "codex",
        "same-call-id-twice",
        lambda lines: _set(7, "payload", "call_id", to="call_1")(_set(5, "payload", "call_id", to="call_1")(lines)),
        "repeated-call-id",
    ),
    FileFault(
        "codex",
        "long-call-id",
        lambda lines: _set(6, "payload", "call_id", to="c" * 80)(_set(4, "payload", "call_id", to="c" * 80)(lines)),
        "illegal-id",
    ),
    FileFault("codex", "illegal-name", _set(4, "payload", "name", to="größe lesen"), "illegal-name"),
    FileFault("codex", "arguments-as-object", _set(4, "payload", "arguments", to={"cmd": "ls"}), "bad-arguments"),
    FileFault(
        "codex",
        "reasoning-without-content",
        _insert(3, codex_line("response_item", {"type": "reasoning", "summary": [], "encrypted_content": None})),
        "unsigned-thinking",
    ),
]


def _named(call: dict[str, Any], name: str) -> dict[str, Any]:
    """A call of Gemini CLI and its result with another name."""
    call["name"] = call["result"][0]["functionResponse"]["name"] = name
    return call


GEMINI: Final = [
    FileFault("gemini_cli", "cut-last-line", lambda lines: [*lines[:-1], _data(lines[-1])[:-30]], "cut-line"),
    FileFault("gemini_cli", "no-header", _drop(0), "no-header"),
    FileFault("gemini_cli", "no-project-hash", _without(0, "projectHash"), "bad-header"),
    FileFault("gemini_cli", "message-without-id", _without(2, "id"), "no-id"),
    FileFault(
        "gemini_cli",
        "call-without-result",
        _set(2, "toolCalls", 1, to=gemini_call("c2", "pwd", None)),
        "dangling-call",
        ("a.txt", _MISSING),
    ),
    FileFault(
        "gemini_cli",
        "no-results",
        _set(2, "toolCalls", to=[gemini_call("c1", "ls", None), gemini_call("c2", "pwd", None)]),
        "dangling-call",
        (_MISSING, _MISSING),
    ),
    FileFault(
        "gemini_cli",
        "call-at-the-end",
        lambda lines: [*lines, gemini_message(7, "gemini", "More.", gemini_call("c7", "ls", None))],
        "dangling-call",
        ("a.txt", "/x", _MISSING),
    ),
    FileFault(
        "gemini_cli",
        "call-in-the-content-only",
        lambda lines: _without(2, "toolCalls")(
            _set(
                2,
                "content",
                to=[{"text": "Look."}, {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {}}}],
            )(lines)
        ),
        "dangling-call",
        (_MISSING,),
    ),
    FileFault(
        "gemini_cli",
        "results-twice",
        _insert(3, {**gemini_message(8, "user", ""), "content": gemini_call("c1")["result"]}),
        "repeated-result",
    ),
    FileFault(
        "gemini_cli",
        "result-without-call",
        _insert(3, {**gemini_message(8, "user", ""), "content": gemini_call("c9", "x", "lost words")["result"]}),
        "orphan-result",
    ),
    FileFault(
        "gemini_cli",
        "illegal-name",
        _set(2, "toolCalls", 0, to=_named(gemini_call("c1"), "größe lesen")),
        "illegal-name",
    ),
    FileFault(
        "gemini_cli",
        "illegal-name-in-the-content",
        lambda lines: [
            *lines[:2],
            {
                **_without(2, "toolCalls")(lines)[2],
                "content": [
                    {"text": "Look."},
                    {"functionCall": {"id": "c1", "name": "größe lesen", "args": {}}},
                    {"functionCall": {"id": "c2", "name": "1ls", "args": {}}},
                ],
            },
            {
                **gemini_message(8, "user", ""),
                "content": [
                    *_named(gemini_call("c1"), "größe lesen")["result"],
                    *_named(gemini_call("c2", "pwd", "/x"), "1ls")["result"],
                ],
            },
            lines[3],
        ],
        "illegal-name",
    ),
    FileFault(
        "gemini_cli",
        "illegal-name-inside-a-replacement",
        lambda lines: [
            lines[0],
            {"$set": {"messages": [lines[1], _set(2, "toolCalls", 0, to=_named(gemini_call("c1"), "a b"))(lines)[2]]}},
            lines[3],
        ],
        "illegal-name",
    ),
    FileFault(
        "gemini_cli",
        "fault-inside-a-replacement",
        lambda lines: [
            lines[0],
            {"$set": {"messages": [lines[1], gemini_message(1, "gemini", "Look.", gemini_call("c1", "ls", None))]}},
            lines[3],
        ],
        "dangling-call",
        (_MISSING,),
    ),
]


def _qwen_parts(lines: Lines, **changed: str) -> Lines:
    """The first call of a session of Qwen Code and its result, with another id or name."""
    lines[1]["message"]["parts"][1]["functionCall"].update(changed)
    lines[2]["message"]["parts"][0]["functionResponse"].update(changed)
    return lines


def _of_openai(lines: Lines) -> Lines:
    """A session of Qwen Code with a model of OpenAI, which refuses more than those of Qwen."""
    return [{**line, "model": "gpt-5.5"} if "model" in line else line for line in lines]


def _large(size: int) -> dict[str, Any]:
    return {"inlineData": {"mimeType": "image/png", "data": "A" * size}}


QWEN: Final = [
    FileFault("qwen_code", "long-id", lambda lines: _qwen_parts(_of_openai(lines), id="c" * 60), "illegal-id"),
    FileFault(
        "qwen_code", "illegal-name", lambda lines: _qwen_parts(_of_openai(lines), name="größe lesen"), "illegal-name"
    ),
    FileFault(
        "qwen_code",
        "large-image",
        lambda lines: (lines[0]["message"]["parts"].append(_large(10_500_000)), lines)[1],
        "large-image",
    ),
    FileFault(
        "qwen_code",
        "large-image-in-a-result",
        _set(2, "message", "parts", 0, "functionResponse", "parts", to=[_large(10_500_000)]),
        "large-image",
    ),
    FileFault("qwen_code", "cut-last-line", lambda lines: [*lines[:-1], _data(lines[-1])[:-30]], "cut-line"),
    FileFault("qwen_code", "dangling-parent", _set(4, "parentUuid", to="gone"), "dangling-parent"),
    FileFault(
        "qwen_code", "lost-record", lambda lines: [*lines, qwen_record(6, "user", {"text": "x"})], "dangling-parent"
    ),
    FileFault("qwen_code", "no-uuid", _without(4, "uuid"), "no-id"),
    FileFault("qwen_code", "no-folder", _without(0, "cwd"), "bad-header"),
    FileFault("qwen_code", "second-start", _set(4, "parentUuid", to=None), "second-start", is_asked=True),
]


def _pi_call(lines: Lines, of: dict[str, str] | None = None, **changed: str) -> Lines:
    """The first call of a session of pi and its result, with another id or name, of another provider."""
    lines[2]["message"]["content"][1].update(changed)
    names = {"id": "toolCallId", "name": "toolName"}
    lines[3]["message"].update({names[field]: text for field, text in changed.items()})
    for line in lines:
        if line.get("message", {}).get("role") == "assistant":
            line["message"].update(of or {})
    return lines


_OPENAI: Final = {"api": "openai-completions", "provider": "openai", "model": "gpt-4.1"}
_PI_IMAGE: Final = {"type": "image", "mimeType": "image/png", "data": "A" * 5_300_000}

PI: Final = [
    FileFault("pi", "illegal-id", lambda lines: _pi_call(lines, id="functions.bash:0"), "illegal-id"),
    FileFault("pi", "long-id", lambda lines: _pi_call(lines, _OPENAI, id="c" * 60), "illegal-id"),
    FileFault("pi", "illegal-name", lambda lines: _pi_call(lines, _OPENAI, name="größe lesen"), "illegal-name"),
    FileFault("pi", "long-name", lambda lines: _pi_call(lines, _OPENAI, name="n" * 65), "illegal-name"),
    FileFault(
        "pi",
        "large-image",
        lambda lines: (lines[1]["message"]["content"].append(_PI_IMAGE), lines)[1],
        "large-image",
    ),
    FileFault(
        "pi",
        "large-image-in-a-result",
        lambda lines: (lines[3]["message"]["content"].append(_PI_IMAGE), lines)[1],
        "large-image",
    ),
    FileFault("pi", "cut-last-line", lambda lines: [*lines[:-1], _data(lines[-1])[:-30]], "cut-line"),
    FileFault("pi", "no-header", _drop(0), "no-header"),
    FileFault("pi", "header-behind", lambda lines: [lines[1], lines[0], *lines[2:]], "no-header"),
    FileFault("pi", "header-without-id", _without(0, "id"), "bad-header"),
    FileFault("pi", "no-usage", _without(2, "message", "usage"), "no-usage"),
    FileFault("pi", "dangling-parent", _set(5, "parentId", to="gone"), "dangling-parent"),
    FileFault("pi", "aborted-answer", _set(2, "message", "stopReason", to="aborted"), "aborted-answer"),
    FileFault(
        "pi", "result-without-call", lambda lines: [*lines, pi_result(5, "toolu_9", "lost words")], "orphan-result"
    ),
    FileFault("pi", "result-twice", lambda lines: [*lines, pi_result(5, "toolu_1", "lost words")], "orphan-result"),
]


def _copilot_call(lines: Lines, model: str = "claude-sonnet-4-5", **changed: str) -> Lines:
    """The first call of a session of Copilot CLI and its events, with another id or name."""
    lines[2]["data"]["toolRequests"][0].update({"toolCallId": changed["id"]} if "id" in changed else changed)
    for line in lines[3:5]:
        line["data"].update({"toolCallId": changed["id"]} if "id" in changed else {})
    if "name" in changed:
        lines[3]["data"]["toolName"] = changed["name"]
    lines[2]["data"]["model"] = model
    return lines


_BLOB: Final = {"type": "blob", "mimeType": "image/png", "displayName": "image", "data": "A" * 5_300_000}

COPILOT: Final = [
    FileFault("copilot_cli", "illegal-id", lambda lines: _copilot_call(lines, id="functions.bash:0"), "illegal-id"),
    FileFault("copilot_cli", "long-id", lambda lines: _copilot_call(lines, "gpt-5.5", id="c" * 60), "illegal-id"),
    FileFault("copilot_cli", "illegal-name", lambda lines: _copilot_call(lines, name="größe lesen"), "illegal-name"),
    FileFault(
        "copilot_cli",
        "large-image",
        lambda lines: _set(1, "data", "attachments", to=[_BLOB])(_copilot_call(lines)),
        "large-image",
    ),
    FileFault("copilot_cli", "cut-last-line", lambda lines: [*lines[:-1], _data(lines[-1])[:-30]], "cut-line"),
    FileFault("copilot_cli", "nul-bytes", lambda lines: [*lines, b"\0" * 64 + b"\n"], "broken-line"),
    FileFault(
        "copilot_cli",
        "nul-bytes-before-an-event",
        lambda lines: [*lines[:-1], b"\0" * 64 + _data(lines[-1]) + b"\n"],
        "broken-line",
    ),
    FileFault("copilot_cli", "no-start", _drop(0), "no-header"),
    FileFault("copilot_cli", "start-without-version", _without(0, "data", "copilotVersion"), "bad-event"),
    FileFault("copilot_cli", "id-that-is-no-uuid", _set(2, "id", to="e2"), "bad-event"),
    FileFault("copilot_cli", "no-parent-field", _without(2, "parentId"), "bad-event"),
    FileFault("copilot_cli", "no-timestamp", _without(2, "timestamp"), "bad-event"),
    FileFault("copilot_cli", "result-as-text", _set(4, "data", "result", to="a.txt"), "bad-event"),
    FileFault("copilot_cli", "call-without-name", _without(2, "data", "toolRequests", 0, "name"), "bad-event"),
    FileFault("copilot_cli", "result-without-success", _without(4, "data", "success"), "bad-event"),
    FileFault("copilot_cli", "no-data", _insert(3, {**copilot_done(9, "x"), "data": None}), "broken-line"),
    FileFault("copilot_cli", "another-id", _set(0, "data", "sessionId", to="other"), "wrong-id"),
    FileFault(
        "copilot_cli",
        "result-without-call",
        lambda lines: [*lines, copilot_done(8, "toolu_9", "lost words")],
        "orphan-result",
    ),
]

FAULTS: Final = [*CLAUDE, *CODEX, *GEMINI, *QWEN, *PI, *COPILOT]

_KIMI_ID: Final = "functions.run_shell_command:0"
_SIGNED_ID: Final = "call_1__thought__" + "A" * 400
_RESPONSES: Final = {"api": "openai-responses", "provider": "openai", "model": "gpt-5.5"}
_KIMI: Final = {"api": "openai-completions", "provider": "moonshotai", "model": "kimi-k3"}


def _gemini_call_id(lines: Lines, id: str) -> Lines:
    lines[2]["toolCalls"][0] = gemini_call(id)
    return lines


ACCEPTED: Final = [
    FileFault("claude_code", "long-name", _set(1, *_CONTENT, 1, "name", to="mcp__server__" + "n" * 90), ""),
    FileFault("gemini_cli", "long-id", lambda lines: _gemini_call_id(lines, f"mcp_{'n' * 60}-1794736800000-1a2b"), ""),
    FileFault("gemini_cli", "id-of-kimi", lambda lines: _gemini_call_id(lines, _KIMI_ID), ""),
    FileFault(
        "gemini_cli",
        "name-with-points",
        _set(2, "toolCalls", 0, to=_named(gemini_call("c1"), "github.mcp:read-file_2")),
        "",
    ),
    FileFault("gemini_cli", "image", lambda lines: (lines[1]["content"].append(_large(10_500_000)), lines)[1], ""),
    FileFault("qwen_code", "id-of-kimi", lambda lines: _qwen_parts(_of_openai(lines), id=_KIMI_ID), ""),
    FileFault("qwen_code", "long-id", lambda lines: _qwen_parts(lines, id=_SIGNED_ID), ""),
    FileFault("qwen_code", "no-ids", lambda lines: _qwen_parts(lines, id=""), ""),
    FileFault(
        "qwen_code", "image", lambda lines: (lines[0]["message"]["parts"].append(_large(10_400_000)), lines)[1], ""
    ),
    FileFault("pi", "id-of-responses", lambda lines: _pi_call(lines, _RESPONSES, id="call_1|fc_" + "a" * 400), ""),
    FileFault("pi", "id-of-kimi", lambda lines: _pi_call(lines, _KIMI, id=_KIMI_ID), ""),
    FileFault("pi", "long-name", lambda lines: _pi_call(lines, name="n" * 100), ""),
    FileFault(
        "pi",
        "image-for-openai",
        lambda lines: (lines[1]["message"]["content"].append(_PI_IMAGE), _pi_call(lines, _OPENAI))[1],
        "",
    ),
    FileFault("copilot_cli", "id-of-kimi", lambda lines: _copilot_call(lines, "gpt-5.5", id=_KIMI_ID), ""),
    FileFault(
        "copilot_cli",
        "image-for-openai",
        lambda lines: _set(1, "data", "attachments", to=[_BLOB])(_copilot_call(lines, "gpt-5.5")),
        "",
    ),
]
"""What is refused by one provider and accepted by that of the session: a healthy file."""
