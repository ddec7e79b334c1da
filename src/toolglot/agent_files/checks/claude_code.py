"""What can be wrong in a session of Claude Code.

It deletes calls without results, loses what is behind a hole in the chain, and sends thinking without signatures and
illegal ids as they are; the provider then refuses the session for ever.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from toolglot.agent_files.checks.refused_calls import limits_for, refused_image
from toolglot.agent_files.checks.shared_checks import (
    INTERRUPTED,
    LEGAL_ID,
    ORPHAN,
    examine_lines,
    legal_id,
)
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine, object_of, text_of
from toolglot.agent_files.parent_chains import ChainFields, ChainRecord, examine_chain, path_to
from toolglot.agent_files.reply_groups import SPOKEN, blocks_of, chain_record, group_replies, message_of, plain_text

_FIELDS: Final = ChainFields("uuid", "parentUuid", lambda text: str(uuid.uuid5(uuid.NAMESPACE_OID, text)))
_NOTHING: Final = "(nothing)"


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a file, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    values = examine_lines(examination, lines)
    if not any(text_of(value, "type") in SPOKEN for _, value in values):
        examination.add("no-messages", f"{path.name} has no messages: Claude Code does not list it")
        return examination
    _examine_records(examination, values)
    records = [
        record
        for number, value in values
        if (record := chain_record(number, examination.value(number, value))) is not None
    ]
    own = examine_chain(examination, [record for record in records if not record.value.get("isSidechain")], _FIELDS)
    spoken = [record for record in own if text_of(record.value, "type") in SPOKEN]
    if spoken:
        chain = path_to(spoken[-1], own)
        _ReplyCheck(examination, group_replies(chain, own), own).run()
    return examination


def _examine_records(examination: Examination, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Fields without which Claude Code does not read a record as it was meant."""
    time = next((text_of(value, "timestamp") for _, value in values if text_of(value, "timestamp")), "")
    before = reply = ""
    for number, value in values:
        kind = text_of(value, "type")
        if kind not in SPOKEN:
            continue
        new = dict(value)
        if not text_of(value, "uuid"):
            examination.add(
                "no-id", "the record has no uuid, so it is never sent", number, "give it one, behind the record before"
            )
            new["uuid"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}|{before}"))
            new["parentUuid"] = before or None
        if not text_of(value, "timestamp"):
            message = "the record has no timestamp: Claude Code takes the file for empty"
            examination.add("no-timestamp", message, number, "take that of the record before")
            new["timestamp"] = time or "1970-01-01T00:00:00.000Z"
        message_ = object_of(value, "message")
        if kind == "assistant" and not value.get("isSidechain"):
            if not text_of(message_, "id"):
                text = "the reply has no message.id: of parallel calls all but the first are lost"
                examination.add("no-message-id", text, number, "give the records of this reply one id")
                reply = reply or "msg_" + hashlib.sha256(f"{number}|{before}".encode()).hexdigest()[:24]
                new["message"] = {**message_, "id": reply}
            else:
                reply = ""
        elif not value.get("isSidechain"):
            reply = ""
        time = text_of(new, "timestamp") or time
        before = text_of(new, "uuid")
        if new != value:
            examination.set_value(number, new)


class _Part(Struct):
    """A call or a result in a record."""

    group: int
    record: ChainRecord
    index: int
    id: str
    is_matched: bool = False


class _ReplyCheck:
    """Checks replies and results of the chain. `content` holds the changed content of records, by line."""

    def __init__(
        self, examination: Examination, groups: Sequence[Sequence[ChainRecord]], records: Sequence[ChainRecord]
    ) -> None:
        self.examination = examination
        self.groups = groups
        self.records = records
        self.content: dict[int, list[Any]] = {}
        self.results_in: dict[int, list[_Part]] = {}
        """By the index of a group."""
        self._children: dict[str, list[ChainRecord]] = {}
        for record in records:
            if record.parent is not None:
                self._children.setdefault(record.parent, []).append(record)

    def run(self) -> None:
        for group in self.groups:
            for record in group:
                if text_of(record.value, "type") in SPOKEN:
                    self._examine_blocks(record)
        self._examine_pairs()
        by_line = {record.line: record for record in self.records}
        for line, content in self.content.items():
            record = by_line[line]
            value = self.examination.value(line, record.value)
            kept = content or [{"type": "text", "text": _NOTHING}]
            self.examination.set_value(line, {**value, "message": {**object_of(value, "message"), "content": kept}})

    def _content(self, record: ChainRecord) -> list[Any]:
        return self.content.get(record.line, blocks_of(message_of(record).get("content")))

    def _examine_blocks(self, record: ChainRecord) -> None:
        """Blocks that the provider refuses whatever is around them."""
        kept: list[Any] = []
        content = self._content(record)
        is_model = record.value.get("type") == "assistant"
        for block in content:
            kind = text_of(block, "type")
            if not isinstance(block, dict):
                self.examination.add("bad-block", "a block is not an object", record.line, "remove it")
            elif kind == "thinking" and is_model and not text_of(block, "signature"):
                message = "thinking without a signature is sent, and refused"
                self.examination.add("unsigned-thinking", message, record.line, "remove it")
            elif (
                kind == "text"
                and not text_of(block, "text").strip()
                and isinstance(message_of(record).get("content"), list)
            ):
                self.examination.add("empty-text", "an empty text is refused", record.line, "remove it")
            else:
                kept.append(self._fit_image(block, record))
        if kept != content:
            self.content[record.line] = kept

    def _fit_image(self, block: dict[str, Any], record: ChainRecord) -> dict[str, Any]:
        """The block with images that are too large as a text, also inside a result."""
        if block.get("type") == "image":
            size = len(text_of(object_of(block, "source"), "data"))
            note = refused_image(self.examination, record.line, size, limits_for("claude_code"))
            if note:
                return {"type": "text", "text": note}
        elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            parts = [self._fit_image(part, record) if isinstance(part, dict) else part for part in block["content"]]
            if parts != block["content"]:
                return {**block, "content": parts}
        return block

    # --- calls and results --------------------------------------------------------------------------

    def _examine_pairs(self) -> None:
        calls, results = self._parts("assistant", "tool_use", "id"), self._parts("user", "tool_result", "tool_use_id")
        by_group = self.results_in
        for result in results:
            by_group.setdefault(result.group, []).append(result)
        by_id: dict[str, list[_Part]] = {}
        for result in results:
            by_id.setdefault(result.id, []).append(result)
        taken: set[str] = set()
        for group, found in _by_group(calls):
            window = self._window(group)
            near: dict[str, list[_Part]] = {}
            for at in window:
                for result in by_group.get(at, ()):
                    if not result.is_matched:
                        near.setdefault(result.id, []).append(result)
            unanswered: list[_Part] = []
            answer: _Part | None
            for call in found:
                waiting = near.get(call.id)
                answer = waiting.pop(0) if waiting else None
                if answer is not None:
                    answer.is_matched = True
                self._fit_call(call, answer, taken)
                if answer is None:
                    unanswered.append(call)
            if unanswered:
                self._answer(group, window, unanswered, by_id)
        self._write_orphans_as_text(results)

    def _parts(self, speaker: str, kind: str, field: str) -> list[_Part]:
        return [
            _Part(number, record, index, text_of(block, field))
            for number, group in enumerate(self.groups)
            for record in group
            if record.value.get("type") == speaker and not record.value.get("isCompactSummary")
            for index, block in enumerate(self._content(record))
            if text_of(block, "type") == kind
        ]

    def _window(self, group: int) -> list[int]:
        """The groups behind a reply in which its results count: up to the first that is more than results."""
        found: list[int] = []
        for number in range(group + 1, len(self.groups)):
            record = self.groups[number][0]
            kind = text_of(record.value, "type")
            if kind == "assistant":
                break
            if kind == "user":
                content = self._content(record)
                found.append(number)
                if any(text_of(block, "type") != "tool_result" for block in content):
                    break
        return found

    def _fit_call(self, call: _Part, result: _Part | None, taken: set[str]) -> None:
        """A legal id that no other call has, and a legal name."""
        content = self._content(call.record)
        block = content[call.index]
        new = dict(block)
        if call.id in taken or not LEGAL_ID.fullmatch(call.id):
            if call.id in taken:
                message = f"two calls have the id {call.id[:60]!r}: this is refused"
                self.examination.add("repeated-call-id", message, call.record.line, "give the second another id")
            else:
                message = f"the id {call.id[:60]!r} is sent as it is, and refused"
                self.examination.add("illegal-id", message, call.record.line, "rename call and result")
            new["id"] = legal_id(call.id, f"{call.record.line}|{call.index}", taken)
            if result is not None:
                self._replace(result, {**self._content(result.record)[result.index], "tool_use_id": new["id"]})
        name = text_of(block, "name")
        limits = limits_for("claude_code")
        if not limits.accepts_name(name):
            message = f"the tool name {name[:60]!r} is refused"
            self.examination.add("illegal-name", message, call.record.line, "replace what is not allowed")
            new["name"] = limits.legal_name(name)
        if not isinstance(block.get("input"), dict):
            message = "the arguments of a call are not an object: this is refused"
            self.examination.add("bad-arguments", message, call.record.line, "put them into an object")
            new["input"] = {} if block.get("input") is None else {"_raw": block["input"]}
        taken.add(new["id"] if isinstance(new.get("id"), str) else call.id)
        call.id = text_of(new, "id")
        if new != block:
            self._replace(call, new)

    def _replace(self, part: _Part, block: dict[str, Any]) -> None:
        content = list(self._content(part.record))
        content[part.index] = block
        self.content[part.record.line] = content

    def _answer(
        self, group: int, window: Sequence[int], unanswered: Sequence[_Part], by_id: dict[str, list[_Part]]
    ) -> None:
        """Results for calls that have none: the real one from elsewhere in the file, or that there is none."""
        is_tail = not any(
            text_of(record.value, "type") in SPOKEN
            for number in range(group + 1, len(self.groups))
            for record in self.groups[number]
            if number not in window or self._has_words(record)
        )
        blocks: list[dict[str, Any]] = []
        for call in unanswered:
            far = next((each for each in by_id.get(call.id, ()) if not each.is_matched), None)
            if far is not None:
                far.is_matched = True
                block = dict(self._content(far.record)[far.index])
                message = f"the result of call {call.id[:60]!r} is not behind it, but on line {far.record.line}"
                self.examination.add("misplaced-result", message, call.record.line, "move it behind its call")
                self._replace(far, {"type": "text", "text": f"[the result of {call.id} was moved behind its call]"})
                blocks.append(block)
            elif not is_tail:  # at the end, Claude Code says so itself
                message = f"the call {call.id[:60]!r} has no result: it is deleted without a word"
                self.examination.add("dangling-call", message, call.record.line, "add an error result")
                blocks.append({"type": "tool_result", "tool_use_id": call.id, "content": INTERRUPTED, "is_error": True})
        if not blocks:
            return
        if window:
            record = self.groups[window[0]][0]
            self.content[record.line] = [*blocks, *self._content(record)]
            for part in self.results_in.get(window[0], ()):
                part.index += len(blocks)
            return
        self._insert(self.groups[group], blocks)

    def _has_words(self, record: ChainRecord) -> bool:
        return any(text_of(block, "type") != "tool_result" for block in self._content(record))

    def _insert(self, group: Sequence[ChainRecord], blocks: list[dict[str, Any]]) -> None:
        """A new record with results, between a reply and what follows it."""
        after = group[-1]
        new = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{after.id}|results|{len(blocks)}|{after.line}"))
        about: dict[str, Any] = {
            name: after.value[name]
            for name in ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp")
            if name in after.value
        }
        own = {record.line for record in group}
        for record in self._children.get(after.id, ()):
            if record.line not in own:
                value = self.examination.value(record.line, record.value)
                self.examination.set_value(record.line, {**value, "parentUuid": new})
        message = {"role": "user", "content": blocks}
        self.examination.insert_after(
            after.line, {"parentUuid": after.id, **about, "type": "user", "message": message, "uuid": new}
        )

    def _write_orphans_as_text(self, results: Sequence[_Part]) -> None:
        for result in results:
            if result.is_matched:
                continue
            block = self._content(result.record)[result.index]
            if text_of(block, "type") != "tool_result":
                continue
            message = f"a result for {result.id[:60]!r}, which no call before it has: Claude Code throws it away"
            self.examination.add("orphan-result", message, result.record.line, "keep it as text")
            text = plain_text(block.get("content"))
            self._replace(result, {"type": "text", "text": f"{ORPHAN}\n{text}".rstrip()})


def _by_group(parts: Sequence[_Part]) -> list[tuple[int, list[_Part]]]:
    found: dict[int, list[_Part]] = {}
    for part in parts:
        found.setdefault(part.group, []).append(part)
    return sorted(found.items())
