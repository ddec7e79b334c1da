"""The rules of retries and failover, which gateway and sessions share."""

from __future__ import annotations

import pytest

from toolglot.conversation import Failure, FailureKind
from toolglot.upstream.failover import failover_entry, may_fail_over
from toolglot.upstream.retry import FIRST_WAIT, REPEATABLE, Retries, backoff, is_opaque_refused

BUSY = Failure("overloaded", "busy", 529)
REFUSED = Failure("bad_request", "messages.1.content.0: Invalid `signature` in `thinking` block", 400)
WRONG = Failure("bad_request", "tools.0.name: too long", 400)


def test_a_busy_provider_gets_the_same_request_as_often_as_allowed() -> None:
    retries = Retries(2, 30.0)
    for most in (FIRST_WAIT, 2 * FIRST_WAIT):
        wait = retries.wait(BUSY)
        assert wait is not None
        assert most / 2 <= wait <= most
    assert retries.wait(BUSY) is None


def test_without_retries_nothing_is_sent_again() -> None:
    assert Retries(0, 30.0).wait(BUSY) is None


def test_a_provider_that_wants_a_longer_wait_has_failed() -> None:
    assert Retries(1, 8.0).wait(Failure("rate_limit", retry_after=8.0)) == 8.0
    assert Retries(1, 8.0).wait(Failure("rate_limit", retry_after=8.1)) is None


def test_a_request_that_was_refused_is_not_sent_again_unchanged() -> None:
    retries = Retries(9, 30.0)
    retries.add(BUSY, b"same")
    assert not retries.was_refused(b"same")
    retries.add(WRONG, b"same")
    assert retries.was_refused(b"same")
    assert not retries.was_refused(b"other")
    assert retries.wait(WRONG) is None


def test_refused_signatures_are_left_out_once_and_count_as_no_retry() -> None:
    retries = Retries(1, 30.0)
    assert not retries.may_strip(WRONG)
    assert retries.may_strip(REFUSED)
    assert not retries.may_strip(REFUSED)
    assert retries.wait(BUSY) is not None


def test_a_conversation_that_is_too_long_is_shortened_once() -> None:
    retries = Retries(1, 30.0)
    assert not retries.may_shorten(BUSY)
    assert retries.may_shorten(Failure("context_overflow", "too long", 400))
    assert not retries.may_shorten(Failure("context_overflow", "too long", 400))


@pytest.mark.parametrize(
    ("failure", "is_refused"),
    [
        (REFUSED, True),
        (Failure("not_found", "Item with id 'rs_1' not found.", 404), True),
        (Failure("bad_request", "Encrypted content could not be verified", 400), True),
        (Failure("bad_request", "no", 400, code="invalid_encrypted_content"), True),
        (Failure("server", "signature", 500), False),
        (WRONG, False),
    ],
)
def test_how_providers_refuse_what_they_do_not_recognise(failure: Failure, is_refused: bool) -> None:
    assert is_opaque_refused(failure) == is_refused


def test_the_backoff_doubles_and_the_providers_own_wait_counts_first() -> None:
    assert [backoff(None, retry) for retry in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert backoff(None, 1, first=2.0) == 2.0
    assert backoff(None, 1, jitter=0.0) == 0.25
    assert backoff(7.0, 3) == 7.0


def test_a_post_is_not_repeatable() -> None:
    assert "POST" not in REPEATABLE
    assert "GET" in REPEATABLE


@pytest.mark.parametrize("kind", ["auth", "billing", "overloaded", "bad_request", "content_filter"])
def test_only_what_a_filter_refused_is_not_sent_to_another_upstream(kind: FailureKind) -> None:
    assert may_fail_over(Failure(kind)) == (kind != "content_filter")


def test_a_switch_is_reported() -> None:
    entry = failover_entry("a", "b/m", "timeout", "b")
    assert (entry.action, entry.target) == ("replaced", "b")
    assert entry.reason == "a did not answer (timeout); b/m was called instead"
