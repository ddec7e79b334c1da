"""How long the inspector's page takes to open a conversation of 2,000 turns and 20 MB, in Chromium.

    .venv/bin/python bench/inspector.py

From the moment that the address is opened until the answer is shown; then until turns in the middle are, which are
read when they come into view; then the raw body. The aim is 2 s for each on an idle machine: what is printed is the
time of the wall, so there is no limit that breaks. It needs Debian's `chromium` and `chromium-driver`.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.gateway.http_client import ask
from support.gateway.served_gateway import gateway
from support.inspector.browser import PageBrowser, chromium
from support.inspector.conversations import long_body
from toolglot.simulator import serve

ROUNDS: Final = 5
TURNS: Final = 1999
SIZE: Final = 20_000_000
AIM: Final = 2.0
STEPS: Final = {
    "open the conversation": "document.querySelector('.turn[data-turn=answer] .cell-canonical .block')",
    "jump to its beginning": "document.querySelector(\".turn[data-turn='0'] .cell-canonical .block\")",
    "open the raw body": "document.querySelectorAll('.j-line').length > 10",
}


def measure(browser: PageBrowser, address: str, times: dict[str, list[float]]) -> None:
    """One round."""
    for step, condition in STEPS.items():
        start = time.perf_counter()
        if step == "open the conversation":
            browser.open(address)
        elif step == "jump to its beginning":
            browser.click("button", "First")
        else:
            browser.open(f"{address}/raw")
        browser.wait(condition)
        times[step].append(time.perf_counter() - start)


def main() -> int:
    """Print what each step takes."""
    times: dict[str, list[float]] = {step: [] for step in STEPS}
    with (
        tempfile.TemporaryDirectory() as folder,
        serve({}) as simulated,
        gateway(simulated) as served,
        chromium(Path(folder) / "browser") as browser,
    ):
        browser.show(1280, 800)
        got = ask(served, "/v1/messages", long_body("vllm/local-model", TURNS, SIZE))
        address = f"{served.url}/inspector#/r/{got.headers['x-toolglot-request']}"
        for _ in range(ROUNDS):
            measure(browser, address, times)
    print(f"a conversation of {TURNS + 1:,} turns and {SIZE // 10**6} MB; load of the machine {os.getloadavg()[0]:.1f}")
    for step, found in times.items():
        print(f"  {step:24} {statistics.median(found):5.2f} s  (best {min(found):.2f}, aim {AIM:.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
