"""The web searches of one request, for upstreams that have none. `search_tool.py` runs them.

    work = search_work(conversation, source, target, tool)      # None: nothing is to be searched here
    work.for_upstream(conversation)                             # the model gets an ordinary function
    events = work.pass_on(events)                               # its calls do not reach the client
    blocks = await work.run_calls(); work.add_round(turn)       # they are run, and the model is called again

Laws: nothing is searched that the client did not request, or on a page whose domain it excludes. A result is data: it
becomes the result of a call and nothing else. A search that fails never breaks a reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Conversation,
    Form,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
    Usage,
)
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Finished,
    InputDelta,
    Started,
    Used,
)
from toolglot.conversation.plausible_usage import COUNTS
from toolglot.conversation.reply_events import of_block
from toolglot.conversation.report import Entry
from toolglot.conversation.web_search import Citation, SearchRun, WebSearch
from toolglot.gateway.routing.search_filter import URL, Domains
from toolglot.gateway.routing.search_tool import ARGUMENTS, Kind, SearchTool, is_private
from toolglot.profiles import Profile
from toolglot.protocols.base import codec
from toolglot.translate.web_search import requested_searches, without_searches

MAX_QUERY: Final = 4_000
"""Characters of a query or a URL."""
_NAMES: Final[dict[Kind, str]] = {"search": "web_search", "fetch": "web_fetch"}
_DESCRIPTIONS: Final[dict[Kind, str]] = {
    "search": "Search the web. Returns the pages that were found. Cite the URLs of the pages that you use.",
    "fetch": "Read a page of the web. Returns its text.",
}
_ERRORS: Final = {
    "unavailable": "The web search failed. Answer without it, and say so.",
    "max_uses_exceeded": "No further web search is allowed for this answer.",
    "invalid_tool_input": "The call has no query, or no URL.",
    "url_not_allowed": "The domain of this page is not allowed.",
}
_NOT_KEPT: Final = "The results of this search were not kept."


def search_work(
    conversation: Conversation, source: Profile, target: Profile, tool: SearchTool | None
) -> SearchWork | None:
    """What is to be searched here for a request; None: nothing, or its upstream does it."""
    if tool is None:
        return None
    wanted = requested_searches(conversation, source.protocol)
    if not wanted:
        return None
    searches: dict[Kind, WebSearch] = {}
    for search in wanted.values():
        searches.setdefault(search.kind, search)
    has_functions = any(each.issuer is None for each in conversation.tools)
    is_native = target.protocol == source.protocol and (-1 not in wanted or source.name == target.name)
    can_search = bool(target.tools.web_search) and (target.tools.search_with_functions or not has_functions)
    if can_search or (is_native and source.name == target.name):
        return None
    return SearchWork(searches, source, target, tool)


class SearchWork:
    """The searches of one reply, over all the calls of the model that it takes."""

    def __init__(self, searches: dict[Kind, WebSearch], source: Profile, target: Profile, tool: SearchTool) -> None:
        self._searches = searches
        self._source, self._target = source, target
        self._codec = codec(source.protocol).search
        self._tool = tool
        self._names: dict[str, Kind] = {}
        self._rounds: list[Turn] = []
        self._calls: list[ToolCall] = []
        """The searches of the model's last reply."""
        self._has_client_calls = False
        self._has_cut_call = False
        """A search of the last reply is not whole, so that the reply cannot be continued."""
        self._is_skipping = False
        self._is_last_round = False
        """The model may not search in this round."""
        self._has_started = False
        self._finished: Finished | None = None
        self._form: Form | None = None
        """How the last reply was written."""
        self._last: list[SearchRun] = []
        """The searches that were run last."""
        self._usage: Usage | None = None
        self._total: dict[str, int] = {}
        self._runs: list[SearchRun] = []
        self._texts: list[str] = []
        self._length = 0
        """Characters of the texts so far."""
        self._citations: list[Citation] = []
        self._uses: dict[Kind, int] = {}
        limit = tool.settings.max_uses
        self._max_uses: dict[Kind, int] = {
            kind: min(limit, search.max_uses) if search.max_uses is not None else limit
            for kind, search in searches.items()
        }

    # --- the request --------------------------------------------------------------------------------

    def for_upstream(self, conversation: Conversation) -> tuple[Conversation, list[Entry]]:
        """The conversation with functions in place of the client's web search, and what was searched so far."""
        plain, replaced = without_searches(conversation, self._source.protocol)
        taken = {tool.name for tool in plain.tools}
        self._names = {_free_name(_NAMES[kind], taken): kind for kind in self._searches}
        functions = [_function(name, kind) for name, kind in self._names.items()]
        turns = [each for turn in plain.turns for each in self._split(turn)]
        options = plain.options
        choice = options.tool_choice
        if choice is not None and replaced.intersection(choice.names):
            options = replace(options, tool_choice=ToolChoice("required"))
        if self._rounds and options.tool_choice is not None and options.tool_choice.mode != "none":
            options = replace(options, tool_choice=None)
        if self._is_exhausted:
            options = replace(options, tool_choice=ToolChoice("none"))
        tools = (*plain.tools, *functions)
        name = self._target.title
        reason = f"{name} has no web search: the model gets a function that the MCP server of [web_search] runs"
        entry = Entry(action="converted", reason=reason, fault="policy", path="$.tools", target=self._target.name)
        return replace(plain, turns=(*turns, *self._rounds), tools=tools, options=options), [entry]

    @property
    def _is_exhausted(self) -> bool:
        """The model was told that it may not search any more, and gets no further chance."""
        return any(count > self._max_uses[kind] for kind, count in self._uses.items())

    def _split(self, turn: Turn) -> list[Turn]:
        """A turn with searches that were made here as the calls and results that they were for the model."""
        if turn.role != "assistant" or not any(isinstance(block, ServerTool) for block in turn.blocks):
            return [turn]
        results = {
            block.id: block for block in turn.blocks if isinstance(block, ServerTool) and block.phase == "result"
        }
        split: list[Turn] = []
        blocks: list[Block] = []
        answers: list[ToolResult] = []
        names = {kind: name for name, kind in self._names.items()}
        own = {
            block.id
            for block in turn.blocks
            if isinstance(block, ServerTool) and block.phase == "call" and self._codec.read_own(block, None) is not None
        }
        has_result = False

        def flush() -> None:
            nonlocal has_result
            split.append(replace(turn, blocks=tuple(blocks), key=""))
            if answers:
                split.append(Turn("tool", tuple(answers)))
            blocks.clear()
            answers.clear()
            has_result = False

        for block in turn.blocks:
            run = self._codec.read_own(block, results.get(block.id)) if isinstance(block, ServerTool) else None
            if answers and (isinstance(block, Text | Thinking) or (run is not None and has_result)):
                flush()
            if run is not None:
                name = names.get(run.kind, _NAMES[run.kind])
                blocks.append(ToolCall(run.id, name, {ARGUMENTS[run.kind]: run.query}))
                answers.append(_result(run, name))
            elif isinstance(block, ServerTool) and block.phase == "result" and block.id in own:
                has_result = True
            else:
                blocks.append(block)
        if not answers and not split:
            return [turn]
        if blocks or answers:
            flush()
        return split

    # --- the replies --------------------------------------------------------------------------------

    def begin_round(self) -> None:
        """The model is called."""
        self._is_last_round = self._is_exhausted
        self._calls, self._finished, self._usage = [], None, None
        self._has_client_calls = self._has_cut_call = self._is_skipping = False

    def pass_on(self, events: Iterable[Event]) -> list[Event]:
        """The events for the client: without the searches, and without the end, which comes with `finish`."""
        passed: list[Event] = []
        for event in events:
            if isinstance(event, Started):
                self._form = event.form
                passed += [] if self._has_started else [replace(event, form=None)]
                self._has_started = True
            elif isinstance(event, BlockStarted) and self._is_search(event.block):
                self._is_skipping = True
            elif isinstance(event, BlockEnded) and self._is_search(event.block):
                self._is_skipping = False
                if event.cut:
                    self._has_cut_call = True
                elif isinstance(event.block, ToolCall):
                    self._calls.append(event.block)
            elif isinstance(event, InputDelta) and self._is_skipping:
                continue
            elif isinstance(event, Used):
                self._usage = event.usage
            elif isinstance(event, Finished):
                self._finished = event
                self._add_usage()
            elif isinstance(event, BlockEnded):
                self._has_client_calls = self._has_client_calls or isinstance(event.block, ToolCall)
                passed.append(self._cite(event))
            else:
                passed.append(event)
        return passed

    def _add_usage(self) -> None:
        """Count the tokens of a reply, once it is complete."""
        for name in COUNTS:
            count = getattr(self._usage, name, None)
            if count is not None:
                self._total[name] = self._total.get(name, 0) + count

    def _is_search(self, block: Block) -> bool:
        return isinstance(block, ToolCall) and block.name in self._names

    def _cite(self, event: BlockEnded) -> BlockEnded:
        """A text with citations of the pages whose URLs it names."""
        block = event.block
        if not isinstance(block, Text):
            return event
        offset = self._length
        self._texts.append(block.text)
        self._length += len(block.text)
        pages = {page.url: page for run in self._runs for page in run.pages}
        found = [
            Citation(page, start, start + len(url))
            for url, page in pages.items()
            if (start := block.text.find(url)) >= 0
        ]
        if not found:
            return event
        if not self._codec.has_blocks:
            self._citations += [replace(each, start=each.start + offset, end=each.end + offset) for each in found]
            return event
        own = self._codec.write_citations(tuple(found), block.text)
        return replace(event, block=replace(block, extra={**(block.extra or {}), self._source.protocol: own}))

    @property
    def has_calls(self) -> bool:
        """Whether the last reply has searches to run."""
        return bool(self._calls)

    @property
    def goes_on(self) -> bool:
        """Whether the model is called again with what was found."""
        return bool(self._calls) and not self._has_client_calls and not self._has_cut_call

    async def run_calls(self) -> list[Event]:
        """Run the searches of the last reply, in parallel. Returns their blocks, as the client's protocol has them."""
        runs = await asyncio.gather(*[self._run(call) for call in self._calls])
        self._last = runs
        self._runs += runs
        written = [self._codec.write_run(run) for run in runs]
        blocks = [blocks[0] for blocks in written if blocks] + [each for blocks in written for each in blocks[1:]]
        return [event for block in blocks for event in of_block(block, piece=1 << 24)]

    async def _run(self, call: ToolCall) -> SearchRun:
        kind = self._names[call.name]
        wanted = (call.arguments or {}).get(ARGUMENTS[kind])
        query = wanted[:MAX_QUERY] if isinstance(wanted, str) else ""
        run = SearchRun(call.id, query, kind=kind)
        self._uses[kind] = self._uses.get(kind, 0) + 1  # one without a query too: a model may repeat it for ever
        if self._uses[kind] > self._max_uses[kind]:
            return replace(run, error="max_uses_exceeded")
        if not query.strip():
            return replace(run, error="invalid_tool_input")
        search = self._searches[kind]
        if kind == "fetch" and not (URL.fullmatch(query) and Domains(search).allows(query) and not is_private(query)):
            return replace(run, error="url_not_allowed")
        return await self._tool.run(kind, call.id, query, search)

    def add_round(self, turn: Turn) -> None:
        """Add the model's reply, as its provider wants it back, and what was found."""
        ids = [call for call in turn.calls if call.name in self._names]
        results = [_result(replace(run, id=call.id), call.name) for call, run in zip(ids, self._last, strict=True)]
        self._rounds += [turn, Turn("tool", tuple(results))]

    @property
    def is_over(self) -> bool:
        """The model was told that no search is left, and still searches."""
        return self._is_last_round

    def finish(self) -> list[Event]:
        """The end of the reply."""
        finished = self._finished or Finished("stop")
        form: Form | None = finished.form or self._form
        if finished.stop == "tool_calls" and not self._has_client_calls:
            finished, form = replace(finished, stop="stop"), None
        extra = finished.turn_extra
        if not self._codec.has_blocks and (self._runs or self._citations):
            form, extra = self._codec.write_reply(self._runs, self._citations, "".join(self._texts), form, extra)
        usage = self.usage
        used = [Used(self._codec.with_searches(usage, self._runs))] if usage is not None else []
        return [*used, replace(finished, form=form, turn_extra=extra)]

    @property
    def usage(self) -> Usage | None:
        """The tokens of all calls of the model."""
        if not self._total:
            return None
        # Fields that are not known are of the last call alone (`total_tokens` of Chat Completions).
        last = self._usage if len(self._rounds) == 0 and self._usage is not None else Usage()
        return replace(last, **self._total)

    @property
    def entries(self) -> list[Entry]:
        """What is reported of the searches that were made."""
        failed = [run for run in self._runs if run.error]
        if not self._runs:
            return []
        reason = f"{len(self._runs)} web searches were run by the MCP server of [web_search]"
        found = [Entry(action="converted", reason=reason, fault="policy", target=self._target.name)]
        if failed:
            codes = dict.fromkeys(run.error for run in failed)
            # What the server itself says is for the operator: it may hold paths and addresses.
            hint = "; `toolglot doctor` says what is wrong with the server" if "unavailable" in codes else ""
            reason = f"{len(failed)} of them failed: {', '.join(codes)}{hint}"
            found.append(Entry(action="dropped", reason=reason, fault="loss", target=self._target.name))
        return found


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _function(name: str, kind: Kind) -> ToolSpec:
    argument = ARGUMENTS[kind]
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return ToolSpec(name, _DESCRIPTIONS[kind], schema)


def _result(run: SearchRun, name: str) -> ToolResult:
    if run.error:
        return ToolResult(run.id, _ERRORS.get(run.error, _ERRORS["unavailable"]), is_error=True, name=name)
    text = run.text or "\n".join([f"{page.title} {page.url}".strip() for page in run.pages]) or _NOT_KEPT
    return ToolResult(run.id, text, name=name)
