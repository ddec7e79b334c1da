"""The turns of a session of each coding agent, with a tool to find or to use, and a window that is full early.

Each turn is a run of its own, which may name another model than the one before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.coding_agents import FOLDER, AgentRun, home_of, run_claude, run_codex, run_gemini
from support.more_agents import ALL_AGENTS, AnyAgent, run_opencode, run_pi, run_qwen

NOTES: Final = Path(__file__).parents[1] / "mcp_servers" / "notes.py"
FULL: Final = 90_000
"""Tokens at which each agent compacts: so many are reported for the last reply of the first turn."""
_SERVER: Final = {"command": sys.executable, "args": [str(NOTES)]}

Turn = Callable[[str, str, Path, str, bool], AgentRun]
"""Runs a turn: the address, the prompt, the folder, the model, and whether the last session goes on."""


class SessionAgent(NamedTuple):
    """A coding agent that has sessions."""

    agent: AnyAgent
    turn: Turn
    family: str
    """How the names begin that it knows models by."""
    record: str
    """The tool of the MCP server, as a model sees it."""
    search: dict[str, Any] | None = None
    """The call that finds that tool; None for an agent that declares it from the beginning."""
    searches: int = 0
    """How often it is needed: Claude Code and Codex take what was found for unknown once they have compacted."""
    summary_prompt: str = ""
    """Words of its prompt for a summary, if tools are declared beside it: Bedrock wants those of the history."""

    def record_on(self, upstream: str) -> str:
        """OpenAI's Responses has namespaces: there the name is the tool's own."""
        return "record" if self.family.startswith("gpt") and upstream == "openai_responses" else self.record


def _claude(address: str, prompt: str, cwd: Path, model: str, continues: bool) -> AgentRun:
    config = home_of(cwd) / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"notes": _SERVER}}), encoding="utf-8")
    extra = ["--mcp-config", str(config), "--dangerously-skip-permissions", *["--continue"] * continues]
    settings = {"ANTHROPIC_BASE_URL": address, "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}
    return run_claude("", prompt, cwd, model=model, extra=extra, cloud=settings)


def _codex(address: str, prompt: str, cwd: Path, model: str, continues: bool) -> AgentRun:
    options = {
        "mcp_servers.notes.command": sys.executable,
        "mcp_servers.notes.args": [str(NOTES)],
        "mcp_servers.notes.required": True,  # otherwise the first request does not wait for its tools
        "model_auto_compact_token_limit": 60_000,
    }
    extra = [word for name, value in options.items() for word in ("-c", f"{name}={json.dumps(value)}")]
    return run_codex(address, prompt, cwd, model=model, extra=[*extra, *["resume", "--last"] * continues])


def _gemini(address: str, prompt: str, cwd: Path, model: str, continues: bool) -> AgentRun:
    settings = {"mcpServers": {"notes": {**_SERVER, "trust": True}}, "model": {"compressionThreshold": 0.007}}
    return run_gemini(address, prompt, cwd, model=model, settings=settings, extra=["--resume", "latest"] * continues)


def _opencode(address: str, prompt: str, cwd: Path, model: str, continues: bool) -> AgentRun:
    server = {"type": "local", "command": [sys.executable, str(NOTES)], "enabled": True}
    # Otherwise it compacts as soon as the first turn is over, and tells the model to go on.
    settings = {"mcp": {"notes": server}, "compaction": {"auto": continues}}
    extra = [
        "--model",
        f"tested/{model}",
        *["--continue"] * continues,
    ]  # otherwise a session goes on with its last model
    return run_opencode(address, prompt, cwd, model=model, settings=settings, extra=extra)


def _qwen(address: str, prompt: str, cwd: Path, model: str, continues: bool) -> AgentRun:
    folder = home_of(cwd) / ".qwen"
    folder.mkdir(exist_ok=True)
    settings = {
        "mcpServers": {"notes": {**_SERVER, "trust": True}},
        "model": {"chatCompression": {"contextPercentageThreshold": 0.05}},
    }
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return run_qwen(address, prompt, cwd, model=model, extra=["--continue"] * continues)


def _pi(address: str, prompt: str, cwd: Path, model: str, continues: bool) -> AgentRun:
    folder = home_of(cwd) / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"compaction": {"enabled": True, "reserveTokens": 16_000, "keepRecentTokens": 1_000}}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    extra = ["--extension", str(FOLDER / "pi_record_tool.ts"), "--thinking", "medium", *["--continue"] * continues]
    return run_pi(address, prompt, cwd, model=model, extra=extra)


_CLAUDE, _CODEX, _GEMINI, _OPENCODE, _QWEN, _PI = ALL_AGENTS
_RECORD: Final = "mcp__notes__record"
SESSION_AGENTS: Final = (
    SessionAgent(
        _CLAUDE,
        _claude,
        "claude-opus-5",
        _RECORD,
        {"name": "ToolSearch", "arguments": {"query": f"select:{_RECORD}", "max_results": 5}},
        2,
        "create a detailed summary",
    ),
    SessionAgent(
        _CODEX,
        _codex,
        "gpt-5.5",
        _RECORD,
        {"name": "tool_search", "arguments": {"query": "does a record"}},
        2,
        "CONTEXT CHECKPOINT COMPACTION",
    ),
    SessionAgent(_GEMINI, _gemini, "gemini-2.5-flash", "mcp_notes_record"),
    SessionAgent(_OPENCODE, _opencode, "tested", "notes_record"),
    SessionAgent(
        _QWEN,
        _qwen,
        "tested",
        _RECORD,
        {"name": "tool_search", "arguments": {"query": f"select:{_RECORD}"}},
        1,
        "state_snapshot",
    ),
    SessionAgent(_PI, _pi, "tested", "record"),
)
