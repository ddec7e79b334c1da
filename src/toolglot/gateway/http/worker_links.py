"""What all workers know together: who is asked for metrics or for past requests asks the others too.

Each worker listens on a Unix socket in a folder that only their user can enter. A question is a line of JSON; its
answer is JSON up to the end of the connection.

Laws: a worker that does not answer in time is left out, and nobody waits for it longer. What a client key may see of
another worker's requests is what it may see of this one's: the other one looks, by the same key.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot.gateway.observability.record_text import describe, summarize
from toolglot.gateway.observability.request_log import RequestLog

PATIENCE: Final = 2.0
"""Seconds that another worker has."""
MAX_ANSWER: Final = 64 * 1024 * 1024
MAX_LISTED: Final = 100
_END: Final = ".sock"

Question = dict[str, str | None]
"""`ask`: what for; `client`: whose requests, None: all; `name`: the id of one."""


class WorkerLinks:
    """The other workers, and this one as they see it."""

    def __init__(self, folder: str, number: int) -> None:
        self._folder = Path(folder)
        self._number = number
        self._request_log: RequestLog | None = None
        self._text: Callable[[], bytes] = bytes
        self._server: asyncio.Server | None = None

    async def start(self, request_log: RequestLog, text: Callable[[], bytes]) -> None:
        """Answer from now on: of the requests that `request_log` remembers, and the metrics of `text`."""
        self._request_log, self._text = request_log, text
        own = self._folder / f"{self._number}{_END}"
        try:
            own.unlink(missing_ok=True)  # of the one before, which was killed
            self._server = await asyncio.start_unix_server(self._serve, own)
        except OSError as error:  # such as a path that is too long: it serves all the same
            request_log.say(f"other workers cannot ask this one what it knows: {error.strerror or error}")

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            (self._folder / f"{self._number}{_END}").unlink(missing_ok=True)
            self._server = None

    # --- what is asked from outside -----------------------------------------------------------------

    async def metrics(self) -> bytes:
        """The metrics of all workers, each series with the number of its worker."""
        found = {self._number: self._text().decode(), **await self._ask({"ask": "metrics"})}
        return labelled({number: text for number, text in sorted(found.items()) if isinstance(text, str)})

    async def requests(self, client: str | None) -> list[Any]:
        """The last requests of a client, or of all, at whichever worker, the latest first."""
        question: Question = {"ask": "requests", "client": client}
        lists = [self._known(question), *(await self._ask(question)).values()]
        every = [summary for summaries in lists if isinstance(summaries, list) for summary in summaries]
        return sorted(every, key=lambda summary: -float(summary["time"]))[:MAX_LISTED]

    async def request(self, name: str, client: str | None) -> Any:
        """All of one request; None: no worker knows it."""
        question: Question = {"ask": "request", "client": client, "name": name}
        if (own := self._known(question)) is not None:
            return own
        return next((page for page in (await self._ask(question)).values() if page is not None), None)

    # --- between workers ----------------------------------------------------------------------------

    async def _ask(self, question: Question) -> dict[int, Any]:
        """What each of the others says."""
        places = {int(path.stem): path for path in self._folder.glob(f"*{_END}") if path.stem.isdigit()}
        others = {number: path for number, path in places.items() if number != self._number}
        answers = await asyncio.gather(*(_asked(path, question) for path in others.values()))
        return {number: said for number, said in zip(others, answers, strict=True) if said is not None}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, msgspec.MsgspecError):
            async with asyncio.timeout(PATIENCE):
                question = msgspec.json.decode(await reader.readline(), type=Question)
                writer.write(msgspec.json.encode(self._known(question)))
                await writer.drain()
        writer.close()

    def _known(self, question: Question) -> Any:
        """What this worker itself knows."""
        asked, client = question.get("ask"), question.get("client")
        if asked == "metrics":
            return self._text().decode()
        if self._request_log is None:
            return None
        if asked == "requests":
            return [summarize(record) for record in self._request_log.latest(client, MAX_LISTED)]
        record = self._request_log.find(question.get("name") or "", client)
        return describe(record) if record is not None else None


async def _asked(path: Path, question: Question) -> Any:
    """The answer of one worker; None: it has none, or none in time."""
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(msgspec.json.encode(question) + b"\n")
                pieces, size = [], 0
                while (piece := await reader.read(1 << 20)) and size <= MAX_ANSWER:
                    pieces.append(piece)
                    size += len(piece)
            finally:
                writer.close()
        return msgspec.json.decode(b"".join(pieces))
    except (OSError, TimeoutError, ValueError, RecursionError):
        return None


def labelled(texts: dict[int, str]) -> bytes:
    """The metrics of several workers as one text: a family once, a series for each worker."""
    families: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    for number, text in texts.items():
        name = ""
        for line in text.splitlines():
            if line.startswith("#"):
                name = line.split(" ", 3)[2]
                if number == next(iter(texts)) or name not in families:
                    heads.setdefault(name, []).append(line)
                continue
            families.setdefault(name, []).append(_with_worker(line, number))
    lines = [line for name, series in families.items() for line in (*dict.fromkeys(heads[name]), *series)]
    return ("\n".join(lines) + "\n").encode()


def _with_worker(line: str, number: int) -> str:
    before, brace, after = line.partition("{")
    if brace:
        return f'{before}{{worker="{number}",{after}'
    name, _, value = line.partition(" ")
    return f'{name}{{worker="{number}"}} {value}'
