"""Assigns the pieces of a stream's calls to their calls, and decides when a call is added to the reply (H1 to H6).

A piece belongs to the call with its id; a new id is a new call. Without an id, it belongs to the last call at its
index; without an index, to the last call. For hosts that do otherwise, these rules decide, in this order:

- An index that several calls share: a new id together with a name, another name, or a whole object followed by the
  beginning of another is a new call; the same object again is not.
- A name in parts: an equal part is a repetition; others are joined as long as a known tool begins like that. Without
  known tools, the first name counts, and another name is another call.
- A call without an index, in a list that had the same call already, is another call. Its position in the list says
  that much, but is not an index.
- A new id without a name, in the middle of arguments: the host makes up an id for each chunk. The first one counts.

A call is added as soon as its name is certain. Until then its arguments wait. So do `{}`, which some hosts send before
the real arguments, an object that so far repeats the one before it, and a call after one that has no name yet.

Law: no piece gets into another call, and work is proportional to the text: the end of arguments is searched only where
a `{` may begin another call. What waits is bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Extra, Failure, Opaque, ToolCall
from toolglot.jsontext import limit_error
from toolglot.limits import Limits
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import NO_TYPE, EventBuilder
from toolglot.protocols.framing.json_end import ObjectEnd
from toolglot.protocols.openai_chat.form import PROTOCOL, ChatCall, ChatOpaque
from toolglot.protocols.openai_chat.streaming.chunks import CallPiece

_OWN_KINDS: Final = frozenset({"function", "custom"})
_EMPTY_FIRST: Final = frozenset({"{", "{}"})
"""Beginnings that may not be the real arguments."""
_MAX_EMPTY_LENGTH: Final = 64
"""The length of such a beginning."""
_EMPTY_BEFORE: Final = re.compile(r"\s*(?:\{\}\s*)+(?=\{)")
_TWICE: Final = "the arguments of a call were sent twice; the repetition was left out"
_WEIGHT: Final = 64
"""The cost of a piece besides its strings, in bytes of the limit."""
_WINDOW: Final = 512
"""Characters that are split together where calls follow each other in one piece."""


class _Call:
    """A call that has begun. It waits, then flows into the builder, then has ended."""

    __slots__ = (
        *(
            "block",
            "compared",
            "end",
            "extra",
            "has_input",
            "id",
            "index",
            "inner",
            "is_flowing",
            "is_malformed",
            "is_object",
            "is_legacy",
            "key",
        ),
        *("kind", "scanned", "matched", "name", "pieces", "repeated", "text"),
    )

    def __init__(self, key: int, piece: CallPiece) -> None:
        self.key = key
        self.index: int | None = piece.index
        self.id = ""
        self.name = ""
        self.kind: str = piece.kind or "function"
        self.extra: Fields = {}
        self.inner: Fields = {}
        self.is_object = False
        self.is_legacy = piece.is_legacy
        self.has_input = False
        """Whether anything but white space came of its arguments."""
        self.pieces: list[str] = []
        """The arguments that wait."""
        self.end: ObjectEnd = ObjectEnd()
        self.scanned = 0
        """How many of the pieces that wait were searched for their end."""
        self.repeated: str | None = None
        """The object that it may be a repetition of."""
        self.compared = 0
        """How many of the pieces that wait were compared with it."""
        self.matched = 0
        self.block: ToolCall | None = None
        """What was added to the reply; None while nothing was."""
        self.is_flowing = False
        self.is_malformed = False
        """Whether its arguments are not JSON, so that their end cannot be found."""
        self.text: str | None = None
        """All of its arguments, once it has ended."""


class _AddedCalls:
    """The calls that were added and have not ended. The builder refers to this, not to its owner `CallAssembler`."""

    def __init__(self) -> None:
        self.by_block: dict[int, _Call] = {}
        """By the identity of the block that was added."""
        self.has_blank = False
        """Whether a call had no arguments."""

    def build(self, block: ToolCall, written: str) -> ToolCall:
        """The whole call, of its block and its arguments."""
        call = self.by_block.pop(id(block))
        call.text, call.is_flowing = written, False
        form = _form(call)
        extra: Extra | None = {PROTOCOL: call.extra} if call.extra else None
        if call.kind == "custom":
            return replace(block, id=call.id, raw_input=written, extra=extra, form=form)
        arguments, raw, done = read_arguments(written)
        if not written.strip():
            raw = None
            self.has_blank = True
        if call.is_object and arguments is not None:
            raw, form = None, replace(form or ChatCall(), arguments="object")
        elif raw is not None:
            form = replace(form or ChatCall(), arguments="raw")
        known = replace(block, id=call.id, extra=extra, form=form)
        return replace(known, arguments=arguments, raw_input=raw, argument_fixes=done)


class CallAssembler:
    """The calls of one reply, and the builder that they are added to."""

    def __init__(self, tools: Collection[str], limits: Limits) -> None:
        self._added = _AddedCalls()
        self.builder: EventBuilder = EventBuilder(build_call=self._added.build, limits=limits)
        self._add_text = self.builder.add
        self.failure: Failure | None = None
        """Why the calls cannot be trusted."""
        self._tools: list[str] = sorted({tool for tool in tools if tool})
        self._known = frozenset(self._tools)
        self._by_id: dict[str, _Call] = {}
        self.by_index: dict[int | None, _Call] = {}
        """The last call at each index: pieces without a name and an id belong to it."""
        self._waiting: OrderedDict[int, _Call] = OrderedDict()
        self._left = limits.max_bytes
        """Bytes that may still be kept and that the builder does not count: ids, names, arguments that wait."""
        self._limits = limits
        self._next: dict[int, _Call] = {}
        """The call that began after the arguments of another, by the key of the other."""
        self._last: _Call | None = None
        self._count = 0
        self._in_list: set[int] = set()
        """The calls that occurred already in the list that is being read."""

    # --- for the decoder ----------------------------------------------------------------------------

    def read(self, pieces: list[CallPiece], *, are_whole: bool = False) -> None:
        """Read the pieces of one chunk. Those of a message (`are_whole`) are one call each."""
        self._in_list.clear()
        for piece in pieces:
            for problem in piece.problems:
                self.builder.report(problem)
            is_own = not piece.kind or piece.kind in _OWN_KINDS
            if not (piece.name or piece.text or (is_own and (piece.id or piece.extra))):
                if not is_own:
                    self._read_unknown(piece)
                continue
            self._keep(_WEIGHT + len(piece.id) + len(piece.name))
            count = self._count
            call = self._begin(piece) if are_whole else self._find(piece)
            if self._count > count and not are_whole and not piece.is_legacy:
                self._check_beginning(piece, count)
            self._in_list.add(call.key)
            self._last = call
            if not call.is_flowing or piece.id or piece.extra or piece.inner:
                self._learn(call, piece)
            if piece.text:
                self.add(call, piece.text)
            elif call.key in self._waiting:
                self._feed(call, self._advance(call))
        self.builder.holds_back = bool(self._waiting)

    @property
    def has_blank(self) -> bool:
        """Whether a call has no arguments."""
        return self._added.has_blank

    @property
    def has_begun(self) -> bool:
        """Whether there is a call."""
        return self._count > 0

    def _check_beginning(self, piece: CallPiece, count: int) -> None:
        """Report what a client cannot put together: it uses the index and the first piece of a call."""
        if piece.index is not None and piece.index != count:
            self.builder.report("the indexes of calls do not count up from 0")
        if not piece.id or not piece.name:
            self.builder.report("a call begins without its id or its name")
        if not piece.kind:
            self.builder.report(NO_TYPE)

    def _keep(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise limit_error("max_bytes", self._limits.max_bytes, "$")

    def add(self, call: _Call, piece: str) -> None:
        """Add arguments to a call. Only a `{` may begin another call."""
        self._last = call
        if "{" in piece or not call.is_flowing:
            self._feed(call, self._take(call, piece))
            self.builder.holds_back = bool(self._waiting)
            return
        self._add_text(call.key, piece)
        if piece[-1] == "}" and not self.builder.is_settled and self._is_whole(call):
            self.builder.close(call.key)

    def pause(self) -> None:
        """Something else began: add the last call, if it waited and its name is certain.

        A free-text call has no end of its own: this is its end.
        """
        call = self._last
        if call is None or call.text is not None:
            return
        if call.key in self._waiting and call.repeated is None and self._can_be_added(call):
            self._feed(call, self._add(call))
            self.builder.holds_back = bool(self._waiting)
        if call.kind == "custom" and call.block is not None:
            self.builder.close(call.key)

    def finish(self) -> None:
        """Add everything that waits."""
        while self._waiting:
            call = next(iter(self._waiting.values()))
            if call.kind not in _OWN_KINDS:
                self._add_opaque(call)
            elif call.repeated is not None:
                self._drop(call, "a part of a call was sent twice; the repetition was left out")
            elif not (call.name or call.id or call.has_input):
                self._drop(call, "a call without name, id and arguments was left out")
            else:
                if not call.name:
                    self.builder.report("a call has no name")
                self._feed(call, self._add(call))
        self.builder.holds_back = False

    # --- which call ---------------------------------------------------------------------------------

    def _find(self, piece: CallPiece) -> _Call:
        if piece.index is None:
            self.builder.report("a call has no index")
        at = self.by_index.get(piece.index) if piece.index is not None else self._last
        if piece.id:
            known = self._by_id.get(piece.id)
            return self._find_for_new_id(at, piece) if known is None else self._find_by_id(known, at, piece)
        if at is None:
            return self._find_for_new_index(piece)
        if piece.name and at.key in self._in_list and (piece.index is None or self._is_whole(at)):
            return self._begin_beside(piece)
        return at if self._continues(at, piece) else self._begin(piece)

    def _find_by_id(self, known: _Call, at: _Call | None, piece: CallPiece) -> _Call:
        call = at if at is not None and at.id == piece.id else known
        if at is None and piece.name and self._is_whole(call):
            self.builder.report("two calls have the same id")
            return self._begin(piece)
        return call if self._continues(call, piece) else self._begin(piece)

    def _find_for_new_id(self, at: _Call | None, piece: CallPiece) -> _Call:
        if at is None:
            return self._begin(piece)
        if at.key in self._in_list and piece.name:
            return self._begin_beside(piece)
        if not at.id:
            is_next = at.name and (piece.name or piece.text) and self._is_whole(at)
            return at if not is_next and self._joins(at, piece.name) else self._begin(piece)
        if piece.index is not None and not piece.name and piece.text.strip() and not self._is_whole(at):
            self.builder.report("a call changes its id; the first one counts")
            return at
        return self._begin_beside(piece)

    def _begin_beside(self, piece: CallPiece) -> _Call:
        """Begin a call at an index that another one has: a client would take both for one."""
        if piece.index is not None:
            self.builder.report("several calls have the same index")
        return self._begin(piece)

    def _find_for_new_index(self, piece: CallPiece) -> _Call:
        """The call of a piece at a new index. Arguments that cannot be a beginning continue the last call."""
        text = piece.text.lstrip()
        if piece.name or self._last is None or not text or text[0] == "{":
            return self._begin(piece)
        self.builder.report("the index of a call changes; its arguments continue")
        return self._last

    def _continues(self, call: _Call, piece: CallPiece) -> bool:
        """Whether a piece continues a call, by its name."""
        if self._joins(call, piece.name):
            return True
        text = piece.text.lstrip()
        if text and text[0] != "{" and call.has_input and not self._is_whole(call):
            self.builder.report("a call changes its name; the first one counts")
            return True
        self.builder.report("several calls have the same index or id")
        return False

    def _joins(self, call: _Call, name: str) -> bool:
        """Set the name of a call, or add to it. False if that cannot be one name."""
        if not name:
            return True
        if not call.name:
            call.name = name
            return True
        if call.has_input or call.block is not None:
            if name != call.name:
                return False
            self.builder.report("the name of a call is repeated")
            return True
        return self._joins_before_input(call, name)

    def _joins_before_input(self, call: _Call, name: str) -> bool:
        is_known = call.name in self._known
        joined = call.name + name
        if not (is_known and (name == call.name or name in self._known)) and self._begins_tool(joined):
            self.builder.report("the name of a call comes in parts")
            call.name = joined
            return True
        if name == call.name:
            self.builder.report("the name of a call is repeated")
            return True
        if not is_known and name.startswith(call.name) and self._begins_tool(name):
            self.builder.report("the name of a call comes in parts")
            call.name = name
            return True
        return False

    def _begins_tool(self, name: str) -> bool:
        """Whether the name of a known tool is this, or begins with it."""
        position = bisect_left(self._tools, name)
        return position < len(self._tools) and self._tools[position].startswith(name)

    def _continues_tool(self, name: str) -> bool:
        """Whether the name of a known tool begins with this and is longer."""
        position = bisect_right(self._tools, name)
        return position < len(self._tools) and self._tools[position].startswith(name)

    def _is_whole(self, call: _Call) -> bool:
        """Whether a call has all of its arguments."""
        if call.text is not None:
            return True
        if call.kind == "custom":
            return False
        if call.is_flowing:
            return self.builder.end_of(call.key) is not None
        while call.scanned < len(call.pieces):
            call.end.look(call.pieces[call.scanned])
            call.scanned += 1
        return call.end.end is not None

    # --- the states of a call -----------------------------------------------------------------------

    def _begin(self, piece: CallPiece) -> _Call:
        self.pause()
        call = _Call(self._count, piece)
        self._count += 1
        self._waiting[call.key] = call
        if piece.index is not None:
            self.by_index[piece.index] = call
        return call

    def _learn(self, call: _Call, piece: CallPiece) -> None:
        if piece.id and not call.id:
            call.id = piece.id
            self._by_id[piece.id] = call
            if call.block is not None:
                self.builder.report("the id of a call came after its arguments began")
        elif piece.id and piece.id == call.id and call.block is not None:
            self.builder.report("the id of a call is repeated")
        if piece.name and not call.name:
            call.name = piece.name
        if call.block is None and piece.kind:
            call.kind = piece.kind
        if piece.is_object:
            call.is_object = True
            self.builder.report("the arguments of a call are an object")
        call.extra.update(piece.extra or {})
        call.inner.update(piece.inner or {})

    def _feed(self, call: _Call, rest: str) -> None:
        """Read what follows the arguments of a call: each object is a call of its own, or a repetition."""
        for start in range(0, len(rest), _WINDOW):
            window = rest[start : start + _WINDOW]
            while window:
                call = self._next.get(call.key, call)
                window = self._take(call, window)

    def _take(self, call: _Call, piece: str) -> str:
        """Add a piece to a call. Returns the rest, which belongs to the call that began next."""
        if call.text is not None:
            return self._take_late(call, piece)
        if call.is_flowing:
            return self._flow(call, piece)
        self._keep(len(piece))
        call.pieces.append(piece)
        call.has_input = call.has_input or call.kind == "custom" or not piece.isspace()
        self._waiting[call.key] = call
        return self._advance(call)

    def _flow(self, call: _Call, piece: str) -> str:
        if call.kind == "custom" or call.is_malformed:
            self.builder.add(call.key, piece)
            return ""
        end = self.builder.end_within(call.key, piece)
        rest = piece[end:].lstrip() if end is not None else ""
        if not rest:
            self.builder.add(call.key, piece)
            return ""
        self.builder.add(call.key, piece[:end])
        written = self.builder.text_of(call.key)
        if rest[0] == "{" and call.name and _is_object(written):
            self._begin_again(call, written)
            return rest
        call.is_malformed = True
        self.builder.add(call.key, piece[end:])
        return ""

    def _take_late(self, call: _Call, piece: str) -> str:
        """Read a piece for a call that has ended."""
        rest = piece.lstrip()
        if call.kind == "custom":
            # It must not run: the call in the reply is not all of it.
            self.failure = Failure("bad_output", "free-text calls were mixed up in the stream", in_band=True)
        if not rest or call.kind == "custom":
            return ""
        if rest[0] == "{" and not call.is_malformed and _is_object(call.text or ""):
            self._begin_again(call, call.text or "")
            return rest
        call.is_malformed = True
        self.builder.report("arguments came for a call that had all of them; they were left out")
        return ""

    def _begin_again(self, before: _Call, written: str) -> None:
        """Begin a call with an object after the whole arguments of another: a repetition, or another call."""
        call = self._begin(CallPiece(before.index, kind=before.kind))
        call.name, call.is_object, call.repeated = before.name, before.is_object, written.strip()
        self._next[before.key] = call
        if before.id:
            self._by_id[before.id] = call
        self._last = call
        self._in_list.add(call.key)

    def _advance(self, call: _Call) -> str:
        """Add what is certain of a call that waits. Returns the rest, which belongs to the call that began next."""
        if call.kind not in _OWN_KINDS or not self._is_name_sure(call) or self._is_behind_nameless(call):
            return ""
        if call.repeated is not None:
            rest = self._repeat(call)
            if rest is not None:
                return self._take_late(call, rest)
        if call.kind == "custom":
            return self._add(call)
        if not call.has_input:
            if call.id:
                return self._add(call)
            return ""
        if self._may_be_empty(call):
            self._open(call)
            return ""
        return self._add(call)

    def _may_be_empty(self, call: _Call) -> bool:
        """Whether only what may come before the real arguments came so far. Removes it."""
        text = "".join(call.pieces)
        empty = _EMPTY_BEFORE.match(text)
        if empty is not None:
            self.builder.report("{} came before the arguments of a call; it was left out")
            text = text[empty.end() :]
        call.pieces, call.end, call.scanned = [text], ObjectEnd(), 0
        return len(text) <= _MAX_EMPTY_LENGTH and text.strip() in _EMPTY_FIRST

    def _can_be_added(self, call: _Call) -> bool:
        """Whether it can be added under the name that it has so far."""
        is_name = bool(call.name) and (call.name in self._known or not self._continues_tool(call.name))
        return is_name and call.kind in _OWN_KINDS and not self._is_behind_nameless(call)

    def _is_behind_nameless(self, call: _Call) -> bool:
        """Whether a call before it waits for its name. Calls keep their order."""
        first = next(iter(self._waiting.values()), call)
        is_nameless = not first.name and first.kind in _OWN_KINDS and bool(first.id or first.has_input)
        return is_nameless and first.key < call.key and call.repeated is None

    def _is_name_sure(self, call: _Call) -> bool:
        return bool(call.name) and (call.has_input or not self._continues_tool(call.name))

    def _repeat(self, call: _Call) -> str | None:
        """None if a call is not a repetition; else what is left of its pieces after the repetition."""
        repeated = call.repeated or ""
        for piece in call.pieces[call.compared :]:
            if not repeated.startswith(piece, call.matched):
                left = repeated[call.matched :] if len(repeated) - call.matched < len(piece) else ""
                if left and piece.startswith(left):
                    self._drop(call, _TWICE)
                    call.text = repeated
                    return piece[len(left) :]
                call.repeated = None
                self.builder.report("several calls came as one")
                return None
            call.matched += len(piece)
            call.compared += 1
        if call.matched == len(repeated):
            self._drop(call, _TWICE)
        return ""

    def _drop(self, call: _Call, reason: str) -> None:
        self.builder.report(reason)
        self._waiting.pop(call.key, None)
        call.text = "".join(call.pieces)

    def _open(self, call: _Call) -> None:
        if call.block is not None:
            return
        if not call.id and not call.is_legacy:
            self.builder.report("a call has no id")
        extra: Extra | None = {PROTOCOL: dict(call.extra)} if call.extra else None
        call.block = ToolCall(call.id, call.name, type=call.kind, extra=extra, form=_form(call))
        self._added.by_block[id(call.block)] = call
        self.builder.open(call.key, call.block)

    def _add(self, call: _Call) -> str:
        """Add a call, and let the rest of it flow. Returns what belongs to the call that began next."""
        self._waiting.pop(call.key, None)
        self._open(call)
        if not call.has_input:
            return ""
        call.is_flowing = True
        text = "".join(call.pieces)
        call.pieces = []
        return self._flow(call, text)

    def _add_opaque(self, call: _Call) -> None:
        """Add a call of an unknown type, as it is read from a reply that is not streamed."""
        inner = {**call.inner, "name": call.name, "arguments": "".join(call.pieces)}
        value: dict[str, Any] = {**call.extra, "id": call.id, "type": call.kind, "function": inner}
        self._drop(call, "the type of a call is unknown; it is carried as it is")
        self.builder.add_block(Opaque(PROTOCOL, value, call.kind, form=ChatOpaque("tool_calls")))

    def _read_unknown(self, piece: CallPiece) -> None:
        """Add an entry that holds neither a function nor free text."""
        value: dict[str, Any] = {**(piece.extra or {}), "id": piece.id, "type": piece.kind}
        self.builder.report("the type of a call is unknown; it is carried as it is")
        self.builder.add_block(Opaque(PROTOCOL, value, piece.kind, form=ChatOpaque("tool_calls")))


def _form(call: _Call) -> ChatCall | None:
    """The form of a call, as of one that is not streamed."""
    if call.is_legacy:
        return ChatCall(function_call_rest=call.inner)
    return ChatCall(has_no_id=not call.id, inner_rest=call.inner or None) if call.inner or not call.id else None


def _is_object(text: str) -> bool:
    try:
        return type(msgspec.json.decode(text)) is dict
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
