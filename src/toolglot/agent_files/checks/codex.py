"""What can be wrong in a rollout of Codex.

It refuses a session without a complete first line, with ordinals that skip or repeat, or of a provider that is not
configured; it drops outputs without a call, and sends ids and reasoning as they are.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.checks.shared_checks import ORPHAN, examine_lines, legal_name
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine, object_of, text_of

MAX_ID: Final = 64
_BUILT_IN: Final = frozenset({"openai", "ollama", "lmstudio", "oss", "ollama-chat", "amazon-bedrock"})
_OUTPUTS: Final = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "local_shell_call_output": "local_shell_call",
}
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_NAME_TIME: Final = re.compile(r"rollout-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-")
_THREAD: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LEGAL_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a file, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    values = examine_lines(examination, lines)
    if not any(value.get("type") in ("response_item", "compacted") for _, value in values):
        examination.add("no-messages", f"{path.name} has no messages: Codex does not list it")
        return examination
    meta = _examine_header(examination, path, values)
    if meta.get("history_mode") == "paginated":
        _examine_ordinals(examination, values, meta)
    _examine_items(examination, values)
    return examination


# --- the first line ---------------------------------------------------------------------------------


def _examine_header(
    examination: Examination, path: Path, values: Sequence[tuple[int, dict[str, Any]]]
) -> dict[str, Any]:
    """The first line says whose session it is. Returns it as it is after the edits."""
    found = next(((number, value) for number, value in values if value.get("type") == "session_meta"), None)
    time = _time_of(path, values)
    threads = _THREAD.findall(path.name)
    known = {
        "id": threads[0] if threads else "",
        "timestamp": time,
        "cwd": _directory_of(values),
        "originator": "toolglot",
        "cli_version": "0.0.0",
    }
    known = {name: text for name, text in known.items() if text}
    if found is None:
        examination.add(
            "no-header", "the first line, session_meta, is missing: Codex refuses the session", 1, "write a new one"
        )
        meta = {**known, "source": "cli"}
        examination.insert_after(0, {"timestamp": time, "type": "session_meta", "payload": meta})
        return meta
    number, value = found
    meta = dict(object_of(value, "payload"))
    missing = [name for name in known if not text_of(meta, name)]
    if missing:
        message = f"session_meta lacks {', '.join(missing)}: Codex refuses the session"
        examination.add("bad-header", message, number, "add what is missing")
        meta |= {name: known[name] for name in missing}
    if threads and text_of(meta, "id") != threads[0] and len(threads) == 1:
        message = f"the id {text_of(meta, 'id')[:60]!r} is not that of the file name"
        examination.add("wrong-id", message, number, "take that of the file name")
        meta["id"] = threads[0]
    if meta.get("history_mode") not in (None, "legacy", "paginated"):
        has_ordinals = all(isinstance(value.get("ordinal"), int) for _, value in values)
        message = f"the history_mode {str(meta['history_mode'])[:40]!r} is unknown: Codex refuses the session"
        examination.add("unknown-mode", message, number, "write what the lines are")
        meta["history_mode"] = "paginated" if has_ordinals else "legacy"
    _examine_provider(examination, path, meta, number)
    if meta != value.get("payload"):
        examination.set_value(number, {**value, "payload": meta})
    if number != values[0][0]:
        message = "session_meta is not the first line: Codex refuses the session"
        examination.add("no-header", message, number, "move it to the front")
        examination.remove(number)
        examination.insert_after(0, examination.value(number, value))
    return meta


def _examine_provider(examination: Examination, path: Path, meta: dict[str, Any], number: int) -> None:
    """The provider must be in config.toml, if there is one."""
    provider = text_of(meta, "model_provider")
    root = next((folder.parent for folder in path.parents if folder.name in ("sessions", "archived_sessions")), None)
    if not provider or provider in _BUILT_IN or root is None:
        return
    try:
        config = tomllib.loads((root / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if provider in object_of(config, "model_providers"):
        return
    now = text_of(config, "model_provider")
    message = f"the provider {provider[:60]!r} is not in config.toml any more: Codex refuses the session"
    examination.add("unknown-provider", message, number, f"write {now!r}" if now else "leave it out")
    if now:
        meta["model_provider"] = now
    else:
        del meta["model_provider"]


def _time_of(path: Path, values: Sequence[tuple[int, dict[str, Any]]]) -> str:
    found = next((text_of(value, "timestamp") for _, value in values if text_of(value, "timestamp")), "")
    named = _NAME_TIME.match(path.name)
    return found or (f"{named[1]}T{named[2]}:{named[3]}:{named[4]}.000Z" if named else "1970-01-01T00:00:00.000Z")


def _directory_of(values: Sequence[tuple[int, dict[str, Any]]]) -> str:
    for _, value in values:
        found = text_of(object_of(value, "payload"), "cwd") if value.get("type") == "turn_context" else ""
        if found:
            return found
    return "/"


def _examine_ordinals(
    examination: Examination, values: Sequence[tuple[int, dict[str, Any]]], meta: dict[str, Any]
) -> None:
    """Paginated files number their lines. One fault says it all; every line behind it is numbered anew."""
    base = object_of(meta, "history_base").get("end_ordinal_exclusive")
    expected = base if isinstance(base, int) and not isinstance(base, bool) else 0
    wrong = 0
    for number, value in values:
        found = value.get("ordinal")
        if found != expected or isinstance(found, bool):
            wrong = wrong or number
            current = examination.value(number, value)
            examination.set_value(number, {**current, "ordinal": expected})
        expected += 1
    if wrong:
        message = "an ordinal is missing, skipped or used twice: Codex does not resume the session"
        examination.add("ordinals", message, wrong, "number the lines anew from here")


# --- the items --------------------------------------------------------------------------------------


def _examine_items(examination: Examination, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    last = max((index for index, (_, value) in enumerate(values) if value.get("type") == "compacted"), default=-1)
    items = [
        (number, value, object_of(value, "payload"))
        for number, value in values[last + 1 :]
        if value.get("type") == "response_item"
    ]
    open_calls: dict[str, list[tuple[int, str]]] = {}
    """By the id in the file: the calls without an output, and the ids that they have now."""
    taken: set[str] = set()
    unmatched: list[tuple[int, dict[str, Any], dict[str, Any]]] = []
    before = _calls_of(values[last]) if last >= 0 else {}
    for id in before:
        open_calls[id] = [(0, id)]
        taken.add(id)
    for number, value, item in items:
        kind = text_of(item, "type")
        if kind in _CALLS:
            new = _fit_call(examination, number, item, taken)
            open_calls.setdefault(text_of(item, "call_id"), []).append((number, text_of(new, "call_id")))
        elif kind in _OUTPUTS:
            if not open_calls.get(text_of(item, "call_id")):
                unmatched.append((number, value, item))
                continue
            _, now = open_calls[text_of(item, "call_id")].pop(0)
            new = {**item, "call_id": now}
        elif kind == "reasoning" and not text_of(item, "encrypted_content") and not text_of(item, "id"):
            message = "reasoning without encrypted_content is sent, and can be refused"
            examination.add("unsigned-thinking", message, number, "remove it")
            examination.remove(number)
            continue
        else:
            continue
        if new != item:
            examination.set_value(number, {**examination.value(number, value), "payload": new})
    for number, value, item in unmatched:
        _fit_unmatched(examination, (number, value), item, open_calls)


def _calls_of(compacted: tuple[int, dict[str, Any]]) -> dict[str, None]:
    """The calls in a replaced history that have no output there."""
    history = object_of(compacted[1], "payload").get("replacement_history")
    found: dict[str, None] = {}
    for item in history if isinstance(history, list) else []:
        if text_of(item, "type") in _CALLS:
            found[text_of(item, "call_id")] = None
        elif text_of(item, "type") in _OUTPUTS:
            found.pop(text_of(item, "call_id"), None)
    return found


def _fit_call(examination: Examination, number: int, item: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    id = text_of(item, "call_id")
    new = dict(item)
    if not id or len(id) > MAX_ID or id in taken:
        if id in taken:
            message = f"two calls have the id {id[:60]!r}"
            examination.add("repeated-call-id", message, number, "give the second another id")
        else:
            message = f"the id {id[:60]!r} has {len(id)} characters: only 1 to {MAX_ID} are accepted"
            examination.add("illegal-id", message, number, "rename call and output")
        salt = 0
        while (made := f"call_{_digest(f'{id}|{number}|{salt}')}") in taken:
            salt += 1
        new["call_id"] = made
    taken.add(text_of(new, "call_id"))
    if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str):
        message = "the arguments of a call are not a string: Codex does not read the line"
        examination.add("bad-arguments", message, number, "write them as text")
        new["arguments"] = json.dumps(item.get("arguments") or {})
    name = text_of(item, "name")
    if item.get("type") != "local_shell_call" and not _LEGAL_NAME.fullmatch(name):
        message = f"the tool name {name[:60]!r} is refused"
        examination.add("illegal-name", message, number, "replace what is not allowed")
        new["name"] = legal_name(name)
    return new


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415 - only for what is renamed

    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def _fit_unmatched(
    examination: Examination,
    line: tuple[int, dict[str, Any]],
    item: dict[str, Any],
    open_calls: dict[str, list[tuple[int, str]]],
) -> None:
    """An output that comes before its call is moved behind it; one that has no call becomes a message."""
    number, value = line
    id = text_of(item, "call_id")
    waiting = [call for call in open_calls.get(id, ()) if call[0] > number]
    if waiting:
        at, now = waiting[0]
        open_calls[id].remove(waiting[0])
        examination.add("misplaced-result", f"the output of {id[:60]!r} is before its call", number, "move it behind")
        examination.remove(number)
        examination.insert_after(at, {**examination.value(number, value), "payload": {**item, "call_id": now}})
        return
    message = f"an output for {id[:60]!r}, which no call before it has: Codex throws it away"
    examination.add("orphan-result", message, number, "keep it as a message")
    output = item.get("output")
    if isinstance(output, list):
        text = "\n".join(text_of(part, "text") for part in output)
    else:
        text = output if isinstance(output, str) else json.dumps(output)
    content = [{"type": "input_text", "text": f"{ORPHAN}\n{text}".rstrip()}]
    payload = {"type": "message", "role": "user", "content": content}
    examination.set_value(number, {**examination.value(number, value), "payload": payload})
