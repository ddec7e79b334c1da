"""The record of a request: each part is written by one module, and a restart forgets the upstream that failed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolglot.gateway
from support.gateway.request_records import ended_request
from toolglot.conversation.report import Entry
from toolglot.gateway.observability.request_record import DISCONNECTED, RequestRecord

ROOT = Path(toolglot.gateway.__file__).parents[1]
PARTS = frozenset({"request", "route", "sent", "calls", "reply", "response", "times"})


def writes(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes of the parts of a record that are assigned to."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Attribute)
        ):
            owner = node.value
            name = owner.value.attr if isinstance(owner.value, ast.Attribute) else getattr(owner.value, "id", "")
            if owner.attr in PARTS and name.lstrip("_") == "record":
                yield node


def test_the_search_finds_a_write() -> None:
    planted = "record.response.status = 1\nself._record.reply.usage, other = None, 2\nrecord.route = route\n"
    assert [node.attr for node in writes(ast.parse(planted))] == ["status", "usage"]


def test_parts_of_a_record_are_written_through_their_methods_only() -> None:
    for file in ROOT.rglob("*.py"):
        found = [node.lineno for node in writes(ast.parse(file.read_text()))]
        assert not found or file.name == "request_record.py", f"{file}: {found}"


def test_a_restart_forgets_the_reply_of_the_upstream_that_failed_and_not_the_failure() -> None:
    entry = Entry(action="renamed", reason="r", fault="renderer")
    record = ended_request(
        reply_entries=(entry,), usage={"input_tokens": 1}, stop="end", error="oh", status=0, sent=2.0, first_byte=1.0
    )
    record.calls.fail("openai", "server")
    record.restart()
    assert (record.reply.entries, record.reply.usage, record.reply.stop) == ((), None, "")
    assert (record.response.error, record.times.sent, record.times.first_byte) == ("", 0.0, None)
    assert record.calls.failures == [("openai", "server")]
    assert record.calls.last_failure == "server"


@pytest.mark.parametrize(("status", "is_broken"), [(0, False), (200, True)])
def test_a_response_is_broken_if_it_had_begun_when_it_failed(status: int, is_broken: bool) -> None:
    record = RequestRecord("tg_1", "POST", "/")
    record.response.begin(status)
    record.response.fail("oh")
    assert record.response.is_broken is is_broken


def test_a_cut_is_taken_once_and_a_client_that_left_is_gone() -> None:
    response = RequestRecord("tg_1", "POST", "/").response
    assert response.is_gone
    response.begin(200)
    assert not response.is_gone
    response.cut()
    assert (response.take_cut(), response.take_cut()) == (True, False)
    response.disconnect()
    assert (response.is_gone, response.error) == (True, DISCONNECTED)
