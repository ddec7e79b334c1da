"""aiohttp keeps the same law as the client of our own: what that one does not do goes through it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import test_upstream_http as http_tests

from support.upstream.raw_server import STREAM
from toolglot.upstream.http.aiohttp_transport import AiohttpTransport

LAWS: list[Callable[[], None]] = [
    http_tests.test_a_refused_connection_is_a_provider_that_cannot_be_reached,
    http_tests.test_a_host_that_is_not_known_is_reported_as_such,
    http_tests.test_a_connection_that_does_not_come_about_is_a_timeout,
    http_tests.test_a_server_that_takes_no_bytes_is_a_timeout,
    http_tests.test_a_connection_that_ends_without_an_answer_is_reported_as_such,
    http_tests.test_a_reset_in_the_middle_is_reported_as_such,
    http_tests.test_large_headers_are_taken_up_to_a_bound,
    http_tests.test_a_compressed_body_is_decompressed,
    http_tests.test_what_only_claims_to_be_compressed_is_an_answer_that_broke_off,
    http_tests.test_cookies_are_not_kept,
    http_tests.test_an_address_goes_out_as_it_was_written,
    http_tests.test_two_requests_use_one_connection,
    http_tests.test_closing_an_unread_stream_ends_the_connection_at_once,
    http_tests.test_closing_an_unread_stream_ends_a_tls_connection_at_once,
    http_tests.test_a_server_without_tls_is_reported_as_such,
    http_tests.test_a_proxy_of_the_environment_carries_http_and_https,
    http_tests.test_a_proxy_that_refuses_or_is_not_there_is_reported_without_its_password,
]


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_tests, "HttpTransport", AiohttpTransport)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("test_"))
def test_the_library_keeps_the_law(law: Callable[[], None]) -> None:
    law()


@pytest.mark.parametrize("body", [STREAM + b"zz\r\nfirst", STREAM + b"5\r\nfir"])
def test_a_damaged_body_breaks_off(body: bytes) -> None:
    http_tests.test_a_damaged_body_is_an_answer_that_broke_off(body)


@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"x" * 200_000])
def test_what_is_not_http_is_reported(data: bytes) -> None:
    http_tests.test_what_is_not_http_or_too_large_is_reported_without_its_words(data)


@pytest.mark.parametrize(("host", "words"), [("127.0.0.1", "self-signed|issuer"), ("other.example", "mismatch")])
def test_a_certificate_is_checked(host: str, words: str) -> None:
    http_tests.test_a_certificate_that_is_not_trusted_is_reported_with_its_reason(host, words)
