"""Command R+: `Action:` and a list in a code fence.

    Action:
    ```json
    [{"tool_name": "ls", "parameters": {"p": "/"}}]
    ```

The tool `directly-answer` means that none is called.
"""

from __future__ import annotations

from typing import Final

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.json_calls import CallKeys, call_list
from toolglot.dialects.reading import Outcome, Reader
from toolglot.dialects.scanner import Steps

_KEYS: Final = CallKeys(no_calls=("directly-answer", "directly_answer"))


def _read(reader: Reader, _opener: str) -> Steps[Outcome]:
    yield from reader.scanner.skip_spaces()
    yield from reader.scanner.one_of(("```json", "```"))
    outcome = yield from call_list(reader, _KEYS)
    if outcome not in ("none", "unfinished"):
        yield from skip_closer(reader, "```")
    return outcome


COMMAND_R_PLUS = Dialect(
    name="cohere_command_r_plus",
    openers=("\nAction:",),
    inside=r"\s*```(?:json)?\s*[\[{]",
    read=_read,
    models=("*command-r-plus*", "*command-r-0*"),
)

DIALECTS = (COMMAND_R_PLUS,)
