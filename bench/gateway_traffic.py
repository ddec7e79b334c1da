"""The traffic of the gateway bench: an agent's Messages request of 7 kB with 8 tools, and Chat responses to it.

Law: the same bytes every time. Through every server, the client should read the same text and the same tool call.
"""

from __future__ import annotations

import json
from typing import Any, Final

MODEL: Final = "claude-sonnet-4-5"
SLOW_MODEL: Final = "claude-slow"
SLOWER_MODEL: Final = "claude-slower"
EVENTS: Final = 200
SECONDS_AN_EVENT: Final = 0.1
SECONDS_A_SLOWER_EVENT: Final = 0.5

Fields = dict[str, Any]

_TOOLS: Final[dict[str, tuple[str, Fields, list[str]]]] = {
    "read_file": (
        (
            "Reads a file and gives it back with a number before every line. A path is given from the root of the "
            "project; a line of more than 2,000 characters is cut. An empty answer means an empty file, not a mistake."
        ),
        {"path": {"type": "string"}, "offset": {"type": "integer", "minimum": 0}, "limit": {"type": "integer"}},
        ["path"],
    ),
    "write_file": (
        (
            "Writes a file, and replaces the one that was there. Read a file before you replace it; prefer a change of "
            "a file that exists to a new one, and write no documentation that nobody has asked for."
        ),
        {"path": {"type": "string"}, "text": {"type": "string", "description": "All of the new file."}},
        ["path", "text"],
    ),
    "edit_file": (
        (
            "Replaces a text in a file by another one. The old text has to stand in it once and only once, with its "
            "blanks and line ends, unless every place is meant."
        ),
        {
            "path": {"type": "string"},
            "old": {"type": "string"},
            "new": {"type": "string"},
            "everywhere": {"type": "boolean", "default": False},
        },
        ["path", "old", "new"],
    ),
    "run_command": (
        (
            "Runs a command in a shell and gives back what it wrote, at most 30,000 characters of it. Quote paths with "
            "blanks in them. Commands that take more than two minutes belong into the background."
        ),
        {
            "command": {"type": "string"},
            "seconds": {"type": "number", "maximum": 600},
            "says": {"type": "string", "description": "In five to ten words, what the command does."},
        },
        ["command"],
    ),
    "search_text": (
        "Looks for a regular expression in the files of the project, and tells the places, the latest file first.",
        {
            "pattern": {"type": "string"},
            "folder": {"type": "string"},
            "files": {"type": "string", "description": "A pattern of names, such as *.py."},
            "shape": {"type": "string", "enum": ["lines", "files", "counts"]},
        },
        ["pattern"],
    ),
    "list_files": (
        "Lists the files that fit a pattern such as src/**/*.py, at most a hundred of them.",
        {"pattern": {"type": "string"}, "folder": {"type": "string"}},
        ["pattern"],
    ),
    "plan_steps": (
        "Keeps the list of steps that the user sees. One step is under way at a time; it is done when its tests pass.",
        {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string"},
                        "state": {"type": "string", "enum": ["open", "under_way", "done"]},
                    },
                    "required": ["title", "state"],
                },
            }
        },
        ["steps"],
    ),
    "fetch_page": (
        "Fetches a page and answers a question about it. An address that leads to another host is told, not followed.",
        {"address": {"type": "string", "format": "uri"}, "question": {"type": "string"}},
        ["address", "question"],
    ),
}

_SYSTEM: Final = (
    "You are an agent that works on code from a terminal. Answer in as few words as the question needs. Follow the "
    "manner of the code around you: its names, its libraries, its way to handle an error. Never take it for granted "
    "that a library is there; look for it in the manifest first. Mention a place in the code as path:line. Do what was "
    "asked, nothing more and nothing less. Run the linter and the type checker of the project after a change. Commit "
    "only when you are told to. When the same approach failed twice, stop, write down what you know, and think of "
    "another one."
)

_FILE: Final = "\n".join(
    f"{number}\t    total_{number} = settle(ledger, account={number}, rate=Decimal('0.{number:02}'))  # «{number}»"
    for number in range(1, 33)
)


def _tool(name: str) -> Fields:
    says, properties, required = _TOOLS[name]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": says, "input_schema": schema}


def _messages() -> list[Fields]:
    path = {"path": "src/ledger/settlement.py"}
    return [
        {"role": "user", "content": "Why does the settlement of last month differ by one cent? Find out and fix it."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I'll look at how the settlement is rounded."},
                {"type": "tool_use", "id": "toolu_01A9vXq7Lk2mNpRs", "name": "read_file", "input": path},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_01A9vXq7Lk2mNpRs", "content": _FILE}],
        },
    ]


def request(*, stream: bool, model: str = MODEL) -> bytes:
    """The request of the agent."""
    body = {
        "model": model,
        "max_tokens": 8192,
        "stream": stream,
        "system": [{"type": "text", "text": _SYSTEM, "cache_control": {"type": "ephemeral"}}],
        "tools": [_tool(name) for name in _TOOLS],
        "messages": _messages(),
    }
    return _encode(body)


SESSION: Final = b"session-000000"
"""The name of the session in the requests of `session`; each client writes its own, of the same length."""
TURNS: Final = 8


def session(size: int) -> list[bytes]:
    """Consecutive requests of a session whose history has about so many bytes: each has two messages more."""
    messages = _messages()
    messages[0]["content"] = f"{SESSION.decode()}: {messages[0]['content']}"
    made: list[bytes] = []
    while len(made) < TURNS:
        body = {**json.loads(request(stream=False)), "messages": messages}
        data = _encode(body)
        missing = (size - len(data)) // (len(_FILE) + 300)
        if missing <= 0:
            made.append(data)
        for _ in range(max(1, missing)):
            messages += _exchange(len(messages))
    return made


def _exchange(number: int) -> list[Fields]:
    """A call and its result."""
    id, path = f"toolu_{number:016}", f"src/ledger/part_{number}.py"
    call = {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": path}}
    text = {"type": "text", "text": f"I'll look at {path} too."}
    result = {"type": "tool_result", "tool_use_id": id, "content": _FILE.replace("account", f"account_{number}", 1)}
    return [{"role": "assistant", "content": [text, call]}, {"role": "user", "content": [result]}]


def question() -> bytes:
    """A short request whose response is a slow stream."""
    message = {"role": "user", "content": "Why does the settlement of last month differ by one cent?"}
    return _encode({"model": SLOW_MODEL, "max_tokens": 8192, "stream": True, "messages": [message]})


# --- responses --------------------------------------------------------------------------------------

_HEAD: Final = {"id": "chatcmpl-Bx1Fq0aZ", "created": 1763000000, "model": "gpt-4.1-2025-04-14"}
_USAGE: Final = {"prompt_tokens": 1874, "completion_tokens": 212, "total_tokens": 2086}
_CALL: Final = "call_Yq1kP0zR8sTqW3nB"
_WORDS: Final = ("The", " quick", " brown", " fox", " jumps", " over", " the", ' "lazy"', " dog", ".\n")


def reply() -> bytes:
    """A Chat reply with text and a tool call."""
    arguments = json.dumps({"path": "src/ledger/settlement.py", "old": "ROUND_DOWN", "new": "ROUND_HALF_EVEN"})
    call = {"id": _CALL, "type": "function", "function": {"name": "edit_file", "arguments": arguments}}
    message = {"role": "assistant", "content": "Each account is rounded down.", "tool_calls": [call], "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    return _encode({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE})


def events() -> list[bytes]:
    """The same as a stream of `EVENTS` events: text, then a call in small pieces, then usage."""
    half = EVENTS // 2 - 2
    text = [chunk(content=_WORDS[number % len(_WORDS)]) for number in range(half)]
    first = {"index": 0, "id": _CALL, "type": "function", "function": {"name": "write_file", "arguments": ""}}
    pieces = ['{"path":"a.py","text":"', *["x = 1"] * (EVENTS - half - 7), '"}']
    called = [chunk(tool_calls=[{"index": 0, "function": {"arguments": piece}}]) for piece in pieces]
    end = [chunk("tool_calls"), _event({**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})]
    made = [chunk(role="assistant", content=""), *text, chunk(tool_calls=[first]), *called, *end, b"data: [DONE]\n\n"]
    assert len(made) == EVENTS
    return made


def chunk(finish: str | None = None, /, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _event({**_HEAD, "object": "chat.completion.chunk", "service_tier": "default", "choices": [choice]})


def _event(body: Fields) -> bytes:
    return b"data: " + _encode(body) + b"\n\n"


def _encode(body: Fields) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def census(data: bytes) -> Fields:
    """What a Messages reply contains, which should be the same through every server."""
    body = json.loads(data)
    calls = [block for block in body["content"] if block["type"] == "tool_use"]
    text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
    return {"text": text, "calls": [(call["name"], call["input"]) for call in calls], "stop": body["stop_reason"]}
