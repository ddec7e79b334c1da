"""Which protocol a request body is written in, by its structure.

    detect(body)            # "anthropic", or None if it is not clear
    examine(body)           # the same with its reason, and what else it could be

Every mark (a field, the form of a call, the type of a block) leaves the protocols that list it in the `request_marks`
of their record; a mark that none lists says nothing. The answer is the protocol that all marks leave. The plainest
bodies are the same in several protocols: there the model's name may decide, and `by` says so; where it does not, the
answer is None. Law: time is linear in the number of blocks, nothing is raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Literal

from msgspec import Struct

from toolglot.protocols.base import Protocol, RequestMarks, RequestShape, get, names

_Mark = tuple[str, str]
"""A field of `RequestMarks`, and what of it was found."""

MESSAGES: Final = "messages"
"""The field of the turns in most protocols, which alone does not identify one."""
_MAX_MODEL: Final = 200
_DATED: Final = re.compile(r"_\d{8}$")


class ProtocolDetection(Struct, frozen=True, kw_only=True):
    """What a body seems to be."""

    protocol: str | None = None
    by: Literal["structure", "model", ""] = ""
    """What decided. `model`: several protocols write this very body, and the model's name speaks for one."""
    candidates: tuple[str, ...] = ()
    """Every protocol that the structure allows; empty: it is no request, or has marks that exclude each other."""


def detect(body: object) -> str | None:
    """The protocol of a request body; None if it is not clear."""
    return examine(body).protocol


def examine(body: object) -> ProtocolDetection:
    """The protocol of a request body, what decided, and what else it could be."""
    if not isinstance(body, dict):
        return ProtocolDetection()
    left = _by_structure(body)
    candidates = tuple(name for name in names() if name in left)
    if len(candidates) == 1:
        return ProtocolDetection(protocol=candidates[0], by="structure", candidates=candidates)
    by_model = _by_model(body, left)
    return ProtocolDetection(protocol=by_model, by="model" if by_model else "", candidates=candidates)


@cache
def _known(known: tuple[str, ...]) -> tuple[Protocol, ...]:
    """The protocols that say by what their requests are recognised."""
    return tuple(record for record in map(get, known) if record.request_marks != RequestMarks())


@cache
def _protocols_by_mark(known: tuple[str, ...]) -> dict[_Mark, frozenset[str]]:
    """Marks, and the protocols that have them."""
    found: dict[_Mark, set[str]] = {}
    for record in _known(known):
        for kind in ("fields", "message_fields", "roles", "block_types", "choices", "choice_types", "shapes"):
            for mark in getattr(record.request_marks, kind):
                found.setdefault((kind, mark), set()).add(record.name)
    return {mark: frozenset(protocols) for mark, protocols in found.items()}


def _by_structure(body: dict[str, Any]) -> frozenset[str]:
    """The protocols that the structure of a body allows."""
    known = _known(names())
    if not isinstance(body.get(MESSAGES), list):
        found = [record.name for record in known if not record.request_marks.starts.isdisjoint(body)]
        return frozenset(found if len(found) == 1 else ())
    left = frozenset([record.name for record in known if record.turns == MESSAGES])
    protocols = _protocols_by_mark(names())
    for mark in _marks(body):
        left &= protocols.get(mark, left)
    return left


def _by_model(body: dict[str, Any], left: frozenset[str]) -> str | None:
    model = body.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= _MAX_MODEL:
        return None
    for record in _known(names()):
        marks = record.request_marks
        if marks.models and re.match(marks.models, model):
            if record.name in left:
                return record.name if not marks.model_needs or marks.model_needs in body else None
            return marks.hub_protocol if marks.hub_protocol in left else None
    rest = [name for name in left if not get(name).request_marks.only_own_models]
    return rest[0] if len(rest) == 1 else None


def _marks(body: dict[str, Any]) -> Iterator[_Mark]:
    for name in body:
        yield "fields", name
    yield from _system_marks(body.get("system"))
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        yield "choices", choice
    if isinstance(choice, dict) and isinstance(choice.get("type"), str):
        yield "choice_types", choice["type"]
    for tool in _objects(body.get("tools")):
        yield from _tool_marks(tool)
    for index, message in enumerate(_objects(body[MESSAGES])):
        yield from _message_marks(message, is_first=index == 0)


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _shape(shape: RequestShape) -> _Mark:
    return "shapes", shape


def _system_marks(system: object) -> Iterator[_Mark]:
    if isinstance(system, str):
        yield _shape("system: string")
    for block in _objects(system):
        yield _shape("system: typed block" if "type" in block else "system: block")


def _tool_marks(tool: dict[str, Any]) -> Iterator[_Mark]:
    kind = tool.get("type")
    if isinstance(tool.get("function"), dict):
        yield _shape("tool: function")
    elif isinstance(tool.get("custom"), dict):
        yield _shape("tool: custom")
    elif "input_schema" in tool:
        yield _shape("tool: input_schema")
    elif isinstance(kind, str) and (_DATED.search(kind[-9:]) is not None or kind == "mcp_toolset"):
        yield _shape("tool: run by the provider")


def _message_marks(message: dict[str, Any], *, is_first: bool) -> Iterator[_Mark]:
    for name in message:
        yield "message_fields", name
    role, content = message.get("role"), message.get("content")
    if isinstance(role, str):
        yield "roles", role
    if role == "system":
        yield _shape("system message: first" if is_first else "system message: later")
    for call in _objects(message.get("tool_calls")):
        yield _shape(_call_shape(call))
    if isinstance(content, str):
        yield _shape("content: string")
    elif isinstance(content, list):
        yield _shape("content: list")
    elif "content" in message and content is None:
        yield _shape("content: null")
    for block in _objects(content):
        yield from _block_marks(block)


def _call_shape(call: dict[str, Any]) -> RequestShape:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(arguments, str) or "custom" in call:
        return "call: arguments as a string"
    if isinstance(arguments, dict):
        return "call: arguments as an object" if "id" in call or "type" in call else "call: function alone"
    return "call: no arguments"


def _block_marks(block: dict[str, Any]) -> Iterator[_Mark]:
    kind = block.get("type")
    if not isinstance(kind, str):
        if len(block) == 1:
            yield _shape("block: no type")
    elif kind == "thinking":
        has_list, is_signed = isinstance(block.get("thinking"), list), "signature" in block
        yield _shape("thinking: list" if has_list else "thinking: signed" if is_signed else "thinking: plain")
    elif kind == "document":
        yield _shape("document: object" if "document" in block else "document: source")
    elif kind.endswith("_tool_result"):
        yield _shape("block: result of the provider")
    elif ("block_types", kind) in _protocols_by_mark(names()):
        yield "block_types", kind
    else:
        yield _shape("block: unknown type")
