"""Regular expressions of a script. No prompt may make one run for ever.

A choice inside a repetition, such as `(a+)+` or `(a|a)*`, can take exponential time: it is refused. The others are
tried on prompts of bounded length (`script.py`).
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.errors import InputError

MAX_LENGTH: Final = 1000
"""Characters of a pattern."""

_TOKEN: Final = re.compile(
    r"\\."  # an escape
    r"|\[\^?\]?(?:[^\]\\]|\\.)*\]"  # a set of characters
    r"|\(\?#[^)]*\)"  # a comment
    r"|\((?:\?(?:P<\w*>|P[=>]|<?[=!]|[^)=!<]*?:|>))?"  # the beginning of a group
    r"|\)|\||[*+?]|\{\d*,?\d*\}",
    re.DOTALL,
)
_ONCE: Final = frozenset({"?", "{0}", "{1}", "{,1}", "{0,1}", "{1,1}"})
_VERBOSE: Final = re.compile(r"\(\?[a-zA-Z]*x")
_EXACT: Final = re.compile(r"\{\d+\}")


def refuse_slow(pattern: str) -> None:
    """Refuse a pattern that may take exponential time. Whether it is valid is not checked here."""
    if len(pattern) > MAX_LENGTH:
        raise InputError(f"the pattern is longer than {MAX_LENGTH} characters", path="matches")
    if _VERBOSE.search(pattern):
        raise InputError("verbose patterns are not supported", path="matches", hint="remove (?x)")
    if _has_choice_in_repeat(pattern):
        hint = "remove the inner or the outer repetition"
        raise InputError("a choice or a repetition inside a repetition may take for ever", path="matches", hint=hint)


def _has_choice_in_repeat(pattern: str) -> bool:
    """Whether a group that is repeated holds a repetition or alternatives."""
    chooses = [False]
    """For each open group, whether it has such."""
    closed = False
    """Whether the group that ended just before has such."""
    end = 0
    for token in _TOKEN.finditer(pattern):
        text, after_group = token[0], token.start() == end and closed
        end = token.end()
        closed = after_group and text.startswith("(?#")
        if closed:
            continue
        if text[0] == "(":
            chooses.append(False)
        elif text == ")":
            closed = chooses.pop() if len(chooses) > 1 else False
            chooses[-1] = chooses[-1] or closed
        elif text == "|":
            chooses[-1] = True
        elif text[0] in "*+?{":
            if after_group and text not in _ONCE:
                return True
            chooses[-1] = chooses[-1] or not _EXACT.fullmatch(text)
    return False
