"""Several processes that serve one port, and their supervisor.

    supervisor ── holds the listening socket, starts N workers, and restarts those that die
      ├─ worker 1 ─┐
      └─ worker 2 ─┴─ take connections from that socket, share the store, write to one log

A worker is `toolglot serve` itself, as a new process that inherits the socket and one end of a pipe. The pipe ends with
the supervisor: a worker without its supervisor shuts down gracefully.

Laws: a connection waits in the socket while a worker is restarted, and is lost only with the worker that has accepted
it. Workers that die at once are restarted with growing pauses. The supervisor forwards the signals that it gets, and
ends after its last worker.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Final

from msgspec import Struct

from toolglot.errors import InputError
from toolglot.gateway.http.listening_end import drop_new

VARIABLE: Final = "TOOLGLOT_WORKER"
"""Set in a worker: its number, the two descriptors that it inherits, and a folder."""
MAX_WORKERS: Final = 256
YOUNG_SECONDS: Final = 10.0
"""A worker that dies within this time did not start."""
FIRST_PAUSE: Final = 0.1
MAX_PAUSE_SECONDS: Final = 30.0
KILL_SECONDS: Final = 15.0
"""Seconds that workers have after their time to drain."""
CLOSE_SECONDS: Final = 1.0
"""Seconds in which workers accept the last connections."""
USAGE_ERROR: Final = 2
_STEP_SECONDS: Final = 1.0


class WorkerSettings(Struct, frozen=True):
    """What the supervisor passes to a worker."""

    number: int
    listening: int
    """The descriptor of the socket."""
    life: int
    """That of the pipe, which ends with the supervisor."""
    folder: str
    """The folder of their sockets; empty: there is none."""

    def socket(self) -> socket.socket:
        return socket.socket(fileno=self.listening)

    def end_with_supervisor(self) -> None:
        """Stop this process when its supervisor has ended."""

        def wait() -> None:
            with contextlib.suppress(OSError):
                while os.read(self.life, 1):
                    pass
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait, name="supervisor", daemon=True).start()


def read_worker_settings(environ: MutableMapping[str, str]) -> WorkerSettings | None:
    """The settings of this worker, which are removed from the environment; None: it is not a worker."""
    text = environ.pop(VARIABLE, "")
    try:
        numbers, _, folder = text.partition(" ")
        number, listening, life = map(int, numbers.split(","))
    except ValueError:
        return None
    return WorkerSettings(number, listening, life, folder)


class Slot:
    """One of the workers: its process, and when the next one may be started.

    empty ── start ──▶ running ── it dies ──▶ empty, until `next_start`
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.begun: float = 0.0
        self.next_start: float = 0.0
        self.deaths: int = 0
        """Of young processes, in a row."""

    def mark_dead(self, now: float) -> float:
        """The pause before the next start."""
        self.process = None
        self.deaths = self.deaths + 1 if now - self.begun < YOUNG_SECONDS else 0
        pause = min(FIRST_PAUSE * 2 ** min(self.deaths, 16), MAX_PAUSE_SECONDS) if self.deaths else 0.0
        self.next_start = now + pause
        return pause


class Supervisor:
    """Starts workers, and replaces those that die."""

    def __init__(
        self,
        words: Sequence[str],
        count: int,
        sock: socket.socket,
        *,
        drain_seconds: float,
        lame_duck_seconds: float = 0.0,
        notice: Callable[[str], None],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`words`: the command line of a worker after `toolglot`."""
        if not hasattr(os, "fork"):
            raise InputError("several workers need Linux, macOS or another Unix", path="--workers")
        self._words = [sys.executable, "-m", "toolglot", *words]
        self._sock = sock
        self._lame_duck_seconds = lame_duck_seconds
        self._dropped = 0.0
        """When new connections were no longer made; 0: they are."""
        self._drain_seconds = lame_duck_seconds + drain_seconds
        self._notice = notice
        self._environ = dict(os.environ if environ is None else environ)
        self._slots = [Slot(number) for number in range(1, count + 1)]
        self._signals: list[int] = []
        """Signals that the workers have not got yet."""
        self._stopped = 0.0
        """When it got a signal to stop; 0: it got none."""
        self._code = 0
        self._life = -1
        """The end of the pipe that workers read."""
        self._folder = ""

    def run(self) -> int:
        """Run until a signal. Returns the exit code."""
        wakes, wake = os.pipe()
        self._life, life = os.pipe()
        for end in (wakes, wake):
            os.set_blocking(end, False)
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        woken = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        try:
            self._folder = self._make_folder()
            while self._step(time.monotonic()):
                select.select([wakes], [], [], self._pause(time.monotonic()))
                with contextlib.suppress(BlockingIOError):
                    os.read(wakes, 4096)
        finally:
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            for end in (wakes, wake, life, self._life):
                os.close(end)
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)
        return self._code

    def _make_folder(self) -> str:
        """A folder for this user only. Without one, workers cannot query each other."""
        try:
            return tempfile.mkdtemp(prefix="toolglot-")
        except OSError as error:
            self._notice(f"each worker shows its own metrics and requests only: {error.strerror or error}")
            return ""

    def _on_signal(self, number: int, _frame: object) -> None:
        self._signals.append(number)

    def _pause(self, now: float) -> float:
        """Seconds until the next step, unless a signal comes."""
        due = [slot.next_start - now for slot in self._slots if slot.process is None and not self._stopped]
        return max(0.0, min([_STEP_SECONDS, *due]))

    def _step(self, now: float) -> bool:
        """Handle signals and dead workers, and start new ones. Returns whether to go on."""
        while self._signals:
            self._signal_all(self._signals.pop(0), now)
        for slot in self._slots:
            if slot.process is not None and slot.process.poll() is not None:
                self._reap(slot, slot.process.returncode, now)
        if not self._stopped:
            for slot in self._slots:
                if slot.process is None and slot.next_start <= now:
                    self._start(slot, now)
            return True
        self._end_listening(now)
        if now - self._stopped > self._drain_seconds + KILL_SECONDS:
            self._kill()
        return any(slot.process is not None for slot in self._slots)

    def _start(self, slot: Slot, now: float) -> None:
        listening = self._sock.fileno()
        value = f"{slot.number},{listening},{self._life} {self._folder}"
        slot.begun, slot.starts = now, slot.starts + 1
        slot.process = subprocess.Popen(  # noqa: S603 - this program itself
            self._words,
            env={**self._environ, VARIABLE: value},
            stdin=subprocess.DEVNULL,
            pass_fds=(listening, self._life),
            process_group=0,  # a Ctrl-C is for the supervisor, which passes it on once
        )

    def _reap(self, slot: Slot, code: int, now: float) -> None:
        """A worker has ended."""
        is_first = slot.starts == 1 and now - slot.begun < YOUNG_SECONDS
        pause = slot.mark_dead(now)
        if self._stopped:
            self._code = self._code or int(code not in (0, -signal.SIGTERM, -signal.SIGINT))
            return
        if code == USAGE_ERROR and is_first:  # it has reported why, and the next one would do the same
            self._code = USAGE_ERROR
            self._signal_all(signal.SIGTERM, now)
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        when = f"in {pause:g} s" if pause else "now"
        self._notice(f"worker {slot.number} {how}; restarting it {when}")

    def _signal_all(self, number: int, now: float) -> None:
        """Send a signal to all workers: to stop, or to hurry."""
        self._stopped = self._stopped or now
        self._end_listening(now)
        for slot in self._slots:
            if slot.process is not None:
                slot.process.send_signal(number)

    def _end_listening(self, now: float) -> None:
        """After the lame-duck time: first no connection is made any more, then the workers accept what is made, and
        only then others are refused."""
        if now >= self._stopped + self._lame_duck_seconds and not self._dropped:
            drop_new(self._sock)
            self._dropped = now
        if self._dropped and now >= self._dropped + CLOSE_SECONDS:
            self._sock.close()

    def _kill(self) -> None:
        for slot in self._slots:
            if slot.process is not None:
                self._notice(f"worker {slot.number} did not end in time; killing it")
                slot.process.kill()
