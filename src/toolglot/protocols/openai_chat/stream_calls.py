"""Which call a piece of a stream belongs to, and when a call is told (H1 to H6).

A piece belongs to the call that has its id; a new id is a new call. Without an id, to the last call at its index;
without an index, to the last call. Where a host does not keep to that, these decide, in this order:

- an index that is used for several calls: a new id together with a name, another name, or a whole object followed by
  a fresh one is another call; the same object again is not;
- a name in parts: one that is equal is a repeat; others are joined as long as a known tool begins like that. Without
  known tools, the first name counts, and another name is another call;
- a call without an index in a list that had the same call already is another call: its place in the list says that
  much, but is no index;
- a new id without a name, in the middle of arguments, is a host that makes up an id for each chunk: the first counts.

A call is told as soon as its name is sure. Until then its arguments wait; so do `{}`, which some hosts write before
the real ones, an object that so far repeats the one before it, and a call behind one that has no name yet. Law: no
piece is put into another call, and work is in proportion to what was said: the end of arguments is looked for only
where a `{` may begin another call. What waits is bounded.
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
from toolglot.protocols.openai_chat.stream_chunks import CallPiece

_OWN_KINDS: Final = frozenset({"function", "custom"})
_EMPTY_FIRST: Final = frozenset({"{", "{}"})
"""How arguments may begin that are not the real ones."""
_LONGEST_WAIT: Final = 64
"""Characters of such a beginning."""
_EMPTY_BEFORE: Final = re.compile(r"\s*(?:\{\}\s*)+(?=\{)")
_TWICE: Final = "the arguments of a call were sent twice; the second time is left out"
_WEIGHT: Final = 64
"""What a piece costs beside its texts."""
_WINDOW: Final = 512
"""Characters that are looked at together where calls follow each other in one piece."""


class _Call:
    """A call that was begun: it waits, then flows into the builder, then has ended."""

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
            "is_junk",
            "is_object",
            "is_old",
            "key",
        ),
        *("kind", "looked", "matched", "name", "pieces", "rival", "text"),
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
        self.is_old = piece.is_old
        self.has_input = False
        """Whether anything of its arguments came but spaces."""
        self.pieces: list[str] = []
        """What waits of its arguments."""
        self.end: ObjectEnd = ObjectEnd()
        self.looked = 0
        """How many of the pieces that wait were looked into for their end."""
        self.rival: str | None = None
        """The object that it may only repeat."""
        self.compared = 0
        """How many of the pieces that wait were compared with that."""
        self.matched = 0
        self.block: ToolCall | None = None
        """What it was told as; None while nothing was."""
        self.is_flowing = False
        self.is_junk = False
        """Its arguments are not JSON: nothing can be seen from them."""
        self.text: str | None = None
        """All of its arguments, as soon as it has ended."""


class _Told:
    """The calls that were told and have not ended. The builder holds this, and not `Calls`, which holds it."""

    def __init__(self) -> None:
        self.by_block: dict[int, _Call] = {}
        """By the identity of the block that each was told as."""
        self.has_blank = False
        """Whether a call had no arguments."""

    def build(self, block: ToolCall, written: str) -> ToolCall:
        """The whole call of what was told of it and its arguments."""
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


class Calls:
    """The calls of one reply, and the builder that they are told in."""

    def __init__(self, tools: Collection[str], limits: Limits) -> None:
        self._told = _Told()
        self.builder: EventBuilder = EventBuilder(build_call=self._told.build, limits=limits)
        self._say = self.builder.add
        self.failure: Failure | None = None
        """Why the calls that were told are not to be trusted."""
        self._tools: list[str] = sorted({tool for tool in tools if tool})
        self._known = frozenset(self._tools)
        self._by_id: dict[str, _Call] = {}
        self.by_index: dict[int | None, _Call] = {}
        """The last call at each index: the one that pieces without a name and an id belong to."""
        self._waiting: OrderedDict[int, _Call] = OrderedDict()
        self._left = limits.max_bytes
        """How much more may be kept of what the builder does not count: ids, names, arguments that wait."""
        self._limits = limits
        self._next: dict[int, _Call] = {}
        """The call that was begun behind the arguments of another."""
        self._last: _Call | None = None
        self._count = 0
        self._in_list: set[int] = set()
        """The calls that the list which is being read had already."""

    # --- what a decoder says ------------------------------------------------------------------------

    def read(self, pieces: list[CallPiece], *, are_whole: bool = False) -> None:
        """The pieces of one chunk. Those of a message, which `are_whole`, are a call each."""
        self._in_list.clear()
        for piece in pieces:
            for oddity in piece.oddities:
                self.builder.report(oddity)
            is_own = not piece.kind or piece.kind in _OWN_KINDS
            if not (piece.name or piece.text or (is_own and (piece.id or piece.extra))):
                if not is_own:
                    self._read_unknown(piece)
                continue
            self._keep(_WEIGHT + len(piece.id) + len(piece.name))
            count = self._count
            call = self._begin(piece) if are_whole else self._of(piece)
            if self._count > count and not are_whole and not piece.is_old:
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
        return self._told.has_blank

    @property
    def has_begun(self) -> bool:
        """Whether there is a call."""
        return self._count > 0

    def _check_beginning(self, piece: CallPiece, count: int) -> None:
        """Look for what a client cannot put together: it goes by the index, and by the first piece of a call."""
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
        """More of a call's arguments. Only a `{` may begin another call."""
        self._last = call
        if "{" in piece or not call.is_flowing:
            self._feed(call, self._take(call, piece))
            self.builder.holds_back = bool(self._waiting)
            return
        self._say(call.key, piece)
        if piece[-1] == "}" and not self.builder.is_settled and self._is_whole(call):
            self.builder.close(call.key)

    def pause(self) -> None:
        """Something else began: what waited for the last call to go on is told, if its name is sure.

        A call with free text has no end of its own: this is it.
        """
        call = self._last
        if call is None or call.text is not None:
            return
        if call.key in self._waiting and call.rival is None and self._is_tellable(call):
            self._feed(call, self._tell(call))
            self.builder.holds_back = bool(self._waiting)
        if call.kind == "custom" and call.block is not None:
            self.builder.close(call.key)

    def finish(self) -> None:
        """Nothing follows."""
        while self._waiting:
            call = next(iter(self._waiting.values()))
            if call.kind not in _OWN_KINDS:
                self._tell_opaque(call)
            elif call.rival is not None:
                self._drop(call, "a call was sent twice in part; the part is left out")
            elif not (call.name or call.id or call.has_input):
                self._drop(call, "a call without name, id and arguments is left out")
            else:
                if not call.name:
                    self.builder.report("a call has no name")
                self._feed(call, self._tell(call))
        self.builder.holds_back = False

    # --- which call ---------------------------------------------------------------------------------

    def _of(self, piece: CallPiece) -> _Call:
        if piece.index is None:
            self.builder.report("a call has no index")
        at = self.by_index.get(piece.index) if piece.index is not None else self._last
        if piece.id:
            known = self._by_id.get(piece.id)
            return self._of_new_id(at, piece) if known is None else self._of_known_id(known, at, piece)
        if at is None:
            return self._of_new_index(piece)
        if piece.name and at.key in self._in_list and (piece.index is None or self._is_whole(at)):
            return self._begin_beside(piece)
        return at if self._continues(at, piece) else self._begin(piece)

    def _of_known_id(self, known: _Call, at: _Call | None, piece: CallPiece) -> _Call:
        call = at if at is not None and at.id == piece.id else known
        if at is None and piece.name and self._is_whole(call):
            self.builder.report("two calls have the same id")
            return self._begin(piece)
        return call if self._continues(call, piece) else self._begin(piece)

    def _of_new_id(self, at: _Call | None, piece: CallPiece) -> _Call:
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
        """A call at an index that another one has: a client that goes by it would take both for one."""
        if piece.index is not None:
            self.builder.report("several calls have the same index")
        return self._begin(piece)

    def _of_new_index(self, piece: CallPiece) -> _Call:
        """Nothing but arguments at an index that was not said before: a host that lost count, if they cannot begin."""
        text = piece.text.lstrip()
        if piece.name or self._last is None or not text or text[0] == "{":
            return self._begin(piece)
        self.builder.report("the index of a call changes; its arguments go on")
        return self._last

    def _continues(self, call: _Call, piece: CallPiece) -> bool:
        """Whether a piece for a call is more of it, by its name."""
        if self._joins(call, piece.name):
            return True
        text = piece.text.lstrip()
        if text and text[0] != "{" and call.has_input and not self._is_whole(call):
            self.builder.report("a call changes its name; the first one counts")
            return True
        self.builder.report("several calls have the same index or id")
        return False

    def _joins(self, call: _Call, name: str) -> bool:
        """Give a call its name, or more of it; whether that can be one name."""
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
        """Whether a known tool is called that, or begins like that."""
        place = bisect_left(self._tools, name)
        return place < len(self._tools) and self._tools[place].startswith(name)

    def _goes_on(self, name: str) -> bool:
        """Whether a known tool begins like that and goes on."""
        place = bisect_right(self._tools, name)
        return place < len(self._tools) and self._tools[place].startswith(name)

    def _is_whole(self, call: _Call) -> bool:
        """Whether a call has all of its arguments."""
        if call.text is not None:
            return True
        if call.kind == "custom":
            return False
        if call.is_flowing:
            return self.builder.end_of(call.key) is not None
        while call.looked < len(call.pieces):
            call.end.look(call.pieces[call.looked])
            call.looked += 1
        return call.end.end is not None

    # --- a call's way -------------------------------------------------------------------------------

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
        """What follows the arguments of a call: each object is a call of its own, or a repeat."""
        for start in range(0, len(rest), _WINDOW):
            window = rest[start : start + _WINDOW]
            while window:
                call = self._next.get(call.key, call)
                window = self._take(call, window)

    def _take(self, call: _Call, piece: str) -> str:
        """Give a piece to a call. What is left of it is for the call that was begun next."""
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
        if call.kind == "custom" or call.is_junk:
            self.builder.add(call.key, piece)
            return ""
        end = self.builder.end_within(call.key, piece)
        rest = piece[end:].lstrip() if end is not None else ""
        if not rest:
            self.builder.add(call.key, piece)
            return ""
        self.builder.add(call.key, piece[:end])
        said = self.builder.text_of(call.key)
        if rest[0] == "{" and call.name and _is_object(said):
            self._begin_again(call, said)
            return rest
        call.is_junk = True
        self.builder.add(call.key, piece[end:])
        return ""

    def _take_late(self, call: _Call, piece: str) -> str:
        """A piece for a call that has ended."""
        rest = piece.lstrip()
        if call.kind == "custom":
            # Nobody may run it: what it was told as is not all of it.
            self.failure = Failure("bad_output", "free-text calls were mixed up in the stream", in_band=True)
        if not rest or call.kind == "custom":
            return ""
        if rest[0] == "{" and not call.is_junk and _is_object(call.text or ""):
            self._begin_again(call, call.text or "")
            return rest
        call.is_junk = True
        self.builder.report("arguments came for a call that had all of them; they are left out")
        return ""

    def _begin_again(self, before: _Call, said: str) -> None:
        """An object follows the whole arguments of a call: the same again, or another call."""
        call = self._begin(CallPiece(before.index, kind=before.kind))
        call.name, call.is_object, call.rival = before.name, before.is_object, said.strip()
        self._next[before.key] = call
        if before.id:
            self._by_id[before.id] = call
        self._last = call
        self._in_list.add(call.key)

    def _advance(self, call: _Call) -> str:
        """Tell what can be told of a call that waits. What is left is for the call that was begun next."""
        if call.kind not in _OWN_KINDS or not self._is_name_sure(call) or self._is_behind_nameless(call):
            return ""
        if call.rival is not None:
            rest = self._repeat(call)
            if rest is not None:
                return self._take_late(call, rest)
        if call.kind == "custom":
            return self._tell(call)
        if not call.has_input:
            if call.id:
                return self._tell(call)
            return ""
        if self._may_be_empty(call):
            self._open(call)
            return ""
        return self._tell(call)

    def _may_be_empty(self, call: _Call) -> bool:
        """Whether so far there is only what may stand before the real arguments; that is taken out."""
        text = "".join(call.pieces)
        empty = _EMPTY_BEFORE.match(text)
        if empty is not None:
            self.builder.report("{} stood before the arguments of a call; it is left out")
            text = text[empty.end() :]
        call.pieces, call.end, call.looked = [text], ObjectEnd(), 0
        return len(text) <= _LONGEST_WAIT and text.strip() in _EMPTY_FIRST

    def _is_tellable(self, call: _Call) -> bool:
        """Whether it may be told under its name if nothing more of that comes soon."""
        is_name = bool(call.name) and (call.name in self._known or not self._goes_on(call.name))
        return is_name and call.kind in _OWN_KINDS and not self._is_behind_nameless(call)

    def _is_behind_nameless(self, call: _Call) -> bool:
        """Whether a call waits before it that has no name yet, and may never get one: calls keep their order."""
        first = next(iter(self._waiting.values()), call)
        is_nameless = not first.name and first.kind in _OWN_KINDS and bool(first.id or first.has_input)
        return is_nameless and first.key < call.key and call.rival is None

    def _is_name_sure(self, call: _Call) -> bool:
        return bool(call.name) and (call.has_input or not self._goes_on(call.name))

    def _repeat(self, call: _Call) -> str | None:
        """None if a call is not the one before it again; otherwise what is left of its pieces, once it was repeated."""
        rival = call.rival or ""
        for piece in call.pieces[call.compared :]:
            if not rival.startswith(piece, call.matched):
                left = rival[call.matched :] if len(rival) - call.matched < len(piece) else ""
                if left and piece.startswith(left):
                    self._drop(call, _TWICE)
                    call.text = rival
                    return piece[len(left) :]
                call.rival = None
                self.builder.report("several calls came as one")
                return None
            call.matched += len(piece)
            call.compared += 1
        if call.matched == len(rival):
            self._drop(call, _TWICE)
        return ""

    def _drop(self, call: _Call, reason: str) -> None:
        self.builder.report(reason)
        self._waiting.pop(call.key, None)
        call.text = "".join(call.pieces)

    def _open(self, call: _Call) -> None:
        if call.block is not None:
            return
        if not call.id and not call.is_old:
            self.builder.report("a call has no id")
        extra: Extra | None = {PROTOCOL: dict(call.extra)} if call.extra else None
        call.block = ToolCall(call.id, call.name, type=call.kind, extra=extra, form=_form(call))
        self._told.by_block[id(call.block)] = call
        self.builder.open(call.key, call.block)

    def _tell(self, call: _Call) -> str:
        """Tell all that there is of a call, and let the rest flow. What is left is for the call that was begun next."""
        self._waiting.pop(call.key, None)
        self._open(call)
        if not call.has_input:
            return ""
        call.is_flowing = True
        text = "".join(call.pieces)
        call.pieces = []
        return self._flow(call, text)

    def _tell_opaque(self, call: _Call) -> None:
        """A call of a kind that is not known, put together, as it is read from a whole reply."""
        inner = {**call.inner, "name": call.name, "arguments": "".join(call.pieces)}
        value: dict[str, Any] = {**call.extra, "id": call.id, "type": call.kind, "function": inner}
        self._drop(call, "a call is of a type that is not known; it is carried as it is")
        self.builder.add_block(Opaque(PROTOCOL, value, call.kind, form=ChatOpaque("tool_calls")))

    def _read_unknown(self, piece: CallPiece) -> None:
        """An entry that holds neither a function nor free text."""
        value: dict[str, Any] = {**(piece.extra or {}), "id": piece.id, "type": piece.kind}
        self.builder.report("a call is of a type that is not known; it is carried as it is")
        self.builder.add_block(Opaque(PROTOCOL, value, piece.kind, form=ChatOpaque("tool_calls")))


def _form(call: _Call) -> ChatCall | None:
    """How a call was written, as of one that is read whole."""
    if call.is_old:
        return ChatCall(function_call_rest=call.inner)
    return ChatCall(has_no_id=not call.id, inner_rest=call.inner or None) if call.inner or not call.id else None


def _is_object(text: str) -> bool:
    try:
        return type(msgspec.json.decode(text)) is dict
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
