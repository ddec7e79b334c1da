"""Canonical ids: R-001-1 to -3, -13, -14, -16 and their traps."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolglot import InputError
from toolglot.conversation import ids
from toolglot.profiles import resolve

FIELDS = st.tuples(
    st.sampled_from(["openai", "anthropic", "my-own", "a|b"]),
    st.none() | st.text(max_size=20),
    st.none() | st.text(max_size=10),
    st.text(max_size=10),
    st.integers(0, 50),
)
Fields = tuple[str, str | None, str | None, str, int]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("openai", "call_abc123", "read_file", "turn-1", 0), "hist_tool_CwGJ-4bjB1AzwiitK9edpV3i"),
        (("kimi", "functions.read_file:0", "read_file", "turn-1", 0), "hist_tool_xkuKqz1RTKmW2pD7Ehc3SzTX"),
        (("openai", None, "read_file", "turn-1", 0), "hist_tool_6TdFyzuFIMQyVFA8ZKwgSzkr"),
        (("openai", "call_x|fc_y", "read_file", "turn-1", 0), "hist_tool_8jK_FmySvxL9WYG-GDmqE_8d"),
    ],
)
def test_R_001_1_golden_ids(fields: Fields, expected: str) -> None:
    assert ids.canonical(*fields) == expected


def test_canonical_takes_its_fields_by_name() -> None:
    by_name = ids.canonical(
        provider="openai", raw_id="call_abc123", tool_name="read_file", turn_key="turn-1", call_index=0
    )
    assert by_name == "hist_tool_CwGJ-4bjB1AzwiitK9edpV3i"


@pytest.mark.law
@given(FIELDS)
def test_R_001_1_the_formula_of_the_seed_where_no_field_holds_a_bar(fields: Fields) -> None:
    written = [resolve(fields[0]), fields[1] or "", fields[2] or "", fields[3], str(fields[4])]
    assume(not any("|" in field for field in written))
    digest = hashlib.sha256("|".join(written).encode()).digest()
    assert ids.mint(*fields) == "hist_tool_" + base64.urlsafe_b64encode(digest).decode()[:24]


@pytest.mark.law
@given(FIELDS)
def test_R_001_2_charset_and_length(fields: Fields) -> None:
    assert re.fullmatch(r"hist_tool_[A-Za-z0-9_-]{24}", ids.mint(*fields))


@pytest.mark.law
@given(FIELDS, FIELDS)
def test_R_001_3_equal_fields_equal_ids_and_different_fields_different_ids(one: Fields, other: Fields) -> None:
    def written(fields: Fields) -> tuple[object, ...]:
        return (resolve(fields[0]), fields[1] or "", fields[2] or "", *fields[3:])

    assert (ids.mint(*one) == ids.mint(*other)) == (written(one) == written(other))


def test_R_001_T1_fields_that_hold_a_bar_never_meet() -> None:
    assert ids.canonical("a", "b|c", "d", "t", 0) != ids.canonical("a", "b", "c|d", "t", 0)
    assert ids.canonical("a", "", "|", "t", 0) != ids.canonical("a", "|", "", "t", 0)


def test_R_001_13_a_missing_raw_id_is_an_empty_field() -> None:
    assert ids.canonical("openai", None, "f", "t", 0) == ids.canonical("openai", "", "f", "t", 0)
    assert ids.canonical("openai", None, "f", "t", 0) != ids.canonical("openai", None, "f", "t", 1)


def test_R_001_14_a_missing_tool_name_is_an_empty_field_and_the_index_distinguishes_calls() -> None:
    assert ids.canonical("openai", None, None, "t", 0) == ids.canonical("openai", "", "", "t", 0)
    assert ids.canonical("openai", None, None, "t", 0) != ids.canonical("openai", None, None, "t", 1)


@pytest.mark.law
@given(FIELDS, st.from_regex(r"hist_tool_[A-Za-z0-9_-]{1,32}", fullmatch=True))
def test_R_001_16_a_canonical_id_is_kept(fields: Fields, known: str) -> None:
    provider, _, *rest = fields
    assert ids.canonical(provider, known, *rest) == known  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "legacy",
    ["hist_tool_", "hist_tool_functions.read:0", "hist_tool_" + "a" * 33, "hist_tool_a\n", "hist_tool_ä"],
)
def test_R_001_T2_a_legacy_history_id_is_made_canonical(legacy: str) -> None:
    assert not ids.is_canonical(legacy)
    assert ids.is_canonical(ids.canonical("openai", legacy, "f", "t", 0))


def test_R_001_18_ids_are_the_same_in_every_process() -> None:
    code = "from toolglot import ids; print(ids.canonical('openai', None, 'f', 'ä', 3))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
            text=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert seen == {ids.canonical("openai", None, "f", "ä", 3)}


def test_the_hash_uses_the_resolved_name_of_the_provider() -> None:
    assert ids.canonical("google", "x", "f", "t", 0) == ids.canonical("gemini", "x", "f", "t", 0)
    assert ids.canonical("OpenAI-Chat", "x", "f", "t", 0) == ids.canonical("openai", "x", "f", "t", 0)
    assert ids.canonical("box-a", "x", "f", "t", 0) != ids.canonical("box_a", "x", "f", "t", 0)


def test_a_numeric_raw_id_is_its_text() -> None:
    assert ids.canonical("openai", 7, "f", "t", 0) == ids.canonical("openai", "7", "f", "t", 0)


def test_lone_surrogates_do_not_crash_and_differ() -> None:
    made = {ids.canonical("openai", raw, "f|", "t", 0) for raw in ("\ud83d", "\ud83e", "?")}
    assert len(made) == 3
    assert ids.canonical("openai", "\ud83d", "f", "t", 0) != ids.canonical("openai", "\ufffd", "f", "t", 0)


@pytest.mark.parametrize("provider", ["", "  "])
def test_the_provider_is_never_empty(provider: str) -> None:
    with pytest.raises(InputError, match="provider: expected the provider"):
        ids.canonical(provider, "x", "f", "t", 0)


@pytest.mark.parametrize("index", [-1, True, 1.0, None, "0"])
def test_the_call_index_is_required_and_a_whole_number(index: int) -> None:
    with pytest.raises(InputError, match="call_index: expected a whole number"):
        ids.canonical("openai", "x", "f", "t", index)
