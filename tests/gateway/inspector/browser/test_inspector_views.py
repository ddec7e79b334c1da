"""The views of one request in a real browser, on a hostile conversation, while fifty streams run."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from support.inspector.browser import PageBrowser
from support.inspector.conversations import LONG_LINE, SCRIPT_TAG, TOOL, hostile_body, many_streams, png
from toolglot.simulator.serving import Server

SCRIPT: dict[str, Any] = {
    "pace": 0.25,
    "chunk": 24,
    "rules": [
        {"when": {"contains": "A long story"}, "reply": {"text": "Once upon a time there was a gateway. " * 2000}},
        {
            "when": {"contains": "In pieces"},
            "reply": {"thinking": "Let me see.", "text": "One. Two. Three.", "calls": 1},
        },
        {"when": {"contains": "What does it say?"}, "reply": {"text": f"It says hello. {SCRIPT_TAG}"}},
        {"reply": {"text": "Hello."}},
    ],
}
MODEL: Final = "vllm/local-model"
TURN: Final = ".turn[data-turn='{}']"
LOADING: Final = "[role=status].nothing"


class Requests:
    """The ids of what was sent."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.first = self.send(hostile_body(MODEL))
        self.second = self.send(hostile_body(MODEL, more=1))
        changed = hostile_body(MODEL, more=2)
        changed["system"] = f"It is 14:02. {changed['system']}"
        self.broken = self.send(changed)
        self.stream = self.send(
            {
                "model": "anthropic/claude-sonnet-4-5",
                "max_tokens": 500,
                "stream": True,
                "tools": [TOOL],
                **_words("In pieces"),
            }
        )

    def send(self, body: dict[str, Any]) -> str:
        headers = {"user-agent": "hostile-client/1.0"}
        got = ask(self.served, "/v1/messages", body, headers=headers)
        assert got.status == 200, got.data[:500]
        return got.headers["x-toolglot-request"]


def _words(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.fixture(scope="module")
def sent(simulated: Server) -> Iterator[Requests]:
    with gateway(simulated) as served:
        requests = Requests(served)
        with many_streams(served, "mistral/mistral-large-latest", 50):
            yield requests


def open_view(browser: PageBrowser, sent: Requests, id: str, view: str = "") -> None:
    browser.open(f"{sent.served.url}/inspector#/r/{id}{view and '/' + view}")
    browser.wait_for(".live", "Live")
    browser.wait_for(".request-view h1")
    browser.wait("!document.querySelector(arguments[0])", LOADING)


def nothing_ran(browser: PageBrowser) -> bool:
    """Nothing of the conversation was taken for HTML."""
    return bool(browser.value("window.hacked === undefined")) and browser.count("#app script, #app svg, #app img") == 0


def test_one_request_is_shown_in_three_columns_that_are_linked(browser: PageBrowser, sent: Requests) -> None:
    browser.show(1280, 3000)
    open_view(browser, sent, sent.first)
    browser.wait_for(f"{TURN.format('head')} .cell-canonical", "files/read")
    call = ".block-call[data-link^=hist_tool_]"
    browser.wait("document.querySelector(arguments[0])", call)
    canonical = browser.value("document.querySelector(arguments[0]).dataset.link", call)
    for column in ("client", "canonical", "provider"):
        assert browser.count(f".cell-{column} [data-link='{canonical}']"), column
    assert browser.count(".hot") == 0
    browser.hover(f".cell-client bdi[data-link='{canonical}']")
    browser.wait("document.querySelector('.cell-provider .hot')")
    assert browser.count(f".hot:not([data-link='{canonical}'])") == 0
    browser.click(".block-result .long button", "Show 18,")
    browser.wait_for(".block-result .long", "more characters are in the raw JSON")
    browser.click("button", "Answer")
    browser.wait_for(f"{TURN.format('answer')} .cell-canonical", "It says hello.")
    browser.wait_for(f"{TURN.format('answer')} .cell-client", "It says hello.")
    browser.wait_for(f"{TURN.format('answer')} .cell-provider", "chat.completion")
    assert SCRIPT_TAG[:30] in browser.text(".turns")
    assert "\u202e" not in browser.text(".turns")
    assert "U+202E" in browser.text(".turns")
    assert len(browser.text("#app")) < 100_000  # the line of five million characters is folded
    assert nothing_ran(browser)


def test_each_change_is_marked_where_it_happened_and_explained(browser: PageBrowser, sent: Requests) -> None:
    browser.show(1280, 3000)
    open_view(browser, sent, sent.first)
    browser.wait("document.querySelector('.turn .report')")
    assert browser.count(".turn[data-turn=head] .report")  # what is about all of it, such as names of tools
    browser.click("button", "Next change")
    browser.wait("document.querySelector('.turn:not([data-turn=head], [data-turn=answer]) .report')")
    browser.click("button.rule")
    browser.wait("document.querySelector('.explained .pairs dd')")
    assert browser.text(".explained").strip()
    assert nothing_ran(browser)


def test_a_picture_is_loaded_only_after_a_click(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.first)
    assert browser.count("img") == 0
    browser.click(".show-picture")
    browser.wait("document.querySelector('img.picture')?.naturalWidth === 1")


def test_a_picture_in_the_result_of_a_call_is_shown_too(browser: PageBrowser, sent: Requests) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(png()).decode()}
    parts = [{"type": "text", "text": "here"}, {"type": "image", "source": source}]
    messages = [
        {"role": "user", "content": "Take a picture"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "files/read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": parts}]},
    ]
    id = sent.send({"model": MODEL, "max_tokens": 100, "tools": [TOOL], "messages": messages})
    browser.show(1280, 3000)
    open_view(browser, sent, id)
    browser.click(".block-result .show-picture")
    browser.wait("document.querySelector('.block-result img.picture')?.naturalWidth === 1")


def test_a_changed_setting_is_marked_in_the_bodies(browser: PageBrowser, sent: Requests) -> None:
    body = {"model": MODEL, "max_tokens": 100, "system": "Be short.", **_words("Hello"), "service_tier": "auto"}
    id = sent.send({**body, "tools": [TOOL]})
    browser.show(1280, 2000)
    open_view(browser, sent, id)
    browser.wait("document.querySelector('.cell-client .field-change[data-link=\"$.tools\"]')")
    browser.hover(".cell-client .field-change")
    browser.wait(
        "document.querySelector('.cell-canonical .report.hot') && document.querySelector('.cell-provider .hot')"
    )
    assert browser.count(".turn[data-turn=head] .fold[aria-expanded=false]") == 2  # the tools of both bodies
    browser.click(".cell-client .fold[aria-expanded=false]")
    browser.wait_for(".cell-client .part", "input_schema")


def test_an_answer_is_seen_as_it_runs(browser: PageBrowser, sent: Requests) -> None:
    rows = json.loads(ask(sent.served, "/inspector/api/requests?limit=200", method="GET").data)["rows"]
    id = next(row["id"] for row in rows if row["state"] == "running")
    browser.show(1280, 1500)
    open_view(browser, sent, id)
    browser.wait_for(f"{TURN.format('answer')} .chip", "running")
    browser.wait_for(f"{TURN.format('answer')} .cell-canonical", "Once upon a time")
    length = len(browser.text(f"{TURN.format('answer')} .cell-canonical"))
    browser.wait(
        f"document.querySelector(arguments[0]).innerText.length > {length}", f"{TURN.format('answer')} .cell-canonical"
    )
    open_view(browser, sent, id, "timeline")
    taps = browser.count(".tap.text")
    browser.wait(f"document.querySelectorAll('.tap.text').length > {taps}")


def test_a_large_request_is_rendered_for_one_target_after_the_other(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.first, "targets")  # five megabytes
    browser.wait("document.querySelectorAll('.targets tbody tr').length > 10")
    browser.wait("!/waiting/.test(document.querySelector('.targets tbody').innerText)")
    browser.wait_for(".targets tbody tr", "accepted")


def test_the_menu_is_inside_of_a_small_screen(browser: PageBrowser, sent: Requests) -> None:
    for width in (400, 700, 1280):
        browser.show(width, 800)
        open_view(browser, sent, sent.stream)
        browser.click(".menu summary")
        box = browser.value("document.querySelector('.menu-body').getBoundingClientRect().toJSON()")
        assert box["left"] >= 0
        assert box["right"] <= width
        browser.press("Escape")
        assert not browser.value("document.querySelector('.menu').open")
        browser.wait_for(".request-view h1")  # it closed the menu, and not the request


def test_bodies_are_raw_fold_and_are_copied(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.first, "raw")
    browser.wait("document.querySelectorAll('.j-line').length > 20")
    lines = browser.count(".j-line")
    assert lines < 120
    browser.wait_for(".j-line", '"model": "vllm/local-model"')
    browser.click("button", "Fold all")
    browser.wait("document.querySelectorAll('.j-line').length < 12")
    browser.wait_for(".j-line", '"messages": [ 3 ]')
    browser.click(".fold[aria-expanded=false]")
    browser.click("button", "Unfold all")
    browser.wait("document.querySelectorAll('.j-line').length > 20")
    for name, word in (("Request to the provider", "local-model"), ("Reply of the provider", "chat.completion")):
        browser.click(".segments button", name)
        browser.wait_for(".j-line", word)
    browser.click(".segments button", "Reply to the client")
    browser.wait_for(".j-line", "It says hello.")
    assert nothing_ran(browser)


def test_a_line_of_five_megabytes_is_read_in_pieces(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.first, "raw")
    browser.run("document.querySelector('.code.scroll').scrollTop = 500")
    browser.wait(
        f"[...document.querySelectorAll('.j-line button')].some(e => e.innerText.includes('{LONG_LINE // 10**6},'))"
    )
    browser.click(".j-line button.more", f"{LONG_LINE // 10**6},")
    browser.wait_for("[role=dialog]", "Show 20,000 more of 4,9")
    assert len(browser.text("[role=dialog]")) < 30_000
    browser.press("Escape")
    browser.wait("!document.querySelector('[role=dialog]')")


def test_code_is_copied_with_keys_as_variables(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.stream)
    browser.run(
        "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }"
    )  # a browser without a window has no clipboard
    for label, word in (("curl", "curl"), ("SDK of the client", "anthropic"), ("SDK of the provider", "anthropic")):
        browser.click(".menu summary")
        browser.click(".menu-body button", label)
        browser.wait("window.copied && window.copied.includes(arguments[0])", word)
        assert "a-client-key" not in browser.value("window.copied")
        browser.run("window.copied = ''; document.querySelector('.menu').open = false")


def test_the_diff_says_that_the_prefix_was_kept(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.second, "diff")
    browser.wait_for(".prefix.kept", "byte for byte")
    browser.wait_for(".diff-turn.added", "And then? 0")
    assert browser.count(".diff-turn.removed") == 0


def test_the_diff_shows_a_broken_prompt_cache_and_what_it_costs(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.broken, "diff")
    browser.wait_for(".prefix.broken", "The prompt cache is broken")
    shown = browser.text(".prefix.broken")
    assert "The first byte that differs is byte" in shown
    assert "tokens are read again" in shown
    assert browser.count(".difference mark") == 2
    assert browser.value("getComputedStyle(document.querySelector('.prefix.broken h2')).color") == "rgb(180, 35, 24)"
    assert nothing_ran(browser)


def test_the_timeline_shows_what_came_when(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.stream, "timeline")
    browser.wait("document.querySelectorAll('.tap').length > 4")
    kinds = browser.value("[...document.querySelectorAll('.event-row .kind')].map(e => e.innerText)")
    for kind in ("request", "upstream called", "first byte", "thinking", "text", "call opens", "end"):
        assert kind in kinds, kinds
    assert browser.count(".span.call") == 1
    browser.hover(".event-row .kind.first_byte")
    browser.wait("document.querySelector('.tap.first_byte.current')")


def test_every_target_has_a_verdict_and_can_be_looked_at(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.stream, "targets")
    browser.wait("document.querySelectorAll('.targets tbody tr').length > 10")
    browser.click(".targets tbody a", "mistral")
    browser.wait_for(".one-target .note", "The referee finds nothing wrong")
    browser.wait_for(".one-target .j-line", '"messages"')
    open_view(browser, sent, sent.first, "targets/gemini")
    browser.wait("document.querySelector('.one-target .report, .one-target .note')")
    assert nothing_ran(browser)


def test_a_request_is_sent_again_to_another_model_only_after_a_click(browser: PageBrowser, sent: Requests) -> None:
    before = len(sent.served.app.request_log.latest(None, 1000))
    open_view(browser, sent, sent.second, "replay")
    browser.wait_for(".pair section", "Not sent yet.")
    assert len(sent.served.app.request_log.latest(None, 1000)) == before
    browser.write(".model", "mistral/mistral-large-latest")
    browser.click("button.primary")
    browser.wait_for(".pair section:last-child .chip", "200")
    browser.wait_for(".pair section:last-child .block", "Hello.")
    browser.wait_for(".pair section:first-child .block", "Hello.")
    browser.click(".pair a", "Open")
    browser.wait_for(".title-bar .chip", "replay of another")


def test_the_fleet_is_plotted(browser: PageBrowser, sent: Requests) -> None:
    browser.open(f"{sent.served.url}/inspector#/fleet")
    browser.wait("document.querySelectorAll('.plot canvas').length >= 2")
    browser.wait_for(".legend li", "local-model")
    browser.wait_for(".fleet th[scope=row]", "vllm")
    browser.click(".segments button", "by upstream")
    browser.wait_for(".legend li", "anthropic")
    browser.click(".segments button", "24 hours")
    browser.wait("document.querySelector('.plot canvas').width > 100")


@pytest.mark.parametrize("of", ["request", "conversation"])
def test_an_exported_file_shows_the_same_without_a_gateway(browser: PageBrowser, sent: Requests, of: str) -> None:
    open_view(browser, sent, sent.second)
    menu = "Export the request" if of == "request" else "Export the conversation"
    browser.click(".menu summary")
    selector = f".menu-body h2:nth-of-type({2 if of == 'request' else 3}) + button"
    browser.wait_for(".menu-body h2", menu)
    browser.click(selector, "HTML")
    file = browser.saved("*.html")
    text = file.read_text("utf-8")
    file.unlink()
    kept = browser.downloads.parent / f"{of}.html"
    kept.write_text(text, encoding="utf-8")
    browser.open(kept.as_uri())
    browser.wait_for(".count", "request")
    browser.wait("document.querySelectorAll('.rows .row').length > 0")
    browser.go(f"#/r/{sent.second}")
    browser.click("button", "Answer")
    browser.wait_for(f"{TURN.format('answer')} .cell-canonical", "Hello.")
    for view, what in (
        ("diff", ".prefix, main .nothing"),
        ("timeline", ".tap"),
        ("targets", ".targets tbody tr"),
        ("raw", ".j-line"),
    ):
        browser.go(f"#/r/{sent.second}/{view}")
        browser.wait("document.querySelector(arguments[0])", what)
    assert nothing_ran(browser)


def test_a_capture_is_exported(browser: PageBrowser, sent: Requests) -> None:
    open_view(browser, sent, sent.stream)
    browser.click(".menu summary")
    browser.click(".menu-body button", "JSONL, a capture")
    file = browser.saved("*.jsonl")
    (line,) = file.read_text("utf-8").splitlines()
    file.unlink()
    assert json.loads(line)["id"] == sent.stream
