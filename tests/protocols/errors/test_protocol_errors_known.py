"""The providers' own error texts in the profiles, recognised in their messages."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import is_linear, no_hang
from toolglot import profiles
from toolglot.profiles import loader
from toolglot.protocols.errors.bodies import error_in, parse_object, read_error
from toolglot.protocols.errors.known_messages import recognise
from toolglot.protocols.openai_chat import errors

NOT_MESSAGES = {
    ": OPENROUTER PROCESSING",
    '{"type":"error","error":{…}}',
    '{"type":"error",code,message,param}',
}
"""Texts of the profiles that show a shape or a comment line, not a message."""

SAMPLES = (
    {"…": "toolu_01AbC", "N": "7", "M": "0", "X": "call_9x", "<id>": "abc", "<n>": "12"},
    {"…": "a, b and 'c'", "N": "12345", "M": "31", "X": "functions.f:0", "<id>": "call_|_", "<n>": "0"},
    {"…": "", "N": "0", "M": "1", "X": "", "<id>": "", "<n>": "3"},
)


def known_texts() -> dict[tuple[str, str], set[str]]:
    """Every text of every profile, with the rules and facts of that profile that it belongs to."""
    found: dict[tuple[str, str], set[str]] = {}
    for name in profiles.names():
        file = loader.read_builtin(name)
        tables = (file.rules, *(model.rules for model in file.models))
        # An unknown model is refused in the same words, whatever provider it belongs to: they are no sign of this rule.
        known = [rule for table in tables for rule in table.values() if rule.key != "request.foreign_models"]
        entries = [(rule.id, rule.error) for rule in known]
        for rule, text in [*entries, *((fact.id, fact.error) for fact in file.facts)]:
            if text and text not in NOT_MESSAGES:
                found.setdefault((name, text), set()).add(rule)
    return found


KNOWN_TEXTS = known_texts()


def shape(text: str) -> str:
    """A text without what differs from case to case."""
    return re.sub(r"\w*_…|\d+|\b[NMX]\b", "…", text)


def rules_with(text: str, target: str | None = None) -> set[str]:
    """The rules with the same text, of one target or of all."""
    alike = (
        rules for (name, other), rules in KNOWN_TEXTS.items() if shape(other) == shape(text) and target in (None, name)
    )
    return set().union(*alike)


def fill(text: str, sample: dict[str, str]) -> str:
    """A provider's message, with samples for what differs from case to case."""
    if text.startswith("{"):
        document = parse_object(text.replace("{…}", "{}"))
        found = read_error(error_in(document), document)
        text = found.message or " ".join(found.codes)
    text = re.sub(r"\b[NMX]\b|<id>|<n>", lambda gap: sample[gap[0]], text)
    return re.sub(r"…|\.\.\.", sample["…"], re.sub(r"\[\d+\]|\.\d+\.", lambda n: n[0].replace(n[0][1:-1], "42"), text))


@pytest.mark.parametrize("sample", SAMPLES, ids=["ids", "lists", "nothing"])
@pytest.mark.parametrize(("target", "text"), KNOWN_TEXTS)
def test_every_text_of_every_profile_is_recognised_as_its_own_rule(
    target: str, text: str, sample: dict[str, str]
) -> None:
    sentence = fill(text, sample)
    for message in (sentence, f"Error code: 400 - {sentence} (request id: req_1)", sentence.upper()):
        assert recognise(message, target=target)[0] in rules_with(text, target)
        assert rules_with(text) & set(recognise(message))


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Hello, how can I help you today?",
        "The tool returned an error, so I tried again with other arguments.",
        "Internal server error",
        "Overloaded",
        "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000.",
        "Incorrect API key provided: sk-***. You can find your API key at https://platform.openai.com.",
        "The model `gpt-9` does not exist or you do not have access to it.",
        "Expected 'a' or 'b'",
        "Unknown parameter: 'foo'.",
        "temperature: Input should be less than or equal to 1",
        "502 Bad Gateway",
        "Role 'user' is fine after role 'tool'.",
        "…",
        "0",
    ],
)
def test_prose_and_other_errors_are_not_recognised(message: str) -> None:
    assert recognise(message) == ()


LONG_ID = (
    "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, "
    "but got a string with length 51 instead."
)
NO_TOOLS = (
    "Function tools with reasoning_effort are not supported for gpt-6-astra in /v1/chat/completions. To use "
    "function tools, use /v1/responses or set reasoning_effort to 'none'."
)
UNKNOWN_NAME = (
    'Invalid JSON payload received. Unknown name "const" at '
    "'tools[0].function_declarations[2].parameters.properties[0].value': Cannot find field."
)
ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
NINE = "Tool call id was call_abc but must be a-z, A-Z, 0-9, with a length of 9."


@pytest.mark.parametrize(
    ("message", "target", "rule"),
    [
        (LONG_ID, "openai", "openai-id-length"),
        (LONG_ID, "groq", "compatible-id-length"),
        ("Unexpected role 'tool' after role 'system'", "mistral", "mistral-result-adjacent"),
        (NO_TOOLS, "openai", "openai-tools-by-responses"),
        (UNKNOWN_NAME, "gemini", "gemini-schema-keywords"),
        (UNKNOWN_NAME, "google", "gemini-schema-keywords"),
        (NINE, "vllm", "vllm-mistral-id-nine"),
        (NINE, "mistral", "mistral-id-style"),
        (ORPHAN, "azure", "openai-result-paired"),
    ],
)
def test_real_messages_name_the_rule_of_their_own_target(message: str, target: str, rule: str) -> None:
    assert recognise(message, target=target)[0] == rule


def test_without_a_target_rules_of_the_protocol_come_first() -> None:
    assert recognise(NINE, protocol="bedrock")[0] == "bedrock-mistral-id-style"
    assert recognise(NINE, protocol="openai_chat")[0].split("-")[0] != "bedrock"
    assert recognise(NINE, target="nobody")


def test_a_failure_names_the_rule_also_when_a_router_hands_the_message_on() -> None:
    raw = '{"error":{"message":"Unexpected role \'user\' after role \'tool\'","type":"invalid_request_message_order"}}'
    body = {"error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": raw}}}
    failure = errors.decode(200, body, target="mistral")
    assert failure is not None
    assert (failure.kind, failure.rule, failure.in_band) == ("bad_request", "mistral-result-user-after", True)


@pytest.mark.parametrize("piece", ["string too long ", "'", "`x`", "parameters ", "0", "unexpected role '", "…", "\0"])
def test_hostile_text_takes_no_more_work_than_other_text(piece: str) -> None:
    recognise("")
    assert is_linear(lambda length: lambda: recognise(piece * (length // len(piece))), 5_000)
    with no_hang():
        recognise(piece * (400_000 // len(piece)))


@pytest.mark.law
@given(st.text(max_size=300) | st.lists(st.sampled_from([text for _, text in KNOWN_TEXTS]), max_size=3).map(" ".join))
def test_whatever_the_message_only_known_rules_are_named(message: str) -> None:
    known = set().union(*KNOWN_TEXTS.values())
    assert known.issuperset(recognise(message))
