"""Requests of the wire protocols as rows, captures of the gateway, and tuning files in a provider's own form.

    request:anthropic    a request of a protocol or provider, by any name of the profiles
    capture              a line of `/toolglot/requests?format=jsonl` (docs/captures.md): the request, with its reply
    vertex               {"systemInstruction", "contents", "tools"}
    bedrock              {"schemaVersion": "bedrock-conversation-2024", "system", "messages", "toolConfig"}

Law: a request is read by the codecs of its protocol, and written by them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from toolglot import profiles
from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.format import Format, Writer
from toolglot.bulk.formats.turns import note_training
from toolglot.bulk.row_profiles import row_profile
from toolglot.conversation import Conversation
from toolglot.conversation.captures import FIELD
from toolglot.errors import InputError, quote
from toolglot.jsontext import parse_plain
from toolglot.policy import DEFAULT_POLICY
from toolglot.protocols.base import codec
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.request_detection import examine
from toolglot.translate.request_reading import decode_request
from toolglot.translate.stream_reader import StreamReader

PREFIX: Final = "request:"
_SCHEMA: Final = "bedrock-conversation-2024"
_MAX_REPORTED: Final = 20


def read_request_row(row: Row, notes: Notes, source: str = "") -> Example:
    """The conversation of a request; its protocol is recognised if none is named."""
    found = source or examine(row).protocol
    if found is None:
        raise InputError("the protocol of the request is not clear", hint="name it: request:anthropic")
    profile = profiles.get(found)
    conversation, fixes = decode_request(row, profile, DEFAULT_POLICY)
    notes.entries += fixes[:_MAX_REPORTED]
    return Example(conversation=conversation, source=source or profile.name)


def encode_for(profile: str) -> Writer:
    """A writer of requests for a target."""

    def write(example: Example, notes: Notes) -> Row:
        target = row_profile(profile)
        note_training(example.conversation.turns, notes)
        return codec(target.protocol).request.encode(example.conversation, target)

    return write


@lru_cache(maxsize=64)
def request_format(name: str) -> Format:
    """The format `request:NAME`."""
    target = name.removeprefix(PREFIX)
    profile = profiles.get(target, kind="format")
    return Format(
        name=f"{PREFIX}{profile.name}",
        title=f"Requests: {profile.title}",
        detect=_detector(profile.protocol),
        read=lambda row, notes: read_request_row(row, notes, profile.name),
        write=encode_for(profile.name),
        source=profile.name,
        profile=profile.name,
        takes_columns=False,
        json_columns=frozenset({"messages", "tools", "contents", "input", "system", "toolConfig", "systemInstruction"}),
    )


def _detector(protocol: str) -> Callable[[Row], float]:
    def detect(row: Row) -> float:
        found = examine(row)
        if found.protocol != protocol:
            return 0.0
        return 0.92 if found.by == "structure" and "model" in row else 0.55

    return detect


# --- captures ---------------------------------------------------------------------------------------


def _detect_capture(row: Row) -> float:
    return 1.0 if FIELD in row else 0.0


def _read_capture(row: Row, notes: Notes) -> Example:
    request, protocol = row.get("request"), row.get("protocol")
    if not isinstance(request, str) or not request:
        hint = 'set keep = "bodies" in [inspector] of the gateway that writes it'
        raise InputError("the capture has no bodies", path="$.request", hint=hint)
    try:
        fields = parse_plain(request, path="$.request")
    except (ValueError, RecursionError):
        raise InputError("the request is not JSON", path="$.request") from None
    if not isinstance(fields, dict):
        raise InputError(f"expected an object, got {quote(fields)}", path="$.request")
    source = protocol if isinstance(protocol, str) and protocol else examine(fields).protocol or ""
    example = read_request_row(fields, notes, source)
    answer = _answer(row.get("response"), source, notes) if row.get("status", 200) == 200 else None
    conversation = example.conversation if answer is None else _continued(example.conversation, answer)
    id = row.get("id")
    return replace(example, conversation=conversation, id=id if isinstance(id, str) else "")


def _continued(conversation: Conversation, answer: Any) -> Conversation:
    return replace(conversation, turns=(*conversation.turns, answer))


def _answer(response: Any, protocol: str, notes: Notes) -> Any:
    """The turn that a reply holds: a body, or the bytes of a stream."""
    if not isinstance(response, str) or not response.strip():
        notes.add("assumed", "the capture has no reply; the row ends with the request", "$.response")
        return None
    try:
        try:
            body = parse_plain(response, path="$.response")
        except (ValueError, RecursionError):
            reader = StreamReader(source=protocol)
            reader.feed(response.encode(errors="replace"))
            reader.finish()
            return reader.reply.turn
        return codec(profiles.get(protocol).protocol).reply.decode(body).turn
    except (InputError, ProviderError, AttributeError, TypeError):
        notes.add("dropped", "the reply of the capture could not be read; the row ends with the request", "$.response")
        return None


# --- tuning files -----------------------------------------------------------------------------------


def _detect_vertex(row: Row) -> float:
    is_one = isinstance(row.get("contents"), list) and not row.keys() - {"contents", "systemInstruction", "tools"}
    return 0.93 if is_one and "systemInstruction" in row else 0.7 if is_one else 0.0


def _write_vertex(example: Example, notes: Notes) -> Row:
    body = encode_for("vertex_rows")(example, notes)
    return {key: body[key] for key in ("systemInstruction", "contents", "tools") if key in body}


def _detect_bedrock(row: Row) -> float:
    return 1.0 if row.get("schemaVersion") == _SCHEMA else 0.0


def _read_bedrock(row: Row, notes: Notes) -> Example:
    return read_request_row({key: value for key, value in row.items() if key != "schemaVersion"}, notes, "bedrock")


def _write_bedrock(example: Example, notes: Notes) -> Row:
    body = encode_for("bedrock_rows")(example, notes)
    kept: Row = {key: body[key] for key in ("system", "messages", "toolConfig") if key in body}
    return {"schemaVersion": _SCHEMA, **kept}


FORMATS: Final = (
    Format(
        name="request",
        title="Requests of any protocol, recognised row by row",
        detect=lambda row: 0.3 if examine(row).by == "structure" else 0.0,
        read=read_request_row,
        source="",
        takes_columns=False,
    ),
    Format(
        name="capture",
        title="Captures of the gateway",
        detect=_detect_capture,
        read=_read_capture,
        source="",
        takes_columns=False,
    ),
    Format(
        name="vertex",
        title="Vertex AI tuning",
        columns=frozenset({"systemInstruction", "contents", "tools"}),
        detect=_detect_vertex,
        read=lambda row, notes: read_request_row(row, notes, "gemini"),
        write=_write_vertex,
        source="vertex_rows",
        profile="vertex_rows",
        takes_columns=False,
        json_columns=frozenset({"systemInstruction", "contents", "tools"}),
    ),
    Format(
        name="bedrock",
        title="Bedrock tuning",
        columns=frozenset({"schemaVersion", "system", "messages", "toolConfig"}),
        detect=_detect_bedrock,
        read=_read_bedrock,
        write=_write_bedrock,
        source="bedrock_rows",
        profile="bedrock_rows",
        takes_columns=False,
        json_columns=frozenset({"system", "messages", "toolConfig"}),
    ),
)
