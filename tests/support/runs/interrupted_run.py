"""A test that starts one of everything, says so, and waits: test_run_folder.py runs it and ends the run half-way.

Its name keeps it out of every other run. What it says goes to the port PORT, and it goes on when that connection ends.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from llama.server import missing, serving
from mcp_servers.serving import over_http
from support.gateway.gateway_process import process
from support.runs import run_watcher
from support.runs.run_folder import memory_folder
from support.store import servers
from toolglot import simulator

SLEEPER = "import time; print(flush=True); time.sleep(3600)"
DEAF = f"import signal; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; {SLEEPER}"


def test_one_of_everything(tmp_path: Path) -> None:
    started = {}
    for name, program in (("postgres", servers.postgres_programs()), ("redis", servers.redis_program())):
        if program is not None:
            started[name] = getattr(servers, name)().pid
    command = [sys.executable, "-c", DEAF if "IS_DEAF" in os.environ else SLEEPER]
    stranger = subprocess.Popen(command, stdout=subprocess.PIPE, env={}, cwd=tmp_path)
    assert stranger.stdout is not None
    stranger.stdout.readline()
    started["one that does not know of the run"] = stranger.pid
    folders = [tempfile.mkdtemp(), tempfile.mkdtemp(dir=memory_folder()), str(tmp_path)]
    with over_http() as (_, mcp), simulator.serve() as simulated, process(tmp_path, simulated) as gateway:
        started |= {"mcp": mcp.pid, "gateway": gateway.popen.pid}
        if missing():
            _wait(started, folders)
        else:
            with serving() as llama:
                _wait({**started, "llama.cpp": llama.pid}, folders)
    raise AssertionError("as it should be: a run that fails leaves nothing behind either")


def _wait(started: dict[str, int], folders: list[str]) -> None:
    message = {"started": started, "folders": folders, "run": os.environ[run_watcher.MARK], "worker": os.getpid()}
    with socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))) as connection:
        connection.sendall(json.dumps(message).encode() + b"\n")
        assert connection.recv(1) == b""
