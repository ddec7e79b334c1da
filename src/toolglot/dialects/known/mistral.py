"""Mistral. Up to tokenizer 10 (7B v0.3, Nemo) a list with ids of nine characters, from 11 on a name and arguments:

    [TOOL_CALLS] [{"name": "ls", "arguments": {"p": "/"}, "id": "Ab3dE6gH9"}]
    [TOOL_CALLS]ls[CALL_ID]Ab3dE6gH9[ARGS]{"p": "/"}

`[CALL_ID]` and `[ARGS]` may be missing, and the list may be written as Python prints it.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from toolglot.dialects.dialect import THINK, Dialect, json_in
from toolglot.dialects.families.json_calls import CallKeys, arguments_of
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object, as_text, json_list

_NAME: Final = re.compile(r"[^\s\[{]+")
_LIST: Final = json_in("</s>", keys=CallKeys(id=("id",)))


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    scanner = reader.scanner
    mark = yield from scanner.skip_spaces()
    if mark == "[":
        yield from scanner.need(len("[CALL_ID]"))
    if mark == "{" or (mark == "[" and not scanner.text.startswith(("[ARGS]", "[CALL_ID]"), scanner.at)):
        return (yield from _LIST(reader, opener))
    name, id = (yield from scanner.while_in(_NAME, MAX_NAME)), ""
    yield from scanner.skip_spaces()
    if (yield from scanner.one_of(("[CALL_ID]",))):
        id = yield from scanner.while_in(_NAME, MAX_NAME)
        yield from scanner.skip_spaces()
    has_mark = (yield from scanner.one_of(("[ARGS]",))) is not None
    mark = yield from scanner.skip_spaces()
    if mark not in ('{"' if has_mark else "{") or (mark == "" and not has_mark):
        return "unfinished" if mark == "" else "none"
    return (yield from arguments_of(reader, name, id)) if reader.accepts(name) else "none"


def _mistral(name: str, inside: str, models: str, writing: Writing) -> Dialect:
    """One of the two. If the user names it, it reads the other as well: a server knows only that it is Mistral's."""
    thinking, written = (*THINK, ("[THINK]", "[/THINK]")), tuple(f"*{model}*" for model in models.split())
    found = Dialect(
        name=name,
        openers=("[TOOL_CALLS]",),
        inside=inside,
        read=_read,
        thinking=thinking,
        models=written,
        writing=writing,
    )
    return replace(found, named=replace(found, inside=""))


_AS_LIST: Final = json_list("[TOOL_CALLS] ", form=as_object(id="id"))._replace(ids="nine")
_AS_NAME: Final = Writing((as_text("[TOOL_CALLS]NAME[ARGS]JSON"),), between="")
_NAMED: Final = r"\s*[^\s\[\]{}\"']+\s*(?:\[(?:ARGS|CALL_ID)\]|\{)|\s*[^\s\[\]{}\"']{40,}"
DIALECTS = (
    _mistral("mistral", r"\s*[\[{]", "mistral-7b mistral-nemo mixtral codestral", _AS_LIST),
    _mistral(
        "mistral_v11", _NAMED, "mistral-small mistral-medium mistral-large devstral ministral magistral", _AS_NAME
    ),
)
