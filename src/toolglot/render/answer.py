"""The way back: a model's answer as the client that asked knows its tools, ids and arguments.

Law 11: a call that cannot be read is never handed on as one that can be run. Where the client's protocol writes
arguments as text, it gets what the model wrote; where it wants an object, the call becomes words.
"""

from __future__ import annotations

import itertools
from typing import Final

from msgspec.structs import replace

from toolglot import arguments, ids
from toolglot.conversation import Block, Issuer, Reply, Text, ToolCall, ToolMetadata
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.render.foreign import strip_opaque
from toolglot.render.job import Job
from toolglot.render.rendering import Rendered
from toolglot.turn_keys import TurnKeys

UNREADABLE: Final = "[The model called {name} with arguments that cannot be read: {written}]"
SHOWN: Final = 2_000


def for_client(reply: Reply, source: Profile, target: Profile, request: Rendered | None, job: Job) -> Reply:
    """A provider's reply under the client's names and ids."""
    return _Answer(reply, source, target, request, job).told()


class _Answer:
    def __init__(self, reply: Reply, source: Profile, target: Profile, request: Rendered | None, job: Job) -> None:
        self._reply = reply
        self._source = source
        self._target = target
        self._request = request
        self._job = job
        self._is_abroad = source.protocol != target.protocol
        self._given = ids.Projection(target, policy="reversible")
        so_far = f"@{len(request.ids)}" if request is not None else ""
        self._key = TurnKeys().new(reply.turn) + so_far
        """Tells this answer from the same one given at another time of the conversation."""

    def told(self) -> Reply:
        reply = self._at_hand() if self._is_abroad else self._reply
        if not reply.turn.calls:
            return reply
        numbers = itertools.count()
        blocks = tuple(
            [self._call(block, next(numbers)) if isinstance(block, ToolCall) else block for block in reply.turn.blocks]
        )
        has_calls = any(isinstance(block, ToolCall) for block in blocks)
        stop = reply.stop
        if self._is_abroad and has_calls and stop is None:
            stop = "tool_calls"  # a whole answer with calls ended for them, said or not
        if not has_calls and stop == "tool_calls":
            stop = "stop"
        return replace(reply, turn=replace(reply.turn, blocks=blocks), stop=stop)

    def _at_hand(self) -> Reply:
        """The reply as a client of another protocol can read it."""
        turn = strip_opaque(self._reply.turn, self._job)
        said = tuple([block for block in turn.blocks if not isinstance(block, Text) or block.text])
        turn = replace(turn, blocks=said) if said and len(said) < len(turn.blocks) else turn
        asked = self._request.conversation.model if self._request is not None else ""
        made = "reply_" + self._key.removeprefix("turn_")[:22]
        return replace(self._reply, turn=turn, model=self._reply.model or asked, id=self._reply.id or made)

    def _call(self, call: ToolCall, index: int) -> Block:
        """A call under the client's name for the tool, and an id that the client can send back."""
        emitted = replace(call, id=self._id(call, index))
        original = emitted
        if self._request is not None:
            original = self._request.tools.original_call(emitted)
            self._check(original, emitted.name)
        if original.type == "function" and original.arguments is None and (original.raw_input or "").strip():
            return self._unreadable(original)
        return original

    def _id(self, call: ToolCall, index: int) -> str:
        raw_id = call.id or None
        issuer = Issuer(self._source.name if self._is_abroad or raw_id is None else self._target.name)
        canonical = ids.mint(self._source.name, raw_id, call.name, self._key, index)
        given = self._given.add(replace(call, id=canonical, metadata=ToolMetadata(raw_id, issuer)))
        if raw_id is not None and ids.translate(raw_id, to="openai") != ids.translate(given, to="openai"):
            reason = f"the id {raw_id[:80]!r} is taken or not legal for the client; it is {given!r} there"
            self._job.tell("replaced", reason, "projection", call_ids=(given,))
        return given

    def _check(self, call: ToolCall, emitted_name: str) -> None:
        """Tell where the model left what the client declared."""
        if self._request is None:
            return
        if self._request.conversation.tools and self._request.tools.of(emitted_name) is None:
            reason = f"the model called {call.name[:80]!r}, which is no tool of the request"
            self._job.tell("mismatched", reason, "canonical", call_ids=(call.id,))
        for mismatch in self._request.tools.mismatches(call):
            where = f"arguments of {call.name[:80]} at {mismatch.path}"
            self._job.tell("mismatched", f"{where}: {mismatch.message}", "canonical", call_ids=(call.id,))

    def _unreadable(self, call: ToolCall) -> Block:
        """A call whose arguments are cut or no object."""
        written = call.raw_input or ""
        try:
            arguments.parse(written)
            why = "they are no JSON object"
        except InputError as error:
            why = error.message
        if self._target.calls.arguments == "string":
            reason = f"the arguments of {call.name[:80]} cannot be read ({why}); they are handed on as they came"
            self._job.tell("mismatched", reason, "canonical", call_ids=(call.id,))
            return call
        reason = f"the call of {call.name[:80]} cannot be run ({why}); it became text"
        self._job.tell("converted", reason, "canonical", call_ids=(call.id,))
        shown = written if len(written) <= SHOWN else written[:SHOWN] + "…"
        return Text(UNREADABLE.format(name=call.name, written=shown))
