"""FunctionGemma: `<start_function_call>call:ls{p:<escape>/<escape>,n:3}<end_function_call>`, one block for each call.

It quotes numbers too: a quoted value is a string only if the schema says so, or nothing else fits.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.gemma_calls import GemmaStyle, gemma_in
from toolglot.dialects.writers.writing_forms import Writing, as_gemma

FUNCTIONGEMMA = Dialect(
    name="functiongemma",
    openers=("<start_function_call>", "<end_function_call>"),
    closers=("<end_function_call>",),
    read=gemma_in(
        GemmaStyle(
            quote="<escape>",
            closer="<end_function_call>",
            response="<start_function_response>",
            quoted="json",
        ),
    ),
    models=("*functiongemma*", "*function-gemma*"),
    writing=Writing(
        (as_gemma("<start_function_call>", "<escape>", "<end_function_call>"),),
        between="",
        result=("<start_function_response>", "<end_function_response>"),
    ),
)

DIALECTS = (FUNCTIONGEMMA,)
