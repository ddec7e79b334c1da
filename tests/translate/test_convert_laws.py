"""The laws of conversion, on the JSON of clients to which something happened, from every protocol to every target."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from support.conversations.broken_conversations import TARGETS
from support.law_examples import MANY
from support.translate.broken_bodies import Fields, broken_bodies, words_of
from support.translate.conversion_checks import Target, assert_accepted
from toolglot import InputError, RefusedError, convert, lint

pytestmark = pytest.mark.law

targets = st.sampled_from(TARGETS)


@MANY
@given(broken_bodies(), targets)
def test_laws_1_and_2_the_target_accepts_every_broken_body_and_nothing_is_lost(
    example: tuple[str, Fields], target: Target
) -> None:
    source, body = example
    data = msgspec.json.encode(body)
    try:
        out = convert(data, source=source, target=target[0], model=target[1])
    except RefusedError as refused:
        event(f"refused: {type(refused).__name__}")
        return
    assert_accepted(out, target)
    assert words_of(data.decode()) <= words_of(out.data.decode()), str(out.report)


@MANY
@given(broken_bodies(damaged=True), targets)
def test_a_malformed_body_is_converted_or_refused_with_its_path(example: tuple[str, Fields], target: Target) -> None:
    source, body = example
    path = "$"
    try:
        lint(convert(msgspec.json.encode(body), source=source, target=target[0], model=target[1]).body, *target)
    except RefusedError as refused:
        event(f"refused: {type(refused).__name__}")
    except InputError as refused:
        path = refused.path
    assert path.startswith("$")
