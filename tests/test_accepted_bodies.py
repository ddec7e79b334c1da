"""Do no harm: a request that its provider takes is right for the referee, and leaves byte for byte.

`accepted_bodies/<provider>.json` holds a small body of our own for each shape that real providers were seen to take.
Each is judged by both sides: the referee, and the renderer at the same provider. The laws' conversations join the two
as well: whatever the referee finds right is not changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolglot
from toolglot import profiles

BODIES = Path(__file__).parent / "accepted_bodies"
MODEL_IN_ADDRESS = ("gemini", "bedrock")


def _cases() -> list[Any]:
    return [
        pytest.param(file.stem, case, id=f"{file.stem}: {case['shape']}")
        for file in sorted(BODIES.glob("*.json"))
        for case in json.loads(file.read_text())
    ]


def _at_its_provider(provider: str, case: dict[str, Any]) -> toolglot.ConvertedRequest:
    data = json.dumps(case["body"]).encode()
    received = toolglot.read_request(data, source=provider)
    if profiles.get(provider).protocol in MODEL_IN_ADDRESS:
        received.address(model=case["model"], stream=case.get("stream", False))
    return received.for_target(provider)


@pytest.mark.parametrize(("provider", "case"), _cases())
def test_an_accepted_body_is_right_and_leaves_byte_for_byte(provider: str, case: dict[str, Any]) -> None:
    found = toolglot.lint(case["body"], provider, model=case["model"])
    assert not found, [f"{violation.rule}: {violation.message}" for violation in found]
    sent = _at_its_provider(provider, case)
    assert sent.data == json.dumps(case["body"]).encode(), str(sent.report)
    assert [entry for entry in sent.report.entries if entry.gravity != "housekeeping"] == []
