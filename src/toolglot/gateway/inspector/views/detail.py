"""One request in three columns: what the client sent, the canonical conversation, and what the provider was sent.

    detail_of(captured, overrides, first=None, last=None)          # a dictionary, as the page reads it

Each turn has its place in both bodies, as a path and as a range of characters; each call its ids on both sides; each
entry of a report the turns and blocks that it is about.

Laws: pure, and linear in the bodies. A capture is untrusted: what of it cannot be read is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.conversation import Turn
from toolglot.conversation.report import Entry
from toolglot.gateway.inspector.rows import row_of_capture
from toolglot.gateway.inspector.views.alignment import Place, align, one_to_one, turn_anchors
from toolglot.gateway.inspector.views.blocks import BlockWriter, CallNames, SentCall, cut_text, tools_of
from toolglot.gateway.inspector.views.json_spans import JsonSpans, Span, spans_of
from toolglot.gateway.inspector.views.reading import ReadRequest, read_capture, read_reply, text_of
from toolglot.gateway.observability.report_counts import rules_in
from toolglot.masking import mask
from toolglot.profiles import Overrides
from toolglot.protocols.base import get as get_protocol

MAX_TEXTS: Final = 1_000_000
"""Characters of all bodies up to which they are in the answer; otherwise, each is to be had by itself."""
TURNS: Final = 200
"""Turns of an answer, unless the query says which."""
MAX_REPORTS: Final = 5_000
TEXTS: Final = ("request", "rendered", "reply", "response")
_SYSTEM_FIELDS: Final = ("system", "systemInstruction", "system_instruction", "instructions", "preamble")
_STEP: Final = re.compile(r"\$\.(\w+)\[(\d+)\]")

Fields = dict[str, Any]


class _Side(Struct, frozen=True):
    """Where the turns stand in one body."""

    field: str
    text: str
    spans: JsonSpans
    places: list[Place | None]

    def head(self) -> Fields:
        """The body without its messages."""
        start, end = self.spans.fields.get(self.field, (0, 0))
        if not self.spans.items:
            return cut_text(self.text)
        return cut_text(f"{self.text[:start]}[…]{self.text[end:]}")

    def path(self, index: int, turn: Turn) -> tuple[str | None, Span | None]:
        """The path and the range of a turn."""
        place = self.places[index] if index < len(self.places) else None
        if place is not None and place[1] < len(self.spans.items):
            items = self.spans.items
            return f"$.{self.field}[{place[0]}]", (items[place[0]][0], items[place[1]][1])
        if turn.role == "system" or not self.spans.items:
            names = _SYSTEM_FIELDS if turn.role == "system" else (self.field,)
            name = next((name for name in names if name in self.spans.fields), None)
            return (f"$.{name}", self.spans.fields[name]) if name is not None else (None, None)
        return None, None


def detail_of(
    captured: Mapping[str, Any],
    overrides: Overrides | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    max_texts: int = MAX_TEXTS,
    max_media: int = 0,
) -> Fields:
    """Everything about a request, with the turns from `first` to before `last`; without them, the last ones.

    max_texts: characters of all bodies up to which they are in it.
    max_media: characters of base64 up to which pictures are in it.
    """
    read = read_capture(captured, overrides)
    reports = reports_of(captured)
    detail: Fields = {
        "row": captured.get("row") or row_of_capture(captured),
        **_texts(captured, max_texts),
        "cut": captured.get("cut") is True,
        "unchanged": captured.get("unchanged") is True,
        "bodies": bool(captured.get("request")),
        "reports": reports,
        "canonical": None,
        "reply_canonical": None,
        "attempts": captured.get("attempts") if isinstance(captured.get("attempts"), list) else [],
        "error": error_of(captured),
        "total_turns": None,
    }
    if read is None:
        return detail
    turns = read.conversation.turns
    sides = sides_of(captured, read)
    _attach(reports, turns, read, sides)
    start, end = _range(len(turns), first, last)
    writer = BlockWriter(read.names, max_media=max_media)
    written = [_turn(index, turn, writer, sides) for index, turn in enumerate(turns[:end])]
    system = [block for turn in written if turn["role"] == "system" for block in turn["blocks"]]
    shown = written[start:]
    _mark(reports, shown)
    detail["canonical"] = {
        "system": system,
        "tools": tools_of(read.conversation, read.tool_names),
        "turns": shown,
        "first": start,
        "client_head": sides[0].head(),
        "sent_head": sides[1].head() if sides[1] is not None else None,
    }
    detail["total_turns"] = len(turns)
    detail["reply_canonical"] = _reply_turn(captured, read, reports, len(turns), overrides)
    return detail


def _texts(captured: Mapping[str, Any], max_texts: int) -> Fields:
    """The bodies, if there is not too much of them, and their sizes."""
    sizes = {name: len(text_of(captured, name)) or None for name in TEXTS}
    shown = sum(size or 0 for size in sizes.values()) <= max_texts
    return {**{name: (text_of(captured, name) or None) if shown else None for name in TEXTS}, "sizes": sizes}


def _range(count: int, first: int | None, last: int | None) -> tuple[int, int]:
    """The turns that are shown, at most `TURNS` unless the query names more."""
    end = count if last is None else min(last, count)
    start = max(0, end - TURNS) if first is None else min(first, end)
    return start, end


def error_of(captured: Mapping[str, Any]) -> Fields | None:
    """How the request failed; None: it did not."""
    status, message = captured.get("status"), text_of(captured, "error")
    if not message and not (isinstance(status, int) and status >= 400):
        return None
    return {"status": status if isinstance(status, int) else None, "message": message or f"status {status}"}


# --- turns ------------------------------------------------------------------------------------------


def sides_of(captured: Mapping[str, Any], read: ReadRequest) -> tuple[_Side, _Side | None]:
    """Where the turns stand in the client's body, and in the one that was sent."""
    turns = read.conversation.turns
    client = _side(text_of(captured, "request"), read.source, turns, {})
    rendered = text_of(captured, "rendered")
    if not rendered or read.out is None:
        return client, None
    return client, _side(rendered, read.out.target.protocol, turns, read.names.sent_ids)


def _side(text: str, protocol: str, turns: tuple[Turn, ...], sent_ids: dict[str, str]) -> _Side:
    field = get_protocol(protocol).turns
    spans = spans_of(text, field)
    places = one_to_one(turns, len(spans.items)) if spans.items else []
    if places is None:
        places = align([turn_anchors(turn, sent_ids) for turn in turns], spans.values)
    return _Side(field, text, spans, places)


def _turn(index: int, turn: Turn, writer: BlockWriter, sides: tuple[_Side, _Side | None]) -> Fields:
    client, sent = sides
    client_path, client_span = client.path(index, turn)
    sent_path, sent_span = sent.path(index, turn) if sent is not None else (None, None)
    return {
        "index": index,
        "role": turn.role,
        "client_path": client_path,
        "sent_path": sent_path,
        "client_span": client_span,
        "sent_span": sent_span,
        **_part("client", client, client_span),
        **_part("sent", sent, sent_span),
        "blocks": writer.turn(turn),
        "marks": [],
    }


def _part(name: str, side: _Side | None, span: Span | None) -> Fields:
    """The text of a turn in a body, cut."""
    if side is None or span is None:
        return {f"{name}_text": None}
    found = cut_text(side.text[span[0] : span[1]])
    return {f"{name}_{key}": value for key, value in found.items()}


def _reply_turn(
    captured: Mapping[str, Any], read: ReadRequest, reports: list[Fields], index: int, overrides: Overrides | None
) -> Fields | None:
    """The reply as one turn."""
    found = read_reply(captured, read, overrides)
    if found is None:
        return None
    names = CallNames()
    for own, other in zip(found.client.turn.calls, found.provider.turn.calls, strict=False):
        names.add(own.id, SentCall(own.id, other.id or None, other.name))
    turn = {
        "index": index,
        "role": found.client.turn.role,
        "client_path": None,
        "sent_path": None,
        "client_span": None,
        "sent_span": None,
        "blocks": BlockWriter(names).turn(found.client.turn),
        "marks": [number for number, report in enumerate(reports) if report["side"] == "reply"],
    }
    _mark_blocks(reports, turn, "reply")
    return turn


# --- reports ----------------------------------------------------------------------------------------


def reports_of(captured: Mapping[str, Any]) -> list[Fields]:
    """The entries of both reports, as the page reads them."""
    found: list[Fields] = []
    for side, name in (("request", "report"), ("reply", "reply_report")):
        entries = captured.get(name)
        listed = entries[:MAX_REPORTS] if isinstance(entries, list) else []
        found += [_report(side, entry) for entry in listed if isinstance(entry, dict)]
    return found


def _report(side: str, entry: Mapping[str, Any]) -> Fields:
    reason = text_of(entry, "reason")
    rules = rules_in(reason)
    turn = entry.get("turn")
    return {
        "side": side,
        "action": text_of(entry, "action"),
        "path": text_of(entry, "path"),
        "reason": reason,
        "gravity": text_of(entry, "gravity") or "change",
        "rule": rules[-1] if rules else None,
        "fault": text_of(entry, "fault"),
        "text": text_of(entry, "text"),
        "turn": turn if type(turn) is int else None,
        "block": None,
        "id": next(iter(_words(entry, "call_ids")), None),
        "ids": [*_words(entry, "call_ids"), *_words(entry, "native_ids")],
    }


def report_fields(side: str, entry: Entry) -> Fields:
    """An entry of a report, as the page reads it."""
    fields = msgspec.to_builtins(entry)
    return _report(side, {**fields, "reason": mask(entry.reason), "text": mask(str(entry)), "gravity": entry.gravity})


def _words(entry: Mapping[str, Any], name: str) -> list[str]:
    found = entry.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list | tuple) else []


def _attach(
    reports: Iterable[Fields], turns: tuple[Turn, ...], read: ReadRequest, sides: tuple[_Side, _Side | None]
) -> None:
    """Find the turn of each entry that does not name it: by the call that it is about, or by its path."""
    by_id: dict[str, int] = {}
    for index, turn in enumerate(turns):
        for call in turn.calls:
            known = read.names.of(call.id)
            for id in (call.id, known.canonical, known.sent_id or ""):
                by_id.setdefault(id, index)
    client, sent = sides
    by_path = _turn_paths(client)
    if sent is not None:
        by_path = {**_turn_paths(sent), **by_path}
    for report in reports:
        if report["side"] != "request" or report["turn"] is not None:
            continue
        step = _STEP.match(report["path"])
        place = by_path.get((step[1], int(step[2][:9]))) if step is not None else None
        named = next((by_id[id] for id in report["ids"] if id in by_id), None)
        report["turn"] = named if named is not None else place


def _turn_paths(side: _Side) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for index, place in enumerate(side.places):
        for item in range(place[0], place[1] + 1) if place is not None else ():
            found.setdefault((side.field, item), index)
    return found


def _mark(reports: list[Fields], turns: list[Fields]) -> None:
    """Mark turns and blocks with the entries that are about them."""
    by_index = {turn["index"]: turn for turn in turns}
    for number, report in enumerate(reports):
        turn = by_index.get(report["turn"]) if report["side"] == "request" else None
        if turn is not None:
            turn["marks"].append(number)
    for turn in turns:
        _mark_blocks(reports, turn, "request")


def _mark_blocks(reports: list[Fields], turn: Fields, side: str) -> None:
    ids: dict[str, list[tuple[int, Fields]]] = {}
    for index, block in enumerate(turn["blocks"]):
        for id in {block.get(name) for name in ("id", "client_id", "sent_id")} - {None}:
            ids.setdefault(id, []).append((index, block))
    for number in turn["marks"]:
        report = reports[number]
        if report["side"] != side:
            continue
        for id in report["ids"]:
            for index, block in ids.get(id, ()):
                if number not in block["marks"]:
                    block["marks"].append(number)
                    report["block"] = index if report["block"] is None else report["block"]
