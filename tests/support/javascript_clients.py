"""Clients in JavaScript that read what toolglot writes."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from toolglot.conversation import (
    StopReason,
    ToolCall,
)

FOLDER: Final = Path(__file__).parents[1] / "javascript"


OLDEST_NODE: Final = 20


class Reader(NamedTuple):
    """A JavaScript SDK: what it reads, and in which words it says why a reply ended."""

    protocol: str
    stops: dict[StopReason, str]
    shows_thinking: bool = True


VERCEL: Final[dict[StopReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "length": "length",
    "filter": "content-filter",
}


ANTHROPIC: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "filter": "refusal",
}


CHAT: Final[dict[StopReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "filter": "content_filter",
}


RESPONSES: Final[dict[StopReason, str]] = {
    "stop": "completed",
    "tool_calls": "completed",
    "length": "max_output_tokens",
    "filter": "content_filter",
}


GEMINI: Final[dict[StopReason, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "filter": "SAFETY",
}


READERS: Final = {
    "ai/anthropic": Reader("anthropic", VERCEL),
    "ai/openai.chat": Reader("openai_chat", VERCEL, shows_thinking=False),
    "ai/openai.responses": Reader("openai_responses", VERCEL),
    "ai/google": Reader("gemini", VERCEL),
    "anthropic": Reader("anthropic", ANTHROPIC),
    "openai/chat": Reader("openai_chat", CHAT),
    "openai/responses": Reader("openai_responses", RESPONSES),
    "google/genai": Reader("gemini", GEMINI),
}


CUSTOM_READERS: Final = {
    "openai/chat.chunks": Reader("openai_chat", CHAT),
    "ai/openai.responses": READERS["ai/openai.responses"],
    "openai/responses": READERS["openai/responses"],
}
"""Those that know free-text calls. The helpers of both chat SDKs refuse a stream that has one: its chunks are read."""


def call(name: str, arguments: dict[str, Any], id: str = "call_0a1b2c3d4e5f") -> ToolCall:
    return ToolCall(id, name, arguments)


class JavaScript:
    """The Node process that holds the SDKs. One question at a time."""

    def __init__(self, process: subprocess.Popen[bytes], complaints: Path) -> None:
        self._process = process
        self._complaints = complaints

    def read(
        self, reader: str, body: bytes, calls: Iterable[ToolCall] = (), cuts: Sequence[int] = ()
    ) -> dict[str, Any]:
        """What an SDK makes of a stream whose tools are those that the calls name."""
        named = {call.name: call.type for call in calls}
        question = {
            "reader": reader,
            "body": base64.b64encode(body).decode(),
            "cuts": list(cuts),
            "tools": [name for name, kind in named.items() if kind != "custom" or reader not in CUSTOM_READERS],
            "custom": [name for name, kind in named.items() if kind == "custom" and reader in CUSTOM_READERS],
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._complaints.read_text("utf-8")
        got: dict[str, Any] = json.loads(answer)
        return got


def why_not() -> str | None:
    """Why the SDKs cannot be called here."""
    node = shutil.which("node")
    if node is None:
        return "node is not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST_NODE:
        return f"node is older than {OLDEST_NODE}: {version.strip()}"
    if not (FOLDER / "node_modules" / ".package-lock.json").exists():
        return "the SDKs are not installed: run `npm ci` in tests/javascript"
    return None


@pytest.fixture(scope="session")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaScript]:
    missing = why_not()
    if missing is not None:
        pytest.skip(missing)
    node = shutil.which("node")
    assert node is not None
    complaints = tmp_path_factory.mktemp("javascript") / "stderr.txt"
    # No variable of the environment, such as a base URL or a key, reaches the SDKs.
    with (
        complaints.open("wb") as stderr,
        subprocess.Popen(
            [node, "read_stream.mjs"],
            cwd=FOLDER,
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        yield JavaScript(process, complaints)
