"""Profiles: resolution in layers, overrides, errors, and the data that comes with toolglot."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolglot import (
    Capabilities,
    InputError,
    ProfileError,
    UnknownNameError,
    get_capabilities,
    get_parser,
    profiles,
    register_capabilities,
)
from toolglot.profiles import loader
from toolglot.profiles.rules import Rules
from toolglot.profiles.target_names import MAX_LENGTH, aliases, normalize_name, profile_heads, resolve

LISTED = (
    *("anthropic", "openai", "openai_responses", "azure", "gemini", "vertex", "mistral", "kimi", "deepseek"),
    *(
        "vertex_claude",
        "xai",
        "qwen",
        "glm",
        "minimax",
        "bedrock",
        "cohere",
        "ollama",
        "vllm",
        "llamacpp",
        "groq",
        "cerebras",
    ),
    *("openrouter", "openai_compatible"),
)


PUBLISHED: dict[str, str] = {
    **dict.fromkeys(
        (
            "anthropic_messages",
            "claude",
            "messages",
        ),
        "anthropic",
    ),
    **dict.fromkeys(("azure_openai",), "azure"),
    **dict.fromkeys(
        (
            "amazon",
            "aws",
            "aws_bedrock",
            "bedrock_converse",
            "converse",
        ),
        "bedrock",
    ),
    **dict.fromkeys(("co_here",), "cohere"),
    **dict.fromkeys(("deep_seek",), "deepseek"),
    **dict.fromkeys(
        (
            "gemini_api",
            "google",
            "google_ai",
            "google_genai",
        ),
        "gemini",
    ),
    **dict.fromkeys(
        (
            "z_ai",
            "zai",
            "zhipu",
            "zhipuai",
        ),
        "glm",
    ),
    **dict.fromkeys(
        (
            "moonshot",
            "moonshotai",
        ),
        "kimi",
    ),
    **dict.fromkeys(("llama_cpp",), "llamacpp"),
    **dict.fromkeys(("mistralai",), "mistral"),
    **dict.fromkeys(("ollama_chat",), "ollama"),
    **dict.fromkeys(
        (
            "chat_completions",
            "open_ai",
            "openai_chat",
            "openai_completions",
        ),
        "openai",
    ),
    **dict.fromkeys(
        (
            "fireworks",
            "fireworks_ai",
            "nvidia",
            "nvidia_nim",
            "openai_compat",
            "together",
            "together_ai",
            "togetherai",
        ),
        "openai_compatible",
    ),
    **dict.fromkeys(
        (
            "openai_response",
            "responses",
        ),
        "openai_responses",
    ),
    **dict.fromkeys(("open_router",), "openrouter"),
    **dict.fromkeys(("dashscope",), "qwen"),
    **dict.fromkeys(
        (
            "google_vertex",
            "vertex_ai",
            "vertexai",
        ),
        "vertex",
    ),
    **dict.fromkeys(("claude_on_vertex", "vertex_ai_claude"), "vertex_claude"),
    **dict.fromkeys(
        (
            "grok",
            "x_ai",
        ),
        "xai",
    ),
}
"""Aliases that were published: ids hash what they resolve to, so they stay."""


def override(text: str, origin: str = "my.toml") -> profiles.Overrides:
    return profiles.Overrides(text, origin=origin)


# --- the data ---------------------------------------------------------------------------------------


def test_every_provider_of_the_list_is_here() -> None:
    assert set(profiles.names()) == set(LISTED)


def test_every_entry_has_an_id_of_its_own_a_source_and_a_confidence() -> None:
    seen: dict[str, str] = {}
    for name in profiles.names():
        file = loader.read_builtin(name)
        entries: list[Any] = [*file.rules.values(), *file.facts]
        entries += [rule for model in file.models for rule in model.rules.values()]
        for entry in entries:
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", entry.id), (name, entry.id)
            assert entry.id not in seen, (name, seen[entry.id])
            assert entry.source.strip()
            assert entry.confidence in ("documented", "observed", "guess")
            seen[entry.id] = name
    assert len(seen) > 1000


@pytest.mark.parametrize("target", LISTED)
def test_every_target_has_the_rules_that_rendering_needs(target: str) -> None:
    profile = profiles.get(target)
    assert profile.title
    for key in ("results.carrier", "calls.arguments", "choice.modes", "turns.system"):
        assert profile.origin(key).layer != "default", key
    assert re.compile(profile.ids.pattern).fullmatch("call_abc") or profile.ids.style != "prefixed"


def test_protocols() -> None:
    protocols = {name: profiles.get(name).protocol for name in LISTED}
    assert protocols["anthropic"] == protocols["vertex_claude"] == "anthropic"
    assert protocols["openai_responses"] == "openai_responses"
    assert protocols["gemini"] == protocols["vertex"] == "gemini"
    assert (protocols["bedrock"], protocols["cohere"], protocols["ollama"]) == ("bedrock", "cohere", "ollama")
    others = set(LISTED) - {
        "anthropic",
        "openai_responses",
        "gemini",
        "vertex",
        "vertex_claude",
        "bedrock",
        "cohere",
        "ollama",
    }
    assert {protocols[name] for name in others} == {"openai_chat"}


@pytest.mark.parametrize(
    ("provider", "models", "key", "value"),
    [
        ("openai", "gpt-5.4 gpt-5.6-terra gpt-5.10 gpt-6-astra openai/gpt-7", "tools.protocol", "openai_responses"),
        ("openai", "gpt-4o gpt-5 gpt-5-2025-08-07 gpt-5.3-codex gpt-35-turbo o3", "tools.protocol", ""),
        ("azure", "gpt-5.4", "tools.protocol", "openai_responses"),
        ("openai", "gpt-5-pro gpt-5.2-pro-2026-01-01 o1-pro o3-pro-2025-06-10", "request.target", "openai_responses"),
        ("openai", "gpt-5-codex gpt-5.1-codex-max codex-mini-latest", "request.target", "openai_responses"),
        ("openai", "o3-deep-research o4-mini-deep-research computer-use-preview", "request.target", "openai_responses"),
        ("openai", "gpt-5 gpt-5-mini o3 gpt-4o gpt-6-sol gpt-5-professor", "request.target", ""),
        ("openai_responses", "gpt-4o-search-preview gpt-4o-audio-preview o1-mini", "request.target", "openai"),
        ("openai_responses", "gpt-audio gpt-audio-mini gpt-5-search-api-2025-10-14", "request.target", "openai"),
        ("openai_responses", "gpt-4o gpt-3.5-turbo gpt-5-pro o1", "request.target", ""),
        ("anthropic", "claude-opus-4-6 claude-opus-4.6 claude-opus-7 claude-opus-4-10", "turns.prefill", "no"),
        ("anthropic", "claude-3-5-sonnet-20241022 claude-sonnet-4-20250514 claude-opus-4-5", "turns.prefill", "yes"),
        ("anthropic", "claude-sonnet-5-5", "reasoning.modes", ("adaptive", "between_tools")),
        ("anthropic", "claude-opus-5-5 claude-fable-5-1", "reasoning.modes", ("adaptive",)),
        ("anthropic", "claude-opus-4-5-20251101 claude-sonnet-4-20250514", "reasoning.modes", ("off", "on")),
        ("anthropic", "claude-fable-5-1 claude-opus-5-5 claude-sonnet-5-5", "choice.modes", ("auto", "none")),
        ("anthropic", "claude-opus-4-8", "turns.system_inside", "before_assistant"),
        ("anthropic", "claude-sonnet-4-5", "turns.system_inside", "no"),
        ("gemini", "gemini-3-pro-preview models/gemini-3.1-pro gemini-4", "reasoning.placeholder_on", "first_call"),
        ("gemini", "gemini-3-pro-preview", "reasoning.placeholder", "skip_thought_signature_validator"),
        ("gemini", "gemini-2.5-flash gemini-2.0-flash", "reasoning.placeholder", None),
        ("kimi", "kimi-k2 kimi-k2-0905-preview moonshotai/Kimi-K2.6 kimi-k2-thinking", "ids.style", "ordinal"),
        ("kimi", "kimi-k3 kimi-k3-preview moonshot-v1-8k", "ids.style", "prefixed"),
        ("vllm openai_compatible groq cerebras", "moonshotai/Kimi-K2-Instruct", "ids.style", "ordinal"),
        ("vllm", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "ids.style", "fixed"),
        ("mistral", "mistral-large-latest voxtral-small-latest", "results.user_after", True),
        ("mistral", "open-mistral-7b", "calls.with_text", False),
        ("bedrock", "mistral.mistral-large-2407-v1:0", "ids.style", "fixed"),
        ("bedrock", "us.anthropic.claude-opus-4-6-v1:0", "results.alone", False),
        ("bedrock", "amazon.nova-pro-v1:0", "results.alone", False),
        ("bedrock", "meta.llama3-1-70b-instruct", "results.alone", True),
        ("deepseek", "deepseek-reasoner deepseek-v4-flash", "reasoning.placeholder", " "),
        ("vllm", "meta-llama/Llama-3.1-8B-Instruct", "calls.parallel", False),
        ("glm", "glm-4.6", "choice.modes", ("auto",)),
    ],
)  # fmt: skip
def test_models_refine_a_provider(provider: str, models: str, key: str, value: object) -> None:
    group, field = key.split(".")
    for name in provider.split():
        for model in models.split():
            assert getattr(getattr(profiles.get(name, model), group), field) == value, (name, model)


def test_the_render_safe_core_is_the_default() -> None:
    bare = profiles.get("bare", "some-model", overrides=override('[profiles.bare]\ntitle = "Says nothing"'))
    assert bare.name == "bare"
    assert bare.layers == ("default",)
    assert bare.protocol == "openai_chat"
    assert (bare.ids.max_length, bare.turns.first, bare.turns.prefill) == (40, "user", "no")
    assert bare.choice.modes == ("auto", "none")
    assert bare.origin("ids.max_length").confidence == "default"


# --- layers -----------------------------------------------------------------------------------------


def test_each_value_names_the_layer_it_came_from() -> None:
    profile = profiles.get("vllm", "moonshotai/Kimi-K2-Instruct")
    assert profile.layers[:4] == ("default", "openai_compatible", "openai_compatible:models.kimi-k2", "vllm")
    style = profile.origin("ids.style")
    assert style.layer.startswith("vllm:models.")
    assert style.layer in profile.layers
    assert profile.origin("results.carrier").layer == "openai_compatible"
    assert profile.origin("schema.max_depth").layer == "default"
    assert all(profile.origin(key).key == key for key in profiles.KEYS)
    with pytest.raises(ProfileError, match=r"unknown key 'ids\.nope'"):
        profile.origin("ids.nope")


def test_a_user_overrides_any_entry_and_the_layer_is_named() -> None:
    mine = override('[profiles.mistral.rules]\n"ids.fixed_length" = 12\n"ids.pattern" = "[a-z]{12}"')
    profile = profiles.get("mistral", overrides=mine)
    assert (profile.ids.fixed_length, profile.ids.pattern, profile.ids.style) == (12, "[a-z]{12}", "fixed")
    rule = profile.origin("ids.pattern")
    assert (rule.id, rule.layer, rule.source) == ("user:ids.pattern", "my.toml:mistral", "my.toml")
    assert profiles.get("mistral").ids.fixed_length == 9


@pytest.mark.parametrize("key", sorted(profiles.KEYS))
def test_every_key_can_be_overridden_with_the_value_it_has(key: str) -> None:
    value = msgspec.to_builtins(profiles.get("openai_responses").origin(key).value)
    written = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
    text = written if isinstance(value, bool) else '"null"' if value is None else msgspec.json.encode(value).decode()
    mine = override(f'[profiles.openai_responses.rules]\n"{key}" = {text}')
    rule = profiles.get("openai_responses", overrides=mine).origin(key)
    assert msgspec.to_builtins(rule.value) == value
    assert rule.layer == "my.toml:openai_responses"


def test_a_users_model_layer_and_long_form() -> None:
    mine = override(
        """
        [profiles.moonshot.models."fine-tune"]
        match = "my-.*-tune"
        [profiles.moonshot.models."fine-tune".rules."ids.max_length"]
        value = 50
        source = "measured"
        confidence = "observed"
        error = "too long"
        note = "on our box"
        """
    )
    assert profiles.get("kimi", "MY-k2-tune", overrides=mine).ids.max_length == 50
    rule = profiles.get("kimi", "my-k2-tune", overrides=mine).origin("ids.max_length")
    assert (rule.source, rule.confidence, rule.error, rule.note) == (
        "measured",
        "observed",
        "too long",
        "on our box",
    )
    assert rule.layer == "my.toml:kimi:models.fine-tune"
    assert profiles.get("kimi", "kimi-k3", overrides=mine).ids.max_length != 50


def test_a_user_describes_a_provider_of_their_own() -> None:
    mine = override(
        '[profiles.box]\ntitle = "Our box"\nextends = "vllm"\n[profiles.box.rules]\n"tools.max_count" = "null"\n'
        '[profiles.other]\nprotocol = "anthropic"\n[profiles.other.facts."other-fact"]\n'
        'text = "slow"\nsource = "us"\nconfidence = "observed"'
    )
    box = profiles.get("box", "kimi-k2", overrides=mine)
    assert (box.title, box.protocol, box.tools.max_count) == ("Our box", "openai_chat", None)
    assert box.ids.style == "ordinal"
    assert profiles.get("other", overrides=mine).protocol == "anthropic"
    assert [fact.text for fact in profiles.get("other", overrides=mine).facts] == ["slow"]
    assert mine.names == ("box", "other")
    with pytest.raises(UnknownNameError, match="unknown provider 'box'"):
        profiles.get("box")


def test_overrides_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_text('[profiles.groq.rules]\n"tools.max_count" = 7\n', encoding="utf-8")
    assert profiles.get("groq", overrides=profiles.read_overrides(file)).tools.max_count == 7
    with pytest.raises(ProfileError, match=r"cannot read file: embedded null byte"):
        profiles.read_overrides("a\0b")
    with pytest.raises(ProfileError, match=r"nowhere.toml: cannot read file: No such file"):
        profiles.read_overrides(tmp_path / "nowhere.toml")


# --- bad files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", r"my.toml: not TOML: .*"),
        ("profiles = 3", r"my.toml: `profiles` must be a table"),
        (
            "[profiles.x]\nfoo = 1",
            r"my.toml: profiles.x: Object contains unknown field `foo` \(allowed: title, ",
        ),
        ('[profiles.x]\nprotocol = "smtp"', r"my.toml: profiles.x: unknown protocol 'smtp'"),
        (
            '[profiles.x.rules]\n"ids.patern" = 1',
            r'my.toml: profiles.x.rules."ids.patern": unknown key .*did you mean "ids.pattern"',
        ),
        ('[profiles.x.rules]\n"ids.qqqqqqqq" = 1', r"allowed: ids.style, ids.prefix"),
        ('[profiles.x.rules]\n"zzzzzzzzz" = 1', r"allowed: cache.…, calls.…, choice.…"),
        ('[profiles.x]\nprotocol = "openai"', r"allowed: anthropic, openai_chat, openai_responses"),
        ('[profiles.x.rules."ids.style"]\nvalue = "fixed"\nconfidence = "sure"', r"allowed: documented, observed"),
        ("[profiles.x.models.m]\nrules = {}", r"a model has `match`, a regular expression, and `rules`"),
        ('[profiles.x.facts.f]\ntext = "a"', r"a fact has `text`, `source` and `confidence`"),
        (
            '[profile.x.rules]\n"ids.style" = "fixed"',
            r"'profile' is not a section for profiles \(write \[profiles.NAME",
        ),
        ('[mistral.rules]\n"ids.style" = "fixed"', r"'mistral' is not a section .*write \[profiles.mistral\]"),
        (
            '[profiles.x.rules]\n"ids.max_length" = "long"',
            r"'long' is not a value for ids.max_length: Expected `int`, got `str` \(allowed: a whole number from 9\)",
        ),
        ('[profiles.x.rules]\n"ids.max_length" = 3', r"3 is not a value for ids.max_length: Expected `int` >= 9"),
        (
            '[profiles.x.rules]\n"choice.modes" = ["any"]',
            r'allowed: a list whose entries are one of "auto", "none"',
        ),
        ('[profiles.x.rules]\n"ids.required" = "null"', r"allowed: true or false"),
        ('[profiles.x.rules]\n"tools.max_count" = 1.5', r'allowed: a whole number or "null"'),
        ('[profiles.x.rules]\n"turns.media" = [1]', r"allowed: a list of strings"),
        (
            '[profiles.x.rules]\n"ids.pattern" = "("',
            r'rules."ids.pattern": \'\(\' is not a regular expression',
        ),
        ('[profiles.x.rules."ids.pattern"]\nvalu = "a"', r"allowed: value, id, source, confidence"),
        (
            '[profiles.x.models.m]\nmatch = "["\nrules = {}',
            r"my.toml: profiles.x.models.m.match: '\[' is not",
        ),
        (
            '[profiles.x.models.m]\nmatch = "a"\nrules = {"ids.nope" = 1}',
            r"my.toml: profiles.x.models.m.rules",
        ),
        ('[profiles.x]\nextends = "y"', r"my.toml: 'x' extends 'y', which does not exist"),
        (
            '[profiles.x]\nextends = "y"\n[profiles.y]\nextends = "x"',
            r"extend each other in a circle: x → y → x",
        ),
        ("a = " + "[" * 3000, r"my.toml: not TOML"),
        ("a = " + "9" * 5000, r"my.toml: not TOML"),
        ("# \ud800", r"my.toml: not UTF-8"),
        (f"[profiles.x.rules]\n\"ids.pattern\" = '{'(' * 5000}'", r"is not a regular expression"),
        ('[profiles.x.rules]\n"ids.pattern" = "a{99999999999999999999}"', r"is not a regular expression"),
    ],
)
def test_a_bad_file_is_refused_with_file_key_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        profiles.get("x", overrides=override(text))


def test_a_file_that_is_not_utf8_or_too_large_is_refused() -> None:
    with pytest.raises(ProfileError, match=r"my\.toml: not UTF-8 at byte 2"):
        profiles.Overrides(b"# \xff", origin="my.toml")
    with pytest.raises(ProfileError, match="larger than"):
        profiles.Overrides(b"#" * (loader.MAX_FILE_BYTES + 1))


def test_keys_may_be_written_without_quotes() -> None:
    mine = override("[profiles.mistral.rules]\nids.fixed_length = 12\n[profiles.mistral.rules.names]\nmax_length = 9")
    assert profiles.get("mistral", overrides=mine).ids.fixed_length == 12
    assert profiles.get("mistral", overrides=mine).names.max_length == 9


def test_overrides_are_overrides() -> None:
    wrongs: list[Any] = ["toolglot.toml", {"profiles": {}}]
    for wrong in wrongs:
        with pytest.raises(InputError, match=r"overrides: expected Overrides, got .*read_overrides"):
            profiles.get("groq", overrides=wrong)
    with pytest.raises(ProfileError, match="expected TOML text, got None"):
        profiles.Overrides(None)  # type: ignore[arg-type]


def test_allowed_values_of_a_key() -> None:
    assert profiles.allowed_values("ids.style") == 'one of "prefixed", "fixed", "ordinal"'
    with pytest.raises(ProfileError, match=r'unknown key .*did you mean "ids.style"'):
        profiles.allowed_values("ids.stile")


@pytest.mark.parametrize("name", ["", " ", 3, "x" * 600])
def test_a_provider_has_a_name(name: Any) -> None:
    with pytest.raises(InputError, match="provider: expected"):
        profiles.get(name)


def test_a_model_has_a_name() -> None:
    with pytest.raises(InputError, match="model: expected a name of at most 512"):
        profiles.get("openai", "x" * 600)


# --- names ------------------------------------------------------------------------------------------


def test_aliases_lead_to_targets_and_never_to_aliases() -> None:
    for alias, target in aliases().items():
        assert target in profiles.names()
        assert alias not in profiles.names()
        assert resolve(alias) == target == resolve(target)


def test_an_alias_is_of_one_target_and_in_its_plain_spelling() -> None:
    listed = [alias for head in profile_heads().values() for alias in head.aliases]
    assert len(listed) == len(set(listed)) == len(aliases())
    assert listed == [normalize_name(alias) for alias in listed]
    assert all(len(name) <= MAX_LENGTH for name in (*listed, *profiles.names()))


def test_aliases_that_were_published_stay() -> None:
    assert {alias: aliases().get(alias) for alias in PUBLISHED} == PUBLISHED


def test_the_head_of_a_file_agrees_with_the_whole_file() -> None:
    for name, head in profile_heads().items():
        file = loader.read_builtin(name)
        assert (head.title, head.protocol, head.extends) == (file.title, file.protocol, file.extends)


def test_a_users_profile_has_no_aliases() -> None:
    with pytest.raises(ProfileError, match="unknown field `aliases`"):
        override('[profiles.box]\naliases = ["crate"]\n')


@pytest.mark.parametrize(
    ("spelling", "target"),
    [
        *(("openai_chat", "openai"), ("google", "gemini"), ("Moonshot", "kimi"), ("Azure OpenAI", "azure")),
        *(("vertex-ai", "vertex"), ("Z.AI", "glm"), ("OPENAI", "openai"), ("responses", "openai_responses")),
    ],
)
def test_other_spellings_mean_the_same_target(spelling: str, target: str) -> None:
    assert resolve(spelling) == target
    assert profiles.get(spelling) is profiles.get(target)


def test_a_stored_name_that_means_no_target_is_kept() -> None:
    assert resolve("My-Box") == "My-Box"


def test_every_key_has_a_type_a_default_and_a_description() -> None:
    Rules()
    for group in msgspec.inspect.type_info(Rules).fields:  # type: ignore[attr-defined]
        assert group.type.cls.__doc__
        for field in group.type.fields:
            assert field.type.extra_json_schema["description"], field.name


def test_profiles_can_be_hashed_and_are_made_once() -> None:
    assert profiles.get("openai", "gpt-4o") is profiles.get("openai", "gpt-4o")
    assert len({profiles.get("openai"), profiles.get("openai"), profiles.get("groq")}) == 2


# --- seed 003 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("anthropic", ("json", True, 20, True, True, ())),
        ("openai", ("json", True, 10, True, True, ())),
        ("xai", ("custom", False, 1, False, False, ("uses <x.ai:tool_call> tags",))),
        ("deepseek", ("xml", True, 5, False, False, ())),
        ("Claude", ("json", True, 20, True, True, ())),
        ("OPENAI_CHAT", ("json", True, 10, True, True, ())),
        ("grok", ("custom", False, 1, False, False, ("uses <x.ai:tool_call> tags",))),
        ("Deep-Seek", ("xml", True, 5, False, False, ())),
        ("google", ("json", True, None, True, True, ())),
        ("nobody", ("unknown", False, 1, False, False, ())),
        ("", ("unknown", False, 1, False, False, ())),
    ],
)
def test_R_003_11_the_capability_matrix_has_the_seeds_values(provider: str, expected: tuple[object, ...]) -> None:
    assert msgspec.structs.astuple(get_capabilities(provider)) == expected


@pytest.mark.parametrize("provider", profiles.names())
def test_R_003_11_every_provider_has_capabilities(provider: str) -> None:
    known = get_capabilities(provider)
    assert known.format in ("json", "xml", "custom")
    assert known.supports_parallel == (known.max_tools_per_call != 1)


def test_R_003_11_capabilities_can_be_overridden_and_the_parsers_read_them() -> None:
    own = Capabilities(format="custom", supports_parallel=True, max_tools_per_call=3)
    for name in ("Grok", "no_such_provider"):
        register_capabilities(name, own)
    try:
        assert get_capabilities("xai") == get_capabilities("no_such_provider") == own
        register_capabilities("openai", Capabilities(format="xml"))
        assert get_parser("openai").format == "xml"
    finally:
        for name in ("xai", "no_such_provider", "openai"):
            register_capabilities(name, None)
    assert get_capabilities("xai").max_tools_per_call == 1
    assert get_capabilities("no_such_provider") == Capabilities()
    assert get_parser("openai").format == "json"


def test_R_003_11_a_profile_of_ones_own_has_capabilities_that_follow_its_rules() -> None:
    box = profiles.Overrides(
        '[profiles.box]\ntitle = "A box"\nextends = "openai_compatible"\n[profiles.box.rules]\n"calls.parallel" = false'
    )
    known = get_capabilities("box", overrides=box)
    assert (known.format, known.supports_parallel, known.max_tools_per_call) == ("json", False, 1)
    assert get_capabilities("box") == Capabilities()


@pytest.mark.parametrize("arguments", [("", None), (None, None), ("openai", "json"), ("openai", {})])
def test_R_003_11_what_are_no_capabilities_is_refused(arguments: tuple[Any, Any]) -> None:
    with pytest.raises(InputError):
        register_capabilities(*arguments)


# --- what a provider was seen to take -----------------------------------------------------------------

SEEN_TO_TAKE = """
[profiles.box]
extends = "openai_compatible"
[profiles.box.rules."results.empty"]
value = false
accepts = true
source = "recorded"
"""


def test_a_request_of_its_own_client_is_held_to_what_the_provider_was_seen_to_take() -> None:
    profile = profiles.get("box", overrides=override(SEEN_TO_TAKE))
    assert not profile.results.empty
    assert profile.as_known().results.empty


def test_an_override_without_what_is_accepted_holds_for_the_own_client_too() -> None:
    mine = override(SEEN_TO_TAKE + '[profiles.stern]\nextends = "box"\nrules = { "results.empty" = false }\n')
    assert profiles.get("box", overrides=mine).as_known().results.empty
    assert not profiles.get("stern", overrides=mine).as_known().results.empty


def test_what_is_accepted_is_checked_as_a_value_is() -> None:
    with pytest.raises(ProfileError, match=r"results\.empty"):
        override(SEEN_TO_TAKE.replace("accepts = true", 'accepts = "now and then"'))


def test_an_assumed_rule_is_held_against_what_comes_from_elsewhere_only() -> None:
    described = "[profiles.box]\nassumed = true\n[profiles.box.rules]\n'turns.empty_text' = false\n"
    profile = profiles.get("box", overrides=override(described))
    assert not profile.turns.empty_text
    assert profile.as_known().turns.empty_text
    assert profile.origin("turns.empty_text").assumed


def test_a_rule_of_an_assumed_profile_may_be_known_for_sure() -> None:
    rule = "[profiles.box.rules.'turns.empty_text']\nvalue = false\nassumed = false\n"
    profile = profiles.get("box", overrides=override(f"[profiles.box]\nassumed = true\n{rule}"))
    assert not profile.as_known().turns.empty_text


@pytest.mark.parametrize(
    ("target", "model", "key", "value"),
    [
        ("openai_compatible", "", "turns.empty_text", "false"),
        ("openai_compatible", "", "request.unknown_fields", "'refused'"),
        ("openrouter", "", "ids.max_length", "40"),
        ("openai_compatible", "mistral-small", "results.user_after", "false"),
        ("llamacpp", "", "calls.empty_content", "'empty'"),
        ("kimi", "kimi-k2", "ids.pattern", "'[a-z]+'"),
    ],
)
def test_a_user_can_enforce_what_is_assumed(target: str, model: str, key: str, value: str) -> None:
    assert profiles.get(target, model).origin(key).assumed
    models = f".models.all]\nmatch = '.'\n[profiles.{target}.models.all" if model else ""
    mine = override(f"[profiles.{target}{models}.rules]\n'{key}' = {value}\n")
    group, field = key.split(".")
    enforced = profiles.get(target, model, overrides=mine)
    assert getattr(getattr(enforced.as_known(), group), field) == getattr(getattr(enforced, group), field)
    assert not enforced.origin(key).assumed
