"""Errors and reports are data that people can read."""

from __future__ import annotations

import json
import pickle

import pytest

from toolglot import (
    Entry,
    HistoryError,
    InputError,
    LimitError,
    Policy,
    RenderError,
    Report,
    ToolCall,
    ToolglotError,
    ToolResult,
    TruncatedArgumentsError,
    Turn,
    errors,
    profiles,
)
from toolglot.render import rendering
from toolglot.render.context import RenderContext


def test_an_error_says_what_where_and_what_to_do() -> None:
    error = InputError("expected a number", path="$.a", hint="write 1")
    assert str(error) == "$.a: expected a number (write 1)"
    assert str(InputError("no", path="")) == "no"
    assert (error.message, error.path, error.hint) == ("expected a number", "$.a", "write 1")


def test_local_mistakes_are_value_errors_and_all_have_one_root() -> None:
    for kind in (LimitError, errors.VersionError, errors.ArgumentsError, errors.ProfileError, errors.JSONError):
        assert issubclass(kind, InputError)
        assert issubclass(kind, ValueError)
    assert issubclass(HistoryError, ToolglotError)
    assert not issubclass(HistoryError, ValueError)


def test_the_tree_at_the_head_of_the_file_lists_every_error() -> None:
    drawn = errors.__doc__ or ""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(kind.__name__ in drawn for kind in kinds)
    assert len(kinds) >= 10


def test_errors_cross_a_process_boundary() -> None:
    error = TruncatedArgumentsError("cut", position=7, path="$.x", hint="again")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), str(copy), copy.position) == (TruncatedArgumentsError, "$.x: cut (again)", 7)


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        *(("abc", "'abc'"), ("x" * 100, "'" + "x" * 80 + "…'"), ("\ud83d", r"'\ud83d'"), (b"secret", "a bytes")),
        *((None, "None"), (True, "True"), (-3, "-3"), (1.5, "1.5"), (10**30, "a int"), ([1], "a list")),
    ],
)
def test_untrusted_values_are_quoted_short_and_printable(value: object, quoted: str) -> None:
    assert errors.quote(value) == quoted


def test_a_report_reads_as_text_and_as_data() -> None:
    assert str(Report()) == "nothing was changed"
    report = Report()
    report.add(Entry(action="orphaned", reason="no call fits", fault="canonical", path="$.x", call_ids=("a", "b")))
    report.extend([Entry(action="deferred", reason="later", fault="policy")])
    assert str(report) == "orphaned at $.x: no call fits [a, b]\ndeferred: later"
    assert [entry.action for entry in report] == ["orphaned", "deferred"]
    assert len(report) == len(report.entries) == 2
    assert repr(report) == "<Report: 2 entries>"
    many = Entry(action="compressed", reason="gone", fault="policy", call_ids=tuple("abcdefgh"))
    assert str(many) == "compressed: gone [a, b, c, d, e, f, …]"
    assert str(Entry(action="ignored", reason="here", fault="policy", turn_key="t1")) == "ignored: here [t1]"
    assert json.loads(report.to_json())["entries"][1] == {
        "action": "deferred",
        "reason": "later",
        "fault": "policy",
        "gravity": "housekeeping",
    }


def test_a_render_that_would_break_a_law_is_stopped_with_its_report() -> None:
    ctx = RenderContext(profiles.get("openai"), Policy(), None)
    ctx.report("moved", "something was moved", "canonical")
    call, result = ToolCall("call_1", "f", {}), ToolResult("call_1", "x")
    for turns in (
        (Turn("assistant", (call, call)), Turn("tool", (result, result))),
        (Turn("assistant", (call,)),),
        (Turn("tool", (result,)),),
    ):
        with pytest.raises(RenderError, match="stopped") as stopped:
            rendering._check_pairs(turns, ctx)
        assert "something was moved" in stopped.value.report
    rendering._check_pairs((Turn("assistant", (call,)), Turn("tool", (result,))), ctx)
