"""Session files of coding agents: how long it takes to list 200 MB, and time and memory to convert 50 MB.

    python bench/agent_files.py

Each figure is a ratio to reading the same bytes and parsing each line as JSON, in the same run. Memory is the highest
of a process of its own, as a multiple of the size of the file.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from toolglot import Conversation, Text, ToolCall, ToolResult, Turn, agent_files
from toolglot.agent_files import AgentHome
from toolglot.agent_files.base import get
from toolglot.agent_files.healing import examine_file

AGENTS = ("claude_code", "codex", "gemini_cli", "qwen_code", "pi", "copilot_cli")
MEGABYTE = 1_000_000
WORDS = "The output of a command, of some length. " * 100


def conversation(size: int) -> Conversation:
    """Turns with calls and results of about this many bytes."""
    turns: list[Turn] = []
    for number in range(size // (len(WORDS) + 1_200)):
        id = f"toolu_{number:08}"
        turns.append(Turn("user", (Text(f"Prompt {number}"),)))
        turns.append(Turn("assistant", (Text("I look."), ToolCall(id, "Bash", {"command": f"cat file-{number}"}))))
        turns.append(Turn("user", (ToolResult(id, f"{number} {WORDS}"),)))
        turns.append(Turn("assistant", (Text("That was it."),)))
    return Conversation(tuple(turns))


def written(home: AgentHome, agent: str, size: int) -> Path:
    return agent_files.write(conversation(size), agent, home=home, directory="/srv/project").path


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def parse(paths: list[Path]) -> None:
    for path in paths:
        with path.open("rb") as stream:
            for line in stream:
                msgspec.json.decode(line)


def listed(home: AgentHome) -> int:
    rows = list(agent_files.find("all", home=home))
    for row in rows:
        examine_file(get(row.agent), Path(row.path))
    return len(rows)


def peak_of(code: str, *words: str) -> float:
    """The highest memory of a process of its own, in MB."""
    command = [sys.executable, __file__, "--run", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - commands of this file
    return float(done.stdout)


def run(code: str, source: str, target: str, folder: str) -> None:
    """In a process of its own."""
    home = AgentHome(folder=Path(folder), environ={})
    if code == "convert":
        session = agent_files.read(source)
        agent_files.write(session.conversation, target, home=home, directory="/srv/other", source=session.agent)
    elif code == "heal":
        agent_files.heal_file(source)
    status = Path("/proc/self/status").read_text(encoding="ascii")  # unlike getrusage, without what the parent had
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1000)


def converted(home: AgentHome, path: Path, agent: str, target: str) -> None:
    session = agent_files.read(path)
    agent_files.write(session.conversation, target, home=home, directory="/srv/other", source=agent)


def listing() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        home = AgentHome(folder=Path(folder), environ={})
        paths = [written(home, agent, 5 * MEGABYTE) for agent in AGENTS for _ in range(7)]
        size = sum(path.stat().st_size for path in paths) / MEGABYTE
        bare = seconds(lambda: parse(paths))
        rows = seconds(lambda: list(agent_files.find("all", home=home)))
        checked = seconds(lambda: listed(home))
        yield f"list {len(paths)} sessions, {size:.0f} MB: {rows:.1f} s, {rows / bare:.1f} x parsing the lines"
        yield f"  and check each of them: {checked:.1f} s, {checked / bare:.1f} x"


def conversion(agent: str, target: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        home = AgentHome(folder=Path(folder), environ={})
        found: list[float] = []
        for megabytes in (25, 50):
            path = written(home, agent, megabytes * MEGABYTE)
            time_ = seconds(lambda path=path: converted(home, path, agent, target))  # type: ignore[misc]
            found.append(time_ / seconds(lambda path=path: parse([path])))  # type: ignore[misc]
        size = path.stat().st_size / MEGABYTE
        nothing, memory, healing = (peak_of(code, str(path), target, folder) for code in ("nothing", "convert", "heal"))
    half, whole = found
    return (
        f"{agent} to {target}, {size:.0f} MB: {whole:.0f} x parsing the lines ({half:.0f} x for half of it); memory "
        f"{(memory - nothing) / size:.1f} x the file; doctor: {(healing - nothing) / size:.1f} x"
    )


def main() -> None:
    for line in listing():
        print(line, flush=True)
    for agent, target in (("claude_code", "codex"), ("codex", "claude_code"), ("pi", "gemini_cli")):
        print(conversion(agent, target), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:6])
    else:
        main()
