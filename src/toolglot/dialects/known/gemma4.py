"""Gemma 4: `<|tool_call>call:ls{p:<|"|>/<|"|>,n:3}<tool_call|>`, one block for each call."""

from __future__ import annotations

from toolglot.dialects.dialect import THINK, Dialect
from toolglot.dialects.gemma_calls import GemmaStyle, gemma_in

GEMMA4 = Dialect(
    name="gemma4",
    openers=("<|tool_call>", "<tool_call|>"),
    read=gemma_in(
        GemmaStyle(quote='<|"|>', closer="<tool_call|>", response="<|tool_response>", quoted="string"),
    ),
    thinking=(*THINK, ("<|channel>thought\n", "<channel|>")),
    models=("*gemma-4*", "*gemma4*"),
)

DIALECTS = (GEMMA4,)
