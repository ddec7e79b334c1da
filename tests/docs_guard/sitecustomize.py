"""Every Python that runs a block of the docs loads this: no network but loopback, no writing outside the folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

_FOLDER = Path(os.environ["DOCS_FOLDER"]).resolve()
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_LOOPBACK = ("127.0.0.1", "::1", "localhost", "", "0.0.0.0", "::", None)  # noqa: S104 - compared, not bound


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if flags & _WRITES:
            _check_path(path)
    elif event in ("sqlite3.connect", "os.remove", "os.mkdir", "os.rename"):
        _check_path(arguments[0])
    elif event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple):
            _check_host(address[0])
    elif event == "socket.getaddrinfo":
        _check_host(arguments[0])


def _check_path(path: Any) -> None:
    if isinstance(path, int) or path in (":memory:", b":memory:", ""):
        return
    resolved = Path(os.fsdecode(path).removeprefix("file:").partition("?")[0]).resolve()
    if not resolved.is_relative_to(_FOLDER) and not resolved.is_relative_to("/dev"):
        raise RuntimeError(f"a block of the docs may not write outside of its folder: {resolved}")


def _check_host(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name not in _LOOPBACK:
        raise RuntimeError(f"a block of the docs may not use the network: {name}")


sys.addaudithook(_guard)
