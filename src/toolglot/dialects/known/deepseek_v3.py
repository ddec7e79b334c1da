# ruff: noqa: RUF001, RUF002 - the model's own bars
"""DeepSeek V3 and R1, with the word `function` and a code fence; V3.1 with neither.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls
    ```json
    {"p": "/"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

The bars are U+FF5C and the gaps U+2581; distilled models write other gaps in the first mark.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.section_calls import SectionStyle, name_in_head, section_call
from toolglot.dialects.writers.writing_forms import Writing, as_text

_STYLE = SectionStyle(
    open_section=(
        "<｜tool▁calls▁begin｜>",
        "<｜tool_calls_begin｜>",
        "<｜tool calls begin｜>",
        "<｜tool\\_calls\\_begin｜>",
        "<｜tool▁calls｜>",
    ),
    close_section=("<｜tool▁calls▁end｜>",),
    call="<｜tool▁call▁begin｜>",
    separator="<｜tool▁sep｜>",
    close_call="<｜tool▁call▁end｜>",
    named=name_in_head,
    end=("<｜end▁of▁sentence｜>",),
)
_BEGIN = r"\s*(?:<｜tool▁call▁begin｜>\s*)?"
_KIND = r"function\s*<｜tool▁sep｜>"


def _deepseek(name: str, inside: str, call: str, *models: str) -> Dialect:
    """One of the two. If the user names it, it reads the other as well."""
    openers = (*_STYLE.open_section, _STYLE.call)
    closers = (*_STYLE.close_section, _STYLE.close_call, *_STYLE.end)
    read = section_call(_STYLE)
    writing = Writing(
        (as_text(f"{_STYLE.call}{call}{_STYLE.close_call}"),),
        begin=_STYLE.open_section[0],
        between="",
        end=_STYLE.close_section[0],
    )
    found = Dialect(
        name=name, openers=openers, inside=inside, read=read, closers=closers, models=models, writing=writing
    )
    return replace(found, named=replace(found, inside=""))


DIALECTS = (
    _deepseek(
        "deepseek_v3",
        _BEGIN + _KIND,
        "function<｜tool▁sep｜>NAME\n```json\nJSON\n```",
        *("*deepseek-v3", "*deepseek-v3-*", "*deepseek-r1*", "*deepseek-chat*"),
    ),
    _deepseek("deepseek_v31", rf"{_BEGIN}(?!{_KIND})(?!<)\S", "NAME<｜tool▁sep｜>JSON", "*deepseek-v3.1*"),
)
