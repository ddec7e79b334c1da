"""Whether an idle connection can be reused, checked with a system call and not with the event loop.

If a server closes an idle connection, the end of input stays in the socket until the event loop reads it. So it is
checked before a request is sent: a request on a closed connection may or may not have reached the server, and a POST is
not sent twice.

Law: the check reads nothing and waits for nothing.
"""

from __future__ import annotations

import asyncio
import select
from typing import Final

_HAS_POLL: Final = hasattr(select, "poll")
"""Windows has none; its `select` takes any descriptor."""


def is_quiet(transport: asyncio.BaseTransport) -> bool:
    """Whether a connection is open and its server has sent nothing, not even the end."""
    if transport.is_closing():
        return False
    descriptor = _descriptor(transport)
    if descriptor < 0:
        return False
    try:
        if _HAS_POLL:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return not poll.poll(0)
        return not select.select([descriptor], [], [], 0)[0]
    except (OSError, ValueError):
        return False


def _descriptor(transport: asyncio.BaseTransport) -> int:
    sock = transport.get_extra_info("socket")
    return -1 if sock is None else int(sock.fileno())
