"""What an answer means: accepted, refused, broken, or nothing that can be told.

Law: pure. Whatever the bytes are, there is a verdict and no exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from toolglot.conversation import Failure, Reply
from toolglot.conversation.events import Accumulator
from toolglot.discovery.secrecy import Secrets, one_line
from toolglot.errors import InputError
from toolglot.jsontext import parse
from toolglot.limits import Limits
from toolglot.protocols.base import codec
from toolglot.protocols.errors.bodies import message_of_page
from toolglot.protocols.framing.text_frames import Frame

Verdict = Literal["accepted", "refused", "broke", "busy", "denied", "absent", "unclear"]
"""An answer; the request is at fault; the server failed over it; come back later; the key is at fault; there is nothing
at this address; nothing can be said."""

MOST_FRAMES: Final = 5_000
_LIMITS: Final = Limits(max_bytes=8 * 1024 * 1024, max_depth=100, max_nodes=200_000)
_BUSY: Final = frozenset({"rate_limit", "overloaded", "timeout", "unreachable"})
_DENIED: Final = frozenset({"auth", "permission", "billing"})
_BESIDE: Final = frozenset({"content_filter", "bad_output", "context_overflow"})
"""Failures that say nothing of the one thing that was tried: what the model wrote, or how little fits into it."""
_REFUSALS: Final = frozenset({400, 404, 405, 406, 411, 413, 415, 416, 417, 422, 501})


class ParsedReply(Struct, frozen=True, kw_only=True):
    """An answer, understood as far as it can be. It holds no secrets."""

    name: str = ""
    """Under which it is kept as evidence."""
    status: int = 0
    headers: Mapping[str, str] = {}
    value: Any = None
    """The JSON value; None where it is none, and for a stream."""
    text: str = ""
    """The beginning of what came, where it is not JSON."""
    frames: tuple[Frame, ...] = ()
    """The events of a stream."""
    reply: Reply | None = None
    failure: Failure | None = None
    verdict: Verdict = "unclear"
    problem: str = ""
    """Why nothing can be told, or what is odd about the answer."""
    cut: bool = False

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"

    @property
    def refused(self) -> bool:
        return self.verdict in ("refused", "broke")

    @property
    def words(self) -> str:
        """What the endpoint said was wrong, in a line."""
        said = self.failure.message if self.failure is not None else ""
        return one_line(said or self.problem)


def understood(
    protocol: str,
    status: int,
    headers: Mapping[str, str],
    data: bytes,
    secrets: Secrets,
    *,
    stream: bool = False,
    cut: bool = False,
) -> ParsedReply:
    """What an answer of these bytes means."""
    clean = {name.lower()[:100]: one_line(secrets.in_text(value), 300) for name, value in list(headers.items())[:100]}
    data = secrets.in_bytes(data)
    if stream and 200 <= status < 300 and not _is_json(clean, data):
        return _of_stream(protocol, status, clean, data, secrets, cut=cut)
    value = _parsed(data)
    value = secrets.cleaned(value)
    text = "" if value is not None else one_line(secrets.in_text(data[:4000].decode(errors="replace")), 500)
    failure = codec(protocol).errors.decode(status, value if isinstance(value, dict) else data[:100_000], clean)
    reply = _reply(protocol, value) if failure is None and isinstance(value, dict) else None
    problem = _oddity(status, value, text, clean, has_reply=reply is not None, cut=cut) if failure is None else ""
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


def unheard(problem: str, kind: str = "") -> ParsedReply:
    """There was no answer."""
    return ParsedReply(verdict="busy" if kind == "rate_limit" else "unclear", problem=one_line(problem, 300))


def _is_json(headers: Mapping[str, str], data: bytes) -> bool:
    """Whether a whole answer came where a stream was asked for."""
    return (
        "json" in headers.get("content-type", "")
        and not data.startswith((b"data:", b"event:", b"["))
        and ("ndjson" not in headers.get("content-type", ""))
    )


def _parsed(data: bytes) -> Any:
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
    if failure.kind in _BESIDE:
        return "unclear"
    if status in (404, 405) and not _is_about_model(failure):
        return "absent"
    if status in _REFUSALS or failure.kind in ("bad_request", "too_large", "not_found"):
        return "refused"
    return "broke" if status >= 500 or failure.in_band else "unclear"


def _is_about_model(failure: Failure) -> bool:
    """A 404 that says that there is no such model is an answer of the protocol. One that repeats the address, in which
    that word may stand, is none."""
    said = f"{failure.message[:2000]} {failure.code}".lower()
    return any("model" in word for word in said.split() if not _is_address(word))


def _is_address(word: str) -> bool:
    return word.strip("\"'`(<").startswith("/") or "://" in word or "/models" in word


def _oddity(status: int, value: Any, text: str, headers: Mapping[str, str], *, has_reply: bool, cut: bool) -> str:
    if cut:
        return "the answer was longer than is read"
    if has_reply:
        return ""
    kind = headers.get("content-type", "none").partition(";")[0]
    if value is None:
        begun = f": {message_of_page(text)[:80]}" if text else ""
        return f"status {status} with {kind or 'no'} content that is not JSON{begun}"
    return f"status {status} with JSON that is no reply of this protocol"


def _of_stream(
    protocol: str, status: int, headers: dict[str, str], data: bytes, secrets: Secrets, *, cut: bool
) -> ParsedReply:
    frames, problem = _frames(protocol, data)
    frames = tuple(
        Frame(secrets.in_bytes(frame.data), frame.name, secrets.in_bytes(frame.raw)) for frame in frames[:MOST_FRAMES]
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
    said = whole.reply if has_any and failure is None else None
    if not has_any and not problem:
        problem = f"no events in a stream of {headers.get('content-type', 'no type')}"
    is_answer = said is not None and (said.stop is not None or bool(said.turn.blocks))
    verdict: Verdict = "accepted" if is_answer else _verdict(status, failure, has_reply=False)
    return ParsedReply(
        status=status,
        headers=headers,
        frames=frames,
        reply=said,
        failure=failure,
        verdict="unclear" if cut else verdict,
        problem=problem or ("the stream was longer than is read" if cut else ""),
        text=one_line(secrets.in_text(data[:2000].decode(errors="replace")), 500),
        cut=cut,
    )


def _frames(protocol: str, data: bytes) -> tuple[tuple[Frame, ...], str]:
    framer = codec(protocol).stream.framer()
    try:
        return (*framer.feed(data), *framer.finish()), ""
    except InputError as error:
        return (), f"the stream cannot be read: {error.message}"
