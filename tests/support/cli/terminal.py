"""A command in a real terminal: what it writes is read as it comes, keys are sent to it.

with in_terminal("chat") as screen:
    screen.expect("> ")
    screen.send("hello\\r")
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

CTRL_C = "\x03"
CTRL_D = "\x04"
PATIENCE = 120.0
"""Seconds after which a test that waits has failed."""
PRESS_SECONDS = 5.0
"""After which a key is pressed again."""

_BOOT = (
    "import os, sys\n"
    "fd = os.open(sys.argv[1], os.O_RDWR)\n"  # the first terminal that the leader of a session opens is its own
    "for to in (0, 1, 2): os.dup2(fd, to)\n"
    "os.execv(sys.executable, [sys.executable, '-m', 'toolglot', *sys.argv[2:]])\n"
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x01\x02]|\r")


class Screen:
    """What a command shows."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.raw = ""
        self._seen = 0

    @property
    def text(self) -> str:
        """Everything so far, without colours."""
        return _ESCAPES.sub("", self.raw)

    @property
    def new(self) -> str:
        """What came after what was expected last."""
        return self.text[self._seen :]

    def send(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def press(self, key: str, wanted: str) -> str:
        """Press a key until something comes of it. One that comes just before a line is waited for is read with the
        next: a person would press it again."""
        for _ in range(int(PATIENCE / PRESS_SECONDS)):
            self.send(key)
            try:
                return self.expect(wanted, seconds=PRESS_SECONDS)
            except AssertionError:
                continue
        return self.expect(wanted, seconds=0)

    def say(self, line: str) -> None:
        self.send(f"{line}\r")

    def expect(self, wanted: str, *, seconds: float = PATIENCE) -> str:
        """Read until something is there that was not expected before; what came until then."""
        end = time.monotonic() + seconds
        while (index := self.text.find(wanted, self._seen)) < 0:
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{wanted!r} did not come; there is:\n{self.text[-3000:]}")
        came = self.text[self._seen : index + len(wanted)]
        self._seen = index + len(wanted)
        return came

    def ended(self) -> int:
        """The exit code, when everything is read."""
        end = time.monotonic() + PATIENCE
        over = os.pidfd_open(self.process.pid)
        try:
            while over not in select.select([self._master, over], [], [], max(end - time.monotonic(), 0))[0]:
                if not self._read(end - time.monotonic()):
                    raise AssertionError(f"it did not end; there is:\n{self.text[-3000:]}")
        finally:
            os.close(over)
        while self._read(0):
            pass
        return self.process.wait()

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(seconds, 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError as error:  # Linux says so when the other side is closed
            if error.errno != errno.EIO:
                raise
            data = b""
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


@contextlib.contextmanager
def in_terminal(*words: str, cwd: Path, **environment: str) -> Iterator[Screen]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    name = os.ttyname(slave)
    process = subprocess.Popen(
        [sys.executable, "-c", _BOOT, name, *words],
        cwd=cwd,
        env={**os.environ, "TERM": "xterm", "PYTHONUTF8": "1", **environment},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Screen(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)
