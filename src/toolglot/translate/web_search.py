"""Web search that a provider runs itself, for clients of another protocol.

A client that asks for its own provider's search gets the target's, if the target has one. What was searched for, found
and cited comes back in the form that the client knows.

Laws: nothing is searched that the client did not ask for. Texts are never changed. A search that was written for a
client of another protocol is marked, and no provider gets it back as its own.
"""

from __future__ import annotations

import operator

from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Conversation,
    Extra,
    Form,
    Issuer,
    Opaque,
    Reply,
    ServerTool,
    Text,
    ToolChoice,
    ToolSpec,
    Usage,
)
from toolglot.conversation.events import BlockEnded, BlockStarted, Event, Finished, Used
from toolglot.conversation.reply_events import of_block
from toolglot.conversation.report import Entry
from toolglot.conversation.web_search import Citation, SearchRun, WebSearch
from toolglot.profiles import Profile
from toolglot.protocols.base import codec
from toolglot.protocols.fields.web_search import MAX_CITATIONS, SearchCodec, without_field

# --- requests ---------------------------------------------------------------------------------------


def wants_search(conversation: Conversation, protocol: str) -> bool:
    """Whether a client of a protocol asks for a web search of its provider."""
    return bool(_requested_searches(conversation, codec(protocol).search))


def requested_searches(conversation: Conversation, protocol: str) -> dict[int, WebSearch]:
    """The searches that a client of a protocol asks for, by the index of the tool; -1: a field of the request does."""
    return _requested_searches(conversation, codec(protocol).search)


def without_searches(conversation: Conversation, protocol: str) -> tuple[Conversation, set[str]]:
    """The conversation without the searches that its client asks for, and the names of their tools."""
    search = codec(protocol).search
    found = _requested_searches(conversation, search)
    kept = [tool for index, tool in enumerate(conversation.tools) if index not in found]
    names = {conversation.tools[index].name for index in found if index >= 0}
    extra = conversation.extra
    if -1 in found and search.options_field:
        extra = without_field(extra, protocol, search.options_field)
    return replace(conversation, tools=tuple(kept), extra=extra), {name for name in names if name}


def search_for_target(conversation: Conversation, source: Profile, target: Profile) -> tuple[Conversation, list[Entry]]:
    """The conversation with the target's own web search in place of that of the client's provider."""
    if source.protocol == target.protocol or not (target.tools.web_search or target.tools.web_fetch):
        return conversation, []
    found = _requested_searches(conversation, codec(source.protocol).search)
    has_functions = any(tool.issuer is None for tool in conversation.tools)
    if not found or (has_functions and not target.tools.search_with_functions):
        return conversation, []  # what cannot be run is refused or dropped later, as the policy says
    tools: list[ToolSpec] = [*conversation.tools]
    entries: list[Entry] = []
    kinds: set[str] = set()
    replaced: dict[int, ToolSpec | None] = {}
    for index, search in found.items():
        tool, reported = _target_tool(search, target)
        if tool is None:
            continue
        replaced[index] = None if tool.type in kinds else tool
        kinds.add(tool.type)
        entries += reported
    if not replaced:
        return conversation, []
    kept = [replaced.get(index, tool) for index, tool in enumerate(tools)]
    added = [tool for index, tool in replaced.items() if index < 0 and tool is not None]
    sent = tuple([tool for tool in (*kept, *added) if tool is not None])
    names = {tools[index].name for index in replaced if index >= 0}
    choice = _fit_choice(conversation.options.tool_choice, names, sent, target)
    options = conversation.options
    if choice is not options.tool_choice:
        options = replace(options, tool_choice=choice)
    extra, field = conversation.extra, codec(source.protocol).search.options_field
    if -1 in replaced and field:
        extra = without_field(extra, source.protocol, field)
    own = (extra or {}).get(target.protocol, {})
    more = codec(target.protocol).search.request_fields(own)
    extra = extra if more is own else {**(extra or {}), target.protocol: more}
    return replace(conversation, tools=sent, options=options, extra=extra), entries


def _requested_searches(conversation: Conversation, search: SearchCodec) -> dict[int, WebSearch]:
    """The searches that a client asks for, by the index of the tool; -1: a field of the request does."""
    found: dict[int, WebSearch] = {}
    for index, tool in enumerate(conversation.tools):
        if tool.issuer is not None and tool.opaque is not None and isinstance(tool.opaque.value, dict):
            read = search.read_tool(tool.opaque.value)
            if read is not None:
                found[index] = read
    asked = search.read_options(conversation.extra)
    if asked is not None:
        found[-1] = asked
    return found


def _target_tool(search: WebSearch, target: Profile) -> tuple[ToolSpec | None, list[Entry]]:
    """The target's own tool, and what is reported of it; None: it has none."""
    kind = target.tools.web_fetch if search.kind == "fetch" else ""
    kind = kind or target.tools.web_search
    if not kind:
        return None, []
    fields, lost = codec(target.protocol).search.write_tool(search, kind)
    name = fields.get("name", "")
    tool = ToolSpec(name, type=kind, issuer=Issuer(target.protocol), opaque=Opaque(target.protocol, fields, kind))
    reason = f"the web search of the client's provider became {kind} of {target.title}"
    entries = [Entry(action="converted", reason=reason, fault="renderer", path="$.tools", target=target.name)]
    if lost:
        reason = f"{kind} of {target.title} has no setting for {', '.join(lost)}"
        entries.append(Entry(action="dropped", reason=reason, fault="loss", path="$.tools", target=target.name))
    return tool, entries


def _fit_choice(
    choice: ToolChoice | None, names: set[str], tools: tuple[ToolSpec, ...], target: Profile
) -> ToolChoice | None:
    """A choice that names the search, for a target whose search has no name, or another one."""
    if choice is None or not names.intersection(choice.names):
        return choice
    own = {tool.name for tool in tools if tool.issuer is not None and tool.name}
    if own & set(choice.names):
        return choice
    return ToolChoice("required") if len(tools) == 1 and target.tools.forced_search else None


# --- replies ----------------------------------------------------------------------------------------


class SearchProjection:
    """The searches of one reply for a client of another protocol."""

    def __init__(self, source: str, target: str) -> None:
        self._from, self._to = codec(source).search, codec(target).search
        self._source, self._target = source, target
        self._read: tuple[Form | None, Extra | None] | None = None
        """The form of the reply and the fields of its message that are left of the source's."""
        self._reader = self._from.new_reader()
        self._texts: list[str] = []
        self._length = 0
        self._runs: list[SearchRun] = []
        self._citations: list[Citation] = []
        self._usage: Usage | None = None

    @classmethod
    def between(cls, source: Profile, target: Profile, request: Conversation | None) -> SearchProjection | None:
        """None: both speak the same protocol, the client has none for it, or the request asked for no search.

        A client that did not ask for one may not know the blocks and fields of a search.
        """
        if source.protocol == target.protocol or request is None or not wants_search(request, source.protocol):
            return None
        if type(codec(target.protocol).search) is SearchCodec:
            return None
        return cls(source.protocol, target.protocol)

    # a whole reply is what its events are, so that both ways have the same result

    def reply(self, reply: Reply) -> Reply:
        blocks: list[Block] = []
        for block in reply.turn.blocks:
            blocks += self._block(block)
        last = blocks[-1] if blocks else None
        at_end, cited = self._read_end(reply.form, reply.turn.extra, last)
        if cited is not None:
            blocks[-1] = cited
        blocks += at_end
        if reply.usage is not None and (counted := self._counted(reply.usage)) is not reply.usage:
            reply = replace(reply, usage=counted)
        form, extra = self._write_end(reply.form, reply.turn.extra)
        is_same = form is reply.form and extra is reply.turn.extra and len(blocks) == len(reply.turn.blocks)
        if is_same and all(map(operator.is_, blocks, reply.turn.blocks)):
            return reply
        return replace(reply, turn=replace(reply.turn, blocks=tuple(blocks), extra=extra), form=form)

    def pass_on(self, events: list[Event]) -> list[Event]:
        """The events of a stream."""
        passed: list[Event] = []
        for event in events:
            if isinstance(event, BlockStarted):
                if not self._is_search(event.block):
                    passed.append(event)
            elif isinstance(event, BlockEnded):
                self._end_block(event, passed)
            elif isinstance(event, Finished):
                self._finish(event, passed)
            else:
                if isinstance(event, Used):
                    self._usage = event.usage
                passed.append(event)
        return passed

    def _end_block(self, event: BlockEnded, passed: list[Event]) -> None:
        if self._is_search(event.block):
            for block in self._block(event.block):
                passed += of_block(block, piece=1 << 24)
            return
        (block,) = self._block(event.block)
        passed.append(event if block is event.block else replace(event, block=block))

    def _finish(self, event: Finished, passed: list[Event]) -> None:
        ended = passed[-1] if passed and isinstance(passed[-1], BlockEnded) else None
        at_end, cited = self._read_end(event.form, event.turn_extra, ended.block if ended is not None else None)
        if cited is not None and ended is not None:
            passed[-1] = replace(ended, block=cited)
        for block in at_end:
            passed += of_block(block, piece=1 << 24)
        form, extra = self._write_end(event.form, event.turn_extra)
        if self._usage is not None and (counted := self._counted(self._usage)) is not self._usage:
            passed.append(Used(counted))
        is_same = form is event.form and extra is event.turn_extra
        passed.append(event if is_same else replace(event, form=form, turn_extra=extra))

    # --- both ---------------------------------------------------------------------------------------

    def _counted(self, usage: Usage) -> Usage:
        """The usage with the number of searches, as the client's protocol has it."""
        return self._to.with_searches(usage, self._runs) if self._runs else usage

    def _is_search(self, block: Block) -> bool:
        return self._to.carries_searches and isinstance(block, ServerTool) and self._from.is_search(block)

    def _block(self, block: Block) -> tuple[Block, ...]:
        """A block as the client gets it."""
        if self._is_search(block) and isinstance(block, ServerTool):
            run = self._reader.read(block)
            if run is None:
                return ()
            self._runs.append(run)
            return self._to.write_run(run)
        if not isinstance(block, Text):
            return (block,)
        cited = self._from.read_citations(block) if block.extra else ()
        offset = self._length
        self._texts.append(block.text)
        self._length += len(block.text)
        cited = cited[: max(0, MAX_CITATIONS - len(self._citations))]
        self._citations += [replace(each, start=each.start + offset, end=each.end + offset) for each in cited]
        return (self._with_citations(block, cited),)

    def _with_citations(self, text: Text, citations: tuple[Citation, ...]) -> Text:
        if not citations:
            return text
        if not self._to.has_blocks:
            return replace(text, extra=without_field(text.extra, self._source, self._from.citation_field))
        extra = without_field(text.extra, self._source, self._from.citation_field)
        return replace(text, extra={**(extra or {}), self._target: self._to.write_citations(citations, text.text)})

    def _read_end(self, form: Form | None, extra: Extra | None, last: Block | None) -> tuple[list[Block], Text | None]:
        """The blocks for what only the end of a reply says of its searches, and the last text with its citations."""
        run, citations = self._from.read_reply(form, extra, "".join(self._texts))
        citations = citations[: max(0, MAX_CITATIONS - len(self._citations))]
        runs = [*self._reader.unfinished(), *((run,) if run is not None else ())]
        self._runs += runs
        self._citations += citations
        cited = None
        if isinstance(last, Text) and citations:
            offset = self._length - len(last.text)
            own = [
                replace(each, start=each.start - offset, end=each.end - offset)
                for each in citations
                if each.end > offset and each.start >= offset
            ]
            cited = self._with_citations(last, tuple(own))
        return [block for each in runs for block in self._to.write_run(each)], cited

    def _write_end(self, form: Form | None, extra: Extra | None) -> tuple[Form | None, Extra | None]:
        if not self._runs and not self._citations:
            return form, extra
        self._read = self._from.without_search(form, extra) if self._to.carries_searches else (form, extra)
        if self._to.has_blocks:
            return self._read
        return self._to.write_reply(self._runs, self._citations, "".join(self._texts), None, None)

    def reported(self, reply: Reply) -> Reply:
        """The reply with what is left of the source's form, which shows what the client does not get."""
        if self._read is None:
            return reply
        form, extra = self._read
        return replace(reply, turn=replace(reply.turn, extra=extra), form=form)
