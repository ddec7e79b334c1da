"""Gemma 4: `<|tool_call>call:ls{p:<|"|>/<|"|>,n:3}<tool_call|>`, one block for each call.

The mark of a call may be missing, or be only `<call>`: these count only if the user names the dialect.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import THINK, Dialect
from toolglot.dialects.families.gemma_calls import GemmaStyle, gemma_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_gemma

_WORDS = ("\ncall:", "<call>")
_CHANNEL, _CHANNEL_END = "<|channel>", "<channel|>"
_STYLE = GemmaStyle(
    quote='<|"|>', closer="<tool_call|>", response="<|tool_response>", quoted="string", ends=("<turn|>",), words=_WORDS
)

GEMMA4 = Dialect(
    name="gemma4",
    openers=("<|tool_call>", "<tool_call|>"),
    read=gemma_in(_STYLE),
    closers=(_STYLE.closer,),
    thinking=(*THINK, (f"{_CHANNEL}thought\n", _CHANNEL_END)),
    models=("*gemma-4*", "*gemma4*"),
    writing=Writing(
        (as_gemma("<|tool_call>", _STYLE.quote, _STYLE.closer),),
        between="",
        result=(_STYLE.response, "<tool_response|>"),
    ),
)


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    """Channels may be closed twice, opened twice, or be empty; and a call without a mark may follow one."""
    scanner = reader.scanner
    if opener not in (_CHANNEL, _CHANNEL_END):
        return (yield from GEMMA4.read(reader, opener))
    if opener == _CHANNEL and (yield from scanner.one_of(("thought",))):
        yield from scanner.one_of(("\n",))
        scanner.unmark()
        found = yield from reader.think_until((_CHANNEL_END,))
        reader.output.end_thinking()
        if found != _CHANNEL_END:
            return "passed"
    scanner.mark()
    if (yield from scanner.one_of(("call:",))):
        outcome = yield from GEMMA4.read(reader, _WORDS[0])
        if outcome not in ("none", "unfinished"):
            return outcome
    scanner.go_back()
    return "passed"


_UNMARKED = replace(
    GEMMA4,
    openers=(*GEMMA4.openers, *_WORDS, _CHANNEL, _CHANNEL_END),
    thinking=(*THINK, (_CHANNEL, _CHANNEL_END)),
    read=_read,
)

DIALECTS = (replace(GEMMA4, named=_UNMARKED),)
