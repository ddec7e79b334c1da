"""Running the command line: in this process, where it is quick, or as a real command."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from toolglot.cli.main import main


class Ended(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """Runs commands in this process, in a directory of their own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        monkeypatch.chdir(folder)

    def __call__(self, *words: str, stdin: bytes | None = None) -> Ended:
        if stdin is not None:
            self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capsys.readouterr()
        code = main(words)
        return Ended(code, *self.capsys.readouterr())

    def write(self, name: str, content: Any, *, indent: int | None = 2) -> str:
        """A file of this content: bytes and texts as they are, lists as JSONL, objects as JSON."""
        path = self.folder / name
        if isinstance(content, list):
            content = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in content)
        elif isinstance(content, dict):
            content = json.dumps(content, indent=indent)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text("utf-8"))


def command(*words: str, stdin: bytes = b"", cwd: Path | None = None, **environment: str) -> Ended:
    """A real process."""
    done = subprocess.run(
        [sys.executable, "-m", "toolglot", *words],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=120,
        env={**os.environ, **environment},
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def call(id: str, name: str = "weather") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def chat(id: str = "call_abcd", *, model: str = "mistral-large-latest", answered: bool = True) -> dict[str, Any]:
    """A Chat Completions request with one call."""
    result = [{"role": "tool", "tool_call_id": id, "content": "7 degrees"}]
    return {
        "model": model,
        "messages": [
            {"role": "user", "content": "The weather in Bonn?"},
            {"role": "assistant", "content": "", "tool_calls": [call(id)]},
            *(result if answered else [{"role": "user", "content": "Well?"}]),
        ],
        "tools": [
            {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
        ],
    }


def claude(*blocks: dict[str, Any]) -> dict[str, Any]:
    """An Anthropic request."""
    content = list(blocks) or [{"type": "text", "text": "Hello"}]
    return {
        "model": "claude-opus-4-5",
        "max_tokens": 64,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": content}],
    }
