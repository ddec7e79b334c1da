"""OLMo 3: `<function_calls>` around one call on each line, as Python.

    <function_calls>ls(p="/")
    pwd()</function_calls>

The tag is also that of older Claude models, which have tags inside.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.python_calls import CALL_AHEAD, python_in
from toolglot.dialects.writers.writing_forms import Writing, as_python

OLMO3 = Dialect(
    name="olmo3",
    openers=("<function_calls>",),
    inside=r"\s*+\[?+" + CALL_AHEAD,
    read=python_in("</function_calls>"),
    models=("*olmo-3*", "*olmo3*"),
    writing=Writing((as_python,), begin="<function_calls>", end="</function_calls>"),
)

DIALECTS = (OLMO3,)
