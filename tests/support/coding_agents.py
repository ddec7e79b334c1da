"""The coding agents as they are run by a person, without a screen: Claude Code, Codex, Gemini CLI.

`agents/` holds them, with the versions that were tried; `make` installs them from the npm registry, without running
their install scripts. Law: a run sees a home, a working folder and an environment of its own, reaches the address that
it is given and nothing else, ends in bounded time and leaves no process behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

FOLDER: Final = Path(__file__).parents[1] / "agents"
MODULES: Final = FOLDER / "node_modules"
OLDEST_NODE: Final = 20
LONGEST_RUN: Final = 300.0
"""Seconds that end a run that hangs: it takes one to six where nothing else is going on."""
KEY: Final = "key-of-a-test"
INSTALL: Final = (
    "the coding agents are not installed: run `make test-agents`, or `npm install --no-save --ignore-scripts` in "
    "tests/agents"
)


class AgentRun(NamedTuple):
    """What a run came to."""

    text: str
    """The agent's last words; empty where there are none."""
    exit: int
    stdout: str
    stderr: str

    def output(self) -> str:
        """For the message of a test that fails."""
        return f"exit {self.exit}\n--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-4000:]}"


Runner = Callable[..., AgentRun]


# --- starting and ending ----------------------------------------------------------------------------


def started_with(agent: str, script: str) -> list[str]:
    """The command of an agent; the test is skipped by the agent's name where it cannot be run."""
    node = shutil.which("node")
    if node is None:
        pytest.skip(f"{agent}: there is no node here; install Node.js {OLDEST_NODE} or later, with npm")
    if not (MODULES / script).is_file():
        pytest.skip(f"{agent}: {INSTALL}")
    return [node, str(MODULES / script)]


def run(
    command: Sequence[str], home: Path, cwd: Path, environment: Mapping[str, str], *, longest: float = LONGEST_RUN
) -> tuple[int, str, str]:
    """Exit status and output; all that it started is ended with it."""
    own = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1"}
    written = (home / "stdout", home / "stderr")  # a pipe would be held open by what the agent leaves running
    with written[0].open("wb") as stdout, written[1].open("wb") as stderr:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            process.wait(longest)
        except subprocess.TimeoutExpired:
            stderr.write(f"\nended after {longest} s".encode())
        finally:
            _end(process)
    exit_ = process.wait()
    stdout_text, stderr_text = (path.read_text(encoding="utf-8", errors="replace") for path in written)
    return exit_, stdout_text, stderr_text


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole process group: an agent starts shells and servers of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def home_of(cwd: Path) -> Path:
    home = cwd.parent / f"{cwd.name}-home"
    home.mkdir(exist_ok=True)
    return home


# --- the agents -------------------------------------------------------------------------------------

CLAUDE_ENVIRONMENT: Final = {
    "ANTHROPIC_API_KEY": KEY,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
}


def run_claude(
    address: str,
    prompt: str,
    cwd: Path,
    *,
    model: str = "",
    extra: Sequence[str] = (),
    cloud: Mapping[str, str] | None = None,
) -> AgentRun:
    """Claude Code at a base address of Anthropic's Messages, or at that of a cloud, by variables of its own."""
    command = started_with("Claude Code", "@anthropic-ai/claude-code/cli-wrapper.cjs")
    command += ["-p", prompt, "--output-format", "json", "--allowedTools", "Bash,Read,Write,Edit"]
    command += ["--model", model] * bool(model) + [*extra]
    where = {"ANTHROPIC_BASE_URL": address} if cloud is None else cloud
    exit_, stdout, stderr = run(command, home_of(cwd), cwd, {**CLAUDE_ENVIRONMENT, **where})
    result = _json(stdout)
    return AgentRun("" if result.get("is_error", True) else str(result.get("result", "")), exit_, stdout, stderr)


CODEX_CONFIG: Final = """\
model = {model}
model_provider = "tested"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[otel]
exporter = "none"
[model_providers.tested]
name = "tested"
base_url = {address}
env_key = "TESTED_KEY"
wire_api = "responses"
"""


def run_codex(
    address: str,
    prompt: str,
    cwd: Path,
    *,
    model: str = "gpt-5.5",
    extra: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> AgentRun:
    """Codex at a base address of OpenAI's Responses."""
    command = started_with("Codex", "@openai/codex/bin/codex.js")
    home = home_of(cwd)
    config = CODEX_CONFIG.format(model=json.dumps(model), address=json.dumps(address))
    (home / "config.toml").write_text(config, encoding="utf-8")
    command += ["exec", "--skip-git-repo-check", "--json", *extra, prompt]
    exit_, stdout, stderr = run(command, home, cwd, {"TESTED_KEY": KEY, "CODEX_HOME": str(home), **(environment or {})})
    messages = [item["text"] for item in map(_item, stdout.splitlines()) if item.get("type") == "agent_message"]
    return AgentRun(str(messages[-1]) if messages else "", exit_, stdout, stderr)


GEMINI_SETTINGS: Final = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "disableAutoUpdate": True},
}
GEMINI_ENVIRONMENT: Final = {
    "GEMINI_API_KEY": KEY,
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "GEMINI_CLI_NO_RELAUNCH": "true",
}


def run_gemini(
    address: str,
    prompt: str,
    cwd: Path,
    *,
    model: str = "gemini-2.5-flash",
    extra: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> AgentRun:
    """Gemini CLI at a base address of Gemini's own protocol; `settings` go into its file besides those of all runs."""
    command = started_with("Gemini CLI", "@google/gemini-cli/bundle/gemini.js")
    home = home_of(cwd)
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(
        json.dumps({**GEMINI_SETTINGS, **(settings or {})}), encoding="utf-8"
    )
    command += ["-p", prompt, "--yolo", "--output-format", "json", "-m", model, *extra]
    environment = {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    exit_, stdout, stderr = run(command, home, cwd, environment)
    return AgentRun(str(_json(stdout).get("response") or ""), exit_, stdout, stderr)


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _item(line: str) -> dict[str, Any]:
    """What a line of Codex tells of an item that is done."""
    item = _json(line).get("item")
    return item if isinstance(item, dict) else {}
