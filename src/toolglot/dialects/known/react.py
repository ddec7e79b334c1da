"""ReAct: a line that names the tool and one that holds its input, which is JSON or plain text.

    Thought: I should look.
    Action: ls
    Action Input: {"p": "/"}
    Observation:

The words may be bold. The input may be in a code fence, or in brackets behind the name. Both may be one object in a
code fence, `{"action": "ls", "action_input": {"p": "/"}}`.

Plain text is the value of the only, or the only required, argument. A model that goes on with an observation of its own
invents it: whatever follows is text.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.react_steps import FENCED_ACTION, step
from toolglot.dialects.writers.writing_forms import Writing, as_text

REACT = Dialect(
    name="react",
    openers=("\nAction:", "\n**Action:**", "\n**Action**:"),
    inside=rf"[ \t`*\"']*+[\w.:/-]|{FENCED_ACTION}",
    read=step,
    is_weak=True,
    writing=Writing((as_text("Action: NAME\nAction Input: JSON"),), result=("Observation: ", "")),
)

DIALECTS = (REACT,)
