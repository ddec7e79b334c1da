"""Several processes that serve one port, and the one that looks after them.

    supervisor ── holds the listening socket, starts N workers, starts those anew that die
      ├─ worker 1 ─┐
      └─ worker 2 ─┴─ take connections from that socket, share the store, write to one log

A worker is `toolglot serve` itself, as a new process that is given the socket and one end of a pipe. The pipe ends with
the supervisor: a worker whose supervisor has gone ends too, in order.

Laws: a connection waits in the socket while a worker is started anew, and is lost with none but the worker that has
taken it. Workers that die at once are started ever more slowly. The supervisor hands on the signals that it gets, and
ends when its last worker has.
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

VARIABLE: Final = "TOOLGLOT_WORKER"
"""What tells a process that it is a worker: its number, the two descriptors that it inherits, and a folder."""
MAX_WORKERS: Final = 256
YOUNG_SECONDS: Final = 10.0
"""A worker that dies before this died of its start."""
FIRST_PAUSE: Final = 0.1
MAX_PAUSE_SECONDS: Final = 30.0
KILL_SECONDS: Final = 15.0
"""That workers have beyond their time to drain."""
USAGE_ERROR: Final = 2
_LOOK_SECONDS: Final = 1.0


class WorkerSettings(Struct, frozen=True):
    """What a worker is given."""

    number: int
    listening: int
    """The descriptor of the socket."""
    life: int
    """That of the pipe, which ends with the supervisor."""
    folder: str
    """Where workers meet; empty: nowhere."""

    def socket(self) -> socket.socket:
        return socket.socket(fileno=self.listening)

    def end_with_supervisor(self) -> None:
        """From now on this process is told to stop when its supervisor has gone."""

        def wait() -> None:
            with contextlib.suppress(OSError):
                while os.read(self.life, 1):
                    pass
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait, name="supervisor", daemon=True).start()


def place_in(environ: MutableMapping[str, str]) -> WorkerSettings | None:
    """The place of this process among workers, which is taken out of the environment; None: it is no worker."""
    given = environ.pop(VARIABLE, "")
    try:
        numbers, _, folder = given.partition(" ")
        number, listening, life = map(int, numbers.split(","))
    except ValueError:
        return None
    return WorkerSettings(number, listening, life, folder)


class Slot:
    """One of the workers: the process, and when the next one may be started.

    empty ── start ──▶ running ── it dies ──▶ empty, until `next_start`
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.begun: float = 0.0
        self.next_start: float = 0.0
        self.deaths: int = 0
        """Of young ones, in a row."""

    def died(self, now: float) -> float:
        """The pause before the next start."""
        self.process = None
        self.deaths = self.deaths + 1 if now - self.begun < YOUNG_SECONDS else 0
        pause = min(FIRST_PAUSE * 2 ** min(self.deaths, 16), MAX_PAUSE_SECONDS) if self.deaths else 0.0
        self.next_start = now + pause
        return pause


class Supervisor:
    """Starts workers, and starts them anew."""

    def __init__(
        self,
        words: Sequence[str],
        count: int,
        sock: socket.socket,
        *,
        drain_seconds: float,
        say: Callable[[str], None],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`words`: what follows `toolglot` on the command line of a worker."""
        if not hasattr(os, "fork"):
            raise InputError("several workers need Linux, macOS or another Unix", path="--workers")
        self._words = [sys.executable, "-m", "toolglot", *words]
        self._sock = sock
        self._drain_seconds = drain_seconds
        self._say = say
        self._environ = dict(os.environ if environ is None else environ)
        self._slots = [Slot(number) for number in range(1, count + 1)]
        self._signals: list[int] = []
        """That have come and are not yet handed on."""
        self._stopped = 0.0
        """When it was told to stop; 0: it was not."""
        self._code = 0
        self._life = -1
        """The end of the pipe that workers read."""
        self._folder = ""

    def run(self) -> int:
        """Until a signal ends it; the exit code."""
        wakes, wake = os.pipe()
        self._life, life = os.pipe()
        for end in (wakes, wake):
            os.set_blocking(end, False)
        before = {number: signal.signal(number, self._heard) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        woken = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        try:
            self._folder = self._made_folder()
            while self._look(time.monotonic()):
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

    def _made_folder(self) -> str:
        """For this user only. Without one, workers do not know of each other."""
        try:
            return tempfile.mkdtemp(prefix="toolglot-")
        except OSError as error:
            self._say(f"each worker shows its own metrics and requests only: {error.strerror or error}")
            return ""

    def _heard(self, number: int, _frame: object) -> None:
        self._signals.append(number)

    def _pause(self, now: float) -> float:
        """How long nothing can happen that no signal tells of."""
        due = [slot.next_start - now for slot in self._slots if slot.process is None and not self._stopped]
        return max(0.0, min([_LOOK_SECONDS, *due]))

    def _look(self, now: float) -> bool:
        """Do what is to be done now; whether there is still something to look after."""
        while self._signals:
            self._hand_on(self._signals.pop(0), now)
        for slot in self._slots:
            if slot.process is not None and slot.process.poll() is not None:
                self._bury(slot, slot.process.returncode, now)
        if not self._stopped:
            for slot in self._slots:
                if slot.process is None and slot.next_start <= now:
                    self._start(slot, now)
            return True
        if now - self._stopped > self._drain_seconds + KILL_SECONDS:
            self._kill()
        return any(slot.process is not None for slot in self._slots)

    def _start(self, slot: Slot, now: float) -> None:
        listening = self._sock.fileno()
        place = f"{slot.number},{listening},{self._life} {self._folder}"
        slot.begun, slot.starts = now, slot.starts + 1
        slot.process = subprocess.Popen(  # noqa: S603 - this program itself
            self._words,
            env={**self._environ, VARIABLE: place},
            stdin=subprocess.DEVNULL,
            pass_fds=(listening, self._life),
            process_group=0,  # a Ctrl-C is for the supervisor, who hands it on once
        )

    def _bury(self, slot: Slot, code: int, now: float) -> None:
        """A worker has ended."""
        is_first = slot.starts == 1 and now - slot.begun < YOUNG_SECONDS
        pause = slot.died(now)
        if self._stopped:
            self._code = self._code or int(code not in (0, -signal.SIGTERM, -signal.SIGINT))
            return
        if code == USAGE_ERROR and is_first:  # it has said why, and the next one would say the same
            self._code = USAGE_ERROR
            self._hand_on(signal.SIGTERM, now)
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        when = f"in {pause:g} s" if pause else "now"
        self._say(f"worker {slot.number} {how}: another one is started {when}")

    def _hand_on(self, number: int, now: float) -> None:
        """Tell all workers to stop, or to hurry. Nobody listens any more when the last of them has ended."""
        self._stopped = self._stopped or now
        self._sock.close()
        for slot in self._slots:
            if slot.process is not None:
                slot.process.send_signal(number)

    def _kill(self) -> None:
        for slot in self._slots:
            if slot.process is not None:
                self._say(f"worker {slot.number} did not end in time and is killed")
                slot.process.kill()
