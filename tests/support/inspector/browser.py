"""Debian's Chromium without a window, for tests of pages.

with chromium(folder) as browser:
    browser.open(served.url + "/inspector")
    browser.wait("document.title === 'toolglot inspector'")
    browser.click(".tabs a")
assert browser.problems() == []

A test waits for a condition in the page, never for a time. Whatever the browser says of errors in scripts, of requests
that failed and of breaches of the page's policy (CSP) is in `problems`.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from selenium import webdriver
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from support.waiting import HANG_SECONDS, wait_until

PROGRAMS: Final = ("chromium", "chromedriver")
WORDS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--no-default-browser-check", "--disable-extensions", "--mute-audio", "--disable-search-engine-choice-screen"),
)
KEYS: Final = {"Enter": Keys.ENTER, "Escape": Keys.ESCAPE, "ArrowDown": Keys.ARROW_DOWN, "ArrowRight": Keys.ARROW_RIGHT}


class PageBrowser:
    """A browser with one page."""

    def __init__(self, driver: webdriver.Chrome, downloads: Path) -> None:
        self._driver = driver
        self.downloads = downloads
        """The folder of what is saved."""

    def open(self, url: str) -> None:
        """Load a page anew."""
        self._driver.get("about:blank")
        self._driver.get(url)

    def go(self, place: str) -> None:
        """To another view of the page."""
        self.run("location.hash = arguments[0]", place)

    def run(self, script: str, *values: Any) -> Any:
        """What statements in the page return."""
        return self._driver.execute_script(script, *values)

    def value(self, expression: str, *values: Any) -> Any:
        """What an expression in the page is."""
        return self.run(f"return {expression}", *values)

    def wait(self, condition: str, *values: Any) -> None:
        """Until the condition is true in the page."""

        def is_so() -> bool:
            try:
                return bool(self.value(condition, *values))
            except JavascriptException:  # it asks for what is not there yet
                return False

        try:
            wait_until(is_so)
        except AssertionError:
            text = str(self.value("document.body.innerText"))[:1500]
            raise AssertionError(f"{condition} {values} did not become true; the page says:\n{text}") from None

    def wait_for(self, selector: str, text: str = "") -> None:
        """Until an element of this kind has this text."""
        self.wait(
            "[...document.querySelectorAll(arguments[0])].some(e => e.innerText.includes(arguments[1]))", selector, text
        )

    def text(self, selector: str) -> str:
        """The text of the first such element."""
        return str(self.value("document.querySelector(arguments[0]).innerText", selector))

    def texts(self, selector: str) -> list[str]:
        """The texts of all such elements."""
        found: list[str] = self.value("[...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)
        return found

    def count(self, selector: str) -> int:
        """How many such elements there are."""
        return int(self.value("document.querySelectorAll(arguments[0]).length", selector))

    def _element(self, selector: str, text: str) -> WebElement | None:
        elements = self._driver.find_elements(By.CSS_SELECTOR, selector)
        return next((each for each in elements if each.is_displayed() and text in each.text), None)

    def click(self, selector: str, text: str = "") -> None:
        """Click on the first such element that is shown and has this text, as soon as it can be clicked on."""

        def is_clicked() -> bool:
            try:
                element = self._element(selector, text)
                if element is None:
                    return False
                element.click()
            except (StaleElementReferenceException, WebDriverException):  # it was drawn anew, or something is above it
                return False
            return True

        try:
            wait_until(is_clicked)
        except AssertionError:
            page = str(self.value("document.body.innerText"))[:1500]
            raise AssertionError(f"{selector} {text!r} could not be clicked on; the page says:\n{page}") from None

    def hover(self, selector: str) -> None:
        """Move the pointer onto the first such element."""
        self.wait("document.querySelector(arguments[0])", selector)
        element = self._driver.find_element(By.CSS_SELECTOR, selector)
        webdriver.ActionChains(self._driver).move_to_element(element).perform()

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for key in keys:
            webdriver.ActionChains(self._driver).send_keys(KEYS.get(key, key)).perform()

    def write(self, selector: str, text: str) -> None:
        """Write into a field, in the place of what is there."""
        field = self._driver.find_element(By.CSS_SELECTOR, selector)
        field.clear()
        field.send_keys(text)

    def choose(self, label: str, value: str) -> None:
        """Choose a value of a selection field."""
        self.run(
            "const field = [...document.querySelectorAll('label')].find(e => e.innerText.includes(arguments[0])"
            " || e.textContent.includes(arguments[0])).querySelector('select'); field.value = arguments[1];"
            "field.dispatchEvent(new Event('change', {bubbles: true}))",
            label,
            value,
        )

    def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """The size of the page, and whether the reader prefers it dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def screenshot(self) -> bytes:
        """The page as a PNG."""
        return base64.b64decode(self._driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"])

    def saved(self, pattern: str) -> Path:
        """A file that was saved, as soon as it is whole."""
        found: list[Path] = []

        def is_there() -> bool:
            found[:] = [path for path in self.downloads.glob(pattern) if not path.name.endswith(".crdownload")]
            return bool(found) and not [*self.downloads.glob("*.crdownload")]

        wait_until(is_there)
        return found[0]

    def run_async(self, script: str) -> Any:
        """What statements in the page give to the function `arguments[0]`."""
        return self._driver.execute_async_script(script)

    def problems(self) -> list[str]:
        """What the browser complained of since the last call."""
        entries = self._driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [str(entry["message"]) for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


@contextlib.contextmanager
def chromium(folder: Path) -> Iterator[PageBrowser]:
    """A browser as long as the block lasts; the test is skipped if there is none. `folder` is for its files."""
    paths = [shutil.which(name) for name in PROGRAMS]
    if None in paths:
        pytest.skip("there is no Chromium here (Debian: chromium and chromium-driver)")
    downloads = folder / "downloads"
    downloads.mkdir(parents=True)
    options = webdriver.ChromeOptions()
    options.binary_location = str(paths[0])
    for word in (*WORDS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(word)
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(downloads), "download.prompt_for_download": False}
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(paths[1])))
    try:
        driver.set_page_load_timeout(HANG_SECONDS)
        driver.set_script_timeout(HANG_SECONDS)
        yield PageBrowser(driver, downloads)
    finally:
        driver.quit()
