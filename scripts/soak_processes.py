"""The processes of a soak: the gateway and its upstreams, which are killed and started again, and what they hold.

Law: every process that is started here is ended here, by its id. The times at which each was
down are written down: only then may a client notice anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
START_SECONDS: Final = 60.0
END_SECONDS: Final = 40.0
"""Longer than the gateway's graceful shutdown."""
MARGIN: Final = 1.0
"""Seconds after the end of a disturbance in which it may still be noticed."""

KEYS: Final = {"SOAK_KEY_A": "soak-client-key-a-0123456789", "SOAK_KEY_B": "soak-client-key-b-0123456789"}

UPSTREAMS: Final = {
    "anthropic": ("a", "anthropic", ""),
    "openai_chat": ("b", "openai", "openai"),
    "openai_responses": ("b", "openai", "openai_responses"),
    "gemini": ("b", "gemini", ""),
    "mistral": ("a", "mistral", ""),
    "deepseek": ("a", "deepseek", ""),
    "kimi": ("b", "kimi", ""),
    "ollama": ("a", "ollama", ""),
    "cohere": ("b", "cohere", ""),
    "bedrock": ("a", "bedrock", ""),
    "vllm": ("b", "vllm", ""),
}
"""By name: which process, the provider, and the profile where it is not the provider's own choice."""

MODELS: Final = {
    "chain": '["anthropic/claude-sonnet-4-5", "openai_chat/gpt-4.1", "mistral/mistral-large-latest"]',
    "chain-thinking": '["gemini/gemini-3-pro-preview", "anthropic/claude-sonnet-4-5"]',
    "spread": '{ to = ["openai_chat/gpt-4.1", "mistral/mistral-large-latest"], weights = [1, 2] }',
    "spread-thinking": '{ to = ["anthropic/claude-sonnet-4-5", "openai_responses/gpt-5.5"], weights = [1, 1] }',
    "alias": '"anthropic/claude-sonnet-4-5"',
}


class Span(NamedTuple):
    """A time in which a process was down."""

    who: str
    how: str
    begin: float
    end: float


class Disturbances:
    """Which processes were ended, and when."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open: dict[str, tuple[str, float]] = {}

    def begin(self, who: str, how: str) -> None:
        self._open[who] = (how, time.monotonic())

    def end(self, who: str) -> None:
        how, begun = self._open.pop(who)
        self.spans.append(Span(who, how, begun, time.monotonic()))

    def between(self, begin: float, end: float, who: str = "") -> list[Span]:
        """Those that touch this time; `who` begins the names of the processes that count."""
        now = [Span(name, how, begun, end) for name, (how, begun) in self._open.items()]
        latest = [span for span in self.spans[-50:] if span.end + MARGIN >= begin and span.begin <= end]
        return [span for span in [*latest, *now] if span.who.startswith(who)]


class Process:
    """One process that can be killed and started again at the same address."""

    def __init__(
        self, name: str, command: list[str], log: Path, environ: dict[str, str] | None = None, patience: float = 1.0
    ) -> None:
        self.name = name
        self._patience = patience
        self._command = command
        self._log = log
        self._environ = {**os.environ, **(environ or {})}
        self.port = 0
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def why_ended(self) -> str:
        """How it ended by itself; empty: it runs."""
        code = self._process.poll() if self._process is not None else None
        return "" if code is None else f"{self.name} ended with {code}: {self._log.read_bytes()[-2000:].decode()}"

    async def start(self) -> float:
        """Start it; how many seconds it took until it says where it listens."""
        begun = time.monotonic()
        command = [part.replace("PORT", str(self.port)) for part in self._command]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - commands of our own
                command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, env=self._environ
            )
        address = await asyncio.wait_for(asyncio.to_thread(self._first_line), START_SECONDS * self._patience)
        if not address.startswith(b"http"):
            raise RuntimeError(f"{self.name} did not start: {self._log.read_bytes()[-2000:].decode()}")
        self.port = int(address.rsplit(b":", 1)[1])
        self.starts += 1
        while not self._listens():
            await asyncio.sleep(0.01)
        return time.monotonic() - begun

    def _first_line(self) -> bytes:
        assert self._process is not None and self._process.stdout is not None  # noqa: S101, PT018 - it was started
        return self._process.stdout.readline()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    async def end(self, how: signal.Signals) -> int | None:
        """Send a signal and wait for the end; its code, or None if it did not end."""
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            process.send_signal(how)
            code: int | None = await asyncio.to_thread(process.wait, END_SECONDS * self._patience)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
        return code

    def kill(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None

    # --- what it holds ------------------------------------------------------------------------------

    def _family(self) -> list[int]:
        """It and its workers."""
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            return [self.pid, *map(int, children)]
        return []

    def rss(self) -> int:
        """Bytes of memory; 0: it does not run."""
        return sum(map(_rss, self._family()))

    def fds(self) -> int:
        return sum(map(_fds, self._family()))


def _end(process: subprocess.Popen[bytes]) -> None:
    """A process that may have ended already, and what is left of it."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _rss(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def _fds(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names only, and often
    return 0


class Testbed:
    """All processes of a soak, in a folder of their own."""

    def __init__(self, folder: Path, workers: int = 1, patience: float = 1.0) -> None:
        self.folder = folder
        self.patience = patience
        """What every time limit is multiplied by."""
        self.disturbances = Disturbances()
        script = str(HERE / "soak_upstream.py")
        self.upstreams = {
            name: Process(
                f"upstream {name}",
                [sys.executable, script, "PORT", str(folder / f"upstream-{name}.log"), str(folder / f"stored-{name}")],
                folder / f"upstream-{name}.err",
                patience=patience,
            )
            for name in ("a", "b")
        }
        command = [sys.executable, "-m", "toolglot", "serve", "--config", str(folder / "toolglot.toml")]
        command += ["--workers", str(workers)] if workers > 1 else []
        environ = {**KEYS, "SIMULATED_KEY": "simulated-key"}
        self.gateway = Process(
            "gateway", [*command, "--port", "PORT", "--quiet"], folder / "gateway.err", environ, patience
        )

    @property
    def processes(self) -> tuple[Process, ...]:
        return (*self.upstreams.values(), self.gateway)

    async def start(self) -> None:
        for upstream in self.upstreams.values():
            await upstream.start()
        (self.folder / "toolglot.toml").write_text(self.config())
        await self.gateway.start()

    def config(self) -> str:
        """The configuration of the gateway."""
        lines = ["[gateway]", f'store = "{self.folder / "gateway.db"}"', 'log = "json"', 'metrics = "open"']
        lines.append(f"drain_seconds = {30 * self.patience:g}")
        lines.append("client_keys = [" + ", ".join(f'"env:{name}"' for name in KEYS) + "]")
        for name, (where, provider, target) in UPSTREAMS.items():
            url = _base(self.upstreams[where].url, provider)
            lines += [f"[upstreams.{name}]", f'provider = "{provider}"', f'url = "{url}"', 'key_env = "SIMULATED_KEY"']
            lines += ['auth = "bearer"'] if provider == "bedrock" else []
            lines += [f'target = "{target}"'] if target else []
            lines += [f"first_byte_seconds = {6 * self.patience:g}", f"idle_seconds = {6 * self.patience:g}"]
            lines += ["breaker_seconds = 1", "breaker_failures = 8"]
            lines += ["retries = 1", "retry_seconds = 0.5"] if name in ("mistral", "gemini") else []
        lines += ["[models]", *(f'"{name}" = {goal}' for name, goal in MODELS.items())]
        return "\n".join(lines) + "\n"

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    async def restart(self, process: Process, how: signal.Signals, pause: float) -> str:
        """End a process, wait, and start it again; what was wrong with its end, if anything."""
        self.disturbances.begin(process.name, how.name)
        try:
            code = await process.end(how)
            await asyncio.sleep(pause)
            await process.start()
        finally:
            self.disturbances.end(process.name)
        if how == signal.SIGTERM and code != 0:
            return f"the {process.name} did not end well on SIGTERM: {'not at all' if code is None else code}"
        return ""


def _base(root: str, provider: str) -> str:
    from toolglot.simulator import url_of  # noqa: PLC0415 - a second of imports that only the start needs

    return url_of(root, provider)


def ended_by_itself(testbed: Testbed) -> list[str]:
    """Why processes ended by themselves."""
    return [why for process in testbed.processes if process.pid and (why := process.why_ended())]


def summary(testbed: Testbed) -> dict[str, Any]:
    kinds: dict[str, int] = {}
    for span in testbed.disturbances.spans:
        kinds[f"{span.who} {span.how}"] = kinds.get(f"{span.who} {span.how}", 0) + 1
    return dict(sorted(kinds.items()))
