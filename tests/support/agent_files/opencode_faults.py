"""Faults of sessions of opencode, each made in a small exported session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from support.agent_files.sessions import FOLDER

Document = dict[str, Any]
_SESSION: Final = "ses_0000000000010123456789abcd"
_TIME: Final = 1_794_736_800_000


def _message(number: int, role: str, *parts: dict[str, Any], directory: str) -> Document:
    id = f"msg_{number:012x}0123456789abcd"
    info: dict[str, Any] = {"id": id, "sessionID": _SESSION, "role": role, "time": {"created": _TIME + number}}
    if role == "user":
        info |= {"agent": "build", "model": {"providerID": "anthropic", "modelID": "claude-opus-5"}}
    else:
        tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        info |= {"parentID": f"msg_{number - 1:012x}0123456789abcd", "providerID": "anthropic", "cost": 0}
        info |= {"modelID": "claude-opus-5", "mode": "build", "agent": "build", "tokens": tokens}
        info |= {"path": {"cwd": directory, "root": directory}}
    named = {"sessionID": _SESSION, "messageID": id}
    return {
        "info": info,
        "parts": [
            {"id": f"prt_{number:010x}{index:02x}0123456789abcd", **named, **part} for index, part in enumerate(parts)
        ],
    }


def call(id: str, command: str, output: str) -> dict[str, Any]:
    time = {"start": _TIME, "end": _TIME}
    state = {"status": "completed", "input": {"command": command}, "output": output, "title": "", "metadata": {}}
    return {"type": "tool", "callID": id, "tool": "bash", "state": {**state, "time": time}}


def exported(directory: str = FOLDER) -> Document:
    """A small, sound session with two parallel calls, in the form of `opencode export`."""
    calls = call("toolu_1", "ls", "a.txt"), call("toolu_2", "pwd", "/x")
    info = {"id": _SESSION, "slug": "x", "projectID": "global", "directory": directory, "title": "A title"}
    return {
        "info": {**info, "version": "1.18.33", "time": {"created": _TIME, "updated": _TIME}},
        "messages": [
            _message(1, "user", {"type": "text", "text": "What is here?"}, directory=directory),
            _message(
                2, "assistant", {"type": "step-start"}, {"type": "text", "text": "Look."}, *calls, directory=directory
            ),
            _message(3, "user", {"type": "text", "text": "And now?"}, directory=directory),
            _message(
                4, "assistant", {"type": "step-start"}, {"type": "text", "text": "Nothing more."}, directory=directory
            ),
        ],
    }


class OpencodeFault(NamedTuple):
    """A fault, and the kind that the doctor gives it."""

    name: str
    make: Callable[[Document], Document]
    kind: str


def _set(*path: Any, to: Any) -> Callable[[Document], Document]:
    def change(document: Document) -> Document:
        at: Any = document
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to
        return document

    return change


def _without(*path: Any) -> Callable[[Document], Document]:
    def change(document: Document) -> Document:
        at: Any = document
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]
        return document

    return change


def _insert(*path: Any, value: Any) -> Callable[[Document], Document]:
    def change(document: Document) -> Document:
        at: Any = document
        for step in path[:-1]:
            at = at[step]
        at.insert(path[-1], value)
        return document

    return change


_FIRST: Final = ("messages", 1, "parts", 2)
_BIG: Final = {"type": "file", "mime": "image/png", "url": "data:image/png;base64," + "A" * 5_300_000}

OPENCODE_FAULTS: Final = (
    OpencodeFault("no-row", _set("info", to={}), "no-header"),
    OpencodeFault("row-without-title", _without("info", "title"), "bad-header"),
    OpencodeFault("row-without-time", _without("info", "time"), "bad-header"),
    OpencodeFault("message-without-id", _without("messages", 2, "info", "id"), "no-id"),
    OpencodeFault(
        "same-id-twice",
        lambda document: _set("messages", 2, "info", "id", to=document["messages"][0]["info"]["id"])(document),
        "duplicate-id",
    ),
    OpencodeFault("prompt-without-model", _without("messages", 0, "info", "model"), "bad-message"),
    OpencodeFault("answer-without-tokens", _without("messages", 1, "info", "tokens"), "bad-message"),
    OpencodeFault("answer-without-path", _without("messages", 1, "info", "path"), "bad-message"),
    OpencodeFault("unknown-parent", _set("messages", 3, "info", "parentID", to="msg_gone"), "dangling-parent"),
    OpencodeFault(
        "unknown-role", _insert("messages", 2, value={"info": {"role": "ghost"}, "parts": []}), "broken-line"
    ),
    OpencodeFault("empty-message", _insert("messages", 2, value={"info": {}, "parts": []}), "broken-line"),
    OpencodeFault("unknown-part", _insert("messages", 1, "parts", 2, value={"type": "ghost"}), "broken-part"),
    OpencodeFault("part-without-text", _insert("messages", 1, "parts", 2, value={"type": "text"}), "broken-part"),
    OpencodeFault("call-without-metadata", _without(*_FIRST, "state", "metadata"), "bad-call"),
    OpencodeFault(
        "call-without-state",
        _insert("messages", 3, "parts", 1, value={"type": "tool", "callID": "c", "tool": "bash"}),
        "bad-call",
    ),
    OpencodeFault("id-of-another-provider", _set(*_FIRST, "callID", to="functions.bash:0"), "illegal-id"),
    OpencodeFault("same-call-id-twice", _set(*_FIRST, "callID", to="toolu_2"), "repeated-call-id"),
    OpencodeFault("illegal-name", _set(*_FIRST, "tool", to="größe lesen"), "illegal-name"),
    OpencodeFault("large-image", _insert("messages", 2, "parts", 1, value=_BIG), "large-image"),
    OpencodeFault("lone-surrogate", _set("messages", 1, "parts", 1, "text", to="\ud83d is"), "bad-characters"),
)
