"""A process that holds a session and does what its standard input says, line by line.

python claim_holder.py FILE LEASE [HOLDER]
"""

from __future__ import annotations

import asyncio
import sys

from toolglot.conversation import Text, Turn
from toolglot.runtime.log.session_log import SessionLog, SessionTakenError
from toolglot.store import SqliteStore

ID = "shared"


async def main(file: str, lease: float, holder: str | None) -> None:
    store = SqliteStore(file)
    log = await SessionLog.create(store, id=ID, lease=lease, holder=holder)
    print("held", flush=True)  # noqa: T201
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        try:
            await log.add_turn(Turn("user", (Text(line),)))
            print("written", flush=True)  # noqa: T201
        except SessionTakenError as error:
            print(f"taken {error.host} {error.pid} {len(log.history)}", flush=True)  # noqa: T201
    await log.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
