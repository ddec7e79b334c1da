"""The end of a listening socket, without losing connections that were made.

When a socket is closed, the system resets connections that are made and not accepted yet: a proxy that has sent its
request on one cannot send it again. So, on Linux, packets that begin a connection are dropped first, and what is made
already is accepted. Whoever began one just now tries again after a second, and is refused before it has sent anything.
"""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
import sys
from typing import Final

SO_ATTACH_FILTER: Final = 26
TCP_INFO: Final = 11
_SYN_ACK: Final = 0x12
_SYN: Final = 0x02
_PROGRAM: Final = (
    (0x30, 0, 0, 13),  # the flags of the TCP header
    (0x54, 0, 0, _SYN_ACK),
    (0x15, 0, 1, _SYN),
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFF_FFFF),  # accept
)
"""In the language of the kernel's packet filters: code, where to go if so and if not, value."""
_UNACCEPTED: Final = slice(24, 28)
"""Where the system says how many connections wait to be accepted."""
MAX_STEPS: Final = 100
STEP_SECONDS: Final = 0.01
SHARED_SECONDS: Final = 0.3
"""In which the process that made the socket calls `drop_new`."""


async def accept_the_rest(sock: socket.socket, *, is_shared: bool = False) -> None:
    """Let no more connections be made, and return when those that are made were accepted.

    is_shared: other processes may go on with this socket, and the one that made it calls `drop_new` if they do not.
    """
    if is_shared:
        await asyncio.sleep(SHARED_SECONDS)
    elif not drop_new(sock):
        return
    for _ in range(MAX_STEPS):
        await asyncio.sleep(STEP_SECONDS)  # in which the event loop accepts
        if not _count_unaccepted(sock):
            return


def drop_new(sock: socket.socket) -> bool:
    """Drop packets that begin a connection. Returns whether that is possible here."""
    if sys.platform != "linux" or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _PROGRAM))
    try:
        sock.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(_PROGRAM), ctypes.addressof(program))
        )
    except OSError:  # a kernel without filters, or a sandbox
        return False
    return True


def _count_unaccepted(sock: socket.socket) -> int:
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 104)
        return int(struct.unpack("I", info[_UNACCEPTED])[0])
    except (OSError, struct.error):
        return 0
