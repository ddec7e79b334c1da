"""The inspector's list in a real browser: live, searched, grouped, paused, purged; a thousand rows; hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.inspector.browser import PageBrowser
from support.inspector.conversations import HOSTILE, many_streams
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.simulator.serving import Server

SCRIPT: dict[str, Any] = {
    "pace": 0.25,
    "chunk": 24,
    "rules": [
        {"when": {"contains": "A long story"}, "reply": {"text": "Once upon a time there was a gateway. " * 2000}},
        {"when": {"contains": "overloaded"}, "fault": 529},
        {"reply": {"text": "Hello."}},
    ],
}
ROWS = ".rows .row"
STREAMS = 50


@pytest.fixture
def fresh(simulated: Server) -> Iterator[Served]:
    """A gateway that has seen no request."""
    with gateway(simulated) as running:
        yield running


def say(served: Served, words: str, model: str = "mistral/mistral-large-latest", **more: Any) -> int:
    """The status of a request of a chat client."""
    path, body = request_of("openai", model, words, **more)
    return ask(served, path, body, headers={"user-agent": "chat-client/1.0"}).status


def open_list(browser: PageBrowser, served: Served) -> None:
    browser.open(served.url + "/inspector")
    browser.wait_for(".live", "Live")


def titles(browser: PageBrowser) -> list[str]:
    return browser.texts(f"{ROWS} .c-title")


def test_an_empty_list_says_what_to_run_and_fills_as_requests_come(browser: PageBrowser, fresh: Served) -> None:
    open_list(browser, fresh)
    browser.wait_for(".empty", "No requests yet")
    shown = browser.text(".empty")
    for line in (
        f"export ANTHROPIC_BASE_URL={fresh.url}\n",
        f"export OPENAI_BASE_URL={fresh.url}/v1",
        f"export GOOGLE_GEMINI_BASE_URL={fresh.url}\n",
    ):
        assert line in shown
    assert "codex" in shown
    assert say(fresh, "Where is the bug?") == 200
    browser.wait_for(f"{ROWS} .c-title", "Where is the bug?")
    row = browser.text(ROWS)
    for word in ("chat-client", "mistral-large-latest", "mistral", "200"):
        assert word in row


def test_hostile_text_is_shown_as_text_during_fifty_streams(browser: PageBrowser, fresh: Served) -> None:
    with many_streams(fresh, "mistral/mistral-large-latest", STREAMS):
        assert say(fresh, HOSTILE) == 200
        assert say(fresh, "overloaded") == 503
        open_list(browser, fresh)
        browser.wait("document.querySelector('.count').innerText === arguments[0]", f"{STREAMS + 2} requests")
        browser.click(".segments button", "Requests")
        browser.wait_for(f"{ROWS} .c-title", "<script>window.hacked = 1</script>")
        assert "\u202e" not in browser.text(".rows")
        assert browser.value("window.hacked === undefined")
        assert browser.count(".rows script, .rows img, .rows svg") == 0
        browser.choose("Any change", "failed")
        browser.wait("document.querySelectorAll('.rows .row').length === 1")
        assert "503" in browser.text(ROWS)
        browser.choose("Any change", "running")
        browser.wait_for(".count", f"{STREAMS} of")
        browser.wait_for(f"{ROWS} .c-status", "streaming")
    browser.wait_for(".count", "0 of")  # the streams end, and the list says so by itself


def test_the_list_is_searched_and_filtered(browser: PageBrowser, fresh: Served) -> None:
    for words in ("Fix the router", "Explain the vault", "Explain the router"):
        assert say(fresh, words) == 200
    assert say(fresh, "Explain the store", "anthropic/claude-sonnet-4-5") == 200
    open_list(browser, fresh)
    browser.wait_for(".count", "4 requests")
    browser.press("/")
    browser.press("explain router")
    browser.wait_for(".count", "1 of 4")
    assert titles(browser) == ["Explain the router"]
    browser.write(".search", "model:sonnet")
    browser.wait_for(".count", "1 of 4")
    browser.press("Escape")
    browser.wait_for(".count", "4 requests")
    browser.choose("All upstreams", "anthropic")
    browser.wait_for(".count", "1 of 4")
    browser.choose("All upstreams", "")
    browser.write(".search", "nothing has this")
    browser.click(".nothing button", "Clear")
    browser.wait_for(".count", "4 requests")


def test_the_keyboard_walks_opens_and_comes_back(browser: PageBrowser, fresh: Served) -> None:
    for words in ("one", "two", "three"):
        assert say(fresh, words) == 200
    open_list(browser, fresh)
    browser.wait_for(".count", "3 requests")
    browser.press("j", "j")
    browser.wait("document.querySelectorAll('.rows .row')[1].matches('.current[aria-selected=true]')")
    browser.press("k", "Enter")
    browser.wait_for(".request-view h1", "three")
    browser.press("j")
    browser.wait_for(".request-view h1", "two")
    browser.press("Escape")
    browser.wait_for(".count", "3 requests")
    browser.press("?")
    browser.wait_for("[role=dialog]", "Next and previous request")
    browser.press("Escape")
    browser.wait("!document.querySelector('[role=dialog]')")


def test_a_conversation_unfolds_with_its_branches(browser: PageBrowser, fresh: Served) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "The first question"}]
    assert say(fresh, "", messages=history) == 200
    longer = [*history, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "The second"}]
    other = [*history, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "A rewind"}]
    assert say(fresh, "", messages=longer) == 200
    assert say(fresh, "", messages=other) == 200
    assert say(fresh, "Something else") == 200
    open_list(browser, fresh)
    browser.wait("document.querySelectorAll('.rows .row').length === 2")
    group = f"{ROWS}.group"
    assert "3 requests" in browser.text(group)
    assert browser.value("document.querySelector(arguments[0]).getAttribute('aria-expanded')", group) == "false"
    browser.click(group)
    browser.wait("document.querySelectorAll('.rows .row').length === 5")
    assert browser.count(".branch") == 1
    browser.press("Enter")
    browser.wait("document.querySelectorAll('.rows .row').length === 2")


def test_the_list_pauses_and_goes_on(browser: PageBrowser, fresh: Served) -> None:
    assert say(fresh, "before") == 200
    open_list(browser, fresh)
    browser.wait_for(".count", "1 request")
    browser.click(".pause")
    assert say(fresh, "while it pauses") == 200
    browser.wait_for(".pause", "1 new")
    assert titles(browser) == ["before"]
    browser.press("p")
    browser.wait_for(".count", "2 requests")


def test_all_requests_are_forgotten_after_a_question(browser: PageBrowser, fresh: Served) -> None:
    assert say(fresh, "secret plans") == 200
    open_list(browser, fresh)
    browser.click("button", "Forget all")
    browser.wait_for("[role=dialog]", "Forget all requests?")
    browser.click("[role=dialog] button", "Keep them")
    assert len(fresh.app.request_log.latest(None)) == 1
    browser.click("button", "Forget all")
    browser.click("[role=dialog] button", "Forget all")
    browser.wait_for(".empty", "No requests yet")
    assert fresh.app.request_log.latest(None) == []


def test_of_a_thousand_rows_only_those_in_view_are_in_the_page(browser: PageBrowser, fresh: Served) -> None:
    for number in range(1000):
        record = RequestRecord(f"tg_{number:04}", "POST", "/v1/messages")
        record.arrive(b"{}")
        fresh.app.request_log.end(record)
    open_list(browser, fresh)
    browser.wait_for(".count", "1,000 requests")
    assert 10 < browser.count(ROWS) < 80
    browser.run("document.querySelector('.rows').scrollTop = 1e6")
    browser.wait("[...document.querySelectorAll('.rows .row')].at(-1).getAttribute('aria-rowindex') === '1001'")
    assert browser.count(ROWS) < 80


def test_a_key_is_asked_for_and_shows_its_own_requests_only(browser: PageBrowser, simulated: Server) -> None:
    keys = {"KEY_A": "a-long-client-key-of-a-1", "KEY_B": "a-long-client-key-of-b-2"}
    with gateway(simulated, settings='client_keys = ["env:KEY_A", "env:KEY_B"]', environ=keys) as served:
        for name, words in (("KEY_A", "mine"), ("KEY_B", "not yours")):
            path, body = request_of("openai", "mistral/mistral-large-latest", words)
            assert ask(served, path, body, key=keys[name]).status == 200
        browser.open(served.url + "/inspector")
        browser.wait_for(".key-form", "asks for a key")
        browser.write(".key-form input", "a-wrong-key-of-some-length")
        browser.press("Enter")
        browser.wait("document.querySelector('.key-form [role=alert]')")
        browser.write(".key-form input", keys["KEY_A"])
        browser.press("Enter")
        browser.wait_for(".count", "1 request")
        problems = browser.problems()
        assert problems
        assert all("401" in problem for problem in problems)  # the browser says of each that it was refused


def test_what_is_not_kept_is_said(browser: PageBrowser, simulated: Server) -> None:
    with gateway(simulated, upstreams='[inspector]\nkeep = "reports"') as served:
        assert say(served, "Whatever") == 200
        open_list(browser, served)
        browser.wait_for(".count", "1 request")
        browser.press("j", "Enter")
        browser.wait_for(".nothing", 'keep = "bodies"')
        browser.click(".tabs a", "Raw")
        browser.wait_for(".raw .nothing", 'keep = "bodies"')
        browser.click(".tabs a", "Replay")
        browser.wait_for(".replay", "not")
        assert browser.value("document.querySelector('button.primary').disabled")
        browser.click(".tabs a", "Timeline")
        browser.wait_for(".event-row .kind", "request")
        browser.open("about:blank")  # a page whose gateway ends complains
    with gateway(simulated, upstreams='[inspector]\nkeep = "off"') as served:
        open_list(browser, served)
        browser.wait_for(".empty", "Nothing is kept")


def test_it_is_readable_on_a_telephone_and_on_a_wide_screen_light_and_dark(browser: PageBrowser, fresh: Served) -> None:
    assert say(fresh, "A question of some length, so that it has to be cut where the screen is small") == 200
    for width in (400, 1280, 2000):
        for dark in (False, True):
            browser.show(width, 800, dark=dark)
            open_list(browser, fresh)
            browser.wait_for(".count", "1 request")
            assert browser.value("document.documentElement.scrollWidth") <= width
            level = browser.value("Number(getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0])")
            assert (level < 128) == dark
    browser.press("t")
    browser.wait("document.documentElement.dataset.theme === 'light'")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.run("localStorage.clear()")


def test_pages_that_nobody_sees_hold_no_connection(browser: PageBrowser, fresh: Served) -> None:
    assert say(fresh, "hello") == 200
    for _ in range(8):  # a browser has six connections, and may keep pages that were left
        open_list(browser, fresh)
        browser.wait_for(".count", "1 request")


def test_a_breach_of_the_policy_would_be_seen(browser: PageBrowser, fresh: Served) -> None:
    open_list(browser, fresh)
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)"
    )
    assert browser.value("window.hacked === undefined")
    assert "Content Security Policy" in " ".join(browser.problems())
