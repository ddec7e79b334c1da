"""The gateways that are measured, each a process of its own as its users start it: ours, two peers, and nginx.

Law: a server is measured only after it has given the right response. Every process that is started here is ended here,
by its id; a port that another process listens on is not used.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import peers
from gateway_traffic import MODEL, SLOW_MODEL, SLOWER_MODEL
from peers import PeerError

HERE: Final = Path(__file__).resolve().parent
START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 10.0
LOOPBACK: Final = "127.0.0.1"

OURS: Final = "toolglot"
KEEPING: Final = "toolglot, bodies kept"
NGINX: Final = "nginx"

PACKAGES: Final[dict[str, tuple[str, ...]]] = {
    "litellm-proxy": ("litellm[proxy]==1.106.2",),
    "llm-rosetta": peers.PEERS["llm-rosetta"],
}

_TOOLGLOT: Final = """\
[gateway]
port = 0
store = ":memory:"

[inspector]
keep = "{keep}"

[upstreams.fake]
url = "http://127.0.0.1:{upstream}/v1"
target = "openai"
auth = "none"

[models]
"{model}" = "fake/gpt-4.1"
"{slow}" = "fake/gpt-4.1-slow"
"{slower}" = "fake/gpt-4.1-slower"
"""

_LITELLM: Final = """\
model_list:
  - model_name: {model}
    litellm_params:
      model: openai/gpt-4.1
      api_base: http://127.0.0.1:{upstream}/v1
      api_key: any
litellm_settings:
  telemetry: false
  use_chat_completions_url_for_anthropic_messages: true
general_settings:
  dangerously_permit_weak_or_unset_master_key: true
"""
"""Without a key, as ours: it listens on loopback, for the bench alone, and has nothing to give away."""

_NGINX: Final = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/client;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_max_body_size 4m;
  client_body_buffer_size 4m;
  keepalive_requests 1000000;
  upstream fake {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://fake;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


# --- processes --------------------------------------------------------------------------------------


class Server:
    """A running process that listens."""

    def __init__(self, name: str, process: subprocess.Popen[str], port: int, version: str = "") -> None:
        self.name = name
        self.process = process
        self.port = port
        self.version = version

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()

    def cpu_ns(self) -> int:
        """User and system time of the process and its descendants."""
        return sum(map(_cpu_of, _tree(self.process.pid)))

    def memory(self) -> int:
        """Resident bytes of the process and its descendants."""
        return sum(map(_resident, _tree(self.process.pid)))

    def stop(self) -> None:
        for pid in reversed(_tree(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:  # it grows while it is read: children of children
        found.extend(children.get(pid, ()))
    return found


def _cpu_of(pid: int) -> int:
    """The CPU clock of another process, to the nanosecond: /proc has utime and stime in hundredths of a second only."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        port: int = sock.getsockname()[1]
        return port


def _owns(root: int, port: int) -> bool:
    """Whether the process or a descendant listens on the port."""
    wanted = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
            wanted.add(f"socket:[{fields[9]}]")
    for pid in _tree(root):
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(handle.readlink()) in wanted:
                        return True
    return False


def _spawn(command: list[str | Path], log: Path, **environ: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "_API_KEY"))}
    kept.pop("PYTHONPATH", None)
    with log.open("w") as stderr:
        return subprocess.Popen(  # noqa: S603 - commands of this file
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env={**kept, **environ}
        )


def _wait_for(process: subprocess.Popen[str], port: int, log: Path, name: str) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        if _owns(process.pid, port):
            return
        time.sleep(0.05)
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    Server(name, process, port).stop()
    raise PeerError(f"{name} does not listen: {lines[-1][:200] if lines else 'no reason given'}")


def _first_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().strip()


_TO_STDERR: Final = ("/bin/sh", "-c", 'exec "$0" "$@" >&2')
"""What a peer prints goes to its log: a full pipe would stop it."""
_LITELLM_OPTIONS: Final = ("--num_workers", "1", "--telemetry", "False")
_ROSETTA_OPTIONS: Final = ("--log-level", "error")


# --- the servers ------------------------------------------------------------------------------------


def toolglot(upstream: int, folder: Path, keep: str = "off") -> Server:
    """Our gateway. `keep`: what it keeps of past requests."""
    name = OURS if keep == "off" else KEEPING
    file, log = folder / f"{keep}.toml", folder / f"toolglot-{keep}.log"
    file.write_text(_TOOLGLOT.format(upstream=upstream, model=MODEL, slow=SLOW_MODEL, slower=SLOWER_MODEL, keep=keep))
    process = _spawn([sys.executable, "-m", "toolglot", "serve", "--config", file], log)
    address = _first_line(process.stdout)
    if not address.startswith("http://"):
        raise PeerError(f"toolglot serve printed {address!r}: {log.read_text()[-300:]}")
    return Server(name, process, int(address.rpartition(":")[2]))


def nginx(upstream: int, folder: Path) -> Server:
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise PeerError("nginx is not installed (Debian: apt-get install nginx-light)")
    port, file, log = free_port(), folder / "nginx.conf", folder / "nginx.log"
    file.write_text(_NGINX.format(folder=folder, upstream=upstream, port=port))
    version = subprocess.run([program, "-v"], stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - as above
    process = _spawn([program, "-p", folder, "-c", file, "-e", "stderr"], log)
    _wait_for(process, port, log, NGINX)
    return Server(NGINX, process, port, version.stderr.strip().rpartition("/")[2])


def litellm(upstream: int, folder: Path) -> Server:
    python = peers.environment_python("litellm-proxy", PACKAGES["litellm-proxy"])
    port, file, log = free_port(), folder / "litellm.yaml", folder / "litellm.log"
    file.write_text(_LITELLM.format(upstream=upstream, model=MODEL))
    program = python.with_name("litellm")
    process = _spawn(
        [*_TO_STDERR, program, "--config", file, "--host", LOOPBACK, "--port", str(port), *_LITELLM_OPTIONS],
        log,
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        LITELLM_LOG="ERROR",
        PYTHONWARNINGS="ignore",
    )
    _wait_for(process, port, log, "litellm")
    return Server("LiteLLM proxy", process, port, _version(python, "litellm"))


def rosetta(upstream: int, folder: Path) -> Server:
    python = peers.environment_python("llm-rosetta")
    port, file, log = free_port(), folder / "rosetta.jsonc", folder / "rosetta.log"
    config: dict[str, Any] = {
        "providers": {"openai_chat": {"api_key": "any", "base_url": f"http://{LOOPBACK}:{upstream}/v1"}},
        "models": {MODEL: "openai_chat"},
        "server": {"host": LOOPBACK, "port": port, "open_on_no_keys": True, "data_dir": str(folder / "rosetta")},
    }
    file.write_text(json.dumps(config))
    process = _spawn(
        [*_TO_STDERR, python.with_name("llm-rosetta-gateway"), "--no-banner", "--config", file, *_ROSETTA_OPTIONS],
        log,
    )
    _wait_for(process, port, log, "llm-rosetta")
    return Server("llm-rosetta gateway", process, port, _version(python, "llm-rosetta"))


def _version(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - ditto
    return done.stdout.strip()


STARTERS: Final[dict[str, Callable[[int, Path], Server]]] = {NGINX: nginx, "litellm": litellm, "llm-rosetta": rosetta}


# --- the other two processes ------------------------------------------------------------------------


@contextlib.contextmanager
def provider(folder: Path) -> Iterator[int]:
    """The upstream of all; its port."""
    process = _spawn([sys.executable, HERE / "gateway_upstream.py"], folder / "upstream.log")
    try:
        yield int(_first_line(process.stdout))
    finally:
        process.kill()
        process.wait()


class Load:
    """The clients."""

    def __init__(self, folder: Path) -> None:
        self._process = _spawn([sys.executable, HERE / "gateway_load.py"], folder / "load.log")

    def order(self, **fields: Any) -> dict[str, Any]:
        self.write_line(json.dumps(fields))
        return self.read_line()

    def write_line(self, line: str) -> None:
        stdin: IO[str] | None = self._process.stdin
        assert stdin is not None
        stdin.write(line + "\n")
        stdin.flush()

    def read_line(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(_first_line(self._process.stdout))
        return fields

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True)
class Received:
    """A response."""

    status: int
    body: bytes


def post(port: int, body: bytes) -> Received:
    """Send one request and read the response. A client library would take longer to import than a server to start."""
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: {LOOPBACK}\r\nx-api-key: any\r\nanthropic-version: 2023-06-01\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    with socket.create_connection((LOOPBACK, port), timeout=60) as sock:
        sock.sendall(head.encode() + body)
        pieces = []
        while piece := sock.recv(65_536):
            pieces.append(piece)
    top, _, rest = b"".join(pieces).partition(b"\r\n\r\n")
    return Received(int(top[9:12]), _join_chunks(rest) if b"chunked" in top.lower() else rest)


def _join_chunks(data: bytes) -> bytes:
    """The body of a chunked response."""
    made = []
    while data:
        size, _, rest = data.partition(b"\r\n")
        count = int(size, 16)
        if not count:
            break
        made.append(rest[:count])
        data = rest[count + 2 :]
    return b"".join(made)
