"""The differences between what a request says and what is sent for it.

`differences` compares what the client wrote with what the target is sent, each read by `view_of`; `unreported` is those
that no entry of the report accounts for.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from support.translate.request_settings import Fields, ThinkingRequest, Tool, plain_schema
from support.translate.request_views import View, view_of
from toolglot.conversation.report import Entry, Report


class Difference(NamedTuple):
    kind: str
    what: str
    words: tuple[str, ...]
    """An entry accounts for the difference if one of these is in its path or its reason."""
    id: str = ""
    """The call that it is about, as the client wrote it."""
    actions: frozenset[str] = frozenset()
    """An entry accounts for the difference if it says one of these was done; empty: any."""


def differences(source: View, target: View) -> Iterator[Difference]:
    """Everything that the target reads otherwise than the client wrote it."""
    yield from _text_differences(source, target)
    yield from _call_differences(source, target)
    yield from _result_differences(source, target)
    yield from _hidden_differences(source, target)
    yield from _tool_differences(source, target)
    yield from _setting_differences(source, target)
    yield from _tool_field_differences(source, target)
    carries_markers = _count_markers(target) >= _count_markers(source)
    for field, count in source.unknown.items():
        if carries_markers and field.rpartition(".")[2] in _MARKERS:
            continue
        if target.unknown[field] < count:
            marker: tuple[str, ...] = (
                ("cache marker",) if "cache" in field else ("line of text",) if field == "detail" else ()
            )
            if field == "tool_name":
                marker = ("tool_reference", "that a search found")  # it names a tool in a block, or in a result
            yield Difference("unknown field", field, (*field.split("."), *marker))


_MARKERS: Final = ("cache_control", "cachePoint")
"""Cache markers, as the protocols write them."""


def _count_markers(view: View) -> int:
    fields = itertools.chain(view.unknown.items(), *(fields.items() for fields in view.fields_of_tools.values()))
    return sum(count for field, count in fields if field.rpartition(".")[2] in _MARKERS)


def _text_differences(source: View, target: View) -> Iterator[Difference]:
    by_speaker: dict[str, str] = {}
    for speaker, text in target.texts:
        by_speaker[speaker] = by_speaker.get(speaker, "") + "\n" + text
    everywhere = "\n".join([*by_speaker.values(), *(result.text for result in target.results)])
    for speaker, text in source.texts:
        if text.strip() in by_speaker.get(speaker, ""):
            continue
        if text.strip() in everywhere:
            words = ("speaker", "system", "prompt", "result", "text", "role", "message", "moved")
            yield Difference("text of another speaker", text[:60], words)
        else:
            yield Difference("text", text[:60], ("text", "result", "turn", "content", "message", "system"))
    known = sorted({text for _, text in source.texts} | set(source.thinking), key=len, reverse=True)
    results = "\n".join(result.text for result in source.results)
    for _, text in target.texts:
        rest = text.replace("<think>", "").replace("</think>", "")
        for piece in known:
            rest = rest.replace(piece, "").replace(piece.strip(), "") if piece.strip() in rest else rest
        if rest.strip() and rest.strip() not in results:
            yield _added_text(rest.strip())


_ADDED: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("OK.", ("added", "moved"), ("bridge",)),
    ("Continue.", ("added", "moved"), ("bridge",)),
    ("<system>", ("converted",), ("tagged text",)),
    ("[Result of a tool call", ("converted",), ("kept as text",)),
    ("[Another result]", ("converted",), ("kept as text",)),
    ("[From the tool results:]", ("moved",), ("behind the results",)),
)
"""How words that are put in begin, and what the report says of each."""
_ADDING: Final = frozenset({"added", "converted", "moved", "replaced"})
_ADDED_WORDS: Final = ("text", "bridge", "placeholder", "result", "synthetic", "empty", "prompt")


def _added_text(text: str) -> Difference:
    """Added words: accounted for by an entry that something was put in or became text."""
    for beginning, actions, words in _ADDED:
        if text.startswith(beginning):
            return Difference("invented text", text[:60], words, actions=frozenset(actions))
    return Difference("invented text", text[:60], _ADDED_WORDS, actions=_ADDING)


def _call_differences(source: View, target: View) -> Iterator[Difference]:
    names = Counter(call.name for call in target.calls)
    if len(source.calls) != len(target.calls):
        yield Difference(
            "number of calls", f"{len(source.calls)} → {len(target.calls)}", ("call", "text", "result", "turn")
        )
        return
    for before, after in zip(source.calls, target.calls, strict=True):
        if before.name != after.name and before.name not in names:
            yield Difference("name of a call", before.name, (before.name, "name"))
        if before.arguments != after.arguments and before.name == after.name:
            yield Difference("arguments", str(before.arguments)[:60], ("argument", "free-text", "null"), before.id)
        if before.id and after.id and before.id != after.id:
            yield Difference("id of a call", f"{before.id} → {after.id}", (" id", "ids"))


def _result_differences(source: View, target: View) -> Iterator[Difference]:
    result_texts = [result.text for result in target.results]
    all_text = "\n".join(text for _, text in target.texts)
    for result in source.results:
        text = result.text.strip()
        is_there = text in all_text or any(_dense(text) in _dense(other) for other in result_texts)
        if text and not is_there and not _same_json(text, result_texts):
            yield Difference("text of a result", text[:60], ("result", "tool", "text"), result.id)
    called = {call.id: call.name for call in source.calls if call.id}
    names = {tool.name for tool in target.tools} | {call.name for call in target.calls}
    for result in source.results:
        if result.name and called.get(result.id, result.name) != result.name and result.name not in names:
            yield Difference("name of a result", result.name, (result.name, "result"), result.id)
    lost = sum(result.is_error for result in source.results) - sum(result.is_error for result in target.results)
    if lost > 0:
        yield Difference("error of a result", str(lost), ("error", "fail", "result"))


def _dense(text: str) -> str:
    """Parts of a result are joined in more than one way."""
    return "".join(text.split())


def _same_json(text: str, others: list[str]) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    for other in others:
        try:
            if json.loads(other) == value:
                return True
        except ValueError:
            continue
    return False


def _hidden_differences(source: View, target: View) -> Iterator[Difference]:
    kept = "\n".join([*target.thinking, *(text for _, text in target.texts)])
    for text in source.thinking:
        if text.strip() and text.strip() not in kept:
            yield Difference("thinking", text[:60], ("thinking", "signature", "turn"))
    words = ("signature", "thinking", "cipher", "redacted", "encrypted", "without content")
    for signature, count in Counter(source.signatures).items():
        if Counter(target.signatures)[signature] < count:
            yield Difference("signature", signature[:30], words)
    for data, count in Counter(source.media).items():
        if Counter(target.media)[data] < count and data.strip() not in kept:
            kinds = ("image", "document", "audio", "video", "file", "media", "medium", "base64")
            yield Difference("media", data[:30], kinds)


STUB: Final = "A tool that was used earlier in this conversation. It is not available now."
"""The description of what stands for a tool that is called and not declared."""


def _stubs(source: View, target: View) -> set[str]:
    """The tools of the target that stand for others."""
    own = {tool.name for tool in source.tools if tool.description == STUB}
    return {tool.name for tool in target.tools if tool.description == STUB} - own


def _namespace(tool: Tool) -> tuple[str, ...]:
    return (f"'{tool.namespace}' became part of the names",) if tool.namespace else ()


_WITHOUT_TOOLS: Final = ("with only the named tools", "the tools were dropped")
"""What an entry says that is about tools without naming each."""


def _tool_differences(source: View, target: View) -> Iterator[Difference]:
    stubs = _stubs(source, target)
    after = {tool.name: tool for tool in target.tools if tool.name not in stubs}
    for tool in {tool.name: tool for tool in reversed(source.tools)}.values():
        if tool.name not in after:
            yield Difference("tool", tool.name, (tool.name, *_namespace(tool), *_WITHOUT_TOOLS))
            continue
        other = after[tool.name]
        if tool.description.strip() not in other.description:
            yield Difference("description of a tool", tool.name, (tool.name, "description"))
        if (plain_schema(tool.schema) or None) != (plain_schema(other.schema) or None):
            yield Difference("schema of a tool", tool.name, (f"'{tool.name}'",))
    declared = {tool.name for tool in target.tools}
    if len(declared) > len({tool.name for tool in source.tools}):
        yield Difference("an undeclared tool", str(sorted(declared))[:60], ("stub", "tool", "renamed"))


def _tool_field_differences(source: View, target: View) -> Iterator[Difference]:
    """Fields that a tool lost. One that is not there at all is a difference of its own."""
    carries_markers = _count_markers(target) >= _count_markers(source)
    stubs = _stubs(source, target)
    for name, fields in source.fields_of_tools.items():
        if name in stubs:
            continue
        after = target.fields_of_tools.get(name, fields)
        for field in fields:
            if field in after or (carries_markers and field in _MARKERS):
                continue
            words: tuple[str, ...] = (field, "cache marker") if "cache" in field else (field,)
            if field == "defer_loading":
                # It is declared like the others: with all of them, or by its name, since it was loaded.
                words += ("from the start", "all of them are declared", name)
            yield Difference("unknown field", f"{name}: {field}", words)


def _setting_differences(source: View, target: View) -> Iterator[Difference]:
    if source.choice != target.choice and (source.tools or source.choice[0] not in ("auto", "none")):
        is_subset = source.choice[1] and {tool.name for tool in target.tools} <= set(source.choice[1])
        is_kept = is_subset and target.choice[0] in (source.choice[0], "required") and source.choice[0] != "auto"
        if not is_kept or len(target.tools) != len(source.tools):
            yield Difference("tool choice", f"{source.choice} → {target.choice}", ("choice", "$.tools", "tool"))
    for name in source.options.keys() | target.options.keys():
        before, after = source.options.get(name), target.options.get(name)
        if name == "thinking":
            yield from _thinking_differences(before or ThinkingRequest(), after or ThinkingRequest())
        elif before != after:
            words = {"output": ("output",), "parallel": ("parallel", "no tools"), "max_tokens": ("max_tokens", "limit")}
            yield Difference(f"option {name}", f"{before} → {after}", words.get(name, (name,)))


def _thinking_differences(before: ThinkingRequest, after: ThinkingRequest) -> Iterator[Difference]:
    for name, old, new in zip(ThinkingRequest._fields, before, after, strict=True):
        if old != new:
            words = ("$.reasoning", "$.thinking")
            yield Difference(f"{name} of thinking", f"{before} → {after}", words)


# --- accounting -------------------------------------------------------------------------------------


def unreported(source: str, body: Fields, target: str, sent: Fields, report: Report) -> list[Difference]:
    """The differences that no entry of the report accounts for."""
    found = differences(view_of(source, body), view_of(target, sent))
    entries = report.entries
    return [difference for difference in found if not any(_accounts(entry, difference) for entry in entries)]


def _accounts(entry: Entry, difference: Difference) -> bool:
    entry_text = f"{entry.path} {entry.reason}".lower()
    if not any(word.lower() in entry_text for word in difference.words):
        return False
    if difference.actions and entry.action not in difference.actions:
        return False
    return not difference.id or not entry.native_ids or difference.id in entry.native_ids


def listed(found: Iterable[Difference], report: Report) -> str:
    """For a failing test."""
    return "\n".join([*(f"{one.kind}: {one.what}" for one in itertools.islice(found, 9)), f"report: {report}"])
