"""A request on every target: how it would be rendered, what would be lost, and what the referee says of it.

    overview(captured, overrides)                    # a row for each target
    overview(captured, overrides, only="mistral")    # of a large request, one at a time
    on_target(captured, "mistral", "", overrides)    # the body, its report and its violations

Laws: pure. The verdict is the referee's, which shares no code with the renderer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolglot.conversation.report import Entry, order_by_gravity
from toolglot.errors import ToolglotError
from toolglot.gateway.inspector.views.detail import report_fields
from toolglot.gateway.inspector.views.reading import receive, text_of
from toolglot.masking import mask
from toolglot.profiles import Overrides, names, resolve
from toolglot.profiles import get as get_profile
from toolglot.protocols.errors.failures import ProviderError
from toolglot.referee import lint
from toolglot.simulator.simulated_upstreams import SIMULATED_NAMES
from toolglot.translate.requests import ReceivedRequest
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.model_names import matches

MAX_ENTRIES: Final = 2_000
_NO_BODY: Final = "the gateway kept no body of this request, or it cannot be read"

Fields = dict[str, Any]


def target_names(overrides: Overrides | None) -> list[str]:
    """The targets, in the order of the alphabet."""
    return sorted({*names(), *(overrides.names if overrides else ())})


def shown_targets(overrides: Overrides | None) -> list[Fields]:
    """The targets that a request can be shown for."""
    profiles = [get_profile(name, overrides=overrides) for name in target_names(overrides)]
    return [{"name": each.name, "title": each.title or each.name, "protocol": each.protocol} for each in profiles]


def model_for(captured: Mapping[str, Any], target: str) -> str:
    """A model of a target: that of the request if it is one, or else a well known one; empty: none is known."""
    if target == text_of(captured, "target") and text_of(captured, "sent_model"):
        return text_of(captured, "sent_model")
    provider = PROVIDERS.get(target) or next((each for each in PROVIDERS.values() if target in each.also), None)
    model = text_of(captured, "model").rpartition("/")[2]
    if provider is not None and model and matches(model, provider.models):
        return model
    name = provider.name if provider is not None else target
    known = SIMULATED_NAMES.default_model(SIMULATED_NAMES.provider(name) or resolve(name))
    return known or (provider.example if provider is not None else "") or model


def overview(captured: Mapping[str, Any], overrides: Overrides | None = None, only: str = "") -> list[Fields]:
    """A row for each target, or for one. An unknown one is an error."""
    received = receive(captured, overrides)
    names = [get_profile(only, overrides=overrides, kind="target").name] if only else target_names(overrides)
    return [_row(captured, received, name, overrides) for name in names]


def _row(
    captured: Mapping[str, Any], received: ReceivedRequest | None, name: str, overrides: Overrides | None
) -> Fields:
    model = model_for(captured, name)
    row: Fields = {"name": name, "model": model, "verdict": "refused", "losses": 0, "changes": 0, "housekeeping": 0}
    row |= {"violations": 0, "message": None}
    if received is None:
        return {**row, "message": _NO_BODY}
    try:
        out = received.for_target(name, model=model)
        entries = out.report.entries
        violations = lint(out.body, name, model, overrides)
    except (ToolglotError, ProviderError, RecursionError) as error:
        return {**row, "message": mask(str(error))}
    counts = {gravity: sum(entry.gravity == gravity for entry in entries) for gravity in ("loss", "change")}
    return {
        **row,
        "verdict": "violations" if violations else "ok",
        "losses": counts["loss"],
        "changes": counts["change"],
        "housekeeping": len(entries) - counts["loss"] - counts["change"],
        "violations": len(violations),
        "message": mask(str(violations[0])) if violations else None,
    }


def on_target(captured: Mapping[str, Any], name: str, model: str, overrides: Overrides | None = None) -> Fields:
    """The request as one target is sent it. An unknown target is an error."""
    target = get_profile(name, overrides=overrides, kind="target").name
    model = model or model_for(captured, target)
    found: Fields = {"name": target, "model": model, "body": None, "reports": [], "violations": [], "refused": None}
    received = receive(captured, overrides)
    if received is None:
        return {**found, "refused": _NO_BODY}
    try:
        out = received.for_target(target, model=model)
        body = out.data.decode("utf-8", "replace")
        violations = lint(out.body, target, model, overrides)
    except (ToolglotError, ProviderError, RecursionError) as error:
        return {**found, "refused": mask(str(error))}
    shown = [
        {"rule": each.rule, "path": each.path, "message": mask(each.message), "hint": each.hint}
        for each in violations[:MAX_ENTRIES]
    ]
    return {**found, "body": body, "reports": _reports(out.report.entries), "violations": shown}


def _reports(entries: Iterable[Entry]) -> list[Fields]:
    return [report_fields("request", entry) for entry in order_by_gravity(entries)[:MAX_ENTRIES]]
