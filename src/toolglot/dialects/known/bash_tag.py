"""A shell command in a tag, and nothing else: `<tool>ls -la</tool>`.

It is a call of the one tool offered that runs commands, or of `bash`. Where dialects are found out from the text, it
counts only if there is exactly one such tool.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.shell_tools import read_command
from toolglot.dialects.writers.writing_forms import Writing, as_command

BASH_TAG = Dialect(
    name="bash_tag",
    openers=("<tool>",),
    inside=r"\s*+[^\s<{\[]",
    read=read_command("</tool>"),
    writing=Writing((as_command,), sample=("bash", {"command": "ls -la"})),
)

DIALECTS = (BASH_TAG,)
