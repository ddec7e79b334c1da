"""The provider's own words for a finding: its error text, with the gaps filled in.

Error texts are kept as they were observed or documented: with letters for numbers (`messages.N.content.M`), with the
positions of the example (`messages[3].tool_calls[0]`), with an ellipsis or an X for a value. Positions become those of
the finding, values become what the finding shows; the rest stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.errors import cut
from toolglot.referee.finding import RuleBreach

_POSITION: Final = re.compile(r"\b(messages?|tools|input|contents|content|tool_calls|parts)(\.|\[)(?:\d+|<n>|[NM]\b)")
_NUMBERED: Final = re.compile(r"\b(index|position) (?:\d+|N\b)")
_STEPS: Final = re.compile(r"(\w+)\[(\d+)\]")
_LOCATION: Final = re.compile(r"^(?:messages|tools|input)\.[\w.]+(?=: )")
_FIELD: Final = re.compile(
    r"(?<=property ')\w+(?=')|(?<=parameter ')\w+(?=')|(?<=unknown variant ')\w+(?=')|(?<=Unknown name \")[^\"]+(?=\")"
)
_GAP: Final = re.compile(r"(?:(?<=[ '(])…|\bX\b|(?<=length )N\b)")


def provider_wording(error: str, finding: RuleBreach) -> str:
    """The error text as it would read for this finding."""
    return cut(_fill_values(_fill_positions(error, finding), finding))


def _fill_positions(text: str, finding: RuleBreach) -> str:
    indices = dict(_STEPS.findall(finding.path))
    message_index = indices.get("messages") or indices.get("contents") or indices.get("input")

    def fill(found: re.Match[str]) -> str:
        index = indices.get(found[1]) or (message_index if found[1] == "message" else None)
        return f"{found[1]}{found[2]}{index}" if index is not None else found[0]

    text = _POSITION.sub(fill, text)
    return text if message_index is None else _NUMBERED.sub(lambda found: f"{found[1]} {message_index}", text)


def _fill_values(text: str, finding: RuleBreach) -> str:
    shown = finding.shown
    if not shown:
        return text
    if _FIELD.search(text):
        return _FIELD.sub(lambda _: shown, text)
    location = _LOCATION.match(text)
    if location and finding.path.rstrip("']").endswith(shown) and not location[0].endswith(shown):
        # The error text names the field of its example; the field of the finding is meant.
        return _dotted(finding.path) + text[location.end() :]
    return _GAP.sub(lambda _: shown, text) if len(_GAP.findall(text)) == 1 else text


def _dotted(path: str) -> str:
    """A path as Anthropic writes it: `messages.0.content.1.text`."""
    return re.sub(r"\['?([^'\]]*)'?\]", r".\1", path.removeprefix("$")).removeprefix(".")
