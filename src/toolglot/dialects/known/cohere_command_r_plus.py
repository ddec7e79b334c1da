"""Command R+: `Action:` and a list in a code fence.

    Action:
    ```json
    [{"tool_name": "ls", "parameters": {"p": "/"}}]
    ```

The tool `directly-answer` means that none is called.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import CallKeys, call_list
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import as_object, json_list

_AHEAD: Final = 64
_KEYS: Final = CallKeys(no_calls=("directly-answer", "directly_answer"))


def _read(reader: DialectReader, _opener: str) -> Steps[Outcome]:
    yield from reader.scanner.skip_spaces()
    yield from reader.scanner.one_of(("```json", "```"))
    outcome = yield from call_list(reader, _KEYS, closers=("```",))
    if outcome not in ("none", "unfinished"):
        yield from skip_closer(reader, "```")
    return outcome


COMMAND_R_PLUS = Dialect(
    name="cohere_command_r_plus",
    openers=("\nAction:",),
    inside=r"\s*```(?:json)?\s*[\[{](?!\s*\"action)",
    read=_read,
    models=("*command-r-plus*", "*command-r-0*"),
    writing=json_list("Action:\n```json\n", "\n```", as_object(name="tool_name", arguments="parameters")),
)

_SILENT: Final = ("<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>")


def _read_all(reader: DialectReader, opener: str) -> Steps[Outcome]:
    """If the user names the dialect, the tokens around a turn are dropped."""
    if opener in _SILENT:
        return "passed"
    yield from reader.scanner.need(_AHEAD)
    is_call = re.match(COMMAND_R_PLUS.inside, reader.scanner.text[reader.scanner.at :][:_AHEAD]) is not None
    return (yield from _read(reader, opener)) if is_call else "none"


_WITH_TOKENS = replace(COMMAND_R_PLUS, openers=(*COMMAND_R_PLUS.openers, *_SILENT), inside="", read=_read_all)

DIALECTS = (replace(COMMAND_R_PLUS, named=_WITH_TOKENS),)
