"""A folder for commands that run sessions: a simulator on a port, a configuration that leads to it, tools, a store."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.cli.commands import Ended, command
from support.cli.terminal import Screen, in_terminal
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

TOOLS = '''\
"""Tools to try things with."""

import time
from pathlib import Path

from toolglot.runtime.tools.toolbox import ToolContext, tool


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    print("this is no answer")
    return f"7 degrees in {city}"


@tool(approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    Path("deleted").write_text(path)
    return f"deleted {path}"


@tool
def wait(context: ToolContext) -> str:
    """Wait until it is cancelled."""
    context.progress("still here")
    context.cancelled.wait(60)
    return "woken"


@tool
def stuck() -> str:
    """Ends when a file is there, and not when it is cancelled."""
    while not Path("free").exists():
        time.sleep(0.02)
    return "freed"


@tool
def evil() -> str:
    """Tries to paint the terminal."""
    return "a \\x1b]0;owned\\x07 b"
'''

LONG = "These words go on and on " * 40
MARKDOWN = """# A title

Some *slanted* and **strong** words, `code` and a [link](https://example.com/x).

- one
- two

```python
def f():
    return "x"
```

| name | value |
|------|-------|
| a    | 1     |

The end.
"""
CALLS = {
    "weather": {"city": "Bonn"},
    "delete": {"path": "a.txt"},
    "wait": {},
    "evil": {},
    "stuck": {},
}
SCRIPT: dict[str, Any] = {
    "rules": [
        *(
            {
                "when": {"contains": f"use {name}", "results": 0},
                "reply": {"text": f"I use {name}.", "calls": [{"name": name, "arguments": arguments}]},
            }
            for name, arguments in CALLS.items()
        ),
        {"when": {"contains": "for ever"}, "reply": {"calls": [{"name": "weather", "arguments": {"city": "Bonn"}}]}},
        {"when": {"results": 1}, "reply": {"text": "That is done."}},
        {"when": {"contains": "cut"}, "reply": {"text": "Half of", "stop": "length"}},
        {"when": {"contains": "markdown"}, "reply": {"text": MARKDOWN}},
        {"when": {"contains": "paint"}, "reply": {"text": "a \x1b[31mred\x1b[0m word"}},
        {"when": {"contains": "stream"}, "reply": {"text": LONG}},
        {"reply": {"text": "Well said."}},
    ]
}


class Folder:
    """Where the commands run, and who answers them."""

    def __init__(self, path: Path, server: Server) -> None:
        self.path = path
        self.server = server
        self.write("tools.py", TOOLS)
        self.write(
            "toolglot.toml",
            "[gateway]\nsimulate = true\n"
            f'[upstreams.anthropic]\nurl = "{server.url("anthropic")}"\nkey_env = "STAGE_KEY"\n'
            f'[upstreams.openai]\nurl = "{server.url("openai")}"\nkey_env = "STAGE_KEY"\n'
            '[models]\nquick = "openai/gpt-4.1"\n',
        )

    def write(self, name: str, text: str) -> str:
        (self.path / name).write_text(text)
        return name

    @property
    def environment(self) -> dict[str, str]:
        return {
            "STAGE_KEY": "sk-stage-0123456789",
            "XDG_STATE_HOME": str(self.path / "state"),
            "TOOLGLOT_MODEL": "anthropic/claude-sonnet-4-5",
            "TOOLGLOT_CONFIG": str(self.path / "toolglot.toml"),
        }

    def run(self, *words: str, stdin: bytes = b"") -> Ended:
        return command(*words, stdin=stdin, cwd=self.path, **self.environment)

    @contextlib.contextmanager
    def terminal(self, *words: str, **environment: str) -> Iterator[Screen]:
        with in_terminal(*words, cwd=self.path, **{**self.environment, **environment}) as screen:
            yield screen

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A process whose streams are pipes."""
        process = subprocess.Popen(
            [sys.executable, "-m", "toolglot", *words],
            cwd=self.path,
            env={**os.environ, **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.run("sessions", "list", "--format", "json").json
        return found


@contextlib.contextmanager
def folder(path: Path, **script: Any) -> Iterator[Folder]:
    with serve({**SCRIPT, **script}) as server:
        yield Folder(path, server)


def interrupt(process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> None:
    process.send_signal(number)
