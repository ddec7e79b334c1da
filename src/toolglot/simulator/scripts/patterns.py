"""Regular expressions of a script, which a client's text must not keep busy for ever.

What takes time beyond all bounds is a choice inside of a repetition, such as `(a+)+` or `(a|a)*`: it is refused. What
is left is tried on texts of bounded length (`script.py`).
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.errors import InputError

LONGEST: Final = 1000
"""Characters of a pattern."""

_TOKEN: Final = re.compile(
    r"\\."  # an escape
    r"|\[\^?\]?(?:[^\]\\]|\\.)*\]"  # a set of characters
    r"|\(\?#[^)]*\)"  # a remark
    r"|\((?:\?(?:P<\w*>|P[=>]|<?[=!]|[^)=!<]*?:|>))?"  # the beginning of a group
    r"|\)|\||[*+?]|\{\d*,?\d*\}",
    re.DOTALL,
)
_ONCE: Final = frozenset({"?", "{0}", "{1}", "{,1}", "{0,1}", "{1,1}"})
_VERBOSE: Final = re.compile(r"\(\?[a-zA-Z]*x")
_EXACT: Final = re.compile(r"\{\d+\}")


def refuse_endless(pattern: str) -> None:
    """Refuse a pattern that may take for ever. Whether it is one at all is not looked at here."""
    if len(pattern) > LONGEST:
        raise InputError(f"a pattern of more than {LONGEST} characters", path="matches")
    if _VERBOSE.search(pattern):
        raise InputError("patterns with spaces and remarks of their own are not read", path="matches", hint="no (?x)")
    if _has_choice_in_repeat(pattern):
        hint = "leave out the inner or the outer repetition"
        raise InputError("a choice or a repetition inside of a repetition may take for ever", path="matches", hint=hint)


def _has_choice_in_repeat(pattern: str) -> bool:
    """Whether a group that is repeated holds a repetition or alternatives."""
    chooses = [False]
    """For each group that is open, whether it holds such."""
    closed = False
    """Whether the group that ended just before holds such."""
    end = 0
    for token in _TOKEN.finditer(pattern):
        said, after_group = token[0], token.start() == end and closed
        end = token.end()
        closed = after_group and said.startswith("(?#")
        if closed:
            continue
        if said[0] == "(":
            chooses.append(False)
        elif said == ")":
            closed = chooses.pop() if len(chooses) > 1 else False
            chooses[-1] = chooses[-1] or closed
        elif said == "|":
            chooses[-1] = True
        elif said[0] in "*+?{":
            if after_group and said not in _ONCE:
                return True
            chooses[-1] = chooses[-1] or not _EXACT.fullmatch(said)
    return False
