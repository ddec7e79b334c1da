"""What a script or a client can make the simulator do is bounded: patterns, stored answers, spellings of signatures."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from support.counted_work import is_linear
from toolglot.errors import InputError
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.signatures import Signer
from toolglot.simulator.scripts.patterns import MAX_LENGTH
from toolglot.simulator.scripts.script import When
from toolglot.simulator.scripts.script_reading import script_of
from toolglot.simulator.stored_responses import StoredItems

# --- patterns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        *("(a+)+$", "(?:a*)*", "(a|a)*", "(a+){2,3}", "((a+))+", "(x(a+))*", r"(\w+\s?)*", "(?i:a+)+", "(?P<x>a*)*"),
        *("(a+)(?#why)+", "(b?){30}", "(?x)(a+) +", "(?:a|b+){2,}", "(?=a+)+", "a" * (MAX_LENGTH + 1)),
    ],
)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="matches"):
        When(matches=pattern)
    with pytest.raises(InputError) as caught:
        script_of({"rules": [{"reply": {}, "when": {"matches": pattern}}]})
    assert caught.value.path.startswith("$.rules[0].when")


@pytest.mark.parametrize(
    "pattern",
    [
        *("weather", "(?i)weather in (bonn|paris)", ".*x.*y", "a+b+", "(abc)+", "(a|b)?", "[(a+)+]*", r"\(a+\)+"),
        *("(a{3})+", "[]a+(]+", r"^(foo|bar)\b", r"\d{3,5}-(?:x)", "(?P<n>a+)b(?P=n)", "(a+)(b)+", "(a|b)(?#why)c"),
    ],
)
def test_other_patterns_are_read(pattern: str) -> None:
    script = script_of({"rules": [{"reply": {}, "when": {"matches": pattern}}]})
    assert script.rules[0].when.matches == pattern


@pytest.mark.parametrize("pattern", ["(", "a{1,99999999999999999999}", ")", "(" * 900])
def test_what_is_no_pattern_is_reported(pattern: str) -> None:
    with pytest.raises(InputError, match="not a regular expression"):
        script_of({"rules": [{"reply": {}, "when": {"matches": pattern}}]})


# --- stored answers ---------------------------------------------------------------------------------


def items(count: int, stem: str = "i") -> list[dict[str, Any]]:
    return [{"type": "message", "id": f"{stem}{number}", "role": "user", "content": "x"} for number in range(count)]


def test_joining_takes_work_in_proportion_to_what_is_joined() -> None:
    def joining(count: int) -> Callable[[], object]:
        kept = StoredItems()
        kept.keep("resp_1", items(count), 0)
        body = {"previous_response_id": "resp_1", "input": items(count, "n")}
        return lambda: kept.resolve(body)

    assert is_linear(joining, 500)
    kept = StoredItems()
    kept.keep("resp_1", items(5000), 0)
    joined = kept.resolve({"previous_response_id": "resp_1", "input": items(5000, "n")})
    assert isinstance(joined, dict)
    assert len(joined["input"]) == 10_000
    assert isinstance(kept.resolve({"previous_response_id": "resp_1", "input": items(1)}), Refusal)


def test_an_answer_counts_with_all_that_led_to_it() -> None:
    kept = StoredItems(max_bytes=25_000)
    kept.keep("resp_1", items(200), 10)
    kept.keep("resp_2", items(250), 10)
    kept.keep("resp_3", items(1000), 10)
    found = {id: kept.resolve({"previous_response_id": id, "input": []}) for id in ("resp_1", "resp_2", "resp_3")}
    assert [id for id, joined in found.items() if isinstance(joined, dict)] == ["resp_2"]


# --- signatures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("purpose", ["thinking", "thought"])
def test_another_spelling_of_a_signature_is_none(purpose: str) -> None:
    signer = Signer(0)
    read = 0
    for number in range(20):
        signature = signer.sign(purpose, model="m", content=number)
        body, pads = signature.rstrip("="), signature.count("=")
        assert signer.read(purpose, signature) is not None
        for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/":
            changed = body[:-1] + last + "=" * pads
            assert changed == signature or signer.read(purpose, changed) is None
        for_addresses = base64.urlsafe_b64encode(base64.b64decode(signature)).decode()
        if for_addresses != signature:
            read += signer.read(purpose, for_addresses) is not None
    assert (read > 0) == (purpose == "thought")
