"""Files for `toolglot inspect` as captures: requests, JSONL of them, captures, and sessions.

A request has no target of its own: it is shown for the one that the options name, or for its own provider, as `repair`
would send it, and marked as not sent (`sent` is false). A session, of toolglot or of a coding agent, is shown as the
request that continues it.

Law: everything in a file is untrusted, and secrets are masked. An error says in which file and line it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.cli.files.documents import STDIN, compact, located_error, read_whole
from toolglot.cli.files.session_requests import SessionRequest, session_request
from toolglot.cli.targets import Target, detect_protocol
from toolglot.conversation import Conversation, captures
from toolglot.conversation.report import Entry, order_by_gravity
from toolglot.errors import InputError, JSONError, ToolglotError, quote
from toolglot.limits import Limits
from toolglot.masking import mask
from toolglot.profiles import Overrides
from toolglot.translate.requests import ConvertedRequest, read_request, request_for
from toolglot.upstream.providers import PROVIDERS

MAX_BYTES: Final = 1024 * 1024 * 1024
MAX_CAPTURES: Final = 100_000
_LIMITS: Final = Limits(max_bytes=512 * 1024 * 1024)
_HEAD: Final = 64 * 1024
_LINES: Final = (".jsonl", ".ndjson")
_SESSIONS: Final = ("toolglot.session", "toolglot.conversation")
_HINT: Final = "a request, JSONL of requests, captures of a gateway, or a session"
_DEFAULT_TARGET: Final = "openai_chat"

Captured = dict[str, Any]


class CaptureReader(Struct, frozen=True):
    """Reads files as captures."""

    source: str = ""
    """The protocol of requests; empty: as it is detected."""
    target: Target | None = None
    """What requests are shown for; None: their own provider."""
    overrides: Overrides | None = None

    def read(self, name: str) -> list[Captured]:
        """The captures of a file."""
        session = None if name == STDIN else session_request(name, _head_of(name))
        if session is not None:
            return [self._agent_session(name, session)]
        data = read_whole(name, MAX_BYTES, hint="split the file")
        found: list[Captured] = []
        for line, text in _documents(name, data):
            if len(found) == MAX_CAPTURES:
                raise InputError(f"more than {MAX_CAPTURES} requests", path=f"{name}:{line}", hint="split the file")
            found.append(self._capture(name, line, text))
        if not found:
            raise InputError("file is empty", path=name, hint=_HINT)
        return found

    def _capture(self, name: str, line: int, data: bytes) -> Captured:
        where = f"{name}:{line}"
        value = _parse(name, line, data)
        if captures.FIELD in value:
            return _checked(value, where, f"{Path(name).name}:{line}")
        own = {
            captures.FIELD: captures.VERSION,
            "id": f"{Path(name).name}:{line}",
            "time": _changed(name),
            "path": where,
            "sent": False,
        }
        try:
            if value.get("format") in _SESSIONS:
                return {**own, **self._session(data)}
            return {**own, **self._request(value, data, where)}
        except InputError as error:
            path = where if error.path in ("", "$", where) else f"{where}: {error.path}"
            raise InputError(error.message, path=path, hint=error.hint) from None

    def _agent_session(self, name: str, found: SessionRequest) -> Captured:
        """A session of a coding agent as the request that continues it."""
        session, file = found.session, Path(name).name
        own: Captured = {
            captures.FIELD: captures.VERSION,
            "id": session.id or file,
            "time": round(session.updated, 3) or _changed(name),
            "path": name,
            "sent": False,
            "agent": " ".join(filter(None, (found.title, session.version))),
            "session": session.id,
            "client": found.title,
        }
        reader = replace(self, source=found.provider)
        captured = {**own, **reader._request(found.body, compact(found.body), name)}  # noqa: SLF001 - of this class
        if session.report:
            captured["report"] = [*_entries(session.report), *captured.get("report", ())]
        return captured

    # --- requests -----------------------------------------------------------------------------------

    def _request(self, value: dict[str, Any], data: bytes, where: str) -> Captured:
        source = self.source or detect_protocol(value, where, "--from").protocol or ""
        text = data.decode("utf-8", "replace").strip()
        received = read_request(
            text.encode("utf-8", "replace"), source=source, overrides=self.overrides, limits=_LIMITS
        )
        conversation = received.conversation
        fields: Captured = {
            "protocol": source,
            "model": conversation.model,
            "stream": conversation.options.stream is True,
            "request": mask(text),
        }
        target = self.target or Target(source, conversation.model)
        try:
            out = received.for_target(target.name, model=target.model or conversation.model)
        except ToolglotError as error:
            return {**fields, "error": mask(str(error))}
        return {**fields, **_sent(out)}

    def _session(self, data: bytes) -> Captured:
        """A session as the request that continues it."""
        from toolglot.runtime.log.documents import read_document  # noqa: PLC0415 - only sessions need the runtime

        document = read_document(data)
        conversation: Conversation = document.conversation
        upstream, _, model = (document.info.model or conversation.model).rpartition("/")
        target = self.target or Target(_target_of(upstream), model)
        out = request_for(conversation, target=target.name, model=target.model or model, overrides=self.overrides)
        body = mask(out.data.decode("utf-8", "replace"))
        found: Captured = {"protocol": out.target.name, "model": document.info.model, "request": body}
        found |= {"session": document.info.id, "client": "toolglot"}
        return {**found, **_sent(out)}


def _target_of(upstream: str) -> str:
    """The target of the upstream of a session."""
    name = upstream.rpartition("/")[2]
    return name if name in PROVIDERS else _DEFAULT_TARGET


def _sent(out: ConvertedRequest) -> Captured:
    """What a target is sent."""
    entries = order_by_gravity(out.report.entries)
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.gravity] = counts.get(entry.gravity, 0) + 1
    return {
        "target": out.target.name,
        "sent_model": out.model,
        "rendered": mask(out.data.decode("utf-8", "replace")),
        "report": _entries(entries),
        "changes": counts,
        "unchanged": not entries,
    }


def _entries(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [{**msgspec.to_builtins(entry), "reason": mask(entry.reason), "text": mask(str(entry))} for entry in entries]


# --- reading ----------------------------------------------------------------------------------------


def _documents(name: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    """The JSON documents of a file, each with its line."""
    lines = data.split(b"\n")
    full = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if Path(name).suffix.lower() in _LINES or (len(full) > 1 and _is_object(full[0][1])):
        yield from full
    elif full:
        yield full[0][0], data


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (ValueError, RecursionError):
        return False


def _parse(name: str, line: int, data: bytes) -> dict[str, Any]:
    try:
        value = jsontext.parse(data, limits=_LIMITS).value
    except JSONError as error:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        raise located_error(error, text, name, first_line=line, hint=_HINT) from None
    except InputError as error:
        raise InputError(error.message, path=f"{name}:{line}", hint=error.hint) from None
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, got {quote(value)}", path=f"{name}:{line}", hint=_HINT)
    return value


def _head_of(name: str) -> bytes:
    """The first bytes of a file; none if it cannot be read."""
    try:
        with Path(name).open("rb") as stream:
            return stream.read(_HEAD) if stream.seekable() else b""
    except (OSError, ValueError):
        return b""


def _changed(name: str) -> float:
    """When a file was last changed; 0: it is no file."""
    try:
        return round(Path(name).stat().st_mtime, 3)
    except (OSError, ValueError):
        return 0.0


def _checked(value: Captured, where: str, id: str) -> Captured:
    """A capture of a gateway. Other versions are refused."""
    version = value[captures.FIELD]
    if version != captures.VERSION:
        message = f"a capture of version {quote(version)}, expected {captures.VERSION}"
        raise InputError(message, path=where, hint="use the version of toolglot that wrote it")
    return {name: mask(each) if isinstance(each, str) else each for name, each in {"id": id, **value}.items()}
