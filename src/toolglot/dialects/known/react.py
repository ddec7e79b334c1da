"""ReAct: a line that names the tool and one that holds its input, which is JSON or plain text.

    Thought: I should look.
    Action: ls
    Action Input: {"p": "/"}
    Observation:

Plain text is the value of the only, or the only required, argument. A model that goes on with an observation of its own
invents it: whatever follows is text.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.react_steps import step

REACT = Dialect(
    name="react",
    openers=("\nAction:",),
    inside=r"[ \t`*\"']*[\w.:/-]",
    read=step,
    is_weak=True,
)

DIALECTS = (REACT,)
