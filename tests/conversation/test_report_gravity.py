"""The gravity of report entries. Counts and lists begin with the gravest."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from toolglot import convert
from toolglot.conversation.field_gravity import gravity_of_field
from toolglot.conversation.report import GRAVITIES, Action, Entry, Gravity, Report, gravity_of
from toolglot.gateway.observability.record_text import report_header

MESSAGES = [{"role": "user", "content": "Hi"}]


def entry(action: Action, gravity: Gravity | None = None, reason: str = "why") -> Entry:
    return Entry(action=action, reason=reason, fault="loss", gravity=gravity or gravity_of(action))


def test_every_action_has_a_gravity() -> None:
    assert all(gravity_of(action) in GRAVITIES for action in get_args(Action))
    assert gravity_of("dropped") == "loss"
    assert gravity_of("renamed") == "change"


def test_an_entry_without_a_gravity_gets_that_of_its_action_also_when_decoded() -> None:
    assert Entry(action="dropped", reason="x", fault="loss").gravity == "loss"
    old = b'{"action": "canonicalised", "reason": "x", "fault": "canonical"}'  # as earlier versions stored it
    assert msgspec.json.decode(old, type=Entry).gravity == "housekeeping"
    original = entry("dropped", "housekeeping")
    assert msgspec.json.decode(msgspec.json.encode(original), type=Entry) == original


def test_a_report_counts_and_lists_losses_first() -> None:
    report = Report((entry("dropped", "housekeeping", "a"), entry("renamed", reason="b"), entry("dropped", reason="c")))
    assert report.summary == "1 loss, 1 change, 1 housekeeping"
    assert str(report).splitlines() == ["dropped: c", "renamed: b", "dropped: a"]
    assert [each.reason for each in report] == ["a", "b", "c"]  # in the order in which it happened
    assert [[each.reason for each in group] for group in (report.losses, report.changes, report.housekeeping)] == [
        ["c"],
        ["b"],
        ["a"],
    ]
    assert Report((entry("dropped"), entry("dropped"))).summary == "2 losses"
    header = report_header(report.entries)
    assert header == "1 loss, 1 change, 1 housekeeping: dropped: c; renamed: b; dropped: a"


@pytest.mark.parametrize(
    ("field", "value", "gravity"),
    [
        ("store", False, "housekeeping"),
        ("metadata", {"user_id": "u"}, "housekeeping"),
        ("cache_control", {"type": "ephemeral"}, "housekeeping"),
        ("n", 1, "housekeeping"),
        ("n", 2, "loss"),
        ("logprobs", True, "loss"),
        ("include", ["reasoning.encrypted_content"], "housekeeping"),
        ("include", ["web_search_call.results"], "loss"),
        ("context_management", {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "housekeeping"),
        ("context_management", {"edits": [{"type": "clear_tool_uses_20250919"}]}, "loss"),
        ("context_management", 5, "loss"),
        ("enable_thinking", False, "loss"),
        ("who_knows", 1, "loss"),
    ],
)
def test_a_field_that_is_not_carried_is_a_loss_unless_it_means_nothing_elsewhere(
    field: str, value: Any, gravity: str
) -> None:
    assert gravity_of_field(field, value) == gravity


def test_settings_that_mean_nothing_at_the_target_are_housekeeping() -> None:
    body = {
        "model": "claude-opus-5",
        "max_tokens": 100,
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]}
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "eager_input_streaming": True}],
    }
    report = convert(body, source="anthropic", target="openai_responses", model="gpt-5.5").report
    assert report.housekeeping
    assert not report.losses
    assert not report.changes


def test_a_demand_that_is_not_honoured_is_a_loss() -> None:
    body = {"model": "m", "max_tokens": 9, "top_k": 3, "messages": MESSAGES}
    (lost,) = convert(body, source="anthropic", target="openai", model="gpt-4.1").report.losses
    assert lost.path == "$.top_k"
    forced = {
        "model": "m",
        "tool_choice": "required",
        "messages": MESSAGES,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    }
    report = convert(forced, source="openai", target="kimi", model="kimi-k2-thinking").report
    assert [each.path for each in report.losses] == ["$.tool_choice"]


def test_an_image_that_the_model_cannot_see_is_a_loss() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    body = {"model": "m", "messages": [{"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}]}
    report = convert(body, source="openai", target="deepseek", model="deepseek-chat").report
    assert any("image" in each.reason for each in report.losses)


def test_keywords_without_meaning_for_a_model_are_no_losses() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {"path": {"type": "string"}},
    }
    body = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": schema}],
    }
    report = convert(body, source="anthropic", target="gemini", model="gemini-3-pro").report
    assert report.losses == ()
    assert any("$schema" in entry.reason for entry in report.housekeeping)
