"""The pictures of the inspector in docs/: the real page in Chromium, on a gateway whose providers are simulated.

    .venv/bin/python scripts/draw_inspector.py            # all of them
    .venv/bin/python scripts/draw_inspector.py list diff  # some

It needs Debian's `chromium` and `chromium-driver`, and the `dev` extra.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from PIL import Image

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.gateway.served_gateway import Served, gateway  # noqa: E402
from support.inspector.browser import PageBrowser, chromium  # noqa: E402
from toolglot.simulator import serve  # noqa: E402

FOLDER: Final = ROOT / "docs" / "inspector"
MAX_BYTES: Final = 200_000
WIDTH, HEIGHT = 1280, 800
LOADING: Final = "[role=status].nothing"
QUESTION: Final = "The test of the router fails one time in ten. Find out why, and fix it."
SOURCE: Final = "TABLE = {Route('/v1/messages'), Route('/v1/responses'), Route('/v1/chat/completions')}\n" * 4
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "name": name,
        "description": text,
        "input_schema": {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]},
    }
    for name, text, field in (
        ("read_file", "Read a file of the project.", "path"),
        ("edit/file", "Replace a part of a file.", "path"),
        ("run_tests", "Run tests, and return what they print.", "pattern"),
    )
]
SCRIPT: Final[dict[str, Any]] = {
    "pace": 0.02,
    "chunk": 12,
    "rules": [
        {"when": {"contains": "overloaded"}, "fault": 529},
        {
            "when": {"contains": "router", "results": 0},
            "reply": {
                "thinking": "A test that fails sometimes: order, time or shared state. The table first.",
                "text": "I read the router and its test.",
                "calls": [
                    {"name": "read_file", "arguments": {"path": "src/router/table.py"}},
                    {"name": "read_file", "arguments": {"path": "tests/test_router.py"}},
                ],
            },
        },
        {
            "when": {"contains": "router", "results": 2},
            "reply": {
                "thinking": "A set. Its order depends on the seed of the hash.",
                "text": "The table is a set, and its order changes from run to run. I run the test with ten seeds.",
                "calls": [{"name": "run_tests", "arguments": {"pattern": "tests/test_router.py --seeds 10"}}],
            },
        },
        {"reply": {"text": "The table is now a tuple, so the first route that matches is always the same one. "
                           "The test passed two hundred times in a row."}},
    ],
}  # fmt: skip


def post(served: Served, path: str, body: dict[str, Any], agent: str) -> tuple[str, Any]:
    """The id of a request, and the reply. A reply that is an error is one too."""
    headers = {"content-type": "application/json", "x-api-key": "any", "user-agent": agent}
    request = urllib.request.Request(served.url + path, json.dumps(body).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310
            data = response.read()
            return response.headers["x-toolglot-request"], data
    except urllib.error.HTTPError as error:
        with error:
            return error.headers["x-toolglot-request"], error.read()


def agent_session(served: Served, model: str, agent: str, question: str, *, clock: bool = False) -> list[str]:
    """A coding agent at work, as an Anthropic client: the ids of its requests.

    clock: its system prompt begins with the time, so that no prompt cache is found again.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    ids: list[str] = []
    for minute in range(4):
        body = {
            "model": model,
            "max_tokens": 8000,
            "system": f"{f'It is 14:0{minute}. ' if clock else ''}You are a careful engineer. Run the tests.",
            "tools": TOOLS,
            "messages": messages,
        }
        id, data = post(served, "/v1/messages", body, agent)
        ids.append(id)
        content = json.loads(data)["content"]
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            break
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": SOURCE} for call in calls]
        messages = [*messages, {"role": "assistant", "content": content}, {"role": "user", "content": results}]
    return ids


class Stage:
    """A gateway that has served what there is to see."""

    def __init__(self, served: Served) -> None:
        self.served = served
        for words in ("Explain the retry loop", "Why does the vault keep two entries?", "Port the parser to C"):
            chat = {"model": "mistral/mistral-large-latest", "messages": [{"role": "user", "content": words}]}
            post(served, "/v1/chat/completions", chat, "openai-python/2.1")
        google = {"contents": [{"role": "user", "parts": [{"text": "Summarise the issue in two sentences"}]}]}
        post(served, "/v1beta/models/gemini/gemini-2.5-pro:generateContent", google, "gemini-cli/0.9")
        agent_session(served, "mistral/mistral-large-latest", "opencode/1.0", "Add a --json flag to the router's lint")
        self.ids = agent_session(served, "openai/gpt-5.5", "claude-code/2.1", QUESTION)
        self.broken = agent_session(served, "openai/gpt-5.5", "opencode/1.0", QUESTION, clock=True)[-1]
        post(served, "/v1/chat/completions", {"model": "kimi/kimi-k2-0905-preview", "messages": [
            {"role": "user", "content": "Are you overloaded?"}]}, "codex/0.98")  # fmt: skip
        stream = {"model": "anthropic/claude-sonnet-4-5", "max_tokens": 8000, "stream": True, "tools": TOOLS}
        stream |= {"thinking": {"type": "enabled", "budget_tokens": 2000}}
        stream |= {"messages": [{"role": "user", "content": QUESTION}]}
        self.stream, _ = post(served, "/v1/messages", stream, "claude-code/2.1")


def draw_list(browser: PageBrowser, stage: Stage) -> None:
    browser.open(f"{stage.served.url}/inspector")
    browser.wait("document.querySelectorAll('.rows .row').length > 4")
    browser.click(".row.group .c-title", QUESTION[:20])
    browser.wait("document.querySelectorAll('.rows .row').length > 7")


def draw_request(browser: PageBrowser, stage: Stage) -> None:
    view(browser, stage, stage.ids[1], "")
    browser.hover(".cell-canonical .report[data-link='$.tools']")
    browser.wait("document.querySelector('.cell-provider .hot')")


def draw_dark(browser: PageBrowser, stage: Stage) -> None:
    browser.show(WIDTH, HEIGHT, dark=True)
    view(browser, stage, stage.ids[1], "")
    browser.wait("(document.querySelector('.turns').scrollTop = 400) && document.querySelector('.block-call')")
    top = "document.querySelector('.block-call').closest('.measured').offsetTop"
    browser.run(f"document.querySelector('.turns').scrollTop = {top}")
    browser.hover(".cell-canonical .block-call button.id")
    browser.wait("document.querySelector('.cell-provider .hot')")


def draw_diff(browser: PageBrowser, stage: Stage) -> None:
    view(browser, stage, stage.broken, "diff")
    browser.wait("document.querySelector('.prefix')")


def draw_timeline(browser: PageBrowser, stage: Stage) -> None:
    view(browser, stage, stage.stream, "timeline")
    browser.wait("document.querySelector('.span.call')")


def draw_targets(browser: PageBrowser, stage: Stage) -> None:
    view(browser, stage, stage.stream, "targets/gemini")
    browser.wait("document.querySelector('.one-target .j-line')")


def draw_replay(browser: PageBrowser, stage: Stage) -> None:
    view(browser, stage, stage.ids[-1], "replay")
    browser.write(".model", "mistral/mistral-large-latest")
    browser.click("button.primary")
    browser.wait("document.querySelector('.pair section:last-child .block')")


def draw_fleet(browser: PageBrowser, stage: Stage) -> None:
    browser.show(WIDTH, 1000)
    browser.open(f"{stage.served.url}/inspector#/fleet")
    browser.wait("document.querySelectorAll('.plot canvas').length >= 4")


VIEWS: Final[dict[str, Callable[[PageBrowser, Stage], None]]] = {
    "list": draw_list,
    "request": draw_request,
    "diff": draw_diff,
    "timeline": draw_timeline,
    "targets": draw_targets,
    "replay": draw_replay,
    "fleet": draw_fleet,
    "dark": draw_dark,
}


def view(browser: PageBrowser, stage: Stage, id: str, name: str) -> None:
    """Open a view of a request, as far as it has read it."""
    browser.open(f"{stage.served.url}/inspector#/r/{id}{name and '/' + name}")
    browser.wait_for(".live", "Live")
    browser.wait("document.querySelector('.tabs') && !document.querySelector(arguments[0])", LOADING)


def write_picture(name: str, data: bytes) -> int:
    """Write a screenshot with few colours. Returns its size."""
    picture = (
        Image.open(io.BytesIO(data)).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    FOLDER.mkdir(exist_ok=True)
    picture.save(FOLDER / f"{name}.png", optimize=True)
    return (FOLDER / f"{name}.png").stat().st_size


def main() -> int:
    """Draw the views that are named, or all. Returns the exit code."""
    names = sys.argv[1:] or [*VIEWS]
    if unknown := [name for name in names if name not in VIEWS]:
        print(f"unknown view {unknown[0]!r}; one of {', '.join(VIEWS)}")
        return 2
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(SCRIPT) as simulated,
        gateway(simulated) as served,
        chromium(Path(folder) / "browser") as browser,
    ):
        stage = Stage(served)
        for name in names:
            browser.show(WIDTH, HEIGHT)
            VIEWS[name](browser, stage)
            size = write_picture(name, browser.screenshot())
            failed |= size > MAX_BYTES
            print(f"{name}.png: {size:,} bytes")
    return failed


if __name__ == "__main__":
    sys.exit(main())
