"""Probes of streams: whether calls can be put together from what comes, and how one ends.

One stream proves a fault, and does not prove that there is none: what looks well is told, and settles nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import msgspec

from toolglot import profiles
from toolglot.conversation import Reply
from toolglot.discovery.bodies import TWO_CITIES, Body, user
from toolglot.discovery.findings import Finding
from toolglot.discovery.heard import ParsedReply
from toolglot.discovery.line import Question
from toolglot.discovery.probe import Probe, ProbeCase, Steps, UnclearError, finding, is_accepted
from toolglot.discovery.secrecy import one_line
from toolglot.protocols.base import get

REPLY_TOKENS: Final = 400
_OF_CALLS: Final = ("tool_calls", "function_call", "length")


def _ask(case: ProbeCase, **more: Any) -> Question:
    body = case.style.body(user(TWO_CITIES), limit=REPLY_TOKENS)
    if not get(case.protocol).stream_path:
        body["stream"] = True
    return Question(body={**body, **more}, about="a stream with calls", stream=True, reply_tokens=REPLY_TOKENS)


def _stream(case: ProbeCase) -> Steps:
    heard = yield _ask(case)
    if heard.cut:
        return [finding("streams.calls", "", False, heard, quirk="a stream does not end", note=heard.problem)]
    if heard.refused:
        return [finding("streams.calls", "", False, heard, quirk="it does not stream")]
    if not is_accepted(heard) or heard.reply is None:
        raise UnclearError(heard.words)
    if not heard.frames:
        return [finding("streams.calls", "", False, heard, quirk="a stream was asked for, and a whole reply came")]
    found = [finding("streams.calls", "", True, heard)]
    if case.style.is_chat:
        chunks = chunks_of(heard)
        found += _of_chunks(chunks, heard, heard.reply)
        found += yield from _usage(case, chunks, heard)
    elif heard.reply.usage is not None and heard.reply.usage.output_tokens is not None:
        found.append(finding("streams.usage", "stream.usage", "always", heard))
    return [*found, _of_end(case, heard)]


# --- Chat Completions -------------------------------------------------------------------------------


def chunks_of(heard: ParsedReply) -> list[Body]:
    """The chunks of a stream."""
    chunks = []
    for frame in heard.frames:
        try:
            value = msgspec.json.decode(frame.data) if frame.data.startswith(b"{") else None
        except (msgspec.DecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            chunks.append(value)
    return chunks


def _choices(chunks: list[Body]) -> Iterator[Body]:
    for chunk in chunks:
        choices = chunk.get("choices")
        yield from (choice for choice in (choices if isinstance(choices, list) else ()) if isinstance(choice, dict))


def call_pieces(chunks: list[Body]) -> list[Body]:
    """The pieces of calls, in their order."""
    found: list[Body] = []
    for choice in _choices(chunks):
        delta = choice.get("delta")
        pieces = delta.get("tool_calls") if isinstance(delta, dict) else None
        found += [piece for piece in (pieces if isinstance(pieces, list) else ()) if isinstance(piece, dict)]
    return found


def _function(piece: Body) -> Body:
    function = piece.get("function")
    return function if isinstance(function, dict) else {}


def _of_chunks(chunks: list[Body], heard: ParsedReply, reply: Reply) -> list[Finding]:
    pieces = call_pieces(chunks)
    if not pieces:
        return []
    functions = [_function(piece) for piece in pieces]
    begun = [piece for piece, function in zip(pieces, functions, strict=True) if function.get("name")]
    is_each_once = len(pieces) == len(reply.turn.calls)
    is_whole = is_each_once and all(function.get("arguments") for function in functions)
    found = [
        _of_index(pieces, heard),
        finding("streams.pieces", "stream.calls", "whole" if is_whole else "pieces", heard),
        *_of_reason(chunks, heard),
    ]
    if len(begun) > len(reply.turn.calls):
        found.append(finding("streams.names", "", True, heard, quirk="a stream repeats the names of its calls"))
    if not all(piece.get("id") for piece in begun):
        found.append(finding("streams.ids", "", False, heard, quirk="streamed calls come without an id"))
    if any(isinstance(function.get("arguments"), dict) for function in functions):
        found.append(finding("streams.arguments", "", "object", heard, quirk="streamed arguments come as an object"))
    return found


def _of_index(pieces: list[Body], heard: ParsedReply) -> Finding:
    indexes = {str(piece.get("index")) for piece in pieces}
    ids = {str(piece["id"]) for piece in pieces if piece.get("id")}
    if "None" in indexes:
        quirk = "streamed calls have no index"
        return finding("streams.index", "stream.index", "missing", heard, quirk=quirk)
    if len(ids) > 1 and len(indexes) == 1:
        quirk = "all streamed calls have the same index"
        return finding("streams.index", "stream.index", "zero", heard, quirk=quirk)
    note = f"{len(ids)} of them seen; one stream does not prove it"
    return finding("streams.index", "stream.index", "reliable", heard, settles=False, note=note)


def _of_reason(chunks: list[Body], heard: ParsedReply) -> list[Finding]:
    reasons = [str(choice["finish_reason"]) for choice in _choices(chunks) if choice.get("finish_reason")]
    if reasons and reasons[-1] in _OF_CALLS:
        return [finding("streams.reason", "stream.finish_reason", True, heard, settles=False)]
    told = f"ends with finish_reason {one_line(reasons[-1], 40)}" if reasons else "has no finish_reason"
    return [finding("streams.reason", "stream.finish_reason", False, heard, quirk=f"a stream with calls {told}")]


def _usage(case: ProbeCase, chunks: list[Body], heard: ParsedReply) -> Generator[Question, ParsedReply, list[Finding]]:
    if any(chunk.get("usage") for chunk in chunks):
        return [finding("streams.usage", "stream.usage", "always", heard)]
    asked = yield _ask(case, stream_options={"include_usage": True})
    is_told = asked.accepted and any(chunk.get("usage") for chunk in chunks_of(asked))
    quirk = "" if is_told else "a stream does not tell its tokens"
    return [finding("streams.usage", "stream.usage", "asked" if is_told else "never", heard, asked, quirk=quirk)]


def _of_end(case: ProbeCase, heard: ParsedReply) -> Finding:
    last = [frame for frame in heard.frames if frame.data][-1]
    end = profiles.get(get(case.protocol).provider).stream.ends_with
    if case.style.is_chat:
        is_there = last.data.strip() == end.encode()
    else:
        is_there = not end or last.name == end or end.encode() in last.data
    quirk = "" if is_there else f"a stream ends without {end}"
    return finding("streams.end", "stream.ends_with", end if is_there else "", heard, quirk=quirk)


PROBES: Final = (
    Probe(
        name="streams.calls",
        group="streams",
        question="how it streams calls",
        steps=_stream,
        keys=("stream.index", "stream.calls", "stream.usage", "stream.ends_with", "stream.finish_reason"),
        most=2,
        reply_tokens=REPLY_TOKENS,
        needs=("tools",),
    ),
)
