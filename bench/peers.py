"""Other translators, each in an environment and a process of its own, measured in turn with ours.

A peer is a script that calls `run_peer`. It first prints its name and what its translation contains. Then, for every
number on its standard input, it makes that many translations and prints how long one took, in CPU time of its own
process. This file runs in the environments of the peers too: only the standard library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Final

from timing import Row, quiet_gc, spent

ENVIRONMENTS: Final = Path(__file__).resolve().parent.parent / ".venv-peers"
WARM_UP: Final = 5

PEERS: Final[dict[str, tuple[str, ...]]] = {
    "litellm": ("litellm==1.106.2", "orjson==3.13.0"),
    "llm-rosetta": ("llm-rosetta==0.13.0", "orjson==3.13.0"),
}
"""What each environment gets; the script of a peer is `peer_<name>.py`, or `peer_<name>_stream.py` for streams. The
versions are pinned, so that two runs compare with the same code."""

Census = dict[str, int]


class PeerError(Exception):
    """A peer that cannot be measured, and why."""


def census(data: bytes) -> Census:
    """What a Chat body holds: two translations of one request should agree in it."""
    body = json.loads(data)
    messages = body["messages"]
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    results = [message for message in messages if message["role"] == "tool"]
    return {"calls": len(calls), "results": len(results), "tools": len(body["tools"])}


def stream_census(data: bytes) -> Census:
    """What a Messages stream holds."""
    events = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    starts = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    return {
        "text": sum(len(delta.get("text", "")) for delta in deltas),
        "input": sum(len(delta.get("partial_json", "")) for delta in deltas),
        "calls": sum(block["type"] == "tool_use" for block in starts),
    }


# --- in the environment of the peer -----------------------------------------------------------------


def run_peer(
    name: str, translate: Callable[[bytes], bytes], path: str, count: Callable[[bytes], Census] = census
) -> None:
    """The side of the peer: print what it is, then a time for every number on standard input."""
    body = Path(path).read_bytes()
    for _ in range(WARM_UP):
        made = translate(body)
    _print_line({"name": name, "census": count(made), "bytes": len(made)})
    quiet_gc()
    for line in sys.stdin:
        _print_line({"ns": spent(lambda: translate(body), int(line))})


def _print_line(fields: dict[str, Any]) -> None:
    print(json.dumps(fields), flush=True)


# --- on our side ------------------------------------------------------------------------------------


class Peer:
    """A running peer. `measure(calls)` is one round."""

    def __init__(self, kind: str, body: Path, task: str = "") -> None:
        script = Path(__file__).with_name(f"peer_{kind.replace('-', '_')}{task}.py")
        self._kind = kind
        self._process = subprocess.Popen(  # noqa: S603 - our own script in an environment that we made
            [environment_python(kind), script, body],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        first = self._read_line()
        self.name = str(first["name"])
        self.census: Census = first["census"]

    def measure(self, calls: int) -> float:
        stdin: IO[str] | None = self._process.stdin
        assert stdin is not None
        stdin.write(f"{calls}\n")
        stdin.flush()
        return float(self._read_line()["ns"])

    def stop(self) -> None:
        self._process.communicate()  # the end of its input is the end of its work

    def _read_line(self) -> dict[str, Any]:
        """The next line of JSON; lines that the peer's own code prints are skipped."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                fields: dict[str, Any] = json.loads(line)
                return fields
        _, stderr = self._process.communicate()
        raise PeerError(f"{self._kind} stopped: {_last_line(stderr)}")


def _environment() -> dict[str, str]:
    """No packages of ours, no warnings, and no price list from the network when litellm starts."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**kept, "PYTHONWARNINGS": "ignore", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def environment_python(kind: str, packages: tuple[str, ...] = ()) -> Path:
    """The Python of a peer's environment, which is made the first time."""
    packages = packages or PEERS[kind]
    folder = ENVIRONMENTS / kind
    wanted = "\n".join(packages)
    stamp, python = folder / ".installed", folder / "bin" / "python"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"==> installing {', '.join(packages)} into {folder} (once)", file=sys.stderr, flush=True)
    venv.create(folder, clear=True, symlinks=True, with_pip=True)  # an interrupted run may have left half of it
    command: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - as above
    if done.returncode:
        raise PeerError(f"pip could not install {kind}: {_last_line(done.stderr)}")
    stamp.write_text(wanted)
    return python


def wanted() -> bool:
    return os.environ.get("BENCH_PEERS", "1") != "0"


def start_peers(body: bytes, ours: Census, task: str = "") -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that run, and why others do not. One whose translation loses something cannot be compared."""
    if not wanted():
        return {}, dict.fromkeys(PEERS, "BENCH_PEERS=0")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body"
        path.write_bytes(body)
        running, missing = _start(PEERS, path, task)
    for kind, peer in list(running.items()):
        if peer.census != ours:
            missing[kind] = f"its translation has {peer.census}, ours {ours}"
            running.pop(kind).stop()
    return running, missing


def rows(running: dict[str, Peer], missing: dict[str, str], base: str, limits: dict[str, float]) -> list[Row]:
    """Peers against ours: a ratio over 1 is how many times faster ours is."""
    measured = {kind: Row(peer.name, base, min_ratio=limits.get(kind)) for kind, peer in running.items()}
    unmeasured = {
        kind: Row(kind, base, min_ratio=limits.get(kind), missing=why, excused=not wanted())
        for kind, why in missing.items()
    }
    return [(measured | unmeasured)[kind] for kind in PEERS]


def _start(kinds: Iterable[str], body: Path, task: str) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that run, and for the others why not."""
    running: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for kind in kinds:
        try:
            running[kind] = Peer(kind, body, task)
        except (PeerError, OSError, subprocess.SubprocessError) as error:
            missing[kind] = str(error)
    return running, missing


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return lines[-1][:200] if lines else "no reason given"
