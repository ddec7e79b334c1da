"""Probes of streams: whether calls can be assembled from their pieces, and how a stream ends.

One stream can prove a fault, but not that there is none: a good stream is reported and settles nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import msgspec

from toolglot import profiles
from toolglot.conversation import Reply
from toolglot.discovery.bodies import TWO_CITIES, Body, user
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.findings import Finding
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import Probe, ProbeCase, Steps, UnclearError, finding, is_accepted
from toolglot.discovery.secret_masking import one_line
from toolglot.protocols.base import get

REPLY_TOKENS: Final = 400
_CALL_REASONS: Final = ("tool_calls", "function_call", "length")


def _stream_request(case: ProbeCase, **more: Any) -> ProbeRequest:
    body = case.style.body(user(TWO_CITIES), limit=REPLY_TOKENS)
    if not get(case.protocol).stream_path:
        body["stream"] = True
    return ProbeRequest(body={**body, **more}, about="a stream with calls", stream=True, reply_tokens=REPLY_TOKENS)


def _stream(case: ProbeCase) -> Steps:
    response = yield _stream_request(case)
    if response.cut:
        return [finding("streams.calls", "", False, response, quirk="a stream does not end", note=response.problem)]
    if response.refused:
        return [finding("streams.calls", "", False, response, quirk="it does not stream")]
    if not is_accepted(response) or response.reply is None:
        raise UnclearError(response.words)
    if not response.frames:
        return [finding("streams.calls", "", False, response, quirk="a request for a stream gets a whole reply")]
    found = [finding("streams.calls", "", True, response)]
    if case.style.is_chat:
        chunks = chunks_of(response)
        found += _chunk_findings(chunks, response, response.reply)
        found += yield from _usage(case, chunks, response)
    elif response.reply.usage is not None and response.reply.usage.output_tokens is not None:
        found.append(finding("streams.usage", "stream.usage", "always", response))
    return [*found, _end_finding(case, response)]


# --- Chat Completions -------------------------------------------------------------------------------


def chunks_of(response: ParsedReply) -> list[Body]:
    """The chunks of a stream."""
    chunks = []
    for frame in response.frames:
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


def _chunk_findings(chunks: list[Body], response: ParsedReply, reply: Reply) -> list[Finding]:
    pieces = call_pieces(chunks)
    if not pieces:
        return []
    functions = [_function(piece) for piece in pieces]
    started = [piece for piece, function in zip(pieces, functions, strict=True) if function.get("name")]
    is_each_once = len(pieces) == len(reply.turn.calls)
    is_whole = is_each_once and all(function.get("arguments") for function in functions)
    found = [
        _index_finding(pieces, response),
        finding("streams.pieces", "stream.calls", "whole" if is_whole else "pieces", response),
        *_finish_reason_findings(chunks, response),
    ]
    if len(started) > len(reply.turn.calls):
        found.append(finding("streams.names", "", True, response, quirk="a stream repeats the names of its calls"))
    if not all(piece.get("id") for piece in started):
        found.append(finding("streams.ids", "", False, response, quirk="streamed calls come without an id"))
    if any(isinstance(function.get("arguments"), dict) for function in functions):
        found.append(finding("streams.arguments", "", "object", response, quirk="streamed arguments come as an object"))
    return found


def _index_finding(pieces: list[Body], response: ParsedReply) -> Finding:
    indexes = {str(piece.get("index")) for piece in pieces}
    ids = {str(piece["id"]) for piece in pieces if piece.get("id")}
    if "None" in indexes:
        quirk = "streamed calls have no index"
        return finding("streams.index", "stream.index", "missing", response, quirk=quirk)
    if len(ids) > 1 and len(indexes) == 1:
        quirk = "all streamed calls have the same index"
        return finding("streams.index", "stream.index", "zero", response, quirk=quirk)
    note = f"{len(ids)} of them seen; one stream does not prove it"
    return finding("streams.index", "stream.index", "reliable", response, settles=False, note=note)


def _finish_reason_findings(chunks: list[Body], response: ParsedReply) -> list[Finding]:
    reasons = [str(choice["finish_reason"]) for choice in _choices(chunks) if choice.get("finish_reason")]
    if reasons and reasons[-1] in _CALL_REASONS:
        return [finding("streams.reason", "stream.finish_reason", True, response, settles=False)]
    ending = f"ends with finish_reason {one_line(reasons[-1], 40)}" if reasons else "has no finish_reason"
    return [finding("streams.reason", "stream.finish_reason", False, response, quirk=f"a stream with calls {ending}")]


def _usage(
    case: ProbeCase, chunks: list[Body], response: ParsedReply
) -> Generator[ProbeRequest, ParsedReply, list[Finding]]:
    if any(chunk.get("usage") for chunk in chunks):
        return [finding("streams.usage", "stream.usage", "always", response)]
    second = yield _stream_request(case, stream_options={"include_usage": True})
    has_usage = second.accepted and any(chunk.get("usage") for chunk in chunks_of(second))
    quirk = "" if has_usage else "a stream has no usage"
    return [finding("streams.usage", "stream.usage", "asked" if has_usage else "never", response, second, quirk=quirk)]


def _end_finding(case: ProbeCase, response: ParsedReply) -> Finding:
    last = [frame for frame in response.frames if frame.data][-1]
    end = profiles.get(get(case.protocol).provider).stream.ends_with
    if case.style.is_chat:
        is_there = last.data.strip() == end.encode()
    else:
        is_there = not end or last.name == end or end.encode() in last.data
    quirk = "" if is_there else f"a stream ends without {end}"
    return finding("streams.end", "stream.ends_with", end if is_there else "", response, quirk=quirk)


PROBES: Final = (
    Probe(
        name="streams.calls",
        question="how it streams calls",
        steps=_stream,
        keys=("stream.index", "stream.calls", "stream.usage", "stream.ends_with", "stream.finish_reason"),
        max_requests=2,
        reply_tokens=REPLY_TOKENS,
        needs=("tools",),
    ),
)
