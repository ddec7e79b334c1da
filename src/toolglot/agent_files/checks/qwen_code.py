"""What can be wrong in a session of Qwen Code.

It answers calls without results itself, and drops results without calls; what is behind a hole in the chain is lost,
and a session whose first record names another folder is not found.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.checks.refused_calls import CallRenames, ProviderLimits, examine_part, fixed_part, limits_for
from toolglot.agent_files.checks.shared_checks import examine_lines
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, text_of
from toolglot.agent_files.parent_chains import ChainFields, ChainRecord, examine_chain

SPOKEN: Final = frozenset({"user", "assistant", "tool_result"})
_FIELDS: Final = ChainFields("uuid", "parentUuid", lambda text: str(uuid.uuid5(uuid.NAMESPACE_OID, text)))


def chain_record(line: int, value: dict[str, Any]) -> ChainRecord | None:
    """A record with a parent; None for any other."""
    if not text_of(value, "uuid"):
        return None
    parent = value.get("parentUuid")
    return ChainRecord(line, text_of(value, "uuid"), parent if isinstance(parent, str) else None, value)


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a file, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    values = examine_lines(examination, lines)
    if not any(text_of(value, "type") in SPOKEN for _, value in values):
        examination.add("no-messages", f"{path.name} has no messages: Qwen Code does not list it")
        return examination
    folder = next((text_of(value, "cwd") for _, value in values if text_of(value, "cwd")), "")
    before = ""
    for number, value in values:
        new = dict(value)
        if text_of(value, "type") in SPOKEN and not text_of(value, "uuid"):
            examination.add(
                "no-id", "the record has no uuid, so it is never sent", number, "give it one, behind the record before"
            )
            new |= {"uuid": _FIELDS.make_id(f"{number}|{before}"), "parentUuid": before or None}
        if number == values[0][0] and folder and not text_of(value, "cwd"):
            message = "the first record names no folder: Qwen Code does not find the session"
            examination.add("bad-header", message, number, "take the folder of the records behind it")
            new["cwd"] = folder
        if new != value:
            examination.set_value(number, new)
        before = text_of(new, "uuid") or before
    _examine_calls(examination, values)
    records = [
        record
        for number, value in values
        if (record := chain_record(number, examination.value(number, value))) is not None
    ]
    examine_chain(examination, records, _FIELDS)
    return examination


def _contents_of(value: dict[str, Any]) -> list[Any]:
    """The contents of a record: its message, or those that a compression kept."""
    return [object_of(value, "message"), *list_of(object_of(value, "systemPayload"), "compressedHistory")]


def _examine_calls(examination: Examination, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Ids, names and images that the provider refuses."""
    model = next((text_of(value, "model") for _, value in reversed(values) if text_of(value, "model")), "")
    limits = limits_for("qwen_code", model)
    renames = CallRenames(examination)
    for number, value in values:
        for content in _contents_of(value):
            for part in list_of(content, "parts"):
                examine_part(renames, number, part, limits)
    for number, value in values:
        current = examination.value(number, value)
        new = _accepted(examination, renames, (number, current), limits)
        if new != current:
            examination.set_value(number, new)


def _accepted(
    examination: Examination, renames: CallRenames, line: tuple[int, dict[str, Any]], limits: ProviderLimits
) -> dict[str, Any]:
    """A record with what the provider accepts."""
    number, value = line

    def fixed(content: Any) -> Any:
        if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
            return content
        parts = [fixed_part(examination, renames, number, part, limits) for part in content["parts"]]
        return {**content, "parts": parts}

    new = dict(value)
    if isinstance(value.get("message"), dict):
        new["message"] = fixed(value["message"])
    if isinstance(value.get("toolCallResult"), dict):
        new["toolCallResult"] = renames.rename(value["toolCallResult"], "callId", "name")
    payload = object_of(value, "systemPayload")
    if isinstance(payload.get("compressedHistory"), list):
        new["systemPayload"] = {**payload, "compressedHistory": [*map(fixed, payload["compressedHistory"])]}
    return new
