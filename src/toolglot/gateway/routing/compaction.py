"""Compaction and context edits for upstreams that have neither: the model itself summarises, and we clear.

    work = context_work(conversation, source, target)      # None: there is nothing to do here
    call.edit = work.summarising                           # first call: the conversation, and the wish for a summary
    call.edit = work.continuing                            # second call, unless the reply ends with the summary

What a provider does itself for its own protocol (`request.context_management` of its profile) is left to it.

Laws: what a summary stands for is never lost silently. The request after a compaction is rendered as all later ones
are, so that they begin alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Compaction, Conversation, Failure, Reply, Text, ToolChoice, Turn, Usage
from toolglot.conversation.context_requests import AppliedEdit, CompactionRequest, ContextRequest
from toolglot.conversation.report import Entry
from toolglot.gateway.endpoints.token_counts import estimate
from toolglot.history.context_edits import edit_context
from toolglot.profiles import Profile
from toolglot.protocols.base import codec
from toolglot.protocols.context_form import ContextForm
from toolglot.protocols.errors.failures import ProviderError
from toolglot.render.content.compaction import turns_in_effect
from toolglot.translate.reply_head import ReplyHead

MIN_SUMMARY_TOKENS: Final = 4_096
"""A smaller limit of the client's, which is meant for its replies, would cut the summary."""
MAX_SUMMARY: Final = 400_000
"""Characters of a summary: far more than a model that summarises writes."""
MAX_LAST_MESSAGE: Final = 20_000
"""Characters of the user's last message that are kept word for word."""
INSTRUCTIONS: Final = (
    "Summarise the conversation so far. The summary will replace it, and you will continue from the summary alone. So "
    "keep everything that is needed for that: what the user wants, in their own words where these matter; what was "
    "done and found out, with the names of files, commands, values and ids; decisions and why they were made; errors "
    "and how they were fixed; what is still open, and the next step. Write only the summary. Do not call any tool."
)
_NO_SUMMARY: Final = "the model wrote no summary of the conversation"


class EditedContext(NamedTuple):
    """A conversation after the edits, what to report of them, and what the reply is to say."""

    conversation: Conversation
    entries: list[Entry]
    head: ReplyHead | None = None


ContextEditor = Callable[[Conversation], EditedContext]


class ContextWork:
    """What one request wants to be done to its context, and its upstream does not do."""

    def __init__(self, wanted: ContextRequest, form: ContextForm, source: Profile, target: Profile) -> None:
        self._wanted = wanted
        self._form = form
        self._source = source
        self._target = target
        self._applied: tuple[AppliedEdit, ...] = ()
        self.block: Compaction | None = None
        """The compaction, once it was made."""
        self.summarised = Usage()
        """The tokens that it took."""
        self._failure = ""

    @property
    def stops_after(self) -> bool:
        """Whether the reply is the summary alone."""
        return self._wanted.compaction is not None and self._wanted.compaction.stops_after

    async def is_due(self, conversation: Conversation, model: str) -> bool:
        """Whether the conversation is to be summarised now."""
        wanted = self._wanted.compaction
        if wanted is None or self.block is not None:
            return False
        if wanted.trigger_tokens is None:
            return True
        return await asyncio.to_thread(_tokens, conversation, model) > wanted.trigger_tokens

    # --- the request for a summary ------------------------------------------------------------------

    def summarising(self, conversation: Conversation) -> EditedContext:
        """The request for a summary."""
        wanted = self._wanted.compaction or CompactionRequest()
        plain, options = self._form.without(conversation), conversation.options
        limit = options.sampling.max_tokens
        sampling = replace(options.sampling, stop=())
        if limit is not None and limit < MIN_SUMMARY_TOKENS:
            sampling = replace(sampling, max_tokens=MIN_SUMMARY_TOKENS)
        choice = ToolChoice("none") if conversation.tools else None
        options = replace(options, stream=False, output=None, tool_choice=choice, sampling=sampling)
        turns = (*plain.turns, Turn("user", (Text(wanted.instructions or INSTRUCTIONS),)))
        return EditedContext(replace(plain, turns=turns, options=options), [])

    def summary_of(self, reply: Reply, conversation: Conversation) -> str:
        """The summary in a reply; a reply without one is an error of the provider."""
        summary = reply.turn.text.strip()[:MAX_SUMMARY]
        if not summary:
            raise ProviderError(Failure("bad_output", _NO_SUMMARY, in_band=True))
        last = "" if self._form.keeps_prompts else _last_message(self._form.without(conversation))
        return f"{summary}\n\nThe user's last message, word for word:\n{last}" if last else summary

    def take(self, summary: str, mark: str, id: str, usage: Usage) -> None:
        """Take a summary, as the compaction that the client gets."""
        self.summarised = usage
        protocol, keeps = self._source.protocol, self._form.keeps_prompts
        self.block = Compaction(summary, mark, protocol, id, keeps_prompts=keeps)

    def take_over(self, other: ContextWork) -> None:
        """Take the summary that was made for an upstream that failed after it."""
        self.block, self.summarised = other.block, other.summarised

    def note_failure(self, reason: str) -> None:
        """No summary could be made: the request goes on without."""
        self._failure = reason

    @property
    def counts_all(self) -> bool:
        """Whether the tokens of the client's reply include those of the summary."""
        return self._form.usage_is_total

    def reply(self, id: str, model: str) -> Reply:
        """The reply that is the compaction and nothing else."""
        form, blocks = self._form, (self.block,) if self.block is not None else ()
        usage = form.usage(None, self.summarised, goes_on=False)
        head = ReplyHead(applied=() if form.reply_fields is not None else None)
        reply = Reply(Turn("assistant", blocks), form.stop, usage, id, model, form=form.stop_form)
        return head.add_to(reply, self._source.protocol)

    # --- the request that continues ------------------------------------------------------------------

    def continuing(self, conversation: Conversation) -> EditedContext:
        """The request for the model's answer, after what the client wants was done."""
        plain = self._form.without(conversation)
        entries = [
            Entry(action="dropped", reason=f"{kind} is not known, and was not done", fault="loss", path=_PATH)
            for kind in self._wanted.unknown
        ]
        if self._failure:
            reason = f"the conversation was not summarised: {self._failure}"
            entries.append(Entry(action="dropped", reason=reason, fault="loss", path=_PATH))
        blocks: tuple[Compaction, ...] = ()
        if self.block is not None:
            blocks = (self.block,)
            plain = replace(plain, turns=(*plain.turns, Turn("assistant", blocks)))
            entries.append(summary_entry(self._target.name, self.summarised))
        model = conversation.model
        plain, self._applied = edit_context(plain, self._wanted.edits, lambda some: _tokens(some, model))
        entries += [_edit_entry(edit) for edit in self._applied]
        applied = self._applied if self._form.reply_fields is not None else None
        summarised = self.summarised if blocks else None
        return EditedContext(plain, entries, ReplyHead(blocks=blocks, summarised=summarised, applied=applied))


_PATH: Final = "$.context_management"


def context_work(conversation: Conversation, source: Profile, target: Profile) -> ContextWork | None:
    """What is to be done for a request here; None: nothing, or its upstream does it."""
    form = codec(source.protocol).context
    wanted = form.read(conversation) if form is not None else None
    if form is None or wanted is None or is_native(source, target):
        return None
    return ContextWork(wanted, form, source, target)


def is_native(source: Profile, target: Profile) -> bool:
    """Whether the target does itself what requests of the source want to be done to their context."""
    return source.protocol == target.protocol and bool(target.request.context_management)


def summary_entry(target: str, usage: Usage) -> Entry:
    tokens = f" ({usage.input_tokens} tokens became {usage.output_tokens})" if usage.input_tokens else ""
    reason = f"the conversation was summarised by the model{tokens}, as the request wants; {target} has no compaction"
    return Entry(action="compressed", reason=reason, fault="policy", path=_PATH)


def _edit_entry(edit: AppliedEdit) -> Entry:
    what = "turns with thinking" if edit.is_thinking else "results of tools"
    reason = f"{edit.cleared} {what} (about {edit.tokens} tokens) were cleared, as {edit.kind} of the request wants"
    return Entry(action="compressed", reason=reason, fault="policy", path=_PATH)


def _tokens(conversation: Conversation, model: str) -> int:
    return estimate(replace(conversation, turns=turns_in_effect(conversation.turns)), model=model)


def _last_message(conversation: Conversation) -> str:
    """The user's last message, if nothing followed it; empty: something did."""
    last = conversation.turns[-1] if conversation.turns else None
    if last is None or last.role != "user" or last.results:
        return ""
    text = last.text.strip()
    return text if len(text) <= MAX_LAST_MESSAGE else f"{text[:MAX_LAST_MESSAGE]} …"
