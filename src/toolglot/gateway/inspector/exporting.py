"""Requests as files: captures, one to a line, and one page that holds them and needs no gateway.

    jsonl(captures)
    exported_page(captures, overrides)

Laws: secrets are masked, as in captures. A page holds at most `MAX_PAGE` characters of bodies, the latest first: of
what is older, it has the conversation and no raw bodies, and of what is older still, the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from toolglot import __version__
from toolglot.errors import ToolglotError
from toolglot.gateway.inspector.export_page import export_page
from toolglot.gateway.inspector.rows import row_of_capture
from toolglot.gateway.inspector.views.code import FORMS, code_of
from toolglot.gateway.inspector.views.detail import TEXTS, detail_of
from toolglot.gateway.inspector.views.explanation import explanation_of
from toolglot.gateway.inspector.views.prefix_diff import diff_of
from toolglot.gateway.inspector.views.reading import text_of
from toolglot.gateway.inspector.views.target_table import overview, shown_targets
from toolglot.gateway.inspector.views.timeline import timeline_of
from toolglot.profiles import Overrides
from toolglot.upstream.prices import LISTED, Prices

EXPORT_TYPES: Final = {"html": "text/html; charset=utf-8", "jsonl": "application/x-ndjson"}
MAX_PAGE: Final = 64_000_000
MAX_DETAILS: Final = 4 * MAX_PAGE
"""Characters of bodies whose conversations are in a page."""
MAX_MEDIA: Final = 4_000_000
MAX_CODE: Final = 1_000_000
"""Characters of a body up to which a page has it as code."""
MAX_RULES: Final = 500
MAX_TARGET_TABLES: Final = 10
MAX_OBJECTS: Final = 20_000
"""JSON objects of a request, about, up to which a page has it on every target: it is rendered for each."""
OWN: Final = ("row", "conversation", "parent", "compared")
"""Fields that are the inspector's, not the capture's."""

Captured = dict[str, Any]
Fields = dict[str, Any]


def jsonl(captures: Sequence[Captured]) -> bytes:
    """Captures, one to a line."""
    lines = [{name: value for name, value in captured.items() if name not in OWN} for captured in captures]
    return b"".join([msgspec.json.encode(encodable(line)) + b"\n" for line in lines])


def exported_page(captures: Sequence[Captured], overrides: Overrides | None = None, prices: Prices = LISTED) -> bytes:
    """A page that holds captures, the oldest first in the sequence."""
    return export_page(encodable(export_data(captures, overrides, prices))).encode("utf-8", "replace")


def encodable(value: Any) -> Any:
    """A value without half surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(each) for key, each in value.items()}
    return [encodable(each) for each in value] if isinstance(value, list | tuple) else value


def export_data(captures: Sequence[Captured], overrides: Overrides | None = None, prices: Prices = LISTED) -> Fields:
    """What the page holds."""
    data: Fields = {
        "info": export_info(overrides),
        "rows": [captured.get("row") or row_of_capture(captured) for captured in reversed(captures)],
        **{name: {} for name in ("details", "diffs", "timelines", "targets", "renderings", "explains", "codes")},
    }
    by_id = {text_of(captured, "id"): captured for captured in captures}
    used = 0
    for number, captured in enumerate(reversed(captures)):
        used += sum(len(text_of(captured, name)) for name in TEXTS)
        if used > MAX_DETAILS:
            break
        id = text_of(captured, "id")
        texts = used <= MAX_PAGE
        data["details"][id] = detail_of(
            captured, overrides, first=0, max_texts=MAX_PAGE if texts else 0, max_media=MAX_MEDIA if texts else 0
        )
        data["timelines"][id] = timeline_of(captured, overrides)
        price = prices.of(text_of(captured, "sent_model"), text_of(captured, "upstream"))
        data["diffs"][id] = diff_of(captured, by_id.get(captured.get("compared") or ""), overrides, price)
        if number < MAX_TARGET_TABLES and text_of(captured, "request").count("{") <= MAX_OBJECTS:
            data["targets"][id] = {"targets": overview(captured, overrides)}
        if used <= MAX_CODE:
            data["codes"][id] = _codes(captured, overrides)
        _explain(data["details"][id]["reports"], data["explains"], overrides)
    return data


def export_info(overrides: Overrides | None, mode: str = "export") -> Fields:
    """What the page is told of itself where there is no gateway."""
    return {
        "version": __version__,
        "mode": mode,
        "needs_key": False,
        "is_admin": True,
        "keep": "bodies",
        "limits": {},
        "targets": shown_targets(overrides),
        "upstreams": [],
        "models": [],
        "can_replay": False,
        "simulated": False,
    }


def _codes(captured: Captured, overrides: Overrides | None) -> dict[str, Fields]:
    found: dict[str, Fields] = {}
    for form in FORMS:
        try:
            found[form] = {"text": code_of(captured, form, overrides)}
        except ToolglotError:
            continue
    return found


def _explain(reports: list[Fields], found: dict[str, Fields], overrides: Overrides | None) -> None:
    """Explain the rules that reports name."""
    for rule in {report["rule"] for report in reports if report["rule"]} - found.keys():
        if len(found) >= MAX_RULES:
            return
        try:
            found[rule] = explanation_of(rule, overrides)
        except ToolglotError:
            continue
