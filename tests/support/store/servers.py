"""Real servers for the tests of stores: Postgres and Redis, each started when a test first asks for it.

A server listens on a free port of the loopback address, keeps its files in a folder of its own, writes to the disk as
it would in production, and is ended when the test run is over (run_folder.py): one of each for a worker of the run at
most. Where the programs are missing, tests that use them are skipped.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

PASSWORD = "hunter2-%2F@"  # noqa: S105 — of a server that lives as long as a test run
WRITTEN = "hunter2-%252F%40"
"""The same as a part of an address."""
PATIENCE = 120.0


class Server:
    """A program that can be ended, killed and started again on the same port, with the same files."""

    def __init__(
        self,
        words: list[str],
        port: int,
        folder: Path,
        answers: Callable[[], bool],
        last: signal.Signals,
        user: str | None = None,
    ) -> None:
        self.words = words
        self.port = port
        self.folder = folder
        self._answers = answers
        self._last = last
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            self.words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=self._user, cwd=self.folder
        )
        log.close()
        end = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.end(signal.SIGKILL)
                raise RuntimeError(f"{self.words[0]}: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def end(self, how: signal.Signals) -> None:
        """By its id, and only if it is still there; returns when what it has started is gone too."""
        if self._process is None or self._process.poll() is not None:
            return
        own = Path(f"/proc/{self._process.pid}")
        started = [Path("/proc", number) for number in (own / "task" / own.name / "children").read_text().split()]
        self._process.send_signal(how)
        self._process.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while any(each.exists() for each in started) and time.monotonic() < end:
            time.sleep(0.01)

    @contextmanager
    def halted(self) -> Iterator[None]:
        """It and the processes that it has started do nothing until the end of the block."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        processes = [self.pid, *map(int, children)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def remove(self) -> None:
        self.end(self._last)
        shutil.rmtree(self.folder)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def folder_for(name: str, user: str | None) -> Path:
    """Where only that user may write."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    if user is not None:
        shutil.chown(folder, user)
    return folder


# --- Postgres ---------------------------------------------------------------------------------------


def postgres_programs() -> Path | None:
    """The newest that there is."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def postgres_user() -> str | None:
    """Postgres refuses to be run by root: then it is run by one who may nothing."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


@cache
def postgres() -> Server:
    return start_postgres()


def start_postgres(host: str = "127.0.0.1", within: Sequence[str] = ()) -> Server:
    """A server of one's own. `within`: the words of a command that runs it elsewhere, where it has that address."""
    programs, user, folder = _postgres_folder()
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)
    data = folder / "data"
    made = [str(programs / "initdb"), "-D", str(data), "-U", "toolglot", "-E", "UTF8", "--locale=C.UTF-8"]
    made += ["-A", "scram-sha-256", f"--pwfile={folder / 'password'}"]
    subprocess.run(made, check=True, capture_output=True, user=user, cwd=folder)
    if host != "127.0.0.1":
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet scram-sha-256\n")
    return _run_postgres(programs, folder, user, host, within)


def start_postgres_standby(primary: Server) -> Server:
    """A standby that streams from a server, and has all that it has."""
    programs, user, folder = _postgres_folder()
    made = [str(programs / "pg_basebackup"), "-h", "127.0.0.1", "-p", str(primary.port), "-U", "toolglot", "-R"]
    made += ["-D", str(folder / "data"), "-X", "stream", "-c", "fast"]
    environ = {**os.environ, "PGPASSWORD": PASSWORD}
    subprocess.run(made, check=True, capture_output=True, user=user, cwd=folder, env=environ)
    (folder / "data").chmod(0o700)
    return _run_postgres(programs, folder, user)


def _postgres_folder() -> tuple[Path, str | None, Path]:
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no Postgres server is installed (Debian: postgresql)")
    user = postgres_user()
    return programs, user, folder_for("postgres", user)


def _run_postgres(
    programs: Path, folder: Path, user: str | None, host: str = "127.0.0.1", within: Sequence[str] = ()
) -> Server:
    port = free_port()
    settings = {"listen_addresses": host, "unix_socket_directories": "", "shared_buffers": "32MB", "fsync": "on"}
    words = [str(programs / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
    words += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    if within and user is not None:  # who may run it elsewhere is root: the program itself is not
        words = [*within, "setpriv", f"--reuid={user}", "--clear-groups", *words]
        user = None

    def answers() -> bool:
        ready = [str(programs / "pg_isready"), "-q", "-h", host, "-p", str(port)]
        return subprocess.run(ready, check=False).returncode == 0

    return Server(words, port, folder, answers, signal.SIGQUIT, user)  # at once: its files are not needed


def postgres_url(folder: Path) -> str:
    """A schema for each folder: what is kept under one is not seen under another."""
    return f"postgres://toolglot:{WRITTEN}@127.0.0.1:{postgres().port}/postgres?schema=t_{named(folder)}"


# --- Redis ------------------------------------------------------------------------------------------


def redis_program() -> str | None:
    return shutil.which("redis-server")


def start_redis(*settings: str, host: str = "127.0.0.1", within: Sequence[str] = ()) -> Server:
    program = redis_program()
    if program is None:
        pytest.skip("no Redis server is installed (Debian: redis-server)")
    folder, port = folder_for("redis", None), free_port()
    words = [*within, program, "--port", str(port), "--bind", host, "--dir", str(folder), "--requirepass", PASSWORD]

    def answers() -> bool:
        try:
            with socket.create_connection((host, port), 1) as asking:
                asking.sendall(f"AUTH {PASSWORD}\r\nPING\r\n".encode())
                asking.shutdown(socket.SHUT_WR)
                return b"+PONG" in asking.makefile("rb").read()
        except OSError:
            return False

    return Server([*words, *settings], port, folder, answers, signal.SIGTERM)


@cache
def redis() -> Server:
    return start_redis("--appendonly", "yes", "--appendfsync", "always", "--save", "")


def redis_url(folder: Path) -> str:
    """A prefix for each folder."""
    return f"redis://:{WRITTEN}@127.0.0.1:{redis().port}/0?prefix=t_{named(folder)}"


def named(folder: Path) -> str:
    return sha256(str(folder).encode()).hexdigest()[:16]
