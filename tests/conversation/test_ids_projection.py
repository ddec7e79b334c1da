"""Projection of canonical ids into a target's style: R-001-8 to -12, -19, R-004-6, -13 to -15, B1 to B9."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from toolglot import History, InputError, Issuer, ProfileError, ToolCall, ToolMetadata, Turn, profiles
from toolglot.conversation import ids

TARGETS = profiles.names()
SUFFIX = "CwGJ-4bjB1AzwiitK9edpV3i"
CANONICAL = "hist_tool_" + SUFFIX
NASTY = (
    *("", " ", "\t", "7", "call_0", "call_0 ", "toolu_a", "call_a", "fc_a", "hist_tool_a", "a", "a:b", "a.b"),
    *("functions.x:0", "functions.x:1", "call_x|fc_y", "call_abc__thought__c2lnbmF0dXJl", "call_", "\ud83d"),
    *("x" * 450, "x" * 449 + "y", "call_" + "z" * 60, "call_" + "z" * 59 + "Z", "Ab3dE6gH9", "日本語"),
)
POLICIES: tuple[ids.Policy, ...] = ("reversible", "canonical")


def call(
    id: str = CANONICAL,
    *,
    raw: str | None = None,
    provider: str = "unheard_of",
    name: str = "read_file",
    ordinal: int | None = None,
) -> ToolCall:
    return ToolCall(id, name, metadata=ToolMetadata(raw_id=raw, issuer=Issuer(provider), ordinal=ordinal))


def calls_with(raw_ids: tuple[str, ...], provider: str) -> tuple[ToolCall, ...]:
    history = History(provider=provider)
    for raw in raw_ids:
        history.append(Turn("assistant", (ToolCall(raw, "read_file"),)))
    return tuple(call for turn in history.turns for call in turn.calls)


def projected(target: str, *, model: str = "", policy: ids.Policy = "canonical") -> ids.Projection:
    return ids.Projection(profiles.get(target, model), policy=policy)


def test_R_001_8_openai_is_call_and_the_suffix() -> None:
    assert projected("openai").add(call()) == "call_" + SUFFIX


def test_R_001_9_responses_is_call_and_the_suffix_by_default() -> None:
    assert projected("openai_responses").add(call()) == "call_" + SUFFIX
    clasp = ids.Projection(profiles.get("openai_responses"), policy="canonical", prefix="fc_")
    assert clasp.add(call()) == "fc_" + SUFFIX


def test_R_001_10_anthropic_is_toolu_and_the_suffix() -> None:
    assert projected("anthropic").add(call()) == "toolu_" + SUFFIX


def test_R_001_11_R_004_13_kimi_counts_calls_over_the_conversation() -> None:
    projection = projected("kimi", model="kimi-k2-0905-preview")
    made = [projection.add(made) for made in calls_with(("call_a", "call_b", "call_c"), "glm")]
    assert made == ["functions.read_file:0", "functions.read_file:1", "functions.read_file:2"]


def test_R_001_11_other_kimi_models_take_plain_ids() -> None:
    assert projected("kimi", model="kimi-k3").add(call()).endswith(SUFFIX)


@pytest.mark.parametrize("model", ["", "mistral-large-latest", "voxtral-small"])
def test_R_001_12_R_004_14_mistral_is_nine_alphanumerics(model: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9]{9}", projected("mistral", model=model).add(call()))


def weak(bits: int) -> ids.Digest:
    return lambda data: (int.from_bytes(hashlib.sha256(data).digest()[:8], "big") % (1 << bits)).to_bytes(8, "big")


@pytest.mark.parametrize("digest", [weak(14), weak(8), lambda _: b"\x00"], ids=["14 bits", "8 bits", "constant"])
@pytest.mark.parametrize("target", ["mistral", "openai"])
def test_R_001_12_ten_thousand_ids_of_a_weak_hash_stay_distinct_and_stable(target: str, digest: ids.Digest) -> None:
    def run() -> list[str]:
        projection = ids.Projection(profiles.get(target), digest=digest)
        long = "hist_tool_" + "legacy" * 8
        return [projection.add(call(f"{long}{n}")) for n in range(10_000)]

    made = run()
    assert len(set(made)) == 10_000
    assert made == run()
    legal = re.compile(profiles.get(target).ids.pattern)
    assert all(legal.fullmatch(id) for id in made)


def test_B3_a_thousand_ids_with_the_same_nine_first_characters() -> None:
    projection = projected("mistral", policy="reversible")
    made = {projection.add(made) for made in calls_with(tuple(f"chatcmpl-{n}" for n in range(1000)), "vllm")}
    assert len(made) == 1000


def test_R_001_19_kimi_to_anthropic_gives_safe_ids() -> None:
    for policy in POLICIES:
        projection = projected("anthropic", policy=policy)
        for made in calls_with(("functions.read_file:0", "functions.read_file:1"), "kimi"):
            assert re.fullmatch(r"toolu_[A-Za-z0-9_-]{24}", projection.add(made))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("provider", ["openai", "kimi", "gemini"])
@pytest.mark.parametrize("target", TARGETS)
def test_B1_B2_B7_B9_nasty_ids_come_out_legal_and_distinct(target: str, provider: str, policy: ids.Policy) -> None:
    profile = profiles.get(target)
    projection = ids.Projection(profile, policy=policy)
    made = [projection.add(made) for made in calls_with(NASTY, provider)]
    assert len(set(made)) == len(NASTY)
    for id in made:
        assert re.fullmatch(profile.ids.pattern, id), id
        assert len(id) <= profile.ids.max_length
        assert "__thought__" not in id or provider == target


@pytest.mark.law
@given(
    st.sampled_from(TARGETS),
    st.sampled_from(POLICIES),
    st.lists(st.sampled_from(NASTY), max_size=12),
    st.data(),
)
def test_law_5_6_R_004_6_projection_is_injective_and_prefix_stable(
    target: str, policy: ids.Policy, raw_ids: list[str], data: st.DataObject
) -> None:
    provider = data.draw(st.sampled_from([target, "openai", "anthropic"]))
    model = "kimi-k2" if target == "kimi" else ""
    history = calls_with(tuple(raw_ids), provider)
    whole = projected(target, model=model, policy=policy)
    made = [whole.add(each) for each in history]
    assert len(set(made)) == len(history)
    assert [whole[each.id] for each in history] == made
    assert [whole.canonical_of(id) for id in made] == [each.id for each in history]
    prefix = projected(target, model=model, policy=policy)
    cut = data.draw(st.integers(0, len(history)))
    assert [prefix.add(each) for each in history[:cut]] == made[:cut]


@pytest.mark.parametrize("target", TARGETS)
def test_law_3_the_native_id_returns_to_its_provider_unchanged(target: str) -> None:
    profile = profiles.get(target)
    native = projected(target).add(call(provider="elsewhere"))
    assert ids.Projection(profile).add(call("hist_tool_other", raw=native, provider=target)) == native


def test_law_6_a_native_id_that_is_taken_or_illegal_is_not_used() -> None:
    projection = projected("anthropic", policy="canonical")
    assert projection.add(call("hist_tool_1", raw="toolu_same", provider="anthropic")) == "toolu_same"
    assert projection.add(call("hist_tool_2", raw="toolu_same", provider="anthropic")) == "toolu_2"
    assert projection.add(call("hist_tool_3", raw="a b", provider="anthropic")) == "toolu_3"


def test_reversible_swaps_a_known_prefix_and_comes_back() -> None:
    out = projected("openai", policy="reversible").add(call("hist_tool_1", raw="toolu_abc", provider="anthropic"))
    assert out == "call_abc"
    back = projected("anthropic", policy="reversible").add(call("hist_tool_2", raw=out, provider="openai"))
    assert back == "toolu_abc"


def test_reversible_falls_back_when_the_swap_collides_or_leaves_no_suffix() -> None:
    projection = projected("openai", policy="reversible")
    assert projection.add(call("hist_tool_1", raw="toolu_a")) == "call_a"
    assert projection.add(call("hist_tool_2", raw="fc_a")) == "call_2"
    assert projection.add(call("hist_tool_3", raw="toolu_")) == "call_3"
    assert projection.add(call("hist_tool_4", raw="x y")) == "call_4"
    assert projection.add(call("hist_tool_5", raw=None)) == "call_5"


FOREIGN = st.one_of(
    st.from_regex(r"[A-Za-z0-9]{9}", fullmatch=True),
    st.from_regex(r"functions\.[a-z]{1,5}:[0-9]{1,3}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_-]{1,60}", fullmatch=True),
    st.sampled_from(NASTY),
)


WHERE = tuple((name, model) for name in TARGETS for model in ("", "kimi-k2", "mistral-small"))


@pytest.mark.law
@given(st.sampled_from(WHERE), st.lists(FOREIGN, max_size=6), st.integers(0, 6))
def test_law_5_6_7_a_foreign_id_stays_that_is_legal_and_free_and_has_no_known_prefix(
    where: tuple[str, str], raw_ids: list[str], cut: int
) -> None:
    profile = profiles.get(*where)
    history = calls_with(tuple(raw_ids), "groq" if profile.name == "cohere" else "cohere")
    projection = ids.Projection(profile)
    made: list[str] = []
    for each, raw in zip(history, raw_ids, strict=True):
        is_legal = re.fullmatch(profile.ids.pattern, raw) is not None and len(raw) <= profile.ids.max_length
        is_plain = bool(raw.strip()) and not ids.prefix_of(raw) and ids.SMUGGLED_MARK not in raw
        emitted = projection.add(each)
        assert emitted == raw or not is_legal or not is_plain or raw in made
        made.append(emitted)
    assert len({*made}) == len(made)
    again = ids.Projection(profile)
    assert [again.add(each) for each in history[:cut]] == made[:cut]
    own = [call(f"hist_tool_{n}", raw=id, provider=profile.name) for n, id in enumerate(made)]
    native = ids.Projection(profile)
    assert [native.add(each) for each in own] == made


def test_a_legal_id_that_an_earlier_call_has_is_not_used_again() -> None:
    projection = projected("mistral", policy="reversible")
    first = projection.add(call("hist_tool_1", raw="not legal"))
    second = projection.add(call("hist_tool_2", raw=first))
    assert re.fullmatch("[A-Za-z0-9]{9}", second)
    assert second != first
    assert projection.add(call("hist_tool_3", raw="Ab3dE6gH9")) == "Ab3dE6gH9"
    assert projection.add(call("hist_tool_4", raw="Ab3dE6gH9")) != "Ab3dE6gH9"


def test_under_the_policy_canonical_every_foreign_id_is_made_anew() -> None:
    assert projected("mistral").add(call(raw="Ab3dE6gH9")) != "Ab3dE6gH9"
    assert projected("openai").add(call(raw="Ab3dE6gH9")) == "call_" + SUFFIX


@pytest.mark.parametrize("source", ["openai", "groq", "openai_compatible", "vllm"])
def test_nine_characters_stay_for_mistral_and_nothing_was_changed_is_true(source: str) -> None:
    body = {
        "model": "mistral-large-latest",
        "messages": [
            {"role": "user", "content": "Read"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "Ab3dE6gH9", "type": "function", "function": {"name": "read", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "Ab3dE6gH9", "content": "x"},
        ],
    }
    out = toolglot.convert(body, source=source, target="mistral", model="mistral-large-latest")
    assert out.body["messages"][1]["tool_calls"][0]["id"] == "Ab3dE6gH9"
    assert out.body["messages"][2]["tool_call_id"] == "Ab3dE6gH9"


def test_a_call_without_metadata_is_projected_too() -> None:
    assert projected("openai", policy="reversible").add(ToolCall("hist_tool_1", "f")) == "call_1"
    assert projected("kimi", model="kimi-k2").add(ToolCall("hist_tool_1", "f")) == "functions.f:0"


def test_the_same_call_keeps_its_id() -> None:
    projection = projected("mistral")
    assert projection.add(call()) == projection.add(call())
    assert len(projection) == 1
    assert CANONICAL in projection
    assert projection.canonical_of("never made") is None


def test_R_004_15_calls_with_empty_ids_get_different_ids_every_time_the_same() -> None:
    made = [[projected("openai").add(each) for each in calls_with(("", ""), "openai")] for _ in range(2)]
    assert made[0] == made[1]
    assert projected("openai").add(calls_with(("",), "openai")[0]) == made[0][0]


def test_kimi_ordinals_survive_gaps_collisions_and_odd_names() -> None:
    projection = projected("kimi", model="kimi-k2.5")
    assert projection.add(call("hist_tool_1", ordinal=5, name="a")) == "functions.a:5"
    assert projection.add(call("hist_tool_2", ordinal=5, name="a")) == "functions.a:6"
    assert projection.add(call("hist_tool_3", ordinal=9, name="a"), name="b") == "functions.b:9"
    odd = projection.add(call("hist_tool_4", ordinal=10, name="a.b/ä"))
    assert re.fullmatch(r"functions\.tool_[A-Za-z0-9]{8}:10", odd)


def test_B4_a_native_kimi_id_is_kept_and_counts() -> None:
    projection = projected("kimi", model="kimi-k2")
    first, second, third = calls_with(("functions.read_file:0", "functions.read_file:0", ""), "kimi")
    assert projection.add(first) == "functions.read_file:0"
    assert projection.add(second) == "functions.read_file:1"
    assert projection.add(third) == "functions.read_file:2"


def test_a_length_limit_is_met_by_hashing_never_by_cutting() -> None:
    tight = profiles.get(
        "tight",
        overrides=profiles.Overrides('[profiles.tight.rules]\n"ids.max_length" = 20\n"ids.prefix" = "call_"'),
    )
    one, other = (ids.Projection(tight, policy="canonical").add(call(f"hist_tool_{'x' * 30}{n}")) for n in "ab")
    assert len(one) == len(other) == 20
    assert one != other
    shorter = profiles.get("tiny", overrides=profiles.Overrides('[profiles.tiny.rules]\n"ids.max_length" = 12'))
    assert re.fullmatch(r"[A-Za-z0-9]{12}", ids.Projection(shorter).add(call()))


def test_a_profile_whose_pattern_no_id_can_meet_is_an_error() -> None:
    wrong = profiles.get("wrong", overrides=profiles.Overrides('[profiles.wrong.rules]\n"ids.pattern" = "[0-9]+"'))
    with pytest.raises(ProfileError, match=r"wrong: ids.pattern: no free id of style 'prefixed' matches"):
        ids.Projection(wrong).add(call())
    for rules in ('"ids.style" = "fixed"\n"ids.pattern" = "[0-4]0{8}"', '"ids.style" = "ordinal"'):
        narrow = profiles.get("n", overrides=profiles.Overrides(f"[profiles.n.rules]\n{rules}"))
        projection = ids.Projection(narrow, digest=lambda _: b"\x00")
        with pytest.raises(ProfileError, match="no free id"):
            _ = [projection.add(call(f"hist_tool_{n}")) for n in range(6)]


@pytest.mark.parametrize(
    ("target", "model", "format"),
    [
        ("openai", "", "call_…"),
        ("mistral", "", "9 alphanumerics"),
        ("kimi", "kimi-k2", "functions.{name}:{n}"),
    ],
)
def test_R_004_19_the_chosen_format_is_known(target: str, model: str, format: str) -> None:
    assert projected(target, model=model).format == format


def test_law_4_projection_is_the_same_in_every_process() -> None:
    code = (
        "from toolglot import ToolCall, ids, profiles\n"
        "p = ids.Projection(profiles.get('mistral'))\n"
        "print([p.add(ToolCall('hist_tool_' + str(n), 'f')) for n in range(5)])"
    )
    outs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": s}).stdout
        for s in ("1", "2")
    }
    assert len(outs) == 1


def test_a_projection_needs_a_profile_and_a_known_policy() -> None:
    with pytest.raises(InputError, match=r"profile: expected a Profile, got 'openai' \(profiles.get"):
        ids.Projection("openai")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="policy: expected reversible or canonical, got 'x'"):
        ids.Projection(profiles.get("openai"), policy="x")  # type: ignore[arg-type]


def test_an_id_of_a_fixed_length_is_no_shorter_also_where_the_pattern_would_take_it() -> None:
    rules = '"ids.style" = "fixed"\n"ids.pattern" = "[A-Za-z0-9]+"\n"ids.max_length" = 9'
    fixed = profiles.get("fixed", overrides=profiles.Overrides(f"[profiles.fixed.rules]\n{rules}"))
    assert ids.Projection(fixed).add(call(raw="abcDEF123")) == "abcDEF123"
    assert re.fullmatch("[A-Za-z0-9]{9}", ids.Projection(fixed).add(call(raw="7")))
    assert not ids.Projection(fixed, issuer="fixed").adopt(["7", "abcDEF123"])


def test_a_pattern_that_half_of_the_hashes_match_is_met() -> None:
    rules = '"ids.style" = "fixed"\n"ids.pattern" = "[a-z][A-Za-z0-9]{8}"'
    half = profiles.get("half", overrides=profiles.Overrides(f"[profiles.half.rules]\n{rules}"))
    projection = ids.Projection(half)
    made = {projection.add(call(f"hist_tool_{n}")) for n in range(3_000)}
    assert len(made) == 3_000


@pytest.mark.parametrize("target", TARGETS)
@given(taken=st.lists(st.sampled_from((*NASTY, "toolu_b", "call_b", "Ab3dE6gH8")), min_size=1, max_size=3, unique=True))
def test_ids_of_the_target_itself_are_adopted_if_each_of_them_is_legal(target: str, taken: list[str]) -> None:
    profile = profiles.get(target)
    are_legal = all(re.fullmatch(profile.ids.pattern, id) and len(id) <= profile.ids.max_length for id in taken)
    adopted = ids.Projection(profile, issuer=target).adopt(taken)
    assert adopted == (are_legal and profile.ids.style != "ordinal")


@pytest.mark.parametrize("target", TARGETS)
@given(
    raw=st.lists(
        st.sampled_from((*NASTY, "toolu_b", "toolu_c", "call_b", "fc_b", "call_日", "call_x y")),
        max_size=3,
        unique=True,
    )
)
def test_ids_swapped_together_are_those_allocated_one_by_one(target: str, raw: list[str]) -> None:
    def projection() -> ids.Projection:
        return ids.Projection(profiles.get(target), canonical_id=lambda id: "hist_tool_" + id[:9], issuer="unheard_of")

    at_once, one_by_one = projection(), projection()
    swapped = at_once.swap(raw)
    if swapped is None:
        assert len(at_once) == 0
        return
    assert list(swapped.values()) == [one_by_one.add(ToolCall(id, "read_file")) for id in raw]
    assert [at_once.canonical_of(id) for id in swapped.values()] == raw
    assert [at_once.add(ToolCall(id, "read_file")) for id in raw] == list(swapped.values())


def test_ids_of_another_provider_are_swapped_together() -> None:
    projection = ids.Projection(profiles.get("openai"), canonical_id=str, issuer="anthropic")
    assert projection.swap(["toolu_a", "toolu_b"]) == {"toolu_a": "call_a", "toolu_b": "call_b"}
    assert ids.Projection(profiles.get("openai"), canonical_id=str, issuer="anthropic").swap(["toolu_a", "b"]) is None
    assert ids.Projection(profiles.get("openai"), canonical_id=str, issuer="openai").swap(["call_a"]) is None
