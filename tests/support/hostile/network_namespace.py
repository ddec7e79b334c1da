"""A network of its own for a server, at the other end of a cable that can be cut: packets are lost without a notice.

    with network_namespace() as far:
        server = start_redis(host=far.address, within=far.command)
        far.cut(); …; far.join()

Needs root and `ip` (Debian: iproute2); tests that use it are skipped elsewhere.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_NUMBERS = itertools.count()


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


class FarNetwork:
    """`address` is the server's; the one on this side is the gateways' way to it."""

    def __init__(self) -> None:
        number = (os.getpid() * 7 + next(_NUMBERS)) % 16_000
        self.name = f"toolglot-{os.getpid()}-{number}"
        self._near, self._far = f"tg{number}a", f"tg{number}b"
        subnet = f"10.231.{number // 64}.{number % 64 * 4}".rsplit(".", 1)
        self._own = f"{subnet[0]}.{int(subnet[1]) + 1}"
        self.address = f"{subnet[0]}.{int(subnet[1]) + 2}"
        self.command = ("ip", "netns", "exec", self.name)

    def make(self) -> None:
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self._near, "type", "veth", "peer", "name", self._far, "netns", self.name)
        run("ip", "addr", "add", f"{self._own}/30", "dev", self._near)
        run("ip", "link", "set", self._near, "up")
        for words in (
            ("addr", "add", f"{self.address}/30", "dev", self._far),
            ("link", "set", self._far, "up"),
            ("link", "set", "lo", "up"),
        ):
            run(*self.command, "ip", *words)

    def cut(self) -> None:
        """What the server sends is lost from now on, and so nothing that it gets is acknowledged."""
        run(*self.command, "ip", "route", "add", "blackhole", f"{self._own}/32")

    def join(self) -> None:
        run(*self.command, "ip", "route", "del", "blackhole", f"{self._own}/32")

    def remove(self) -> None:
        for words in (("ip", "netns", "del", self.name), ("ip", "link", "del", self._near)):
            with contextlib.suppress(OSError):  # the cable goes with the network
                run(*words)


@contextmanager
def network_namespace() -> Iterator[FarNetwork]:
    if os.getuid() != 0:
        pytest.skip("a network namespace needs root")
    if shutil.which("ip") is None:
        pytest.skip("there is no `ip` here (Debian: iproute2)")
    far = FarNetwork()
    try:
        far.make()
    except OSError as error:
        far.remove()
        pytest.skip(f"no network namespace can be made here: {error}")
    try:
        yield far
    finally:
        far.remove()
