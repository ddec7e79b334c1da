"""What comes of a discovery: a profile, a report; its plan and its budgets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.simulator.discoveries import KEY, VARIANTS, found_out, no_sleep
from support.simulator.discovery_results import GOOD, one_of, result_of
from toolglot.conversation import Failure
from toolglot.discovery import (
    Budget,
    Departure,
    Discovery,
    Endpoint,
    Finding,
    Opinion,
    ProbeOutcome,
    ProviderInfo,
    ToolingInfo,
    found_profile,
    overrides_of,
    plan,
    profile_toml,
    report,
)
from toolglot.discovery.endpoint_client import EndpointClient, StoppedError
from toolglot.discovery.findings import Exchange
from toolglot.discovery.markdown_report import code, value_text
from toolglot.discovery.model_opinion import MAX_EVIDENCE, prompt, read_opinion, records
from toolglot.discovery.parsed_reply import ParsedReply, no_response
from toolglot.discovery.remedies import remedy
from toolglot.errors import InputError
from toolglot.simulator import Simulator
from toolglot.upstream import AsgiTransport

# --- the profile as a file ------------------------------------------------------------------------


def test_a_found_profile_is_read_back_as_it_was_found() -> None:
    nasty = 'its message: "quotes" \\ and # and \u007f é'
    result = result_of(
        one_of("ids.pattern", "[A-Za-z0-9.]+", note=nasty),
        one_of("ids.max_length", 24, confidence="weak"),
        one_of("tools.max_count", None),
        one_of("turns.media", ("image",)),
        one_of("results.media", ()),
        one_of("schema.refs", False),
        one_of("schema.refused", ("const",)),
        one_of("context.window", 4096, confidence="told", note="as its list of models says"),
        one_of("results.complete", False, settles=False),
        Finding(probe="replies.native", value=True, evidence=("r1",)),
    )
    profile = found_profile(result)
    assert (profile.ids.pattern, profile.ids.max_length, profile.ids.prefix) == ("[A-Za-z0-9.]+", 24, "call")
    assert profile.origin("ids.pattern").error == nasty.removeprefix("its message: ")
    assert [profile.origin(key).confidence for key in ("ids.pattern", "ids.max_length", "context.window")] == [
        *("observed", "guess", "documented"),
    ]
    assert profile.tools.max_count is None
    assert "image" in profile.turns.media
    assert profile.results.media == ()
    assert profile.schema.refused == ("const", "$ref", "$defs")
    assert profile.results.complete is True
    assert overrides_of(result).names == ("box",)
    assert "insecure = true" in profile_toml(result, key_env="K", day="2026-11-15")
    assert 'key_env = "K"' in profile_toml(result, key_env="K")
    assert "2026-11-15" in profile_toml(result, day="2026-11-15")


def test_an_odd_name_is_quoted() -> None:
    provider = ProviderInfo(name="my box", url="http://127.0.0.1", protocols=(), model="")
    written = profile_toml(result_of(provider=provider))
    assert '[profiles."my box"]' in written
    assert "models = []" in written


# --- the report -----------------------------------------------------------------------------------


def test_a_report_shows_everything_and_acts_on_nothing() -> None:
    exchange = Exchange(
        name="r1", probe="p", about="x | y", method="POST", url="u", status=400, reply={"a": "`"}, verdict="refused"
    )
    result = result_of(
        one_of("ids.max_length", 9, note="its message: <b>`|</b>"),
        one_of("turns.first", "any"),
        one_of("stream.index", "reliable", settles=False, note="one stream"),
        Finding(probe="replies.parallel", value=None, evidence=("r1",), confidence="weak"),
        Finding(probe="streams.names", value=True, evidence=("r1",), quirk="names are repeated"),
        tooling=ToolingInfo(format="json", example="```\nx", quirks=("names are repeated",)),
        probes=(
            ProbeOutcome(probe="a", group="ids", question="?", outcome="skipped", reason="because"),
            ProbeOutcome(probe="b", group="ids", question="?", outcome="skipped", reason="not for x"),
        ),
        evidence=(exchange,),
        complete=False,
        stopped="the budget",
        opinion=Opinion(by="a/b", format="xml", schema_requirements=("s",), quirks=("q",), disagrees=("d",)),
    )
    differences = Departure(key="ids.max_length", found=9, expected=40, stated=True, rule="r", evidence=("r1",))
    text = report(result, differences=(differences,), against="openai", day="2026-11-15")
    for words in (
        "**Not complete:** `the budget`",
        "names are repeated",
        "`skipped: because`: a",
        "against the evidence",
    ):
        assert words in text
    assert "`<b>'/</b>`" in text
    assert "x / y" in text
    assert "not for x" not in text
    assert "No difference from its profile was found" in report(result_of(), against="openai")
    assert "gave none: `oops`" in report(result_of(opinion=Opinion(by="a/b", problem="oops")))


def test_values_are_described_in_words() -> None:
    assert [value_text(value) for value in (None, True, False, 1, 0, "", (), ("a", "b"), "x")] == [
        *("no limit found", "yes", "no", "1", "0", "none", "none", "a, b", "x"),
    ]
    assert code("") == ""
    assert remedy(one_of("ids.max_length", 9))
    assert not remedy(one_of("ids.max_length", 900))
    assert not remedy(one_of("ids.max_length", 9, settles=False))
    assert not remedy(Finding(probe="x", value=1))


# --- the plan -------------------------------------------------------------------------------------


def test_a_plan_is_an_estimate_from_above() -> None:
    whole = plan()
    assert whole.requests == sum(one.requests for one in whole.probes)
    for variant in VARIANTS[:1]:
        spent = variant.found_out().spent
        planned = plan(variant.protocol)
        assert spent.requests <= planned.requests
        assert spent.input_tokens + spent.output_tokens <= planned.input_tokens + planned.output_tokens
    assert plan("gemini", ["ids"]).requests < plan("gemini").requests


# --- budgets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(requests=20), "20 requests"),
        (Budget(tokens=900), "900 tokens"),
        (Budget(seconds=0.2, timeout=5), "the time of 0.2 s is over"),
    ],
)
def test_a_budget_is_kept(budget: Budget, words: str) -> None:
    ticks = iter(range(10_000_000))
    clock = (lambda: next(ticks) / 1000) if "time" in words else None
    options: dict[str, Any] = {"clock": clock} if clock is not None else {}
    result = found_out(Simulator(), "openai", protocol="openai_chat", model="gpt-4.1", budget=budget, **options)
    assert not result.complete
    assert words in result.stopped
    assert result.spent.requests <= budget.requests
    assert result.spent.input_tokens + result.spent.output_tokens <= budget.tokens


@pytest.mark.parametrize("wrong", [{"requests": 0}, {"tokens": 0}, {"seconds": 0}, {"timeout": -1.0}])
def test_a_budget_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        Budget(**wrong)


def test_a_busy_endpoint_is_not_waited_for_beyond_the_time_there_is() -> None:
    async def ask() -> None:
        line = EndpointClient(
            Endpoint(url="http://a", transport=AsgiTransport(Simulator())), Budget(seconds=1), sleep=no_sleep
        )
        await line._wait(ParsedReply(verdict="busy", failure=Failure("rate_limit", "", retry_after=15.0)), 1)

    with pytest.raises(StoppedError, match="no time left"):
        asyncio.run(ask())
    assert no_response("x", "rate_limit").verdict == "busy"


def test_a_discovery_reports_what_it_knows_at_any_time() -> None:
    endpoint = Endpoint(url="http://box/v1", transport=AsgiTransport(Simulator()), key=KEY)
    early = Discovery(endpoint).result()
    assert (early.complete, early.stopped, early.sdk.protocol, early.entries) == (False, "it is still running", "", {})
    assert early.entry("ids.style") is None
    assert Discovery(endpoint).result("interrupted").stopped == "interrupted"


def test_tools_that_one_protocol_refuses_are_tried_over_the_next() -> None:
    result = found_out(Simulator(), "openai", model="gpt-5.5", only=["replies"])
    assert result.sdk.protocol == "openai_responses"
    assert result.provider.protocols == ("openai_responses", "openai_chat")
    assert "requests with tools are refused over openai_chat" in result.tooling.quirks
    assert result.tooling.native


def test_the_context_that_a_list_states_is_an_entry() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        listed = {"data": [{"id": "m", "context_length": 8192}]}
        body = listed if scope["path"].endswith("/models") else GOOD
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    result = found_out(app, "openai", protocol="openai_chat", only=["endpoint"])
    assert result.provider.context_tokens == 8192
    found = result.entry("context.window")
    assert found is not None
    assert (found.value, found.confidence, found.evidence) == (8192, "told", ("r1",))


# --- opinions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no JSON", "the expected form"),
        ('{"format": 7}', "the expected form"),
        ('{"format": "soap"}', "unknown format in its reply: soap"),
        ('{"format": "json"}', ""),
    ],
)
def test_an_opinion_must_be_of_the_requested_form(text: str, problem: str) -> None:
    opinion = read_opinion(text, "a/b", result_of())
    assert problem in opinion.problem
    assert bool(opinion.problem) == bool(problem)
    assert opinion.disagrees == ()


def test_the_evidence_in_a_prompt_is_bounded_and_the_four_questions_are_in_it() -> None:
    exchanges = tuple(
        Exchange(
            name=f"r{n}",
            probe="replies.native" if n == 50 else "x",
            about=f"n{n}",
            method="POST",
            url="u",
            reply="y" * 4000,
        )
        for n in range(100)
    )
    result = result_of(evidence=exchanges)
    assert len(records(result)) < MAX_EVIDENCE + 5_000
    assert json.loads(records(result))["records"][0]["about"] == "n50"
    system = prompt(result, "m")["messages"][0]["content"]
    for question in ("1. Format type", "2. Example tool call syntax", "3. Schema requirements", "4. Any quirks"):
        assert question in system
