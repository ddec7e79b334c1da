"""The inspector on a conversation of 2,000 turns and 20 MB in a real browser: only what is in view is in the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from support.inspector.browser import PageBrowser
from support.inspector.conversations import long_body
from toolglot.simulator.serving import Server

TURNS: Final = 1999
SIZE: Final = 20_000_000
NODES: Final = 4000


@pytest.fixture(scope="module")
def large(simulated: Server) -> Iterator[tuple[Served, str]]:
    """A gateway, and the id of the request."""
    with gateway(simulated) as served:
        got = ask(served, "/v1/messages", long_body("vllm/local-model", TURNS, SIZE))
        assert got.status == 200, got.data[:500]
        yield served, got.headers["x-toolglot-request"]


def test_a_conversation_of_2000_turns_is_in_the_page_only_as_far_as_it_is_in_view(
    browser: PageBrowser, large: tuple[Served, str]
) -> None:
    served, id = large
    browser.open(f"{served.url}/inspector#/r/{id}")
    browser.wait_for(".columns-bar", "1,999 turns")
    browser.wait_for(".turn[data-turn=answer]")
    assert browser.count("*") < NODES
    browser.click("button", "First")
    browser.wait_for(".turn[data-turn='0'] .cell-canonical", "0: a line of text")
    assert browser.count("*") < NODES
    for share in (0.2, 0.5, 0.8):  # turns that were not sent with the first answer are read when they come into view
        browser.wait(
            "(list => { list.scrollTop = list.scrollHeight * arguments[1];"
            " return [...list.querySelectorAll('.turn[data-turn] .cell-canonical')].some("
            "e => Math.abs(Number(e.closest('.turn').dataset.turn) / arguments[0] - arguments[1]) < 0.1"
            " && e.innerText.includes('a line of text')) })(document.querySelector('.turns'))",
            TURNS,
            share,
        )
        assert browser.count("*") < NODES
    browser.click("button", "Answer")
    browser.wait_for(".turn[data-turn=answer]", "answer")


def test_a_body_of_20_megabytes_is_in_the_page_only_as_far_as_it_is_in_view(
    browser: PageBrowser, large: tuple[Served, str]
) -> None:
    served, id = large
    browser.open(f"{served.url}/inspector#/r/{id}/raw")
    browser.wait_for(".body-view .bar", "lines")
    assert browser.count("*") < NODES
    browser.run("document.querySelector('.code.scroll').scrollTop = 1e9")
    browser.wait_for(".j-line", "1998: a line of text")
    assert browser.count("*") < NODES
