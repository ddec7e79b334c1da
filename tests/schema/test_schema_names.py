"""Names of tools for a target, and which tools it gets: E4, E5, E7."""

from __future__ import annotations

import hashlib
import itertools
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import InputError, ProfileError, profiles
from toolglot.profiles import Overrides, Profile
from toolglot.schema import Chosen, NameMap, Rename, choose_tools
from toolglot.schema.names import Digest

TARGETS = profiles.names()
NASTY = (
    *("a.b/c", "foo/bar", "foo_bar", "foo_bar_2", "foo-bar", "foo bar", "7zip", "-x", "_", "__", "", " ", "\t", "\n"),
    *("x" * 65, "x" * 64 + "y", "x" * 129, "x" * 10_000, "x" * 10_001, "🌦", "get_🌦_weather", "日本語", "\ud83d"),
    *("\ud83d\ude00", "😀", "a" * 64, "a" * 63 + "\n", "read\x00file", "Read", "read", "mcp__srv__tool", "a\n"),
)
any_name = st.sampled_from(NASTY) | st.text(st.characters(), max_size=80)


def made(rules: str) -> Profile:
    return profiles.get("own", overrides=Overrides(f"[profiles.own.rules]\n{rules}"))


def mapped(names: list[str], target: str = "openai") -> list[str]:
    found = NameMap(profiles.get(target), names)
    return [found[name] for name in names]


# --- legal names, and readable ones instead of others -----------------------------------------------


def test_E4_legal_names_keep_theirs() -> None:
    names = ["get_weather", "Read", "mcp__server__tool-2", "7zip", "x" * 64]
    found = NameMap(profiles.get("openai"), names)
    assert [found[name] for name in names] == names
    assert found.renamed == ()


@pytest.mark.parametrize(
    ("name", "target", "looks_like"),
    [
        ("a.b/c", "openai", r"a_b_c_[a-z]{8}"),
        ("a.b.c", "gemini", r"a\.b\.c"),
        ("x" * 65, "openai", r"x{55}_[a-z]{8}"),
        ("x" * 10_000, "anthropic", r"x{119}_[a-z]{8}"),
        ("get_🌦_weather", "openai", r"get___weather_[a-z]{8}"),
        ("日本語", "openai", r"tool_[a-z]{8}"),
        ("7zip", "gemini", r"tool_7zip_[a-z]{8}"),
        ("_x", "kimi", r"x_[a-z]{8}"),
        ("get-weather", "cohere", r"get_weather_[a-z]{8}"),
        ("", "openai", r"tool_[a-z]{8}"),
        (" ", "openai", r"tool_[a-z]{8}"),
        ("\ud83d", "ollama", r"tool_[a-z]{8}"),
    ],
)
def test_E4_an_illegal_name_becomes_a_readable_legal_one(name: str, target: str, looks_like: str) -> None:
    emitted = mapped([name], target)[0]
    assert re.fullmatch(looks_like, emitted), emitted


@pytest.mark.parametrize("target", TARGETS)
def test_E4_the_nasty_ones_are_legal_distinct_and_come_back(target: str) -> None:
    profile = profiles.get(target)
    found = NameMap(profile, NASTY)
    emitted = [found[name] for name in NASTY]
    assert len(set(emitted)) == len(NASTY) == len(found)
    for name, out in zip(NASTY, emitted, strict=True):
        assert re.fullmatch(profile.names.pattern, out), out
        assert len(out) <= profile.names.max_length
        assert out.encode()
        assert found.original(out) == name
        assert name in found


def test_E4_a_renamed_tool_is_reported_with_the_rule() -> None:
    found = NameMap(profiles.get("openai"), ["a.b", "ok", "x" * 65, "\ud83d"])
    assert found.renamed == (
        Rename("a.b", found["a.b"], "does not match [A-Za-z0-9_-]+ (openai-name-charset)"),
        Rename("x" * 65, found["x" * 65], "longer than 64 characters (openai-name-length)"),
        Rename("\ud83d", found["\ud83d"], "half a character, which no request can hold"),
    )


def test_E4_a_name_that_the_map_did_not_give_comes_back_as_it_is() -> None:
    found = NameMap(profiles.get("openai"), ["a.b"])
    assert found.original("made_up") == "made_up"
    assert found.original("a.b") == "a.b"
    assert "made_up" not in found
    with pytest.raises(KeyError):
        found["made_up"]


# --- collisions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", list(itertools.permutations(["foo/bar", "foo_bar", "foo_bar_2"])))
def test_E5_valid_names_are_reserved_first_in_every_order(names: tuple[str, ...]) -> None:
    found = NameMap(profiles.get("openai"), names)
    assert found["foo_bar"] == "foo_bar"
    assert found["foo_bar_2"] == "foo_bar_2"
    assert found["foo/bar"] == NameMap(profiles.get("openai"), ["foo/bar"])["foo/bar"]
    assert len({found[name] for name in names}) == 3


def test_E5_a_name_that_comes_twice_is_one_tool() -> None:
    found = NameMap(profiles.get("openai"), ["a.b", "read", "a.b", "read"])
    assert len(found) == 2
    assert [rename.original for rename in found.renamed] == ["a.b"]


def test_E5_only_a_collision_makes_the_mark_longer() -> None:
    alone = mapped(["a.b"])[0]
    found = NameMap(profiles.get("openai"), ["a.b", alone])
    assert found[alone] == alone
    assert found["a.b"].startswith(alone)
    assert len(found["a.b"]) == len(alone) + 8
    longer = found["a.b"]
    third = NameMap(profiles.get("openai"), ["a.b", alone, longer])
    assert len({third[name] for name in ("a.b", alone, longer)}) == 3
    assert third["a.b"].startswith(alone)


def weak(bits: int) -> Digest:
    return lambda data: (int.from_bytes(hashlib.sha256(data).digest()[:8], "big") % (1 << bits)).to_bytes(8, "big")


@pytest.mark.parametrize("digest", [weak(14), weak(8), lambda _: b"\x00"], ids=["14 bits", "8 bits", "constant"])
@pytest.mark.parametrize("name", ["tool.number", "x" * 60 + "/{n}/" + "y" * 60, "{n}" + "z" * 70])
def test_E5_ten_thousand_names_of_a_weak_hash_stay_distinct_and_stable(name: str, digest: Digest) -> None:
    names = [f"{name.replace('{n}', str(n))}/{n}" for n in range(10_000)]
    profile = profiles.get("openai")
    whole = NameMap(profile, names, digest=digest)
    emitted = [whole[name] for name in names]
    assert len(set(emitted)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", out) for out in emitted)
    part = NameMap(profile, names[:5_000], digest=digest)
    assert [part[name] for name in names[:5_000]] == emitted[:5_000]


# --- odd profiles -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "looks_like"),
    [
        ('"names.pattern" = "[a-z_]+"', r"do_it_now_[a-z]{8}"),
        ('"names.pattern" = "[a-z]+"', r"tool[a-z]{8}"),
        ('"names.pattern" = "[a-z]{8}"', r"[a-z]{8}"),
        ('"names.pattern" = "[a-z]{16}"', r"[a-z]{16}"),
        ('"names.max_length" = 12', r"Now_[a-z]{8}"),
        ('"names.max_length" = 9', r"[a-z]{8}"),
        ('"names.max_length" = 3', r"[a-z]{3}"),
    ],
)
def test_a_narrow_profile_gets_ever_plainer_names(rules: str, looks_like: str) -> None:
    assert re.fullmatch(looks_like, NameMap(made(rules), ["Do-it.Now"])["Do-it.Now"])


@pytest.mark.parametrize("pattern", ["[0-9]+", "[A-Z]+", "(?!)"])
def test_a_profile_whose_pattern_no_name_can_meet_is_an_error(pattern: str) -> None:
    with pytest.raises(ProfileError, match=r"own: names.pattern: no free name of at most 64 characters matches"):
        NameMap(made(f'"names.pattern" = "{pattern}"'), ["a.b"])


def test_a_profile_with_too_few_names_is_an_error() -> None:
    one_letter = made('"names.max_length" = 1')
    names = [f"tool/{n}" for n in range(21)]
    found = NameMap(one_letter, names[:20])
    assert len({found[name] for name in names[:20]}) == 20
    with pytest.raises(ProfileError, match="no free name"):
        NameMap(one_letter, names)


def test_a_pattern_that_only_some_marks_meet_is_met_or_refused_in_bounded_time() -> None:
    rare = made('"names.pattern" = "[bc]zzzzzzz"\n"names.max_length" = 8')
    constant: Digest = lambda _: (20**8 - 20**1).to_bytes(8, "big")  # noqa: E731
    assert NameMap(rare, ["a.b"], digest=constant)["a.b"] == "bzzzzzzz"
    with pytest.raises(ProfileError, match="no free name"):
        NameMap(rare, ["a.b", "a.c"], digest=constant)


# --- laws -------------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.sampled_from(TARGETS), st.lists(any_name, max_size=12), st.data())
def test_E5_names_are_injective_reversible_and_prefix_stable(
    target: str, names: list[str], data: st.DataObject
) -> None:
    profile = profiles.get(target)
    whole = NameMap(profile, names)
    emitted = {name: whole[name] for name in names}
    assert len(set(emitted.values())) == len(emitted)
    assert all(whole.original(out) == name for name, out in emitted.items())
    assert all(re.fullmatch(profile.names.pattern, out) for out in emitted.values())
    assert {rename.original: rename.emitted for rename in whole.renamed} == {
        name: out for name, out in emitted.items() if name != out
    }
    part = NameMap(profile, data.draw(st.permutations(names))[: data.draw(st.integers(0, len(names)))])
    assert all(part[name] == out for name, out in emitted.items() if name in part)


@pytest.mark.law
@given(st.sampled_from(TARGETS), st.lists(any_name, max_size=12))
def test_E4_names_that_were_emitted_are_legal_and_stay(target: str, names: list[str]) -> None:
    profile = profiles.get(target)
    first = NameMap(profile, names)
    emitted = [first[name] for name in names]
    assert NameMap(profile, emitted).renamed == ()


def test_law_4_names_are_the_same_in_every_process() -> None:
    code = (
        "from toolglot import profiles\n"
        "from toolglot.schema import NameMap\n"
        "m = NameMap(profiles.get('openai'), ['a.b/c', 'x' * 65])\n"
        "print([m[n] for n in ('a.b/c', 'x' * 65)])"
    )
    outs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": s}).stdout
        for s in ("1", "2")
    }
    assert len(outs) == 1


# --- too many tools ---------------------------------------------------------------------------------

MANY = [f"tool_{n}" for n in range(1, 143)]


def test_E7_142_tools_become_128_and_the_one_used_stays() -> None:
    chosen = choose_tools(MANY, ["tool_140"], profiles.get("openai"))
    assert chosen.kept == (*MANY[:127], "tool_140")
    assert chosen.dropped == (*MANY[127:139], "tool_141", "tool_142")


def test_E7_the_order_of_the_request_is_kept() -> None:
    chosen = choose_tools(MANY, ["tool_142", "tool_2", "tool_130", "gone", "tool_130"], profiles.get("openai"))
    assert len(chosen.kept) == 128
    assert [*chosen.kept] == [name for name in MANY if name in chosen.kept]
    assert {"tool_142", "tool_2", "tool_130"} <= set(chosen.kept)


def test_E7_where_even_the_used_ones_are_too_many_the_first_named_stay() -> None:
    two = made('"tools.max_count" = 2')
    assert choose_tools(["a", "b", "c"], ["c", "b", "a"], two) == Chosen(("b", "c"), ("a",))
    assert choose_tools(["a"], ["a"], made('"tools.max_count" = 0')) == Chosen((), ("a",))


@pytest.mark.parametrize("target", ["openai", "anthropic"])
def test_E7_nothing_is_dropped_within_the_limit(target: str) -> None:
    few = ["b", "a", "b"]
    assert choose_tools(few, [], profiles.get(target)) == Chosen(("b", "a"), ())


def test_E7_no_limit_keeps_all() -> None:
    assert choose_tools(MANY, [], profiles.get("anthropic")) == Chosen(tuple(MANY), ())


@pytest.mark.law
@given(st.lists(st.integers(0, 20).map(str)), st.lists(st.integers(0, 20).map(str)), st.integers(0, 12))
def test_E7_the_choice_is_whole_ordered_and_keeps_what_is_used(names: list[str], used: list[str], limit: int) -> None:
    chosen = choose_tools(names, used, made(f'"tools.max_count" = {limit}'))
    distinct = list(dict.fromkeys(names))
    assert sorted(chosen.kept + chosen.dropped) == sorted(distinct)
    assert [*chosen.kept] == [name for name in distinct if name in chosen.kept]
    assert len(chosen.kept) == min(limit, len(distinct))
    needed = set(used) & set(distinct)
    assert needed <= set(chosen.kept) or set(chosen.kept) <= needed


# --- bad input --------------------------------------------------------------------------------------


def test_a_map_needs_a_profile_and_names_in_order() -> None:
    openai = profiles.get("openai")
    with pytest.raises(InputError, match=r"profile: expected a Profile, got 'openai' \(profiles.get"):
        NameMap("openai", [])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="names: expected a list of names, got 'read'"):
        NameMap(openai, "read")
    with pytest.raises(InputError, match=r"names\[1\]: expected a name, got 7"):
        NameMap(openai, ["a", 7])  # type: ignore[list-item]
    with pytest.raises(InputError, match="used: expected a list of names, got a set"):
        choose_tools(["a"], {"a"}, openai)  # type: ignore[arg-type]
