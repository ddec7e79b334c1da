"""What a name of `[models]` sets besides where it leads: read, joined, put into force, reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.gateway.http_client import PROTOCOLS, ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.waiting import wait_until
from toolglot import simulator
from toolglot.conversation import Conversation, Options, Reasoning, Sampling, Text, ToolChoice, ToolSpec, Turn
from toolglot.gateway import Gateway, running
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.own_secrets import own_secrets
from toolglot.gateway.config.settings import Config, ConfigError, parse_config, read_config
from toolglot.gateway.routing.upstreams import Upstreams
from toolglot.policy import Policy
from toolglot.render.options import EFFORTS
from toolglot.simulator.serving import Server
from toolglot.translate.requests import read_request
from toolglot.upstream.routing.request_settings import apply_settings
from toolglot.upstream.routing.router import Router
from toolglot.upstream.routing.routes import Route
from toolglot.upstream.settings import Effort, RequestSettings, RouteSettings

KEY = "sk-live-0123456789abcdef"
ENV = {"HOME": "/home/user", "OPENAI_API_KEY": KEY, "GROQ_API_KEY": KEY, "TEAM_TOKEN": "a-token-of-the-team"}
HEAD = "[upstreams.openai]\n[upstreams.groq]\n[models]\n"


def config(text: str) -> Config:
    return parse_config(ConfigText("toolglot.toml", HEAD + text), ENV)


def wrong(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config(text)
    assert KEY not in str(caught.value)
    return caught.value


def way(text: str, name: str = "x", index: int = 0) -> RouteSettings:
    """What holds on the way from a name to one of its upstreams."""
    route = Router(config(text)).route(name)
    found = (route, *route.others)[index].settings
    assert found is not None
    return found


# --- reading ----------------------------------------------------------------------------------------


def test_a_name_that_only_leads_somewhere_sets_nothing() -> None:
    for text in (
        'x = "openai/a"',
        'x = ["openai/a", "groq/b"]',
        'x = { to = "openai/a" }',
        'x = { to = ["openai/a"] }',
    ):
        route = Router(config(text)).route("x")
        assert (route.settings, route.upstream_name, route.weights) == (None, "openai", ())


def test_everything_that_can_be_set_is_there() -> None:
    found = way(
        """
        [models.x]
        to = "openai/a"
        system = "Be brief."
        default = { max_tokens = 100, stop = ["END"], reasoning_effort = "low" }
        policy = { stream_calls = "whole" }
        target = "mistral"
        headers = { "X-Team" = "env:TEAM_TOKEN", "x-plain" = "yes" }
        retries = 3
        retry_seconds = 1.5
        connect_seconds = 2
        first_byte_seconds = 3
        idle_seconds = 4
        [models.x.force]
        temperature = 0
        tool_choice = "none"
        parallel_tool_calls = false
        """
    )
    assert (found.name, found.system, found.target) == ("x", "Be brief.", "mistral")
    assert found.default == RequestSettings(max_tokens=100, stop=("END",), reasoning_effort="low")
    assert found.force == RequestSettings(temperature=0, tool_choice="none", parallel_tool_calls=False)
    assert found.policy == Policy(server_tools="spare", stream_calls="whole")
    assert {name: value.reveal() for name, value in found.headers.items()} == {
        "x-team": "a-token-of-the-team",
        "x-plain": "yes",
    }
    assert [getattr(found.retry, name) for name in found.retry.__struct_fields__] == [3, 1.5, 2, 3, 4]
    assert "a-token-of-the-team" not in repr(found)


def test_a_targets_own_table_counts_over_that_of_its_name() -> None:
    text = """
    [models.x]
    to = ["openai/a", { to = "groq/b", retries = 0, force = { top_p = 0.5 }, policy = { ids = "canonical" } }]
    retries = 2
    idle_seconds = 9
    system = "S"
    force = { temperature = 0, top_p = 1 }
    policy = { stream_calls = "whole" }
    """
    first, second = way(text), way(text, index=1)
    assert (first.retry.retries, second.retry.retries) == (2, 0)
    assert (first.retry.idle_seconds, second.retry.idle_seconds) == (9, 9)
    assert (first.force.top_p, second.force.top_p) == (1, 0.5)
    assert second.force.temperature == 0
    assert second.policy == Policy(server_tools="spare", stream_calls="whole", ids="canonical")
    assert first.system == second.system == "S"


def test_a_name_counts_over_the_name_that_it_leads_to() -> None:
    text = """
    x = { to = "y", force = { temperature = 1 }, headers = { a = "1" } }
    y = { to = "z", retries = 1, force = { temperature = 0, seed = 7 }, headers = { a = "2", b = "2" } }
    z = "openai/a"
    plain = "y"
    """
    found = way(text)
    assert found.name == "x"
    assert (found.retry.retries, found.force.temperature, found.force.seed) == (1, 1, 7)
    assert {name: value.reveal() for name, value in found.headers.items()} == {"a": "1", "b": "2"}
    assert way(text, "plain").force == RequestSettings(temperature=0, seed=7)


def test_the_policy_of_the_file_is_what_a_name_changes() -> None:
    head = '[policy]\nbridge_user = "Go on."\n[upstreams.openai]\n'
    text = f'{head}[models.x]\nto = "openai/a"\npolicy = {{ ids = "canonical" }}'
    found = Router(parse_config(ConfigText("t", text), ENV)).route("x").settings
    assert found is not None
    assert found.policy == Policy(server_tools="spare", bridge_user="Go on.", ids="canonical")


@pytest.mark.parametrize(
    ("table", "path", "message", "hint"),
    [
        ("forse = {}", "models.x.forse", "unknown setting", "did you mean force?"),
        ("force = { temprature = 1 }", "models.x.force.temprature", "unknown setting", "did you mean temperature?"),
        ("force = { temperature = 3 }", "models.x.force.temperature", "a number from 0 to 2, got 3", ""),
        ("force = { temperature = nan }", "models.x.force.temperature", "a number from 0 to 2", ""),
        (
            "default = { max_tokens = 0 }",
            "models.x.default.max_tokens",
            "a whole number from 1 to 1000000000, got 0",
            "",
        ),
        ('default = { reasoning_effort = "much" }', "models.x.default.reasoning_effort", 'one of "none"', ""),
        ("default = 3", "models.x.default", "expected a table, got 3", ""),
        ("policy = { stream = 1 }", "models.x.policy.stream", "unknown setting", "did you mean"),
        ('policy = { ids = "odd" }', "models.x.policy.ids", "expected one of reversible, canonical", "convert.md"),
        ('target = "opnai"', "models.x.target", "unknown profile 'opnai'; did you mean 'openai'?", "known: anthropic"),
        ('headers = { host = "a" }', "models.x.headers.host", "the gateway sets this header itself", ""),
        ('headers = { authorization = "Bearer x" }', "models.x.headers.authorization", "looks like a key", "env:NAME"),
        ('headers = { a = "env:NOBODY" }', "models.x.headers.a", "'NOBODY' is not set", ""),
        (f'headers = {{ a = "{KEY}" }}', "models.x.headers.a", "looks like a key", ""),
        ("retries = 11", "models.x.retries", "from 0 to 10, got 11", ""),
        ("idle_seconds = 0", "models.x.idle_seconds", "a number of seconds above 0, at most 86400, got 0", ""),
        ("system = 7", "models.x.system", "a string", ""),
    ],
)
def test_a_mistake_is_reported_with_its_line_its_key_and_what_to_do(
    table: str, path: str, message: str, hint: str
) -> None:
    for form in (f'[models.x]\nto = "openai/a"\n{table}', f'x = {{ to = [{{ to = "openai/a", {table} }}] }}'):
        error = wrong(form)
        assert error.path.startswith("toolglot.toml:")
        assert error.path.endswith(f": {path}")
        assert message in error.message
        assert hint in error.hint


def test_the_efforts_are_those_that_the_renderer_knows() -> None:
    assert get_args(Effort) == EFFORTS


def test_a_secret_in_a_header_of_a_route_is_taken_out_of_what_is_reported() -> None:
    secrets = own_secrets(config('x = { to = "openai/a", headers = { x-team-key = "env:TEAM_TOKEN" } }'))
    assert "team" not in secrets.mask("it said a-token-of-the-team")


def test_an_upstream_is_as_the_route_wants_it_with_the_same_breaker() -> None:
    own_table = '{ to = "openai/a", target = "mistral", retries = 2, idle_seconds = 7, headers = { a = "1" } }'
    found = config(f'x = {own_table}\ny = {{ to = "openai/a", system = "S" }}')
    upstreams, router = Upstreams(found), Router(found)
    usual = upstreams.find(Route(upstream_name="openai", model="a"))
    own, other = upstreams.find(router.route("x")), upstreams.find(router.route("y"))
    assert (own.target, own.also, own.retries, own.limits.idle, own.headers) == ("mistral", (), 2, 7, {"a": "1"})
    assert own.limits.first_byte == usual.limits.first_byte
    assert other == usual
    assert upstreams.find(router.route("x")) is own
    assert upstreams.breaker(own) is upstreams.breaker(usual)


# --- what is changed --------------------------------------------------------------------------------

TOOL = ToolSpec("read_file", parameters={"type": "object"})
CONVERSATION = Conversation(turns=(Turn("user", (Text("Hello"),)),), tools=(TOOL,), model="x")


def with_options(**options: Any) -> Conversation:
    return msgspec.structs.replace(CONVERSATION, options=Options(**options))


def apply_and_report(conversation: Conversation, **tables: Any) -> tuple[Conversation, list[str]]:
    after, entries = apply_settings(conversation, RouteSettings(name="x", **tables))
    assert all(entry.fault == "policy" and "[models] 'x'" in entry.reason for entry in entries)
    return after, [f"{entry.action} {entry.path}: {entry.reason.partition(' has ')[2]}" for entry in entries]


def test_a_default_holds_where_the_client_says_nothing() -> None:
    wanted = RequestSettings(max_tokens=100, temperature=0.5, stop=("END",), reasoning_effort="low")
    after, report = apply_and_report(with_options(sampling=Sampling(temperature=1)), default=wanted)
    assert after.options.sampling == Sampling(max_tokens=100, temperature=1, stop=("END",))
    assert after.options.reasoning == Reasoning(effort="low")
    assert report == [
        "added $.max_tokens: default.max_tokens = 100, which the client does not set",
        "added $.stop: default.stop = 'END', which the client does not set",
        "added $.reasoning_effort: default.reasoning_effort = 'low', which the client does not set",
    ]


def test_what_is_forced_holds_whatever_the_client_says() -> None:
    original = with_options(
        sampling=Sampling(max_tokens=50, temperature=1, stop=("A",)),
        reasoning=Reasoning(mode="on", budget_tokens=2000, summary="auto"),
        tool_choice=ToolChoice("named", ("read_file",), parallel=True),
    )
    wanted = RequestSettings(
        max_tokens=100, temperature=1, reasoning_mode="off", tool_choice="auto", parallel_tool_calls=False
    )
    after, report = apply_and_report(original, force=wanted)
    assert after.options.sampling == Sampling(max_tokens=100, temperature=1, stop=("A",))
    assert after.options.reasoning == Reasoning(mode="off", summary="auto")
    assert after.options.tool_choice == ToolChoice("auto", parallel=False)
    assert report == [
        "replaced $.max_tokens: force.max_tokens = 100 instead of 50",
        "replaced $.reasoning_mode: force.reasoning_mode = 'off' instead of 'on'",
        "replaced $.reasoning_budget_tokens: force.reasoning_budget_tokens = 'unset' instead of 2000",
        "replaced $.tool_choice: force.tool_choice = 'auto' instead of 'named'",
        "replaced $.parallel_tool_calls: force.parallel_tool_calls = False instead of True",
    ]


@pytest.mark.parametrize("table", ["default", "force"])
def test_a_choice_that_is_reported_is_part_of_the_request_even_if_it_is_what_most_providers_assume(table: str) -> None:
    after, entries = apply_and_report(CONVERSATION, **{table: RequestSettings(tool_choice="auto")})
    assert after.options.tool_choice == ToolChoice("auto")
    assert entries == [f"added $.tool_choice: {table}.tool_choice = 'auto', which the client does not set"]


def test_a_default_thinks_only_for_clients_that_say_nothing_of_thinking() -> None:
    original = with_options(reasoning=Reasoning(mode="off"))
    after, report = apply_and_report(original, default=RequestSettings(reasoning_effort="high"))
    assert (after is original, report) == (True, [])


def test_a_choice_of_tools_is_only_for_requests_that_offer_some() -> None:
    original = msgspec.structs.replace(CONVERSATION, tools=())
    after, report = apply_and_report(original, force=RequestSettings(tool_choice="required", parallel_tool_calls=True))
    assert (after is original, report) == (True, [])


def test_who_only_speaks_of_parallel_calls_has_made_no_choice() -> None:
    body = {"model": "x", "messages": [{"role": "user", "content": "Hi"}], "parallel_tool_calls": True}
    function = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    conversation = read_request({**body, "tools": [function]}, source="openai").conversation
    after, report = apply_and_report(
        conversation, default=RequestSettings(tool_choice="required", parallel_tool_calls=False)
    )
    assert after.options.tool_choice == ToolChoice("required", parallel=True)
    assert report == ["added $.tool_choice: default.tool_choice = 'required', which the client does not set"]


def test_the_system_prompt_comes_before_the_clients_own() -> None:
    original = msgspec.structs.replace(CONVERSATION, turns=(Turn("system", (Text("Mine."),)), *CONVERSATION.turns))
    after, entries = apply_settings(original, RouteSettings(name="x", system="Ours."))
    assert [turn.text for turn in after.turns] == ["Ours.", "Mine.", "Hello"]
    assert [str(entry) for entry in entries] == [
        "added at $.system: [models] 'x' puts a system prompt of 5 characters before the client's"
    ]


SETTINGS = st.builds(
    RequestSettings,
    max_tokens=st.none() | st.integers(1, 5000),
    temperature=st.none() | st.sampled_from([0, 0.5, 1]),
    top_p=st.none() | st.sampled_from([0.1, 1]),
    top_k=st.none() | st.integers(1, 50),
    stop=st.none() | st.just(("END",)),
    seed=st.none() | st.integers(0, 9),
    presence_penalty=st.none() | st.just(0.5),
    frequency_penalty=st.none() | st.just(0.5),
    reasoning_mode=st.none() | st.sampled_from(["off", "on", "adaptive", "between_tools"]),
    reasoning_effort=st.none() | st.sampled_from(EFFORTS),
    reasoning_budget_tokens=st.none() | st.integers(1, 40_000),
    tool_choice=st.none() | st.sampled_from(["auto", "none", "required"]),
    parallel_tool_calls=st.none() | st.booleans(),
)


@pytest.mark.law
@given(SETTINGS, SETTINGS, st.sampled_from(["", "Ours."]), st.booleans())
@example(RequestSettings(), RequestSettings(tool_choice="auto"), "", True)
@example(RequestSettings(tool_choice="auto"), RequestSettings(), "", True)
def test_what_is_forced_holds_every_change_is_reported_and_none_gives_back_what_came(
    default: RequestSettings, force: RequestSettings, system: str, has_tools: bool
) -> None:
    original = CONVERSATION if has_tools else msgspec.structs.replace(CONVERSATION, tools=())
    settings = RouteSettings(name="x", default=default, force=force, system=system)
    after, entries = apply_settings(original, settings)
    assert (after is original) == (not entries)
    for name in ("max_tokens", "temperature", "top_p", "top_k", "stop", "seed"):
        wanted = next((value for table in (force, default) if (value := getattr(table, name)) is not None), None)
        assert getattr(after.options.sampling, name) == (
            wanted if wanted is not None else () if name == "stop" else None
        )
    if system:
        assert after.turns[0].text == system
    forced = msgspec.structs.replace(settings, default=RequestSettings(), system="")
    again, more = apply_settings(after, forced)
    assert (again, more) == (after, [])


# --- through the gateway, in front of the strict simulator ------------------------------------------


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with simulator.serve({"calls_unasked": False}) as served:
        yield served


MODELS = {
    "set": '{ to = "openai_chat/gpt-4.1", system = "Ours.", default = { max_tokens = 77, seed = 5 },'
    " force = { temperature = 0.25, parallel_tool_calls = false } }",
    "claude": '{ to = "anthropic/claude-sonnet-4-5", system = "Ours.", force = { max_tokens = 3333 } }',
    "claude-sonnet-4-5": '{ to = "anthropic/claude-sonnet-4-5", force = { max_tokens = 3333 } }',
    "think": '{ to = "openai_responses/gpt-5.5", force = { reasoning_effort = "low" }, system = "Ours." }',
    "idle": '{ to = "anthropic/claude-sonnet-4-5", default = { max_tokens = 9 }, force = { max_tokens = 500 } }',
    "whole": '{ to = "mistral/mistral-large-latest", target = "openai_compatible" }',
    "refuse": '{ to = "openai_chat/gpt-4.1", policy = { server_tools = "refuse" } }',
    "chain": '{ to = ["ghost/a", { to = "mistral/mistral-large-latest", force = { max_tokens = 44 } }],'
    " force = { max_tokens = 55 } }",
}
GHOST = '[upstreams.ghost]\nurl = "http://127.0.0.1:9/v1"\n'


@pytest.fixture(scope="module")
def served(simulated: Server) -> Iterator[Served]:
    with gateway(simulated, models=MODELS, upstreams=GHOST) as found:
        yield found


def sent(served: Served, id: str) -> tuple[dict[str, Any], list[str]]:
    """What the upstream was sent, and what the report says of it."""
    page = ask(served, f"/toolglot/requests/{id}").body
    return page["rendered"], [entry["text"] for entry in page["report"]]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_route_sets_what_the_upstream_gets_and_reports_it(served: Served, protocol: str, stream: bool) -> None:
    path, body = request_of(protocol, "set", stream=stream)
    got = ask(served, path, body)
    assert got.status == 200, got.data
    rendered, report = sent(served, got.headers["x-toolglot-request"])
    assert rendered["temperature"] == 0.25
    assert rendered["parallel_tool_calls"] is False
    assert rendered["seed"] == 5
    assert rendered.get("max_tokens", rendered.get("max_completion_tokens")) == (500 if protocol == "anthropic" else 77)
    assert rendered["messages"][0]["content"] == "Ours."
    for name in ("force.temperature = 0.25", "force.parallel_tool_calls = False", "default.seed = 5", "system prompt"):
        assert sum(name in line for line in report) == 1
    assert sum("default.max_tokens" in line for line in report) == (protocol != "anthropic")


def test_the_clients_own_protocol_is_changed_too_and_keeps_what_it_has(served: Served) -> None:
    cached = [{"type": "text", "text": "Mine.", "cache_control": {"type": "ephemeral"}}]
    path, body = request_of("anthropic", "claude", system=cached, metadata={"user_id": "u"})
    got = ask(served, path, body, headers={"anthropic-version": "2023-06-01"})
    assert got.status == 200, got.data
    rendered, report = sent(served, got.headers["x-toolglot-request"])
    assert rendered["max_tokens"] == 3333
    assert rendered["system"] == [{"type": "text", "text": "Ours."}, *cached]
    assert rendered["metadata"] == {"user_id": "u"}
    assert any("force.max_tokens = 3333 instead of 500" in line for line in report)


def test_what_a_route_leaves_as_it_is_goes_home_as_it_came(served: Served) -> None:
    path, body = request_of("anthropic", "idle")
    got = ask(served, path, body, headers={"anthropic-version": "2023-06-01"})
    assert got.status == 200, got.data
    _, report = sent(served, got.headers["x-toolglot-request"])
    assert not [line for line in report if "[models]" in line]


def test_a_response_that_goes_on_from_one_that_the_provider_stores_is_set_too(served: Served) -> None:
    path, body = request_of("openai_responses", "think", "Hello", instructions="Mine.")
    first = ask(served, path, body).body
    got = ask(served, path, {**body, "previous_response_id": first["id"], "input": "And now?"})
    assert got.status == 200, got.data
    rendered, report = sent(served, got.headers["x-toolglot-request"])
    assert rendered["reasoning"]["effort"] == "low"
    assert "Ours." in rendered["instructions"]
    assert any("force.reasoning_effort = 'low'" in line for line in report)


def test_what_was_set_is_reported_for_a_second_try_too(served: Served) -> None:
    path, body = request_of("anthropic", "claude-sonnet-4-5")
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "Zm9yZ2Vk" * 20}
    message = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    body["messages"] = [*body["messages"], message, {"role": "user", "content": "Go on."}]
    got = ask(served, path, {**body, "max_tokens": 5000, "thinking": {"type": "enabled", "budget_tokens": 1024}})
    assert got.status == 200, got.data
    rendered, report = sent(served, got.headers["x-toolglot-request"])
    assert rendered["max_tokens"] == 3333
    assert any("that the provider refused were left out" in line for line in report)
    assert any("force.max_tokens = 3333 instead of 5000" in line for line in report)


def test_a_count_is_of_what_would_be_sent(served: Served) -> None:
    _, body = request_of("anthropic", "claude")
    plain = {**body, "model": "anthropic/claude-sonnet-4-5"}
    counts = [ask(served, "/v1/messages/count_tokens", each).body["input_tokens"] for each in (body, plain)]
    assert counts[0] > counts[1]


def test_a_route_has_its_own_policy(served: Served) -> None:
    path, body = request_of("anthropic", "refuse")
    search = {"type": "web_search_20250305", "name": "web_search"}
    got = ask(served, path, {**body, "tools": [*body["tools"], search]})
    assert got.status == 400
    assert ask(served, path, {**body, "model": "set", "tools": [*body["tools"], search]}).status == 200


def test_a_route_has_its_own_profile(served: Served) -> None:
    path, body = request_of("openai", "whole")
    got = ask(served, path, body)
    assert got.status == 200, got.data
    assert ask(served, f"/toolglot/requests/{got.headers['x-toolglot-request']}").body["target"] == "openai_compatible"


def test_where_another_one_stands_in_its_own_settings_hold(served: Served) -> None:
    path, body = request_of("openai", "chain")
    got = ask(served, path, body)
    assert got.status == 200, got.data
    rendered, report = sent(served, got.headers["x-toolglot-request"])
    assert rendered["max_tokens"] == 44
    assert any("ghost did not answer" in line for line in report)


def test_a_route_has_its_own_retries_and_time_limits() -> None:
    models = {
        "patient": '{ to = "mistral/mistral-large-latest", retries = 1, retry_seconds = 5 }',
        "hasty": '{ to = "mistral/mistral-large-latest", first_byte_seconds = 0.2 }',
    }
    with simulator.serve({"calls_unasked": False}) as own, gateway(own, models=models) as served:
        for model, status, tries in (("mistral/mistral-large-latest", 429, 1), ("patient", 200, 2)):
            own.fault("429,retry_after=0.01")
            path, body = request_of("openai", model)
            before = len(own.requests)
            assert (ask(served, path, body).status, len(own.requests) - before) == (status, tries)
        own.fault("timeout,seconds=600")  # longer than a client here waits
        path, body = request_of("openai", "hasty")
        assert ask(served, path, body).status == 504


def test_a_change_of_the_settings_comes_into_force_while_the_gateway_runs(simulated: Server, tmp_path: Path) -> None:
    file = tmp_path / "toolglot.toml"
    url = simulated.url("openai")
    head = f'[gateway]\nstore = ":memory:"\nlog = "off"\n[upstreams.openai]\nurl = "{url}"\ntarget = "openai"\n'

    def write(temperature: float) -> None:
        file.write_text(f'{head}[models.x]\nto = "openai/gpt-4.1"\nforce = {{ temperature = {temperature} }}\n')

    def reread() -> Config:
        return read_config(file, ENV)

    path, body = request_of("openai", "x")
    write(0.5)
    with running(Gateway(reread(), reread=reread)) as at:

        def requested_tokens() -> float:
            id = ask(at, path, body).headers["x-toolglot-request"]
            found: float = ask(at, f"/toolglot/requests/{id}").body["rendered"]["temperature"]
            return found

        assert requested_tokens() == 0.5
        write(0.125)
        wait_until(lambda: requested_tokens() != 0.5)
        assert requested_tokens() == 0.125


def test_a_router_knows_whether_a_name_leads_to_a_model() -> None:
    router = Router(config('x = "openai/a"'))
    assert router.leads_to("x", "openai", "a")
    assert not router.leads_to("x", "groq", "a")
    assert not router.leads_to("unheard-of", "openai", "a")
