"""What a response means: accepted, refused, failed, or unclear.

Law: pure. Whatever the bytes are, there is a verdict and no exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from toolglot.conversation import Failure, Reply
from toolglot.conversation.events import Accumulator
from toolglot.discovery.secret_masking import Secrets, one_line
from toolglot.errors import InputError
from toolglot.jsontext import parse
from toolglot.limits import Limits
from toolglot.protocols.base import codec
from toolglot.protocols.errors.bodies import message_of_page
from toolglot.protocols.framing.text_frames import Frame

Verdict = Literal["accepted", "refused", "broke", "busy", "denied", "absent", "unclear"]
"""It has a reply; the request is wrong; the server failed on it; try later; the key is wrong; nothing is at this URL;
nothing follows from it."""

MAX_FRAMES: Final = 5_000
_LIMITS: Final = Limits(max_bytes=8 * 1024 * 1024, max_depth=100, max_nodes=200_000)
_BUSY: Final = frozenset({"rate_limit", "overloaded", "timeout", "unreachable"})
_DENIED: Final = frozenset({"auth", "permission", "billing"})
_UNRELATED: Final = frozenset({"content_filter", "bad_output", "context_overflow"})
"""Failures that say nothing about the probe: they are about the model's output or its context."""
_REFUSALS: Final = frozenset({400, 404, 405, 406, 411, 413, 415, 416, 417, 422, 501})


class ParsedReply(Struct, frozen=True, kw_only=True):
    """A parsed response, without secrets."""

    name: str = ""
    """Its name in the evidence."""
    status: int = 0
    headers: Mapping[str, str] = {}
    value: Any = None
    """The JSON value; None if it is not JSON, and for a stream."""
    text: str = ""
    """The beginning of the body, if it is not JSON."""
    frames: tuple[Frame, ...] = ()
    """The events of a stream."""
    reply: Reply | None = None
    failure: Failure | None = None
    verdict: Verdict = "unclear"
    problem: str = ""
    """Why nothing follows from it, or what is odd about it."""
    cut: bool = False

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"

    @property
    def refused(self) -> bool:
        return self.verdict in ("refused", "broke")

    @property
    def words(self) -> str:
        """The endpoint's error message, in one line."""
        message = self.failure.message if self.failure is not None else ""
        return one_line(message or self.problem)


def parse_response(
    protocol: str,
    status: int,
    headers: Mapping[str, str],
    data: bytes,
    secrets: Secrets,
    *,
    stream: bool = False,
    cut: bool = False,
) -> ParsedReply:
    """What a response of these bytes means."""
    clean = {name.lower()[:100]: one_line(secrets.mask_text(value), 300) for name, value in list(headers.items())[:100]}
    data = secrets.mask_bytes(data)
    if stream and 200 <= status < 300 and not _is_json(clean, data):
        return _parse_stream(protocol, status, clean, data, secrets, cut=cut)
    value = _parse_json(data)
    value = secrets.clean(value)
    text = "" if value is not None else one_line(secrets.mask_text(data[:4000].decode(errors="replace")), 500)
    failure = codec(protocol).errors.decode(status, value if isinstance(value, dict) else data[:100_000], clean)
    reply = _reply(protocol, value) if failure is None and isinstance(value, dict) else None
    problem = _problem_of(status, value, text, clean, has_reply=reply is not None, cut=cut) if failure is None else ""
    return ParsedReply(
        status=status,
        headers=clean,
        value=value,
        text=text,
        reply=reply,
        failure=failure,
        verdict=_verdict(status, failure, has_reply=reply is not None),
        problem=problem,
        cut=cut,
    )


def no_response(problem: str, kind: str = "") -> ParsedReply:
    """There was no response."""
    return ParsedReply(verdict="busy" if kind == "rate_limit" else "unclear", problem=one_line(problem, 300))


def _is_json(headers: Mapping[str, str], data: bytes) -> bool:
    """Whether the response to a request for a stream is JSON."""
    return (
        "json" in headers.get("content-type", "")
        and not data.startswith((b"data:", b"event:", b"["))
        and ("ndjson" not in headers.get("content-type", ""))
    )


def _parse_json(data: bytes) -> Any:
    try:
        return parse(data, limits=_LIMITS).value if data[:64].lstrip()[:1] in (b"{", b"[") else None
    except InputError:
        return None


def _reply(protocol: str, value: dict[str, Any]) -> Reply | None:
    try:
        return codec(protocol).reply.decode(value)
    except (InputError, RecursionError):
        return None


def _verdict(status: int, failure: Failure | None, *, has_reply: bool) -> Verdict:
    if failure is None:
        return "accepted" if has_reply else "unclear"
    if failure.kind in _DENIED:
        return "denied"
    if failure.kind in _BUSY:
        return "busy"
    if failure.kind in _UNRELATED:
        return "unclear"
    if status in (404, 405) and not _is_about_model(failure):
        return "absent"
    if status in _REFUSALS or failure.kind in ("bad_request", "too_large", "not_found"):
        return "refused"
    return "broke" if status >= 500 or failure.in_band else "unclear"


def _is_about_model(failure: Failure) -> bool:
    """Whether a 404 is about the model, and so a response of the protocol. One that repeats the URL, which may have
    that word in it, is not."""
    message = f"{failure.message[:2000]} {failure.code}".lower()
    return any("model" in word for word in message.split() if not _is_url(word))


def _is_url(word: str) -> bool:
    return word.strip("\"'`(<").startswith("/") or "://" in word or "/models" in word


def _problem_of(status: int, value: Any, text: str, headers: Mapping[str, str], *, has_reply: bool, cut: bool) -> str:
    if cut:
        return "the response was longer than the limit"
    if has_reply:
        return ""
    kind = headers.get("content-type", "none").partition(";")[0]
    if value is None:
        start = f": {message_of_page(text)[:80]}" if text else ""
        return f"status {status} with {kind or 'no'} content that is not JSON{start}"
    return f"status {status} with JSON that is not a reply of this protocol"


def _parse_stream(
    protocol: str, status: int, headers: dict[str, str], data: bytes, secrets: Secrets, *, cut: bool
) -> ParsedReply:
    frames, problem = _frames(protocol, data)
    frames = tuple(
        Frame(secrets.mask_bytes(frame.data), frame.name, secrets.mask_bytes(frame.raw))
        for frame in frames[:MAX_FRAMES]
    )
    decoder = codec(protocol).stream.Decoder()
    whole = Accumulator()
    try:
        for frame in frames:
            whole.add(decoder.read(frame))
        whole.add(decoder.finish())
    except InputError as error:
        problem = problem or f"the stream cannot be read: {error.message}"
    has_any = any(frame.data for frame in frames)
    failure = whole.failure if has_any else None
    reply = whole.reply if has_any and failure is None else None
    if not has_any and not problem:
        problem = f"no events in a stream of {headers.get('content-type', 'no type')}"
    has_content = reply is not None and (reply.stop is not None or bool(reply.turn.blocks))
    verdict: Verdict = "accepted" if has_content else _verdict(status, failure, has_reply=False)
    return ParsedReply(
        status=status,
        headers=headers,
        frames=frames,
        reply=reply,
        failure=failure,
        verdict="unclear" if cut else verdict,
        problem=problem or ("the stream was longer than the limit" if cut else ""),
        text=one_line(secrets.mask_text(data[:2000].decode(errors="replace")), 500),
        cut=cut,
    )


def _frames(protocol: str, data: bytes) -> tuple[tuple[Frame, ...], str]:
    framer = codec(protocol).stream.framer()
    try:
        return (*framer.feed(data), *framer.finish()), ""
    except InputError as error:
        return (), f"the stream cannot be read: {error.message}"
