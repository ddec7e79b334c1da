"""The items of a response that is being streamed, and the blocks that they are.

An item begins, gets content, and ends. Items have ids and positions, which some servers leave out, change with
each event, or give twice; so an item is found by what is there.

Law: the text of a block is what came in deltas. Everything else comes from the item that ended, and so does the text
if there were no deltas.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.conversation import Block, Text, Thinking, ToolCall
from toolglot.conversation.reply_events import delta_text
from toolglot.errors import InputError
from toolglot.limits import Limits
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import NO_LAST_ITEMS, EventBuilder
from toolglot.protocols.openai_responses.client_tools import BY_CALL, BY_TYPE
from toolglot.protocols.openai_responses.form import with_arguments
from toolglot.protocols.openai_responses.items import read_model_item
from toolglot.protocols.openai_responses.parts import OUTPUT

INPUTS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""The items that are calls, and where their text is."""

_VOICES: Final = {"summary": "summary_text", "content": "reasoning_text"}
"""Where the text of reasoning can stand, and what its parts are called there."""

_NAMES: Final = ("id", "call_id", "name")
_WHOLE: Final = frozenset(f"other {kind}" for kind in BY_CALL)
"""The items that are calls of types of their own: they come whole, without deltas."""

DELTAS: Final = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}
"""The events that are more of a block's own text, and the items that they belong to."""


class DeltaEvent(Struct, gc=False):
    """An event that has a delta."""

    type: str = ""
    delta: str | None = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None


class OutputItem:
    """An item that began. Its blocks have keys: its number, and which of its parts they are."""

    __slots__ = (
        "annotations",
        "fields",
        "held",
        "is_done",
        "is_read",
        "kind",
        "number",
        "parts",
        "position",
        "voice",
        "whole",
    )

    def __init__(self, number: int, kind: str, fields: Fields) -> None:
        self.number: int = number
        self.kind: str = kind
        self.fields: Fields = fields
        self.is_done: bool = False
        self.parts: dict[int, None] = {}
        """Which blocks of it began, in their order."""
        self.whole: set[int] = set()
        """Those that were marked as complete."""
        self.held: list[str] | None = None
        """Pieces of a call that has no name yet."""
        self.voice: str | None = None
        """Which of the two texts of reasoning is read: the one that came first."""
        self.position: int = 0
        """The part of that text which was begun last."""
        self.is_read: bool = False
        """Whether text of that part came."""
        self.annotations: dict[int, list[Any]] = {}

    def key(self, part: int = 0) -> Hashable:
        return self.number, part


def _with_all_names(fields: Fields) -> Fields:
    """A call that lacks its name or its ids, with empty ones: what becomes of it is not for a reader to say."""
    lacks: Fields = {} if fields.get("name") else {"name": ""}
    if not fields.get("call_id") and not fields.get("id"):
        lacks["call_id"] = ""
    return {**fields, **lacks} if lacks else fields


def _built_call(call: ToolCall, written: str) -> ToolCall:
    """The call as the reader of items makes it."""
    if call.type == "custom":
        return replace(call, raw_input=written)
    arguments, raw, done = read_arguments(written)
    if call.type in BY_TYPE:
        return replace(call, arguments=arguments)
    if raw is None:
        return replace(call, arguments=arguments)
    form = with_arguments(call.form, are_own=True)
    return replace(call, arguments=arguments, raw_input=raw, form=form, argument_fixes=done)


class Assembly:
    """Puts the items together."""

    def __init__(self, limits: Limits) -> None:
        self.builder: EventBuilder = EventBuilder(build_call=_built_call, limits=limits)
        self.items: list[OutputItem] = []
        self.spoken: dict[bool, Text] = {}
        """One text that is a refusal and one that is none, if there are such."""
        self._limits = limits
        self._left = limits.max_bytes
        self._held = 0
        """How many calls wait for their names."""
        self._by_id: dict[str, OutputItem] = {}
        self._by_index: dict[int, OutputItem] = {}

    def take_over(self, output: Any) -> None:
        """The last response: what was not streamed comes from it, what did not end is ended by it."""
        listed = output if type(output) is list else []
        if output == [] and self.items and all(item.is_done for item in self.items):
            self.builder.report(NO_LAST_ITEMS)
        elif len(listed) < len(self.items):
            self.builder.report("the last response does not hold all items that were streamed")
        for index, fields in enumerate(listed):
            if type(fields) is not dict:
                self.builder.report("an item of the last response is no object; it is left out")
                continue
            item = self._named(fields) or (self.items[index] if index < len(self.items) else None)
            if item is None or item.kind != _kind_of(fields):
                self.builder.report("the last response holds an item that was not streamed")
                self._end_with(self._new_item(fields, None), fields)
            elif not item.is_done:
                self.builder.report("an item did not end before the response did")
                self._end_with(item, fields)

    @property
    def is_between(self) -> bool:
        """Whether something was read that the events do not say yet.

        That a message began, its first part says; that it ended, whatever follows it. A call waits for its name, and
        one of a type of its own for its end.
        """
        last = self.items[-1] if self.items else None
        if self._held > 0 or last is None:
            return self._held > 0
        if last.kind in _WHOLE:
            return not last.is_done
        return last.kind == "message" and (last.is_done or not last.parts)

    @property
    def has_lost(self) -> bool:
        """Whether a call still waits for its name."""
        return self._held > 0

    def end_held(self) -> None:
        """Add the calls that waited for a name or an end, as cut."""
        for item in self.items if self._held else ():
            if item.held is not None:
                self._end_call(item, item.fields, cut=True)

    def close_open(self) -> None:
        """Close the blocks of a complete response, even if they were not closed. Calls are checked."""
        for item in self.items:
            for part in item.parts:
                if item.kind not in INPUTS or part in item.whole:
                    self._close(item, part)

    def close_whole(self) -> None:
        """Close the blocks that were marked as complete, though their items did not end."""
        for item in self.items:
            for part in sorted(item.whole):
                self._close(item, part)

    def add(self, piece: DeltaEvent) -> Hashable:
        """A piece of text. The key of its block, if the next piece that is alike can follow at once."""
        kind, text = DELTAS[piece.type], piece.delta or ""
        item = self._located(piece.item_id, piece.output_index, kind)
        if item.is_done:
            self.builder.report("a piece came after the end of its item; it is left out")
            return None
        if kind == "reasoning":
            voice = "content" if piece.type == "response.reasoning_text.delta" else "summary"
            self._add_thinking(item, voice, piece.content_index if voice == "content" else piece.summary_index, text)
            return item.key() if item.voice == voice and self.builder.is_open(item.key()) else None
        index = _index(piece.content_index) if kind == "message" else 0
        if kind == "message" and index not in item.parts:
            self.builder.report("a part of a message was not announced")
            self._open_part(item, index, {"type": "refusal"} if piece.type == "response.refusal.delta" else {})
        return self._add_to(item, index, text)

    def _add_to(self, item: OutputItem, part: int, text: str) -> Hashable:
        key = item.key(part)
        if item.held is not None:
            self.keep(len(text))
            item.held.append(text)
            return None
        if not self.builder.is_open(key):
            self.builder.report("a piece came after the end of its block; it is left out")
            return None
        self.builder.add(key, text)
        return key

    # --- which item an event is about ---------------------------------------------------------------

    def _named(self, fields: Fields) -> OutputItem | None:
        id = fields.get("id")
        return self._by_id.get(id) if type(id) is str else None

    def _found(self, fields: Fields, kind: str) -> OutputItem:
        return self._located(fields.get("item_id"), fields.get("output_index"), kind)

    def _located(self, id: Any, index: Any, kind: str) -> OutputItem:
        """The item that an event names; if none began, one begins."""
        item = self._find(id, index, kind)
        if item is not None:
            return item
        self.builder.report("something came of an item that had not begun")
        fields: Fields = {"type": kind, "id": id} if type(id) is str and id else {"type": kind}
        if kind == "message":
            fields["role"] = "assistant"
        item = self._new_item(fields, index)
        self._begin_item(item)
        return item

    def _find(self, id: Any, index: Any, kind: str) -> OutputItem | None:
        """By its id, which some leave out or change with each event; by its index, which some leave at 0."""
        item = self._by_id.get(id) if type(id) is str else None
        if item is not None and item.kind == kind:
            return item
        item = self._by_index.get(index) if type(index) is int else None
        if item is not None and item.kind == kind and not item.is_done:
            return item
        last = self.items[-1] if self.items else None
        return last if last is not None and last.kind == kind and not last.is_done else None

    # --- items --------------------------------------------------------------------------------------

    def begin(self, fields: Fields) -> None:
        inner = fields.get("item")
        if type(inner) is not dict:
            self.builder.report("an item that began is no object; it is left out")
            return
        known = self._named(inner)
        if known is not None and not known.is_done:
            self.builder.report("an item began twice")
            return
        index = fields.get("output_index")
        if type(index) is not int:
            self.builder.report("an item has no output_index")
        self._begin_item(self._new_item(inner, index))

    def _new_item(self, fields: Fields, index: Any) -> OutputItem:
        item = OutputItem(len(self.items), _kind_of(fields), fields)
        self.items.append(item)
        id = fields.get("id")
        self.keep(64 + len(id) if type(id) is str else 64)
        if type(id) is str and id:
            self._by_id[id] = item
        if type(index) is int:
            self._by_index[index] = item
        return item

    def keep(self, size: int) -> None:
        """Count what is kept until the end: no more of it than of text."""
        self._left -= size
        if self._left < 0:
            raise jsontext.limit_error("max_bytes", self._limits.max_bytes, "$")

    def _begin_item(self, item: OutputItem) -> None:
        """Show what began. The parts of a message begin themselves, and what comes whole is shown at its end."""
        if item.kind == "message" or item.kind in _WHOLE:
            return
        if item.kind in INPUTS:
            self._begin_call(item)
            return
        block = self._block(_under_way(item.fields))
        if block is not None:
            item.parts[0] = None
            self.builder.open(item.key(), _unspoken(block))

    def _begin_call(self, item: OutputItem) -> None:
        fields = _under_way({**item.fields, INPUTS[item.kind]: ""})
        if not fields.get("name") or not (fields.get("call_id") or fields.get("id")):
            self.builder.report("a call began without a name or an id; it waits for them")
            self._hold(item)
            return
        block = self._block(fields)
        if block is None:
            self._hold(item)
            return
        item.parts[0] = None
        self.builder.open(item.key(), _unspoken(block))

    def _hold(self, item: OutputItem) -> None:
        item.held = []
        self._held += 1

    def _block(self, fields: Fields) -> Block | None:
        """The one block of an item that is not a message."""
        kind = fields.get("type")
        if isinstance(kind, str) and kind in INPUTS:
            fields = _with_all_names(fields)
        try:
            return read_model_item(fields)[0]
        except InputError as error:
            self.builder.report(f"an item is not well-formed: {error}")
            return None

    def end(self, fields: Fields) -> None:
        inner = fields.get("item")
        if type(inner) is not dict:
            self.builder.report("an item that ended is no object; it is left out")
            return
        index = fields.get("output_index")
        item = self._find(inner.get("id"), index, _kind_of(inner))
        if item is None:
            self.builder.report("an item ended that had not begun")
            item = self._new_item(inner, index)
        elif item.is_done and item.fields.get("call_id") == inner.get("call_id"):
            self.builder.report("an item ended twice")
            return
        elif item.is_done:
            self.builder.report("two items have the same id")
            item = self._new_item(inner, index)
        self._end_with(item, inner)

    def _end_with(self, item: OutputItem, fields: Fields) -> None:
        """Read an item that ended: everything except the text that came already."""
        item.is_done = True
        fields = self._with_first_names(item, fields)
        cut = fields.get("status") == "incomplete"
        if item.kind == "message":
            self._end_message(item, fields, cut=cut)
        elif item.kind == "reasoning":
            self._end_reasoning(item, fields, cut=cut)
        elif item.kind in INPUTS:
            self._end_call(item, fields, cut=cut)
        else:
            self._end_block(item, 0, self._block(fields), cut=cut)

    def _with_first_names(self, item: OutputItem, fields: Fields) -> Fields:
        """Names and ids do not change (H5)."""
        lost = {key: item.fields[key] for key in _NAMES if item.fields.get(key) and not fields.get(key)}
        if lost:
            self.builder.report("an item ended without its id or its name; the first counts")
        return {**fields, **lost} if lost else fields

    def _end_block(self, item: OutputItem, part: int, block: Block | None, *, cut: bool = False) -> None:
        """A block, with all that is known of it in the end."""
        key = item.key(part)
        if block is None:
            self._close(item, part, cut=cut)
            return
        text = delta_text(block)[0] if isinstance(block, Text | Thinking | ToolCall) else ""
        if part not in item.parts:
            item.parts[part] = None
            self.builder.open(key, _unspoken(block))
        begun = self.builder.block(key)
        if begun is not None and type(begun) is not type(block):
            self._end_otherwise(item, part, block, cut=cut)
            return
        if begun is not None:
            if item.kind in _WHOLE:
                self.builder.add(key, text)
            else:
                self._complete(key, text)
            self.builder.update(key, _unspoken(block))
        self._close(item, part, cut=cut)

    def _end_otherwise(self, item: OutputItem, part: int, block: Block, *, cut: bool) -> None:
        """End a block that has another type than at its beginning. The text that came counts, if there is any."""
        self.builder.report("an item ended with another type than its deltas; the deltas count")
        has_text = bool(self.builder.text_of(item.key(part)))
        self._close(item, part, cut=cut)
        if not has_text:
            self.builder.add_block(block)

    def _complete(self, key: Hashable, text: str) -> None:
        """What is missing of a text, now that all of it is known."""
        streamed = self.builder.text_of(key)
        if streamed == text:
            return
        if not text.startswith(streamed):
            self.builder.report("an item ended with another text than its deltas; the deltas count")
            return
        self.builder.report("an item ended with more text than its deltas")
        self.builder.add(key, text[len(streamed) :])

    def _close(self, item: OutputItem, part: int, *, cut: bool = False) -> None:
        key = item.key(part)
        block = self.builder.block(key)
        if isinstance(block, Text) and block.is_refusal not in self.spoken:
            text = self.builder.text_of(key)
            if text:
                self.spoken[block.is_refusal] = replace(block, text=text)
        self.builder.close(key, cut=cut)

    # --- messages -----------------------------------------------------------------------------------

    def begin_part(self, fields: Fields) -> None:
        part = fields.get("part")
        item = self._found(fields, "message" if _is_said(part) else "reasoning")
        if item.kind == "message":
            self._open_part(item, _index(fields.get("content_index")), part if type(part) is dict else {})
        else:
            self.begin_thought(fields, "content")

    def _open_part(self, item: OutputItem, index: int, part: Fields) -> None:
        """A part of a message begins, so those before it are over."""
        if index in item.parts or item.is_done:
            self.builder.report("a part of a message began twice, or after its message")
            return
        if item.parts:
            self._close(item, next(reversed(item.parts)))
        block = self._part(item, part, is_first=not item.parts)
        item.parts[index] = None
        self.builder.open(item.key(index), block)

    def _part(self, item: OutputItem, part: Fields, *, is_first: bool) -> Block:
        """A part of a message, as far as it is known, without its text."""
        plain = {"type": "refusal", "refusal": ""} if part.get("type") == "refusal" else {"type": OUTPUT, "text": ""}
        content = [{**part, **plain}] if is_first else [plain, {**part, **plain}]
        return read_model_item(_under_way({**item.fields, "role": "assistant", "content": content}))[-1]

    def end_part(self, fields: Fields) -> None:
        part = fields.get("part")
        if type(part) is not dict or not _is_said(part):
            return
        self.end_text(fields, part.get("refusal" if part.get("type") == "refusal" else "text"))
        item, index = self._found(fields, "message"), _index(fields.get("content_index"))
        if index in item.whole:
            self.builder.update(item.key(index), self._part(item, part, is_first=next(iter(item.parts)) == index))

    def end_text(self, fields: Fields, text: Any) -> None:
        item, index = self._found(fields, "message"), _index(fields.get("content_index"))
        if type(text) is not str or item.is_done:
            self.builder.report("a text ended without its text, or after its message")
            return
        if index not in item.parts:
            self._open_part(item, index, {"type": "refusal"} if "refusal" in fields else {})
        if self.builder.is_open(item.key(index)):
            self._complete(item.key(index), text)
        item.whole.add(index)

    def annotate(self, fields: Fields) -> None:
        item = self._found(fields, "message")
        annotation = fields.get("annotation")
        if annotation is not None:
            item.annotations.setdefault(_index(fields.get("content_index")), []).append(annotation)

    def _end_message(self, item: OutputItem, fields: Fields, *, cut: bool) -> None:
        content = fields.get("content")
        positions: list[int] = []
        if type(content) is list:
            positions = _places(item, len(content))
            content = [self._annotated(item, position, part) for position, part in zip(positions, content, strict=True)]
        if item.parts and not content:
            self.builder.report("a message ended without the text of its deltas")
        else:
            try:
                blocks = read_model_item({"role": "assistant", **fields, "content": content})
            except InputError as error:
                self.builder.report(f"an item is not well-formed: {error}")
                blocks = ()
            for position, block in zip(positions or range(len(blocks)), blocks, strict=False):
                self._end_block(item, position, block, cut=cut)
        for index in item.parts:
            self._close(item, index, cut=cut)

    def _annotated(self, item: OutputItem, index: int, part: Any) -> Any:
        """A part with the annotations that came beside it, if it ended without them."""
        came = item.annotations.get(index)
        if not came or type(part) is not dict or part.get("annotations"):
            return part
        self.builder.report("a text ended without the annotations that were streamed")
        return {**part, "annotations": came}

    # --- reasoning ----------------------------------------------------------------------------------

    def begin_thought(self, fields: Fields, voice: str) -> None:
        """A part of what was thought begins."""
        self._add_thinking(self._found(fields, "reasoning"), voice, fields.get(f"{voice}_index"), "")

    def _add_thinking(self, item: OutputItem, voice: str, position: Any, text: str) -> None:
        if 0 not in item.parts:
            self._begin_item(item)
        if item.voice is None:
            item.voice = voice
        if item.voice != voice or not self.builder.is_open(item.key()):
            return
        index = _index(position)
        if index > item.position:
            item.position, item.is_read = index, False
            self.builder.add(item.key(), "\n\n")
        if text:
            item.is_read = True
            self.builder.add(item.key(), text)

    def end_thought(self, fields: Fields, voice: str) -> None:
        """A part of what was thought ended: if nothing of it came in pieces, it comes now."""
        item, text = self._found(fields, "reasoning"), fields.get("text")
        if type(text) is not str or item.is_done:
            self.builder.report("a thought ended without its text, or after its item")
            return
        self._add_thinking(item, voice, fields.get(f"{voice}_index"), "")
        if text and item.voice == voice and not item.is_read and self.builder.is_open(item.key()):
            self.builder.report("an item ended with more text than its deltas")
            self._add_thinking(item, voice, item.position, text)

    def _end_reasoning(self, item: OutputItem, fields: Fields, *, cut: bool) -> None:
        streamed = self.builder.text_of(item.key())
        voice = item.voice
        if voice is not None and streamed and not fields.get(voice):
            self.builder.report("reasoning ended without what was thought in it")
            fields = {**fields, voice: [{"type": _VOICES[voice], "text": streamed}]}
        block = self._block(fields)
        if voice == "content" and streamed and fields.get("summary") and isinstance(block, Thinking):
            self.builder.report("reasoning has a summary beside its text; the text counts, since it came first")
            block = replace(block, text=streamed)
        self._end_block(item, 0, block, cut=cut)

    # --- calls --------------------------------------------------------------------------------------

    def end_input(self, fields: Fields, kind: str) -> None:
        item, text = self._found(fields, kind), fields.get(INPUTS[kind])
        if type(text) is not str or item.is_done:
            self.builder.report("a call ended without its arguments, or after its item")
            return
        item.whole.add(0)
        if item.held is not None:
            item.held = [text]
        elif self.builder.is_open(item.key()):
            self._complete(item.key(), text)

    def _end_call(self, item: OutputItem, fields: Fields, *, cut: bool) -> None:
        streamed = self.builder.text_of(item.key())
        if item.held is not None:
            streamed = "".join(item.held)
            item.held = None
            self._held -= 1
        name = INPUTS[item.kind]
        if type(fields.get(name)) is not str or (streamed and not fields[name]):
            self.builder.report("a call ended without its arguments")
            fields = {**fields, name: streamed}
        if self._changed_name(item, fields):
            self.builder.report("the name of a call changed on the way; the first counts")
            fields = {**fields, "name": item.fields["name"]}
        self._end_block(item, 0, self._block(fields), cut=cut)

    def _changed_name(self, item: OutputItem, fields: Fields) -> bool:
        return 0 in item.parts and fields.get("name") != item.fields.get("name")


def _places(item: OutputItem, count: int) -> list[int]:
    """Under which index each part of a message that ended was streamed.

    Some servers count the parts of the whole response (vLLM, Bedrock), so that a part is found by its order in its own
    item where an index is none of that.
    """
    if all(index < count for index in item.parts):
        return list(range(count))
    begun = list(item.parts)
    return [*begun[:count], *range(max(begun) + 1, max(begun) + 1 + count - len(begun))]


def _kind_of(fields: Fields) -> str:
    """What an item is: a message of the model, its reasoning, a call, or what is carried as it comes."""
    kind = fields.get("type")
    if type(kind) is str and (kind in INPUTS or kind == "reasoning"):
        return kind
    if (kind == "message" or (kind is None and "role" in fields)) and fields.get("role", "assistant") == "assistant":
        return "message"
    return f"other {kind}"


def _is_said(part: Any) -> bool:
    return type(part) is not dict or part.get("type") != "reasoning_text"


def _under_way(fields: Fields) -> Fields:
    """An item that began, as it will be: its status is not looked at again when all goes well."""
    return {**fields, "status": "completed"} if fields.get("status") == "in_progress" else fields


def _unspoken(block: Block) -> Block:
    """A block without its text, which comes in pieces."""
    if isinstance(block, Text | Thinking):
        return replace(block, text="")
    if isinstance(block, ToolCall):
        form = block.form if block.type in BY_TYPE else with_arguments(block.form, are_own=False)
        return replace(block, arguments=None, raw_input=None, form=form, argument_fixes=())
    return block


def _index(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0
