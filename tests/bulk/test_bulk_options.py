"""The options of a conversion, row by row."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from support.bulk.samples import ATIF, HERE, MESSAGES, OPENAI, call
from toolglot import InputError, bulk
from toolglot.bulk.stats import RowStats


def convert(row: Any, target: str = "messages", source: str = "auto", **options: Any) -> bulk.ConvertedBatch:
    return bulk.convert_batch([row], source=source, target=target, options=bulk.BulkOptions(**options))


def test_each_turn_of_the_model_can_be_a_row() -> None:
    batch = convert(OPENAI, split="turns")
    assert [len(row["messages"]) for row in batch.rows] == [2, 5]
    assert batch.reports[0].outputs == 2
    assert "tool_calls" in batch.rows[0]["messages"][-1]
    only_user = {"messages": [{"role": "user", "content": "x"}]}
    assert convert(only_user, source="messages", split="turns").reports[0].fate == "dropped"


@pytest.mark.parametrize(("option", "count"), [("keep", 2), ("last", 1), ("drop", 0)])
def test_thinking_is_kept_or_dropped(option: str, count: int) -> None:
    row = deepcopy(ATIF)
    row["steps"][2]["reasoning_content"] = "Done."
    row["steps"][1]["observation"]["results"].reverse()
    batch = convert(row, reasoning=option)
    assert sum("reasoning_content" in message for message in batch.rows[0]["messages"]) == count
    assert batch.reports[0].is_changed == (option != "keep")


def test_rows_with_a_failed_call_can_be_left_out() -> None:
    row = deepcopy(OPENAI)
    row["messages"][2]["content"] = "Error: no such directory"
    (report,) = convert(row, drop_failed=True).reports
    assert (report.fate, "failed" in report.reason) == ("dropped", True)
    assert convert(OPENAI, drop_failed=True).reports[0].fate == "converted"


def test_secrets_and_home_directories_are_masked_everywhere() -> None:
    key = "sk-ant-api03-0123456789abcdefghij"
    row = deepcopy(OPENAI)
    row["messages"][0]["content"] = f"My key is {key}, in /home/alice/work and C:\\Users\\alice\\x"
    row["messages"][1]["tool_calls"][0] = call("call_a", json.dumps({"path": "/Users/alice/x", "deep": [{"k": key}]}))
    row["messages"][2]["content"] = f"token={key}"
    batch = convert({**row, "note": key}, source="messages", redact=True)
    text = json.dumps(batch.rows)
    assert key not in text
    assert "alice" not in text
    assert "/home/user/work" in text
    assert batch.reports[0].is_changed


def test_images_can_be_dropped() -> None:
    content = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
    row = {"messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "Yes"}]}
    batch = convert(row, source="messages", images="drop")
    assert batch.rows[0]["messages"][0]["content"] == [{"type": "text", "text": "[image]"}]
    assert batch.reports[0].is_changed


@pytest.mark.parametrize(("option", "fate"), [("keep", "converted"), ("result", "converted"), ("reject", "set_aside")])
def test_calls_without_a_result(option: str, fate: str) -> None:
    row = {**MESSAGES, "messages": MESSAGES["messages"][:2]}
    batch = convert(row, dangling=option)
    assert batch.reports[0].fate == fate
    if option == "keep":
        assert [message["role"] for message in batch.rows[0]["messages"]] == ["user", "assistant"]
    if option == "result":
        assert [message["role"] for message in batch.rows[0]["messages"]] == ["user", "assistant", "tool", "tool"]
    middle = {**MESSAGES, "messages": [*MESSAGES["messages"][:2], MESSAGES["messages"][-1]]}
    batch = convert(middle, dangling=option)
    assert (batch.reports[0].fate, batch.reports[0].is_changed) == (fate, True)


def test_a_row_is_checked_against_a_target() -> None:
    row = deepcopy(OPENAI)
    row["tools"][0] = {"type": "function", "function": {**row["tools"][0]["function"], "name": "bad name"}}
    (report,) = convert(row, validate="openai@gpt-4.1").reports
    assert any("bad name" in found or "pattern" in found for found in report.violations)
    batch = convert(row, validate="openai")
    assert batch.rows[0]["toolglot_violations"] == list(report.violations)
    assert convert(OPENAI, validate="openai").reports[0].violations == ()


def test_columns_of_other_names_are_mapped() -> None:
    row = {"dialog": OPENAI["messages"], "functions_json": OPENAI["tools"], "topic": "files"}
    batch = convert(row, columns=(("dialog", "messages"), ("functions_json", "tools")))
    assert batch.reports[0].fate == "converted"
    assert batch.rows[0]["topic"] == "files"
    assert len(batch.rows[0]["tools"]) == 1


def test_nulls_of_arrow_can_be_left_out() -> None:
    tool = deepcopy(OPENAI["tools"][0])
    tool["function"]["parameters"]["properties"]["other"] = None
    row = {**OPENAI, "tools": [tool]}
    kept = convert(row).rows[0]["tools"][0]["function"]["parameters"]["properties"]
    left = convert(row, strip_nulls=True).rows[0]["tools"][0]["function"]["parameters"]["properties"]
    assert ({*kept}, {*left}) == ({"path", "other"}, {"path"})


def test_columns_that_the_form_does_not_define_are_carried_or_reported() -> None:
    row = {**MESSAGES, "topic": "files"}
    assert convert(row, target="swift").rows[0]["topic"] == "files"
    batch = convert(row, target="openai")
    assert "topic" not in batch.rows[0]
    assert any("topic" in entry.reason for entry in batch.reports[0].entries)


def test_beginnings_of_longer_rows_are_merged_in_a_batch() -> None:
    row = {**MESSAGES, "messages": MESSAGES["messages"][:1]}
    options = bulk.BulkOptions(dedupe_prefix=True)
    batch = bulk.convert_batch([row, MESSAGES, MESSAGES], target="openai", options=options)
    assert [report.fate for report in batch.reports] == ["merged", "converted", "merged"]


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of conversation, turns"):
        bulk.BulkOptions(split="words")  # type: ignore[arg-type]


def test_a_batch_goes_to_other_processes() -> None:
    import pickle  # noqa: PLC0415

    function, options = pickle.loads(pickle.dumps((bulk.convert_batch, bulk.BulkOptions(split="turns"))))  # noqa: S301
    batch = pickle.loads(pickle.dumps(function([OPENAI], target="messages", options=options)))  # noqa: S301
    assert batch.counts["outputs"] == 2


def test_stats_are_the_same_in_parts_and_as_a_whole() -> None:
    failed = deepcopy(OPENAI)
    failed["messages"][2]["content"] = "Error: no"
    rows = [OPENAI, failed, MESSAGES, {"messages": 3}, ATIF]
    whole, one, other = RowStats(), RowStats(), RowStats()
    for number, row in enumerate(rows):
        source = "atif" if row is ATIF else "messages"
        whole.add(row, source)
        (one if number % 2 else other).add(row, source)
    one.merge(other)
    assert one.as_json() == whole.as_json()
    found = whole.as_json()
    assert found["calls"] == [{"tool": "ls", "calls": 8, "failures": 1}]
    assert found["rows"]["set_aside"] == 1
    assert found["rows"]["with_failures"] == 1
    assert HERE == {"path": "."}
