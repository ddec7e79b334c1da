"""DeepSeek 3.2 and 4: tags marked `DSML`, with arguments that say whether they are strings.

    <|DSML|function_calls><|DSML|invoke name="ls"><|DSML|parameter name="p" string="true">/</|DSML|parameter>
    </|DSML|invoke></|DSML|function_calls>

The bars around the word are U+FF5C, or other ones; version 4 calls the section `tool_calls`. An invoke may hold JSON,
be empty, or be alone. The mark may be missing altogether.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.tag_calls import TagStyle, tags_in
from toolglot.dialects.lookahead import next_of
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, tag_section

_MARKS = ("\uff5cDSML\uff5c", "\u2016DSML\u2016", "\uff5c\uff5cDSML\uff5c\uff5c", "|DSML|", "||DSML||")
_SECTIONS = ("function_calls", "tool_calls")
_END = "<\uff5cend\u2581of\u2581sentence\uff5c>"


def _style(*spaces: str) -> TagStyle:
    return TagStyle(
        call=tuple(f"<{space}invoke " for space in spaces),
        close_call=tuple(f"</{space}invoke>" for space in spaces),
        parameter=tuple(f"<{space}parameter " for space in spaces),
        close_parameter=tuple(f"</{space}parameter>" for space in spaces),
        open_section=tuple(f"<{space}{section}>" for space in spaces for section in _SECTIONS),
        close_section=tuple(f"</{space}{section}>" for space in spaces for section in _SECTIONS),
    )


_MARKED, _PLAIN = _style(*_MARKS), _style("")
_PLAIN_OPENERS = (*_PLAIN.open_section, *_PLAIN.call)
_read_marked, _read_plain = tags_in(_MARKED), tags_in(_PLAIN)


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    outcome = yield from (_read_plain if opener in _PLAIN_OPENERS else _read_marked)(reader, opener)
    if outcome == "call":
        yield from next_of(reader.scanner, (_END,))
    return outcome


def _writing(section: str) -> Writing:
    mark = _MARKS[0]
    return tag_section(
        f'<{mark}invoke name="NAME">',
        f'<{mark}parameter name="KEY" string="STRING">VALUE</{mark}parameter>',
        f"</{mark}invoke>",
        section=(f"<{mark}{section}>", f"</{mark}{section}>"),
    )


def _dsml(name: str, section: str, *models: str) -> Dialect:
    return Dialect(
        name=name,
        openers=(*_MARKED.open_section, *_MARKED.call, *_PLAIN_OPENERS),
        inside=r"\s*+(?:<(?:[\uff5c\u2016|]{1,2}DSML[\uff5c\u2016|]{1,2})?+invoke |name=)",
        read=_read,
        closers=(*_MARKED.close_section, *_MARKED.close_call, _END),
        models=models,
        writing=_writing(section),
    )


_V32 = _dsml("deepseek_v32", "function_calls", "*deepseek-v3.2*", "*deepseek_v32*")
DIALECTS = (_V32, _dsml("deepseek_v4", "tool_calls", "*deepseek-v4*", "*deepseek_v4*"))
