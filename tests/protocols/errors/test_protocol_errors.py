"""Errors of all protocols: native ones stay, others are translated, and none has a secret or a traceback."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.counted_work import is_linear, no_hang
from support.protocols.body_laws import same_json
from support.protocols.real_errors import INVALID, PROTOCOLS, ROWS, anthropic, decode, errors, google, openai
from toolglot import Failure, FailureKind, InputError, LimitError
from toolglot.masking import mask
from toolglot.protocols.bedrock import errors as bedrock
from toolglot.protocols.errors import bodies as error_bodies
from toolglot.protocols.errors import failures, retry_after
from toolglot.protocols.errors.kinds import CODES, KINDS, PHRASES, VAGUE_CODES, kind_of

protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.mark.parametrize(("protocol", "status", "body", "kind"), ROWS)
def test_a_real_error_is_classified_and_comes_back_as_it_was(
    protocol: str, status: int, body: Any, kind: FailureKind
) -> None:
    for form in (body, json.dumps(body), json.dumps(body).encode()):
        failure = decode(protocol, status, form)
        assert failure.kind == kind
        assert failure.message
        assert failure.status == status
        assert failure.in_band is (status == 200)
        native = body[0] if isinstance(body, list) else body
        if "sk-" not in json.dumps(native):
            assert same_json(errors(protocol).encode(failure), (status, native))


@pytest.mark.parametrize("other", PROTOCOLS)
@pytest.mark.parametrize(("protocol", "status", "body", "kind"), ROWS)
def test_a_real_error_is_understood_in_every_other_protocol(
    protocol: str, status: int, body: Any, kind: FailureKind, other: str
) -> None:
    failure = msgspec.structs.replace(decode(protocol, status, body), extra=None)
    other_status, other_body = errors(other).encode(failure)
    again = decode(other, other_status, other_body, errors(other).headers_of(failure))
    assert again.kind == kind
    assert again.retry_after == failure.retry_after
    assert other_status >= 400
    assert failure.message.rstrip("…")[:100] in again.message


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("anthropic", {"type": "message", "content": []}),
        ("openai_chat", {"choices": [{"message": {}}], "error": None, "base_resp": {"status_code": 0}}),
        ("openai_chat", {"choices": [5], "base_resp": 5}),
        ("openai_chat", {"choices": []}),
        ("openai_responses", {"status": "completed", "error": None, "response": {}}),
        ("openai_responses", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
        ("gemini", {"candidates": [{"finishReason": "STOP"}], "promptFeedback": {"blockReason": "SAFETY"}}),
        ("gemini", {"candidates": [{"finishReason": "MALFORMED_RESPONSE", "content": {"parts": [{"text": "x"}]}}]}),
        ("gemini", {"candidates": [5]}),
        ("gemini", {"promptFeedback": {}}),
        ("gemini", []),
        ("bedrock", {"output": {"message": {}}, "stopReason": "end_turn"}),
        ("cohere", {"message": {"role": "assistant"}, "finish_reason": "COMPLETE"}),
        ("ollama", {"message": {"role": "assistant", "content": "error"}, "done": True}),
        ("ollama", "<html>ok</html>"),
        ("ollama", b""),
        ("ollama", None),
        ("anthropic", 'event: ping\ndata: {"type":"ping"}\n\n'),
    ],
)
def test_an_answer_without_an_error_is_no_failure(protocol: str, body: Any) -> None:
    assert errors(protocol).decode(200, body) is None


def test_the_fields_of_a_failure_are_read() -> None:
    failure = decode("anthropic", 400, anthropic(INVALID, "bad", details={"error_code": "tool_name_conflict"}))
    assert (failure.code, failure.request_id, failure.rule) == (
        "tool_name_conflict",
        "req_011CS",
        "anthropic-tool-name-conflict",
    )
    failure = decode("openai_chat", 400, openai("bad", INVALID, "unknown_parameter", "foo"), {"X-Request-Id": "req_7"})
    assert (failure.code, failure.param, failure.request_id) == ("unknown_parameter", "foo", "req_7")
    violation = {"fieldViolations": [{"field": "contents[0].parts", "description": "empty"}]}
    failure = decode("gemini", 400, google(400, "INVALID_ARGUMENT", "bad", violation))
    assert (failure.code, failure.param) == ("INVALID_ARGUMENT", "contents[0].parts")
    failure = decode("openai_chat", 422, {"detail": [{"loc": ["body", "tools", 0], "msg": "no"}, {"msg": "never"}]})
    assert (failure.param, failure.message) == ("body.tools.0", "body.tools.0: no; never")
    failure = decode("cohere", 429, {"message": "slow", "id": "c-1"})
    assert failure.request_id == "c-1"
    failure = decode("openai_chat", 200, {"base_resp": {"status_code": 1008, "status_msg": "balance"}})
    assert failure.code == "1008"
    failure = decode("gemini", 200, {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "why"}})
    assert (failure.code, failure.message) == ("OTHER", "why")


@pytest.mark.parametrize("header", ["ThrottlingException", "ThrottlingException:http://internal.amazon.com/coral/"])
def test_the_exception_of_a_bedrock_error_is_in_a_header(header: str) -> None:
    failure = decode("bedrock", 429, {"message": "wait"}, {"x-amzn-ErrorType": header, "x-amzn-RequestId": "r-1"})
    assert (failure.kind, failure.code) == ("rate_limit", "ThrottlingException")
    assert bedrock.encode(failure) == (429, {"message": "wait"})
    assert bedrock.headers_of(failure) == {"x-amzn-errortype": "ThrottlingException", "x-amzn-requestid": "r-1"}
    changed = msgspec.structs.replace(failure, kind="server")
    assert bedrock.headers_of(changed)["x-amzn-errortype"] == "InternalServerException"


def test_what_may_succeed_later_is_retryable() -> None:
    retryable = {kind for kind in KINDS if Failure(kind).retryable}
    assert retryable == {"rate_limit", "overloaded", "timeout", "unreachable", "server", "bad_output"}


# --- the time to wait -------------------------------------------------------------------------------

SLOW = openai("slow down", "requests", "rate_limit_exceeded")


@pytest.mark.parametrize(
    ("protocol", "body", "headers", "seconds"),
    [
        ("openai_chat", SLOW, {"retry-after": "20"}, 20.0),
        ("openai_chat", SLOW, {"Retry-After": "1.5"}, 1.5),
        ("openai_chat", SLOW, {"retry-after": "20", "retry-after-ms": "1250"}, 1.25),
        ("openai_chat", SLOW, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ("openai_chat", SLOW, {"retry-after": "-1"}, None),
        ("openai_chat", SLOW, {"retry-after": "99999999999"}, None),
        ("openai_chat", SLOW, {"x-ratelimit-reset-requests": "1m2s", "x-ratelimit-reset-tokens": "6ms"}, 62.0),
        (
            "openai_chat",
            SLOW,
            {
                "x-ratelimit-reset-requests": "1m2s",
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-tokens": "6ms",
            },
            0.006,
        ),
        ("openai_chat", SLOW, {"x-ratelimit-reset-requests": "1760000000"}, None),
        ("openai_chat", openai("Please try again in 1.2s.", None, "rate_limit_exceeded"), {}, 1.2),
        ("openai_chat", openai("Please try again in 6m0s. Visit", None, "rate_limit_exceeded"), {}, 360.0),
        ("openai_chat", openai("Please try again in 20ms.", None, "rate_limit_exceeded"), {}, 0.02),
        ("openai_chat", openai("Please retry after 20 seconds.", None, 429), {}, 20.0),
        ("openai_chat", openai("Please try again in 20 parsecs.", None, 429), {}, None),
        ("openai_chat", openai("try again in 5s", INVALID, "insufficient_quota"), {}, None),
        ("openai_chat", {"error": {"message": "m", "retry_after": 7}}, {}, 7.0),
        ("openai_chat", {"error": {"message": "m", "retry_after": -7}}, {}, None),
        ("openai_chat", {"error": {"message": "m", "metadata": {"retry_after_seconds": 2.5}}}, {}, 2.5),
        (
            "gemini",
            google(
                429,
                "RESOURCE_EXHAUSTED",
                "Please retry in 39.2s.",
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"},
            ),
            {},
            17.0,
        ),
    ],
)
def test_the_time_to_wait_is_read_without_a_clock(
    protocol: str, body: Any, headers: dict[str, str], seconds: float | None
) -> None:
    assert decode(protocol, 429, body, headers).retry_after == seconds


def test_durations() -> None:
    assert [retry_after.duration(text) for text in ("1d", "2h", "1h2m3.5s", "0s")] == [86400.0, 7200.0, 3723.5, 0.0]
    assert [retry_after.duration(text) for text in ("", "s", "5", "1m x", "9" * 90 + "s", None, 5)] == [None] * 7


# --- bodies that are not JSON -----------------------------------------------------------------------

NGINX = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>"


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (502, NGINX, "server", "502 Bad Gateway"),
        (504, "<html><script>var x='<p>';</script><h1>Gateway &amp; Time-out</h1>", "timeout", "Gateway & Time-out"),
        (503, "<!DOCTYPE html><!-- x --><style>p{}</style><p>no healthy upstream", "overloaded", "no healthy upstream"),
        (503, "upstream connect error", "overloaded", "upstream connect error"),
        (500, b"", "server", "status 500 without a message"),
        (520, None, "server", "status 520 without a message"),
        (500, {}, "server", "status 500 without a message"),
        (0, None, "server", "status 0 without a message"),
        (301, "moved", "server", "moved"),
        (409, "conflict", "bad_request", "conflict"),
        (400, b'\xff\xfe bad \x00\x1b[31m bytes', "bad_request", "\ufffd\ufffd bad [31m bytes"),
        (400, '{"error":{"message":"prompt is too long: 9 \\u003e 8","ty', "context_overflow",
         "prompt is too long: 9 > 8"),
        (400, '{"error":{"message":"cut \\u00', "bad_request", "cut \\u00"),
        (400, "{broken", "bad_request", "{broken"),
        (500, "[[1]]", "server", "status 500 without a message"),
        (500, "[]", "server", "status 500 without a message"),
        (500, '["it broke"]', "server", "it broke"),
        (500, 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n', "overloaded",
         "status 500: overloaded_error"),
        (400, {"error": {"message": {"detail": [{"loc": ["body"], "msg": "no"}]}}}, "bad_request", "body: no"),
        (400, {"error": {"message": {"detail": {"detail": {"detail": {"msg": "deep"}}}}}}, "bad_request",
         "status 400 without a message"),
        (400, {"error": {"message": 5, "metadata": {"raw": {"error": "inner"}}}}, "bad_request", "inner"),
        (400, {"error": {"message": "outer", "metadata": {"raw": "it said no"}}}, "bad_request", "outer: it said no"),
        (400, {"errors": ["one", {"message": "two"}]}, "bad_request", "one; two"),
        (401, {"error": "invalid_grant", "error_description": "expired"}, "auth", "expired"),
    ],
)  # fmt: skip
def test_whatever_the_body_is_the_message_is_short_and_clean(
    status: int, body: Any, kind: FailureKind, message: str
) -> None:
    failure = decode("openai_chat", status, body)
    assert (failure.kind, failure.message) == (kind, message)


def test_huge_bodies_are_read_in_bounded_length() -> None:
    page = "<html>" + "<p>some words</p>" * 100_000
    assert len(decode("openai_chat", 500, page).message) <= error_bodies.PAGE_CHARACTERS
    long = openai("word " * 200_000)
    failure = decode("openai_chat", 400, long)
    assert len(failure.message) <= error_bodies.MESSAGE_CHARACTERS
    assert failure.extra is None
    deep: Any = "x"
    for _ in range(5_000):
        deep = {"error": deep}
    assert decode("openai_chat", 400, deep).kind == "bad_request"
    assert decode("openai_chat", 400, "[" * 100_000).kind == "bad_request"
    assert decode("openai_chat", 400, {"error": {"code": 10**400, "message": "m"}}).code == ""


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "<script ",
            "<!--",
            "<",
            "&lt;",
            "sk-",
            "-eyJ",
            "key=",
            "Bearer ",
            "api key: ",
            '"message":"',
            "model ",
            "1s",
        ),
        *("\\", "input token count ", "blocked by ", "try again in ", "'", "AKIA", "{", "[", "\ud800", "data: {\n"),
    ],
)
def test_hostile_bodies_take_no_more_work_than_others(piece: str) -> None:
    def read(length: int) -> None:
        text = piece * (length // len(piece))
        for body in (text, "<html>" + text, '{"error":{"message":"' + text, openai(text), openai(*[text] * 4)):
            decode("openai_chat", 400, body)

    assert is_linear(lambda length: lambda: read(length), 5_000)
    with no_hang():
        read(200_000)


# --- secrets ----------------------------------------------------------------------------------------

SECRETS = [
    "sk-abcDEF1234567890abcdef",
    "sk-proj-abc_DEF-1234567890",
    "sk-ant-api03-AbCdEf_123456-xyz",
    "sk-or-v1-0123456789abcdef",
    "sk-abcd********************wxyz",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "AQ.Ab8RN6L1234567890abcdef",
    "ya29.a0AfH6SMBx12345",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "gsk_1234567890abcdefghij",
    "xai-1234567890abcdef",
    "hf_abcdefghijklmnop",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4",
]


@protocols
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("frame", ["Incorrect API key provided: {}.", "key '{}' is wrong", "Authorization: Bearer {}"])
def test_no_secret_leaves(protocol: str, secret: str, frame: str) -> None:
    message = frame.format(secret)
    bodies: list[Any] = [
        {"message": message, "error": {"message": message, "param": message, "x": [{secret: message}]}},
        {"error": message},
        message,
        f"<html><title>{message}</title></html>",
        '{"error":{"message":"' + message + '"',
    ]
    for body in bodies:
        failure = decode(protocol, 401, body, {"x-request-id": secret})
        written = repr((failure, errors(protocol).encode(failure), errors(protocol).headers_of(failure)))
        assert secret[8:] not in written
        assert "***" in failure.message


@pytest.mark.parametrize(
    "text",
    [
        'api_key="0123456789abcdef"',
        "https://host/v1?key=0123456789abcdef&alt=sse",
        "x-api-key: 0f8fad5b-d9cb-469f-a165-70867728950e",
        "Bearer 0123456789abcdef",
    ],
)
def test_a_value_that_is_called_a_key_is_masked(text: str) -> None:
    assert "0123456789" not in mask(text)
    assert "d9cb" not in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "Invalid API key: please check your settings",
        "task-based risk-averse ask-me-anything",
        "The bearer of bad news",
        "messages.0.content: Field required",
        "key: value",
    ],
)
def test_prose_is_not_masked(text: str) -> None:
    assert mask(text) == text


@pytest.mark.law
@given(
    st.lists(st.sampled_from([*SECRETS, "Bearer ", "api key: ", "key=", " ", "'", "x1", "***"]) | texts).map("".join)
)
def test_masking_twice_is_masking_once(text: str) -> None:
    assert mask(mask(text)) == mask(text)


# --- mistakes found here ----------------------------------------------------------------------------


@protocols
def test_a_local_mistake_reaches_the_client_in_its_own_shape_with_its_path(protocol: str) -> None:
    error = InputError("expected a string, got null", path="$.messages[3].content", hint="send text")
    failure = failures.from_input_error(error)
    assert (failure.kind, failure.param, failure.status) == ("bad_request", "$.messages[3].content", None)
    status, body = errors(protocol).encode(failure)
    assert status == 400
    assert "$.messages[3].content: expected a string, got null (send text)" in json.dumps(body)
    assert decode(protocol, status, body).kind == "bad_request"


def test_a_request_over_a_limit_is_too_large() -> None:
    failure = failures.from_input_error(LimitError("larger than 64 MB"))
    assert failure.kind == "too_large"
    assert errors("anthropic").encode(failure)[0] == 413


def test_a_failure_that_was_changed_is_written_anew() -> None:
    anthropics = errors("anthropic")
    failure = decode("anthropic", 529, anthropic("overloaded_error", "Overloaded"))
    changed = msgspec.structs.replace(failure, message="Overloaded. Tried three times.")
    assert anthropics.encode(changed)[1]["error"]["message"] == "Overloaded. Tried three times."
    changed = msgspec.structs.replace(failure, kind="timeout", code="")
    assert anthropics.encode(changed) == (
        504,
        {"type": "error", "error": {"type": "timeout_error", "message": "Overloaded"}, "request_id": "req_011CS"},
    )


# --- laws -------------------------------------------------------------------------------------------

words = st.sampled_from([*PHRASES.values(), "messages.1.id", "", "try again in 3s", "a\nb"])
messages = st.lists(words | texts, max_size=4).map(" ".join)
codes = st.none() | st.integers(-5, 700) | texts | st.sampled_from(" ".join(CODES.values()).split())
error_objects = st.fixed_dictionaries(
    {}, optional={"message": messages, "type": codes, "code": codes, "param": codes, "details": json_values}
)
error_bodies_ = st.one_of(
    st.builds(lambda error, rest: {**rest, "error": error}, error_objects | messages, json_objects),
    st.builds(lambda error, rest: {**error, **rest}, error_objects, json_objects),
    st.builds(lambda error: {"type": "error", "error": error}, error_objects),
    st.builds(lambda error: {"throttlingException": error}, error_objects),
    st.builds(lambda error: {"choices": [{"error": error}]}, error_objects),
    st.builds(lambda error: {"base_resp": error}, error_objects),
    json_objects,
)
statuses = st.sampled_from([200, 400, 401, 402, 403, 404, 408, 413, 422, 424, 429, 500, 502, 503, 504, 529])


@pytest.mark.law
@protocols
@given(status=statuses | st.integers(300, 599), body=error_bodies_)
def test_law_3_a_native_error_stays_as_it_was(protocol: str, status: int, body: dict[str, Any]) -> None:
    before = json.dumps(body)
    failure = errors(protocol).decode(status, body)
    if failure is None:
        assert status == 200
        return
    assert same_json(errors(protocol).encode(failure), (status, error_bodies.mask_document(body)))
    assert json.dumps(body) == before
    stored = msgspec.json.decode(msgspec.json.encode(failure), type=Failure)
    assert same_json(errors(protocol).encode(stored), (status, error_bodies.mask_document(body)))


failures_made = st.builds(
    Failure,
    st.sampled_from(KINDS),
    messages,
    retry_after=st.none() | st.integers(0, 10**7).map(lambda ms: ms / 1000),
    request_id=st.sampled_from(["", "req_1"]),
    param=st.sampled_from(["", "$.messages[0]"]),
)


@pytest.mark.law
@protocols
@given(failure=failures_made)
@example(failure=Failure("server", "prompt is too long: overloaded rate limit"))
@example(failure=Failure("bad_request", "x" * 5000 + "credit balance is too low"))
@example(failure=Failure("context_overflow", "y" * 5000))
def test_every_failure_is_understood_in_every_protocol(protocol: str, failure: Failure) -> None:
    module = errors(protocol)
    status, body = module.encode(failure)
    again = decode(protocol, status, json.dumps(body), module.headers_of(failure))
    assert again.kind == failure.kind
    assert again.retryable is failure.retryable
    if failure.retry_after is not None or not failure.retryable:
        assert again.retry_after == failure.retry_after
    if failure.request_id:
        assert again.request_id == failure.request_id


junk = (
    st.binary(max_size=60)
    | st.text(max_size=60)
    | json_values
    | json_values.map(json.dumps)
    | error_bodies_.map(lambda body: json.dumps(body)[:-3])
    | st.dictionaries(
        st.sampled_from(
            [
                *("error", "type", "candidates", "choices", "promptFeedback", "base_resp", "response", "status"),
                *("success", "message", "delta", "detail", "details", "code", "xException", "__type", "metadata"),
                "finishReason",
            ]
        ),
        st.recursive(
            json_values,
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(
                        ["error", "raw", "code", "blockReason", "fieldViolations", "loc", "content", "message"]
                    )
                    | st.sampled_from(["status_code", "finishReason", "metadata", "details", "retryDelay", "parts"]),
                    inner,
                    max_size=3,
                )
            ),
        ),
        max_size=3,
    )
)


@pytest.mark.law
@protocols
@given(status=st.integers(-5, 10**6) | statuses, body=junk, headers=st.dictionaries(texts, texts, max_size=3))
def test_law_8_no_answer_however_broken_raises(protocol: str, status: int, body: Any, headers: dict[str, str]) -> None:
    failure = errors(protocol).decode(status, body, headers)
    if failure is None:
        assert 200 <= status <= 299
        return
    assert failure.message
    assert len(failure.message) <= error_bodies.MESSAGE_CHARACTERS
    assert failure.message.isprintable() or not failure.message.isascii()
    for other in PROTOCOLS:
        json.dumps(errors(other).encode(failure)).encode()


def test_every_kind_has_its_words_and_no_code_means_two_kinds() -> None:
    for kind, phrase in PHRASES.items():
        assert kind_of(None, (), phrase) == kind
    named = [code for table in (CODES, VAGUE_CODES) for codes_ in table.values() for code in codes_.split()]
    assert len(named) == len(set(named))
    for protocol in PROTOCOLS:
        spellings = errors(protocol).SHAPE.spellings
        assert set(spellings) == set(KINDS)
        for kind, spelling in spellings.items():
            assert not spelling.phrase or kind_of(None, (), spelling.phrase) == kind


def test_headers_that_are_not_text_are_left_out() -> None:
    strange: Any = {1: 2, "retry-after": b"5", "x-request-id": "r"}
    failure = decode("openai_chat", 500, "x", strange)
    assert (failure.retry_after, failure.request_id) == (None, "r")
    assert errors("openai_chat").headers_of(Failure("server", request_id="ü", retry_after=float("inf"))) == {}
    assert errors("openai_chat").headers_of(Failure("billing", retry_after=2.0)) == {
        "retry-after": "2",
        "retry-after-ms": "2000",
        "x-should-retry": "false",
    }
