"""A shell command in a tag, and nothing else: `<tool>ls -la</tool>`.

It calls the one offered tool that runs commands, or `bash`. If the dialect was detected, it counts only if there is
exactly one such tool.
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
