"""Whoever cannot see the page, or has no pointer, can use it: axe-core finds nothing in any view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from support.inspector.browser import PageBrowser
from support.inspector.conversations import hostile_body
from toolglot.simulator.serving import Server

AXE: Final = Path(__file__).parents[3] / "javascript" / "node_modules" / "axe-core" / "axe.min.js"
LOADING: Final = "[role=status].nothing"
SCRIPT: Final[dict[str, Any]] = {
    "rules": [
        {"when": {"contains": "broken"}, "fault": 500},
        {"reply": {"thinking": "Let me see.", "text": "Hello.", "calls": 1}},
    ]
}
FIND: Final = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations.map((each) =>
  `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.target.join(' ')).join(', ')}`)));
"""
VIEWS: Final = {
    "list": ("", ".row.group"),
    "conversation": ("r/{}", ".turn .block"),
    "diff": ("r/{}/diff", ".diff-turn"),
    "timeline": ("r/{}/timeline", ".tap"),
    "targets": ("r/{}/targets/mistral", ".one-target .j-line"),
    "replay": ("r/{}/replay", ".pair .block"),
    "raw": ("r/{}/raw/rendered", ".j-line"),
    "fleet": ("fleet", ".plot canvas"),
}


@pytest.fixture(scope="module")
def sent(simulated: Server) -> Iterator[tuple[Served, str]]:
    """A gateway with two requests of one conversation and one that failed, and the id of the second one."""
    with gateway(simulated) as served:
        ids = []
        for more in (0, 1):
            body = hostile_body("vllm/local-model", line=1000, more=more)
            got = ask(served, "/v1/messages", body, headers={"user-agent": "client/1.0"})
            assert got.status == 200
            ids.append(got.headers["x-toolglot-request"])
        chat = {"model": "mistral/mistral-large-latest", "messages": [{"role": "user", "content": "broken"}]}
        assert ask(served, "/v1/chat/completions", chat).status == 500
        yield served, ids[1]


def faults(browser: PageBrowser) -> list[str]:
    """What axe-core finds."""
    browser.run(AXE.read_text("utf-8"))
    found: list[str] = browser.run_async(FIND)
    return found


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: run `npm ci` in tests/javascript")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("width", "dark"), [(400, False), (1280, True), (1280, False)])
def test_every_view_is_accessible(
    browser: PageBrowser, sent: tuple[Served, str], view: str, width: int, dark: bool
) -> None:
    served, id = sent
    place, what = VIEWS[view]
    browser.show(width, 900, dark=dark)
    browser.open(f"{served.url}/inspector#/{place.format(id)}")
    browser.wait("document.querySelector(arguments[0]) && !document.querySelector(arguments[1])", what, LOADING)
    assert faults(browser) == []
    browser.press("?")
    browser.wait("document.querySelector('[role=dialog]')")
    assert faults(browser) == []
    browser.press("Escape")
    browser.wait("!document.querySelector('[role=dialog]')")


def test_a_fault_would_be_found(browser: PageBrowser, sent: tuple[Served, str]) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run `npm ci` in tests/javascript")
    browser.open(f"{sent[0].url}/inspector")
    browser.wait("document.querySelector('.row.group')")
    browser.run("const b = document.createElement('button'); document.querySelector('.bar').append(b)")
    assert any(fault.startswith("button-name") for fault in faults(browser))
