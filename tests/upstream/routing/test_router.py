"""The route of a name: aliases, tiers, patterns, prefixes, listings, and simulated models if they are allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import no_hang, steps_of
from toolglot import InputError
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import Config, config_from_environment, parse_config
from toolglot.simulator import PROVIDERS as SIMULATED_PROVIDERS
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.no_route import NoRouteError
from toolglot.upstream.routing.router import Router
from toolglot.upstream.routing.routes import Listed, Route

ENV = {"HOME": "/h"} | {provider.key_env[0]: "key" for provider in PROVIDERS.values()}

FILE = """
[upstreams.openai]
models = ["gpt-5.5", "ft:*"]
[upstreams.anthropic]
models = ["claude-exact[1m]"]
[upstreams.openrouter]
models = ["google/gemini-2.5-pro", "shared"]
[upstreams.gemini]
[upstreams.second]
provider = "openai"
models = ["shared"]
[models]
"my-alias" = "anthropic/claude-sonnet-5"
"other" = "my-alias"
"chain" = "other"
"opus" = "openai/gpt-5.5"
"claude-3-*" = "gemini/gemini-2.5-pro"
"sonnet" = "second/gpt-mini"
"gpt-4o*" = "openrouter/mistralai/mistral-large"
"gpt-4o-mini" = "openai/exact"
"keep-*" = "openrouter/*"
"marked[1m]" = "openai/marked"
"""


def config(text: str = FILE) -> Config:
    return parse_config(ConfigText("/etc/toolglot.toml", text), ENV)


def way(model: str, text: str = FILE) -> tuple[str, str, str]:
    route = Router(config(text)).route(model)
    assert not route.simulated
    return route.upstream_name, route.model, route.alias_of


def refusal(model: str, text: str = FILE) -> NoRouteError:
    with pytest.raises(NoRouteError) as caught:
        Router(config(text)).route(model)
    return caught.value


# --- [models] ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("my-alias", ("anthropic", "claude-sonnet-5", "my-alias")),
        ("MY-Alias", ("anthropic", "claude-sonnet-5", "my-alias")),
        ("  my-alias ", ("anthropic", "claude-sonnet-5", "my-alias")),
        ("chain", ("anthropic", "claude-sonnet-5", "chain")),
        ("opus", ("openai", "gpt-5.5", "opus")),
        ("claude-opus-5", ("openai", "gpt-5.5", "opus")),
        ("claude-3-opus-latest", ("openai", "gpt-5.5", "opus")),
        ("Claude_Opus@20251101", ("openai", "gpt-5.5", "opus")),
        ("us.anthropic.claude-opus-5-v1:0", ("openai", "gpt-5.5", "opus")),
        ("elsewhere/claude-opus-5", ("openai", "gpt-5.5", "opus")),
        ("claude-3-5-haiku", ("gemini", "gemini-2.5-pro", "claude-3-*")),
        ("claude-3-5-sonnet", ("gemini", "gemini-2.5-pro", "claude-3-*")),
        ("claude-sonnet-4-5", ("second", "gpt-mini", "sonnet")),
        ("gpt-4o", ("openrouter", "mistralai/mistral-large", "gpt-4o*")),
        ("gpt-4o-mini", ("openai", "exact", "gpt-4o-mini")),
        ("keep-this", ("openrouter", "keep-this", "keep-*")),
    ],
)
def test_the_file_decides_first_names_before_tiers_and_patterns_in_its_order(
    model: str, expected: tuple[str, str, str]
) -> None:
    assert way(model) == expected


@pytest.mark.parametrize("model", ["octopus-1", "opuscule", "claude-opus5", "my-alias-2"])
def test_a_tier_is_a_whole_word_and_a_name_is_no_tier(model: str) -> None:
    text = f'{FILE}"*" = "gemini/rest"'
    assert way(model, text)[2] != "opus"
    assert way("x-my-alias-y", text)[2] == "*"


def test_who_names_an_upstream_means_it_whatever_the_tiers_say() -> None:
    assert way("anthropic/claude-opus-5") == ("anthropic", "claude-opus-5", "")
    patterns = '[upstreams.openai]\n[upstreams.anthropic]\n[models]\n"anthropic/*opus*" = "openai/gpt-5.5"'
    assert way("anthropic/claude-opus-5", patterns) == ("openai", "gpt-5.5", "anthropic/*opus*")


# --- upstreams --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/o9", ("openai", "o9")),
        ("OpenAI/O9", ("openai", "O9")),
        ("openrouter/anthropic/claude-fable-5", ("openrouter", "anthropic/claude-fable-5")),
        ("second/google/gemini-2.5-pro", ("second", "google/gemini-2.5-pro")),
        ("google/gemini-2.5-pro", ("openrouter", "google/gemini-2.5-pro")),
        ("google/gemini-9", ("gemini", "gemini-9")),
        ("gpt-5.5", ("openai", "gpt-5.5")),
        ("GPT-5.5", ("openai", "gpt-5.5")),
        ("shared", ("openrouter", "shared")),
        ("ft:gpt:me", ("openai", "ft:gpt:me")),
        ("claude-fable-5", ("anthropic", "claude-fable-5")),
        ("o3-pro", ("openai", "o3-pro")),
        ("models/gemini-3-pro", ("gemini", "models/gemini-3-pro")),
    ],
)
def test_then_a_prefix_then_lists_then_the_names_that_a_provider_has(model: str, expected: tuple[str, str]) -> None:
    assert way(model) == (*expected, "")


def test_everything_else_goes_where_the_star_says() -> None:
    text = f'{FILE}"*" = "openrouter/*"'
    assert way("unknown", text) == ("openrouter", "unknown", "*")
    assert way("maker/model[1m]", text) == ("openrouter", "maker/model", "*")
    assert way("*", text) == ("openrouter", "*", "*")
    assert way("gpt-5.4", text) == ("openai", "gpt-5.4", "")


# --- the mark of a context length -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-fable-5[1m]", ("anthropic", "claude-fable-5", "")),
        ("anthropic/claude-fable-5[1M]", ("anthropic", "claude-fable-5", "")),
        ("anthropic/claude-exact[1m]", ("anthropic", "claude-exact[1m]", "")),
        ("claude-exact[1m]", ("anthropic", "claude-exact[1m]", "")),
        ("claude-opus-5[1m]", ("openai", "gpt-5.5", "opus")),
        ("opus[1m]", ("openai", "gpt-5.5", "opus")),
        ("my-alias[1m]", ("anthropic", "claude-sonnet-5", "my-alias")),
        ("marked[1m]", ("openai", "marked", "marked[1m]")),
        ("gpt-5.5[200k]", ("openai", "gpt-5.5", "")),
        ("keep-this[1m]", ("openrouter", "keep-this", "keep-*")),
        ("google/gemini-9[1m]", ("gemini", "gemini-9", "")),
    ],
)
def test_a_mark_is_looked_up_with_and_without(model: str, expected: tuple[str, str, str]) -> None:
    assert way(model) == expected


# --- the simulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "provider", "requested"),
    [
        ("claude-opus-5", "anthropic", "claude-opus-5"),
        ("claude-opus-5[1m]", "anthropic", "claude-opus-5"),
        ("gemini-3-pro", "gemini", "gemini-3-pro"),
        ("kimi-k3", "kimi", "kimi-k3"),
        ("models/gemini-3-pro", "gemini", "models/gemini-3-pro"),
        ("us.anthropic.claude-x", "bedrock", "us.anthropic.claude-x"),
        ("groq/llama/x", "groq", "llama/x"),
        ("anthropic/claude-x", "anthropic", "claude-x"),
        ("google/gemini-x", "gemini", "gemini-x"),
        ("azure/gpt-x", "openai", "gpt-x"),
        ("simulated/mistral/x/y", "mistral", "x/y"),
        ("Simulated/Claude/x", "anthropic", "x"),
    ],
)
def test_where_nothing_is_configured_known_names_are_simulated(model: str, provider: str, requested: str) -> None:
    route = Router(config_from_environment({"HOME": "/h"})).route(model)
    is_named = model.lower().startswith("simulated/")
    assert route == Route(upstream_name=provider, model=requested, simulated=True, is_in_place=not is_named)
    assert route.upstream_name in SIMULATED_PROVIDERS


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("opnai/gpt-5.5", "did you mean 'openai/gpt-5.5'"),
        ("simulated/opnai/gpt-5.5", "did you mean 'simulated/openai/gpt-5.5'"),
        ("simulated/openai/", "write simulated/PROVIDER/MODEL"),
        ("simulated/openai", "write simulated/PROVIDER/MODEL"),
        ("claud-opus-5", "claude-opus-5"),
        ("nobody-knows", "simulated models answer for names of known providers"),
        ("some/thing", "simulated models answer for names of known providers"),
        ("opnai/us.anthropic.claude-x", "simulated models answer for names of known providers"),
        ("anthropic/", "simulated models answer for names of known providers"),
    ],
)
def test_where_nothing_is_configured_unknown_names_are_refused(model: str, hint: str) -> None:
    with pytest.raises(NoRouteError) as caught:
        Router(config_from_environment({"HOME": "/h"})).route(model)
    assert caught.value.message.startswith(f"unknown model {model!r}")
    assert hint in str(caught.value)


ONE_KEY = {"HOME": "/h", "ANTHROPIC_API_KEY": "sk-ant-0123456789"}


@pytest.mark.parametrize(
    ("model", "message", "hint"),
    [
        ("opnai/gpt-5.5", "unknown model", "openai needs OPENAI_API_KEY; upstreams: anthropic/…"),
        (
            "openai/gpt-5.5",
            "there is no key for OpenAI",
            "set the environment variable OPENAI_API_KEY; simulated/openai/",
        ),
        ("gpt-5.5", "there is no key for OpenAI", "simulated/openai/gpt-5.5 is a simulated model"),
        ("gemini-3-pro", "there is no key for", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("ollama/qwen3", "Ollama", "[upstreams.ollama] into toolglot.toml"),
        ("azure/gpt-x", "azure", "AZURE_OPENAI_API_KEY"),
        ("claud-opus-5", "did you mean 'claude-opus-5'", ""),
        ("antropic/claude-opus-5", "did you mean 'anthropic/claude-opus-5'", "upstreams: anthropic"),
        ("nobody-knows", "unknown model", "upstreams: anthropic/…"),
    ],
)
def test_with_one_key_a_name_that_no_upstream_has_is_refused_with_the_way_out(
    model: str, message: str, hint: str
) -> None:
    with pytest.raises(NoRouteError) as caught:
        Router(config_from_environment(ONE_KEY)).route(model)
    assert message.lower() in caught.value.message.lower()
    assert hint in caught.value.hint


def test_a_provider_that_was_left_out_is_refused_with_the_reason() -> None:
    router = Router(config_from_environment({"HOME": "/h", "AZURE_OPENAI_API_KEY": "k"}))
    with pytest.raises(NoRouteError, match="azure is left out") as caught:
        router.route("azure/gpt-5.5")
    assert "AZURE_OPENAI_ENDPOINT" in caught.value.hint
    with pytest.raises(NoRouteError, match="there is no key for Anthropic"):
        router.route("claude-opus-5")


@pytest.mark.parametrize("environ", [{"HOME": "/h"}, ONE_KEY])
def test_where_simulated_models_are_forbidden_no_name_leads_to_one(environ: dict[str, str]) -> None:
    made = config_from_environment(environ).without_simulated()
    router = Router(made)
    with pytest.raises(NoRouteError, match="forbidden"):
        router.route("simulated/openai/gpt-5.5")
    with pytest.raises(NoRouteError) as caught:
        router.route("gpt-5.5")
    assert "OPENAI_API_KEY" in caught.value.hint
    assert "simulated" not in caught.value.hint
    assert not any(entry.simulated for entry in router.list_models())


def test_a_name_of_the_file_that_is_simulated_cannot_be_forbidden_unnoticed() -> None:
    made = config('[models]\nopus = "simulated/openai/gpt-5.5"')
    with pytest.raises(InputError, match="--no-simulate forbids") as caught:
        made.without_simulated()
    assert "models.opus" in caught.value.path


def test_what_is_configured_is_never_simulated_unless_that_is_requested() -> None:
    text = f"[gateway]\nsimulate = true\n{FILE}"
    assert way("anthropic/no-such", text) == ("anthropic", "no-such", "")
    assert way("claude-fable-5", text) == ("anthropic", "claude-fable-5", "")
    assert way("google/x", text) == ("gemini", "x", "")
    router = Router(config(text))
    assert router.route("simulated/anthropic/claude-opus-5") == Route(
        upstream_name="anthropic", model="claude-opus-5", simulated=True
    )
    for name in ("mistral/x", "mistral-large-latest", "nobody-knows"):
        with pytest.raises(NoRouteError):
            router.route(name)


def test_the_star_comes_before_the_simulator_but_not_before_its_prefix() -> None:
    router = Router(config(f'[gateway]\nsimulate = true\n{FILE}"*" = "openrouter/*"'))
    assert router.route("nobody-knows").upstream_name == "openrouter"
    assert router.route("simulated/openai/gpt-4.1").simulated


def test_a_name_of_the_file_can_lead_to_the_simulator() -> None:
    text = '[models]\nopus = "simulated/openai/gpt-5.5"'
    router = Router(config(text))
    expected = Route(upstream_name="openai", model="gpt-5.5", alias_of="opus", simulated=True)
    assert router.route("claude-opus-5") == expected


# --- unknown names ----------------------------------------------------------------------------------


def test_an_unknown_name_is_reported_with_what_there_is_and_what_to_write() -> None:
    error = refusal("gtp-5.5")
    assert isinstance(error, InputError)
    assert error.path == "$.model"
    assert error.message == "unknown model 'gtp-5.5'; did you mean 'gpt-5.5'?"
    assert error.suggestions == ("gpt-5.5",)
    assert "upstreams: openai/…, anthropic/…" in error.hint
    assert "my-alias, other, chain" in error.hint
    assert '"gtp-5.5" = "openai/MODEL" into [models] of toolglot.toml' in error.hint
    assert "/etc" not in str(error)


def test_where_there_is_nothing_it_says_so() -> None:
    hint = refusal("x", "").hint
    assert "upstreams: none; names of [models]: none; write [upstreams.NAME] into toolglot.toml" in hint


@pytest.mark.parametrize("model", ["", "  ", "x" * 513, "a\nb", "a\0"])
def test_what_is_no_name_is_refused(model: str) -> None:
    for router in (Router(config()), Router(config_from_environment({"HOME": "/h"}))):
        with pytest.raises(NoRouteError) as caught:
            router.route(model)
        assert len(str(caught.value)) < 1500


def test_a_key_written_as_a_name_is_not_repeated() -> None:
    assert "0123456789" not in str(refusal("sk-live-0123456789abcdef"))


def test_many_names_are_cut_in_the_message_and_cost_little() -> None:
    models = ", ".join(f'"model-{number}"' for number in range(9999))
    lines = models.replace(", ", ",\n")
    router = Router(config(f"[upstreams.openai]\nmodels = [{lines}]"))
    aliases = "\n".join(f'name-{number} = "openai/x"' for number in range(20))
    assert "and 12 more" in refusal("zzz", f"[upstreams.openai]\n[models]\n{aliases}").hint

    def wrong() -> None:
        with pytest.raises(NoRouteError):
            router.route("wrong-1")

    assert steps_of(wrong) < 1_500_000  # for 9999 names


# --- listings ---------------------------------------------------------------------------------------


def test_listings_show_names_and_models_but_no_patterns() -> None:
    found = Router(config()).list_models()
    assert found[0] == Listed("my-alias", "anthropic", "claude-sonnet-5")
    assert [entry.name for entry in found] == [
        *("my-alias", "other", "chain", "opus", "sonnet", "gpt-4o-mini", "marked[1m]"),
        *("openai/gpt-5.5", "anthropic/claude-exact[1m]", "openrouter/google/gemini-2.5-pro", "openrouter/shared"),
        "second/shared",
    ]
    assert not any(entry.simulated for entry in found)


def test_listings_show_the_simulated_models_where_nothing_is_configured_or_it_is_set() -> None:
    assert not any(entry.simulated for entry in Router(config_from_environment(ONE_KEY)).list_models())
    assert any(entry.simulated for entry in Router(config(f"[gateway]\nsimulate = true\n{FILE}")).list_models())
    found = Router(config_from_environment({"HOME": "/h"})).list_models()
    assert Listed("simulated/anthropic/claude-opus-5", "anthropic", "claude-opus-5", True) in found
    assert all(entry.simulated for entry in found)


# --- laws -------------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        *("opus", "sonnet", "gpt", "claude", "4o", "5.5", "openai", "anthropic", "google", "gemini", "simulated"),
        *("my", "alias", "*", "[1m]", "x", "keep"),
    ]
)
MODELS = st.one_of(
    st.text(max_size=30),
    st.lists(st.tuples(PARTS, st.sampled_from(["-", "/", "", ".", ":"])), max_size=6).map(
        lambda parts: "".join(part + mark for part, mark in parts)
    ),
)


@pytest.mark.law
@given(MODELS, st.booleans(), st.booleans())
def test_a_request_goes_to_an_upstream_of_the_file_or_to_a_marked_stand_in(
    model: str, simulate: bool, has_rest: bool
) -> None:
    text = f"[gateway]\nsimulate = {str(simulate).lower()}\n{FILE}" + ('"*" = "gemini/*"' if has_rest else "")
    made = config(text)
    router = Router(made)
    try:
        route = router.route(model)
    except NoRouteError:
        is_name = bool(model.strip()) and model.strip().isprintable()
        assert not is_name or not has_rest
        return
    assert route.upstream_name in (SIMULATED_PROVIDERS if route.simulated else made.upstreams)
    assert not route.simulated or (simulate and model.strip().lower().startswith("simulated/"))
    assert route.model
    assert route == Router(made).route(model)


@pytest.mark.law
@given(st.sampled_from([FILE, f"[gateway]\nsimulate = true\n{FILE}", f'{FILE}"*" = "openai/*"']))
def test_every_listed_name_leads_where_it_says(text: str) -> None:
    router = Router(config(text))
    for entry in router.list_models():
        route = router.route(entry.name)
        assert (route.upstream_name, route.model, route.simulated) == entry[1:]


@pytest.mark.law
@given(st.text("*?[]!-ab", max_size=200), st.text("ab-", max_size=512))
def test_no_pattern_takes_long(pattern: str, name: str) -> None:
    models = f'[upstreams.box]\nurl = "https://a.example"\nmodels = ["{pattern or "x"}"]'
    router = Router(config(models))
    with no_hang():
        for model in (name or "x", "ab" * 256):
            try:
                assert router.route(model).upstream_name == "box"
            except NoRouteError:
                continue


def test_ways_are_remembered_but_not_for_ever() -> None:
    router = Router(config('[upstreams.openai]\n[models]\n"*" = "openai/*"\n'))
    first = router.route("one")
    assert router.route("one") is first
    for number in range(1_000):
        assert router.route(f"name-{number}").model == f"name-{number}"
    assert router.route("one") == first
    assert router.route("one") is not first
    padded = " " * 10_000 + "one"
    assert router.route(padded) == first
    assert router.route(padded) is not router.route(padded)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("mistrall", "mistral/mistral-large-latest"), ("gtp-5.5", "gpt-5.5"), ("antropic", "anthropic/claude-opus-5")],
)
def test_a_mistyped_name_without_a_prefix_is_answered_with_the_closest_model(name: str, meant: str) -> None:
    with pytest.raises(NoRouteError) as raised:
        Router(config_from_environment({"HOME": "/home/u"})).route(name)
    assert raised.value.suggestions[0] == meant
    assert meant in raised.value.message


@pytest.mark.parametrize("name", ["nope/x", "nope", "simulated/nope/x"])
def test_nothing_is_suggested_that_is_not_similar(name: str) -> None:
    assert refusal(name).suggestions == ()
    assert "did you mean" not in refusal(name).message
