"""More coding agents, which speak Chat Completions: opencode, Qwen Code and pi.

As those of `coding_agents.py`: a run sees a home, a working folder and an environment of its own.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from support.coding_agents import (
    INSTALL,
    KEY,
    MODULES,
    AgentRun,
    Runner,
    home_of,
    run,
    run_claude,
    run_codex,
    run_gemini,
    started_with,
)

MODEL: Final = "tested-model"
WINDOW: Final = {"context": 100_000, "output": 16_000}
_MACHINES: Final = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}


MEDIA: Final = {"input": ["text", "image"], "output": ["text"]}
_OPENCODE: Final = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}


def _opencode_program() -> Path:
    kind = f"opencode-{platform.system().lower()}-{_MACHINES.get(platform.machine(), '')}"
    program = MODULES / kind / "bin" / "opencode"
    if not program.is_file():
        pytest.skip(f"opencode: {INSTALL}")
    return program


def import_opencode(cwd: Path, files: Sequence[str]) -> None:
    """Import sessions; those that are there already are kept."""
    exit_, stdout, stderr = run([str(_opencode_program()), "import", *files], home_of(cwd), cwd, _OPENCODE)
    assert exit_ == 0, stdout + stderr


def run_opencode(
    address: str,
    prompt: str,
    cwd: Path,
    *,
    model: str = MODEL,
    extra: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    package: str = "@ai-sdk/openai-compatible",
) -> AgentRun:
    """opencode, whose program is in a package for each kind of machine; `settings` go into its file, and `package` is
    what speaks the protocol."""
    program = _opencode_program()
    provider = {
        "npm": package,
        "name": "tested",
        "options": {"baseURL": address, "apiKey": KEY},
        "models": {model: {"name": model, "tool_call": True, "attachment": True, "limit": WINDOW, "modalities": MEDIA}},
    }
    named = f"tested/{model}"
    config = {"autoupdate": False, "share": "disabled", "permission": "allow", "model": named, "small_model": named}
    home = home_of(cwd)
    file = home / "opencode.json"
    file.write_text(json.dumps({**config, "provider": {"tested": provider}, **(settings or {})}), encoding="utf-8")
    environment = {"OPENCODE_CONFIG": str(file), **_OPENCODE}
    exit_, stdout, stderr = run([str(program), "run", "--format", "json", *extra, prompt], home, cwd, environment)
    texts = [event["part"]["text"] for event in _events(stdout) if event.get("type") == "text"]
    return AgentRun(str(texts[-1]) if texts else "", exit_, stdout, stderr)


def run_qwen(address: str, prompt: str, cwd: Path, *, model: str = MODEL, extra: Sequence[str] = ()) -> AgentRun:
    return _run_qwen(started_with("Qwen Code", "@qwen-code/qwen-code/cli.js"), address, prompt, cwd, model, extra)


def run_newest_qwen(address: str, prompt: str, cwd: Path, *, model: str = MODEL, extra: Sequence[str] = ()) -> AgentRun:
    """The newest Qwen Code, which wants a newer Node than others: npm has one as a package for Linux. Elsewhere it is
    the one that any Node runs."""
    node = MODULES / f"node-{platform.system().lower()}-{_MACHINES.get(platform.machine(), '')}" / "bin" / "node"
    script = MODULES / "qwen-code-newest" / "cli.js"
    if not (node.is_file() and script.is_file()):
        return run_qwen(address, prompt, cwd, model=model, extra=extra)
    return _run_qwen([str(node), str(script)], address, prompt, cwd, model, extra)


def _run_qwen(command: list[str], address: str, prompt: str, cwd: Path, model: str, extra: Sequence[str]) -> AgentRun:
    command += ["-p", prompt, "--yolo", "-o", "json", "-m", model, "--auth-type", "openai"]
    command += ["--openai-base-url", address, "--openai-api-key", KEY, *extra]
    environment = {"QWEN_CODE_NO_RELAUNCH": "true", "PATH": f"{Path(command[0]).parent}:{os.environ['PATH']}"}
    exit_, stdout, stderr = run(command, home_of(cwd), cwd, environment)
    try:
        events = json.loads(stdout)
    except ValueError:
        events = []
    last = events[-1] if isinstance(events, list) and events else {}
    return AgentRun("" if last.get("is_error", True) else str(last.get("result", "")), exit_, stdout, stderr)


def run_pi(
    address: str,
    prompt: str,
    cwd: Path,
    *,
    model: str = MODEL,
    extra: Sequence[str] = ("--no-session",),
    api: str = "openai-completions",
    sees_images: bool = False,
) -> AgentRun:
    command = started_with("pi", "@earendil-works/pi-coding-agent/dist/cli.js")
    home = home_of(cwd)
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    costs = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    described = {
        "id": model,
        "name": model,
        "reasoning": True,
        "input": ["text", "image"] if sees_images else ["text"],
        "contextWindow": WINDOW["context"],
        "maxTokens": WINDOW["output"],
        "cost": costs,
    }
    provider = {"baseUrl": address, "api": api, "apiKey": KEY, "models": [described]}
    (folder / "models.json").write_text(json.dumps({"providers": {"tested": provider}}), encoding="utf-8")
    command += ["-p", "--mode", "json", "--provider", "tested", "--model", model, *extra, prompt]
    exit_, stdout, stderr = run(command, home, cwd, {"PI_OFFLINE": "1"})
    ended = [event for event in _events(stdout) if event.get("type") == "agent_end"]
    content = ended[-1]["messages"][-1].get("content", []) if ended else []
    texts = [part["text"] for part in content if part.get("type") == "text"]
    return AgentRun(str(texts[-1]) if texts else "", exit_, stdout, stderr)


def _events(stdout: str) -> list[dict[str, Any]]:
    """The JSON lines of an output."""
    found: list[dict[str, Any]] = []
    for line in stdout.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found


class AnyAgent(NamedTuple):
    """A coding agent, the end of the address that it is configured with, and its tool for commands."""

    name: str
    run: Runner
    base: str
    shell: str
    arguments: Callable[[str], dict[str, Any]]


def _command(line: str) -> dict[str, Any]:
    return {"command": line}


def _described(line: str) -> dict[str, Any]:
    return {"command": line, "description": "writes a file", "is_background": False}


ALL_AGENTS: Final = (
    AnyAgent("Claude Code", run_claude, "", "Bash", _command),
    AnyAgent("Codex", run_codex, "/v1", "exec_command", lambda line: {"cmd": line}),
    AnyAgent("Gemini CLI", run_gemini, "", "run_shell_command", _command),
    AnyAgent("opencode", run_opencode, "/v1", "bash", lambda line: {"command": line, "description": "writes a file"}),
    AnyAgent("Qwen Code", run_qwen, "/v1", "run_shell_command", _described),
    AnyAgent("pi", run_pi, "/v1", "bash", _command),
)


def run_copilot(
    address: str, prompt: str, cwd: Path, *, model: str = MODEL, extra: Sequence[str] = (), kind: str = "anthropic"
) -> AgentRun:
    """Copilot CLI at a provider of its user's own, whose program is in a package for each kind of machine."""
    machine = f"{platform.system().lower()}-{_MACHINES.get(platform.machine(), '')}"
    program = MODULES / "@github" / f"copilot-{machine}" / "copilot"
    if not program.is_file():
        pytest.skip(f"Copilot CLI: {INSTALL}")
    command = [str(program), "-p", prompt, "--allow-all", "--model", model, "--output-format", "json", *extra]
    command += ["--disable-builtin-mcps", "--no-custom-instructions"]
    environment = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_BASE_URL": address,
        "COPILOT_PROVIDER_TYPE": kind,
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_PROVIDER_MODEL_ID": model,
    }
    exit_, stdout, stderr = run(command, home_of(cwd), cwd, environment)
    texts = [
        str(event["data"]["content"])
        for event in _events(stdout)
        if event.get("type") == "assistant.message" and event.get("data", {}).get("content")
    ]
    return AgentRun(texts[-1] if texts else "", exit_, stdout, stderr)


COPILOT: Final = AnyAgent("Copilot CLI", run_copilot, "", "bash", _command)
