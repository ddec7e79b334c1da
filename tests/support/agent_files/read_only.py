"""Small sessions of the agents whose files are only read, in each form that they have.

Each has a prompt with a unicode name and an image, parallel calls of which one failed, and an answer.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from support.agent_files.sessions import FOLDER, PNG, TIME

PROMPT: Final = "What is in größe.txt? 你好"
RESULTS: Final = ["a größe.txt", "no such file"]
ARGUMENTS: Final = [{"command": "ls"}, {"command": "cat größe.txt"}]


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


# --- Cline ------------------------------------------------------------------------------------------


def _cline_messages(image: dict[str, Any], *, tags: bool) -> list[dict[str, Any]]:
    prompt = f"<task>\n{PROMPT}\n</task>" if tags else PROMPT
    note = {"type": "text", "text": "<environment_details>\nmain\n</environment_details>"}
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": "execute_command", "input": arguments}
        for number, arguments in enumerate(ARGUMENTS)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_0", "content": [{"type": "text", "text": RESULTS[0]}]},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": RESULTS[1], "is_error": True},
    ]
    return [
        {"role": "user", "content": [{"type": "text", "text": prompt}, image, note], "ts": 1},
        {"role": "assistant", "content": [{"type": "text", "text": "Look."}, *calls], "ts": 2},
        {"role": "user", "content": [*results, note], "ts": 3},
        {"role": "assistant", "content": "One file.", "ts": 4, "modelInfo": {"id": "claude-opus-5"}},
    ]


def cline_task(home: Path) -> Path:
    storage = home / ".config" / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev"
    write_json(
        storage / "state" / "taskHistory.json",
        [{"id": "1762", "ts": 1_794_736_800_000, "task": PROMPT, "cwdOnTaskInitialization": FOLDER}],
    )
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    messages = _cline_messages({"type": "image", "source": source}, tags=True)
    return write_json(storage / "tasks" / "1762" / "api_conversation_history.json", messages)


def cline_session(home: Path) -> Path:
    folder = home / ".cline" / "data" / "sessions" / "1762"
    about = {"version": 1, "session_id": "1762", "provider": "anthropic", "model": "claude-opus-5", "cwd": FOLDER}
    write_json(folder / "1762.json", {**about, "metadata": {"title": PROMPT}})
    messages = _cline_messages({"type": "image", "data": PNG, "mediaType": "image/png"}, tags=False)
    return write_json(folder / "1762.messages.json", {"version": 1, "messages": messages})


# --- Continue ---------------------------------------------------------------------------------------


def continue_session(home: Path) -> Path:
    def state(number: int, status: str) -> dict[str, Any]:
        function = {"name": "run_terminal_command", "arguments": json.dumps(ARGUMENTS[number])}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        output = [{"name": "Terminal", "description": "", "content": RESULTS[number]}]
        about = {"toolCallId": f"call_{number}", "toolCall": call, "parsedArgs": ARGUMENTS[number]}
        return {**about, "status": status, "output": output}

    states = [state(0, "done"), state(1, "errored")]
    image = {"type": "imageUrl", "imageUrl": {"url": f"data:image/png;base64,{PNG}"}}
    answer = {"role": "assistant", "content": "Look.", "toolCalls": [each["toolCall"] for each in states]}
    history = [
        {"message": {"role": "user", "content": [{"type": "text", "text": PROMPT}, image]}, "contextItems": []},
        {"message": answer, "contextItems": [], "toolCallStates": states},
        {"message": {"role": "assistant", "content": "One file."}, "contextItems": []},
    ]
    about = {"sessionId": "1762", "title": PROMPT, "workspaceDirectory": FOLDER}
    return write_json(home / ".continue" / "sessions" / "1762.json", {**about, "history": history})


# --- Goose ------------------------------------------------------------------------------------------


def goose_messages() -> list[dict[str, Any]]:
    calls = [
        {
            "type": "toolRequest",
            "id": f"call_{number}",
            "toolCall": {"status": "success", "value": {"name": "developer__shell", "arguments": arguments}},
        }
        for number, arguments in enumerate(ARGUMENTS)
    ]
    good = {"status": "success", "value": {"content": [{"type": "text", "text": RESULTS[0]}], "isError": False}}
    results = [
        {"type": "toolResponse", "id": "call_0", "toolResult": good},
        {"type": "toolResponse", "id": "call_1", "toolResult": {"status": "error", "error": RESULTS[1]}},
    ]
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    seen = {"userVisible": True, "agentVisible": True}
    contents: list[tuple[str, list[dict[str, Any]]]] = [
        ("user", [{"type": "text", "text": PROMPT}, image]),
        ("assistant", [{"type": "text", "text": "Look."}, *calls]),
        ("user", results),
        ("assistant", [{"type": "text", "text": "One file."}]),
    ]
    return [
        {"role": role, "created": 1_794_736_800 + number, "content": content, "metadata": seen}
        for number, (role, content) in enumerate(contents)
    ]


def goose_database(home: Path) -> Path:
    database = home / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    database.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, created_at TIMESTAMP,"
            " updated_at TIMESTAMP, model_config_json TEXT);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT,"
            " content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);"
        )
        row = ("1762", PROMPT, FOLDER, TIME, TIME, '{"model_name": "claude-opus-5"}')
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.executemany(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json)"
            " VALUES ('1762', ?, ?, ?, ?)",
            [
                (each["role"], json.dumps(each["content"]), each["created"], json.dumps(each["metadata"]))
                for each in goose_messages()
            ],
        )
        connection.commit()
    return database.with_name("sessions.db#1762")


def goose_export(home: Path) -> Path:
    about = {"id": "1762", "name": PROMPT, "working_dir": FOLDER, "extension_data": {}}
    return write_json(home / "exported.json", {**about, "conversation": goose_messages()})


def goose_lines(home: Path) -> Path:
    path = home / ".local" / "share" / "goose" / "sessions" / "1762.jsonl"
    path.parent.mkdir(parents=True)
    about = {"working_dir": FOLDER, "description": PROMPT, "message_count": 4}
    path.write_text("\n".join(json.dumps(each) for each in [about, *goose_messages()]) + "\n", encoding="utf-8")
    return path


# --- llxprt -----------------------------------------------------------------------------------------


def llxprt_session(home: Path) -> Path:
    calls = [
        {"type": "tool_call", "id": f"hist_tool_{number}", "name": "run_shell_command", "parameters": arguments}
        for number, arguments in enumerate(ARGUMENTS)
    ]
    results: list[dict[str, Any]] = [
        {"type": "tool_response", "callId": f"hist_tool_{number}", "toolName": "run_shell_command", "result": text}
        for number, text in enumerate(RESULTS)
    ]
    results[1] |= {"result": None, "error": RESULTS[1]}
    image = {"type": "media", "mimeType": "image/png", "data": PNG, "encoding": "base64"}
    said: list[tuple[str, list[dict[str, Any]]]] = [
        ("human", [{"type": "text", "text": PROMPT}, image]),
        ("ai", [{"type": "text", "text": "Look."}, *calls]),
        ("tool", results),
        ("ai", [{"type": "text", "text": "One file."}]),
    ]
    start = {"sessionId": "1762", "projectHash": "x", "workspaceDirs": [FOLDER], "provider": "anthropic"}
    events: list[tuple[str, dict[str, Any]]] = [
        ("session_start", {**start, "model": "claude-opus-5", "startTime": TIME}),
        *(("content", {"content": {"speaker": speaker, "blocks": blocks}}) for speaker, blocks in said),
    ]
    lines = [
        {"v": 1, "seq": number, "ts": TIME, "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(events, 1)
    ]
    path = home / ".llxprt" / "tmp" / "abc" / "chats" / "session-2026-11-15-1762.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


# --- aider ------------------------------------------------------------------------------------------

AIDER: Final = f"""
# aider chat started at 2026-11-15 10:00:00

> Aider v0.90.0
> Main model: claude-opus-5 with diff edit format

#### {PROMPT}

Look.

a.py
```
x = 1
```

> Applied edit to a.py

# aider chat started at 2026-11-16 10:00:00

#### And now?
#### In two lines.

Nothing more.
"""


def aider_history(home: Path) -> Path:
    path = home / ".aider.chat.history.md"
    path.write_text(AIDER, encoding="utf-8")
    return path


FORMS: Final[dict[str, tuple[str, Callable[[Path], Path]]]] = {
    "cline, of an editor": ("cline", cline_task),
    "cline, of the command line": ("cline", cline_session),
    "continue": ("continue_dev", continue_session),
    "goose, the database": ("goose", goose_database),
    "goose, an export": ("goose", goose_export),
    "goose, before the database": ("goose", goose_lines),
    "llxprt": ("llxprt", llxprt_session),
    "aider": ("aider", aider_history),
}
"""What each form is called, whose it is, and how it is made in a home folder."""
