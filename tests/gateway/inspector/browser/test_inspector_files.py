"""`toolglot inspect FILE` in a real browser: the same page on files, served or written into one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from support.inspector.browser import PageBrowser
from support.inspector.conversations import hostile_body
from support.waiting import HANG_SECONDS

PROGRAM = (sys.executable, "-m", "toolglot", "inspect")


def look_at_all(browser: PageBrowser) -> None:
    """Every view that there is without a gateway, of the first request."""
    browser.wait_for(".count", "2 requests")
    assert browser.count(".top nav a") == 1  # no fleet
    browser.click(".row.group")
    browser.wait("document.querySelectorAll('.rows .row').length === 3")
    assert set(browser.texts(".rows .c-status")) == {"not sent"}
    browser.click(".rows .row:last-child a")
    browser.wait_for(".cell-canonical", "files/read")
    assert not {"Replay", "Timeline"} & {*browser.texts(".tabs a")}
    assert browser.texts(".title-bar > .chip")[0] == "not sent"
    assert browser.texts(".column-heads .cell-provider") == ["Provider would be sent anthropic"]
    assert browser.count(".answer") == 0
    for view, what in (("Diff", ".prefix"), ("Targets", ".targets tbody tr"), ("Raw", ".j-line")):
        browser.click(".tabs a", view)
        browser.wait("document.querySelector(arguments[0])", what)
    assert browser.value("window.hacked === undefined")


def write_requests(folder: Path) -> Path:
    """Two requests of one conversation."""
    file = folder / "requests.jsonl"
    bodies = [hostile_body("claude-opus-4-5", line=1000, more=more) for more in (0, 1)]
    file.write_text("".join(json.dumps(body) + "\n" for body in bodies))
    return file


def test_files_are_looked_at(browser: PageBrowser, tmp_path: Path) -> None:
    file = write_requests(tmp_path)
    process = subprocess.Popen([*PROGRAM, str(file), "--quiet"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        browser.open(process.stdout.readline().strip())
        look_at_all(browser)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 0
        process.stdout.close()


def test_files_are_written_into_one_page(browser: PageBrowser, tmp_path: Path) -> None:
    file, page = write_requests(tmp_path), tmp_path / "page.html"
    subprocess.run([*PROGRAM, str(file), "--export", str(page), "--quiet"], check=True, timeout=HANG_SECONDS)
    browser.open(page.as_uri())
    look_at_all(browser)
