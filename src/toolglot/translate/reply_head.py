"""What a reply says before the provider's own words: a summary that was made, and what was done to the context.

    out.head = ReplyHead(…)                     # on what `convert` returned
    convert_reply(…, request=out)               # the reply begins with it
    StreamTranslator(…, request=out)            # so does the stream

Law: the whole reply and the stream say the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Block, Extra, Reply, Usage
from toolglot.conversation.context_requests import AppliedEdit
from toolglot.conversation.events import Event, Finished, Started, Used
from toolglot.conversation.reply_events import of_block
from toolglot.protocols.base import codec


class ReplyHead(Struct, frozen=True, kw_only=True):
    """What a reply says before the provider's own words.

    blocks: the first blocks.
    summarised: the tokens of the request that made a summary.
    applied: the edits that were made; None: the client wants none, and does not read what was done.
    """

    blocks: tuple[Block, ...] = ()
    summarised: Usage | None = None
    applied: tuple[AppliedEdit, ...] | None = None

    def add_to(self, reply: Reply, protocol: str) -> Reply:
        """A whole reply with it, for a client of this protocol."""
        usage = self.usage(reply.usage, protocol)
        turn = replace(reply.turn, blocks=(*self.blocks, *reply.turn.blocks))
        return replace(reply, turn=turn, usage=usage, extra=self.extra_with(reply.extra, protocol))

    def usage(self, usage: Usage | None, protocol: str) -> Usage | None:
        form = codec(protocol).context
        if self.summarised is None or form is None:
            return usage
        return form.usage(usage, self.summarised, goes_on=True)

    def extra_with(self, extra: Extra | None, protocol: str) -> Extra | None:
        form = codec(protocol).context
        if self.applied is None or form is None or form.reply_fields is None:
            return extra
        own = (extra or {}).get(protocol, {})
        return {**(extra or {}), protocol: {**own, **form.reply_fields(self.applied)}}

    def add_to_events(self, events: Iterable[Event], protocol: str) -> list[Event]:
        """The events of a stream with it."""
        passed: list[Event] = []
        for event in events:
            if isinstance(event, Used):
                usage = self.usage(event.usage, protocol)
                passed.append(Used(usage) if usage is not None else event)
            elif isinstance(event, Finished):
                passed.append(replace(event, extra=self.extra_with(event.extra, protocol)))
            else:
                passed.append(event)
                if isinstance(event, Started):
                    for block in self.blocks:
                        passed += of_block(block)
        return passed
